//! Addresses as text (manual, section 2.9).
//!
//! One form serves `bind`, `server`, `log`, `nameserver` and more; what differs is which parts they accept,
//! and that is said by [`Accept`]. Nothing is resolved here: a host that is no literal comes back as a name,
//! and whoever resolves it and fails says [`unresolved`].

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::environment::Environment;

/// How data travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A byte stream: TCP or a Unix stream socket.
    Stream,
    /// Datagrams: UDP or a Unix datagram socket.
    Datagram,
    /// Streams over UDP.
    Quic,
}

/// Which family a name is to be resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Either.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Where an address points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A literal; `*` and an empty host are the unspecified address.
    Ip(IpAddr),
    /// A name that has yet to be resolved.
    Name(String, Family),
    /// The path of a Unix socket, as written (a leading `/` or behind `unix@`).
    Unix(String),
    /// A name in Linux's abstract namespace, filled up with zeros.
    Abstract(String),
    /// The same, ended by one zero.
    AbstractZero(String),
    /// An inherited file descriptor.
    Fd(i32),
    /// A descriptor of a pair over which sockets are passed.
    SockPair(i32),
    /// `rhttp@`: connections that a peer opened in reverse.
    Reverse(String),
}

/// The port part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ports {
    /// None was given, or the host has none.
    Missing,
    /// One port.
    One(u16),
    /// From the first to the second, both included.
    Range(u16, u16),
    /// `+N` or `-N`: relative to the port of the other side.
    Offset(i32),
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Where it points.
    pub host: Host,
    /// The port part.
    pub ports: Ports,
    /// How data travel.
    pub transport: Transport,
    /// Whether MPTCP is asked for.
    pub mptcp: bool,
}

/// What a keyword accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// A port is needed, and it may not be zero.
    pub port_required: bool,
    /// Port ranges are fine.
    pub ranges: bool,
    /// Relative ports are fine.
    pub offsets: bool,
    /// `fd@` is fine.
    pub fd: bool,
    /// Streams are fine.
    pub streams: bool,
    /// Datagrams are fine.
    pub datagrams: bool,
    /// The transport when none is named.
    pub default: Transport,
}

impl Accept {
    /// For `bind`.
    pub const BIND: Accept = Accept {
        port_required: true,
        ranges: true,
        offsets: false,
        fd: true,
        streams: true,
        datagrams: false,
        default: Transport::Stream,
    };

    /// For `server`.
    pub const SERVER: Accept = Accept {
        port_required: false,
        ranges: false,
        offsets: true,
        fd: false,
        streams: true,
        datagrams: true,
        default: Transport::Stream,
    };

    /// For `log`, `nameserver` and the like: datagrams unless said otherwise.
    pub const LOG: Accept = Accept {
        port_required: false,
        ranges: false,
        offsets: false,
        fd: true,
        streams: true,
        datagrams: true,
        default: Transport::Datagram,
    };
}

/// The longest path of a Unix socket; a temporary suffix has to fit behind it.
const LONGEST_PATH: usize = 97;

/// The longest abstract name.
const LONGEST_ABSTRACT: usize = 107;

/// What the prefix asks for.
#[derive(Clone, Copy)]
enum Kind {
    Ip(Family),
    Unix,
    Abstract,
    AbstractZero,
    Fd,
    SockPair,
    Reverse,
}

/// Protocol prefixes: name, what it asks for, transport, MPTCP.
const PREFIXES: &[(&str, Kind, Option<Transport>, bool)] = &[
    ("ip", Kind::Ip(Family::Any), None, false),
    ("ipv4", Kind::Ip(Family::V4), None, false),
    ("ipv6", Kind::Ip(Family::V6), None, false),
    ("unix", Kind::Unix, None, false),
    ("abns", Kind::Abstract, None, false),
    ("abnsz", Kind::AbstractZero, None, false),
    ("fd", Kind::Fd, None, false),
    ("sockpair", Kind::SockPair, None, false),
    ("rhttp", Kind::Reverse, None, false),
    ("tcp", Kind::Ip(Family::Any), Some(Transport::Stream), false),
    ("tcp4", Kind::Ip(Family::V4), Some(Transport::Stream), false),
    ("tcp6", Kind::Ip(Family::V6), Some(Transport::Stream), false),
    ("mptcp", Kind::Ip(Family::Any), Some(Transport::Stream), true),
    ("mptcp4", Kind::Ip(Family::V4), Some(Transport::Stream), true),
    ("mptcp6", Kind::Ip(Family::V6), Some(Transport::Stream), true),
    ("udp", Kind::Ip(Family::Any), Some(Transport::Datagram), false),
    ("udp4", Kind::Ip(Family::V4), Some(Transport::Datagram), false),
    ("udp6", Kind::Ip(Family::V6), Some(Transport::Datagram), false),
    ("quic4", Kind::Ip(Family::V4), Some(Transport::Quic), false),
    ("quic6", Kind::Ip(Family::V6), Some(Transport::Quic), false),
    ("uxst", Kind::Unix, Some(Transport::Stream), false),
    ("uxdg", Kind::Unix, Some(Transport::Datagram), false),
];

/// Puts the values of `$NAME` and `${NAME}` in their places, as addresses have it even without quotes around
/// them (manual, section 4.2, `bind`). What is not set vanishes.
pub fn expand<'t>(text: &'t str, environment: &Environment) -> Cow<'t, str> {
    let Some((head, mut rest)) = text.split_once('$') else { return Cow::Borrowed(text) };
    let mut out = head.to_owned();
    loop {
        let braced = rest.strip_prefix('{');
        let inner = braced.unwrap_or(rest);
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, tail) = inner.split_at(end);
        out.push_str(&String::from_utf8_lossy(environment.get(name).unwrap_or_default()));
        let tail = braced.and(tail.strip_prefix('}')).unwrap_or(tail);
        let Some((between, next)) = tail.split_once('$') else {
            out.push_str(tail);
            return Cow::Owned(out);
        };
        out.push_str(between);
        rest = next;
    }
}

/// Reads one address, its variables replaced first. The error is HAProxy's sentence, without the keyword in
/// front; it shows the text as it was written.
pub fn parse(text: &str, accept: Accept, environment: &Environment) -> Result<Address, String> {
    let expanded = expand(text, environment);
    if expanded.is_empty() {
        return Err(format!("'{text}' resolves to an empty address (environment variable missing?)"));
    }
    let (kind, transport, mptcp, rest) = prefix(&expanded);
    let transport = transport.unwrap_or(accept.default);
    let host = match kind {
        Kind::Ip(family) => {
            let (host, ports) = internet(rest, family, text, accept)?;
            check_transport(transport, text, accept)?;
            return Ok(Address { host, ports, transport, mptcp });
        }
        Kind::Unix => Host::Unix(fitting(rest, text, LONGEST_PATH)?),
        Kind::Abstract => Host::Abstract(fitting(rest, text, LONGEST_ABSTRACT)?),
        Kind::AbstractZero => Host::AbstractZero(fitting(rest, text, LONGEST_ABSTRACT)?),
        Kind::Fd if !accept.fd => {
            return Err(format!("a file descriptor is not acceptable here in '{text}'"));
        }
        Kind::Fd => Host::Fd(descriptor(rest, text)?),
        Kind::SockPair => Host::SockPair(descriptor(rest, text)?),
        Kind::Reverse => Host::Reverse(rest.to_owned()),
    };
    check_transport(transport, text, accept)?;
    Ok(Address { host, ports: Ports::Missing, transport, mptcp })
}

/// Reads a comma list, as `bind` has it. A comma at the end is tolerated.
pub fn parse_list(text: &str, accept: Accept, environment: &Environment) -> Result<Vec<Address>, String> {
    let text = text.strip_suffix(',').filter(|rest| !rest.is_empty()).unwrap_or(text);
    text.split(',').map(|part| parse(part, accept, environment)).collect()
}

/// The sentence for a name that can't be resolved.
pub fn unresolved(name: &str, text: &str) -> String {
    format!("invalid address: '{name}' in '{text}'")
}

/// Takes off what stands in front of `@`. What is not known there is part of a host's name.
fn prefix(text: &str) -> (Kind, Option<Transport>, bool, &str) {
    if text.starts_with('/') {
        return (Kind::Unix, None, false, text);
    }
    // The way of transport may stand alone, too: `stream+127.0.0.1:80`.
    let (forced, text) = match text.split_once('+') {
        Some(("stream", rest)) => (Some(Transport::Stream), rest),
        Some(("dgram", rest)) => (Some(Transport::Datagram), rest),
        Some(("quic", rest)) => (Some(Transport::Quic), rest),
        _ => (None, text),
    };
    let plain = (Kind::Ip(Family::Any), forced, false, text);
    let Some((family, rest)) = text.split_once('@') else { return plain };
    match PREFIXES.iter().find(|(name, ..)| *name == family) {
        Some((_, kind, own, mptcp)) => (*kind, forced.or(*own), *mptcp, rest),
        None => plain,
    }
}

fn check_transport(transport: Transport, text: &str, accept: Accept) -> Result<(), String> {
    match transport {
        Transport::Datagram if !accept.datagrams => {
            Err(format!("dgram-type address not acceptable in '{text}'"))
        }
        Transport::Stream if !accept.streams => {
            Err(format!("stream-type address not acceptable in '{text}'"))
        }
        _ => Ok(()),
    }
}

fn fitting(name: &str, text: &str, longest: usize) -> Result<String, String> {
    if name.len() > longest {
        return Err(format!("socket path '{text}' too long (max {longest})"));
    }
    Ok(name.to_owned())
}

fn descriptor(number: &str, text: &str) -> Result<i32, String> {
    let is_number = number.bytes().all(|b| b.is_ascii_digit());
    let value = number.parse().ok().filter(|_| is_number);
    value.ok_or_else(|| format!("file descriptor '{number}' is not a valid integer in '{text}'"))
}

fn internet(rest: &str, family: Family, text: &str, accept: Accept) -> Result<(Host, Ports), String> {
    let (host, port) = split_port(rest);
    let ports = match port {
        Some(port) if !port.is_empty() => ports(port, text, accept)?,
        _ if accept.port_required => return Err(format!("missing port specification in '{text}'")),
        _ => Ports::Missing,
    };
    Ok((named_host(host, family, text)?, ports))
}

/// A bracket keeps its colons; otherwise the last colon divides. Around nothing, or with something else than
/// a port behind them, brackets are part of a name, which nobody has.
fn split_port(text: &str) -> (&str, Option<&str>) {
    let bracket = text.strip_prefix('[').and_then(|inside| inside.split_once(']'));
    let closed = |(host, tail): &(&str, &str)| !host.is_empty() && (tail.is_empty() || tail.starts_with(':'));
    if let Some((host, tail)) = bracket.filter(closed) {
        return (host, tail.strip_prefix(':'));
    }
    match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

fn named_host(host: &str, family: Family, text: &str) -> Result<Host, String> {
    if host.is_empty() || host == "*" {
        let any: IpAddr =
            if family == Family::V6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        return Ok(Host::Ip(any));
    }
    match (host.parse::<IpAddr>(), family) {
        (Ok(IpAddr::V4(_)), Family::V6) | (Ok(IpAddr::V6(_)), Family::V4) => Err(unresolved(host, text)),
        (Ok(ip), _) => Ok(Host::Ip(ip)),
        (Err(_), _) => Ok(Host::Name(host.to_owned(), family)),
    }
}

fn ports(port: &str, text: &str, accept: Accept) -> Result<Ports, String> {
    let digits = port.strip_prefix(['+', '-']).unwrap_or(port);
    if let Some(c) = digits.chars().find(|c| !c.is_ascii_digit() && *c != '-') {
        return Err(format!("invalid character '{c}' in port number '{port}' in '{text}'"));
    }
    if digits.len() < port.len() {
        if !accept.offsets {
            return Err(format!("port offset not permitted here in '{text}'"));
        }
        return port.parse().map(Ports::Offset).map_err(|_| format!("invalid port '{port}'"));
    }
    let single = |port: &str| match port.parse::<u16>() {
        Ok(0) | Err(_) if accept.port_required || port != "0" => Err(format!("invalid port '{port}'")),
        value => Ok(value.unwrap_or(0)),
    };
    let Some((first, last)) = port.split_once('-') else { return single(port).map(Ports::One) };
    if !accept.ranges {
        return Err(format!("port range not permitted here in '{text}'"));
    }
    let (first, last) = (single(first)?, single(last)?);
    if first > last {
        return Err(format!("invalid port range '{port}'"));
    }
    Ok(if first == last { Ports::One(first) } else { Ports::Range(first, last) })
}

#[cfg(test)]
mod tests;
