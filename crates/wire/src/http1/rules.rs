//! The checks that need the whole head: lengths and codings (RFC 9112 sections 6.1 to 6.3), Host and authority
//! (RFC 9112 section 3.2), the WebSocket key. They also put in order what may be put in order: repeated equal
//! lengths become one, a length beside `chunked` is removed, a default port is cut from authority and Host.

use super::bytes::{HOST, class};
use super::error::{ErrorKind, ParseError, State};
use super::parse::position;
use crate::head::{Head, Kind, Known, split_values};
use crate::method::{Method, Version};
use crate::uri;

/// Checks a complete head.
pub fn check(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    if head.present & Known::TransferEncoding.bit() != 0 {
        transfer_encoding(head, relax)?;
    }
    if head.present & Known::ContentLength.bit() != 0 {
        content_length(head)?;
    }
    if head.kind() == Kind::Request {
        hosts(head)?;
        authority(head, relax)?;
    }
    Ok(())
}

fn fault(head: &Head, kind: ErrorKind, known: Known) -> ParseError {
    ParseError::new(kind, position(head, known), State::FieldValue)
}

/// `chunked` has to be there once and last.
fn transfer_encoding(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    let lenient = relax && head.kind() == Kind::Response;
    let bad = |kind| fault(head, kind, Known::TransferEncoding);
    let (mut chunked, mut other) = (false, false);
    for coding in head.values(Known::TransferEncoding) {
        if coding.is_empty() {
            if !lenient {
                return Err(bad(ErrorKind::BadTransferEncoding));
            }
        } else if coding.eq_ignore_ascii_case(b"chunked") {
            if chunked && !lenient {
                return Err(bad(ErrorKind::BadTransferEncoding));
            }
            chunked = true;
        } else {
            if chunked {
                return Err(bad(ErrorKind::BadTransferEncoding));
            }
            other = true;
        }
    }
    if !chunked && (other || !lenient) {
        return Err(bad(ErrorKind::BadTransferEncoding));
    }
    if other && head.kind() == Kind::Request {
        return Err(bad(ErrorKind::UnsupportedTransferEncoding));
    }
    // RFC 9112 section 6.1: with a length beside it, or from HTTP/1.0, the framing can't be trusted any longer.
    if head.version() < Version::HTTP_11 || head.has(Known::ContentLength) {
        head.distrusted = true;
    }
    Ok(())
}

/// All lengths have to be the same number.
fn content_length(head: &mut Head) -> Result<(), ParseError> {
    let bad = |kind| fault(head, kind, Known::ContentLength);
    let (mut length, mut merged) = (None, false);
    for value in head.values(Known::ContentLength) {
        let number = decimal(value).ok_or(bad(ErrorKind::BadContentLength))?;
        if length.is_some_and(|length| length != number) {
            return Err(bad(ErrorKind::ConflictingContentLength));
        }
        merged |= length.is_some();
        length = Some(number);
    }
    if head.has(Known::TransferEncoding) {
        head.remove_all(Known::ContentLength);
    } else if merged {
        keep_one_length(head);
    }
    Ok(())
}

/// Leaves the first of several equal lengths.
fn keep_one_length(head: &mut Head) {
    let Some((first, value)) = head.all(Known::ContentLength).next() else { return };
    let one = split_values(value).next().unwrap_or_default().to_vec();
    while let Some((last, _)) = head.all(Known::ContentLength).next_back().filter(|(last, _)| *last != first)
    {
        head.remove(last);
    }
    // A shorter value always has room.
    let _ = head.replace_value(first, &one);
}

/// Digits only, as RFC 9110 section 8.6 has it; `None` when there are others, none, or too many.
pub fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Host may be repeated only if it says the same, and has to be a host.
fn hosts(head: &mut Head) -> Result<(), ParseError> {
    let mut hosts = head.all(Known::Host);
    let Some((_, first)) = hosts.next() else { return Ok(()) };
    let several = hosts.clone().next().is_some();
    if hosts.any(|(_, other)| other != first) || !is_authority(first) {
        return Err(fault(head, ErrorKind::BadHost, Known::Host));
    }
    if several {
        let keep = head.all(Known::Host).next().map(|(index, _)| index);
        while let Some((last, _)) = head.all(Known::Host).next_back().filter(|(last, _)| Some(*last) != keep)
        {
            head.remove(last);
        }
    }
    Ok(())
}

/// Whether `text` is `host[:port]` with bytes that hosts and ports have; it may be empty.
fn is_authority(text: &[u8]) -> bool {
    let (host, port) = uri::split_port(text);
    let inner = match host.split_first() {
        Some((b'[', rest)) => match rest.split_last() {
            Some((b']', inner)) => {
                return digits(port) && inner.iter().all(|&byte| byte == b':' || class(byte) & HOST != 0);
            }
            _ => return false,
        },
        _ => host,
    };
    digits(port) && inner.iter().all(|&byte| class(byte) & HOST != 0)
}

fn digits(port: Option<&[u8]>) -> bool {
    port.is_none_or(|port| port.iter().all(u8::is_ascii_digit) && port.len() <= 5)
}

/// Compares Host with the authority of the target and cuts default ports (RFC 9112 section 3.2.2, RFC 3986
/// section 6.2.3).
fn authority(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    let connect = head.method_id() == Method::Connect;
    if !connect && head.target().first() == Some(&b'/') {
        return Ok(());
    }
    if connect { connect_authority(head, relax) } else { absolute_authority(head, relax) }
}

fn connect_authority(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    let (host, port) = uri::split_port(head.target());
    let bad = ParseError::new(ErrorKind::BadAuthority, head.target.start(), State::Target);
    let valid = port.is_some_and(|port| !port.is_empty()) && is_authority(head.target()) && !host.is_empty();
    if !valid {
        return if relax { Ok(()) } else { Err(bad) };
    }
    let Some((index, value)) = head.all(Known::Host).next() else { return Ok(()) };
    let (name, host_port) = uri::split_port(value);
    let default = matches!(port, Some(b"80" | b"443"));
    let same_port = host_port == port || (default && host_port.is_none_or(<[u8]>::is_empty));
    if !relax && (!name.eq_ignore_ascii_case(host) || !same_port) {
        return Err(fault(head, ErrorKind::HostMismatch, Known::Host));
    }
    if default && host_port == port {
        let name = name.to_vec();
        let _ = head.replace_value(index, &name);
    }
    Ok(())
}

fn absolute_authority(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    let target = head.target();
    let Some(scheme) = uri::scheme(target) else { return Ok(()) };
    let authority = uri::host_port(target);
    let default: &[u8] = if scheme.eq_ignore_ascii_case(b"https") { b"443" } else { b"80" };
    let (host, port) = uri::split_port(authority);
    let cut = port.is_some_and(|port| port.is_empty() || port == default);
    if let Some((_, value)) = head.all(Known::Host).next() {
        let (name, host_port) = uri::split_port(value);
        let number = |port: Option<&[u8]>| port.filter(|port| !port.is_empty()).unwrap_or(default).to_vec();
        let same = name.eq_ignore_ascii_case(host) && number(host_port) == number(port);
        if !relax && !same {
            return Err(fault(head, ErrorKind::HostMismatch, Known::Host));
        }
    }
    let pathless = uri::host_offset(target) + authority.len() == target.len();
    if cut {
        cut_port(head, host.len());
    } else if pathless {
        // RFC 3986 section 6.2.3: an empty path is the root.
        let rooted = [target, b"/"].concat();
        let _ = head.set_target(&rooted);
    }
    Ok(())
}

/// Cuts the port after `host_len` bytes of host from target and Host.
fn cut_port(head: &mut Head, host_len: usize) {
    let target = head.target().to_vec();
    let authority = uri::host_port(&target);
    let host = authority.get(..host_len).unwrap_or_default();
    let start = uri::host_offset(&target);
    let tail = target.get(start + authority.len()..).unwrap_or_default();
    let slash: &[u8] = if tail.is_empty() { b"/" } else { b"" };
    let before = target.get(..start).unwrap_or_default();
    let _ = head.set_target(&[before, host, slash, tail].concat());
    if let Some((index, _)) = head.all(Known::Host).next() {
        let _ = head.replace_value(index, host);
    }
}
