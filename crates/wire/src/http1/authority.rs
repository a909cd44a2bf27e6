//! Host and the authority of the target (RFC 9112 section 3.2): what a host may be, that both say the same,
//! and that a default port is cut from both.

use super::bytes::{HOST, class};
use super::error::{ErrorKind, ParseError, State};
use super::rules::{fault, keep_first};
use crate::head::{Head, Known};
use crate::method::Method;
use crate::uri;

/// Checks Host and target of a complete request. Where Host stands for the authority of another version it
/// keeps the port of a CONNECT; else a default one is cut (`cuts`).
pub fn check(head: &mut Head, relax: bool, cuts: bool) -> Result<(), ParseError> {
    hosts(head)?;
    if head.method_id() == Method::Connect {
        return connect(head, relax, cuts);
    }
    match head.target().first() {
        Some(b'/' | b'*') => Ok(()),
        _ => absolute(head, relax),
    }
}

/// Host may be repeated only if it says the same, and has to be a host.
fn hosts(head: &mut Head) -> Result<(), ParseError> {
    let mut hosts = head.all(Known::Host);
    let Some((_, first)) = hosts.next() else { return Ok(()) };
    let several = hosts.clone().next().is_some();
    if hosts.any(|(_, other)| !other.eq_ignore_ascii_case(first)) || !is_host(first) {
        return Err(fault(head, ErrorKind::BadHost, Known::Host));
    }
    if several {
        keep_first(head, Known::Host);
    }
    Ok(())
}

/// Whether `text` has only bytes of hosts and ports, and brackets only around all that stands before a port.
/// It may be empty, and what stands for the port need not be a number.
fn is_host(text: &[u8]) -> bool {
    let plain = |part: &[u8]| part.iter().all(|&byte| byte == b':' || class(byte) & HOST != 0);
    let Some((b'[', rest)) = text.split_first() else { return plain(text) };
    let Some(end) = memchr::memchr(b']', rest) else { return false };
    let (inner, port) = (rest.get(..end).unwrap_or_default(), rest.get(end + 1..).unwrap_or_default());
    plain(inner) && plain(port) && matches!(port.first(), None | Some(b':'))
}

/// Whether no second port is left in a host from which one was parted: two readers would not agree on it.
fn has_one_port(host: &[u8]) -> bool {
    if host.first() == Some(&b'[') { host.last() == Some(&b']') } else { !host.contains(&b':') }
}

/// `host:port`, perhaps behind the name of a user. Host may leave a default port out, and does when it is to
/// be cut.
fn connect(head: &mut Head, relax: bool, cuts: bool) -> Result<(), ParseError> {
    let authority = uri::host_port(head.target());
    let (host, port) = uri::split_port(authority);
    let number = |port: &[u8]| !port.is_empty() && port.iter().all(u8::is_ascii_digit);
    let sound = port.is_some_and(number) && is_host(authority) && has_one_port(host);
    if !sound && !relax {
        return Err(ParseError::new(ErrorKind::BadAuthority, head.target.start(), State::Target));
    }
    let Some((index, value)) = head.all(Known::Host).next() else { return Ok(()) };
    let (name, host_port) = uri::split_port(value);
    let default = matches!(port, Some(b"80" | b"443"));
    let same = name.eq_ignore_ascii_case(host)
        && (host_port == port || (default && host_port.is_none_or(<[u8]>::is_empty)));
    if !same {
        let mismatch = fault(head, ErrorKind::HostMismatch, Known::Host);
        return if relax { Ok(()) } else { Err(mismatch) };
    }
    if cuts && default && host_port.is_some_and(|port| !port.is_empty()) {
        let name = name.to_vec();
        let _ = head.replace_value(index, &name);
    }
    Ok(())
}

/// Compares Host with the authority of an absolute target, where an empty port is the scheme's own (RFC 9112
/// section 3.2.2), and puts both in order (RFC 3986 section 6.2.3).
fn absolute(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    let target = head.target();
    let Some(scheme) = uri::scheme(target) else { return Ok(()) };
    let default: &[u8] = match scheme {
        _ if scheme.eq_ignore_ascii_case(b"http") => b"80",
        _ if scheme.eq_ignore_ascii_case(b"https") => b"443",
        _ => b"",
    };
    let authority = uri::host_port(target);
    let (host, port) = uri::split_port(authority);
    let sound = is_host(authority) && has_one_port(host);
    if !sound && !relax {
        return Err(ParseError::new(ErrorKind::BadAuthority, head.target.start(), State::Target));
    }
    let implied = |port: &[u8]| port.is_empty() || port == default;
    if let Some((_, value)) = head.all(Known::Host).next() {
        let (name, host_port) = uri::split_port(value);
        let same_port = match (port, host_port) {
            (Some(one), Some(other)) => one == other || (implied(one) && implied(other)),
            (Some(one), None) | (None, Some(one)) => implied(one),
            (None, None) => true,
        };
        let same = same_port && name.eq_ignore_ascii_case(host);
        if !same && !relax {
            return Err(fault(head, ErrorKind::HostMismatch, Known::Host));
        }
    }
    let pathless = uri::host_offset(target) + authority.len() == target.len();
    if port.is_some_and(implied) && has_one_port(host) {
        cut_port(head, host.len());
    }
    if pathless && head.method_id() != Method::Options {
        // RFC 3986 section 6.2.3: an empty path is the root.
        let rooted = [head.target(), b"/"].concat();
        let _ = head.set_target(&rooted);
    }
    Ok(())
}

/// Cuts the port after `host_len` bytes of host from the target; Host then says what the target says, unless
/// that is no host.
fn cut_port(head: &mut Head, host_len: usize) {
    let target = head.target().to_vec();
    let authority = uri::host_port(&target);
    let host = authority.get(..host_len).unwrap_or_default();
    let start = uri::host_offset(&target);
    let tail = target.get(start + authority.len()..).unwrap_or_default();
    let _ = head.set_target(&[target.get(..start).unwrap_or_default(), host, tail].concat());
    let index = head.all(Known::Host).next().map(|(index, _)| index);
    if let Some(index) = index.filter(|_| is_host(host)) {
        let _ = head.replace_value(index, host);
    }
}
