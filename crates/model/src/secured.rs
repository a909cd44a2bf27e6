//! What TLS found on a connection (fetches `ssl_fc_*`, `ssl_c_*`, `ssl_f_*`, `ssl_bc_*`, `ssl_s_*`).

use std::sync::Arc;

/// The facts of one side's TLS.
#[derive(Clone, Debug, Default)]
pub struct Secured {
    /// `TLSv1.3`.
    pub version: &'static str,
    /// OpenSSL's name of the cipher suite.
    pub cipher: &'static str,
    /// Bits of its key.
    pub bits: u16,
    /// Name of the group of the key exchange.
    pub group: Option<&'static str>,
    /// Protocol that ALPN chose.
    pub alpn: Option<Box<[u8]>>,
    /// Server name that the client sent, be it we.
    pub sni: Option<Box<str>>,
    /// A session was resumed.
    pub resumed: bool,
    /// OpenSSL's number of what is wrong with the peer's certificate, 0 if nothing.
    pub error: u8,
    /// The same of what is above it.
    pub authority_error: u8,
    /// How far above.
    pub authority_depth: u8,
    /// The last of such errors that verification found.
    pub verdict: u8,
    /// The peer's certificates, its own first, as DER.
    pub peer: Vec<Box<[u8]>>,
    /// Name of the last certificate of the chain that was put together from them and the trusted ones, as
    /// DER.
    pub root: Option<Box<[u8]>>,
    /// The certificate that we showed, as DER.
    pub own: Option<Arc<[u8]>>,
    /// The name that it was loaded by.
    pub own_name: Option<Box<str>>,
    /// OpenSSL's number of what made the handshake fail, 0 if nothing.
    pub fault: u32,
    /// The ClientHello behind its type and length, as much as was kept.
    pub hello: Option<Box<[u8]>>,
    /// Early data came, whatever became of the handshake since.
    pub early: bool,
    /// Random numbers and secrets, if the configuration asks for them.
    pub material: Option<Box<Material>>,
}

impl Secured {
    /// Of a connection on which TLS will be spoken, or never was: what OpenSSL says while nothing is agreed
    /// on.
    pub fn awaited(version: &'static str) -> Secured {
        Secured { version, cipher: "(NONE)", ..Secured::default() }
    }
}

/// What names a handshake, and what can decrypt its connection.
#[derive(Clone, Default)]
pub struct Material {
    /// Random of the client.
    pub client_random: Box<[u8]>,
    /// Random of the server.
    pub server_random: Box<[u8]>,
    /// The session's id, as the server said it.
    pub session_id: Box<[u8]>,
    /// Secrets by the labels of key logs.
    pub secrets: Vec<(&'static str, Box<[u8]>)>,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Material")
    }
}
