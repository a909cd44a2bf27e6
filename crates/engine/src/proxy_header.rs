//! PROXY headers: taken from clients (`accept-proxy`), sent to servers (`send-proxy` and its family).

use lang::env::Side;
use lang::logfmt::Use;
use model::Peer;
use model::conn::ProxyHeader;
use model::secured::Secured;
use program::server::{ProxyV2Options, SendProxy};
use rt::Buf;
use tls::x509::Certificate;
use wire::proxy::tlv::{self, Tlvs};
use wire::proxy::{Error, Header, Parsed, V2Options};

use crate::stream::Stream;

/// Why a connection did not begin with the header it must begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// The client closed before it sent anything.
    Closed,
    /// The connection broke.
    Broken,
    /// Nothing came in time.
    Timeout,
    /// Only a part came. Whoever sends a header sends it first and whole, says the protocol; more is not waited for.
    Truncated,
    /// What came is no header.
    NotHeader,
    /// The header is malformed.
    Bad,
    /// The header is about a protocol that is not TCP.
    Unhandled,
}

impl HeaderFault {
    /// Number and text of the error of a PROXY header, as `fc_err` and `fc_err_str` have them.
    pub fn of_proxy(self) -> (u8, &'static str) {
        match self {
            HeaderFault::Closed => (11, "Connection closed while waiting for PROXY protocol header"),
            HeaderFault::Broken => (12, "Connection error while waiting for PROXY protocol header"),
            HeaderFault::Timeout => (13, "Timeout while waiting for PROXY protocol header"),
            HeaderFault::Truncated => (14, "Truncated PROXY protocol header received"),
            HeaderFault::NotHeader => {
                (15, "Received something which does not look like a PROXY protocol header")
            }
            HeaderFault::Bad => (16, "Received an invalid PROXY protocol header"),
            HeaderFault::Unhandled => (17, "Received an unhandled protocol in the PROXY protocol header"),
        }
    }

    /// The same of a NetScaler header.
    pub fn of_cip(self) -> (u8, &'static str) {
        match self {
            HeaderFault::Closed => (18, "Connection closed while waiting for NetScaler Client IP header"),
            HeaderFault::Broken => (19, "Connection error while waiting for NetScaler Client IP header"),
            HeaderFault::Timeout => (20, "Timeout while waiting for a NetScaler Client IP header"),
            HeaderFault::Truncated => (21, "Truncated NetScaler Client IP header received"),
            HeaderFault::NotHeader => (22, "Received an invalid NetScaler Client IP magic number"),
            HeaderFault::Bad | HeaderFault::Unhandled => {
                (23, "Received an unhandled protocol in the NetScaler Client IP header")
            }
        }
    }
}

/// The fewest bytes that show what they are.
const SHORTEST: usize = 6;

/// Takes a header from the start of a buffer.
///
/// # Errors
/// There is no such header, or not all of it.
pub fn take(buf: &mut Buf, conn: &model::Conn, cip: Option<u32>) -> Result<(), HeaderFault> {
    let parsed = match cip {
        Some(magic) => wire::proxy::parse_cip(buf.filled(), magic),
        None => wire::proxy::parse(buf.filled()),
    };
    match parsed {
        Ok(Parsed::Complete(header, taken)) => {
            buf.consume(taken);
            note(&header, conn);
            Ok(())
        }
        Ok(Parsed::Partial) => Err(HeaderFault::Truncated),
        Err(Error::NotProxy) if buf.filled().len() < SHORTEST => Err(HeaderFault::Truncated),
        Err(Error::NotProxy) => Err(HeaderFault::NotHeader),
        Err(Error::Unhandled) => Err(HeaderFault::Unhandled),
        Err(Error::Malformed | Error::TooLong | Error::Checksum) => Err(HeaderFault::Bad),
    }
}

fn note(header: &Header, conn: &model::Conn) {
    if let Some((src, dst)) = header.addresses {
        // What the network said stays with `fc_src` and `fc_dst`.
        conn.src.set(Peer::Inet(src));
        conn.dst.set(Peer::Inet(dst));
    }
    let tlvs: Vec<(u8, Box<[u8]>)> = Tlvs(&header.tlvs).map(|(k, v)| (k, v.into())).collect();
    let find = |kind| tlvs.iter().find(|(k, _)| *k == kind).map(|(_, v)| v.clone());
    let known = ProxyHeader { authority: find(tlv::AUTHORITY), unique_id: find(tlv::UNIQUE_ID), tlvs };
    *conn.proxy_header.borrow_mut() = Some(Box::new(known));
}

/// The header of a connection to the server that is made now.
pub fn bytes(stream: &mut Stream<'_>, send: &SendProxy) -> Vec<u8> {
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
    tlvs
}

/// The host that the client wants: what a PROXY header says of it, else the name that it sent in its handshake.
fn authority(conn: &model::Conn) -> Option<Vec<u8>> {
    let header = conn.proxy_header.borrow();
    let told = header.as_ref().and_then(|header| header.authority.as_deref());
    let sent = || conn.secured().and_then(|tls| tls.sni.as_deref()).map(str::as_bytes);
    told.or_else(sent).map(<[u8]>::to_vec)
}

/// What the record of TLS says of a client (PROXY protocol, section 2.2.6): nothing but that there is none, where it did not use it.
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
        let name = tls::oid::algorithm(cert.signature_algorithm).unwrap_or_default();
        tlv::append(tlv::SSL_SIG_ALG, name.as_bytes(), &mut out);
    }
    if wanted.cipher {
        tlv::append(tlv::SSL_CIPHER, tls.cipher.as_bytes(), &mut out);
    }
    out
}
