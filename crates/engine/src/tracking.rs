//! What the entries of stick tables count that connections and streams track.
//!
//! Connections and streams hold the entries that they track (`model::Conn::stick`, `model::Txn::stick`);
//! whoever asks for a figure sees the stream's first. Each event takes the lock of an entry's row once.

use std::sync::Arc;

use model::{Conn, Txn};
use program::global::Global;
use stick::{Data, Row, Table, Tracked};

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
pub fn request(conn: &Conn, txn: &Txn) {
    on_all(conn, txn, |row, _| add(row, Data::HttpReqCnt, Data::HttpReqRate, 1));
}

/// A stream of HTTP/2 began with what is no request: nothing was made of it that could track something
/// itself.
pub fn malformed(conn: &Conn) {
    on_connection(conn, |row, _| {
        add(row, Data::HttpReqCnt, Data::HttpReqRate, 1);
        add(row, Data::HttpErrCnt, Data::HttpErrRate, 1);
    });
}

/// Something came that was no request.
pub fn bad_request(conn: &Conn, txn: &Txn) {
    request(conn, txn);
    request_error(conn, txn);
}

/// The client's connection did odd things.
pub fn glitches(conn: &Conn, more: u32) {
    on_connection(conn, |row, _| add(row, Data::GlitchCnt, Data::GlitchRate, more.into()));
}

/// A request was refused.
pub fn request_error(conn: &Conn, txn: &Txn) {
    on_all(conn, txn, |row, _| add(row, Data::HttpErrCnt, Data::HttpErrRate, 1));
}

/// The server failed to answer.
pub fn response_failure(conn: &Conn, txn: &Txn) {
    on_all(conn, txn, |row, _| add(row, Data::HttpFailCnt, Data::HttpFailRate, 1));
}

/// The server answered: its status may count as the client's error, or as a failure.
pub fn response(global: &Global, conn: &Conn, txn: &Txn) {
    let counts = counts_as(global, txn.res.status());
    if counts.error {
        request_error(conn, txn);
    }
    if counts.failure {
        response_failure(conn, txn);
    }
}

/// What a response of this status counts as (`http-err-codes`, `http-fail-codes`).
pub fn counts_as(global: &Global, status: u16) -> model::txn::ResponseCounts {
    model::txn::ResponseCounts { error: global.err_codes.has(status), failure: global.fail_codes.has(status) }
}

/// The stream is over: its bytes are counted.
pub fn stream_over(conn: &Conn, txn: &Txn) {
    let (up, down) = (txn.up.received, txn.down.received);
    on_all(conn, txn, |row, table| {
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
    /// Its table.
    pub fn table(&self) -> &Arc<Table> {
        match self {
            Pending::Held(held) => held.table(),
            Pending::New(table, _) => table,
        }
    }
}
