//! What a handshake tells of the peer, or why there is none.

use std::io;
use std::sync::Arc;

use rustls::{CommonState, Error, HandshakeKind, ProtocolVersion};

use crate::secrets::Material;
use crate::server::Entry;
use crate::verify::Findings;

pub(super) const TLS13: &str = "TLSv1.3";

/// What the two sides agreed on, and what the other one showed.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// `TLSv1.3`.
    pub version: &'static str,
    /// OpenSSL's name of the suite, and the bits of its key.
    pub cipher: (&'static str, u16),
    /// Name of the group of the key exchange.
    pub group: Option<&'static str>,
    /// Protocol that ALPN chose.
    pub alpn: Option<Box<[u8]>>,
    /// Server name that the client sent.
    pub sni: Option<Box<str>>,
    /// A session was resumed.
    pub resumed: bool,
    /// What the peer's certificate was found to be.
    pub findings: Findings,
    /// The peer's certificates, its own first, as DER.
    pub peer: Vec<Box<[u8]>>,
    /// Name of the last certificate of the chain that was put together from them, as DER.
    pub root: Option<Box<[u8]>>,
    /// The bind line's certificate, as server.
    pub own: Option<Arc<Entry>>,
    /// The ClientHello behind its type and length, if captures are wanted.
    pub hello: Option<Box<[u8]>>,
    /// The client asked for an OCSP response and there is one: whether it was told, or is too old.
    pub staple: Option<bool>,
    /// Random numbers and secrets, if they are wanted.
    pub material: Option<Box<Material>>,
    /// Early data came.
    pub early: bool,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum Failure {
    /// The peer closed before it said anything.
    Empty,
    /// The peer took its leave (close_notify).
    Farewell,
    /// The peer closed, or the connection broke.
    Aborted(Option<io::Error>),
    /// The two could not agree, or one broke the protocol.
    Protocol(Error),
    /// The peer speaks HTTP without TLS.
    Http,
    /// The peer came back with a lower version though we speak a higher one (RFC 7507).
    Fallback,
    /// No certificate for the name that was asked for.
    NoCertificate,
    /// The peer's certificate was not believed.
    Untrusted(Findings),
}

/// What the two sides agreed on.
pub(super) fn describe(facts: &mut Facts, state: &CommonState) {
    facts.version = match state.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => TLS13,
        _ => "TLSv1.2",
    };
    facts.cipher = state.negotiated_cipher_suite().map(crate::suites::describe).unwrap_or_default();
    facts.group = state.negotiated_key_exchange_group().and_then(|g| g.name().as_str());
    facts.alpn = state.alpn_protocol().map(Into::into);
    facts.resumed = state.handshake_kind() == Some(HandshakeKind::Resumed);
    facts.peer = state.peer_certificates().unwrap_or_default().iter().map(|c| c.as_ref().into()).collect();
}
