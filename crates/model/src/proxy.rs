//! The live state of a proxy, in two halves: what it does as a frontend and as a backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

use base::rate::PeakRate;
use parking_lot::{Mutex, RwLock};

use crate::counter::Sharded;
pub use crate::figures::{
    BackCounters, ByteCounters, Ends, FrontCounters, H1Counters, H2Counters, ListenerCounters, TlsCounters,
};
use crate::server::{Averages, Server};

/// A listener's live state.
#[derive(Debug)]
pub struct Listener {
    /// Name (`name` on the `bind` line), or empty.
    pub name: Box<str>,
    /// Id (`id`, or given by position).
    pub id: u32,
    /// Unique name: `guid-prefix` of the `bind` line and the position on it.
    pub guid: Option<Box<str>>,
    /// Connections now.
    pub current: AtomicU32,
    /// Greatest number of connections so far.
    pub current_max: AtomicU32,
    /// The descriptor of its socket, -1 while none is open.
    pub socket: AtomicI32,
    /// Its last connection took the frontend's last room, or found none: it waits until there is some.
    pub waits: AtomicBool,
    /// Figures.
    pub counters: Sharded<ListenerCounters>,
}

/// State of a frontend (`OPEN`, `FULL`, `STOP`, `PAUSED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrontState {
    /// Accepting.
    Open,
    /// Not accepting until it is enabled again.
    Paused,
    /// Ended for good: its sockets are closed.
    Stopped,
}

/// The frontend half.
#[derive(Debug)]
pub struct Front {
    state: AtomicU32,
    /// Shares of workers in its listeners that have given up their port for now.
    pub away: AtomicU32,
    /// Shares of workers in its listeners that hold their port, or did a moment ago.
    pub holding: AtomicU32,
    /// Connections now (`scur`).
    pub current: AtomicU32,
    /// Greatest number so far (`smax`).
    pub current_max: AtomicU32,
    /// Limit (`slim`).
    pub maxconn: AtomicU32,
    /// Sessions that were admitted and are not counted in `session_rate` yet.
    pub pending: AtomicU32,
    /// Sessions in the last second, and the most there ever were.
    pub session_rate: PeakRate,
    /// Connections in the last second, and the most there ever were.
    pub conn_rate: PeakRate,
    /// Requests in the last second, and the most there ever were.
    pub request_rate: PeakRate,
    /// Lines logged so far (`%lc`).
    pub log_count: AtomicU64,
    /// Figures.
    pub counters: Sharded<FrontCounters>,
    /// The listeners in the order of their `bind` lines.
    pub listeners: RwLock<Vec<Arc<Listener>>>,
}

/// The backend half.
#[derive(Debug)]
pub struct Back {
    /// Requests being served (`scur`).
    pub current: AtomicU32,
    /// Greatest number so far (`smax`).
    pub current_max: AtomicU32,
    /// Requests waiting for any server (`qcur` without those of servers).
    pub queued: AtomicU32,
    /// Greatest number waiting (`qmax`).
    pub queued_max: AtomicU32,
    /// Sessions in the last second.
    pub session_rate: PeakRate,
    /// Seconds since the epoch of the last session, 0: never.
    pub last_session: AtomicU64,
    /// When it went up or down last, ms of the monotonic clock.
    pub last_change: AtomicU64,
    /// Time spent without a server, ms, until `last_change`.
    pub down_ms: AtomicU64,
    /// Transitions to down.
    pub went_down: AtomicU64,
    /// Whether a server was usable when last looked at.
    pub up: AtomicBool,
    /// `cookie ... dynamic`, `enable dynamic-cookie backend`.
    pub dynamic_cookies: AtomicBool,
    /// `dynamic-cookie-key`: the secret that goes into them; empty: none is computed.
    pub cookie_key: Mutex<Box<[u8]>>,
    /// `option allbackups`: with no other server usable all backups serve, not the first alone.
    pub all_backups: AtomicBool,
    /// `unpublish backend`: content switching passes it by.
    pub unpublished: AtomicBool,
    /// `del backend`: nothing finds it any more.
    pub removed: AtomicBool,
    /// Rules name it, so it can't be deleted.
    pub referenced: AtomicBool,
    /// Rules copy requests for it.
    pub is_mirror: AtomicBool,
    /// Copies of requests that are under way to it.
    pub mirrored: AtomicU32,
    /// Sliding averages of times.
    pub times: Averages,
    /// Figures.
    pub counters: Sharded<BackCounters>,
    /// The servers in the order of the configuration; grows and shrinks at run time.
    pub servers: RwLock<Vec<Arc<Server>>>,
}

/// What the configuration says of what may change while the process runs, see [`crate::server::Configured`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// Whether it is not `disabled`.
    pub enabled: bool,
    /// `maxconn` of a frontend.
    pub maxconn: u32,
    /// Whether `dynamic` cookies are made.
    pub dynamic_cookies: bool,
    /// `dynamic-cookie-key`.
    pub cookie_key: Box<[u8]>,
    /// `be-unpublished`.
    pub unpublished: bool,
}

/// A proxy's live state.
#[derive(Debug)]
pub struct Proxy {
    /// Name.
    pub name: Box<str>,
    /// Numeric id (`id`, or given by position).
    pub id: u32,
    /// Globally unique name, if one was given.
    pub guid: Option<Box<str>>,
    /// Not disabled at run time or by configuration.
    pub enabled: AtomicBool,
    /// What the configuration said last; `None`: it is in none yet.
    pub configured: Mutex<Option<Configured>>,
    /// What it does towards clients.
    pub front: Front,
    /// What it does towards servers.
    pub back: Back,
}

impl Front {
    fn new(workers: usize) -> Front {
        Front {
            state: AtomicU32::new(0),
            away: AtomicU32::new(0),
            holding: AtomicU32::new(0),
            current: AtomicU32::new(0),
            current_max: AtomicU32::new(0),
            maxconn: AtomicU32::new(0),
            pending: AtomicU32::new(0),
            session_rate: PeakRate::new(),
            conn_rate: PeakRate::new(),
            request_rate: PeakRate::new(),
            log_count: AtomicU64::new(0),
            counters: Sharded::new(workers),
            listeners: RwLock::default(),
        }
    }

    /// Whether it accepts.
    pub fn state(&self) -> FrontState {
        match self.state.load(Relaxed) {
            0 => FrontState::Open,
            1 => FrontState::Paused,
            _ => FrontState::Stopped,
        }
    }

    /// Its port could not be had again: pauses it, if it is open still; whether it was.
    pub fn pause_again(&self) -> bool {
        let (open, paused) = (FrontState::Open as u32, FrontState::Paused as u32);
        self.state.compare_exchange(open, paused, Relaxed, Relaxed).is_ok()
    }

    /// Changes the state.
    pub fn set_state(&self, s: FrontState) {
        self.state.store(s as u32, Relaxed);
    }
}

impl Back {
    fn new(workers: usize) -> Back {
        Back {
            current: AtomicU32::new(0),
            current_max: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            queued_max: AtomicU32::new(0),
            session_rate: PeakRate::new(),
            last_session: AtomicU64::new(0),
            last_change: AtomicU64::new(0),
            down_ms: AtomicU64::new(0),
            went_down: AtomicU64::new(0),
            up: AtomicBool::new(true),
            dynamic_cookies: AtomicBool::new(false),
            all_backups: AtomicBool::new(false),
            cookie_key: Mutex::default(),
            unpublished: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            referenced: AtomicBool::new(false),
            is_mirror: AtomicBool::new(false),
            mirrored: AtomicU32::new(0),
            times: Averages::default(),
            counters: Sharded::new(workers),
            servers: RwLock::default(),
        }
    }
}

impl Proxy {
    /// A new proxy without listeners or servers.
    pub fn new(name: &str, id: u32, guid: Option<&str>, workers: usize) -> Proxy {
        Proxy {
            name: name.into(),
            id,
            guid: guid.map(Into::into),
            enabled: AtomicBool::new(true),
            configured: Mutex::default(),
            front: Front::new(workers),
            back: Back::new(workers),
        }
    }
}

/// Counts one more in `current`, keeps the maximum, returns the new number.
#[inline]
pub fn enter(current: &AtomicU32, max: &AtomicU32) -> u32 {
    let n = current.fetch_add(1, Relaxed) + 1;
    if n > max.load(Relaxed) {
        max.fetch_max(n, Relaxed);
    }
    n
}

/// Counts one less.
#[inline]
pub fn leave(current: &AtomicU32) {
    current.fetch_sub(1, Relaxed);
}

/// The index of a status code in `responses`: 1xx to 5xx are 0 to 4, all others 5.
#[inline]
pub fn status_class(status: u16) -> usize {
    match status / 100 {
        c @ 1..=5 => usize::from(c) - 1,
        _ => 5,
    }
}
