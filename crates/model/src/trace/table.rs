//! What can be traced: the sources, their events, verbosities and criteria to lock on. Names are those of
//! HAProxy; of its events those are here that happen in this program.

use super::{Kind, Source};

/// A name and what it stands for.
pub type Name = (&'static str, &'static str);

/// A sink that may be named, and what it is.
pub type SinkName<'s> = (&'s str, &'s str);

/// What a source is made of.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its events; the position of one is its bit.
    pub events: &'static [Name],
    /// How much is told besides, from the least on.
    pub verbosities: &'static [Name],
    /// What it can be locked on.
    pub locks: &'static [Kind],
    /// What [`Kind::Own`] is here.
    pub own: Name,
}

/// The names of the levels.
pub const LEVELS: &[Name] = &[
    ("error", "only errors"),
    ("user", "and what users of the service do"),
    ("proto", "and the elements of the protocol"),
    ("state", "and changes of state"),
    ("data", "and transfers of data"),
    ("developer", "and whatever else there is"),
];

const PLAIN: &[Name] = &[("quiet", "the message alone"), ("default", "and whom it is about")];

const RICH: &[Name] = &[
    ("quiet", "the message alone"),
    ("clean", "and in which direction"),
    ("minimal", "and whom it is about"),
    ("simple", "and the first line of a message"),
    ("advanced", "and the fields of its head"),
    ("complete", "and all that is known"),
];

const CONNECTION: &[Kind] = &[
    Kind::Backend,
    Kind::Connection,
    Kind::Frontend,
    Kind::Listener,
    Kind::Nothing,
    Kind::Server,
    Kind::Session,
    Kind::Thread,
];

const STREAMED: &[Kind] = &[
    Kind::Backend,
    Kind::Connection,
    Kind::Frontend,
    Kind::Listener,
    Kind::Nothing,
    Kind::Server,
    Kind::Session,
    Kind::Thread,
    Kind::Own,
];

const NONE: Name = ("", "");

/// Events of HTTP/1.
pub mod h1 {
    /// `h1c_new`.
    pub const NEW: u32 = 1;
    /// `h1c_end`.
    pub const END: u32 = 1 << 1;
    /// `rx_headers`.
    pub const RX_HEADERS: u32 = 1 << 2;
    /// `tx_eoi`.
    pub const TX_END: u32 = 1 << 3;
    /// `tx_headers`.
    pub const TX_HEADERS: u32 = 1 << 4;
    /// `h1s_new`.
    pub const STREAM_NEW: u32 = 1 << 5;
    /// `h1s_end`.
    pub const STREAM_END: u32 = 1 << 6;
    /// `h1s_err`.
    pub const STREAM_ERR: u32 = 1 << 7;
}

const H1_EVENTS: &[Name] = &[
    ("h1c_new", "a connection begins"),
    ("h1c_end", "a connection is over"),
    ("rx_headers", "a head has come"),
    ("tx_eoi", "an answer is out, or given up"),
    ("tx_headers", "a head goes out"),
    ("h1s_new", "a request begins"),
    ("h1s_end", "a request is over"),
    ("h1s_err", "a message was malformed"),
];

/// Events of HTTP/2.
pub mod h2 {
    /// `h2c_new`.
    pub const NEW: u32 = 1;
    /// `h2c_end`.
    pub const END: u32 = 1 << 1;
    /// `h2c_err`.
    pub const ERR: u32 = 1 << 2;
    /// `rx_frame`.
    pub const RX_FRAME: u32 = 1 << 3;
    /// `rx_data`.
    pub const RX_DATA: u32 = 1 << 4;
    /// `rx_hdr`.
    pub const RX_HEADERS: u32 = 1 << 5;
    /// `rx_rst`.
    pub const RX_RESET: u32 = 1 << 6;
    /// `rx_goaway`.
    pub const RX_GOAWAY: u32 = 1 << 7;
    /// `tx_frame`.
    pub const TX_FRAME: u32 = 1 << 8;
    /// `tx_hdr`.
    pub const TX_HEADERS: u32 = 1 << 9;
    /// `tx_rst`.
    pub const TX_RESET: u32 = 1 << 10;
    /// `h2s_new`.
    pub const STREAM_NEW: u32 = 1 << 11;
    /// `h2s_end`.
    pub const STREAM_END: u32 = 1 << 12;
    /// `h2s_err`.
    pub const STREAM_ERR: u32 = 1 << 13;
    /// `proto_err`.
    pub const PROTOCOL: u32 = 1 << 14;
}

const H2_EVENTS: &[Name] = &[
    ("h2c_new", "a connection begins"),
    ("h2c_end", "a connection is over"),
    ("h2c_err", "a connection broke"),
    ("rx_frame", "a frame has come"),
    ("rx_data", "a piece of a body has come"),
    ("rx_hdr", "a head has come"),
    ("rx_rst", "a stream was reset by the peer"),
    ("rx_goaway", "the peer says farewell"),
    ("tx_frame", "a stream is reset"),
    ("tx_hdr", "a head goes out"),
    ("tx_rst", "a stream is reset"),
    ("h2s_new", "a stream begins"),
    ("h2s_end", "a stream is over"),
    ("h2s_err", "a message was malformed"),
    ("proto_err", "the peer breaks the protocol"),
];

/// Events of checks.
pub mod check {
    /// `hchck_start`.
    pub const START: u32 = 1;
    /// `hchck_end`.
    pub const END: u32 = 1 << 1;
    /// `hchck_succ`.
    pub const SUCCESS: u32 = 1 << 2;
    /// `hchck_err`.
    pub const FAILURE: u32 = 1 << 3;
}

const CHECK_EVENTS: &[Name] = &[
    ("hchck_start", "a check begins"),
    ("hchck_end", "a check is over"),
    ("hchck_succ", "a check succeeded"),
    ("hchck_err", "a check failed"),
];

/// Events of client sessions.
pub mod session {
    /// `sess_new`.
    pub const NEW: u32 = 1;
    /// `sess_end`.
    pub const END: u32 = 1 << 1;
    /// `sess_err`.
    pub const ERR: u32 = 1 << 2;
}

const SESSION_EVENTS: &[Name] = &[
    ("sess_new", "a client has connected"),
    ("sess_end", "a client's connection is over"),
    ("sess_err", "a client was not let in"),
];

/// Events of streams.
pub mod stream {
    /// `strm_new`.
    pub const NEW: u32 = 1;
    /// `strm_free`.
    pub const FREE: u32 = 1 << 1;
    /// `strm_err`.
    pub const ERR: u32 = 1 << 2;
    /// `strm_ana`.
    pub const RULES: u32 = 1 << 3;
    /// `sc_state`.
    pub const SIDES: u32 = 1 << 4;
}

const STREAM_EVENTS: &[Name] = &[
    ("strm_new", "a stream begins"),
    ("strm_free", "a stream is over"),
    ("strm_err", "a stream did not end well"),
    ("strm_ana", "rules run"),
    ("sc_state", "a server was reached"),
];

/// Events of sessions between peers.
pub mod peers {
    /// `sess_new`.
    pub const NEW: u32 = 1;
    /// `sess_end`.
    pub const END: u32 = 1 << 1;
    /// `sess_err`.
    pub const ERR: u32 = 1 << 2;
    /// `rx_msg`.
    pub const RX: u32 = 1 << 3;
    /// `tx_msg`.
    pub const TX: u32 = 1 << 4;
    /// `proto_error`.
    pub const PROTOCOL: u32 = 1 << 5;
}

const PEERS_EVENTS: &[Name] = &[
    ("sess_new", "a session begins"),
    ("sess_end", "a session is over"),
    ("sess_err", "a session broke"),
    ("rx_msg", "messages have come"),
    ("tx_msg", "messages go out"),
    ("proto_error", "the peer breaks the protocol"),
];

/// Events of TLS.
pub mod ssl {
    /// `sslc_new`.
    pub const NEW: u32 = 1;
    /// `sslc_hndshk`.
    pub const HANDSHAKE: u32 = 1 << 1;
    /// `sslc_err`.
    pub const ERR: u32 = 1 << 2;
}

const SSL_EVENTS: &[Name] = &[
    ("sslc_new", "a handshake begins"),
    ("sslc_hndshk", "a handshake is done"),
    ("sslc_err", "a handshake failed"),
];

/// Events of services inside the process.
pub mod applet {
    /// `app_new`.
    pub const NEW: u32 = 1;
    /// `app_free`.
    pub const FREE: u32 = 1 << 1;
    /// `app_receive`.
    pub const RECEIVE: u32 = 1 << 2;
    /// `app_send`.
    pub const SEND: u32 = 1 << 3;
}

const APPLET_EVENTS: &[Name] = &[
    ("app_new", "a service begins"),
    ("app_free", "a service is over"),
    ("app_receive", "a service was asked"),
    ("app_send", "a service answers"),
];

/// Events of connections whose bytes pass untouched.
pub mod pt {
    /// `pt_conn_new`.
    pub const NEW: u32 = 1;
    /// `pt_conn_end`.
    pub const END: u32 = 1 << 1;
}

const PT_EVENTS: &[Name] = &[("pt_conn_new", "a connection begins"), ("pt_conn_end", "a connection is over")];

/// How many sources there are.
pub const COUNT: usize = 9;

/// HTTP/2.
pub static H2: Source = Source::new(Table {
    name: "h2",
    about: "connections of HTTP/2",
    events: H2_EVENTS,
    verbosities: RICH,
    locks: STREAMED,
    own: ("h2s", "the request that began the trace"),
});

/// TLS.
pub static SSL: Source = Source::new(Table {
    name: "ssl",
    about: "handshakes of TLS",
    events: SSL_EVENTS,
    verbosities: RICH,
    locks: CONNECTION,
    own: NONE,
});

/// HTTP/1.
pub static H1: Source = Source::new(Table {
    name: "h1",
    about: "connections of HTTP/1",
    events: H1_EVENTS,
    verbosities: RICH,
    locks: STREAMED,
    own: ("h1s", "the request that began the trace"),
});

/// Streams.
pub static STREAM: Source = Source::new(Table {
    name: "stream",
    about: "requests and connections of TCP on their way",
    events: STREAM_EVENTS,
    verbosities: RICH,
    locks: &[
        Kind::Backend,
        Kind::Frontend,
        Kind::Listener,
        Kind::Nothing,
        Kind::Server,
        Kind::Session,
        Kind::Own,
        Kind::Thread,
    ],
    own: ("stream", "the stream that began the trace"),
});

/// Peers.
pub static PEERS: Source = Source::new(Table {
    name: "peers",
    about: "sessions with other processes",
    events: PEERS_EVENTS,
    verbosities: RICH,
    locks: &[Kind::Nothing, Kind::Thread, Kind::Own],
    own: ("peer", "the peer that began the trace"),
});

/// Checks.
pub static CHECK: Source = Source::new(Table {
    name: "check",
    about: "checks of servers",
    events: CHECK_EVENTS,
    verbosities: RICH,
    locks: &[Kind::Own, Kind::Nothing, Kind::Thread],
    own: ("check", "the check that began the trace"),
});

/// Services.
pub static APPLET: Source = Source::new(Table {
    name: "applet",
    about: "services inside the process",
    events: APPLET_EVENTS,
    verbosities: RICH,
    locks: &[Kind::Nothing, Kind::Own, Kind::Thread],
    own: ("applet", "the service that began the trace"),
});

/// Bytes that pass untouched.
pub static PT: Source = Source::new(Table {
    name: "pt",
    about: "connections whose bytes pass untouched",
    events: PT_EVENTS,
    verbosities: RICH,
    locks: CONNECTION,
    own: NONE,
});

/// Client sessions.
pub static SESSION: Source = Source::new(Table {
    name: "session",
    about: "clients and their connections",
    events: SESSION_EVENTS,
    verbosities: PLAIN,
    locks: &[Kind::Frontend, Kind::Listener, Kind::Nothing, Kind::Session, Kind::Thread],
    own: NONE,
});

static SOURCES: [&Source; COUNT] = [&H2, &SSL, &H1, &STREAM, &PEERS, &CHECK, &APPLET, &PT, &SESSION];

/// All sources, in the order of the lists.
pub fn sources() -> &'static [&'static Source; COUNT] {
    &SOURCES
}
