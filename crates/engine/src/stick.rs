//! Stick tables on the way of a request: what tracked entries count, and which server a client is stuck to.
//!
//! Connections and streams hold the entries that they track (`model::Conn::stick`, `model::Txn::stick`); whoever asks
//! for a figure sees the stream's first. Each event takes the lock of an entry's row once. `stick` rules look a key
//! up before a server is chosen and store it once the connection to the server stands.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use lang::env::Side;
use model::server::Target;
use model::{Conn, Txn};
use program::Proxy;
use program::stick_rules::StickRule;
use stick::{Data, Row, SrvKey, Table, Tracked};

use crate::Worker;
use crate::stream::Stream;

/// Most keys that one request, and one response, may store.
const MOST_STORES: usize = 8;

fn now() -> u64 {
    rt::now().as_millis()
}

/// Runs `count` on the row of each entry that the connection tracks.
fn on_connection(conn: &Conn, count: impl Fn(&mut Row<'_>, &Table)) {
    let held = conn.stick.borrow();
    if !held.is_empty() {
        held.iter().for_each(|(_, t)| count(&mut t.touched_row(now()), t.table()));
    }
}

/// Runs `count` on the row of each entry that the stream or its connection tracks.
fn on_all(conn: &Conn, txn: &Txn, count: impl Fn(&mut Row<'_>, &Table)) {
    let own = txn.stick.borrow();
    own.iter().for_each(|(_, t)| count(&mut t.touched_row(now()), t.table()));
    let session = conn.stick.borrow();
    let others = session.iter().filter(|(i, _)| own.get(*i).is_none());
    others.for_each(|(_, t)| count(&mut t.touched_row(now()), t.table()));
}

fn add(row: &mut Row<'_>, count: Data, rate: Data, n: u64) {
    row.add(count, 0, n);
    row.add(rate, 0, n);
}

/// The rules of the connection let it pass: a session begins.
pub fn session(conn: &Conn) {
    on_connection(conn, |row, _| add(row, Data::SessCnt, Data::SessRate, 1));
}

/// The client did something odd or wrong.
pub fn glitch(conn: &Conn) {
    on_connection(conn, |row, _| add(row, Data::GlitchCnt, Data::GlitchRate, 1));
}

/// The connection ends.
pub fn connection_over(conn: &Conn) {
    let mut held = conn.stick.borrow_mut();
    if !held.is_empty() {
        held.stop(now());
    }
}

/// A request came.
pub fn request(stream: &Stream<'_>) {
    let conn = stream.client.conn();
    on_all(conn, &stream.txn, |row, _| add(row, Data::HttpReqCnt, Data::HttpReqRate, 1));
}

/// A stream of HTTP/2 began with what is no request: nothing was made of it that could track something itself.
pub fn malformed(conn: &Conn) {
    on_connection(conn, |row, _| {
        add(row, Data::HttpReqCnt, Data::HttpReqRate, 1);
        add(row, Data::HttpErrCnt, Data::HttpErrRate, 1);
    });
}

/// Something came that was no request.
pub fn bad_request(stream: &Stream<'_>) {
    request(stream);
    request_error(stream);
}

/// The client's connection did odd things.
pub fn glitches(conn: &model::Conn, more: u32) {
    on_connection(conn, |row, _| add(row, Data::GlitchCnt, Data::GlitchRate, more.into()));
}

/// A request was refused.
pub fn request_error(stream: &Stream<'_>) {
    let conn = stream.client.conn();
    on_all(conn, &stream.txn, |row, _| add(row, Data::HttpErrCnt, Data::HttpErrRate, 1));
}

/// The server failed to answer.
pub fn response_failure(stream: &Stream<'_>) {
    let conn = stream.client.conn();
    on_all(conn, &stream.txn, |row, _| add(row, Data::HttpFailCnt, Data::HttpFailRate, 1));
}

/// The server answered: its status may count as the client's error, or as a failure.
pub fn response(stream: &Stream<'_>) {
    let counts = counts_as(&stream.worker, stream.txn.res.status());
    if counts.error {
        request_error(stream);
    }
    if counts.failure {
        response_failure(stream);
    }
}

/// What a response of this status counts as (`http-err-codes`, `http-fail-codes`).
pub fn counts_as(worker: &Worker, status: u16) -> model::txn::ResponseCounts {
    let global = &worker.shared.program.global;
    model::txn::ResponseCounts { error: global.err_codes.has(status), failure: global.fail_codes.has(status) }
}

/// The stream is over: its bytes are counted.
pub fn stream_over(stream: &Stream<'_>) {
    let txn = &stream.txn;
    let (up, down) = (txn.up.received, txn.down.received);
    on_all(stream.client.conn(), txn, |row, table| {
        let factor = u64::from(table.settings().brates_factor);
        row.add(Data::BytesInCnt, 0, up);
        row.add(Data::BytesInRate, 0, up.div_ceil(factor));
        row.add(Data::BytesOutCnt, 0, down);
        row.add(Data::BytesOutRate, 0, down.div_ceil(factor));
    });
}

/// Lets go of what the stream tracked.
pub fn release(txn: &mut Txn) {
    let held = txn.stick.get_mut();
    if !held.is_empty() {
        held.stop(now());
    }
}

/// A key that will be stored with the server that serves.
pub enum Pending {
    /// It has an entry.
    Held(Tracked),
    /// It has none yet.
    New(Arc<Table>, Box<[u8]>),
}

impl Pending {
    fn table(&self) -> &Arc<Table> {
        match self {
            Pending::Held(held) => held.table(),
            Pending::New(table, _) => table,
        }
    }
}

/// Applies the rules on requests: what is to be stored is noted; the server that a known key is stuck to, unless the
/// request has one already.
pub fn wanted(stream: &mut Stream<'_>, proxy: &Proxy, bound: Option<u32>) -> Option<u32> {
    let mut found = bound;
    stream.pending.clear();
    for rule in &proxy.stick.request {
        if rule.stores && noted(stream, rule) {
            continue;
        }
        let stores = rule.stores && stream.pending.len() < MOST_STORES;
        let matches = rule.matches && found.is_none();
        if !(stores || matches) || !stream.holds(rule.condition.as_ref()) {
            continue;
        }
        let key = key(stream, rule, Side::Request);
        let Some(pending) = key else { continue };
        if matches && let Pending::Held(held) = &pending {
            found = server_of(stream, proxy, held);
        }
        if stores {
            stream.pending.push(pending);
        }
    }
    found
}

/// Whether a key for the rule's table is noted already: no other is stored there. Rules that only match do not mind.
fn noted(stream: &Stream<'_>, rule: &StickRule) -> bool {
    stream.pending.iter().any(|p| Arc::ptr_eq(p.table(), &rule.table))
}

fn key(stream: &Stream<'_>, rule: &StickRule, side: Side) -> Option<Pending> {
    let table = &rule.table;
    stream.evaluate(side, |env| {
        let key = lang::stick::key::of(table.kind(), rule.expr.eval(env).ok()?, env.arena)?;
        Some(match table.find(key, now()) {
            Some(held) => Pending::Held(held),
            None => Pending::New(table.clone(), key.into()),
        })
    })
}

/// The server noted in an entry, if it may be used; finding it uses the entry.
fn server_of(stream: &Stream<'_>, proxy: &Proxy, held: &Tracked) -> Option<u32> {
    let row = held.touched_row(now());
    let by_addr = held.table().settings().srvkey == SrvKey::Addr;
    let named = row.server().and_then(|name| {
        let is_it = |s: &program::Server| match by_addr {
            true => address(s).is_some_and(|a| *a == **name),
            false => *s.name == **name,
        };
        proxy.position(|s| is_it(s) && !s.state.is_removed())
    });
    let id = row.get(Data::ServerId, 0).unwrap_or(0);
    let by_id = || proxy.position(|s| id != 0 && u64::from(s.state.id) == id && !s.state.is_removed());
    let at = named.or_else(by_id)?;
    let insists = stream.txn.decisions.force_persist || proxy.options.persist;
    let usable = proxy.servers.get(at as usize)?.state.is_up() || insists;
    Some(at).filter(|_| usable)
}

/// A server as its address names it (`srvkey addr`).
fn address(server: &program::Server) -> Option<String> {
    match &**server.state.target.load() {
        Target::Inet(a) => Some(a.to_string()),
        Target::Unix { path, .. } => Some(String::from_utf8_lossy(path).into_owned()),
        Target::None => None,
    }
}

/// Stores what the request's rules noted: the connection to the server stands.
pub fn store(stream: &mut Stream<'_>) {
    if !stream.pending.is_empty() {
        for pending in std::mem::take(&mut stream.pending) {
            note(stream, pending);
        }
    }
}

/// Applies the rules on responses.
pub fn store_response(stream: &mut Stream<'_>, proxy: &Proxy) {
    if proxy.stick.response.is_empty() {
        return;
    }
    for rule in &proxy.stick.response {
        let holds = |s: &Stream<'_>| {
            rule.condition
                .as_ref()
                .is_none_or(|c| s.evaluate(Side::Response, |env| c.holds(env)) == lang::cond::Outcome::Yes)
        };
        if stream.pending.len() < MOST_STORES
            && !noted(stream, rule)
            && holds(stream)
            && let Some(pending) = key(stream, rule, Side::Response)
        {
            stream.pending.push(pending);
        }
    }
    store(stream);
}

fn note(stream: &Stream<'_>, pending: Pending) {
    let Some(place) = &stream.place else { return };
    let server = place.config();
    if server.non_stick {
        return;
    }
    let held = match pending {
        Pending::Held(held) => held,
        Pending::New(table, key) => match table.enter(&key, now()) {
            Some(held) => held,
            None => return,
        },
    };
    let mut row = held.touched_row(now());
    row.set(Data::ServerId, 0, server.state.id.into());
    let by_addr = held.table().settings().srvkey == SrvKey::Addr;
    let name = if by_addr { address(&server) } else { None };
    let name = name.as_deref().unwrap_or(&server.name);
    if row.server().is_none_or(|known| **known != *name) {
        row.set_server(&name.into());
    }
}

/// Frees the memory of expired entries: each worker cares for some of the tables.
pub fn sweep(worker: &crate::Worker) {
    let program = &worker.shared.program;
    let workers = program.world.workers.max(1);
    let stopping = program.world.process.stopping.load(Relaxed);
    for table in program.tables.iter().skip(worker.index).step_by(workers).filter(|_| !stopping) {
        table.sweep(now(), SWEPT);
    }
}

/// Expired entries that a sweep takes from each shard at most.
const SWEPT: usize = 4096;
