//! What servers are spoken to in.

/// `proto` and `check-proto`: what is spoken to a server without negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    /// HTTP/1 or TCP; ALPN may agree on something else.
    #[default]
    Usual,
    /// `h2`: HTTP/2.
    H2,
    /// `fcgi`: FastCGI.
    Fcgi,
}
