//! Bytes received and not yet forwarded (section 7.3.5).
//!
//! As long as more may come, a block that is not there yet can't be told to be missing.

use crate::arg::{Arg, arg};
use crate::entry::FetchDef;
use crate::env::{Env, Side};
use crate::names::Names;
use crate::places::{EITHER_BUFFER, REQUEST_BUFFER, RESPONSE_BUFFER};
use crate::sample::{Found, Miss, Type, Value, parse_int};
use crate::words::Fault;

use super::int;

const LEN: FetchDef = FetchDef::new(
    "req.len",
    Type::Int,
    REQUEST_BUFFER,
    |e, _| len(e, Side::Request),
    "Number of bytes buffered; in HTTP those of the message, head included.",
)
.growing(|_| true)
.volatile();
const BLOCK: FetchDef = FetchDef::new(
    "req.payload",
    Type::Bin,
    REQUEST_BUFFER,
    |e, a| block(e, Side::Request, a),
    "A block of the bytes buffered; with length 0 all from the offset.",
)
.args("integer,integer", "req.payload(0,16)")
.check(check_block)
// A block of so many bytes is what it is, once they are there.
.growing(|args| number(args, 1) == 0)
.volatile();
const LV: FetchDef = FetchDef::new(
    "req.payload_lv",
    Type::Bin,
    REQUEST_BUFFER,
    |e, a| counted(e, Side::Request, a),
    "A block whose length stands in the bytes buffered.",
)
.args("integer,integer[,string]", "req.payload_lv(43,1)")
.check(check_lv)
.volatile();
const RDP: FetchDef = FetchDef::new(
    "req.rdp_cookie",
    Type::Str,
    REQUEST_BUFFER,
    |e, a| rdp(e, a).map(Value::Str),
    "The cookie of an RDP connection request.",
)
.args("[string]", "req.rdp_cookie(mstshash)")
.volatile();
const RDP_CNT: FetchDef = FetchDef::new(
    "req.rdp_cookie_cnt",
    Type::Int,
    REQUEST_BUFFER,
    rdp_count,
    "Number of RDP cookies of a name.",
)
.args("[string]", "req.rdp_cookie_cnt(mstshash)")
.volatile();

pub(super) const FETCHES: &[FetchDef] = &[
    LEN,
    BLOCK,
    LV,
    RDP,
    RDP_CNT,
    LEN.alias("req_len", REQUEST_BUFFER, "req_len"),
    RDP.alias("rdp_cookie", REQUEST_BUFFER, "rdp_cookie(mstshash)"),
    RDP_CNT.alias("rdp_cookie_cnt", REQUEST_BUFFER, "rdp_cookie_cnt"),
    LEN.alias("res.len", RESPONSE_BUFFER, "res.len").eval(|e, _| len(e, Side::Response)),
    BLOCK.alias("res.payload", RESPONSE_BUFFER, "res.payload(0,16)").eval(|e, a| block(e, Side::Response, a)),
    LV.alias("res.payload_lv", RESPONSE_BUFFER, "res.payload_lv(43,1)")
        .eval(|e, a| counted(e, Side::Response, a)),
    BLOCK.alias("payload", EITHER_BUFFER, "payload(0,16)").eval(|e, a| block(e, e.side, a)),
    LV.alias("payload_lv", EITHER_BUFFER, "payload_lv(43,1)").eval(|e, a| counted(e, e.side, a)),
];

fn len<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    if env.is_http(side) {
        return int(super::blocks::size_of_data(&Env { side, ..*env })? as u64);
    }
    int(env.live.payload(side).data.len() as u64)
}

fn check_block(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    if arg(args, 0).int_or(0) < 0 || arg(args, 1).int_or(0) < 0 {
        return Err(Fault::new("payload offset and length must not be negative"));
    }
    Ok(())
}

/// The offset of the block may be relative: it is then kept as a string with its sign.
fn check_lv(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    check_block(args, names)?;
    if arg(args, 1).int_or(0) == 0 || arg(args, 1).int_or(0) > 8 {
        return Err(Fault::new("payload length must be > 0"));
    }
    match arg(args, 2).bytes() {
        None | Some(b"") => Ok(()),
        Some(text) if parse_int(text).is_some() => Ok(()),
        Some(_) => Err(Fault::new("payload offset2 is not a number")),
    }
}

/// Bytes `from..from+length`, or why not.
fn part(payload: crate::env::Payload<'_>, from: usize, length: usize, last: bool) -> Result<&[u8], Miss> {
    let end = from.checked_add(length).ok_or(Miss::None)?;
    match payload.data.get(from..end) {
        Some(bytes) => Ok(bytes),
        None if payload.complete || last => Err(Miss::None),
        None => Err(Miss::Later),
    }
}

fn number(args: &[Arg], at: usize) -> usize {
    usize::try_from(arg(args, at).int_or(0)).unwrap_or(0)
}

/// The raw bytes of one direction. In HTTP there are messages instead, which other fetches read.
fn raw<'a>(env: &Env<'a>, side: Side) -> Result<crate::env::Payload<'a>, Miss> {
    match env.is_http(side) {
        true => Err(Miss::None),
        false => Ok(env.live.payload(side)),
    }
}

fn block<'a>(env: &Env<'a>, side: Side, args: &'a [Arg]) -> Found<'a> {
    let payload = raw(env, side)?;
    let (from, length) = (number(args, 0), number(args, 1));
    if length == 0 {
        let rest = payload.data.get(from..).unwrap_or_default();
        return match rest {
            [] if payload.complete || env.last => Err(Miss::None),
            [] => Err(Miss::Later),
            bytes => Ok(Value::Bin(bytes)),
        };
    }
    part(payload, from, length, env.last).map(Value::Bin)
}

fn counted<'a>(env: &Env<'a>, side: Side, args: &'a [Arg]) -> Found<'a> {
    let payload = raw(env, side)?;
    let (at, size) = (number(args, 0), number(args, 1));
    let length =
        part(payload, at, size, env.last)?.iter().fold(0usize, |n, c| n.wrapping_shl(8) | usize::from(*c));
    let behind = at.saturating_add(size);
    let from = match arg(args, 2).bytes().filter(|t| !t.is_empty()) {
        None => behind,
        Some(text) => {
            let offset = parse_int(text).unwrap_or(0);
            let relative = matches!(text.first(), Some(b'+' | b'-'));
            let base = if relative { i64::try_from(behind).unwrap_or(i64::MAX) } else { 0 };
            usize::try_from(base.saturating_add(offset)).map_err(|_| Miss::None)?
        }
    };
    if length == 0 {
        return Err(Miss::None);
    }
    part(payload, from, length, env.last).map(Value::Bin)
}

/// The value of the cookie in an X.224 connection request ([MS-RDPBCGR] 2.2.1.1): `Cookie: name=value` CR LF.
fn rdp<'a>(env: &Env<'a>, args: &[Arg]) -> Result<&'a [u8], Miss> {
    let payload = env.live.payload(Side::Request);
    let wait = if payload.complete || env.last { Miss::None } else { Miss::Later };
    let data = payload.data;
    let header = data.get(..11).ok_or(wait)?;
    // TPKT version 3, then an X.224 connection request of class 0.
    if header[0] != 3 || header[1] != 0 || header[5] != 0xe0 {
        return Err(Miss::None);
    }
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let text = data.get(11..length.max(11)).ok_or(wait)?;
    let text = text.strip_prefix(b"Cookie:").ok_or(Miss::None)?;
    let blanks = text.iter().take_while(|c| **c == b' ').count();
    let text = &text[blanks..];
    let equals = text.iter().position(|c| *c == b'=').ok_or(Miss::None)?;
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let end = value.iter().position(|c| matches!(c, b'\r' | b';')).ok_or(Miss::None)?;
    match arg(args, 0).bytes() {
        Some(wanted) if !wanted.is_empty() && !wanted.eq_ignore_ascii_case(name) => Err(Miss::None),
        _ => Ok(&value[..end]),
    }
}

fn rdp_count<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    match rdp(env, args) {
        Ok(_) => int(1),
        Err(Miss::Later) => Err(Miss::Later),
        Err(Miss::None) => int(0),
    }
}
