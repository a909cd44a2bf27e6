//! State of any frontend, backend or server, by name (section 7.3.2).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::proxy::Back;
use model::{Proxy, Server};

use crate::arg::{Arg, arg};
use crate::entry::{FetchDef, FetchFn};
use crate::env::Env;
use crate::places::INTERNAL;
use crate::sample::{Found, Miss, Type, Value};

use super::int;

const fn back(name: &'static str, eval: FetchFn, doc: &'static str, example: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, INTERNAL, eval, doc).args("backend", example).volatile()
}

const fn front(name: &'static str, eval: FetchFn, doc: &'static str, example: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, INTERNAL, eval, doc).args("frontend", example).volatile()
}

const fn server(name: &'static str, eval: FetchFn, doc: &'static str, example: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, INTERNAL, eval, doc).args("server", example).volatile()
}

pub(super) const FETCHES: &[FetchDef] = &[
    back("avg_queue", avg_queue, "Queued requests of the backend for each usable server.", "avg_queue(be)"),
    back(
        "be_conn",
        |_, a| int(proxy(a)?.back.current.load(Relaxed)),
        "Requests that the backend serves.",
        "be_conn(be)",
    ),
    back(
        "be_conn_free",
        be_conn_free,
        "Connections that usable servers can still take; -1 without limit.",
        "be_conn_free(be)",
    ),
    back(
        "be_sess_rate",
        |e, a| int(proxy(a)?.back.session_rate.read(e.live.now().as_millis())),
        "Sessions of the backend in the last second.",
        "be_sess_rate(be)",
    ),
    back("nbsrv", |_, a| int(usable(proxy(a)?)), "Usable servers of the backend.", "nbsrv(be)"),
    back(
        "connslots",
        |e, a| Ok(Value::Int(e.live.free_slots(proxy(a)?))),
        "Connections and places in queues that the backend can still take; -1 without limit.",
        "connslots(be)",
    ),
    back("queue", |_, a| int(queued(proxy(a)?)), "Queued requests of the backend.", "queue(be)"),
    front(
        "fe_conn",
        |_, a| int(proxy(a)?.front.current.load(Relaxed)),
        "Connections of the frontend.",
        "fe_conn(fe)",
    ),
    front(
        "fe_req_rate",
        |e, a| int(proxy(a)?.front.request_rate.read(e.live.now().as_millis())),
        "Requests of the frontend in the last second.",
        "fe_req_rate(fe)",
    ),
    front(
        "fe_sess_rate",
        |e, a| int(proxy(a)?.front.session_rate.read(e.live.now().as_millis())),
        "Sessions of the frontend in the last second.",
        "fe_sess_rate(fe)",
    ),
    server(
        "srv_conn",
        |_, a| int(of(a)?.served.load(Relaxed)),
        "Requests that the server serves.",
        "srv_conn(be/s1)",
    ),
    server(
        "srv_conn_free",
        |_, a| Ok(Value::Int(conn_free(of(a)?).unwrap_or(-1))),
        "Connections that the server can still take; -1 without limit.",
        "srv_conn_free(be/s1)",
    ),
    server(
        "srv_iweight",
        |_, a| int(of(a)?.initial_weight.load(Relaxed)),
        "Weight of the server in the configuration.",
        "srv_iweight(be/s1)",
    ),
    server(
        "srv_queue",
        |_, a| int(of(a)?.queued.load(Relaxed)),
        "Requests in the server's queue.",
        "srv_queue(be/s1)",
    ),
    server(
        "srv_sess_rate",
        |e, a| int(of(a)?.rate.read(e.live.now().as_millis())),
        "Sessions of the server in the last second.",
        "srv_sess_rate(be/s1)",
    ),
    server(
        "srv_uweight",
        |_, a| int(of(a)?.weight.load(Relaxed)),
        "Weight of the server as users see it.",
        "srv_uweight(be/s1)",
    ),
    server(
        "srv_weight",
        |_, a| int(of(a)?.weight.load(Relaxed)),
        "Weight of the server now.",
        "srv_weight(be/s1)",
    ),
    FetchDef {
        out: Type::Bool,
        ..server(
            "srv_is_up",
            |_, a| Ok(Value::Bool(of(a)?.is_up())),
            "Whether the server is up.",
            "srv_is_up(be/s1)",
        )
    },
];

fn proxy(args: &[Arg]) -> Result<&Proxy, Miss> {
    match arg(args, 0) {
        Arg::Backend(p) | Arg::Frontend(p) => Ok(p),
        _ => Err(Miss::None),
    }
}

fn of(args: &[Arg]) -> Result<&Server, Miss> {
    match arg(args, 0) {
        Arg::Server(_, s) => Ok(s),
        _ => Err(Miss::None),
    }
}

pub(crate) fn usable(proxy: &Proxy) -> u64 {
    let mut count = 0;
    serving(&proxy.back, |_| count += 1);
    count
}

/// Visits the servers that may be chosen now: backups only where no other server is usable, and then the
/// first alone, but for `option allbackups`.
fn serving(back: &Back, each: impl FnMut(&Arc<Server>)) {
    let servers = back.servers.read();
    let usable = |backup| servers.iter().filter(move |s| s.backup.load(Relaxed) == backup && s.is_usable());
    if usable(false).next().is_some() {
        return usable(false).for_each(each);
    }
    let most = if back.all_backups.load(Relaxed) { usize::MAX } else { 1 };
    usable(true).take(most).for_each(each);
}

/// Requests waiting for any server, and for one.
pub(crate) fn queued(proxy: &Proxy) -> u64 {
    let own = u64::from(proxy.back.queued.load(Relaxed));
    own + proxy.back.servers.read().iter().map(|s| u64::from(s.queued.load(Relaxed))).sum::<u64>()
}

fn avg_queue<'a>(_: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let proxy = proxy(args)?;
    let queued = queued(proxy);
    int(match usable(proxy) {
        0 => queued * 2,
        n => queued.div_ceil(n),
    })
}

/// What a server can still take; `None` without limit.
fn conn_free(server: &Server) -> Option<i64> {
    let max = i64::from(server.maxconn.load(Relaxed));
    (max > 0).then(|| (max - i64::from(server.served.load(Relaxed))).max(0))
}

fn total(args: &[Arg], slots: impl Fn(&Server) -> Option<i64>) -> Result<i64, Miss> {
    let proxy = proxy(args)?;
    let mut sum = Some(0);
    serving(&proxy.back, |server| sum = sum.and_then(|sum| Some(sum + slots(server)?)));
    Ok(sum.unwrap_or(-1))
}

fn be_conn_free<'a>(_: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    Ok(Value::Int(total(args, conn_free)?))
}
