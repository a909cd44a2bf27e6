//! The client connection: addresses, PROXY header, TCP state, listener and frontend (sections 7.3.3 and
//! 7.3.4).

use std::sync::atomic::Ordering::Relaxed;

use crate::arg::{Arg, arg};
use crate::entry::{FetchDef, FetchFn};
use crate::env::{Env, Side, TcpInfo};
use crate::names::Names;
use crate::places::{CLIENT, CLIENT_L4, CLIENT_L5, REQUEST_KEPT};
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

use super::{int, ip, port, text};

const fn l4(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CLIENT_L4, eval, doc)
}

const fn tcp(name: &'static str, eval: FetchFn, doc: &'static str, example: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Int, CLIENT_L4, eval, doc).args("[string]", example).volatile()
}

const fn round_trip(name: &'static str, eval: FetchFn, doc: &'static str, example: &'static str) -> FetchDef {
    tcp(name, eval, doc, example).check(check_unit)
}

const fn front(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CLIENT, eval, doc)
}

pub(super) const FETCHES: &[FetchDef] = &[
    l4("dst", Type::Addr, |e, _| ip(e.dst()), "Destination address, as rules see it."),
    l4("dst_port", Type::Int, |e, _| port(e.dst()), "Destination port, as rules see it."),
    l4("src", Type::Addr, |e, _| ip(e.src()), "Client address, as rules see it."),
    l4("src_port", Type::Int, |e, _| port(e.src()), "Client port, as rules see it."),
    l4(
        "fc_dst",
        Type::Addr,
        |e, _| ip(e.conn.fc_dst.get()),
        "Destination address before any rule changed it.",
    ),
    l4(
        "fc_dst_port",
        Type::Int,
        |e, _| port(e.conn.fc_dst.get()),
        "Destination port before any rule changed it.",
    ),
    l4("fc_src", Type::Addr, |e, _| ip(e.conn.fc_src.get()), "Client address before any rule changed it."),
    l4("fc_src_port", Type::Int, |e, _| port(e.conn.fc_src.get()), "Client port before any rule changed it."),
    l4("fc_err", Type::Int, |e, _| int(error(e)?), "Number of the client connection's error, 0 if none."),
    l4("fc_err_name", Type::Str, |e, _| error_name(error(e)?), "Name of the client connection's error."),
    l4("fc_err_str", Type::Str, |e, _| error_text(error(e)?), "Text of the client connection's error."),
    l4(
        "fc_http_major",
        Type::Int,
        |e, _| major(e.conn.http_major.get()),
        "Major HTTP version of the client side, once HTTP is spoken there.",
    ),
    l4(
        "fc_rcvd_proxy",
        Type::Bool,
        |e, _| {
            let came = e.conn.received_proxy();
            if e.conn.is_opening() { Err(Miss::None) } else { Ok(Value::Bool(came)) }
        },
        "Whether a PROXY header came.",
    ),
    l4("fc_pp_authority", Type::Str, |e, _| header(e, 0x02), "Authority of the PROXY header."),
    l4("fc_pp_unique_id", Type::Str, |e, _| header(e, 0x05), "Unique id of the PROXY header."),
    FetchDef::new(
        "fc_pp_tlv",
        Type::Str,
        CLIENT_L5,
        pp_tlv,
        "A value of the PROXY header, by type or its name.",
    )
    .args("string", "fc_pp_tlv(0xe1)")
    .check(check_tlv)
    .each(each_tlv),
    tcp(
        "fc_fackets",
        |e, _| info(e, |i| i.fackets),
        "Forward acknowledged segments of the client connection.",
        "fc_fackets",
    ),
    tcp("fc_lost", |e, _| info(e, |i| i.lost), "Lost segments of the client connection.", "fc_lost"),
    tcp(
        "fc_reordering",
        |e, _| info(e, |i| i.reordering),
        "Reordering metric of the client connection.",
        "fc_reordering",
    ),
    tcp(
        "fc_retrans",
        |e, _| info(e, |i| i.retrans),
        "Retransmitted segments of the client connection.",
        "fc_retrans",
    ),
    tcp(
        "fc_sacked",
        |e, _| info(e, |i| i.sacked),
        "Selectively acknowledged segments of the client connection.",
        "fc_sacked",
    ),
    tcp(
        "fc_unacked",
        |e, _| info(e, |i| i.unacked),
        "Unacknowledged segments of the client connection.",
        "fc_unacked",
    ),
    round_trip(
        "fc_rtt",
        |e, a| timed(e, a, Side::Request, |i| i.rtt_us),
        "Round-trip time to the client, ms or us.",
        "fc_rtt(us)",
    ),
    round_trip(
        "fc_rttvar",
        |e, a| timed(e, a, Side::Request, |i| i.rttvar_us),
        "Variance of the round-trip time to the client.",
        "fc_rttvar(us)",
    ),
    round_trip(
        "bc_rtt",
        |e, a| timed(e, a, Side::Response, |i| i.rtt_us),
        "Round-trip time to the server, ms or us.",
        "bc_rtt(us)",
    )
    .of_stream(),
    round_trip(
        "bc_rttvar",
        |e, a| timed(e, a, Side::Response, |i| i.rttvar_us),
        "Variance of the round-trip time to the server.",
        "bc_rttvar(us)",
    )
    .of_stream(),
    front("dst_conn", Type::Int, dst_conn, "Connections on the same listener.").volatile(),
    front(
        "fe_defbe",
        Type::Str,
        |e, _| text(e.live.default_backend().map(str::as_bytes)),
        "Name of the default backend.",
    ),
    front("fe_id", Type::Int, |e, _| int(e.live.frontend().id), "Number of the frontend."),
    front(
        "fe_name",
        Type::Str,
        |e, _| text(Some(e.live.frontend().name.as_bytes())),
        "Name of the frontend.",
    ),
    front("so_id", Type::Int, |e, _| int(e.live.listener().ok_or(Miss::None)?.id), "Number of the listener."),
    front("so_name", Type::Str, listener_name, "Name of the listener, if it was given one."),
    FetchDef::new(
        "http_first_req",
        Type::Bool,
        REQUEST_KEPT,
        |e, _| Ok(Value::Bool(e.txn.first_request && e.conn.http_major.get() < 2)),
        "Whether this is the first request of its connection.",
    )
    .of_stream(),
];

/// A version of HTTP; there is none where none is spoken, or not yet.
pub(super) fn major<'a>(version: u8) -> Found<'a> {
    if version == 0 { Err(Miss::None) } else { int(version) }
}

fn dst_conn<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    int(env.live.listener().ok_or(Miss::None)?.current.load(Relaxed))
}

fn info<'a>(env: &Env<'a>, figure: fn(&TcpInfo) -> u32) -> Found<'a> {
    int(figure(&env.live.tcp_info(Side::Request).ok_or(Miss::None)?))
}

fn timed<'a>(env: &Env<'a>, args: &[Arg], side: Side, figure: fn(&TcpInfo) -> u32) -> Found<'a> {
    let us = figure(&env.live.tcp_info(side).ok_or(Miss::None)?);
    int(if arg(args, 0).bytes() == Some(b"us") { us } else { us / 1000 })
}

fn check_unit(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 0).bytes() {
        None | Some(b"ms" | b"us") => Ok(()),
        Some(other) => {
            Err(Fault::new(format!("expects 'us' or 'ms', got '{}'", String::from_utf8_lossy(other))))
        }
    }
}

/// Names of TLVs in PROXY headers.
const TLVS: &[(&str, i64)] = &[
    ("ALPN", 0x01),
    ("AUTHORITY", 0x02),
    ("CRC32C", 0x03),
    ("NOOP", 0x04),
    ("UNIQUE_ID", 0x05),
    ("SSL", 0x20),
    ("SSL_VERSION", 0x21),
    ("SSL_CN", 0x22),
    ("SSL_CIPHER", 0x23),
    ("SSL_SIG_ALG", 0x24),
    ("SSL_KEY_ALG", 0x25),
    ("NETNS", 0x30),
];

fn check_tlv(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let word = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    let named = TLVS.iter().find(|(name, _)| *name == word || (*name == "CRC32C" && word == "CRC32"));
    let number = match (named, word.strip_prefix("0x")) {
        (Some((_, number)), _) => *number,
        (None, Some(hex)) => i64::from_str_radix(hex, 16).unwrap_or(-1),
        // No record has this type.
        (None, None) if word.is_empty() => 0,
        (None, None) => word.parse().map_err(|_| Fault::new(format!("Could not convert type '{word}'")))?,
    };
    if !(0..=255).contains(&number) {
        return Err(Fault::new(format!("Invalid TLV Type '{word}'")));
    }
    *args = vec![Arg::Int(number)];
    Ok(())
}

fn header<'a>(env: &Env<'a>, kind: u8) -> Found<'a> {
    let header = env.conn.proxy_header.borrow();
    let header = header.as_ref().ok_or(Miss::None)?;
    let known = match kind {
        0x02 => header.authority.as_deref(),
        0x05 => header.unique_id.as_deref(),
        _ => None,
    };
    let listed = || header.tlvs.iter().find(|(k, _)| *k == kind).map(|(_, v)| &**v);
    let value = known.or_else(listed).ok_or(Miss::None)?;
    Ok(Value::Str(env.arena.alloc_slice_copy(value)))
}

fn pp_tlv<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    header(env, arg(args, 0).int_or(0) as u8)
}

fn each_tlv<'a>(env: &Env<'a>, args: &'a [Arg], visit: &mut dyn FnMut(Value<'a>) -> bool) -> Found<'a> {
    let kind = arg(args, 0).int_or(0) as u8;
    let header = env.conn.proxy_header.borrow();
    for (k, value) in header.as_ref().map(|h| &h.tlvs[..]).unwrap_or_default() {
        if *k == kind && visit(Value::Str(env.arena.alloc_slice_copy(value))) {
            return Ok(Value::Bool(true));
        }
    }
    Err(Miss::None)
}

/// Names and texts of connection errors, by number (table of `fc_err_str`).
const ERRORS: &[(&str, &str)] = &[
    ("", "Success"),
    ("CONF_FDLIM", "Reached configured maxconn value"),
    ("PROC_FDLIM", "Too many sockets on the process"),
    ("SYS_FDLIM", "Too many sockets on the system"),
    ("SYS_MEMLIM", "Out of system buffers"),
    ("NOPROTO", "Protocol or address family not supported"),
    ("SOCK_ERR", "General socket error"),
    ("PORT_RANGE", "Source port range exhausted"),
    ("CANT_BIND", "Can't bind to source address"),
    ("FREE_PORTS", "Out of local source ports on the system"),
    ("ADDR_INUSE", "Local source address already in use"),
    ("PRX_EMPTY", "Connection closed while waiting for PROXY protocol header"),
    ("PRX_ABORT", "Connection error while waiting for PROXY protocol header"),
    ("PRX_TIMEOUT", "Timeout while waiting for PROXY protocol header"),
    ("PRX_TRUNCATED", "Truncated PROXY protocol header received"),
    ("PRX_NOT_HDR", "Received something which does not look like a PROXY protocol header"),
    ("PRX_BAD_HDR", "Received an invalid PROXY protocol header"),
    ("PRX_BAD_PROTO", "Received an unhandled protocol in the PROXY protocol header"),
    ("CIP_EMPTY", "Connection closed while waiting for NetScaler Client IP header"),
    ("CIP_ABORT", "Connection error while waiting for NetScaler Client IP header"),
    ("CIP_TIMEOUT", "Timeout while waiting for a NetScaler Client IP header"),
    ("CIP_TRUNCATED", "Truncated NetScaler Client IP header received"),
    ("CIP_BAD_MAGIC", "Received an invalid NetScaler Client IP magic number"),
    ("CIP_BAD_PROTO", "Received an unhandled protocol in the NetScaler Client IP header"),
    ("SSL_EMPTY", "Connection closed during SSL handshake"),
    ("SSL_ABORT", "Connection error during SSL handshake"),
    ("SSL_TIMEOUT", "Timeout during SSL handshake"),
    ("SSL_TOO_MANY", "Too many SSL connections"),
    ("SSL_NO_MEM", "Out of memory when initializing an SSL connection"),
    ("SSL_RENEG", "Rejected a client-initiated SSL renegotiation attempt"),
    ("SSL_CA_FAIL", "SSL client CA chain cannot be verified"),
    ("SSL_CRT_FAIL", "SSL client certificate not trusted"),
    ("SSL_MISMATCH", "Server presented an SSL certificate different from the configured one"),
    ("SSL_MISMATCH_SNI", "Server presented an SSL certificate different from the expected one"),
    ("SSL_HANDSHAKE", "SSL handshake failure"),
    ("SSL_HANDSHAKE_HB", "SSL handshake failure after heartbeat"),
    ("SSL_KILLED_HB", "Stopped a TLSv1 heartbeat attack (CVE-2014-0160)"),
    ("SSL_NO_TARGET", "Attempt to use SSL on an unknown target (internal error)"),
    ("SSL_EARLY_FAILED", "Server refused early data"),
    ("SOCKS4_SEND", "SOCKS4 Proxy write error during handshake"),
    ("SOCKS4_RECV", "SOCKS4 Proxy read error during handshake"),
    ("SOCKS4_DENY", "SOCKS4 Proxy deny the request"),
    ("SOCKS4_ABORT", "SOCKS4 Proxy handshake aborted by server"),
    ("SSL_FATAL", "SSL fatal error"),
    ("REVERSE", "Reverse connect failure"),
    // The manual leaves this one out.
    ("", ""),
    ("POLLERR", "Poller reported POLLERR"),
    ("EREFUSED", "ECONNREFUSED returned by OS"),
    ("ERESET", "ECONNRESET returned by OS"),
    ("EUNREACH", "ENETUNREACH returned by OS"),
    ("ENOMEM", "ENOMEM returned by OS"),
    ("EBADF", "EBADF returned by OS"),
    ("EFAULT", "EFAULT returned by OS"),
    ("EINVAL", "EINVAL returned by OS"),
    ("ENCONN", "ENCONN returned by OS"),
    ("ENSOCK", "ENSOCK returned by OS"),
    ("ENOBUFS", "ENOBUFS returned by OS"),
    ("EPIPE", "EPIPE returned by OS"),
];

/// The number of the client connection's error; while it opens nobody knows whether there will be one.
fn error(env: &Env<'_>) -> Result<u8, Miss> {
    let error = env.conn.error.get();
    if error.is_none() && env.conn.is_opening() { Err(Miss::None) } else { Ok(error.0) }
}

pub(super) fn error_name<'a>(number: u8) -> Found<'a> {
    text(ERRORS.get(usize::from(number)).map(|(name, _)| name.as_bytes()))
}

pub(super) fn error_text<'a>(number: u8) -> Found<'a> {
    text(ERRORS.get(usize::from(number)).map(|(_, text)| text.as_bytes()))
}

/// Listeners without a name are called by their number elsewhere.
fn listener_name<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let listener = env.live.listener().ok_or(Miss::None)?;
    let given = listener.name.strip_prefix("sock-").is_none_or(|n| n.parse() != Ok(listener.id));
    text(given.then_some(listener.name.as_bytes()))
}
