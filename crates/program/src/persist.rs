//! Persistence: the `cookie` keyword.

use std::time::Duration;

/// What is done with the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieMode {
    /// `rewrite`: the server sets it, its value is replaced.
    Rewrite,
    /// `insert`.
    Insert,
    /// No mode was named: requests are sent where the cookie says, responses pass as they are.
    Passive,
    /// `prefix`: the server's cookie gets the server's name in front.
    Prefix,
}

/// `cookie` of a backend.
#[derive(Clone, Debug)]
pub struct Cookie {
    /// Name.
    pub name: Box<[u8]>,
    /// Mode.
    pub mode: CookieMode,
    /// `indirect`.
    pub indirect: bool,
    /// `nocache`.
    pub nocache: bool,
    /// `postonly`.
    pub postonly: bool,
    /// `preserve`.
    pub preserve: bool,
    /// `httponly`.
    pub httponly: bool,
    /// `secure`.
    pub secure: bool,
    /// `domain`, in order.
    pub domains: Vec<Box<str>>,
    /// `maxidle`.
    pub maxidle: Option<Duration>,
    /// `maxlife`.
    pub maxlife: Option<Duration>,
    /// `dynamic`: values are computed from the server's address with this key.
    pub dynamic_key: Option<Box<[u8]>>,
    /// `attr`, in order.
    pub attrs: Vec<Box<str>>,
}

impl Cookie {
    /// A cookie of this name without any option.
    pub fn named(name: &[u8], mode: CookieMode) -> Cookie {
        Cookie {
            name: name.into(),
            mode,
            indirect: false,
            nocache: false,
            postonly: false,
            preserve: false,
            httponly: false,
            secure: false,
            domains: Vec::new(),
            maxidle: None,
            maxlife: None,
            dynamic_key: None,
            attrs: Vec::new(),
        }
    }
}
