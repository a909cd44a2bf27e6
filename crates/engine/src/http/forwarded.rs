//! `option forwarded` (RFC 7239) and `unique-id-header`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lang::env::Side;
use lang::sample::Value;
use model::Peer;
use program::Proxy;
use program::options::{Forwarded, ForwardedValue};
use wire::head::Head;

use crate::stream::Stream;

/// Adds the fields that the proxies ask for.
pub fn add(stream: &mut Stream<'_>, front: &Proxy, back: &Proxy) {
    let id = stream.evaluate(Side::Request, |env| env.with_unique_id(<[u8]>::to_vec));
    if let (Some(name), Some(id)) = (&front.unique_id_header, id) {
        let _ = stream.txn.req.append(name, &id);
    }
    // A frontend that is none of the servers' own says nothing here (manual, `option forwarded`).
    if let Some(f) = &back.forwarded {
        let mut value = Vec::new();
        write_value(stream, f, &mut value);
        if !value.is_empty() {
            append(&mut stream.txn.req, &value);
        }
    }
}

/// Puts an element behind those that other proxies left; in a field of its own if one of those is malformed.
fn append(req: &mut Head, value: &[u8]) {
    let valid = req.values("forwarded").all(lang::conv::forwarded::is_valid);
    let last = req.all("forwarded").next_back().filter(|_| valid);
    let joined = last.map(|(index, old)| (index, [old, b",", value].concat()));
    let _ = match joined {
        Some((index, all)) => req.replace_value(index, &all),
        None => req.append(b"forwarded", value).map(drop),
    };
}

fn write_value(stream: &Stream<'_>, f: &Forwarded, out: &mut Vec<u8>) {
    if f.proto {
        let secured = stream.client.session.conn.secured().is_some();
        out.extend_from_slice(if secured { b"proto=https" } else { b"proto=http" });
    }
    if let Some(host) = &f.host {
        let text = match host {
            ForwardedValue::Auto => stream.txn.req.first("host").map(<[u8]>::to_vec),
            ForwardedValue::Expr(e) => text_of(stream, e),
        };
        key(out, b"host=\"");
        out.extend_from_slice(text.as_deref().filter(|t| is_host(t)).unwrap_or_default());
        out.push(b'"');
    }
    node(stream, out, b"by=", f.by.as_ref(), f.by_port.as_ref(), stream.dst());
    node(stream, out, b"for=", f.for_.as_ref(), f.for_port.as_ref(), stream.src());
}

/// A node and its port (RFC 7239 section 6). Without a node there is no port either; where a port may follow,
/// and around the colons of an IPv6 address, there are quotes.
fn node(
    stream: &Stream<'_>,
    out: &mut Vec<u8>,
    name: &[u8],
    node: Option<&ForwardedValue>,
    port: Option<&ForwardedValue>,
    peer: Peer,
) {
    let Some(node) = node else { return };
    let node = match node {
        ForwardedValue::Auto => peer.ip().map(address),
        ForwardedValue::Expr(e) => name_of(stream, e),
    };
    let node = node.unwrap_or_else(|| b"unknown".to_vec());
    let quoted = port.is_some() || node.starts_with(b"[");
    let port = match port {
        None => None,
        Some(ForwardedValue::Auto) => peer.port().map(|p| p.to_string().into_bytes()),
        Some(ForwardedValue::Expr(e)) => text_of(stream, e).and_then(|t| port_name(&t)),
    };
    key(out, name);
    if quoted {
        out.push(b'"');
    }
    out.extend_from_slice(&node);
    if let Some(p) = &port {
        out.push(b':');
        out.extend_from_slice(p);
    }
    if quoted {
        out.push(b'"');
    }
}

fn key(out: &mut Vec<u8>, name: &[u8]) {
    if !out.is_empty() {
        out.push(b';');
    }
    out.extend_from_slice(name);
}

fn address(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.to_string().into_bytes(),
        IpAddr::V6(ip) => format!("[{ip}]").into_bytes(),
    }
}

/// The name of a node as an expression gives it; `None` where it can't be one.
fn name_of(stream: &Stream<'_>, expr: &lang::Expr) -> Option<Vec<u8>> {
    let typed = stream.evaluate(Side::Request, |env| match expr.eval(env) {
        Ok(Value::Ipv4(ip)) => Some(address(ip.into())),
        Ok(Value::Ipv6(ip)) => Some(address(ip.into())),
        _ => None,
    });
    typed.or_else(|| node_name(&text_of(stream, expr)?))
}

/// An address, `unknown`, or an obfuscated name, which begins with `_`.
fn node_name(text: &[u8]) -> Option<Vec<u8>> {
    let t = std::str::from_utf8(text).ok()?;
    let v6 = t.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let whole =
        t == "unknown" || t.parse::<Ipv4Addr>().is_ok() || v6.is_some_and(|t| t.parse::<Ipv6Addr>().is_ok());
    if whole { Some(text.to_vec()) } else { obfuscated(text) }
}

/// The number of a port, or an obfuscated one.
fn port_name(text: &[u8]) -> Option<Vec<u8>> {
    let number = text.len() <= 5 && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| number).and_then(|t| t.parse::<u16>().ok());
    if number.is_some_and(|n| n > 0) { Some(text.to_vec()) } else { obfuscated(text) }
}

/// A text that may stand where RFC 7239 wants `_` and a name; the mark is added where it lacks.
fn obfuscated(text: &[u8]) -> Option<Vec<u8>> {
    let fits = |b: &u8| b.is_ascii_alphanumeric() || b"._-".contains(b);
    if text.is_empty() || !text.iter().all(fits) {
        return None;
    }
    if text.len() > 1 && text.starts_with(b"_") {
        return Some(text.to_vec());
    }
    Some([b"_", text].concat())
}

/// Whether a text may be told as the host that was asked for: name or address, and a port if any. HAProxy
/// leaves out names with a hyphen or an underline, too; there are too many of those to lose them.
fn is_host(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let (host, port) = match text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        Some((ip, rest)) if ip.parse::<Ipv6Addr>().is_ok() => ("", rest.strip_prefix(':').or(none_if(rest))),
        Some(_) => return false,
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("1")),
        },
    };
    let name = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    host.bytes().all(name) && port.is_some_and(|p| p.parse::<u16>().is_ok_and(|n| n > 0))
}

/// What stands for a port where none is.
fn none_if(rest: &str) -> Option<&'static str> {
    rest.is_empty().then_some("1")
}

fn text_of(stream: &Stream<'_>, expr: &lang::Expr) -> Option<Vec<u8>> {
    stream.evaluate(Side::Request, |env| {
        let mut out = Vec::new();
        expr.append_text(env, &mut out).map(|()| out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: Option<Vec<u8>>) -> Option<String> {
        name.map(|n| String::from_utf8(n).unwrap())
    }

    #[test]
    fn nodes_are_addresses_or_hidden_names() {
        let cases = [
            ("1.2.3.4", Some("1.2.3.4")),
            ("[::1]", Some("[::1]")),
            ("unknown", Some("unknown")),
            ("_hid", Some("_hid")),
            ("hid", Some("_hid")),
            ("1.2.3.400", Some("_1.2.3.400")),
            ("_", Some("__")),
            ("::1", None),
            ("1.2.3.4:80", None),
            ("a b", None),
            ("", None),
        ];
        for (given, want) in cases {
            assert_eq!(text(node_name(given.as_bytes())).as_deref(), want, "{given}");
        }
    }

    #[test]
    fn ports_are_numbers_or_hidden_names() {
        let cases = [
            ("80", "80"),
            ("080", "080"),
            ("0", "_0"),
            ("70000", "_70000"),
            ("123456", "_123456"),
            ("p", "_p"),
            ("-1", "_-1"),
        ];
        for (given, want) in cases {
            assert_eq!(text(port_name(given.as_bytes())).as_deref(), Some(want), "{given}");
        }
        assert_eq!(port_name(b""), None);
    }

    #[test]
    fn what_is_no_host_is_not_told() {
        for good in ["example.org", "my-site.org:8080", "1.2.3.4", "[::1]", "[::1]:80", ":80", "a..b", ""] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in
            ["a b", "a@b", "a/b", "a:", "a:0", "a:65536", "a:80x", "::1", "[::1", "[::1]x", "[zz]", "a\"b"]
        {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }
}
