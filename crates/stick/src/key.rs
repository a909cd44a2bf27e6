//! Keys as bytes: addresses in network order, integers likewise, texts cut, blocks padded.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The kind of keys of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// `ip`, `ipv4`.
    Ip,
    /// `ipv6`.
    Ipv6,
    /// `integer`: 32 bits.
    Integer,
    /// `string`: at most so many bytes.
    Text(usize),
    /// `binary`: exactly so many bytes.
    Binary(usize),
}

/// Length of texts and blocks without `len`.
pub const DEFAULT_LEN: usize = 32;

impl KeyKind {
    /// The word that names it.
    pub fn word(self) -> &'static str {
        match self {
            KeyKind::Ip => "ip",
            KeyKind::Ipv6 => "ipv6",
            KeyKind::Integer => "integer",
            KeyKind::Text(_) => "string",
            KeyKind::Binary(_) => "binary",
        }
    }

    /// Bytes of a key where all have the same.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            KeyKind::Ip | KeyKind::Integer => Some(4),
            KeyKind::Ipv6 => Some(16),
            KeyKind::Text(_) => None,
            KeyKind::Binary(len) => Some(len),
        }
    }

    /// Whether a key that fits a table of this kind fits one of the other.
    pub fn is_like(self, other: KeyKind) -> bool {
        self.word() == other.word()
    }

    /// Appends a key as `show table` prints it.
    pub fn print(self, key: &[u8], out: &mut String) {
        // Writing to a String can't fail.
        let _ = match (self, key) {
            (KeyKind::Ip, [a, b, c, d]) => write!(out, "{}", Ipv4Addr::new(*a, *b, *c, *d)),
            (KeyKind::Ipv6, key) => match <[u8; 16]>::try_from(key) {
                Ok(octets) => write!(out, "{}", Ipv6Addr::from(octets)),
                Err(_) => Ok(()),
            },
            (KeyKind::Integer, [a, b, c, d]) => write!(out, "{}", u32::from_be_bytes([*a, *b, *c, *d])),
            (KeyKind::Binary(_), key) => key.iter().try_for_each(|byte| write!(out, "{byte:02X}")),
            (_, key) => {
                text(key, out);
                Ok(())
            }
        };
    }
}

/// Text with blanks, backslashes and what can't be printed as escapes.
fn text(key: &[u8], out: &mut String) {
    for byte in key {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x1b => out.push_str("\\e"),
            b' ' | b'\\' | b'=' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            0x21..=0x7e => out.push(char::from(*byte)),
            other => {
                let _ = write!(out, "\\x{other:02X}");
            }
        }
    }
}
