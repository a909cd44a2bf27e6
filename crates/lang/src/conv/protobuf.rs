//! Fields of protocol buffers, bare or in a gRPC message (section 7.3.1, `protobuf`, `ungrpc`).
//!
//! A path of field numbers leads through nested messages. A message is walked, not built: each step is a
//! cursor over the bytes of one level, and a length that does not fit ends it.

use std::sync::Arc;

use super::bytes;
use crate::arg::{Arg, arg};
use crate::entry::{ConvDef, ConvFn};
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

const fn def(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::new(name, Type::Bin, Type::Bin, eval, doc, example)
        .args("Protocol buffers field number[,string]")
        .check(check)
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    def(
        "protobuf",
        |_, v, a| extract(bytes(v), a),
        "A field of a protocol buffers message, raw or as an integer of a type.",
        "req.body,protobuf(1.2,int32)",
    ),
    def(
        "ungrpc",
        |_, v, a| extract(message(bytes(v)).ok_or(Miss::None)?, a),
        "A field of the first message of a gRPC body, raw or as an integer of a type.",
        "req.body,ungrpc(48.59.1,int32)",
    ),
];

/// How the bytes of a field are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Varint,
    Zigzag,
    Fixed32,
    Signed32,
    Float,
    Fixed64,
    Double,
}

const KINDS: &[(&str, Kind)] = &[
    ("int32", Kind::Varint),
    ("uint32", Kind::Varint),
    ("sint32", Kind::Zigzag),
    ("int64", Kind::Varint),
    ("uint64", Kind::Varint),
    ("sint64", Kind::Zigzag),
    ("bool", Kind::Varint),
    ("enum", Kind::Varint),
    ("fixed32", Kind::Fixed32),
    ("sfixed32", Kind::Signed32),
    ("float", Kind::Float),
    ("fixed64", Kind::Fixed64),
    ("sfixed64", Kind::Fixed64),
    ("double", Kind::Double),
];

/// What the arguments say.
struct Wanted {
    path: Vec<u64>,
    kind: Option<Kind>,
}

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let text = arg(args, 0).bytes().unwrap_or_default();
    let numbers = String::from_utf8_lossy(text).split('.').map(|n| n.parse().unwrap_or(0)).collect();
    let kind = match arg(args, 1).bytes().map(String::from_utf8_lossy) {
        None => None,
        Some(name) => {
            let kind = KINDS.iter().find(|(n, _)| *n == name);
            Some(kind.ok_or_else(|| Fault::new(format!("Wrong protocol buffer type '{name}'")))?.1)
        }
    };
    *args = vec![Arg::Other(Arc::new(Wanted { path: numbers, kind }))];
    Ok(())
}

/// One field of a message: its number, and its value by wire type.
enum Field<'a> {
    Varint(&'a [u8], u64),
    Fixed64(&'a [u8; 8]),
    Bytes(&'a [u8]),
    Fixed32(&'a [u8; 4]),
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let tag = varint(rest)?;
    let field = match tag & 7 {
        0 => {
            let before = *rest;
            let value = varint(rest)?;
            Field::Varint(before.get(..before.len() - rest.len())?, value)
        }
        1 => {
            let (head, tail) = rest.split_first_chunk()?;
            *rest = tail;
            Field::Fixed64(head)
        }
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            let (head, tail) = rest.split_at_checked(length)?;
            *rest = tail;
            Field::Bytes(head)
        }
        5 => {
            let (head, tail) = rest.split_first_chunk()?;
            *rest = tail;
            Field::Fixed32(head)
        }
        _ => return None,
    };
    Some((tag >> 3, field))
}

/// The first field of that number.
fn first(message: &[u8], number: u64) -> Option<Field<'_>> {
    let mut rest = message;
    while !rest.is_empty() {
        let (n, value) = field(&mut rest)?;
        if n == number {
            return Some(value);
        }
    }
    None
}

fn extract<'a>(message: &'a [u8], args: &'a [Arg]) -> Found<'a> {
    let Arg::Other(any) = arg(args, 0) else { return Err(Miss::None) };
    let wanted = any.downcast_ref::<Wanted>().ok_or(Miss::None)?;
    let (last, nested) = wanted.path.split_last().ok_or(Miss::None)?;
    let mut here = message;
    for number in nested {
        let Some(Field::Bytes(inner)) = first(here, *number) else { return Err(Miss::None) };
        here = inner;
    }
    let found = first(here, *last).ok_or(Miss::None)?;
    match wanted.kind {
        None => Ok(Value::Bin(match found {
            Field::Varint(raw, _) | Field::Bytes(raw) => raw,
            Field::Fixed64(raw) => raw,
            Field::Fixed32(raw) => raw,
        })),
        Some(kind) => typed(kind, &found).map(Value::Int).ok_or(Miss::None),
    }
}

/// The integer part; what is out of range is the least integer, as processors have it.
fn whole(n: f64) -> i64 {
    const RANGE: f64 = 9_223_372_036_854_775_808.0;
    if (-RANGE..RANGE).contains(&n) { n as i64 } else { i64::MIN }
}

/// The integer that a field means, if its wire type carries that type.
fn typed(kind: Kind, field: &Field<'_>) -> Option<i64> {
    let zigzag = |n: u64| (n >> 1) as i64 ^ -((n & 1) as i64);
    Some(match (kind, field) {
        (Kind::Varint, Field::Varint(_, n)) => *n as i64,
        (Kind::Zigzag, Field::Varint(_, n)) => zigzag(*n),
        (Kind::Fixed32, Field::Fixed32(b)) => i64::from(u32::from_le_bytes(**b)),
        (Kind::Signed32, Field::Fixed32(b)) => i64::from(i32::from_le_bytes(**b)),
        (Kind::Float, Field::Fixed32(b)) => whole(f32::from_le_bytes(**b).into()),
        (Kind::Fixed64, Field::Fixed64(b)) => i64::from_le_bytes(**b),
        (Kind::Double, Field::Fixed64(b)) => whole(f64::from_le_bytes(**b)),
        _ => return None,
    })
}

/// The first message of a gRPC body: a flag that must not say compressed, and four bytes of length.
fn message(body: &[u8]) -> Option<&[u8]> {
    let (head, rest) = body.split_first_chunk::<5>()?;
    let [flag, length @ ..] = head;
    let length = u32::from_be_bytes(*length) as usize;
    if *flag != 0 { None } else { rest.get(..length) }
}
