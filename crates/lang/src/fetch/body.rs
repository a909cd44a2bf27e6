//! Bodies of messages, as far as they are buffered (section 7.3.6).

use wire::head::Known;

use crate::env::{Env, Side};
use crate::places::{REQUEST, RESPONSE};
use crate::registry::FetchDef;
use crate::sample::{Found, Miss, Type, Value, parse_int};

use super::int;

const BODY: FetchDef = FetchDef::new(
    "req.body",
    Type::Bin,
    REQUEST,
    |e, _| body(e, Side::Request),
    "The body's bytes that are there.",
)
.volatile();
const LEN: FetchDef = FetchDef::new(
    "req.body_len",
    Type::Int,
    REQUEST,
    |e, _| len(e, Side::Request),
    "Number of the body's bytes that are there.",
)
.volatile();
const SIZE: FetchDef = FetchDef::new(
    "req.body_size",
    Type::Int,
    REQUEST,
    |e, _| size(e, Side::Request),
    "Length of the body as announced.",
)
.volatile();

pub(super) const FETCHES: &[FetchDef] = &[
    BODY,
    LEN,
    SIZE,
    BODY.alias("res.body", RESPONSE, "res.body").eval(|e, _| body(e, Side::Response)),
    LEN.alias("res.body_len", RESPONSE, "res.body_len").eval(|e, _| len(e, Side::Response)),
    SIZE.alias("res.body_size", RESPONSE, "res.body_size").eval(|e, _| size(e, Side::Response)),
];

/// In TCP nobody tells a body from the bytes before it.
fn is_message(env: &Env<'_>, side: Side) -> Result<(), Miss> {
    env.is_http(side).then_some(()).ok_or(Miss::None)
}

fn body<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    is_message(env, side)?;
    Ok(Value::Bin(env.live.payload(side).data))
}

fn len<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    is_message(env, side)?;
    int(env.live.payload(side).data.len() as u64)
}

fn size<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    match head.first(Known::ContentLength).and_then(parse_int) {
        Some(n) => Ok(Value::Int(n)),
        None => len(env, side),
    }
}
