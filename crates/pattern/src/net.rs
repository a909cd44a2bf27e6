//! Addresses and networks as patterns write them (manual 7.1.6).
//!
//! An IPv4 pattern may leave out octets (`10.1` is 10.0.0.1) and carry its mask as a bit count
//! or as an address; an IPv6 mask is a bit count. What a mask leaves out is cleared.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Net {
    /// Address and mask; the mask may have holes.
    V4(u32, u32),
    /// Address and bit count.
    V6(u128, u8),
}

impl Net {
    /// How many bits a value must agree with: the longer wins in maps.
    pub(crate) fn len(&self) -> u32 {
        match *self {
            Net::V4(_, mask) => mask.count_ones(),
            Net::V6(_, bits) => u32::from(bits),
        }
    }

    /// Whether `addr` lies inside, over both families as the manual defines it.
    pub(crate) fn contains(&self, addr: IpAddr) -> bool {
        match (*self, addr) {
            (Net::V4(net, mask), IpAddr::V4(a)) => u32::from(a) & mask == net,
            (Net::V4(net, mask), IpAddr::V6(a)) => embedded_v4(a).is_some_and(|a| a & mask == net),
            (Net::V6(net, bits), IpAddr::V6(a)) => u128::from(a) & mask6(bits) == net,
            (Net::V6(net, bits), IpAddr::V4(a)) => mapped(u32::from(a)) & mask6(bits) == net,
        }
    }
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
pub(crate) fn embedded_v4(a: Ipv6Addr) -> Option<u32> {
    let bits = u128::from(a);
    let low = (bits & 0xffff_ffff) as u32;
    match bits >> 32 {
        0 | 0xffff => Some(low),
        _ if bits >> 112 == 0x2002 => Some(((bits >> 80) & 0xffff_ffff) as u32),
        _ => None,
    }
}

/// A string sample as an address.
pub(crate) fn parse_value(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a pattern.
pub(crate) fn parse(text: &[u8]) -> Option<Net> {
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
        Some(m) if m.contains(&b'.') => dotted(m)?,
        Some(m) => mask4(bit_count(m, 32)?),
    };
    Some(Net::V4(dotted(addr)? & mask, mask))
}

fn bit_count(text: &[u8], most: u8) -> Option<u8> {
    let bits = digits(text)?;
    u8::try_from(bits).ok().filter(|b| *b <= most)
}

fn digits(text: &[u8]) -> Option<u32> {
    if text.is_empty() || text.len() > 9 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |n, c| n * 10 + u32::from(c - b'0')))
}

/// One to four numbers; the last one fills the lowest octet and those left out are zero.
fn dotted(text: &[u8]) -> Option<u32> {
    let mut octets = [0u8; 4];
    let mut count = 0;
    let mut parts = text.split(|c| *c == b'.').peekable();
    while let Some(part) = parts.next() {
        let n = u8::try_from(digits(part)?).ok()?;
        let place = if parts.peek().is_none() { 3 } else { count };
        if count > 3 || place < count {
            return None;
        }
        octets[place] = n;
        count += 1;
    }
    Some(u32::from(Ipv4Addr::from(octets)))
}
