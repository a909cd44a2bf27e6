//! Addresses and networks as patterns write them (manual 7.1.6).
//!
//! An IPv4 pattern is four numbers, and may carry its mask as a bit count or as an address; an IPv6 mask is a
//! bit count. What a mask leaves out is cleared. Files of ACLs (but not of maps, nor what comes at run time,
//! nor after `-n`) may also have the short and the odd forms that resolvers know, and host names. Those are
//! asked for once in a process and remembered, so that a set can be indexed anew at run time without waiting
//! for anybody.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// A network of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Net {
    /// Address and mask; the mask may have holes.
    V4(u32, u32),
    /// Address and bit count.
    V6(u128, u8),
}

impl Net {
    /// The weight with which `addr` lies inside, over both families as the manual defines it: networks of the
    /// value's own family come before those of the other, long ones before short ones, and masks with holes
    /// last.
    pub(crate) fn weigh(&self, addr: IpAddr) -> Option<u32> {
        let (hit, weight) = match (*self, addr) {
            (Net::V4(net, mask), IpAddr::V4(a)) => (u32::from(a) & mask == net, weight4(mask, OWN)),
            (Net::V4(net, mask), IpAddr::V6(a)) => {
                (embedded_v4(a).is_some_and(|a| a & mask == net), weight4(mask, OTHER))
            }
            (Net::V6(net, bits), IpAddr::V6(a)) => {
                (u128::from(a) & mask6(bits) == net, OWN + u32::from(bits))
            }
            (Net::V6(net, bits), IpAddr::V4(a)) => {
                (mapped(u32::from(a)) & mask6(bits) == net, OTHER + u32::from(bits))
            }
        };
        hit.then_some(weight)
    }
}

/// Added to the weight of a network of the value's own family.
pub(crate) const OWN: u32 = 512;
/// Added to the weight of a network of the other family.
pub(crate) const OTHER: u32 = 256;

fn weight4(mask: u32, family: u32) -> u32 {
    if is_prefix(mask) { family + mask.count_ones() } else { 0 }
}

/// Whether a mask has no holes.
pub(crate) fn is_prefix(mask: u32) -> bool {
    mask.leading_ones() == mask.count_ones()
}

/// The mask of a bit count.
pub(crate) fn mask6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0)
}

/// The mask of a bit count.
pub(crate) fn mask4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

/// `::ffff:a.b.c.d`.
pub(crate) fn mapped(a: u32) -> u128 {
    0xffff_0000_0000 | u128::from(a)
}

/// The IPv4 address inside `2002:IPV4::`, `::IPV4` or `::ffff:IPV4`.
pub fn embedded_v4(a: Ipv6Addr) -> Option<u32> {
    let bits = u128::from(a);
    let low = (bits & 0xffff_ffff) as u32;
    match bits >> 32 {
        0 | 0xffff => Some(low),
        _ if bits >> 112 == 0x2002 => Some(((bits >> 80) & 0xffff_ffff) as u32),
        _ => None,
    }
}

/// An IPv6 address as the C library writes it: one that is an IPv4 address after 96 zero bits ends in the
/// form of that.
#[derive(Clone, Copy, Debug)]
pub struct Shown(pub Ipv6Addr);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match u32::try_from(u128::from(self.0)) {
            Ok(low) if low > 0xffff => write!(f, "::{}", std::net::Ipv4Addr::from(low)),
            _ => self.0.fmt(f),
        }
    }
}

/// A string sample as an address: an IPv4 address ends where its fourth number does, whatever follows; an
/// IPv6 address fills the whole string.
pub fn parse_value(text: &[u8]) -> Option<IpAddr> {
    if text.contains(&b':')
        && let Ok(addr) = std::str::from_utf8(text).ok()?.parse::<Ipv6Addr>()
    {
        return Some(addr.into());
    }
    let mut address = 0u32;
    let mut rest = text;
    for n in 0..4 {
        let count = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        let (octet, behind) = rest.split_at(count);
        address = address << 8 | octet_of(octet)?;
        rest = match behind {
            [b'.', rest @ ..] if n < 3 => rest,
            [b'.', ..] => return None,
            _ if n < 3 => return None,
            rest => rest,
        };
    }
    Some(Ipv4Addr::from(address).into())
}

fn octet_of(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    let n = digits.iter().fold(0u32, |n, c| n.saturating_mul(10).saturating_add(u32::from(c - b'0')));
    (n < 256).then_some(n)
}

/// Reads a pattern; `names` allows what only a resolver can read.
pub(crate) fn parse(text: &[u8], names: bool) -> Option<Net> {
    let mut parts = text.splitn(2, |c| *c == b'/');
    let addr = parts.next()?;
    let mask = parts.next();
    if addr.contains(&b':') {
        let addr: Ipv6Addr = std::str::from_utf8(addr).ok()?.parse().ok()?;
        let bits = mask.map_or(Some(128), |m| bit_count(m, 128))?;
        return Some(Net::V6(u128::from(addr) & mask6(bits), bits));
    }
    let mask = match mask {
        None => u32::MAX,
        Some(m) if m.contains(&b'.') => strict(m)?,
        Some(m) => mask4(bit_count(m, 32)?),
    };
    let addr = strict(addr).or_else(|| resolved(addr, names))?;
    Some(Net::V4(addr & mask, mask))
}

fn bit_count(text: &[u8], most: u8) -> Option<u8> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let bits = digits.iter().fold(0u32, |n, c| n.saturating_mul(10).saturating_add(u32::from(c - b'0')));
    u8::try_from(bits).ok().filter(|b| *b <= most)
}

/// Four decimal numbers without leading zeros.
pub(crate) fn strict(text: &[u8]) -> Option<u32> {
    let (address, len) = strict_prefix(text)?;
    (len == text.len()).then_some(address)
}

/// Four decimal numbers without leading zeros at the start of `text`, and their length. What follows is no
/// digit.
pub(crate) fn strict_prefix(text: &[u8]) -> Option<(u32, usize)> {
    let mut address = 0u32;
    let mut at = 0;
    for n in 0..4 {
        let octet = match *text.get(at..)? {
            [a, b, c, ..] if digit(a) && digit(b) && digit(c) => {
                at += 3;
                (a != b'0')
                    .then_some(u32::from(a - b'0') * 100 + u32::from(b - b'0') * 10 + u32::from(c - b'0'))?
            }
            [a, b, ..] if digit(a) && digit(b) => {
                at += 2;
                (a != b'0').then_some(u32::from(a - b'0') * 10 + u32::from(b - b'0'))?
            }
            [a, ..] if digit(a) => {
                at += 1;
                u32::from(a - b'0')
            }
            _ => return None,
        };
        if octet > 255 {
            return None;
        }
        address = address << 8 | octet;
        if n < 3 {
            if text.get(at) != Some(&b'.') {
                return None;
            }
            at += 1;
        }
    }
    match text.get(at) {
        Some(c) if digit(*c) => None,
        _ => Some((address, at)),
    }
}

fn digit(c: u8) -> bool {
    c.is_ascii_digit()
}

/// What resolvers said, by the text that they were asked.
static RESOLVED: Mutex<Option<HashMap<Vec<u8>, Option<u32>>>> = Mutex::new(None);

fn resolved(text: &[u8], ask: bool) -> Option<u32> {
    let known = |of: &Option<HashMap<_, _>>| of.as_ref().and_then(|m| m.get(text).copied());
    if let Some(answer) = known(&RESOLVED.lock().unwrap_or_else(PoisonError::into_inner)) {
        return answer;
    }
    if !ask {
        return None;
    }
    let answer = numbers(text).or_else(|| ask_resolver(text));
    let mut names = RESOLVED.lock().unwrap_or_else(PoisonError::into_inner);
    names.get_or_insert_default().insert(text.to_vec(), answer);
    answer
}

/// One to four numbers, the last of which fills all octets that are left; with a zero before them they are
/// octal.
fn numbers(text: &[u8]) -> Option<u32> {
    let parts: Vec<&[u8]> = text.split(|c| *c == b'.').collect();
    let (last, firsts) = parts.split_last()?;
    if firsts.len() > 3 {
        return None;
    }
    let mut address = 0u32;
    for (n, part) in firsts.iter().enumerate() {
        address |= number(part).filter(|p| *p < 256)? << (24 - 8 * n as u32);
    }
    let room = u32::MAX.checked_shr(8 * firsts.len() as u32)?;
    Some(address | number(last).filter(|p| *p <= room)?)
}

fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let radix = if text.len() > 1 && text[0] == b'0' { 8 } else { 10 };
    u32::from_str_radix(std::str::from_utf8(text).ok()?, radix).ok()
}

/// A name must have a letter, and not begin like a hexadecimal number.
fn ask_resolver(text: &[u8]) -> Option<u32> {
    let is_name = text.iter().any(u8::is_ascii_alphabetic)
        && !text.starts_with(b"0x")
        && text.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_'));
    if !is_name {
        return None;
    }
    let found = base::outside::addresses(std::str::from_utf8(text).ok()?);
    found.into_iter().find_map(|ip| match ip {
        IpAddr::V4(a) => Some(u32::from(a)),
        IpAddr::V6(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str, bits: u8) -> Option<Net> {
        let a: Ipv4Addr = text.parse().unwrap();
        Some(Net::V4(u32::from(a), mask4(bits)))
    }

    #[test]
    fn strict_forms() {
        assert_eq!(parse(b"1.2.3.4", false), v4("1.2.3.4", 32));
        assert_eq!(parse(b"1.2.3.4/008", false), v4("1.0.0.0", 8));
        assert_eq!(parse(b"1.2.3.4/+8", false), v4("1.0.0.0", 8));
        assert_eq!(parse(b"1.2.3.4/128.0.0.1", false), Some(Net::V4(0, 0x8000_0001)));
        assert_eq!(parse(b"::1/008", false), Some(Net::V6(0, 8)));
        for wrong in [
            "1.2.3.4/255",
            "1.2.3.4/8.0",
            "1.2.3.4/33",
            "1.2.3.4/",
            "/8",
            "::1/129",
            "::1/",
            "::1/-1",
            "1.2.3",
            "01.2.3.4",
            "1.2.3.256",
            "1..2.3",
            "1.2.3.4.",
            "",
            "1.2.3.4/8x",
            "localhost",
        ] {
            assert_eq!(parse(wrong.as_bytes(), false), None, "{wrong}");
        }
    }

    #[test]
    fn forms_for_a_resolver() {
        let cases = [
            ("10.12", "10.0.0.12"),
            ("192.168.256", "192.168.1.0"),
            ("16909060", "1.2.3.4"),
            ("1", "0.0.0.1"),
            ("010.2.3.4", "8.2.3.4"),
        ];
        for (text, same) in cases {
            assert_eq!(parse(text.as_bytes(), true), v4(same, 32), "{text}");
        }
        assert_eq!(parse(b"192.168.1/24", true), v4("192.168.0.0", 24));
        assert_eq!(parse(b"10.12", false), v4("10.0.0.12", 32), "once read it is known");
        for wrong in ["0x1.2.3.4", "1.2.3.", "256.1.1.1", ".1.2.3.4", "1.2.3.4.5"] {
            assert_eq!(parse(wrong.as_bytes(), true), None, "{wrong}");
        }
    }

    #[test]
    fn strings_as_addresses() {
        for text in ["1.2.3.4", "1.2.3.4x", "1.2.3.4/24", "1.2.3.4:80", "01.2.3.0004", "1.2.3.4 "] {
            assert_eq!(parse_value(text.as_bytes()), Some([1, 2, 3, 4].into()), "{text}");
        }
        for text in [
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.400",
            "::1x",
            "::1/64",
            "[::1]",
            "::1 ",
            " 1.2.3.4",
            "",
            "a",
            "256.1.1.1",
        ] {
            assert_eq!(parse_value(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_value(b"::ffff:1.2.3.4"), Some("::ffff:1.2.3.4".parse().unwrap()));
    }
}
