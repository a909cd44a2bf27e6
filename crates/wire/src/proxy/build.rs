//! Writing headers.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use super::V2_SIGNATURE;
use super::tlv;

/// Appends a version 1 header; `None`: of unknown origin.
pub fn v1(addresses: Option<(SocketAddr, SocketAddr)>, out: &mut Vec<u8>) {
    // Writing into a Vec can't fail.
    let _ = match addresses.map(same_family) {
        None => write!(out, "PROXY UNKNOWN\r\n"),
        Some((src, dst)) => {
            let family = if src.is_ipv4() { "TCP4" } else { "TCP6" };
            write!(out, "PROXY {family} {} {} {} {}\r\n", src.ip(), dst.ip(), src.port(), dst.port())
        }
    };
}

/// What goes into a version 2 header beside the addresses.
#[derive(Clone, Debug, Default)]
pub struct V2Options<'o> {
    /// Records, each a type and a value, in order.
    pub tlvs: &'o [(u8, Vec<u8>)],
    /// How many of them stand before a CRC32c, if there is to be one.
    pub checksum: Option<usize>,
}

/// Appends a version 2 header; `None`: LOCAL, the connection is the proxy's own.
pub fn v2(addresses: Option<(SocketAddr, SocketAddr)>, options: &V2Options<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(V2_SIGNATURE);
    match addresses.map(same_family) {
        None => out.extend_from_slice(&[0x20, 0x00, 0, 0]),
        Some((src, dst)) => {
            out.extend_from_slice(&[0x21, if src.is_ipv4() { 0x11 } else { 0x21 }, 0, 0]);
            for a in [src, dst] {
                match a.ip() {
                    IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
                    IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
                }
            }
            out.extend_from_slice(&src.port().to_be_bytes());
            out.extend_from_slice(&dst.port().to_be_bytes());
        }
    }
    let (before, after) = options.tlvs.split_at(options.checksum.unwrap_or_default().min(options.tlvs.len()));
    let put = |tlvs: &[(u8, Vec<u8>)], out: &mut Vec<u8>| {
        tlvs.iter().for_each(|(kind, value)| tlv::append(*kind, value, out));
    };
    put(before, out);
    let sum_at = options.checksum.map(|_| {
        tlv::append(tlv::CRC32C, &[0; 4], out);
        out.len() - 4
    });
    put(after, out);
    let length = u16::try_from(out.len() - start - 16).unwrap_or(u16::MAX);
    out[start + 14..start + 16].copy_from_slice(&length.to_be_bytes());
    if let Some(at) = sum_at {
        let sum = base::hash::crc32c(&out[start..]);
        out[at..at + 4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Addresses of different families are both written as IPv6.
fn same_family((src, dst): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    if src.is_ipv4() == dst.is_ipv4() {
        return (src, dst);
    }
    let wide = |a: SocketAddr| match a.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), a.port()),
        IpAddr::V6(_) => a,
    };
    (wide(src), wide(dst))
}
