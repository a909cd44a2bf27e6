//! Headers of Ethernet, IP and TCP, as `fc_saved_syn` gives them (section 7.3.1, `eth.*`, `ip.*`, `tcp.*`).
//!
//! What is cut short has no value. Every reading is checked: the bytes came from a peer.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{bytes, made};
use crate::arg::{Arg, arg};
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
use crate::sample::{Found, Miss, Type, Value};

const fn block(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Bin, eval, doc, example)
}

const fn count(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Int, eval, doc, example)
}

const fn address(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Addr, eval, doc, example)
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    block(
        "eth.data",
        |_, v, _| part(eth(v)?.data),
        "What an Ethernet frame carries.",
        "fc_saved_syn,eth.data",
    ),
    block(
        "eth.dst",
        |_, v, _| cut(bytes(v), 0, 6),
        "Destination of an Ethernet frame.",
        "fc_saved_syn,eth.dst",
    ),
    block(
        "eth.hdr",
        |_, v, _| part(eth(v)?.header),
        "Header of an Ethernet frame, VLANs included.",
        "fc_saved_syn,eth.hdr",
    ),
    count(
        "eth.proto",
        |_, v, _| int(eth(v)?.protocol),
        "EtherType of an Ethernet frame, behind VLANs.",
        "fc_saved_syn,eth.proto",
    ),
    block("eth.src", |_, v, _| cut(bytes(v), 6, 6), "Source of an Ethernet frame.", "fc_saved_syn,eth.src"),
    count(
        "eth.vlan",
        |_, v, _| int(eth(v)?.vlan.ok_or(Miss::None)?),
        "Last VLAN of an Ethernet frame.",
        "fc_saved_syn,eth.vlan",
    ),
    block("ip.data", |_, v, _| part(Ip::of(v)?.data), "What an IP packet carries.", "fc_saved_syn,ip.data"),
    count(
        "ip.df",
        |_, v, _| dont_fragment(bytes(v)).and_then(int),
        "Whether an IP packet must not be fragmented, 1 or 0.",
        "fc_saved_syn,ip.df",
    ),
    address(
        "ip.dst",
        |_, v, _| Ip::of(v)?.address(16, 24),
        "Destination of an IP packet.",
        "fc_saved_syn,ip.dst",
    ),
    block("ip.fp", fingerprint, "Fingerprint of the IP and TCP headers of a SYN.", "fc_saved_syn,ip.fp(5)")
        .args("[integer]"),
    block(
        "ip.hdr",
        |_, v, _| part(Ip::of(v)?.header),
        "Header of an IP packet, options included.",
        "fc_saved_syn,ip.hdr",
    ),
    count(
        "ip.proto",
        |_, v, _| transport(v).and_then(int),
        "Transport protocol of an IP packet.",
        "fc_saved_syn,ip.proto",
    ),
    address("ip.src", |_, v, _| Ip::of(v)?.address(12, 8), "Source of an IP packet.", "fc_saved_syn,ip.src"),
    count(
        "ip.tos",
        |_, v, _| service(bytes(v)).and_then(int),
        "Type of service or traffic class of an IP packet.",
        "fc_saved_syn,ip.tos",
    ),
    count(
        "ip.ttl",
        |_, v, _| int(Ip::of(v)?.hops()),
        "Time to live or hop limit of an IP packet.",
        "fc_saved_syn,ip.ttl",
    ),
    count(
        "ip.ver",
        |_, v, _| int(read(bytes(v), 0, 1)? >> 4),
        "IP version of a packet.",
        "fc_saved_syn,ip.ver",
    ),
    count(
        "tcp.dst",
        |_, v, _| number(bytes(v), 2, 2),
        "Destination port of a TCP header.",
        "fc_saved_syn,ip.data,tcp.dst",
    ),
    count(
        "tcp.flags",
        |_, v, _| number(bytes(v), 13, 1),
        "Flags of a TCP header.",
        "fc_saved_syn,ip.data,tcp.flags",
    ),
    count(
        "tcp.options.mss",
        |_, v, _| option_or_zero(v, MSS, 2),
        "MSS option of a TCP header, or 0.",
        "fc_saved_syn,ip.data,tcp.options.mss",
    ),
    count(
        "tcp.options.sack",
        |_, v, _| has_option(v, SACK),
        "Whether a TCP header permits SACK, 1 or 0.",
        "fc_saved_syn,ip.data,tcp.options.sack",
    ),
    count(
        "tcp.options.tsopt",
        |_, v, _| has_option(v, TIMESTAMP),
        "Whether a TCP header has a timestamp, 1 or 0.",
        "fc_saved_syn,ip.data,tcp.options.tsopt",
    ),
    count(
        "tcp.options.tsval",
        |_, v, _| timestamp(v),
        "Timestamp of a TCP header.",
        "fc_saved_syn,ip.data,tcp.options.tsval",
    ),
    count(
        "tcp.options.wscale",
        |_, v, _| option_or_zero(v, SCALE, 1),
        "Window scaling of a TCP header, or 0.",
        "fc_saved_syn,ip.data,tcp.options.wscale",
    ),
    count(
        "tcp.options.wsopt",
        |_, v, _| has_option(v, SCALE),
        "Whether a TCP header scales its window, 1 or 0.",
        "fc_saved_syn,ip.data,tcp.options.wsopt",
    ),
    block(
        "tcp.options_list",
        list,
        "Kinds of the options of a TCP header, in order.",
        "fc_saved_syn,ip.data,tcp.options_list",
    ),
    count(
        "tcp.seq",
        |_, v, _| number(bytes(v), 4, 4),
        "Sequence number of a TCP header.",
        "fc_saved_syn,ip.data,tcp.seq",
    ),
    count(
        "tcp.src",
        |_, v, _| number(bytes(v), 0, 2),
        "Source port of a TCP header.",
        "fc_saved_syn,ip.data,tcp.src",
    ),
    count(
        "tcp.win",
        |_, v, _| number(bytes(v), 14, 2),
        "Window of a TCP header, not scaled.",
        "fc_saved_syn,ip.data,tcp.win",
    ),
];

const TCP_HEADER: usize = 20;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK: u8 = 4;
const TIMESTAMP: u8 = 8;

fn int<'a>(n: u32) -> Found<'a> {
    Ok(Value::Int(i64::from(n)))
}

fn part(bytes: &[u8]) -> Found<'_> {
    Ok(Value::Bin(bytes))
}

fn cut(bytes: &[u8], at: usize, length: usize) -> Found<'_> {
    bytes.get(at..at + length).map(Value::Bin).ok_or(Miss::None)
}

/// A big-endian number of up to four bytes.
fn read(bytes: &[u8], at: usize, length: usize) -> Result<u32, Miss> {
    let part = bytes.get(at..at + length).ok_or(Miss::None)?;
    Ok(part.iter().fold(0, |n, c| n << 8 | u32::from(*c)))
}

/// A number of a TCP header, all of whose fixed part must be there.
fn number<'a>(header: &[u8], at: usize, length: usize) -> Found<'a> {
    read(header, TCP_HEADER - 1, 1)?;
    int(read(header, at, length)?)
}

/// An Ethernet frame taken apart.
struct Ethernet<'a> {
    header: &'a [u8],
    data: &'a [u8],
    protocol: u32,
    vlan: Option<u32>,
}

fn eth(value: Value<'_>) -> Result<Ethernet<'_>, Miss> {
    let frame = bytes(value);
    let (mut at, mut vlan) = (12, None);
    loop {
        let protocol = read(frame, at, 2)?;
        if protocol != 0x8100 {
            let (header, data) = frame.split_at_checked(at + 2).ok_or(Miss::None)?;
            if data.is_empty() {
                return Err(Miss::None);
            }
            return Ok(Ethernet { header, data, protocol, vlan });
        }
        vlan = Some(read(frame, at + 2, 2)? & 0xfff);
        at += 4;
    }
}

/// An IP packet taken apart.
struct Ip<'a> {
    version: u32,
    header: &'a [u8],
    data: &'a [u8],
    protocol: u32,
}

impl<'a> Ip<'a> {
    fn of(value: Value<'a>) -> Result<Ip<'a>, Miss> {
        let packet = bytes(value);
        let first = read(packet, 0, 1)?;
        let (end, protocol) = match first >> 4 {
            4 => (usize::try_from(first & 15).unwrap_or(0) * 4, read(packet, 9, 1)?),
            6 => behind_extensions(packet)?,
            _ => return Err(Miss::None),
        };
        if end < 20 {
            return Err(Miss::None);
        }
        let (header, data) = packet.split_at_checked(end).ok_or(Miss::None)?;
        Ok(Ip { version: first >> 4, header, data, protocol })
    }

    fn is_v4(&self) -> bool {
        self.version == 4
    }

    fn at(&self, place: usize, length: usize) -> u32 {
        read(self.header, place, length).unwrap_or(0)
    }

    fn hops(&self) -> u32 {
        self.at(if self.is_v4() { 8 } else { 7 }, 1)
    }

    fn address(&self, v4: usize, v6: usize) -> Found<'a> {
        if self.is_v4() {
            return Ok(Value::Ipv4(Ipv4Addr::from(read(self.header, v4, 4)?)));
        }
        let bytes = self.header.get(v6..v6 + 16).and_then(|b| <[u8; 16]>::try_from(b).ok());
        Ok(Value::Ipv6(Ipv6Addr::from(bytes.ok_or(Miss::None)?)))
    }
}

/// How long the packet says it is.
fn announced(packet: &[u8]) -> Result<usize, Miss> {
    let length = if read(packet, 0, 1)? >> 4 == 4 { read(packet, 2, 2)? } else { 40 + read(packet, 4, 2)? };
    Ok(length as usize)
}

/// The transport protocol; for IPv4 the header may be cut behind it.
fn transport(value: Value<'_>) -> Result<u32, Miss> {
    match read(bytes(value), 0, 1)? >> 4 {
        4 => read(bytes(value), 9, 1),
        _ => Ok(Ip::of(value)?.protocol),
    }
}

/// Needs only the part of the header where it stands.
fn dont_fragment(packet: &[u8]) -> Result<u32, Miss> {
    match read(packet, 0, 1)? >> 4 {
        4 => Ok(read(packet, 6, 1)? >> 6 & 1),
        6 => Ok(1),
        _ => Err(Miss::None),
    }
}

/// As [`dont_fragment`].
fn service(packet: &[u8]) -> Result<u32, Miss> {
    match read(packet, 0, 1)? >> 4 {
        4 => read(packet, 1, 1),
        6 => Ok(read(packet, 0, 2)? >> 4 & 0xff),
        _ => Err(Miss::None),
    }
}

/// Where the transport header of an IPv6 packet begins, and its protocol.
fn behind_extensions(packet: &[u8]) -> Result<(usize, u32), Miss> {
    let (mut at, mut next) = (40, read(packet, 6, 1)?);
    // Hop-by-hop, routing, fragment, authentication, destination options, mobility, HIP, shim6.
    while matches!(next, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140) {
        let length = read(packet, at + 1, 1)? as usize;
        let size = match next {
            44 => 8,
            51 => (length + 2) * 4,
            _ => (length + 1) * 8,
        };
        next = read(packet, at, 1)?;
        at += size;
    }
    Ok((at, next))
}

/// The options of a TCP header: kind and content.
fn options(header: &[u8]) -> Result<Vec<(u8, &[u8])>, Miss> {
    let end = (read(header, 12, 1)? >> 4) as usize * 4;
    let mut rest = header.get(20..end).ok_or(Miss::None)?;
    let mut all = Vec::new();
    while let Some((&kind, tail)) = rest.split_first() {
        match kind {
            0 => break,
            1 => {
                all.push((1, &[][..]));
                rest = tail;
            }
            _ => {
                let length = tail.first().map_or(0, |l| usize::from(*l));
                let Some(content) = rest.get(2..length) else { break };
                all.push((kind, content));
                rest = rest.get(length..).unwrap_or_default();
            }
        }
    }
    Ok(all)
}

fn option(value: Value<'_>, wanted: u8) -> Result<Option<&[u8]>, Miss> {
    Ok(options(bytes(value))?.into_iter().find(|(kind, _)| *kind == wanted).map(|(_, content)| content))
}

fn has_option<'a>(value: Value<'_>, wanted: u8) -> Found<'a> {
    int(u32::from(option(value, wanted)?.is_some()))
}

fn option_or_zero<'a>(value: Value<'_>, wanted: u8, length: usize) -> Found<'a> {
    int(option(value, wanted)?.and_then(|content| read(content, 0, length).ok()).unwrap_or(0))
}

fn timestamp<'a>(value: Value<'_>) -> Found<'a> {
    int(read(option(value, TIMESTAMP)?.ok_or(Miss::None)?, 0, 4)?)
}

fn list<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    let mut out = made(env.arena);
    out.extend(options(bytes(value))?.iter().map(|(kind, _)| *kind));
    Ok(Value::Bin(out.into_bump_slice()))
}

/// The fingerprint of the manual: eight bytes, and what the mode's bits append.
fn fingerprint<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let mode = arg(args, 0).int_or(0);
    let ip = Ip::of(value)?;
    let tcp = ip.data;
    let all = options(tcp)?;
    let content = |wanted| all.iter().find(|(kind, _)| *kind == wanted).map(|(_, content)| *content);
    let flags = read(tcp, 13, 1)?;
    let words = read(tcp, 12, 1)? >> 4;
    let hops = match ip.hops() {
        0..=32 => 0,
        33..=64 => 1,
        65..=128 => 2,
        _ => 3,
    };
    let plain = if ip.is_v4() { 20 } else { 40 };
    let bit = |yes: bool, n: u32| u32::from(yes) << n;
    let traits = bit(!ip.is_v4(), 7)
        | dont_fragment(bytes(value))? << 6
        | hops << 4
        | bit(ip.header.len() > plain, 3)
        | bit(announced(bytes(value))? > ip.header.len() + words as usize * 4, 2)
        | flags >> 7 << 1
        | flags >> 6 & 1;
    let scale = content(SCALE).and_then(|c| read(c, 0, 1).ok()).map_or(0, |s| (s + 1).min(15));
    let mss = content(MSS).and_then(|c| read(c, 0, 2).ok()).unwrap_or(0);
    let seen = all.iter().fold(0u32, |seen, (kind, _)| match kind {
        2..=8 => seen | 1 << (kind - 2),
        9.. => seen | 0x80,
        _ => seen,
    });
    let mut out = made(env.arena);
    out.extend([service(bytes(value))? as u8, traits as u8, (words << 4 | scale) as u8]);
    out.extend_from_slice(tcp.get(14..16).ok_or(Miss::None)?);
    out.extend_from_slice(&(mss as u16).to_be_bytes());
    out.push(seen as u8);
    if mode & 1 != 0 {
        out.push(ip.hops() as u8);
    }
    if mode & 2 != 0 {
        out.extend(all.iter().map(|(kind, _)| *kind));
    }
    if mode & 4 != 0 {
        out.extend_from_slice(ip.address(12, 8)?.binary(env.arena));
    }
    Ok(Value::Bin(out.into_bump_slice()))
}
