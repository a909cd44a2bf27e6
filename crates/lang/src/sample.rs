//! Values and the conversions between their types (manual, section 7.1 and the table of 7.3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bumpalo::Bump;
use model::vars::Owned;

/// The type of a sample, as signatures and `-dK` dumps name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Any of the others.
    Any,
    /// `same`: a converter gives the type that it was given.
    Same,
    /// `bool`.
    Bool,
    /// `sint`: a signed 64-bit integer.
    Int,
    /// `addr`: IPv4 or IPv6.
    Addr,
    /// `ipv4`.
    Ipv4,
    /// `ipv6`.
    Ipv6,
    /// `str`.
    Str,
    /// `bin`.
    Bin,
    /// `meth`: an HTTP method.
    Method,
}

impl Type {
    /// The word used in signatures.
    pub fn word(self) -> &'static str {
        match self {
            Type::Any => "any",
            Type::Same => "same",
            Type::Bool => "bool",
            Type::Int => "sint",
            Type::Addr => "addr",
            Type::Ipv4 => "ipv4",
            Type::Ipv6 => "ipv6",
            Type::Str => "str",
            Type::Bin => "bin",
            Type::Method => "meth",
        }
    }

    /// Whether a value of this type can be turned into `to` at all. Checked when rules are parsed.
    pub fn casts_to(self, to: Type) -> bool {
        use Type::*;
        match (self, to) {
            (a, b) if a == b => true,
            (Any | Same, _) | (_, Any | Same) => true,
            (Bool, Int | Str | Bin) => true,
            (Int, Bool | Str | Bin | Addr | Ipv4 | Ipv6) => true,
            (Addr, Ipv4 | Ipv6 | Str | Bin) => true,
            (Ipv4, Int | Addr | Ipv6 | Str | Bin) => true,
            (Ipv6, Addr | Ipv4 | Str | Bin) => true,
            (Str, Bool | Int | Addr | Ipv4 | Ipv6 | Bin | Method) => true,
            (Bin, Str | Method) => true,
            (Method, Str | Bin) => true,
            _ => false,
        }
    }
}

/// A value. Its bytes live in the message, in the program or in the arena of the evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Boolean.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// IPv4 address.
    Ipv4(Ipv4Addr),
    /// IPv6 address.
    Ipv6(Ipv6Addr),
    /// Text.
    Str(&'a [u8]),
    /// Bytes.
    Bin(&'a [u8]),
    /// HTTP method, by name.
    Method(&'a [u8]),
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// There is none and there will be none.
    None,
    /// Not yet: more data may bring one (`inspect-delay`).
    Later,
}

/// What a fetch or a converter found.
pub type Found<'a> = Result<Value<'a>, Miss>;

impl<'a> Value<'a> {
    /// The type of the value.
    pub fn kind(&self) -> Type {
        match self {
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Ipv4(_) => Type::Ipv4,
            Value::Ipv6(_) => Type::Ipv6,
            Value::Str(_) => Type::Str,
            Value::Bin(_) => Type::Bin,
            Value::Method(_) => Type::Method,
        }
    }

    /// The value as text; numbers and addresses are printed into the arena, bytes become hexadecimal
    /// digits only where the manual says so (here they pass as they are).
    pub fn text(self, arena: &'a Bump) -> &'a [u8] {
        match self {
            Value::Str(s) | Value::Bin(s) | Value::Method(s) => s,
            Value::Bool(b) => {
                if b {
                    b"1"
                } else {
                    b"0"
                }
            }
            Value::Int(i) => print(arena, format_args!("{i}")),
            Value::Ipv4(a) => arena.alloc_slice_copy(base::text::ipv4(a, &mut [0; base::text::IPV4_MAX])),
            Value::Ipv6(a) => print(arena, format_args!("{a}")),
        }
    }

    /// Appends the value as text to `out`.
    pub fn append_text(self, out: &mut Vec<u8>) {
        use std::io::Write;
        // Writing into a Vec can't fail.
        let _ = match self {
            Value::Str(s) | Value::Bin(s) | Value::Method(s) => {
                out.extend_from_slice(s);
                Ok(())
            }
            Value::Bool(b) => {
                out.push(if b { b'1' } else { b'0' });
                Ok(())
            }
            Value::Int(i) => {
                append_int(out, i);
                Ok(())
            }
            Value::Ipv4(a) => {
                out.extend_from_slice(base::text::ipv4(a, &mut [0; base::text::IPV4_MAX]));
                Ok(())
            }
            Value::Ipv6(a) => write!(out, "{}", pattern::Shown(a)),
        };
    }

    /// The value as bytes: integers big-endian in 8 bytes, addresses in network order.
    pub fn binary(self, arena: &'a Bump) -> &'a [u8] {
        match self {
            Value::Str(s) | Value::Bin(s) | Value::Method(s) => s,
            Value::Bool(b) => arena.alloc_slice_copy(&i64::from(b).to_be_bytes()),
            Value::Int(i) => arena.alloc_slice_copy(&i.to_be_bytes()),
            Value::Ipv4(a) => arena.alloc_slice_copy(&a.octets()),
            Value::Ipv6(a) => arena.alloc_slice_copy(&a.octets()),
        }
    }

    /// The value as an integer, if it can be one. Text is read as HAProxy does: an optional sign and
    /// digits, up to the first other character; without digits it is 0, and empty it is none.
    pub fn int(self) -> Option<i64> {
        match self {
            Value::Bool(b) => Some(i64::from(b)),
            Value::Int(i) => Some(i),
            Value::Ipv4(a) => Some(i64::from(u32::from(a))),
            Value::Ipv6(_) | Value::Method(_) => None,
            Value::Str(b"") => None,
            Value::Str(s) => Some(parse_int(s).unwrap_or(0)),
            Value::Bin(b) => Some(b.iter().take(8).fold(0, |n, c| (n << 8) | i64::from(*c))),
        }
    }

    /// The value as a truth value.
    pub fn truth(self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(b),
            Value::Int(i) => Some(i != 0),
            Value::Str(b"") => None,
            Value::Str(s) | Value::Bin(s) => Some(parse_int(s).is_some_and(|i| i != 0)),
            _ => None,
        }
    }

    /// The value as an address.
    pub fn addr(self) -> Option<IpAddr> {
        match self {
            Value::Ipv4(a) => Some(a.into()),
            Value::Ipv6(a) => Some(a.into()),
            Value::Int(i) => Some(Ipv4Addr::from(i as u32).into()),
            Value::Str(s) => address(s),
            _ => None,
        }
    }

    /// Converts to a type, as a converter's or an action's input demands.
    #[inline]
    pub fn cast(self, to: Type, arena: &'a Bump) -> Option<Value<'a>> {
        if to == Type::Any || (to == self.kind() && to != Type::Method) {
            return Some(self);
        }
        self.cast_other(to, arena)
    }

    fn cast_other(self, to: Type, arena: &'a Bump) -> Option<Value<'a>> {
        Some(match to {
            Type::Any | Type::Same => self,
            Type::Bool => Value::Bool(self.truth()?),
            Type::Int => Value::Int(self.int()?),
            Type::Addr => self.addr()?.into(),
            Type::Ipv4 => match self {
                Value::Ipv6(a) => Value::Ipv4(pattern::embedded_v4(a)?.into()),
                Value::Str(s) => Value::Ipv4(ipv4(s)?),
                other => match other.addr()? {
                    IpAddr::V4(a) => Value::Ipv4(a),
                    IpAddr::V6(_) => return None,
                },
            },
            Type::Ipv6 => match self.addr()? {
                IpAddr::V4(a) => Value::Ipv6(a.to_ipv6_mapped()),
                IpAddr::V6(a) => Value::Ipv6(a),
            },
            // As text, bytes end before their first NUL.
            Type::Str => Value::Str(match self {
                Value::Bin(b) => b.split(|c| *c == 0).next().unwrap_or_default(),
                other => other.text(arena),
            }),
            Type::Bin => Value::Bin(self.binary(arena)),
            Type::Method => Value::Method(self.text(arena)),
        })
    }

    /// A copy that outlives the evaluation.
    pub fn to_owned_value(self) -> Owned {
        match self {
            Value::Bool(b) => Owned::Bool(b),
            Value::Int(i) => Owned::Int(i),
            Value::Ipv4(a) => Owned::Ipv4(a),
            Value::Ipv6(a) => Owned::Ipv6(a),
            Value::Str(s) => Owned::Str(s.into()),
            Value::Bin(s) => Owned::Bin(s.into()),
            Value::Method(s) => Owned::Method(s.into()),
        }
    }

    /// A value kept earlier, its bytes copied into the arena.
    pub fn from_owned(v: &Owned, arena: &'a Bump) -> Value<'a> {
        match v {
            Owned::Bool(b) => Value::Bool(*b),
            Owned::Int(i) => Value::Int(*i),
            Owned::Ipv4(a) => Value::Ipv4(*a),
            Owned::Ipv6(a) => Value::Ipv6(*a),
            Owned::Str(s) => Value::Str(arena.alloc_slice_copy(s)),
            Owned::Bin(s) => Value::Bin(arena.alloc_slice_copy(s)),
            Owned::Method(s) => Value::Method(arena.alloc_slice_copy(s)),
        }
    }

    /// The value as the pattern indexes take it.
    pub fn for_pattern(self) -> pattern::Value<'a> {
        match self {
            Value::Bool(b) => pattern::Value::Bool(b),
            Value::Int(i) => pattern::Value::Int(i),
            Value::Ipv4(a) => pattern::Value::Ipv4(a),
            Value::Ipv6(a) => pattern::Value::Ipv6(a),
            Value::Str(s) | Value::Method(s) => pattern::Value::Str(s),
            Value::Bin(s) => pattern::Value::Bin(s),
        }
    }
}

impl From<IpAddr> for Value<'_> {
    fn from(a: IpAddr) -> Self {
        match a {
            IpAddr::V4(a) => Value::Ipv4(a),
            IpAddr::V6(a) => Value::Ipv6(a),
        }
    }
}

/// An address as text. What follows an IPv4 address (a port, a mask) is passed over, as HAProxy does.
fn address(text: &[u8]) -> Option<IpAddr> {
    let Some(v4) = ipv4(text) else { return std::str::from_utf8(text).ok()?.parse().ok() };
    Some(v4.into())
}

fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut rest = text;
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        let (number, tail) = rest.split_at_checked(digits)?;
        *octet = std::str::from_utf8(number).ok()?.parse().ok()?;
        rest = tail;
    }
    (rest.first() != Some(&b'.')).then_some(octets.into())
}

/// Reads an optional sign and digits from the start of `s`; saturates; `None` without a digit.
pub fn parse_int(s: &[u8]) -> Option<i64> {
    let (negative, digits) = match s.first()? {
        b'-' => (true, &s[1..]),
        b'+' => (false, &s[1..]),
        _ => (false, s),
    };
    let n = digits.iter().take_while(|c| c.is_ascii_digit()).count();
    if n == 0 {
        return None;
    }
    let sign = if negative { -1 } else { 1 };
    let digit = |c: &u8| sign * i64::from(c - b'0');
    Some(digits[..n].iter().fold(0i64, |v, c| v.saturating_mul(10).saturating_add(digit(c))))
}

/// Appends a decimal number without going through `fmt`.
pub fn append_int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(base::text::int(value.unsigned_abs(), &mut [0; base::text::INT_MAX]));
}

fn print<'a>(arena: &'a Bump, text: std::fmt::Arguments<'_>) -> &'a [u8] {
    use std::fmt::Write;
    let mut s = bumpalo::collections::String::new_in(arena);
    let _ = s.write_fmt(text);
    s.into_bump_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_up_to_the_first_other_character() {
        assert_eq!(parse_int(b"12ab"), Some(12));
        assert_eq!(parse_int(b"-7"), Some(-7));
        assert_eq!(parse_int(b"x"), None);
        assert_eq!(parse_int(b""), None);
        assert_eq!(parse_int(b"99999999999999999999"), Some(i64::MAX));
    }

    #[test]
    fn numbers_are_printed_whole() {
        let mut out = Vec::new();
        for n in [0, 7, -1, i64::MIN, i64::MAX] {
            out.clear();
            append_int(&mut out, n);
            assert_eq!(String::from_utf8_lossy(&out), n.to_string());
        }
    }

    #[test]
    fn an_ipv4_address_becomes_a_mapped_ipv6_one() {
        let arena = Bump::new();
        let v = Value::Str(b"10.0.0.1").cast(Type::Ipv6, &arena);
        assert_eq!(v, Some(Value::Ipv6("::ffff:10.0.0.1".parse().unwrap())));
    }
}
