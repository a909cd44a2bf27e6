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

/// The events of a source, one a line: its bit as a constant of the module, its name, and what happens. The
/// first has the lowest bit.
macro_rules! events {
    ($(#[$doc:meta])* $module:ident $list:ident $($bit:ident $name:literal: $about:literal,)+) => {
        $(#[$doc])*
        pub mod $module {
            events!(@bit 0; $($bit $name,)+);
        }

        const $list: &[Name] = &[$(($name, $about)),+];
    };
    (@bit $at:expr; $bit:ident $name:literal, $($rest:tt)*) => {
        #[doc = concat!("`", $name, "`.")]
        pub const $bit: u32 = 1 << ($at);
        events!(@bit $at + 1; $($rest)*);
    };
    (@bit $at:expr;) => {};
}

events! {
    /// Events of HTTP/1.
    h1 H1_EVENTS
        NEW "h1c_new": "a connection begins",
        END "h1c_end": "a connection is over",
        RX_HEADERS "rx_headers": "a head has come",
        TX_END "tx_eoi": "an answer is out, or given up",
        TX_HEADERS "tx_headers": "a head goes out",
        STREAM_NEW "h1s_new": "a request begins",
        STREAM_END "h1s_end": "a request is over",
        STREAM_ERR "h1s_err": "a message was malformed",
}

events! {
    /// Events of HTTP/2.
    h2 H2_EVENTS
        NEW "h2c_new": "a connection begins",
        END "h2c_end": "a connection is over",
        ERR "h2c_err": "a connection broke",
        RX_FRAME "rx_frame": "a frame has come",
        RX_DATA "rx_data": "a piece of a body has come",
        RX_HEADERS "rx_hdr": "a head has come",
        RX_RESET "rx_rst": "a stream was reset by the peer",
        RX_GOAWAY "rx_goaway": "the peer says farewell",
        TX_FRAME "tx_frame": "a stream is reset",
        TX_HEADERS "tx_hdr": "a head goes out",
        TX_RESET "tx_rst": "a stream is reset",
        STREAM_NEW "h2s_new": "a stream begins",
        STREAM_END "h2s_end": "a stream is over",
        STREAM_ERR "h2s_err": "a message was malformed",
        PROTOCOL "proto_err": "the peer breaks the protocol",
}

events! {
    /// Events of FastCGI.
    fcgi FCGI_EVENTS
        NEW "fconn_new": "a connection begins",
        END "fconn_end": "a connection is over",
        ERR "fconn_err": "a connection broke",
        RX_RECORD "rx_record": "a record has come",
        RX_GETVAL "rx_get_values": "an application tells its limits",
        RX_STDOUT "rx_stdout": "a piece of a response has come",
        RX_STDERR "rx_stderr": "an application tells of errors",
        RX_ENDREQ "rx_end_req": "an application has ended a request",
        TX_ABORT "tx_abort": "a request is given up",
        STREAM_NEW "fstrm_new": "a request begins",
}

events! {
    /// Events of connections to agents.
    spop SPOP_EVENTS
        NEW "spop_conn_new": "a connection begins",
        END "spop_conn_end": "a connection is over",
        ERR "spop_conn_err": "a connection broke, or there is none",
        RX_FRAME "rx_frame": "a frame has come",
        RX_HELLO "rx_hello": "an agent greets",
        RX_ACK "rx_ack": "an agent answers",
        RX_DISCONNECT "rx_disconnect": "an agent says farewell",
        TX_FRAME "tx_frame": "a frame goes out",
        TX_HELLO "tx_hello": "an agent is greeted",
        TX_NOTIFY "tx_notify": "an agent is asked",
        TX_DISCONNECT "tx_disconnect": "an agent is told farewell",
        STREAM_NEW "spop_strm_new": "a question begins",
        STREAM_END "spop_strm_end": "a question is over",
        STREAM_ERR "spop_strm_err": "a question was lost",
}

events! {
    /// Events of checks.
    check CHECK_EVENTS
        START "hchck_start": "a check begins",
        END "hchck_end": "a check is over",
        SUCCESS "hchck_succ": "a check succeeded",
        FAILURE "hchck_err": "a check failed",
}

events! {
    /// Events of client sessions.
    session SESSION_EVENTS
        NEW "sess_new": "a client has connected",
        END "sess_end": "a client's connection is over",
        ERR "sess_err": "a client was not let in",
}

events! {
    /// Events of streams.
    stream STREAM_EVENTS
        NEW "strm_new": "a stream begins",
        FREE "strm_free": "a stream is over",
        ERR "strm_err": "a stream did not end well",
        RULES "strm_ana": "rules run",
        SIDES "sc_state": "a server was reached",
}

events! {
    /// Events of sessions between peers.
    peers PEERS_EVENTS
        NEW "sess_new": "a session begins",
        END "sess_end": "a session is over",
        ERR "sess_err": "a session broke",
        RX "rx_msg": "messages have come",
        TX "tx_msg": "messages go out",
        PROTOCOL "proto_error": "the peer breaks the protocol",
}

events! {
    /// Events of TLS.
    ssl SSL_EVENTS
        NEW "sslc_new": "a handshake begins",
        HANDSHAKE "sslc_hndshk": "a handshake is done",
        ERR "sslc_err": "a handshake failed",
}

events! {
    /// Events of services inside the process.
    applet APPLET_EVENTS
        NEW "app_new": "a service begins",
        FREE "app_free": "a service is over",
        RECEIVE "app_receive": "a service was asked",
        SEND "app_send": "a service answers",
}

events! {
    /// Events of connections whose bytes pass untouched.
    pt PT_EVENTS
        NEW "pt_conn_new": "a connection begins",
        END "pt_conn_end": "a connection is over",
}

/// How many sources there are.
pub const COUNT: usize = 11;

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

/// FastCGI.
pub static FCGI: Source = Source::new(Table {
    name: "fcgi",
    about: "connections of FastCGI",
    events: FCGI_EVENTS,
    verbosities: RICH,
    locks: STREAMED,
    own: ("fstrm", "the request that began the trace"),
});

/// Agents of SPOE.
pub static SPOP: Source = Source::new(Table {
    name: "spop",
    about: "connections to agents of SPOE",
    events: SPOP_EVENTS,
    verbosities: RICH,
    locks: STREAMED,
    own: ("spop_strm", "the question that began the trace"),
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

static SOURCES: [&Source; COUNT] =
    [&H2, &FCGI, &SPOP, &SSL, &H1, &STREAM, &PEERS, &CHECK, &APPLET, &PT, &SESSION];

/// All sources, in the order of the lists.
pub fn sources() -> &'static [&'static Source; COUNT] {
    &SOURCES
}
