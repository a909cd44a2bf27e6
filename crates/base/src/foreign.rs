//! Bytes that are no UTF-8 in text, without losing them.
//!
//! Commands of the runtime API and their answers are text, but what they name need not be: a key of a map, a
//! variable or a log line holds whatever a client sent. A byte that is no part of UTF-8 becomes the character
//! `U+10FF00` plus its number, on the last page of the plane for private use, and becomes the byte again on
//! its way out. Those characters themselves are taken for four such bytes, so that nothing is lost and
//! nothing is ambiguous.

use std::borrow::Cow;

/// The character of byte 0.
const FIRST: u32 = 0x10_FF00;
/// What the characters of foreign bytes begin with in UTF-8, and few others do.
const LEAD: u8 = 0xF4;

/// The bytes as text.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !has_foreign(text) => Cow::Borrowed(text),
        _ => Cow::Owned(bytes.utf8_chunks().fold(String::new(), |mut out, chunk| {
            for c in chunk.valid().chars() {
                match byte(c) {
                    None => out.push(c),
                    Some(_) => c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| out.push(character(b))),
                }
            }
            chunk.invalid().iter().for_each(|b| out.push(character(*b)));
            out
        })),
    }
}

/// The bytes that a text stands for.
pub fn bytes(text: &str) -> Cow<'_, [u8]> {
    if !has_foreign(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(out)
}

fn has_foreign(text: &str) -> bool {
    text.as_bytes().contains(&LEAD) && text.chars().any(|c| byte(c).is_some())
}

/// The byte that a character stands for.
fn byte(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST).and_then(|n| u8::try_from(n).ok()).filter(|b| *b >= 0x80)
}

fn character(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_kind_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let own = "\u{10ff80}\u{10ffff}\u{10ff7f}é";
        let mixed = [b"a\xff\xfe".as_slice(), own.as_bytes(), b"\xc3", "ü\u{10fffe}".as_bytes()].concat();
        for case in [&b""[..], b"plain", "größe".as_bytes(), b"caf\xe9", own.as_bytes(), &all, &mixed] {
            assert_eq!(bytes(&text(case)), case);
        }
    }

    #[test]
    fn what_is_text_stays_as_it_is() {
        assert!(matches!(text("größe".as_bytes()), Cow::Borrowed("größe")));
        assert!(matches!(bytes("größe"), Cow::Borrowed(_)));
        assert_eq!(text(b"caf\xe9 x").chars().count(), 6);
    }
}
