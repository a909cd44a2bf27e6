//! Bodies of messages, as far as they are buffered (section 7.3.6).

use wire::head::Known;

use crate::entry::FetchDef;
use crate::env::{Env, Side};
use crate::places::{REQUEST, RESPONSE};
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

/// The bytes of a body that are there. The head of a request may be looked at in TCP mode, too, but only HTTP
/// tells the body from the bytes behind it: until then there is an empty one.
fn data<'a>(env: &Env<'a>, side: Side) -> Result<&'a [u8], Miss> {
    if env.is_http(side) {
        return Ok(env.live.payload(side).data);
    }
    env.head(side).map(|_| &[][..]).ok_or(Miss::None)
}

fn body<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    data(env, side).map(Value::Bin)
}

fn len<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    int(data(env, side)?.len() as u64)
}

fn size<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    let announced = env.head(side).filter(|_| env.is_http(side)).and_then(|h| h.first(Known::ContentLength));
    match announced.and_then(parse_int) {
        Some(n) => Ok(Value::Int(n)),
        None if env.is_http(side) => {
            // What a chunk that has begun is known to bring counts.
            let payload = env.live.payload(side);
            int(payload.data.len() as u64 + payload.due)
        }
        None => len(env, side),
    }
}
