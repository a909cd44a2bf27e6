//! distcc (section 7.3.5): tokens of four letters, a parameter in eight hexadecimal digits, for some a body
//! of that length.

use crate::arg::{Arg, arg};
use crate::entry::FetchDef;
use crate::env::{Env, Side};
use crate::names::Names;
use crate::places::EITHER_BUFFER;
use crate::sample::{Miss, Type, Value};
use crate::words::Fault;

const TOKEN: usize = 4;
const HEADER: usize = 12;
/// Tokens whose parameter is the length of a body.
const WITH_BODY: [&[u8]; 9] =
    [b"ARGV", b"CDIR", b"DOTI", b"DOTO", b"FILE", b"LINK", b"NAME", b"SERR", b"SOUT"];

pub(super) const FETCHES: &[FetchDef] = &[
    FetchDef::new(
        "distcc_body",
        Type::Bin,
        EITHER_BUFFER,
        |e, a| find(e, a).and_then(|(_, body)| body.map(Value::Bin).ok_or(Miss::None)),
        "The body of a token of a distcc message.",
    )
    .args("string[,integer]", "distcc_body(ARGV,2)")
    .check(check)
    .volatile(),
    FetchDef::new(
        "distcc_param",
        Type::Int,
        EITHER_BUFFER,
        |e, a| find(e, a).map(|(n, _)| Value::Int(i64::from(n))),
        "The parameter of a token of a distcc message.",
    )
    .args("string[,integer]", "distcc_param(DOTI)")
    .check(check)
    .volatile(),
];

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    if arg(args, 0).bytes().is_none_or(|t| t.len() != TOKEN) {
        return Err(Fault::new("token name must be exactly 4 characters"));
    }
    Ok(())
}

/// The parameter of the token asked for, and its body, which may not be there yet.
fn find<'a>(env: &Env<'a>, args: &[Arg]) -> Result<(u32, Option<&'a [u8]>), Miss> {
    let side = if env.side == Side::Response { Side::Response } else { Side::Request };
    let payload = env.live.payload(side);
    let wait = if payload.complete || env.last { Miss::None } else { Miss::Later };
    let wanted = arg(args, 0).bytes().unwrap_or_default();
    // There is no occurrence below zero: it is never found.
    let mut skip = match arg(args, 1).int_or(1) {
        asked if asked < 0 => i64::MAX,
        asked => asked.max(1) - 1,
    };
    let mut rest = payload.data;
    loop {
        let header = rest.get(..HEADER).ok_or(wait)?;
        let (token, digits) = header.split_at(TOKEN);
        let digits = std::str::from_utf8(digits).map_err(|_| Miss::None)?;
        let number = u32::from_str_radix(digits, 16).map_err(|_| Miss::None)?;
        let length = if WITH_BODY.contains(&token) { number as usize } else { 0 };
        let body = rest.get(HEADER..HEADER.saturating_add(length));
        if token == wanted {
            if skip == 0 {
                return Ok((number, body));
            }
            skip -= 1;
        }
        body.ok_or(wait)?;
        rest = rest.get(HEADER + length..).unwrap_or_default();
    }
}
