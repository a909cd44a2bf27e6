//! The TLS hello in bytes that are passed on unread (section 7.3.5; RFC 8446 sections 4 and 5.1).
//!
//! Only the first record is looked at. A cursor walks the nested lengths; whatever does not fit is no hello.

use crate::arg::Arg;
use crate::cursor::Cursor;
use crate::entry::{FetchDef, FetchFn};
use crate::env::{Env, Side};
use crate::places::{CLIENT_L4, REQUEST_BUFFER, RESPONSE_BUFFER};
use crate::sample::{Found, Miss, Type, Value};

use super::int;

const TYPE: FetchDef = FetchDef::new(
    "req.ssl_hello_type",
    Type::Int,
    REQUEST_BUFFER,
    |e, _| hello_type(e, Side::Request),
    "Type of the TLS handshake message buffered: 1 is a client hello.",
)
.volatile();
const SNI: FetchDef = FetchDef::new(
    "req.ssl_sni",
    Type::Str,
    REQUEST_BUFFER,
    sni,
    "Server name in the TLS client hello buffered.",
)
.volatile();
const VER: FetchDef = FetchDef::new(
    "req.ssl_ver",
    Type::Int,
    REQUEST_BUFFER,
    version,
    "Version in the TLS client hello buffered, major * 65536 + minor.",
)
.volatile();

pub(super) const FETCHES: &[FetchDef] = &[
    TYPE,
    SNI,
    VER,
    FetchDef::new(
        "req.ssl_alpn",
        Type::Str,
        REQUEST_BUFFER,
        alpn,
        "Protocols in the TLS client hello buffered: ACLs look at all of them, else it is the first.",
    )
    .each(each_alpn)
    .volatile(),
    FetchDef::new(
        "req.ssl_ec_ext",
        Type::Bool,
        REQUEST_BUFFER,
        curves,
        "Whether the TLS client hello buffered names elliptic curves.",
    )
    .volatile(),
    list("req.ssl_cipherlist", |e, _| ciphers(e), "Cipher suites in the TLS client hello buffered."),
    list(
        "req.ssl_keyshare_groups",
        |e, _| key_shares(e),
        "Groups of the key shares in the TLS client hello buffered.",
    ),
    list(
        "req.ssl_sigalgs",
        |e, _| listed(e, SIGNATURE_ALGORITHMS),
        "Signature algorithms in the TLS client hello buffered.",
    ),
    list(
        "req.ssl_supported_groups",
        |e, _| listed(e, SUPPORTED_GROUPS),
        "Groups in the TLS client hello buffered.",
    ),
    FetchDef::new(
        "req.ssl_st_ext",
        Type::Int,
        REQUEST_BUFFER,
        ticket,
        "Session ticket in the TLS client hello buffered: 0 not offered, 1 empty, 2 there.",
    )
    .volatile(),
    TYPE.alias("req_ssl_hello_type", REQUEST_BUFFER, "req_ssl_hello_type"),
    SNI.alias("req_ssl_sni", REQUEST_BUFFER, "req_ssl_sni"),
    VER.alias("req_ssl_ver", REQUEST_BUFFER, "req_ssl_ver"),
    TYPE.alias("res.ssl_hello_type", RESPONSE_BUFFER, "res.ssl_hello_type")
        .eval(|e, _| hello_type(e, Side::Response)),
    TYPE.alias("rep_ssl_hello_type", RESPONSE_BUFFER, "rep_ssl_hello_type")
        .eval(|e, _| hello_type(e, Side::Response)),
];

const fn list(name: &'static str, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Bin, CLIENT_L4, eval, doc).volatile()
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const SIGNATURE_ALGORITHMS: u16 = 13;
const ALPN: u16 = 16;
const SESSION_TICKET: u16 = 35;
const KEY_SHARE: u16 = 51;

/// The first record's content, or why there is none.
fn record<'a>(env: &Env<'a>, side: Side) -> Result<&'a [u8], Miss> {
    let payload = env.live.payload(side);
    let wait = if payload.complete || env.last { Miss::None } else { Miss::Later };
    let data = payload.data;
    if data.first().is_some_and(|c| *c != HANDSHAKE) || data.get(1).is_some_and(|c| *c != 3) {
        return Err(Miss::None);
    }
    let mut cursor = Cursor(data);
    cursor.take(3).ok_or(wait)?;
    cursor.vector(2).ok_or(wait)
}

fn hello_type<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    int(*record(env, side)?.first().ok_or(Miss::None)?)
}

/// What is read of a client hello.
struct Hello<'a> {
    version: u16,
    ciphers: &'a [u8],
    extensions: &'a [u8],
}

fn client_hello<'a>(env: &Env<'a>) -> Result<Hello<'a>, Miss> {
    let mut record = Cursor(record(env, Side::Request)?);
    if record.take(1) != Some(&[CLIENT_HELLO]) {
        return Err(Miss::None);
    }
    // A hello that is cut by the end of the record is read as far as it goes.
    let length = (record.number(3).ok_or(Miss::None)? as usize).min(record.0.len());
    parse_hello(record.take(length).unwrap_or_default()).ok_or(Miss::None)
}

fn parse_hello(hello: &[u8]) -> Option<Hello<'_>> {
    let mut hello = Cursor(hello);
    let version = hello.number(2)? as u16;
    hello.take(32)?;
    hello.vector(1)?;
    let ciphers = hello.vector(2)?;
    hello.vector(1)?;
    let extensions = if hello.0.is_empty() { &[] } else { hello.vector(2)? };
    Some(Hello { version, ciphers, extensions })
}

fn extension<'a>(env: &Env<'a>, wanted: u16) -> Result<&'a [u8], Miss> {
    let mut cursor = Cursor(client_hello(env)?.extensions);
    while !cursor.0.is_empty() {
        let kind = cursor.number(2).ok_or(Miss::None)?;
        let content = cursor.vector(2).ok_or(Miss::None)?;
        if kind == u32::from(wanted) {
            return Ok(content);
        }
    }
    Err(Miss::None)
}

fn version<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let version = client_hello(env)?.version;
    int(i64::from(version >> 8) << 16 | i64::from(version & 0xff))
}

fn sni<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let mut list = Cursor(Cursor(extension(env, SERVER_NAME)?).vector(2).ok_or(Miss::None)?);
    while !list.0.is_empty() {
        let kind = list.number(1).ok_or(Miss::None)?;
        let name = list.vector(2).ok_or(Miss::None)?;
        if kind == 0 {
            return Ok(Value::Str(name));
        }
    }
    Err(Miss::None)
}

fn alpn<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let mut list = Cursor(Cursor(extension(env, ALPN)?).vector(2).ok_or(Miss::None)?);
    Ok(Value::Str(list.vector(1).ok_or(Miss::None)?))
}

fn each_alpn<'a>(env: &Env<'a>, _: &'a [Arg], visit: &mut dyn FnMut(Value<'a>) -> bool) -> Found<'a> {
    let mut list = Cursor(Cursor(extension(env, ALPN)?).vector(2).ok_or(Miss::None)?);
    while let Some(name) = list.vector(1) {
        if visit(Value::Str(name)) {
            break;
        }
    }
    Err(Miss::None)
}

fn curves<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    match extension(env, SUPPORTED_GROUPS) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(Miss::Later) => Err(Miss::Later),
        Err(Miss::None) => Ok(Value::Bool(false)),
    }
}

fn ciphers<'a>(env: &Env<'a>) -> Found<'a> {
    Ok(Value::Bin(client_hello(env)?.ciphers))
}

/// An extension that is one list behind its length.
fn listed<'a>(env: &Env<'a>, wanted: u16) -> Found<'a> {
    Cursor(extension(env, wanted)?).vector(2).map(Value::Bin).ok_or(Miss::None)
}

fn key_shares<'a>(env: &Env<'a>) -> Found<'a> {
    let mut shares = Cursor(Cursor(extension(env, KEY_SHARE)?).vector(2).ok_or(Miss::None)?);
    let mut groups = bumpalo::collections::Vec::new_in(env.arena);
    while !shares.0.is_empty() {
        groups.extend_from_slice(shares.take(2).ok_or(Miss::None)?);
        shares.vector(2).ok_or(Miss::None)?;
    }
    Ok(Value::Bin(groups.into_bump_slice()))
}

fn ticket<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    match extension(env, SESSION_TICKET) {
        Ok([]) => int(1),
        Ok(_) => int(2),
        Err(Miss::Later) => Err(Miss::Later),
        Err(Miss::None) => client_hello(env).and_then(|_| int(0)),
    }
}
