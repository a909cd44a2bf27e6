//! Reading headers, whole or in pieces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::tlv::{self, Tlvs};
use super::{Error, Header, Parsed, V1_MAX, V2_MAX, V2_SIGNATURE};

/// Reads a header of either version from the start of `input`.
///
/// # Errors
/// There is none, or it is malformed.
pub fn parse(input: &[u8]) -> Result<Parsed, Error> {
    let starts = |with: &[u8]| {
        let n = input.len().min(with.len());
        input[..n] == with[..n]
    };
    if starts(V2_SIGNATURE) {
        return if input.len() < 16 { Ok(Parsed::Partial) } else { v2(input) };
    }
    if starts(b"PROXY ") {
        return if input.len() < 6 { Ok(Parsed::Partial) } else { v1(input) };
    }
    Err(Error::NotProxy)
}

fn v1(input: &[u8]) -> Result<Parsed, Error> {
    let header = |addresses, local| Header { addresses, local, unix: false, tlvs: Vec::new() };
    let kind = input.get(6..).unwrap_or_default();
    // What would stand behind UNKNOWN means nothing to anybody; HAProxy takes no such header.
    let unknown = b"UNKNOWN\r\n";
    if kind.starts_with(unknown) {
        return Ok(Parsed::Complete(header(None, true), 6 + unknown.len()));
    }
    let is_v6 = kind.starts_with(b"TCP6 ");
    if !is_v6 && !kind.starts_with(b"TCP4 ") {
        let begun = [&unknown[..], b"TCP4 ", b"TCP6 "].iter().any(|word| word.starts_with(kind));
        return if begun { Ok(Parsed::Partial) } else { Err(Error::Unhandled) };
    }
    let Some(end) = memchr::memchr(b'\n', &input[..input.len().min(V1_MAX)]) else {
        return if input.len() >= V1_MAX { Err(Error::TooLong) } else { Ok(Parsed::Partial) };
    };
    let line = input[..end].strip_suffix(b"\r").ok_or(Error::Malformed)?;
    let text = std::str::from_utf8(line).map_err(|_| Error::Malformed)?;
    let mut words = text.split(' ').skip(2);
    let mut address = || {
        let word = words.next()?;
        if is_v6 { word.parse().ok().map(IpAddr::V6) } else { decimal_address(word).map(IpAddr::V4) }
    };
    let (src, dst) = address().zip(address()).ok_or(Error::Malformed)?;
    let mut port = || words.next().and_then(decimal_port);
    let (src_port, dst_port) = port().zip(port()).ok_or(Error::Malformed)?;
    if words.next().is_some() {
        return Err(Error::Malformed);
    }
    let addresses = (SocketAddr::new(src, src_port), SocketAddr::new(dst, dst_port));
    Ok(Parsed::Complete(header(Some(addresses), false), end + 1))
}

/// Digits only, without a sign; zeroes may lead.
fn decimal_port(word: &str) -> Option<u16> {
    if word.bytes().all(|b| b.is_ascii_digit()) { word.parse().ok() } else { None }
}

/// Four numbers with dots, decimal also when zeroes lead.
fn decimal_address(word: &str) -> Option<Ipv4Addr> {
    let mut parts = word.split('.').map(|part| decimal_port(part).and_then(|n| u8::try_from(n).ok()));
    let mut next = || parts.next().flatten();
    let address = Ipv4Addr::new(next()?, next()?, next()?, next()?);
    parts.next().is_none().then_some(address)
}

fn v2(input: &[u8]) -> Result<Parsed, Error> {
    let [version, family] = [input[12], input[13]];
    let length = usize::from(u16::from_be_bytes([input[14], input[15]]));
    let total = 16 + length;
    if version >> 4 != 2 {
        return Err(Error::NotProxy);
    }
    if version & 0x0f > 1 {
        return Err(Error::Malformed);
    }
    if total > V2_MAX {
        return Err(Error::TooLong);
    }
    let Some(body) = input.get(16..total) else { return Ok(Parsed::Partial) };
    let local = version & 0x0f == 0;
    let mut header = Header { addresses: None, local, unix: false, tlvs: Vec::new() };
    // LOCAL has no addresses: what follows are records. Datagrams and Unix sockets are no connections to us.
    let taken = match family {
        _ if local => 0,
        0x11 => {
            header.addresses = Some(v4(body).ok_or(Error::Malformed)?);
            12
        }
        0x21 => {
            header.addresses = Some(v6(body).ok_or(Error::Malformed)?);
            36
        }
        _ => return Err(Error::Malformed),
    };
    let tlvs = body.get(taken..).ok_or(Error::Malformed)?;
    if !Tlvs(tlvs).are_sound() || Tlvs(tlvs).any(|(kind, value)| value.len() > tlv::longest(kind)) {
        return Err(Error::Malformed);
    }
    check_sum(&input[..total], 16 + taken)?;
    header.tlvs = tlvs.to_vec();
    Ok(Parsed::Complete(header, total))
}

fn v4(body: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let b = body.first_chunk::<12>()?;
    let ip = |i: usize| Ipv4Addr::new(b[i], b[i + 1], b[i + 2], b[i + 3]);
    let port = |i: usize| u16::from_be_bytes([b[i], b[i + 1]]);
    Some(((ip(0), port(8)).into(), (ip(4), port(10)).into()))
}

fn v6(body: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let b = body.first_chunk::<36>()?;
    let ip = |i: usize| b[i..].first_chunk::<16>().map(|a| Ipv6Addr::from(*a));
    let port = |i: usize| u16::from_be_bytes([b[i], b[i + 1]]);
    Some(((ip(0)?, port(32)).into(), (ip(16)?, port(34)).into()))
}

/// The checksum covers the header with the checksum itself as zeroes.
fn check_sum(header: &[u8], tlvs_at: usize) -> Result<(), Error> {
    let mut at = tlvs_at;
    let Some(tlvs) = header.get(tlvs_at..) else { return Ok(()) };
    for (kind, value) in Tlvs(tlvs) {
        if kind == tlv::CRC32C {
            let sent = value.first_chunk::<4>().filter(|_| value.len() == 4).ok_or(Error::Malformed)?;
            let mut copy = header.to_vec();
            if let Some(field) = copy.get_mut(at + 3..at + 7) {
                field.fill(0);
            }
            return if base::hash::crc32c(&copy) == u32::from_be_bytes(*sent) {
                Ok(())
            } else {
                Err(Error::Checksum)
            };
        }
        at += 3 + value.len();
    }
    Ok(())
}
