//! Which backend, then which server.

use std::sync::atomic::Ordering::Relaxed;

use base::hash;
use farm::Stay;
use farm::queue::{self, Place, Refused, Wait};
use lang::cond::Outcome;
use lang::env::{Env, Side};
use lang::logfmt::Use;
use model::Peer;
use model::term::{Cause, Phase};
use program::proxy::{Affinity, Balance, Mode, Proxy, Switch, SwitchTo, UseServerTo};
use wire::http1::{Body, Scanner};

use balance::Method;
use balance::key;
use balance::queue::Priority;

use crate::silence;
use crate::stream::Stream;
use crate::worker::Worker;

/// Applies `use_backend` and `default_backend`; `None` when no backend is to be had. Rules pass by backends
/// that are disabled or unpublished, unless `force-be-switch` allows them.
pub fn backend(stream: &mut Stream<'_>) -> Option<u32> {
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let index = stream.client.front;
    let frontend = program.configured(index);
    let chosen = match frontend.switching.is_empty() {
        true => None,
        false => stream.evaluate(Side::Request, |env| {
            frontend.switching.choose(env, |switch| switched(&worker, frontend, env, switch))
        }),
    };
    match chosen {
        Some(Switched::To(b, stay)) => {
            stream.keep(stay);
            Some(b)
        }
        Some(Switched::Nowhere) | None => {
            let open = |b: &u32| {
                shown(program.configured(*b)) || stream.evaluate(Side::Request, |env| forced(frontend, env))
            };
            frontend.default_backend.filter(open).or(frontend.is_backend.then_some(index))
        }
    }
}

/// Neither `disabled` nor unpublished.
fn shown(proxy: &Proxy) -> bool {
    !proxy.disabled && !proxy.state.back.unpublished.load(Relaxed)
}

/// `force-be-switch`.
fn forced(frontend: &Proxy, env: &Env<'_>) -> bool {
    frontend.force_switch.iter().any(|c| c.holds(env) == Outcome::Yes)
}

/// Where a rule leads.
enum Switched {
    To(u32, Stay),
    /// A name that is no backend's: no other rule is asked.
    Nowhere,
}

/// Where this rule leads; `None` when it is passed by.
fn switched(worker: &Worker, frontend: &Proxy, env: &Env<'_>, switch: &Switch) -> Option<Switched> {
    let to = match &switch.to {
        SwitchTo::Backend(b) => *b,
        SwitchTo::Format(format) => {
            let found = worker.with_scratch(|name| {
                format.append(env, Use::Value, name);
                worker.shared.program.backend(std::str::from_utf8(name).ok()?)
            });
            match found {
                Some(found) => found,
                None => return Some(Switched::Nowhere),
            }
        }
    };
    let Some(stay) = worker.shared.farm.try_stay(to) else { return Some(Switched::Nowhere) };
    let proxy = &*worker.shared.program.proxy(to);
    (shown(proxy) || forced(frontend, env)).then_some(Switched::To(to, stay))
}

/// Why no server could be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoServer {
    /// None is usable.
    None,
    /// Waiting for one ended.
    Refused(Refused),
}

/// What a request brings to the choice.
#[derive(Default)]
pub struct Wish {
    /// Server that persistence or `use-server` names.
    pub fixed: Option<u32>,
    /// The server tried last, in vain: another one is chosen if the algorithm allows.
    pub avoid: Option<u32>,
}

/// The server that rules or persistence bind the stream to.
pub fn bound(stream: &mut Stream<'_>) -> Option<u32> {
    let bound = ruled(stream);
    stuck(stream, bound)
}

/// The one that rules or a cookie name.
pub fn ruled(stream: &mut Stream<'_>) -> Option<u32> {
    let worker = stream.worker.clone();
    let proxy = &*worker.shared.program.proxy(stream.txn.backend?);
    persistence(stream, proxy);
    let ruled = use_server(stream, proxy);
    let named = crate::persist::wanted(stream, proxy, ruled.is_some());
    ruled.or(named)
}

/// The same, or else the one that a table knows.
pub fn stuck(stream: &mut Stream<'_>, bound: Option<u32>) -> Option<u32> {
    let at = stream.txn.backend?;
    if stream.worker.shared.program.proxy(at).stick.request.is_empty() {
        return bound;
    }
    let worker = stream.worker.clone();
    let proxy = &*worker.shared.program.proxy(at);
    let found = crate::stick::wanted(stream, proxy, bound);
    if bound.is_none() && found.is_some() {
        stream.http.cookie.is_needless();
    }
    found
}

/// Whether a rule or a cookie binds the request to a server, whatever tables say: then the algorithm has
/// nothing to look at.
pub fn is_bound(stream: &mut Stream<'_>, proxy: &Proxy) -> bool {
    persistence(stream, proxy);
    use_server(stream, proxy).is_some() || crate::persist::is_named(stream, proxy)
}

/// `force-persist` and `ignore-persist`.
fn persistence(stream: &mut Stream<'_>, proxy: &Proxy) {
    if proxy.force_persist.iter().any(|c| stream.holds(Some(c))) {
        stream.txn.decisions.force_persist = true;
    }
    if proxy.ignore_persist.iter().any(|c| stream.holds(Some(c))) {
        stream.txn.decisions.ignore_persist = true;
    }
}

fn use_server(stream: &Stream<'_>, proxy: &Proxy) -> Option<u32> {
    let force = stream.txn.decisions.force_persist || proxy.options.persist;
    for rule in &proxy.use_server {
        if !stream.holds(rule.condition.as_ref()) {
            continue;
        }
        // A name that no server has ends the search, a server that is down does not.
        let index = match &rule.to {
            UseServerTo::Server(i) => Some(*i),
            UseServerTo::Format(format) => stream.worker.with_scratch(|name| {
                stream.evaluate(Side::Request, |env| format.append(env, Use::Value, name));
                proxy.position(|s| s.name.as_bytes() == name.as_slice() && !s.state.is_removed())
            }),
        }?;
        if force || proxy.servers.get(index as usize).is_some_and(|s| s.state.is_up()) {
            return Some(index);
        }
    }
    None
}

/// The hash that the balancing algorithm looks up, or its random number.
pub fn key(stream: &Stream<'_>, proxy: &Proxy) -> Option<u32> {
    let hash = |bytes: &[u8]| proxy.hash.hash(bytes);
    let req = stream.txn.has_req.then_some(&stream.txn.req);
    match &proxy.balance {
        Balance::Random(_) => Some(rt::random() as u32),
        Balance::Source => {
            let src = stream.txn.decisions.src.unwrap_or_else(|| stream.client.conn().src.get());
            match src {
                Peer::Inet(a) => Some(proxy.hash.mix(hash::address(a.ip()))),
                _ => None,
            }
        }
        Balance::Uri(params) => Some(hash(key::uri(req?.target(), *params))),
        Balance::UrlParam(name) => {
            let found = key::url_param(req?.target(), name).map(hash);
            found.or_else(|| stream.is_posted().then(|| posted(stream, name, hash))?)
        }
        Balance::Header { name, domain_only } => {
            let value = key::header(req?.first(&**name)?)?;
            Some(hash(if *domain_only { key::main_domain(value) } else { value }))
        }
        Balance::RdpCookie(name) => {
            stream.client.buf.as_ref().and_then(|b| crate::persist::rdp_cookie(b.filled(), name)).map(hash)
        }
        Balance::Hash(expr) => stream.evaluate(Side::Request, |env| {
            let key = expr.eval(env).ok()?;
            // A key that is its own hash is read as a number.
            let number = proxy.hash.function == hash::Function::None;
            Some(hash(if number { key.text(env.arena) } else { key.binary(env.arena) }))
        }),
        _ => None,
    }
}

/// The hash of a parameter in the body of a POST, as much as has come of it.
fn posted(stream: &Stream<'_>, name: &[u8], hash: impl Fn(&[u8]) -> u32) -> Option<u32> {
    let bytes = stream.client.buf.as_ref().map(rt::Buf::filled).unwrap_or_default();
    if !matches!(stream.http.request_body, Body::Chunked) {
        return key::posted_param(bytes, name).map(hash);
    }
    stream.worker.with_scratch(|form| {
        // A fault in the framing is found when the body is passed on.
        let _ = Scanner::new(true).data(bytes, |piece| form.extend_from_slice(piece));
        key::posted_param(form, name).map(hash)
    })
}

/// A place at the server that the client met last, where the algorithm leaves the choice and the request is
/// to meet it again (`option prefer-last-server`, NTLM).
async fn last(stream: &mut Stream<'_>, index: u32, proxy: &Proxy) -> Result<Option<Place>, NoServer> {
    let free = !proxy.balance.is_hash();
    let usable = |server| proxy.server(server).state.is_usable();
    let met = stream
        .client
        .session
        .own
        .borrow_mut()
        .as_mut()
        .filter(|_| free)
        .and_then(|own| own.last(index, proxy.options.prefer_last_server, usable));
    let Some((server, challenged)) = met else { return Ok(None) };
    let worker = stream.worker.clone();
    if let Some(place) = queue::try_enter(&worker.farm, index, server) {
        return Ok(Some(place));
    }
    let limit = proxy.max_keep_alive_queue;
    let queued =
        worker.shared.farm.backend(index).slots.get(server as usize).map_or(0, |slot| slot.queue.len());
    let patient = challenged || usize::try_from(limit).map_or(true, |limit| queued < limit);
    if !patient {
        return Ok(None);
    }
    // Boxed, for it is rare and every choice would carry it.
    match rt::boxed(wait(stream, index, Some(server))).await {
        Err(Refused::Redistributed | Refused::Full) => Ok(None),
        other => other.map(Some).map_err(NoServer::Refused),
    }
}

/// Finds a server with a place for the request, waiting for one if need be.
///
/// # Errors
/// Why there is none.
pub async fn server(stream: &mut Stream<'_>, wish: &mut Wish) -> Result<Place, NoServer> {
    let worker = stream.worker.clone();
    let index = stream.txn.backend.ok_or(NoServer::None)?;
    let proxy = &*worker.shared.program.proxy(index);
    let backend = &*worker.shared.farm.backend(index);
    if wish.fixed.is_none()
        && wish.avoid.is_none()
        && let Some(place) = last(stream, index, proxy).await?
    {
        return Ok(place);
    }
    let mut key = if wish.fixed.is_some() { None } else { key(stream, proxy) };
    loop {
        if let Some(server) = wish.fixed {
            if let Some(place) = queue::try_enter(&worker.farm, index, server) {
                return Ok(place);
            }
            match wait(stream, index, Some(server)).await {
                // Persistence ends with its server: whoever waited there goes wherever there is room.
                Err(Refused::Redistributed) => {
                    (wish.fixed, key) = (None, self::key(stream, proxy));
                    count_redispatch(stream, proxy, server);
                }
                // Its queue is full, too: the request goes elsewhere if it may.
                Err(Refused::Full) if proxy.options.redispatch != 0 && backend.balancer.usable() > 1 => {
                    (wish.fixed, key) = (None, self::key(stream, proxy));
                    count_redispatch(stream, proxy, server);
                }
                other => return other.map_err(NoServer::Refused),
            }
        }
        let keeping = keeping(proxy, key);
        // In a map a key keeps its server though that one failed.
        let mapped = keeping != Keeping::Free && proxy.hash.method == Method::MapBased;
        let avoid = if mapped { None } else { wish.avoid };
        match pick(&worker, index, keeping, key, avoid) {
            Some(server) => {
                if let Some(place) = queue::try_enter(&worker.farm, index, server) {
                    if wish.avoid != Some(server) {
                        count_chosen(&worker, proxy, server);
                    }
                    return Ok(place);
                }
                if keeping.waits() {
                    // The choice is made, however long the server lets it wait.
                    count_chosen(&worker, proxy, server);
                    match wait(stream, index, Some(server)).await {
                        Err(Refused::Redistributed) => continue,
                        other => return other.map_err(NoServer::Refused),
                    }
                }
            }
            None if backend.balancer.usable() == 0 => return Err(NoServer::None),
            // Nobody else has room: back to the server that failed.
            None if avoid.is_some()
                && backend.balancer.pick(key, |s| queue::is_full(&worker.farm, index, s)).is_some() =>
            {
                let any = backend.balancer.pick(key, |s| queue::is_full(&worker.farm, index, s));
                let place = any.and_then(|s| queue::try_enter(&worker.farm, index, u32::try_from(s).ok()?));
                if let Some(place) = place {
                    return Ok(place);
                }
            }
            None => {
                let last = keeping.last_resort(&backend.balancer, key);
                match wait(stream, index, last).await {
                    Err(Refused::Redistributed) => {}
                    other => return other.map_err(NoServer::Refused),
                }
            }
        }
    }
}

/// The algorithm chose a server (`lbtot`).
fn count_chosen(worker: &Worker, proxy: &Proxy, server: u32) {
    proxy.server(server).state.counters.of(worker.index).chosen.inc();
    proxy.state.back.counters.of(worker.index).chosen.inc();
}

/// How far a request is bound to the server that its key leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeping {
    /// Not at all: it takes any server that has a place.
    Free,
    /// It waits there if the server is full (`hash-preserve-affinity`, which only a ring knows).
    Bound(Affinity),
}

fn keeping(proxy: &Proxy, key: Option<u32>) -> Keeping {
    if !proxy.balance.is_hash() || key.is_none() {
        return Keeping::Free;
    }
    let ring = proxy.hash.method == Method::Consistent;
    Keeping::Bound(if ring { proxy.preserve_affinity } else { Affinity::Always })
}

impl Keeping {
    /// Whether a request that finds no place at the server that was picked waits there, instead of looking
    /// again.
    fn waits(self) -> bool {
        matches!(self, Keeping::Bound(Affinity::Always | Affinity::MaxQueue))
    }

    /// Where a request waits that was refused all along the ring.
    fn last_resort(self, balancer: &balance::Balancer, key: Option<u32>) -> Option<u32> {
        let server = match self {
            Keeping::Free | Keeping::Bound(Affinity::Always) => None,
            Keeping::Bound(Affinity::MaxConn) => balancer.last_resort(key?),
            Keeping::Bound(Affinity::MaxQueue) => balancer.pick(key, |_| false),
        };
        u32::try_from(server?).ok()
    }
}

/// The server that the algorithm names, leaving out the one that failed and those that are too full.
fn pick(
    worker: &Worker,
    backend: u32,
    keeping: Keeping,
    key: Option<u32>,
    avoid: Option<u32>,
) -> Option<u32> {
    let too_full = |s: usize| match keeping {
        Keeping::Free | Keeping::Bound(Affinity::MaxConn) => queue::is_full(&worker.farm, backend, s),
        Keeping::Bound(Affinity::Always) => false,
        Keeping::Bound(Affinity::MaxQueue) => queue::has_full_queue(&worker.farm, backend, s),
    };
    let skip = |s: usize| avoid.is_some_and(|a| a as usize == s) || too_full(s);
    let picked = worker.shared.farm.backend(backend).balancer.pick(key, skip)?;
    u32::try_from(picked).ok()
}

async fn wait(stream: &mut Stream<'_>, backend: u32, server: Option<u32>) -> Result<Place, Refused> {
    let worker = stream.worker.clone();
    let proxy = &*worker.shared.program.proxy(backend);
    // The log names the server whose queue it was, though the request never gets there.
    stream.set_server(server);
    let timeout = stream.txn.overrides.queue.or(proxy.timeouts.queue).or(proxy.timeouts.connect);
    let d = &stream.txn.decisions;
    let priority = Priority { class: d.priority_class.into(), offset: d.priority_offset };
    let abort = proxy.options.abortonclose;
    let tcp = proxy.mode == Mode::Tcp;
    let mut positions = stream.txn.queue_positions;
    let waiting = &*stream;
    let gone = |cx: &mut std::task::Context<'_>| {
        let (session, socket) = (&waiting.client.session, &waiting.client.socket);
        let broken = socket.poll_broken(cx).is_ready();
        session.kill.get().is_some()
            || silence::is_over(waiting)
            || (tcp && (broken || waiting.client.ended_silently(cx)))
            || (abort && (broken || socket.has_ended(cx)))
    };
    let wait = Wait { priority, timeout, server };
    let outcome = queue::wait(&worker.farm, backend, wait, &mut positions, gone).await;
    stream.txn.queue_positions = positions;
    if matches!(outcome, Err(Refused::TimedOut | Refused::Aborted)) {
        stream.txn.times.queued = Some(rt::now());
    }
    outcome
}

/// Counts a request that goes to another server than the one it was bound to or chosen for.
pub fn count_redispatch(stream: &mut Stream<'_>, proxy: &Proxy, left: u32) {
    let worker = stream.worker.index;
    stream.txn.redispatched = true;
    crate::persist::lost(stream);
    proxy.state.back.counters.of(worker).redispatches.inc();
    // It may have been deleted while the request waited for another one.
    if let Some(left) = proxy.servers.get(left as usize) {
        left.state.counters.of(worker).redispatches.inc();
    }
}

/// What is logged and answered when no server could be assigned: cause, phase and status.
pub fn explain(why: NoServer) -> (Cause, Phase, u16) {
    match why {
        NoServer::None | NoServer::Refused(Refused::Redistributed) => {
            (Cause::ServerAbort, Phase::Connect, 503)
        }
        NoServer::Refused(Refused::Full) => (Cause::ServerAbort, Phase::Queue, 503),
        NoServer::Refused(Refused::TimedOut) => (Cause::ServerTimeout, Phase::Queue, 503),
        NoServer::Refused(Refused::Aborted) => (Cause::ClientAbort, Phase::Queue, 400),
    }
}
