//! The checks that need the whole head: lengths and codings (RFC 9112 sections 6.1 to 6.3), the WebSocket
//! handshake; Host and authority are in `authority`. They also put in order what may be put in order: a
//! length is written once and plainly, a length beside `chunked` is removed, both go where no body may
//! follow, and offers to change to HTTP/2 are withdrawn.

use super::authority;
use super::error::{ErrorKind, ParseError, State};
use super::parse::{Limits, position};
use crate::head::{Head, Kind, Known};
use crate::method::{Method, Version};

/// Checks a complete head.
pub fn check(head: &mut Head, limits: &Limits, relax: bool) -> Result<(), ParseError> {
    if head.present & Known::Upgrade.bit() != 0 {
        upgrade(head, relax)?;
    }
    check_as(head, limits, relax, true)
}

/// Checks a head that came in another version, where an upgrade is asked for without a key (RFC 8441 section
/// 5).
pub fn check_translated(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    check_as(head, &Limits::default(), relax, false)
}

fn check_as(head: &mut Head, limits: &Limits, relax: bool, cuts: bool) -> Result<(), ParseError> {
    let measured = head.present & (Known::TransferEncoding.bit() | Known::ContentLength.bit()) != 0;
    if measured {
        lengths(head, limits, relax)?;
    }
    if head.kind() == Kind::Request {
        authority::check(head, relax, cuts)?;
        if measured {
            payload(head, limits)?;
        }
    }
    Ok(())
}

pub(super) fn fault(head: &Head, kind: ErrorKind, known: Known) -> ParseError {
    ParseError::new(kind, position(head, known), State::FieldValue)
}

fn lengths(head: &mut Head, limits: &Limits, relax: bool) -> Result<(), ParseError> {
    let coded = head.has(Known::TransferEncoding) && transfer_encoding(head, relax)?;
    let length = content_length(head)?;
    if coded && length.is_some() {
        head.remove_all(Known::ContentLength);
    }
    // RFC 9112 section 6.1: with a length beside it, or from HTTP/1.0, a coding can't be trusted any longer.
    head.distrusted |= coded
        && match length {
            Some(_) => !limits.insecure_coding,
            None => head.version() < Version::HTTP_11,
        };
    let no_body = match head.kind() {
        // RFC 9110 section 9.3.6.
        Kind::Request => head.method_id() == Method::Connect,
        Kind::Response => matches!(head.status(), 100..=199 | 204),
    };
    if no_body {
        head.remove_all(Known::TransferEncoding);
        head.remove_all(Known::ContentLength);
        return Ok(());
    }
    Ok(())
}

/// A body where one from before HTTP/1.1 surprises whoever does not expect it.
fn payload(head: &mut Head, limits: &Limits) -> Result<(), ParseError> {
    let old = !limits.any_payload && head.version() < Version::HTTP_11;
    if !old || !matches!(head.method_id(), Method::Get | Method::Head | Method::Delete) {
        return Ok(());
    }
    let coded = head.has(Known::TransferEncoding);
    if coded || content_length(head)?.is_some_and(|length| length > 0) {
        let known = if coded { Known::TransferEncoding } else { Known::ContentLength };
        // Values may have been rewritten, names are where they came.
        let at = head.fields.iter().find(|field| field.known == known);
        let at = at.map_or(0, |field| field.name.start());
        return Err(ParseError::new(ErrorKind::BodyNotAllowed, at, State::FieldName));
    }
    Ok(())
}

/// `chunked` has to be there once and last, and is left as the only coding; there may be no other. Says
/// whether a coding takes precedence over a length.
fn transfer_encoding(head: &mut Head, relax: bool) -> Result<bool, ParseError> {
    let lenient = relax && head.kind() == Kind::Response;
    let bad = |kind| Err(fault(head, kind, Known::TransferEncoding));
    let (mut chunked, mut other) = (false, false);
    for coding in head.values(Known::TransferEncoding) {
        if coding.is_empty() {
            if !lenient {
                return bad(ErrorKind::BadTransferEncoding);
            }
        } else if coding.eq_ignore_ascii_case(b"chunked") {
            if chunked && !lenient {
                return bad(ErrorKind::BadTransferEncoding);
            }
            chunked = true;
        } else {
            if chunked {
                return bad(ErrorKind::BadTransferEncoding);
            }
            other = true;
        }
    }
    if other {
        let kind =
            if chunked { ErrorKind::UnsupportedTransferEncoding } else { ErrorKind::BadTransferEncoding };
        return bad(kind);
    }
    if !chunked {
        // Only empty ones, let pass: as good as none, unless they are at least a list.
        let listed = head.all(Known::TransferEncoding).any(|(_, value)| !value.is_empty());
        head.remove_all(Known::TransferEncoding);
        return Ok(listed);
    }
    only_coding(head);
    Ok(true)
}

/// Leaves `chunked` as the only coding. Where it is that already, rules see it in the letters it came in; it
/// is written in small ones.
fn only_coding(head: &mut Head) {
    let mut fields = head.all(Known::TransferEncoding);
    let first = fields.next();
    let alone = fields.next().is_none();
    match first {
        Some((_, b"chunked")) if alone => {}
        Some((at, value)) if alone && value.eq_ignore_ascii_case(b"chunked") => {
            if let Some(field) = head.fields.get_mut(at) {
                field.plain = false;
            }
        }
        _ => only(head, Known::TransferEncoding, b"chunked"),
    }
}

/// All lengths have to be the same number, which is left as the only length, in plain digits.
fn content_length(head: &mut Head) -> Result<Option<u64>, ParseError> {
    let bad = |kind| Err(fault(head, kind, Known::ContentLength));
    let mut length = None;
    for value in head.values(Known::ContentLength) {
        let Some(number) = decimal(value) else { return bad(ErrorKind::BadContentLength) };
        if length.is_some_and(|length| length != number) {
            return bad(ErrorKind::ConflictingContentLength);
        }
        length = Some(number);
    }
    if let Some(number) = length {
        let mut text = [0; 20];
        only(head, Known::ContentLength, digits(number, &mut text));
    }
    Ok(length)
}

/// Leaves one field of this name, where the first was, with this value.
#[inline]
fn only(head: &mut Head, known: Known, value: &[u8]) {
    let mut fields = head.all(known);
    let Some((first, text)) = fields.next() else { return };
    if text == value && fields.next().is_none() {
        return;
    }
    rewrite(head, known, first, value);
}

#[cold]
fn rewrite(head: &mut Head, known: Known, first: usize, value: &[u8]) {
    keep_first(head, known);
    // What is written in its place is not longer.
    let _ = head.replace_value(first, value);
}

/// Removes all fields of this name but the first.
pub(super) fn keep_first(head: &mut Head, known: Known) {
    let Some((first, _)) = head.all(known).next() else { return };
    while let Some((last, _)) = head.all(known).next_back().filter(|(last, _)| *last != first) {
        head.remove(last);
    }
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

/// `number` in decimal digits, written to the end of `room`.
fn digits(mut number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut start = room.len();
    for slot in room.iter_mut().rev() {
        *slot = b'0' + (number % 10) as u8;
        number /= 10;
        start -= 1;
        if number == 0 {
            break;
        }
    }
    room.get(start..).unwrap_or_default()
}

/// A change to HTTP/2 is not on offer. A WebSocket handshake needs its key, 24 characters of Base64, and its
/// answer.
#[cold]
fn upgrade(head: &mut Head, relax: bool) -> Result<(), ParseError> {
    let http2 = |value: &[u8]| value.eq_ignore_ascii_case(b"h2c") || value.eq_ignore_ascii_case(b"h2");
    head.retain_values(Known::Upgrade, |value| !http2(value));
    let websocket =
        head.has_token(Known::Connection, b"upgrade") && head.has_token(Known::Upgrade, b"websocket");
    if !websocket || relax {
        return Ok(());
    }
    let complete = match head.kind() {
        Kind::Request => {
            head.has(Known::SecWebsocketKey)
                && head.all(Known::SecWebsocketKey).any(|(_, key)| key.len() == 24)
        }
        Kind::Response => head.status() != 101 || head.has(Known::SecWebsocketAccept),
    };
    if complete { Ok(()) } else { Err(fault(head, ErrorKind::BadWebSocketKey, Known::Upgrade)) }
}
