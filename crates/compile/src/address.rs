//! Addresses as the configuration writes them (manual, chapter 11).
//!
//! An address is a prefix that names its family, the family's own part, and a port. One reader serves `bind`,
//! `server`, `source` and `log`; what each of them allows (ports, ranges, offsets, names) it says in [`Wants`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the place of use allows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wants {
    /// A port is mandatory.
    pub port: bool,
    /// A port may be given at all.
    pub port_allowed: bool,
    /// A range of ports may be given.
    pub range: bool,
    /// An offset (`+100`, `-100`) may be given.
    pub offset: bool,
    /// A host name may stand in place of the address.
    pub names: bool,
    /// Descriptors may be named.
    pub descriptors: bool,
}

/// The host part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Left out or `*`: any address; whether a family was asked for.
    Any { v6: bool, given: bool },
    /// An address.
    Ip(IpAddr),
    /// A name to look up.
    Name(Box<str>),
}

/// The port part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// None.
    None,
    /// A range; one port is a range of one.
    Range(u16, u16),
    /// An offset to another port.
    Offset(i32),
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// IPv4 or IPv6.
    Inet { host: Host, port: Port, udp: bool },
    /// A Unix socket.
    Unix(Box<[u8]>),
    /// An abstract one, padded.
    Abns(Box<[u8]>),
    /// An abstract one of exact length.
    Abnsz(Box<[u8]>),
    /// A descriptor.
    Fd(i32),
    /// One end of a socket pair.
    SockPair(i32),
    /// A ring by name (logs).
    Ring(Box<str>),
    /// QUIC, reverse HTTP: known, not built.
    Later(&'static str),
}

/// The prefixes and what they mean.
const PREFIXES: &[&str] = &[
    "ipv4", "ipv6", "unix", "abns", "abnsz", "fd", "sockpair", "stream+ipv4", "stream+ipv6", "stream+unix", "tcp", "tcp4",
    "tcp6", "uxst", "udp", "udp4", "udp6", "uxdg", "dgram+ipv4", "dgram+ipv6", "dgram+unix", "quic4", "quic6", "rhttp",
    "mptcp", "mptcp4", "mptcp6", "ring",
];

/// Reads an address.
///
/// # Errors
/// HAProxy's words about what is wrong with it.
pub(crate) fn parse(text: &str, wants: Wants) -> Result<Address, String> {
    let (prefix, rest) = match text.split_once('@') {
        Some((prefix, rest)) if PREFIXES.contains(&prefix) => (prefix, rest),
        _ if text.starts_with('/') => ("unix", text),
        _ => ("", text),
    };
    let bytes = || rest.as_bytes().into();
    Ok(match prefix {
        "unix" | "uxst" | "uxdg" | "stream+unix" | "dgram+unix" => Address::Unix(bytes()),
        "abns" => Address::Abns(bytes()),
        "abnsz" => Address::Abnsz(bytes()),
        "fd" => Address::Fd(descriptor(rest, text)?),
        "sockpair" => Address::SockPair(descriptor(rest, text)?),
        "ring" => Address::Ring(rest.into()),
        "quic4" | "quic6" => Address::Later("QUIC"),
        "rhttp" => Address::Later("reverse HTTP"),
        "mptcp" | "mptcp4" | "mptcp6" => Address::Later("MPTCP"),
        _ => inet(prefix, rest, text, wants)?,
    })
}

fn descriptor(number: &str, whole: &str) -> Result<i32, String> {
    number
        .parse()
        .ok()
        .filter(|fd| *fd >= 0)
        .ok_or_else(|| format!("file descriptor '{number}' is not a valid integer in '{whole}'"))
}

fn inet(prefix: &str, rest: &str, whole: &str, wants: Wants) -> Result<Address, String> {
    let want_v4 = prefix.ends_with('4');
    let want_v6 = prefix.ends_with('6');
    let udp = prefix.starts_with("udp") || prefix.starts_with("dgram");
    let (host, port) = split_port(rest, want_v6);
    let port = match port {
        Some(port) if wants.port_allowed => read_port(port, whole, wants)?,
        Some(port) if !port.is_empty() => return Err(format!("port specification not permitted here in '{whole}'")),
        None if wants.port => return Err(format!("missing port specification in '{whole}'")),
        _ => Port::None,
    };
    let host = read_host(host, want_v4, want_v6, whole, wants)?;
    Ok(Address::Inet { host, port, udp })
}

/// The part before the last colon and the one behind it. In brackets a colon belongs to the address.
fn split_port(text: &str, v6: bool) -> (&str, Option<&str>) {
    if let Some(inner) = text.strip_prefix('[')
        && let Some((host, tail)) = inner.split_once(']')
    {
        return (host, tail.strip_prefix(':'));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if v6 && host.is_empty() && port.is_empty() => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

fn read_port(text: &str, whole: &str, wants: Wants) -> Result<Port, String> {
    if let Some(sign) = text.chars().next().filter(|c| matches!(c, '+' | '-')) {
        if !wants.offset {
            return Err(format!("port offset not permitted here in '{whole}'"));
        }
        let digits = text.get(1..).unwrap_or_default();
        if let Some(odd) = digits.chars().find(|c| !c.is_ascii_digit()) {
            return Err(format!("invalid character '{odd}' in port number '{digits}' in '{whole}'"));
        }
        let number: i32 = digits.parse().map_err(|_| format!("invalid port '{text}'"))?;
        return Ok(Port::Offset(if sign == '-' { -number } else { number }));
    }
    if let Some((from, to)) = text.split_once('-') {
        if !wants.range {
            return Err(format!("port range not permitted here in '{whole}'"));
        }
        return match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to && from > 0 => Ok(Port::Range(from, to)),
            _ => Err(format!("invalid port range '{text}'")),
        };
    }
    if text.is_empty() {
        return if wants.port { Err(format!("missing port specification in '{whole}'")) } else { Ok(Port::None) };
    }
    if let Some(odd) = text.chars().find(|c| !c.is_ascii_digit()) {
        return Err(format!("invalid character '{odd}' in port number '{text}' in '{whole}'"));
    }
    match number(text) {
        Some(0) if wants.port => Err(format!("invalid port '{text}'")),
        Some(port) => Ok(Port::Range(port, port)),
        None => Err(format!("invalid port '{text}'")),
    }
}

fn number(text: &str) -> Option<u16> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

fn read_host(host: &str, want_v4: bool, want_v6: bool, whole: &str, wants: Wants) -> Result<Host, String> {
    if host.is_empty() || host == "*" {
        return Ok(Host::Any { v6: want_v6, given: host == "*" || want_v4 || want_v6 });
    }
    if !want_v6 && let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(ip.into()));
    }
    if !want_v4 && let Ok(ip) = host.parse::<Ipv6Addr>() {
        return Ok(Host::Ip(ip.into()));
    }
    let is_name = host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if is_name && wants.names {
        return Ok(Host::Name(host.into()));
    }
    Err(format!("invalid address: '{host}' in '{whole}'"))
}

impl Host {
    /// The address to bind: any of the family where none was given.
    pub(crate) fn bind_ip(&self) -> Option<IpAddr> {
        match self {
            Host::Any { v6: true, .. } => Some(Ipv6Addr::UNSPECIFIED.into()),
            Host::Any { .. } => Some(Ipv4Addr::UNSPECIFIED.into()),
            Host::Ip(ip) => Some(*ip),
            Host::Name(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIND: Wants =
        Wants { port: true, port_allowed: true, range: true, offset: false, names: true, descriptors: true };
    const SERVER: Wants =
        Wants { port: false, port_allowed: true, range: false, offset: true, names: true, descriptors: true };

    fn inet(host: &str, from: u16, to: u16) -> Address {
        Address::Inet { host: Host::Ip(host.parse().unwrap()), port: Port::Range(from, to), udp: false }
    }

    #[test]
    fn addresses_of_all_families_are_told_apart() {
        assert_eq!(parse("1.2.3.4:80", BIND).unwrap(), inet("1.2.3.4", 80, 80));
        assert_eq!(parse("[::1]:80-82", BIND).unwrap(), inet("::1", 80, 82));
        assert_eq!(parse("::1:80", BIND).unwrap(), inet("::1", 80, 80));
        assert_eq!(parse("ipv6@::1:80", BIND).unwrap(), inet("::1", 80, 80));
        assert_eq!(parse("/tmp/x", SERVER).unwrap(), Address::Unix((*b"/tmp/x").into()));
        assert_eq!(parse("abns@x", SERVER).unwrap(), Address::Abns((*b"x").into()));
        assert_eq!(parse("fd@7", BIND).unwrap(), Address::Fd(7));
        let any = Address::Inet { host: Host::Any { v6: true, given: true }, port: Port::Range(80, 80), udp: false };
        assert_eq!(parse("ipv6@:80", BIND).unwrap(), any);
        let name = Address::Inet { host: Host::Name("a.example".into()), port: Port::Offset(-5), udp: false };
        assert_eq!(parse("a.example:-5", SERVER).unwrap(), name);
    }

    #[test]
    fn what_is_wrong_is_said_in_the_known_words() {
        for (text, wants, says) in [
            ("foo", BIND, "missing port specification in 'foo'"),
            ("1.2.3.4:80-70", BIND, "invalid port range '80-70'"),
            (":99999", BIND, "invalid port '99999'"),
            ("1.2.3.4:+x", SERVER, "invalid character 'x' in port number 'x' in '1.2.3.4:+x'"),
            ("1.2.3.4:80-90", SERVER, "port range not permitted here in '1.2.3.4:80-90'"),
        ] {
            assert_eq!(parse(text, wants).unwrap_err(), says);
        }
    }
}
