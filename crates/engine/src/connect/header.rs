//! The PROXY header that a connection to a server begins with (`send-proxy` and its family).

use lang::env::Side;
use lang::logfmt::Use;
use model::Peer;
use model::secured::Secured;
use program::server::{ProxyV2Options, SendProxy};
use wire::proxy::V2Options;
use wire::proxy::tlv;
use x509::Certificate;

use crate::stream::Stream;

/// The header of a connection to the server that is made now.
pub(super) fn bytes(stream: &mut Stream<'_>, send: &SendProxy) -> Vec<u8> {
    let addresses = match (stream.src(), stream.dst()) {
        (Peer::Inet(src), Peer::Inet(dst)) => Some((src, dst)),
        _ => None,
    };
    let mut out = Vec::with_capacity(128);
    if send.version == 1 {
        wire::proxy::v1(addresses, &mut out);
    } else {
        let tlvs = records(stream, send);
        // In HAProxy's order: what was configured, the checksum, what the connection is.
        let checksum = send.options.crc32c.then_some(send.tlvs.len());
        wire::proxy::v2(addresses, &V2Options { tlvs: &tlvs, checksum }, &mut out);
    }
    out
}

fn records(stream: &mut Stream<'_>, send: &SendProxy) -> Vec<(u8, Vec<u8>)> {
    let mut tlvs = Vec::new();
    for (kind, format) in &send.tlvs {
        let mut value = Vec::new();
        stream.evaluate(Side::Request, |env| format.append(env, Use::Value, &mut value));
        tlvs.push((*kind, value));
    }
    if let Some(protocol) = stream.client.conn().secured().and_then(|tls| tls.alpn.as_deref()) {
        tlvs.push((tlv::ALPN, protocol.to_vec()));
    }
    if send.options.authority {
        tlvs.extend(authority(stream.client.conn()).map(|name| (tlv::AUTHORITY, name)));
    }
    if send.options.unique_id {
        // An empty one is told as well, as is one that no format makes.
        let id = stream.evaluate(Side::Request, |env| env.with_unique_id(<[u8]>::to_vec));
        tlvs.push((tlv::UNIQUE_ID, id.unwrap_or_default()));
    }
    if send.options.ssl {
        tlvs.push((tlv::SSL, tls_facts(stream.client.conn().secured(), &send.options)));
    }
    if let Some(namespace) = super::target::client_namespace(stream) {
        tlvs.push((tlv::NETNS, namespace.name().as_bytes().to_vec()));
    }
    tlvs
}

/// The host that the client wants: what a PROXY header says of it, else the name that it sent in its
/// handshake.
fn authority(conn: &model::Conn) -> Option<Vec<u8>> {
    let header = conn.proxy_header.borrow();
    let told = header.as_ref().and_then(|header| header.authority.as_deref());
    let sent = || conn.secured().and_then(|tls| tls.sni.as_deref()).map(str::as_bytes);
    told.or_else(sent).map(<[u8]>::to_vec)
}

/// What the record of TLS says of a client (PROXY protocol, section 2.2.6): nothing but that there is none,
/// where it did not use it.
fn tls_facts(tls: Option<&Secured>, wanted: &ProxyV2Options) -> Vec<u8> {
    const USED: u8 = 1;
    const CERTIFICATE_HERE: u8 = 2;
    const CERTIFICATE_OF_SESSION: u8 = 4;
    let Some(tls) = tls else { return vec![0; 5] };
    let client = tls.peer.first();
    let mut bits = USED;
    if client.is_some() {
        bits |= if tls.resumed { CERTIFICATE_OF_SESSION } else { CERTIFICATE_HERE | CERTIFICATE_OF_SESSION };
    }
    let mut out = vec![bits];
    out.extend_from_slice(&u32::from(tls.verdict).to_be_bytes());
    tlv::append(tlv::SSL_VERSION, tls.version.as_bytes(), &mut out);
    let named = client.filter(|_| wanted.cert_cn).and_then(|der| Certificate::parse(der));
    if let Some(name) = named.and_then(|cert| cert.common_names().next()) {
        tlv::append(tlv::SSL_CN, name, &mut out);
    }
    let own = tls.own.as_deref().filter(|_| wanted.cert_key || wanted.cert_sig).and_then(Certificate::parse);
    if let Some(cert) = own.as_ref().filter(|_| wanted.cert_key) {
        tlv::append(tlv::SSL_KEY_ALG, tls::text::key(cert).as_bytes(), &mut out);
    }
    if let Some(cert) = own.as_ref().filter(|_| wanted.cert_sig) {
        let name = x509::oid::algorithm(cert.signature_algorithm).unwrap_or_default();
        tlv::append(tlv::SSL_SIG_ALG, name.as_bytes(), &mut out);
    }
    if wanted.cipher {
        tlv::append(tlv::SSL_CIPHER, tls.cipher.as_bytes(), &mut out);
    }
    out
}
