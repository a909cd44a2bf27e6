//! What a stream remembers of its client's persistence cookie.

use program::persist::{Cookie, CookieMode};

/// Whether log lines tell what became of a cookie: not where the servers alone set and read it.
pub fn is_told(cookie: &Cookie) -> bool {
    cookie.mode != CookieMode::Passive || cookie.indirect
}

/// What the client's cookie said, kept because the cookie itself may be cut out of the request.
#[derive(Debug, Default)]
pub struct Known {
    /// The server's name in it.
    pub named: Option<Box<[u8]>>,
    /// When it was first given.
    pub first: Option<u64>,
    /// When it was last renewed.
    pub last: Option<u64>,
    /// A rule or a stick table leads to the server, so the client is given no cookie for it.
    pub needless: bool,
}

impl Known {
    /// The client will find its server again without a cookie.
    pub fn is_needless(&mut self) {
        self.needless = true;
    }
}
