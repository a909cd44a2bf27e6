//! An established connection: bytes in, records out, and back.
//!
//! It does no I/O of its own: a [`Wire`] receives and sends. What was read but not asked for, and what was
//! sealed but not taken by the wire, stays in a buffer of the pool; with neither, a connection at rest is its
//! two keys and little else.
//!
//! Sending follows one rule: bytes that were sealed but not sent are not reported as sent, and whoever sends
//! again must offer the same bytes again. So nobody has to wait for a wire after being told that everything
//! is sent.

use std::io;
use std::time::Duration;

use rt::Mono;
use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{ExtractedSecrets, ProtocolVersion};

use crate::early::Early;
use crate::faults;
use crate::figures::Open;
use crate::record::{self, Bad, Key, content};
use crate::room::{MAX_PLAIN, Room};

mod kernel;
#[cfg(test)]
mod kernel_tests;

pub use kernel::say_closed;

pub use crate::sizes::Sizes;
pub use crate::wire::{Ahead, Wire};

/// Records in a row that carry nothing.
const IDLE_RECORDS: u8 = 32;
/// Most bytes of a handshake message that comes after the handshake.
const LATE_MESSAGE: usize = 65536;

const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;
const NO_RENEGOTIATION: u8 = 100;

const HELLO_REQUEST: u8 = 0;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

/// What is kept of rustls' connection, for what may follow the handshake.
pub(crate) enum Kept {
    /// TLS 1.3, as server.
    Server(KernelConnection<ServerConnectionData>),
    /// TLS 1.3, as client.
    Client(KernelConnection<ClientConnectionData>),
    /// TLS 1.2: nothing may follow.
    Nothing,
}

/// Bytes after which records are as large as they may be: more than a peer has to wait for while it begins to
/// read.
const BURST: u32 = 32 * 1024;

/// An established connection.
pub struct Stream {
    kept: Kept,
    version: ProtocolVersion,
    tx: Key,
    rx: Key,
    input: Option<Room>,
    /// Opened and not yet taken, at the front of `input`: how much is consumed first, and how much follows
    /// it.
    plain: (u32, u32),
    /// What comes behind the plaintext in its record.
    tail: u32,
    /// Data that came with the last message of the handshake.
    early: Vec<u8>,
    output: Option<Room>,
    /// Of the bytes offered by the sender, those that are sealed in `output`.
    pub(crate) owed: u32,
    /// Part of a late handshake message.
    late: Vec<u8>,
    idle_records: u8,
    eof: bool,
    pub(crate) closed: bool,
    pub(crate) broken: bool,
    /// OpenSSL's number of what broke it, 0 if nothing.
    fault: u32,
    update_asked: bool,
    pub(crate) muted: bool,
    /// The server refused early data.
    pub(crate) refused: bool,
    /// The handshake failed after data had begun to flow.
    pub(crate) failed: bool,
    /// Where data flow before the end of the handshake.
    pub(crate) beginning: Early,
    /// What the kernel does of it.
    offload: Option<Box<kernel::Offload>>,
    /// Sizes of records.
    sizes: Sizes,
    /// Bytes sent since the last pause, and when it was that some were sent.
    burst: (u32, Mono),
    /// New keys of the peer in the second at hand.
    updates: (Mono, u32),
    /// It is counted while it lives.
    pub(crate) open: Option<Open>,
}

impl Stream {
    pub(crate) fn new(
        version: ProtocolVersion,
        secrets: &ExtractedSecrets,
        kept: Kept,
        input: Room,
        output: Room,
        early: Vec<u8>,
    ) -> Option<Stream> {
        let tx = Key::new(version, secrets.tx.0, &secrets.tx.1)?;
        let rx = Key::new(version, secrets.rx.0, &secrets.rx.1)?;
        Some(Stream {
            version,
            input: Some(input).filter(|r| !r.is_empty()),
            early,
            output: Some(output).filter(|r| !r.is_empty()),
            ..Stream::bare(tx, rx, kept)
        })
    }

    /// With keys and nothing else.
    pub(crate) fn bare(tx: Key, rx: Key, kept: Kept) -> Stream {
        Stream {
            kept,
            version: ProtocolVersion::TLSv1_3,
            tx,
            rx,
            input: None,
            plain: (0, 0),
            tail: 0,
            early: Vec::new(),
            output: None,
            owed: 0,
            late: Vec::new(),
            idle_records: 0,
            eof: false,
            closed: false,
            broken: false,
            fault: 0,
            update_asked: false,
            muted: false,
            refused: false,
            failed: false,
            beginning: Early::default(),
            offload: None,
            sizes: Sizes::default(),
            burst: (0, rt::now()),
            updates: (rt::now(), 0),
            open: None,
        }
    }

    /// Sets what records and keys are held to.
    pub fn set_sizes(&mut self, sizes: Sizes) {
        self.sizes = sizes;
    }

    /// What records and keys are held to.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Most plaintext in the next record.
    fn fragment(&mut self) -> usize {
        let most = if self.sizes.hard == 0 { MAX_PLAIN } else { self.sizes.hard.min(MAX_PLAIN) };
        if self.sizes.first == 0 {
            return most;
        }
        let now = rt::now();
        if now.since(self.burst.1) > self.sizes.idle {
            self.burst.0 = 0;
        }
        self.burst.1 = now;
        if self.burst.0 < BURST { most.min(self.sizes.first) } else { most }
    }

    /// Whether the peer may have another key now.
    fn may_update(&mut self) -> bool {
        let now = rt::now();
        if now.since(self.updates.0) >= Duration::from_secs(1) {
            self.updates = (now, 0);
        }
        self.updates.1 += 1;
        self.sizes.updates == 0 || self.updates.1 <= self.sizes.updates
    }

    /// The peer ended the stream.
    pub(crate) fn set_eof(&mut self) {
        self.eof = true;
    }

    /// Whether a read returns something without asking the wire.
    pub fn is_ready(&self) -> bool {
        self.eof
            || self.broken
            || self.plain.1 > 0
            || !self.early.is_empty()
            || self.beginning.handshake.as_ref().is_some_and(|h| h.has_data())
            || self.input.as_ref().is_some_and(|r| !matches!(record::whole(r.filled()), Ok(None)))
    }

    /// Whether sealed bytes wait for the wire.
    pub fn is_pending(&self) -> bool {
        self.output.is_some() || self.beginning.handshake.as_ref().is_some_and(|h| h.output.is_some())
    }

    /// Has the connection end without a word (`silent-drop`, or a message that broke off).
    pub fn mute(&mut self) {
        self.muted = true;
    }

    /// It counts no more among those that are open.
    pub fn leave(&mut self) {
        self.open = None;
    }

    /// Reads data; `None` when that has to be awaited, 0 at the end of the stream.
    pub fn try_recv(&mut self, wire: &impl Wire, out: &mut [u8]) -> Option<io::Result<usize>> {
        if self.is_early() {
            return self.early_recv(wire, out);
        }
        let mut done = 0;
        loop {
            done += self.take(&mut out[done..]);
            if done == out.len() && done > 0 {
                return Some(Ok(done));
            }
            if self.broken {
                return Some(if done > 0 { Ok(done) } else { Err(io::ErrorKind::InvalidData.into()) });
            }
            if self.eof {
                return Some(Ok(done));
            }
            match self.next(wire) {
                Ok(true) => continue,
                Ok(false) if done > 0 && !self.asks_on() => return Some(Ok(done)),
                Ok(false) => {}
                Err(bad) => {
                    self.fail(wire, bad);
                    continue;
                }
            }
            let there = self.offload.is_some() && self.receives_from_now(wire);
            let read = if there { self.recv_there(wire, &mut out[done..]) } else { self.fill(wire) };
            match read {
                Some(Ok(n)) if there => done += n,
                Some(Ok(n)) => self.eof |= n == 0,
                _ if done > 0 => return Some(Ok(done)),
                None => return None,
                Some(Err(e)) => return Some(Err(e)),
            }
        }
    }

    /// Reads ahead, up to the next data, so that what a peer says is heard though nobody takes its data yet:
    /// its end above all. `None`: nothing is known of so far.
    pub fn look(&mut self, wire: &impl Wire) -> Option<Ahead> {
        if self.is_early() {
            return None;
        }
        loop {
            if self.plain.1 > 0 || !self.early.is_empty() {
                return Some(Ahead::Data);
            }
            if self.broken {
                return Some(Ahead::Broken);
            }
            if self.eof {
                return Some(Ahead::End);
            }
            match self.next(wire) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(bad) => {
                    self.fail(wire, bad);
                    continue;
                }
            }
            if self.offload.is_some() && self.receives_from_now(wire) {
                return Some(Ahead::Hidden);
            }
            match self.fill(wire) {
                Some(Ok(n)) => self.eof |= n == 0,
                Some(Err(_)) => return Some(Ahead::Broken),
                None => return None,
            }
        }
    }

    /// Takes what is already open.
    fn take(&mut self, out: &mut [u8]) -> usize {
        if !self.early.is_empty() {
            let n = self.early.len().min(out.len());
            out[..n].copy_from_slice(&self.early[..n]);
            self.early.drain(..n);
            if self.early.is_empty() {
                self.early = Vec::new();
            }
            return n;
        }
        let (skip, len) = (self.plain.0 as usize, self.plain.1 as usize);
        let Some(room) = self.input.as_mut().filter(|_| len > 0) else { return 0 };
        let n = len.min(out.len());
        let Some(data) = room.filled().get(skip..skip + n) else { return 0 };
        out[..n].copy_from_slice(data);
        room.consume(skip + n);
        self.plain = (0, (len - n) as u32);
        if n == len {
            room.consume(self.tail as usize);
            self.tail = 0;
            if room.is_empty() {
                self.input = None;
            }
        }
        n
    }

    /// Opens the next record, if it is there; whether it was.
    fn next(&mut self, wire: &impl Wire) -> Result<bool, Bad> {
        let Some(room) = self.input.as_mut() else { return Ok(false) };
        let Some(len) = record::whole(room.filled())? else { return Ok(false) };
        let Some(bytes) = room.filled_mut().get_mut(..len) else { return Ok(false) };
        let (kind, range) = self.rx.open(bytes)?;
        if kind == content::DATA && !range.is_empty() {
            self.idle_records = 0;
            if !self.late.is_empty() {
                return Err(record::UNEXPECTED);
            }
            self.plain = (range.start as u32, range.len() as u32);
            self.tail = (len - range.end) as u32;
            return Ok(true);
        }
        let message = bytes.get(range).unwrap_or_default().to_vec();
        let outcome = self.control(wire, kind, &message);
        if let Some(room) = self.input.as_mut() {
            room.consume(len);
            if room.is_empty() {
                self.input = None;
            }
        }
        outcome.map(|()| true)
    }

    /// A record that brings no data.
    fn control(&mut self, wire: &impl Wire, kind: u8, message: &[u8]) -> Result<(), Bad> {
        self.idle_records += 1;
        if self.idle_records > IDLE_RECORDS {
            return Err(record::UNEXPECTED);
        }
        match kind {
            content::DATA => Ok(()),
            content::ALERT => {
                let alert = <[u8; 2]>::try_from(message);
                self.alert(alert.map_err(|_| record::DECODE)?)
            }
            content::HANDSHAKE => self.late_messages(wire, message),
            _ => Err(record::UNEXPECTED),
        }
    }

    fn alert(&mut self, [level, what]: [u8; 2]) -> Result<(), Bad> {
        match what {
            CLOSE_NOTIFY => self.eof = true,
            USER_CANCELED => {}
            _ if level == WARNING && self.version != ProtocolVersion::TLSv1_3 => {}
            _ => {
                self.fault = faults::of_alert(what);
                self.broken = true;
                self.closed = true;
            }
        }
        Ok(())
    }

    /// Handshake messages after the handshake (RFC 8446 section 4.6).
    fn late_messages(&mut self, wire: &impl Wire, bytes: &[u8]) -> Result<(), Bad> {
        self.late.extend_from_slice(bytes);
        while let [kind, a, b, c, rest @ ..] = &self.late[..] {
            let len = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if len > LATE_MESSAGE {
                return Err(record::DECODE);
            }
            let Some(body) = rest.get(..len) else { return Ok(()) };
            let (kind, body) = (*kind, body.to_vec());
            self.late.drain(..4 + len);
            self.late_message(wire, kind, &body)?;
        }
        if self.late.is_empty() {
            self.late = Vec::new();
        }
        Ok(())
    }

    fn late_message(&mut self, wire: &impl Wire, kind: u8, body: &[u8]) -> Result<(), Bad> {
        match (&mut self.kept, kind) {
            (Kept::Client(conn), NEW_SESSION_TICKET) => {
                // A ticket that can't be kept is no reason to end a connection.
                let _ = conn.handle_new_session_ticket(body);
                Ok(())
            }
            (Kept::Client(_) | Kept::Server(_), KEY_UPDATE) => {
                if !self.late.is_empty() || !self.may_update() {
                    return Err(record::UNEXPECTED);
                }
                self.update_asked |= match body {
                    [0] => false,
                    [1] => true,
                    _ => return Err(record::DECODE),
                };
                let fresh = match &mut self.kept {
                    Kept::Server(conn) => conn.update_rx_secret(),
                    Kept::Client(conn) => conn.update_rx_secret(),
                    Kept::Nothing => return Err(record::UNEXPECTED),
                };
                self.renew_rx(wire, fresh.map_err(|_| record::UNEXPECTED)?)
            }
            // A server that asks for a new handshake is told no; a client that begins one is not served any
            // more.
            (Kept::Nothing, HELLO_REQUEST) => {
                self.say(wire, content::ALERT, &[WARNING, NO_RENEGOTIATION]);
                Ok(())
            }
            _ => Err(record::UNEXPECTED),
        }
    }

    /// Reads from the wire; `None` when that has to be awaited.
    fn fill(&mut self, wire: &impl Wire) -> Option<io::Result<usize>> {
        let most = if self.offload.is_some() { self.until_border() } else { usize::MAX };
        let room = self.input.get_or_insert_default();
        if room.spare() < 4096 {
            room.compact();
        }
        let spare = room.spare_mut();
        let most = most.min(spare.len());
        let got = wire.recv(spare.get_mut(..most).unwrap_or_default());
        match got {
            Some(Ok(n)) => room.advance(n),
            _ if room.is_empty() => self.input = None,
            _ => {}
        }
        got
    }

    /// The peer broke the protocol: it is told, and that was all.
    fn fail(&mut self, wire: &impl Wire, bad: Bad) {
        self.broken = true;
        self.fault = faults::of_record(bad.0, self.meets_clear_records());
        self.input = None;
        if !self.closed {
            self.closed = true;
            self.say(wire, content::ALERT, &[FATAL, bad.0]);
        }
    }

    /// Whether what comes next says that it is a record in clear, where none may be.
    fn meets_clear_records(&self) -> bool {
        let next = self.input.as_ref().and_then(|room| room.filled().first());
        self.version == ProtocolVersion::TLSv1_3 && next.is_some_and(|kind| *kind != content::DATA)
    }

    /// OpenSSL's number of what broke the connection, 0 if nothing did.
    pub fn fault(&self) -> u32 {
        self.fault
    }

    /// Seals a short message behind what waits to be sent.
    fn queue(&mut self, kind: u8, message: &[u8]) {
        let room = self.output.get_or_insert_default();
        room.compact();
        let _ = self.tx.seal(kind, message, &[], room);
        if room.is_empty() {
            self.output = None;
        }
    }

    /// Sends what is sealed; `None` when that has to be awaited.
    pub fn flush(&mut self, wire: &impl Wire, more: bool) -> Option<io::Result<()>> {
        if self.is_early() {
            return self.early_flush(wire);
        }
        self.flush_output(wire, more)
    }

    pub(crate) fn flush_output(&mut self, wire: &impl Wire, more: bool) -> Option<io::Result<()>> {
        while let Some(room) = &mut self.output {
            match wire.send(room.filled(), more)? {
                Ok(n) => room.consume(n),
                Err(e) => return Some(Err(e)),
            }
            if room.is_empty() {
                self.output = None;
            }
        }
        Some(Ok(()))
    }

    /// Sends the bytes of `first`, then of `second`; returns how many are sent. `None` when that has to be
    /// awaited: the same bytes must then be offered again.
    pub fn try_send(
        &mut self,
        wire: &impl Wire,
        first: &[u8],
        second: &[u8],
        more: bool,
    ) -> Option<io::Result<usize>> {
        if self.is_early() {
            return self.early_send(wire, first, second);
        }
        let total = first.len() + second.len();
        loop {
            if let Err(e) = self.flush(wire, more)? {
                return Some(Err(e));
            }
            if self.owed > 0 {
                let n = (self.owed as usize).min(total);
                self.owed = 0;
                return Some(Ok(n));
            }
            if total == 0 {
                return Some(Ok(0));
            }
            if self.closed || self.is_worn() || !self.refresh(wire)? {
                return Some(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if self.offload.is_some() && self.sends_from_now(wire) {
                return self.send_there(wire, first, second);
            }
            self.owed = self.seal(first, second) as u32;
        }
    }

    /// Seals as much of the bytes as the buffer takes, in records as full as may be; returns how many.
    pub(crate) fn seal(&mut self, mut first: &[u8], mut second: &[u8]) -> usize {
        let extra = self.tx.extra();
        let mut done = 0;
        while !first.is_empty() || !second.is_empty() {
            let n = (first.len() + second.len()).min(self.fragment());
            let room = self.output.get_or_insert_default();
            if room.spare() < n + extra {
                break;
            }
            let (a, rest) = first.split_at(n.min(first.len()));
            let (b, other) = second.split_at(n - a.len());
            if !self.tx.seal(content::DATA, a, b, room) {
                break;
            }
            (first, second) = (rest, other);
            self.burst.0 = self.burst.0.saturating_add(n as u32);
            done += n;
        }
        done
    }

    /// Replaces the key when it is old or the peer asked for it (RFC 8446 section 4.6.3); `None` if that has
    /// to be awaited. Whether data may be sent.
    fn refresh(&mut self, wire: &impl Wire) -> Option<bool> {
        if !self.update_asked && !self.is_old() {
            return Some(true);
        }
        if self.sends_there() {
            return self.refresh_there(wire);
        }
        self.update_asked = false;
        self.queue(content::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0]);
        let fresh = match &mut self.kept {
            Kept::Server(conn) => conn.update_tx_secret(),
            Kept::Client(conn) => conn.update_tx_secret(),
            Kept::Nothing => return Some(false),
        };
        Some(fresh.is_ok_and(|secrets| self.renew_tx(secrets)))
    }

    /// Tells the peer that no more data comes. Whatever the wire does not take at once stays unsaid.
    pub fn close(&mut self, wire: &impl Wire) {
        if self.closed || self.muted || self.broken {
            return;
        }
        if self.is_early() {
            return self.early_close(wire);
        }
        self.closed = true;
        self.say(wire, content::ALERT, &[WARNING, CLOSE_NOTIFY]);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({:?}, eof: {}, closed: {})", self.version, self.eof, self.closed)
    }
}
