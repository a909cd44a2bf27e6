//! The NetScaler Client IP insertion protocol (netscaler-client-ip-insertion-protocol.txt): a magic number,
//! then the IP and TCP headers of the client's own packet.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Error, Header, Parsed};

/// Reads such a header; `magic` is the number that `accept-netscaler-cip` gives.
///
/// # Errors
/// There is none, or it is malformed.
pub fn parse(input: &[u8], magic: u32) -> Result<Parsed, Error> {
    // HAProxy looks at the magic number when the longer of the two forms is there.
    let Some(start) = input.first_chunk::<12>() else { return Ok(Parsed::Partial) };
    let [m0, m1, m2, m3, l0, l1, l2, l3, kind, _, h0, h1] = *start;
    if u32::from_be_bytes([m0, m1, m2, m3]) != magic {
        return Err(Error::NotProxy);
    }
    // The legacy form gives the length of the packet headers before them, the standard one the length of all,
    // which HAProxy does not look at, a type, and then the length of the packet headers.
    let (offset, length) = match kind >> 4 {
        4 | 6 => (8, u32::from_be_bytes([l0, l1, l2, l3])),
        _ => (12, u32::from(u16::from_be_bytes([h0, h1]))),
    };
    if !(40..=500).contains(&length) {
        return Err(Error::Malformed);
    }
    let total = usize::try_from(length).map_err(|_| Error::Malformed)?.saturating_add(offset);
    let Some(packet) = input.get(offset..total) else { return Ok(Parsed::Partial) };
    let addresses = match packet.first().map(|b| b >> 4) {
        Some(4) => v4(packet),
        Some(6) => v6(packet),
        _ => None,
    };
    let addresses = addresses.ok_or(Error::Malformed)?;
    let header = Header { addresses: Some(addresses), local: false, unix: false, tlvs: Vec::new() };
    Ok(Parsed::Complete(header, total))
}

fn ports(tcp: &[u8]) -> Option<(u16, u16)> {
    let b = tcp.first_chunk::<4>()?;
    Some((u16::from_be_bytes([b[0], b[1]]), u16::from_be_bytes([b[2], b[3]])))
}

fn v4(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    if header < 20 || *packet.get(9)? != 6 {
        return None;
    }
    let ip = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
    let (src_port, dst_port) = ports(packet.get(header..)?)?;
    Some(((ip(12)?, src_port).into(), (ip(16)?, dst_port).into()))
}

fn v6(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    if *packet.get(6)? != 6 {
        return None;
    }
    let ip = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
    let (src_port, dst_port) = ports(packet.get(40..)?)?;
    Some(((ip(8)?, src_port).into(), (ip(24)?, dst_port).into()))
}
