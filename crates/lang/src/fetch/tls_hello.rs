//! The TLS hello in bytes that are passed on unread (section 7.3.5; RFC 8446 sections 4 and 5.1).
//!
//! Only the first record is looked at. A cursor walks the nested lengths; whatever does not fit is no hello.

use crate::arg::Arg;
use crate::env::{Env, Side};
use crate::places::{REQUEST_BUFFER, RESPONSE_BUFFER};
use crate::registry::FetchDef;
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
        "Protocols in the TLS client hello buffered, joined by commas.",
    )
    .volatile(),
    FetchDef::new(
        "req.ssl_ec_ext",
        Type::Bool,
        REQUEST_BUFFER,
        curves,
        "Whether the TLS client hello buffered names elliptic curves.",
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

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const ALPN: u16 = 16;

/// A cursor over nested lengths.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    /// A big-endian number of `n` bytes.
    fn number(&mut self, n: usize) -> Option<usize> {
        Some(self.take(n)?.iter().fold(0, |all, c| all << 8 | usize::from(*c)))
    }

    /// A vector behind a length of `n` bytes.
    fn vector(&mut self, n: usize) -> Option<&'a [u8]> {
        let len = self.number(n)?;
        self.take(len)
    }
}

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

/// Version and extensions of the client hello.
fn client_hello<'a>(env: &Env<'a>) -> Result<(u16, &'a [u8]), Miss> {
    let mut record = Cursor(record(env, Side::Request)?);
    if record.take(1) != Some(&[CLIENT_HELLO]) {
        return Err(Miss::None);
    }
    // A hello that is cut by the end of the record is read as far as it goes.
    let length = record.number(3).ok_or(Miss::None)?.min(record.0.len());
    parse_hello(record.take(length).unwrap_or_default()).ok_or(Miss::None)
}

fn parse_hello(hello: &[u8]) -> Option<(u16, &[u8])> {
    let mut hello = Cursor(hello);
    let version = hello.number(2)? as u16;
    hello.take(32)?;
    hello.vector(1)?;
    hello.vector(2)?;
    hello.vector(1)?;
    let extensions = if hello.0.is_empty() { &[] } else { hello.vector(2)? };
    Some((version, extensions))
}

fn extension<'a>(env: &Env<'a>, wanted: u16) -> Result<&'a [u8], Miss> {
    let (_, extensions) = client_hello(env)?;
    let mut cursor = Cursor(extensions);
    while !cursor.0.is_empty() {
        let kind = cursor.number(2).ok_or(Miss::None)?;
        let content = cursor.vector(2).ok_or(Miss::None)?;
        if kind == usize::from(wanted) {
            return Ok(content);
        }
    }
    Err(Miss::None)
}

fn version<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let (version, _) = client_hello(env)?;
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
    let mut all = bumpalo::collections::Vec::new_in(env.arena);
    while !list.0.is_empty() {
        let name = list.vector(1).ok_or(Miss::None)?;
        if !all.is_empty() {
            all.push(b',');
        }
        all.extend_from_slice(name);
    }
    Ok(Value::Str(all.into_bump_slice()))
}

fn curves<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    match extension(env, SUPPORTED_GROUPS) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(Miss::Later) => Err(Miss::Later),
        Err(Miss::None) => Ok(Value::Bool(false)),
    }
}
