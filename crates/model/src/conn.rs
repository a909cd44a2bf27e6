//! The facts of one client connection.
//!
//! It lives as long as the connection, is shared by its streams, and stays small: an idle keep-alive
//! connection owns this and little else.

use std::cell::{Cell, OnceCell, RefCell};

use base::time::{Mono, Wall};

use crate::peer::Peer;
use crate::secured::Secured;
use crate::vars::Vars;

/// What the PROXY protocol header said (fetches `fc_pp_*`).
#[derive(Clone, Debug, Default)]
pub struct ProxyHeader {
    /// TLV `PP2_TYPE_AUTHORITY`.
    pub authority: Option<Box<[u8]>>,
    /// TLV `PP2_TYPE_UNIQUE_ID`.
    pub unique_id: Option<Box<[u8]>>,
    /// All TLVs in order: type and value.
    pub tlvs: Vec<(u8, Box<[u8]>)>,
}

/// The error of a connection (`fc_err`, `bc_err`): the number and text of the manual's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ConnError(pub u8);

impl ConnError {
    /// None.
    pub const NONE: Self = Self(0);
    /// One that has no number of its own.
    pub const SOCKET: Self = Self(6);
    /// A source address that cannot be bound.
    pub const SOURCE: Self = Self(8);
    /// A SOCKS4 proxy that did not answer.
    pub const SOCKS_SILENT: Self = Self(40);
    /// A SOCKS4 proxy that said no.
    pub const SOCKS_DENIED: Self = Self(41);
    /// A peer that broke the rules of TLS, or said that we did.
    pub const FATAL: Self = Self(43);
    /// A peer that reset the connection.
    pub const RESET: Self = Self(48);

    /// The number of a system's error. HAProxy counts one more from 45 on than its manual's table does.
    pub fn of_system(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused => Self(47),
            Kind::ConnectionReset => Self::RESET,
            // That is what encrypted connections call it.
            Kind::InvalidData => Self::FATAL,
            Kind::NetworkUnreachable => Self(49),
            Kind::BrokenPipe => Self(57),
            _ => Self::SOCKET,
        }
    }

    /// Whether it is one of those that TLS has only before a connection is encrypted.
    pub fn is_of_handshake(self) -> bool {
        (24..=37).contains(&self.0)
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// What a multiplexed connection says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multiplex {
    /// Streams that are open (`fc_nb_streams`, `bc_nb_streams`).
    pub streams: u32,
    /// Streams that may be open (`fc_settings_streams_limit`, `bc_settings_streams_limit`).
    pub limit: u32,
}

/// How far a client connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnPhase {
    /// A header or a handshake is outstanding, or has failed.
    Opening,
    /// It is established, and rules say whether it may be served.
    Session,
    /// It is served.
    Served,
}

/// One client connection.
#[derive(Debug)]
pub struct Conn {
    /// Unique in the process.
    pub serial: u64,
    /// Frontend, as an index of the program that its next request is served by.
    pub frontend: Cell<u32>,
    /// Listener, as an index in the frontend.
    pub listener: Cell<u32>,
    /// The listener speaks TLS, whether the handshake is over or not.
    pub tls: Cell<bool>,
    /// Client address: as accepted, or from the PROXY header, or from `set-src`.
    pub src: Cell<Peer>,
    /// Destination address: as accepted, or from the PROXY header, or from `set-dst`.
    pub dst: Cell<Peer>,
    /// Client address before any rule changed it (`fc_src`).
    pub fc_src: Cell<Peer>,
    /// Destination before any rule changed it (`fc_dst`).
    pub fc_dst: Cell<Peer>,
    /// When it was accepted.
    pub accepted: Mono,
    /// When it was accepted, as a date.
    pub accept_date: Wall,
    /// How far it has come.
    pub phase: Cell<ConnPhase>,
    /// When handshakes (PROXY, TLS) were done.
    pub handshake_done: Cell<Option<Mono>>,
    /// What the PROXY header said, if there was one.
    pub proxy_header: RefCell<Option<Box<ProxyHeader>>>,
    /// HTTP version of the client side: 0 in TCP mode, 1, 2 or 3.
    pub http_major: Cell<u8>,
    /// What is known of it where it is multiplexed.
    pub multiplex: Cell<Multiplex>,
    /// When the last response ended: idle time of the next request starts.
    pub idle_since: Cell<Mono>,
    /// Requests so far on this connection.
    pub requests: Cell<u32>,
    /// How often the task of the stream at hand was called.
    pub calls: Cell<u32>,
    /// The time that those calls took, the one at hand left out, ns; measured with `profiling.tasks on`.
    pub cpu_ns: Cell<u64>,
    /// How long the task waited for those calls, ns; measured likewise.
    pub lat_ns: Cell<u64>,
    /// What the client did that is odd or wrong (`fc_glitches`).
    pub glitches: Cell<u32>,
    /// Variables of scope `sess`.
    pub vars: RefCell<Vars>,
    /// Error of the connection.
    pub error: Cell<ConnError>,
    /// OpenSSL's number of what ended an encrypted connection, 0 if nothing.
    pub fault: Cell<u32>,
    /// Early data came and the TLS handshake was not over when that was last looked at.
    pub early: Cell<bool>,
    /// What TLS found, where it was spoken.
    secured: OnceCell<Box<Secured>>,
    /// Entries of stick tables that the connection tracks.
    pub stick: RefCell<stick::Trackers>,
}

impl Conn {
    /// A connection just accepted.
    pub fn new(serial: u64, frontend: u32, listener: u32, accepted: Mono, date: Wall) -> Conn {
        Conn {
            serial,
            frontend: Cell::new(frontend),
            listener: Cell::new(listener),
            tls: Cell::new(false),
            src: Cell::default(),
            dst: Cell::default(),
            fc_src: Cell::default(),
            fc_dst: Cell::default(),
            accepted,
            accept_date: date,
            phase: Cell::new(ConnPhase::Served),
            handshake_done: Cell::new(Some(accepted)),
            fault: Cell::new(0),
            proxy_header: RefCell::new(None),
            http_major: Cell::new(0),
            multiplex: Cell::default(),
            idle_since: Cell::new(accepted),
            requests: Cell::new(0),
            calls: Cell::new(0),
            cpu_ns: Cell::new(0),
            lat_ns: Cell::new(0),
            glitches: Cell::new(0),
            vars: RefCell::default(),
            error: Cell::default(),
            early: Cell::new(false),
            secured: OnceCell::new(),
            stick: RefCell::default(),
        }
    }

    /// What is known of the client, for a connection that stands for it.
    pub fn copy(&self, serial: u64) -> Conn {
        let copy =
            Conn::new(serial, self.frontend.get(), self.listener.get(), self.accepted, self.accept_date);
        copy.tls.set(self.tls.get());
        copy.src.set(self.src.get());
        copy.dst.set(self.dst.get());
        copy.fc_src.set(self.fc_src.get());
        copy.fc_dst.set(self.fc_dst.get());
        copy.http_major.set(self.http_major.get());
        copy.handshake_done.set(self.handshake_done.get());
        copy.proxy_header.replace(self.proxy_header.borrow().clone());
        if let Some(secured) = self.secured() {
            copy.set_secured(secured.clone());
        }
        copy
    }

    /// Whether a header or a handshake is outstanding, or has failed.
    pub fn is_opening(&self) -> bool {
        self.phase.get() == ConnPhase::Opening
    }

    /// Whether the addresses came from a PROXY header (`fc_rcvd_proxy`).
    pub fn received_proxy(&self) -> bool {
        self.proxy_header.borrow().is_some()
    }

    /// What TLS found; `None` on a plain connection and before the handshake ended.
    pub fn secured(&self) -> Option<&Secured> {
        self.secured.get().map(|s| &**s)
    }

    /// Notes what TLS found, once.
    pub fn set_secured(&self, facts: Secured) {
        let _ = self.secured.set(Box::new(facts));
    }

    /// TLS broke after the handshake.
    pub fn break_off(&self, fault: u32) {
        self.fault.set(fault);
        self.error.set(ConnError::FATAL);
    }

    /// Sets source and destination as the network gave them.
    pub fn set_addresses(&self, src: Peer, dst: Peer) {
        self.src.set(src);
        self.fc_src.set(src);
        self.dst.set(dst);
        self.fc_dst.set(dst);
    }
}
