//! State of proxies and servers whose name is computed (section 7.3.1). The name is looked up each time:
//! these are for the few rules that can't know it earlier.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{Proxy, Server};

use super::bytes;
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
use crate::sample::{Miss, Type, Value};

const fn def(
    name: &'static str,
    out: Type,
    eval: ConvFn,
    doc: &'static str,
    example: &'static str,
) -> ConvDef {
    ConvDef::new(name, Type::Str, out, eval, doc, example).volatile()
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    def(
        "nbsrv",
        Type::Int,
        |e, v, _| Ok(Value::Int(usable(e, v)?)),
        "Usable servers of the backend named.",
        "str(be),nbsrv",
    ),
    def(
        "srv_is_up",
        Type::Bool,
        |e, v, _| Ok(Value::Bool(server(e, v)?.is_up())),
        "Whether the server named is up.",
        "str(be/s1),srv_is_up",
    ),
    def(
        "srv_queue",
        Type::Int,
        |e, v, _| Ok(Value::Int(server(e, v)?.queued.load(Relaxed).into())),
        "Requests in the queue of the server named.",
        "str(be/s1),srv_queue",
    ),
];

fn proxy(env: &Env<'_>, name: &[u8]) -> Result<Arc<Proxy>, Miss> {
    let name = std::str::from_utf8(name).map_err(|_| Miss::None)?;
    env.live.world().find_proxy(name).ok_or(Miss::None)
}

fn usable(env: &Env<'_>, value: Value<'_>) -> Result<i64, Miss> {
    Ok(crate::fetch::usable(&*proxy(env, bytes(value))?) as i64)
}

/// `backend/server`, or a server of the current backend.
fn server(env: &Env<'_>, value: Value<'_>) -> Result<Arc<Server>, Miss> {
    let text = bytes(value);
    let find = |proxy: &Proxy, name: &[u8]| {
        proxy.back.servers.read().iter().find(|s| s.name.as_bytes() == name).cloned().ok_or(Miss::None)
    };
    match text.iter().position(|c| *c == b'/') {
        Some(slash) => find(&*proxy(env, &text[..slash])?, &text[slash + 1..]),
        None => find(env.live.backend().ok_or(Miss::None)?, text),
    }
}
