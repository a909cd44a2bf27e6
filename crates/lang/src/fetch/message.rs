//! Start lines of requests and responses, URLs, captures (section 7.3.6).

use std::net::Ipv4Addr;

use wire::method::Method;
use wire::uri;

use crate::arg::{Arg, arg};
use crate::entry::{FetchDef, FetchFn};
use crate::env::{Env, Side};
use crate::names::Names;
use crate::places::{REQUEST, REQUEST_KEPT, RESPONSE_KEPT};
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

use super::{int, joined, text};

const fn req(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, REQUEST, eval, doc)
}

const fn kept(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, REQUEST_KEPT, eval, doc)
}

const fn res(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, RESPONSE_KEPT, eval, doc)
}

const REQ_VER: FetchDef =
    kept("req.ver", Type::Str, |e, _| version(e, Side::Request), "HTTP version of the request, '1.1'.")
        .of_request();
const RES_VER: FetchDef =
    res("res.ver", Type::Str, |e, _| version(e, Side::Response), "HTTP version of the response, '1.1'.");
const PROTO_HTTP: FetchDef =
    kept("req.proto_http", Type::Bool, proto_http, "Whether the request is HTTP.").of_request();

pub(super) const FETCHES: &[FetchDef] = &[
    req("base", Type::Str, |e, _| Ok(Value::Str(base(e)?)), "Host and path of the request."),
    req("base32", Type::Int, |e, _| int(base_hash(e)?), "32-bit hash of 'base'."),
    req(
        "base32+src",
        Type::Bin,
        |e, _| with_src(e, base_hash(e)?),
        "Hash of 'base', then the client's address.",
    ),
    req("baseq", Type::Str, |e, _| Ok(Value::Str(baseq(e)?)), "Host, path and query of the request."),
    kept("capture.req.hdr", Type::Str, captured_req, "A captured request header, by position.")
        .args("integer", "capture.req.hdr(0)")
        .check(check_capture),
    kept("capture.req.method", Type::Str, |e, _| line(kept_line(e)?.method()), "Method as received."),
    kept(
        "capture.req.uri",
        Type::Str,
        |e, _| line(uri::path_and_query(without_star(kept_line(e)?.target()))),
        "Path and query as received.",
    ),
    kept("capture.req.ver", Type::Str, capture_req_ver, "Version as received, 'HTTP/1.1'."),
    res("capture.res.hdr", Type::Str, captured_res, "A captured response header, by position.")
        .args("integer", "capture.res.hdr(0)")
        .check(check_capture),
    kept("capture.res.ver", Type::Str, capture_res_ver, "HTTP version of the response, 'HTTP/1.1'.")
        .of_stream(),
    kept("method", Type::Method, method, "Method of the request."),
    req("path", Type::Str, |e, _| text(Some(path(e)?)), "Path of the request, without host and query."),
    req("pathq", Type::Str, |e, _| text(Some(pathq(e)?)), "Path and query of the request."),
    req("query", Type::Str, query, "Query of the request, behind the question mark.")
        .args("[string]", "query(with_qm)")
        .check(check_query),
    PROTO_HTTP,
    PROTO_HTTP.alias("req_proto_http", REQUEST_KEPT, "req_proto_http"),
    REQ_VER,
    REQ_VER.alias("req_ver", REQUEST_KEPT, "req_ver"),
    RES_VER,
    RES_VER.alias("resp_ver", RESPONSE_KEPT, "resp_ver"),
    res("server_status", Type::Int, server_status, "Status that the server sent, 0 if it was no server."),
    res("status", Type::Int, status, "Status of the response."),
    req("url", Type::Str, |e, _| text(Some(target(e)?)), "Target of the request, as presented."),
    req("url32", Type::Int, |e, _| int(hash(url_base(e)?)), "32-bit hash of host and target."),
    req(
        "url32+src",
        Type::Bin,
        |e, _| with_src(e, hash(url_base(e)?)),
        "Hash of host and target, then the client's address.",
    ),
    req("url_ip", Type::Ipv4, url_ip, "IPv4 address of the host in the target."),
    req(
        "url_port",
        Type::Int,
        url_port,
        "Port behind the IPv4 address in the target, or that of its scheme.",
    ),
];

/// The request line, where it is kept.
fn kept_line<'a>(env: &Env<'a>) -> Result<&'a model::txn::RequestLine, Miss> {
    env.txn.line_kept.then_some(&*env.txn.line).ok_or(Miss::None)
}

fn target<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    Ok(env.head(Side::Request).ok_or(Miss::None)?.target())
}

/// The target `*` (of OPTIONS) is no path.
fn without_star(target: &[u8]) -> &[u8] {
    if target == b"*" { b"" } else { target }
}

/// A query behind a host makes a path that is empty, yet there; without either there is none.
fn path<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    let target = without_star(target(env)?);
    some(uri::path_and_query(target))?;
    Ok(uri::path(target))
}

fn pathq<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    some(uri::path_and_query(without_star(target(env)?)))
}

fn some(bytes: &[u8]) -> Result<&[u8], Miss> {
    if bytes.is_empty() { Err(Miss::None) } else { Ok(bytes) }
}

fn host<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    env.head(Side::Request).ok_or(Miss::None).map(|h| h.first(wire::head::Known::Host).unwrap_or_default())
}

fn base<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    let host = first_value(host(env)?);
    match (host, uri::path(without_star(target(env)?))) {
        (b"", path) => some(path),
        (host, path @ [b'/', ..]) => Ok(joined(env, &[host, path])),
        (host, _) => Ok(host),
    }
}

/// A request without host and path has a hash, too; one that is gone has none.
fn base_hash(env: &Env<'_>) -> Result<u32, Miss> {
    target(env)?;
    Ok(hash(base(env).unwrap_or_default()))
}

fn baseq<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    Ok(joined(env, &[first_value(host(env)?), from_slash(env)?]))
}

/// Host, the whole line of it, and whole target, hashed by `url32`.
fn url_base<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    Ok(joined(env, &[host(env)?, from_slash(env)?]))
}

/// Path and query of the target, which without a path are none.
fn from_slash<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    let target = uri::path_and_query(without_star(target(env)?));
    Ok(if target.starts_with(b"/") { target } else { b"" })
}

fn first_value(list: &[u8]) -> &[u8] {
    wire::head::split_values(list).next().unwrap_or_default()
}

fn hash(bytes: &[u8]) -> u32 {
    base::hash::avalanche(base::hash::sdbm(bytes))
}

fn with_src<'a>(env: &Env<'a>, hash: u32) -> Found<'a> {
    let hash = hash.to_be_bytes();
    Ok(Value::Bin(match env.src().ip().ok_or(Miss::None)? {
        std::net::IpAddr::V4(a) => joined(env, &[&hash, &a.octets()]),
        std::net::IpAddr::V6(a) => joined(env, &[&hash, &a.octets()]),
    }))
}

fn method<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    // A common method is remembered as it came, whatever rules make of it; another one is only in the
    // request.
    let came = env.txn.line.method();
    if Method::from_bytes(came) != Method::Other {
        return Ok(Value::Method(came));
    }
    Ok(Value::Method(env.head(Side::Request).ok_or(Miss::None)?.method()))
}

fn line<'a>(part: &'a [u8]) -> Found<'a> {
    text(Some(some(part)?))
}

fn check_capture(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 0).int_or(0) {
        ..0 => Err(Fault::new("capture identifier must be >= 0")),
        _ => Ok(()),
    }
}

fn captured_req<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    slot(env, &env.txn.req_captures.borrow(), args)
}

fn captured_res<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    slot(env, &env.txn.res_captures.borrow(), args)
}

fn slot<'a>(env: &Env<'a>, captures: &[Option<Box<[u8]>>], args: &[Arg]) -> Found<'a> {
    let at = usize::try_from(arg(args, 0).int_or(0)).map_err(|_| Miss::None)?;
    let kept = captures.get(at).and_then(|c| c.as_deref());
    text(kept.map(|c| &*env.arena.alloc_slice_copy(c)))
}

fn version<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    text(version_text(env, side).ok_or(Miss::None)?.strip_prefix(b"HTTP/"))
}

/// That of a response whose place an answer takes is the answer's.
fn version_text<'a>(env: &Env<'a>, side: Side) -> Option<&'a [u8]> {
    let replaced = env.txn.replaced.filter(|_| side == Side::Response).map(|v| v.as_str().as_bytes());
    replaced.or_else(|| env.head(side).map(wire::head::Head::version_read)).or_else(|| {
        // That of a request that is gone is remembered.
        let line = env.txn.line.version();
        (side == Side::Request && !line.is_empty()).then_some(line)
    })
}

/// The line that is kept for logs may be cut before its version.
fn capture_req_ver<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    line(version_text(env, Side::Request).unwrap_or(env.txn.line.version()))
}

fn capture_res_ver<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    text(Some(version_text(env, Side::Response).ok_or(Miss::None)?))
}

/// In HTTP mode rules run once the head is there; in TCP mode nothing parses it. Once there is a response
/// nobody looks at requests.
fn proto_http<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    if env.side == Side::Response || env.txn.times.response.is_some() {
        return Err(Miss::None);
    }
    if env.txn.has_req || !env.txn.line.version().is_empty() {
        return Ok(Value::Bool(true));
    }
    let payload = env.live.payload(Side::Request);
    match looks_like_http(payload.data) {
        None if !payload.complete && !env.last => Err(Miss::Later),
        found => Ok(Value::Bool(found.unwrap_or(false))),
    }
}

/// Whether bytes are a complete HTTP/1 head, whatever version it claims; `None` when they may become one. A
/// line of HTTP/0.9 is one of its own.
fn looks_like_http(data: &[u8]) -> Option<bool> {
    let start = data.iter().position(|c| !matches!(c, b'\r' | b'\n')).unwrap_or(data.len());
    let data = data.get(start..).unwrap_or_default();
    let method = data.iter().take_while(|c| c.is_ascii_uppercase() || **c == b'-').count();
    match data.get(method) {
        None => return None,
        Some(b' ') if method > 0 => {}
        Some(_) => return Some(false),
    }
    let (line, mut rest) = line_of(data)?;
    let mut words = line.split(|c| *c == b' ').skip(1);
    let (target, version) = (words.next().unwrap_or_default(), words.next());
    if target.is_empty() || words.next().is_some() {
        return Some(false);
    }
    let Some(version) = version else { return Some(line.starts_with(b"GET ") && target.starts_with(b"/")) };
    let fits = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'/' | b'.');
    if version.is_empty() || !version.iter().all(fits) {
        return Some(false);
    }
    loop {
        let (line, tail) = line_of(rest)?;
        if line.is_empty() {
            return Some(true);
        }
        let name = line.iter().take_while(|c| is_token(**c)).count();
        // A folded line goes on with the value before it.
        if !(name > 0 && line.get(name) == Some(&b':') || matches!(line.first(), Some(b' ' | b'\t'))) {
            return Some(false);
        }
        rest = tail;
    }
}

/// Whether a byte may stand in the name of a field (RFC 9110 section 5.6.2).
pub(super) fn is_token(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c)
}

/// The first line, without its end, and what follows.
fn line_of(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.iter().position(|c| *c == b'\n')?;
    let (line, rest) = data.split_at_checked(end)?;
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..).unwrap_or_default()))
}

fn status<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    int(env.head(Side::Response).ok_or(Miss::None)?.status())
}

fn server_status<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    match env.txn.times.response {
        Some(_) => status(env, args),
        None if env.txn.status == 0 => Err(Miss::None),
        None => int(0),
    }
}

fn check_query(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 0).bytes() {
        None | Some(b"" | b"with_qm") => Ok(()),
        Some(other) => Err(Fault::new(format!("Unsupported option '{}'", String::from_utf8_lossy(other)))),
    }
}

fn query<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let target = target(env)?;
    let query = uri::query(target).ok_or(Miss::None)?;
    let marked = arg(args, 0).bytes() == Some(b"with_qm") && !query.is_empty();
    text(Some(if marked { &target[target.len() - query.len() - 1..] } else { query }))
}

fn url_ip<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let (address, _) = url_address(target(env)?).ok_or(Miss::None)?;
    Ok(Value::Ipv4(address))
}

fn url_port<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let (_, port) = url_address(target(env)?).ok_or(Miss::None)?;
    int(u32::from(port))
}

/// The address that a URL names right behind `http://` or `https://`, and its port. A name has neither, as in
/// HAProxy, and what follows the address does not matter but for a further dot.
fn url_address(url: &[u8]) -> Option<(Ipv4Addr, u16)> {
    let (scheme, mut rest) = url.split_at_checked(url.iter().position(|b| *b == b':')?)?;
    let usual = match scheme {
        s if s.eq_ignore_ascii_case(b"http") => 80,
        s if s.eq_ignore_ascii_case(b"https") => 443,
        _ => return None,
    };
    rest = rest.strip_prefix(b"://")?;
    let mut octets = [0; 4];
    for (at, octet) in octets.iter_mut().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let (digits, behind) =
            rest.split_at_checked(rest.iter().take_while(|b| b.is_ascii_digit()).count())?;
        *octet = std::str::from_utf8(digits).ok()?.parse().ok()?;
        rest = behind;
    }
    let port = match rest {
        [b'.', ..] => return None,
        // It is one of 16 bits, whatever stands there.
        [b':', digits @ ..] => {
            let digits = digits.iter().take_while(|b| b.is_ascii_digit());
            digits.fold(0u16, |port, b| port.wrapping_mul(10).wrapping_add(u16::from(b - b'0')))
        }
        _ => usual,
    };
    Some((octets.into(), port))
}
