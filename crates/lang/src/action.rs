//! Actions: what rules do.
//!
//! An action does no I/O. It edits the transaction, or says what is to happen ([`Flow`]); what takes
//! time is a [`Need`] that the engine fulfils before it runs the same action again.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bumpalo::Bump;
use model::{Conn, Txn};

use crate::env::{Env, Live, Side};
use crate::logfmt::LogFormat;

/// What an action may touch.
pub struct Exec<'x> {
    /// The client connection.
    pub conn: &'x Conn,
    /// The transaction.
    pub txn: &'x mut Txn,
    /// The outside.
    pub live: &'x dyn Live,
    /// Memory for what is computed.
    pub arena: &'x Bump,
    /// The direction whose rules run.
    pub side: Side,
    /// Waiting is over: no more data will come, or the inspection delay has passed. An action that
    /// could wait for more must decide now.
    pub last: bool,
    /// This is the run after the engine fulfilled a [`Need`] of this very action.
    pub resumed: Option<Fulfilled>,
}

impl Exec<'_> {
    /// What expressions of this action look at.
    pub fn env(&self) -> Env<'_> {
        Env {
            conn: self.conn,
            txn: self.txn,
            live: self.live,
            arena: self.arena,
            side: self.side,
            last: self.last,
        }
    }

    /// The head that the rule set edits.
    pub fn head(&mut self) -> &mut wire::head::Head {
        match self.side {
            Side::Request => &mut self.txn.req,
            Side::Response => &mut self.txn.res,
        }
    }
}

/// What comes of [`Need::Content`].
#[derive(Debug)]
pub struct Content {
    /// More was waited for, and no more will come.
    pub over: bool,
    /// What the action kept.
    pub kept: Box<dyn Any>,
}

/// How a need ended.
#[derive(Debug)]
pub enum Fulfilled {
    /// What an [`Extension`] brought.
    Brought(Box<dyn Any>),
    /// The address that a name has.
    Address(std::net::IpAddr),
    /// It is there.
    Done,
    /// The time allowed for it passed.
    TimedOut,
    /// It can't be had.
    Failed,
}

/// What happens after an action.
pub enum Flow {
    /// The next rule.
    Next,
    /// The rule set ends; traffic goes on (`accept`, `allow`).
    Accept,
    /// Refuse: status from `deny_status`, counted as denied.
    Deny(Reply),
    /// Answer locally (`return`, `redirect`, `auth`).
    Reply(Reply),
    /// Refuse by closing the connection (`reject`).
    Reject,
    /// Close the connection to the server, and with it what goes through it (`close`).
    CloseServer,
    /// Vanish without a packet (`silent-drop`).
    SilentDrop {
        /// `rst-ttl`: send a reset that dies on the way, with this TTL.
        rst_ttl: Option<u8>,
    },
    /// Hold the client for `timeout tarpit`, then answer.
    Tarpit(Reply),
    /// Hand over to a service (statistics, Lua), by name.
    Service(Arc<str>),
    /// Go on as HTTP (`switch-mode http`), in a session that is TCP so far.
    SwitchToHttp {
        /// `proto`: HTTP/2, or HTTP/1 and nothing else.
        h2: Option<bool>,
    },
    /// Something must happen first; then run this action again.
    Yield(Need),
    /// The request is malformed: 400.
    Invalid,
    /// An internal error: 500.
    Error,
}

/// What an action waits for.
#[derive(Debug)]
pub enum Need {
    /// More bytes of the direction at hand, until the inspection delay passes.
    Data,
    /// At least so many bytes of the body (or all of it), at most so long.
    Body {
        /// How long.
        time: Duration,
        /// Enough when so many bytes are there; `None`: all that fits.
        at_least: Option<u64>,
        /// A body that does not fit a buffer gets a large one (`use-large-buffer`).
        large: bool,
    },
    /// Let time pass (`pause`).
    Delay(Duration),
    /// Send this field in an informational response first (`early-hint`), together with those of the rules
    /// behind that go on with it.
    Interim(Arc<[u8]>),
    /// The end of the TLS handshake (`wait-for-handshake`).
    Handshake,
    /// A PROXY header before anything else (`expect-proxy layer4`).
    ProxyHeader,
    /// A NetScaler header before anything else (`expect-netscaler-cip layer4`).
    CipHeader,
    /// The address of a name (`do-resolve`).
    Address {
        /// Of which `resolvers` section.
        resolvers: u32,
        /// The name.
        name: Box<str>,
        /// Whether addresses of IPv4 come first.
        v4: bool,
    },
    /// The data of the direction at hand, of TCP, are to be others; or more of them. What the action keeps
    /// meanwhile comes back in a [`Content`], as what was [brought](Fulfilled::Brought).
    Content {
        /// What stands in the place of the data; `None`: they stay.
        data: Option<Vec<u8>>,
        /// More are waited for, until the inspection delay passes.
        more: bool,
        /// What the action keeps.
        kept: Box<dyn Any>,
    },
    /// Something that only the extension knows which the action comes from.
    Extension(Extension),
    /// The same, at most for so long; what it brings is nobody's concern.
    Within(Duration, Extension),
}

/// What an extension waits for. It belongs to the stream whose rules wait: when the client leaves it is
/// dropped, and the action finds that its need [failed](Fulfilled::Failed).
pub type Waiting = Pin<Box<dyn Future<Output = Box<dyn Any>>>>;

/// Begins what an extension waits for, on the worker of the stream, which the engine hands over; a crate
/// above the engine knows its type.
pub struct Extension(Box<dyn FnOnce(Rc<dyn Any>) -> Waiting>);

impl Extension {
    /// One that `begin` begins.
    pub fn new(begin: impl FnOnce(Rc<dyn Any>) -> Waiting + 'static) -> Extension {
        Extension(Box::new(begin))
    }

    /// Begins it.
    pub fn begin(self, worker: Rc<dyn Any>) -> Waiting {
        (self.0)(worker)
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extension")
    }
}

/// A local answer.
#[derive(Clone)]
pub struct Reply {
    /// Status; what an errorfile says takes precedence.
    pub status: u16,
    /// Fields to add, in order.
    pub headers: Arc<[(Box<[u8]>, LogFormat)]>,
    /// Extra fields computed by the action (`Location`, `WWW-Authenticate`, `Set-Cookie`).
    pub computed: Vec<(&'static str, Vec<u8>)>,
    /// `Content-Type` of the payload.
    pub content_type: Option<Arc<str>>,
    /// What follows the head.
    pub payload: Payload,
    /// Keep the client connection open if the request allows it.
    pub keep_alive: bool,
}

/// Body of a local answer.
#[derive(Clone)]
pub enum Payload {
    /// The proxy's error message for this status (`errorfile`, or the built-in one).
    ErrorFile,
    /// None.
    Empty,
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// Made when it is sent (`lf-string`, `lf-file`).
    Format(Arc<LogFormat>),
    /// A complete message, head included (`errorfile`, `errorfiles`).
    Message(Arc<[u8]>),
}

impl Reply {
    /// A bare answer with the proxy's error message.
    pub fn error(status: u16) -> Reply {
        Reply {
            status,
            headers: Arc::new([]),
            computed: Vec::new(),
            content_type: None,
            payload: Payload::ErrorFile,
            keep_alive: false,
        }
    }

    /// What the statistics ask a password for, unless they are told to call it otherwise.
    pub const STATISTICS: &'static str = "HAProxy Statistics";

    /// Asks for a name and a password, in the words of a server or of a proxy (RFC 9110 section 11.7).
    pub fn challenge(realm: &str, for_proxy: bool) -> Reply {
        let (status, name) = if for_proxy { (407, "proxy-authenticate") } else { (401, "www-authenticate") };
        Reply {
            computed: vec![(name, format!("Basic realm=\"{realm}\"").into_bytes())],
            keep_alive: true,
            ..Reply::error(status)
        }
    }
}

/// A compiled action.
pub trait Action: Send + Sync {
    /// Does it.
    fn run(&self, exec: &mut Exec<'_>) -> Flow;

    /// Whether it ends the rule set whenever it runs (`deny`, `return`): later rules without
    /// a condition are then never reached, which deserves a warning.
    fn is_final(&self) -> bool {
        false
    }

    /// Whether it adds a field to an informational response (`early-hint`).
    fn is_hint(&self) -> bool {
        false
    }
}
