//! `option forwarded` (RFC 7239) and `unique-id-header`.

use std::io::Write;

use lang::env::Side;
use model::Peer;
use program::Proxy;
use program::options::{Forwarded, ForwardedValue};

use crate::stream::Stream;

/// Adds the fields that the proxies ask for.
pub fn add(stream: &mut Stream<'_>, front: &Proxy, back: &Proxy) {
    if let Some(name) = &front.unique_id_header {
        crate::log::ensure_unique_id(stream);
        let id = stream.txn.unique_id.borrow().clone();
        if let Some(id) = id {
            let _ = stream.txn.req.append(name, &id);
        }
    }
    if let Some(f) = back.forwarded.as_ref().or(front.forwarded.as_ref()) {
        let mut value = Vec::new();
        write_value(stream, f, &mut value);
        if !value.is_empty() {
            let _ = stream.txn.req.append(b"forwarded", &value);
        }
    }
}

fn write_value(stream: &Stream<'_>, f: &Forwarded, out: &mut Vec<u8>) {
    if f.proto {
        out.extend_from_slice(b"proto=http");
    }
    if let Some(host) = &f.host {
        let text = match host {
            ForwardedValue::Auto => stream.txn.req.first("host").map(<[u8]>::to_vec),
            ForwardedValue::Expr(e) => text_of(stream, e),
        };
        if let Some(t) = text {
            part(out, b"host=", &quoted(&t));
        }
    }
    node(stream, out, b"by=", f.by.as_ref(), f.by_port.as_ref(), stream.dst());
    node(stream, out, b"for=", f.for_.as_ref(), f.for_port.as_ref(), stream.src());
}

fn node(
    stream: &Stream<'_>,
    out: &mut Vec<u8>,
    key: &[u8],
    name: Option<&ForwardedValue>,
    port: Option<&ForwardedValue>,
    peer: Peer,
) {
    if name.is_none() && port.is_none() {
        return;
    }
    let host = match name {
        None | Some(ForwardedValue::Auto) => peer.ip().map(|ip| ip.to_string().into_bytes()),
        Some(ForwardedValue::Expr(e)) => text_of(stream, e),
    };
    let port = match port {
        None => None,
        Some(ForwardedValue::Auto) => peer.port().map(|p| p.to_string().into_bytes()),
        Some(ForwardedValue::Expr(e)) => text_of(stream, e),
    };
    let host = host.unwrap_or_else(|| b"unknown".to_vec());
    let v6 = host.contains(&b':');
    let mut value = Vec::new();
    // RFC 7239 section 6: brackets around IPv6, quotes around anything with a colon or a bracket.
    let _ = match (v6, &port) {
        (true, _) => write!(value, "\"[{}]", String::from_utf8_lossy(&host)),
        (false, Some(_)) => write!(value, "\"{}", String::from_utf8_lossy(&host)),
        (false, None) => write!(value, "{}", String::from_utf8_lossy(&host)),
    };
    if let Some(p) = &port {
        value.push(b':');
        value.extend_from_slice(p);
    }
    if v6 || port.is_some() {
        value.push(b'"');
    }
    part(out, key, &value);
}

fn part(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    if !out.is_empty() {
        out.push(b';');
    }
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// A token as it is, anything else as a quoted string.
fn quoted(text: &[u8]) -> Vec<u8> {
    let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    if !text.is_empty() && text.iter().all(token) {
        return text.to_vec();
    }
    let mut out = vec![b'"'];
    for b in text {
        if matches!(b, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*b);
    }
    out.push(b'"');
    out
}

fn text_of(stream: &Stream<'_>, expr: &lang::Expr) -> Option<Vec<u8>> {
    stream.evaluate(Side::Request, |env| {
        let mut out = Vec::new();
        expr.append_text(env, &mut out).map(|()| out)
    })
}
