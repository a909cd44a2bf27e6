//! A value to look up, and the conversions that matching implies (manual 7.1, the table of
//! types and kinds): an integer is compared with strings as its decimal digits, an address as
//! its text, a string with addresses as the address that it spells.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The value of a sample, borrowed for one look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A string.
    Str(&'a [u8]),
    /// A block of bytes. As text it ends before its first NUL.
    Bin(&'a [u8]),
}

/// Room for the text, or the bytes, of a value that is neither.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: [u8; 48],
    len: usize,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch { bytes: [0; 48], len: 0 }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) -> &[u8] {
        let mut rest = &mut self.bytes[..];
        let room = rest.len();
        let _ = rest.write_fmt(text);
        self.len = room - rest.len();
        &self.bytes[..self.len]
    }

    fn hold<const N: usize>(&mut self, bytes: &[u8; N]) -> &[u8] {
        self.bytes[..N].copy_from_slice(bytes);
        &self.bytes[..N]
    }
}

impl<'a> From<IpAddr> for Value<'a> {
    fn from(addr: IpAddr) -> Value<'a> {
        match addr {
            IpAddr::V4(a) => Value::Ipv4(a),
            IpAddr::V6(a) => Value::Ipv6(a),
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn as_text<'s>(&self, scratch: &'s mut Scratch) -> &'s [u8]
    where
        'a: 's,
    {
        match *self {
            Value::Bool(b) => scratch.put(format_args!("{}", u8::from(b))),
            Value::Int(i) => scratch.put(format_args!("{i}")),
            Value::Ipv4(a) => scratch.put(format_args!("{a}")),
            Value::Ipv6(a) => scratch.put(format_args!("{}", crate::net::Shown(a))),
            Value::Str(s) => s,
            Value::Bin(b) => b.split(|c| *c == 0).next().unwrap_or_default(),
        }
    }

    /// Numbers take eight bytes, the highest first.
    pub(crate) fn as_bytes<'s>(&self, scratch: &'s mut Scratch) -> &'s [u8]
    where
        'a: 's,
    {
        match *self {
            Value::Bool(b) => scratch.hold(&i64::from(b).to_be_bytes()),
            Value::Int(i) => scratch.hold(&i.to_be_bytes()),
            Value::Ipv4(a) => scratch.hold(&a.octets()),
            Value::Ipv6(a) => scratch.hold(&a.octets()),
            Value::Str(b) | Value::Bin(b) => b,
        }
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        match *self {
            Value::Bool(b) => Some(i64::from(b)),
            Value::Int(i) => Some(i),
            Value::Ipv4(a) => Some(i64::from(u32::from(a))),
            Value::Ipv6(_) => None,
            Value::Str(s) | Value::Bin(s) => leading_int(s),
        }
    }

    pub(crate) fn as_bool(&self) -> bool {
        self.as_int().is_some_and(|i| i != 0)
    }

    pub(crate) fn as_addr(&self) -> Option<IpAddr> {
        match *self {
            Value::Bool(_) => None,
            Value::Int(i) => Some(IpAddr::V4(Ipv4Addr::from(u32::try_from(i).ok()?))),
            Value::Ipv4(a) => Some(IpAddr::V4(a)),
            Value::Ipv6(a) => Some(IpAddr::V6(a)),
            Value::Str(s) | Value::Bin(s) => crate::net::parse_value(s),
        }
    }
}

/// The number that a string begins with: a sign, digits, and whatever follows. No digits are zero, more than
/// fit are the largest number. An empty string is no number at all.
fn leading_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|c| c.is_ascii_digit());
    let add = |n: i64, c: &u8| {
        let digit = i64::from(c - b'0');
        n.saturating_mul(10).saturating_add(if negative { -digit } else { digit })
    };
    Some(digits.fold(0, add))
}
