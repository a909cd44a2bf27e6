//! `proto` and `check-proto`: which protocols fit what a proxy or a check speaks.

use program::Mode;
use program::proto::Proto;

/// A protocol that carries streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mux {
    /// TCP, without any.
    None,
    /// HTTP/1.
    H1,
    /// HTTP/2.
    H2,
    /// FastCGI.
    Fcgi,
    /// The protocol of SPOE agents.
    Spop,
    /// HTTP/3.
    Quic,
}

/// What a protocol can do at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It is spoken.
    Spoken,
    /// It makes no sense here.
    Unusable,
}

impl Mux {
    /// The protocol of a name.
    pub fn of(name: &str) -> Option<Mux> {
        Some(match name {
            "none" => Mux::None,
            "h1" => Mux::H1,
            "h2" => Mux::H2,
            "fcgi" => Mux::Fcgi,
            "spop" => Mux::Spop,
            "quic" => Mux::Quic,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mux::None => "none",
            Mux::H1 => "h1",
            Mux::H2 => "h2",
            Mux::Fcgi => "fcgi",
            Mux::Spop => "spop",
            Mux::Quic => "quic",
        }
    }

    /// What is spoken to servers without negotiation.
    pub fn unasked(self) -> Proto {
        match self {
            Mux::H2 => Proto::H2,
            Mux::Fcgi => Proto::Fcgi,
            _ => Proto::Usual,
        }
    }

    /// On a `bind` line without QUIC.
    pub fn towards_clients(self, mode: Mode) -> Fit {
        match (mode, self) {
            (Mode::Http, Mux::H1 | Mux::H2) | (Mode::Tcp, Mux::None) => Fit::Spoken,
            _ => Fit::Unusable,
        }
    }

    /// On a server without QUIC, or in an HTTP check when `mode` is HTTP.
    pub fn towards_servers(self, mode: Mode) -> Fit {
        match (mode, self) {
            (Mode::Http, Mux::H1 | Mux::H2 | Mux::Fcgi)
            | (Mode::Tcp, Mux::None)
            | (Mode::Spop, Mux::Spop) => Fit::Spoken,
            _ => Fit::Unusable,
        }
    }
}
