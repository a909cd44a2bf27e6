//! PROXY headers: taken from clients (`accept-proxy`), sent to servers (`send-proxy` and its family).

use lang::env::Side;
use lang::logfmt::Use;
use model::Peer;
use model::conn::ProxyHeader;
use program::server::SendProxy;
use rt::Buf;
use wire::proxy::tlv::{self, Tlvs};
use wire::proxy::{Header, Parsed, V2Options};

use crate::stream::Stream;

/// Takes a header from the start of a buffer: `Ok(false)` when more bytes are needed.
///
/// # Errors
/// There is no such header.
pub fn take(buf: &mut Buf, conn: &model::Conn, cip: Option<u32>) -> Result<bool, wire::proxy::Error> {
    let parsed = match cip {
        Some(magic) => wire::proxy::parse_cip(buf.filled(), magic)?,
        None => wire::proxy::parse(buf.filled())?,
    };
    let Parsed::Complete(header, taken) = parsed else { return Ok(false) };
    buf.consume(taken);
    note(&header, conn);
    Ok(true)
}

fn note(header: &Header, conn: &model::Conn) {
    if let Some((src, dst)) = header.addresses {
        conn.set_addresses(Peer::Inet(crate::net::plain(src)), Peer::Inet(crate::net::plain(dst)));
    } else if header.unix {
        conn.set_addresses(Peer::Unix, Peer::Unix);
    }
    let tlvs: Vec<(u8, Box<[u8]>)> = Tlvs(&header.tlvs).map(|(k, v)| (k, v.into())).collect();
    let find = |kind| tlvs.iter().find(|(k, _)| *k == kind).map(|(_, v)| v.clone());
    let known = ProxyHeader { authority: find(tlv::AUTHORITY), unique_id: find(tlv::UNIQUE_ID), tlvs };
    *conn.proxy_header.borrow_mut() = Some(Box::new(known));
}

/// Stages the header before everything else that goes to the server.
pub fn stage(stream: &mut Stream<'_>, send: &SendProxy) {
    let out = bytes(stream, send);
    stream.to_server.get_or_insert_default().push(&out);
}

/// The header.
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
        wire::proxy::v2(addresses, &V2Options { tlvs: &tlvs, checksum: send.options.crc32c }, &mut out);
    }
    out
}

fn records(stream: &mut Stream<'_>, send: &SendProxy) -> Vec<(u8, Vec<u8>)> {
    let mut tlvs = Vec::new();
    if send.options.authority
        && let Some(header) = &*stream.client.conn().proxy_header.borrow()
        && let Some(name) = &header.authority
    {
        tlvs.push((tlv::AUTHORITY, name.to_vec()));
    }
    if send.options.unique_id {
        crate::log::ensure_unique_id(stream);
        if let Some(id) = &*stream.txn.unique_id.borrow() {
            tlvs.push((tlv::UNIQUE_ID, id.to_vec()));
        }
    }
    for (kind, format) in &send.tlvs {
        let mut value = Vec::new();
        stream.evaluate(Side::Request, |env| format.append(env, Use::Value, &mut value));
        tlvs.push((*kind, value));
    }
    tlvs
}
