//! `timeout ...` of a proxy. `None` is no limit.

use std::time::Duration;

/// Longest rest before the same server is tried again.
const TURN_AROUND: Duration = Duration::from_secs(1);

/// All timeouts of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// `timeout client`.
    pub client: Option<Duration>,
    /// `timeout client-fin`.
    pub client_fin: Option<Duration>,
    /// `timeout client-hs`.
    pub client_hs: Option<Duration>,
    /// `timeout server`.
    pub server: Option<Duration>,
    /// `timeout server-fin`.
    pub server_fin: Option<Duration>,
    /// `timeout connect`.
    pub connect: Option<Duration>,
    /// `timeout queue`; falls back to `connect`.
    pub queue: Option<Duration>,
    /// `timeout http-request`.
    pub http_request: Option<Duration>,
    /// `timeout http-keep-alive`; falls back to `http-request`, then `client`.
    pub http_keep_alive: Option<Duration>,
    /// `timeout tarpit`; falls back to `connect` where there is a backend, to no time at all elsewhere.
    pub tarpit: Option<Duration>,
    /// `timeout tunnel`.
    pub tunnel: Option<Duration>,
    /// `timeout check`.
    pub check: Option<Duration>,
    /// `tcp-request inspect-delay`.
    pub inspect_request: Option<Duration>,
    /// `tcp-response inspect-delay`.
    pub inspect_response: Option<Duration>,
}

impl Timeouts {
    /// How long to rest before the same server is tried again: a second, or `timeout connect` where that is
    /// shorter.
    pub fn turn_around(&self) -> Duration {
        self.connect.map_or(TURN_AROUND, |time| time.min(TURN_AROUND))
    }
}
