//! The handshake, on either side, until an established [`Stream`] comes out of it.
//!
//! rustls runs without buffers of its own: messages go from the connection's buffer into it and from it into
//! the connection's buffer. On the server's side the ClientHello is read first, for it chooses the
//! certificate and the rules.

use std::io;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::{AlertDescription, Error, PeerIncompatible, ProtocolVersion};
use rustls_pki_types::ServerName;

use crate::ahead::Ahead;
use crate::client::Connector;
use crate::figures::Open;
use crate::record;
use crate::room::{MAX_EXTRA, MAX_PLAIN, Room};
use crate::secrets::Gatherer;
use crate::server::{Acceptor, Entry};
use crate::stream::{Kept, Stream, Wire};
use crate::verify::{self, Findings};

mod drive;
mod facts;
mod greet;

pub(crate) use crate::turn::Turn;
use drive::{Flow, MOST, drive};
pub use facts::{Facts, Failure};
use facts::{TLS13, describe};

/// What a handshake waits for, or how it ended.
pub enum Step {
    /// Bytes from the peer.
    Read,
    /// Room on the wire.
    Write,
    /// Done; or so far that data may flow ([`Stream::is_early`]). To a server nothing is known yet in this
    /// case.
    Done(Box<Stream>, Box<Facts>),
    /// Failed; the peer was told.
    Failed(Failure),
}

enum Side {
    Waiting(Arc<Acceptor>),
    Server(Box<UnbufferedServerConnection>, Arc<Entry>),
    Client(Box<UnbufferedClientConnection>),
}

/// Where a handshake stopped.
pub(crate) enum Stop {
    /// Bytes from the peer are missing.
    Read,
    /// The wire takes no more.
    Write,
    /// Data may flow from now on, though it is not over.
    Early,
    /// Early data came.
    Data,
    /// It is over.
    Over,
    /// It failed.
    Failed(Failure),
}

/// A handshake on its way.
pub struct Handshake {
    side: Option<Side>,
    pub(crate) input: Option<Room>,
    pub(crate) output: Option<Room>,
    /// Data that came before the end of the handshake.
    pub(crate) early: Vec<u8>,
    /// Early data came, be it taken already.
    had_early: bool,
    /// The client announced early data, and no record of its own was taken yet.
    skips: bool,
    /// It stopped for early data, and what came behind them was not looked at.
    stopped: bool,
    /// Data that go out before the end of the handshake.
    pub(crate) ahead: Ahead,
    hello: Option<Box<[u8]>>,
    sni: Option<Box<str>>,
    findings: Findings,
    /// Name of the root that verification came to.
    root: Option<Box<[u8]>>,
    /// The certificates that verification refused.
    refused: Vec<Box<[u8]>>,
    /// What is in `output` has to go out now.
    due: bool,
    heard: bool,
    http: bool,
    /// What came is no TLS at all: nobody is there to understand an alert.
    alien: bool,
    eof: bool,
    pub(crate) failed: Option<Error>,
    open: Option<Open>,
    gatherer: Gatherer,
    staple: Option<bool>,
    /// The kernel may make the records afterwards.
    ktls: bool,
    /// What the version is called while none was agreed on: OpenSSL names the highest one.
    version: &'static str,
}

impl Handshake {
    fn new(side: Side) -> Handshake {
        Handshake { side: Some(side), open: Some(Open::new()), ..Handshake::empty() }
    }

    /// What stands in the place of one that was taken away.
    fn empty() -> Handshake {
        Handshake {
            side: None,
            input: None,
            output: None,
            early: Vec::new(),
            had_early: false,
            skips: false,
            stopped: false,
            ahead: Ahead::default(),
            hello: None,
            sni: None,
            findings: Findings::default(),
            root: None,
            refused: Vec::new(),
            due: false,
            heard: false,
            http: false,
            alien: false,
            eof: false,
            failed: None,
            open: None,
            gatherer: Gatherer::default(),
            staple: None,
            ktls: false,
            version: TLS13,
        }
    }

    /// As server. `begun` are bytes that were read already.
    pub fn accept(acceptor: Arc<Acceptor>, begun: &[u8]) -> Handshake {
        let mut this = Handshake::new(Side::Waiting(acceptor));
        if !begun.is_empty() {
            this.input.get_or_insert_default().push(begun);
            this.heard = true;
        }
        this
    }

    /// As client, of a server of this name (without one `verifyhost` is checked). `alpn` takes the place of
    /// the connector's.
    ///
    /// # Errors
    /// When rustls refuses the combination.
    pub fn connect(
        connector: &Connector,
        name: Option<&[u8]>,
        alpn: Option<Vec<Vec<u8>>>,
    ) -> Result<Handshake, Error> {
        Handshake::connect_with(connector, name, alpn, false)
    }

    /// As [`Handshake::connect`]; where there is a session that allows it what is sent first is early data.
    /// What the server does not take is sent to it `again` when the handshake is over, or lost
    /// ([`Stream::was_refused`]).
    ///
    /// # Errors
    /// As [`Handshake::connect`].
    pub fn connect_early(
        connector: &Connector,
        name: Option<&[u8]>,
        alpn: Option<Vec<Vec<u8>>>,
        again: bool,
    ) -> Result<Handshake, Error> {
        let mut handshake = Handshake::connect_with(connector, name, alpn, true)?;
        if again {
            handshake.ahead.keep();
        }
        Ok(handshake)
    }

    fn connect_with(
        connector: &Connector,
        name: Option<&[u8]>,
        alpn: Option<Vec<Vec<u8>>>,
        early: bool,
    ) -> Result<Handshake, Error> {
        let (config, name) = connector.pick(name, early);
        let alpn = alpn.unwrap_or_else(|| config.alpn_protocols.clone());
        let sni = match &name {
            ServerName::DnsName(name) if config.enable_sni => Some(name.as_ref().into()),
            _ => None,
        };
        let connection = UnbufferedClientConnection::new_with_alpn(config, name, alpn)?;
        let (ktls, version) = (connector.uses_kernel(), connector.highest());
        Ok(Handshake { sni, ktls, version, ..Handshake::new(Side::Client(Box::new(connection))) })
    }

    /// Whether the peer has said anything yet.
    pub fn has_heard(&self) -> bool {
        self.heard
    }

    /// Whether a client's hello was answered.
    pub fn has_answered(&self) -> bool {
        matches!(self.side, Some(Side::Server(..))) && self.output.is_none()
    }

    /// What is known of a handshake that failed.
    pub fn so_far(&mut self) -> Facts {
        let mut facts = Facts {
            findings: self.findings,
            root: self.root.take(),
            hello: self.hello.take(),
            sni: self.sni.take(),
            material: self.gatherer.finish(),
            ..Facts::default()
        };
        match &self.side {
            Some(Side::Server(conn, entry)) => {
                describe(&mut facts, conn);
                facts.own = Some(entry.clone());
            }
            Some(Side::Client(conn)) => describe(&mut facts, conn),
            _ => {}
        }
        if self.is_early() {
            facts.version = self.version;
        }
        if facts.peer.is_empty() {
            facts.peer = std::mem::take(&mut self.refused);
        }
        facts
    }

    /// Whether no version was agreed on yet.
    fn is_early(&self) -> bool {
        match &self.side {
            Some(Side::Server(c, _)) => c.protocol_version().is_none(),
            Some(Side::Client(c)) => c.protocol_version().is_none(),
            _ => true,
        }
    }

    /// Goes as far as the wire allows.
    pub fn step(&mut self, wire: &impl Wire) -> Step {
        match self.run(wire, true) {
            Stop::Read | Stop::Data => Step::Read,
            Stop::Write => Step::Write,
            Stop::Early => self.hand_out(wire),
            Stop::Over => self.finish(wire),
            Stop::Failed(why) => Step::Failed(why),
        }
    }

    /// As [`Handshake::step`]. After data began to flow it stops for early data, if that is wanted.
    pub(crate) fn run(&mut self, wire: &impl Wire, for_data: bool) -> Stop {
        self.stopped = false;
        loop {
            if for_data && self.ahead.begun && !self.early.is_empty() && self.is_on_its_way() {
                self.stopped = true;
                return Stop::Data;
            }
            // Messages go out together; only what may not fit any more goes before the rest.
            if self.due || self.failed.is_some() || self.output.as_ref().is_some_and(|r| r.spare() < MESSAGE)
            {
                match self.flush(wire) {
                    None => return Stop::Write,
                    Some(Err(e)) => return Stop::Failed(Failure::Aborted(Some(e))),
                    Some(Ok(())) => self.due = false,
                }
            }
            if let Some(e) = self.failed.take() {
                return Stop::Failed(self.explain(e));
            }
            match self.advance() {
                Turn::Again => {}
                // What a server sends when it has the first request already can go with the answer.
                Turn::Flush => self.due = self.early.is_empty(),
                Turn::Closed => self.eof = true,
                Turn::Ahead if !self.ahead.begun => return Stop::Early,
                Turn::Read if self.may_begin() => return Stop::Early,
                Turn::Done => return Stop::Over,
                Turn::Read | Turn::Ahead if self.output.is_some() => self.due = true,
                Turn::Refused(alert) => {
                    self.output.get_or_insert_default().push(&[21, 3, 3, 0, 2, 2, alert]);
                    let _ = self.flush(wire);
                    return Stop::Failed(match alert {
                        INAPPROPRIATE_FALLBACK => Failure::Fallback,
                        UNEXPECTED_MESSAGE => Failure::Protocol(Error::InappropriateMessage {
                            expect_types: Vec::new(),
                            got_type: rustls::ContentType::Alert,
                        }),
                        HANDSHAKE_FAILURE => {
                            Failure::Protocol(PeerIncompatible::NoSignatureSchemesInCommon.into())
                        }
                        _ => Failure::NoCertificate,
                    });
                }
                Turn::Read | Turn::Ahead if self.eof => {
                    return Stop::Failed(if self.heard { Failure::Aborted(None) } else { Failure::Empty });
                }
                Turn::Read | Turn::Ahead => {
                    if let Some(end) = self.read(wire) {
                        return end;
                    }
                }
            }
        }
    }

    /// Reads from the wire; what that ends the step with, if it does.
    fn read(&mut self, wire: &impl Wire) -> Option<Stop> {
        let room = self.input.get_or_insert_default();
        room.compact();
        let twice = room.capacity() * 2;
        if room.spare() == 0 && !room.grow(twice.min(MOST)) {
            self.failed = Some(Error::General("handshake message too long".into()));
            return None;
        }
        match wire.recv(room.spare_mut()) {
            None => {
                if room.is_empty() {
                    self.input = None;
                }
                return Some(Stop::Read);
            }
            Some(Ok(0)) => self.eof = true,
            Some(Ok(n)) => {
                room.advance(n);
                self.heard = true;
            }
            Some(Err(e)) => return Some(Stop::Failed(Failure::Aborted(Some(e)))),
        }
        None
    }

    /// Whether early data may be there for whoever reads next, without asking the wire.
    pub(crate) fn has_data(&self) -> bool {
        !self.early.is_empty() || self.stopped
    }

    /// Whether a server may go on with the early data that it has: HTTP needs to know the protocol first
    /// (manual, `allow-0rtt`), and without ALPN nobody knows it.
    fn may_begin(&self) -> bool {
        let Some(Side::Server(conn, _)) = &self.side else { return false };
        let fresh = !self.ahead.begun && !self.early.is_empty() && !self.eof;
        fresh && conn.is_handshaking() && conn.alpn_protocol().is_some()
    }

    pub(crate) fn flush(&mut self, wire: &impl Wire) -> Option<io::Result<()>> {
        if let Some(room) = &self.output {
            self.gatherer.records(room.filled());
        }
        while let Some(room) = &mut self.output {
            match wire.send(room.filled(), false)? {
                Ok(n) => room.consume(n),
                Err(e) => return Some(Err(e)),
            }
            if room.is_empty() {
                self.output = None;
            }
        }
        Some(Ok(()))
    }

    pub(crate) fn advance(&mut self) -> Turn {
        let (length, first) = self.waiting();
        let turn = self.turn();
        if self.skips {
            let (left, _) = self.waiting();
            self.skip(
                length.saturating_sub(left),
                first,
                matches!(turn, Turn::Flush | Turn::Read | Turn::Done),
            );
        }
        self.had_early |= !self.early.is_empty() && self.is_on_its_way();
        match turn {
            // A server may send before the client has finished.
            Turn::Done if self.is_on_its_way() => Turn::Read,
            turn => turn,
        }
    }

    /// Length and first byte of what was received and not taken.
    fn waiting(&self) -> (usize, Option<u8>) {
        let bytes = self.input.as_ref().map(Room::filled).unwrap_or_default();
        (bytes.len(), bytes.first().copied())
    }

    /// Drops refused early data. rustls passes over records that it can't open, but leaves them where they
    /// are, and each time that it comes by they count again as if there were more of them. Of what was there
    /// it has `taken` some bytes.
    fn skip(&mut self, taken: usize, first: Option<u8>, came_by: bool) {
        self.skips = match first {
            Some(record::content::DATA) => taken == 0,
            Some(record::content::CHANGE_CIPHER_SPEC) => taken <= CHANGE_CIPHER_SPEC,
            _ => true,
        };
        while let Some(room) = self.input.as_mut().filter(|_| self.skips && came_by) {
            match (room.filled().first(), record::whole(room.filled())) {
                (Some(&record::content::DATA), Ok(Some(length))) => room.consume(length),
                _ => break,
            }
        }
        self.input = self.input.take().filter(|room| !room.is_empty());
    }

    /// Whether the peer's last message is missing.
    fn is_on_its_way(&self) -> bool {
        match &self.side {
            Some(Side::Server(conn, _)) => conn.is_handshaking(),
            Some(Side::Client(conn)) => conn.is_handshaking(),
            _ => true,
        }
    }

    fn turn(&mut self) -> Turn {
        match &mut self.side {
            Some(Side::Waiting(acceptor)) => {
                let acceptor = acceptor.clone();
                self.greet(&acceptor)
            }
            Some(Side::Server(conn, _)) => {
                let flow = Flow::of(&mut self.input, &mut self.output, &mut self.early, &mut self.ahead);
                let turn = drive(flow, |bytes| conn.process_tls_records(bytes));
                self.judge(turn)
            }
            Some(Side::Client(conn)) => {
                if let Some(room) = &self.input {
                    self.gatherer.records(room.filled());
                }
                // rustls waits on for a server that has taken its leave in clear.
                let leaves =
                    matches!(&self.input, Some(room) if matches!(room.filled(), [21, 3, _, 0, 2, _, 0, ..]));
                let flow = Flow::of(&mut self.input, &mut self.output, &mut self.early, &mut self.ahead);
                let turn = match leaves {
                    true => Err(Error::AlertReceived(AlertDescription::CloseNotify)),
                    false => drive(flow, |bytes| conn.process_tls_records(bytes)),
                };
                self.judge(turn)
            }
            None => Turn::Read,
        }
    }

    /// Notes what verification found, and why rustls gave up; its alert goes out before anybody hears of it.
    fn judge(&mut self, turn: Result<Turn, Error>) -> Turn {
        self.gatherer.take();
        let found = verify::take_findings();
        if found != Findings::default() {
            self.findings = found;
        }
        self.root = verify::take_root().or(self.root.take());
        match turn {
            Ok(turn) => turn,
            Err(e) => {
                self.refused = verify::take_refused();
                // What rustls has to tell the peer. It must be asked no further: it would look at the same
                // bytes again.
                loop {
                    let flow = Flow::of(&mut self.input, &mut self.output, &mut self.early, &mut self.ahead);
                    let said = match &mut self.side {
                        _ if self.alien || e == Error::AlertReceived(AlertDescription::CloseNotify) => break,
                        Some(Side::Server(c, _)) if c.wants_write() => {
                            drive(flow, |b| c.process_tls_records(b))
                        }
                        Some(Side::Client(c)) if c.wants_write() => drive(flow, |b| c.process_tls_records(b)),
                        _ => break,
                    };
                    if said.is_err() {
                        break;
                    }
                }
                // OpenSSL's alert of TLS 1.2, which has no "certificate required", is "handshake failure".
                // A version that is not spoken, or what is no TLS at all, is "protocol version".
                let instead = match &e {
                    Error::NoCertificatesPresented => Some(HANDSHAKE_FAILURE),
                    e if matches!(crate::faults::openssl(e).0, UNSUPPORTED_PROTOCOL | WRONG_VERSION) => {
                        Some(PROTOCOL_VERSION)
                    }
                    _ => None,
                };
                if let (Some(instead), Some(output)) = (instead, &mut self.output)
                    && let [.., 21, 3, _, 0, 2, 2, alert] = output.filled_mut()
                {
                    *alert = instead;
                }
                self.failed = Some(e);
                Turn::Again
            }
        }
    }

    /// Data may flow: whoever carries them takes the handshake along.
    fn hand_out(&mut self, wire: &impl Wire) -> Step {
        self.ahead.begun = true;
        let mut facts = Facts::default();
        if let Some(Side::Server(conn, entry)) = &self.side {
            describe(&mut facts, conn);
            if let Some(trust) = entry.clients.as_ref() {
                facts.findings = trust.of_client(conn.peer_certificates().unwrap_or_default());
                facts.root = verify::take_root();
            }
            facts.own = Some(entry.clone());
            facts.early = true;
            // The client's last message waits for this.
            if let Some(Err(e)) = self.flush(wire) {
                return Step::Failed(Failure::Aborted(Some(e)));
            }
            (facts.hello, facts.sni) = (self.hello.take(), self.sni.take());
            (facts.staple, facts.material) = (self.staple, self.gatherer.finish());
        }
        let whole = std::mem::replace(self, Handshake::empty());
        Step::Done(Box::new(Stream::early(whole)), Box::new(facts))
    }

    /// Makes a stream of a handshake that is over.
    pub(crate) fn finish(&mut self, wire: &impl Wire) -> Step {
        let Some(side) = self.side.take() else { return Step::Failed(Failure::Aborted(None)) };
        let mut facts = Facts {
            findings: self.findings,
            root: self.root.take(),
            hello: self.hello.take(),
            sni: self.sni.take(),
            staple: self.staple,
            material: self.gatherer.finish(),
            early: self.had_early,
            ..Facts::default()
        };
        let made = match side {
            Side::Server(conn, entry) => {
                describe(&mut facts, &conn);
                // With the session the client's certificate came, without what was found of it.
                if let Some(trust) = entry.clients.as_ref().filter(|_| facts.resumed) {
                    facts.findings = trust.of_client(conn.peer_certificates().unwrap_or_default());
                    facts.root = verify::take_root();
                }
                facts.own = Some(entry);
                conn.dangerous_into_kernel_connection().map(|(s, k)| (s, Kept::Server(k)))
            }
            Side::Client(conn) => {
                describe(&mut facts, &conn);
                conn.dangerous_into_kernel_connection().map(|(s, k)| (s, Kept::Client(k)))
            }
            Side::Waiting(_) => return Step::Failed(Failure::Aborted(None)),
        };
        let (secrets, kept) = match made {
            Ok(made) => made,
            Err(e) => return Step::Failed(Failure::Protocol(e)),
        };
        let (version, kept) = match facts.version {
            TLS13 => (ProtocolVersion::TLSv1_3, kept),
            _ => (ProtocolVersion::TLSv1_2, Kept::Nothing),
        };
        let (input, output) = (self.input.take().unwrap_or_default(), self.output.take().unwrap_or_default());
        let early = std::mem::take(&mut self.early);
        let stream = Stream::new(version, &secrets, kept, input, output, early);
        let Some(mut stream) = stream else {
            return Step::Failed(Failure::Protocol(Error::General("unknown cipher".into())));
        };
        if self.eof {
            stream.set_eof();
        }
        stream.open = self.open.take();
        if self.ktls {
            stream.give_to_kernel(wire, secrets.tx.1, secrets.rx.1);
        }
        Step::Done(Box::new(stream), Box::new(facts))
    }
}

/// Longest ClientHello that is kept.
const CAPTURE: usize = 8192;
/// Room that any message of rustls finds enough.
const MESSAGE: usize = MAX_PLAIN + MAX_EXTRA;
const STATUS_REQUEST: u16 = 5;
const EARLY_DATA: u16 = 42;
/// Bytes of a record that says nothing any more (RFC 8446 section 5).
const CHANGE_CIPHER_SPEC: usize = 6;
const UNEXPECTED_MESSAGE: u8 = 10;
const HANDSHAKE_FAILURE: u8 = 40;
/// The alert about a version that is not spoken.
const PROTOCOL_VERSION: u8 = 70;
/// OpenSSL's number of that error.
const UNSUPPORTED_PROTOCOL: u32 = 0x0A00_0102;
/// And of records that are none.
const WRONG_VERSION: u32 = 0x0A00_010B;
const UNRECOGNIZED_NAME: u8 = 112;
const INAPPROPRIATE_FALLBACK: u8 = 86;
