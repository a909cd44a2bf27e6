//! MQTT 3.1, 3.1.1 and 5.0: the first packet of either side (section 7.3.1, `mqtt_*`; OASIS MQTT sections
//! 3.1, 3.2).
//!
//! A packet is parsed whole each time, into places of its bytes; what does not fit its lengths is no packet.

use super::{bytes, made, some};
use crate::arg::{Arg, arg};
use crate::cursor::Cursor;
use crate::entry::ConvDef;
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value, append_int};
use crate::words::Fault;

const CONNECT: i64 = 1;
const CONNACK: i64 = 2;
/// Names of the packet types by number, from 1.
const PACKETS: [&str; 15] = [
    "connect",
    "connack",
    "publish",
    "puback",
    "pubrec",
    "pubrel",
    "pubcomp",
    "subscribe",
    "suback",
    "unsubscribe",
    "unsuback",
    "pingreq",
    "pingresp",
    "disconnect",
    "auth",
];
/// Fields by number; properties stand for themselves, above them.
const FIELDS: [&str; 10] = [
    "flags",
    "protocol_version",
    "protocol_name",
    "client_identifier",
    "will_topic",
    "will_payload",
    "username",
    "password",
    "keepalive",
    "reason_code",
];
const FLAGS: usize = 0;
const VERSION: usize = 1;
const PROTOCOL: usize = 2;
const CLIENT: usize = 3;
const WILL_TOPIC: usize = 4;
const WILL_PAYLOAD: usize = 5;
const USER: usize = 6;
const PASSWORD: usize = 7;
const KEEPALIVE: usize = 8;
const REASON: usize = 9;
const USER_PROPERTY: u8 = 38;
/// Properties that CONNECT may have, those of its will behind them.
const OF_CONNECT: &[u8] = &[17, 33, 39, 34, 25, 23, 21, 22, USER_PROPERTY];
const OF_WILL: &[u8] = &[24, 1, 2, 3, 8, 9, USER_PROPERTY];
const OF_CONNACK: &[u8] = &[17, 33, 36, 37, 39, 18, 34, 31, 40, 41, 42, 19, 26, 28, 21, 22, USER_PROPERTY];

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "mqtt_field_value",
        Type::Bin,
        Type::Str,
        value,
        "A field or a property of an MQTT CONNECT or CONNACK packet.",
        "req.payload(0,0),mqtt_field_value(connect,username)",
    )
    .args("string,string")
    .check(check),
    ConvDef::new(
        "mqtt_is_valid",
        Type::Bin,
        Type::Bool,
        |_, v, _| valid(bytes(v)),
        "Whether the bytes are a valid MQTT packet.",
        "req.payload(0,0),mqtt_is_valid",
    ),
];

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let word = |i| String::from_utf8_lossy(arg(args, i).bytes().unwrap_or_default()).into_owned();
    let (packet, name) = (word(0), word(1));
    let by_name = PACKETS.iter().position(|p| p.eq_ignore_ascii_case(&packet)).map(|at| at as i64 + 1);
    let kind = by_name.or_else(|| packet.parse().ok().filter(|n| (1..=15).contains(n)));
    let kind = kind.ok_or_else(|| Fault::new(format!("Unknown MQTT type '{packet}'")))?;
    let field = field_number(kind, &name);
    let field = field
        .ok_or_else(|| Fault::new(format!("Unknown MQTT field name '{name}' for packet type '{packet}'")))?;
    *args = vec![Arg::Int(kind), Arg::Int(field)];
    Ok(())
}

/// The index of a field, or 100 more than the number of a property.
fn field_number(kind: i64, name: &str) -> Option<i64> {
    let properties = |n: u8| match kind {
        CONNECT => OF_CONNECT.contains(&n) || OF_WILL.contains(&n),
        CONNACK => OF_CONNACK.contains(&n),
        _ => false,
    };
    if let Ok(number) = name.parse::<u8>() {
        return properties(number).then(|| 100 + i64::from(number));
    }
    let field = FIELDS.iter().position(|f| f.eq_ignore_ascii_case(name))?;
    let there = match kind {
        CONNECT => field != REASON,
        CONNACK => matches!(field, FLAGS | VERSION | REASON),
        _ => false,
    };
    there.then_some(field as i64)
}

/// A number or bytes of the packet.
#[derive(Clone, Copy)]
enum Item<'a> {
    Number(u32),
    Bytes(&'a [u8]),
}

/// What a packet holds.
#[derive(Default)]
struct Packet<'a> {
    kind: i64,
    fields: [Option<Item<'a>>; FIELDS.len()],
    /// Properties by number; the will's after the packet's own.
    properties: Vec<(u8, Item<'a>)>,
}

/// A number in at most four bytes of seven bits.
fn varint(at: &mut Cursor<'_>) -> Option<u32> {
    let mut value = 0;
    for shift in [0, 7, 14, 21] {
        let byte = at.number(1)?;
        value |= (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads a block of properties, each of which may stand there once.
fn properties<'a>(at: &mut Cursor<'a>, allowed: &[u8], out: &mut Vec<(u8, Item<'a>)>) -> Option<()> {
    let length = varint(at)?;
    let mut block = Cursor(at.take(length as usize)?);
    let own = out.len();
    while !block.0.is_empty() {
        let id = u8::try_from(varint(&mut block)?).ok().filter(|id| allowed.contains(id))?;
        if id == USER_PROPERTY {
            block.vector(2)?;
            block.vector(2)?;
            continue;
        }
        if out.get(own..)?.iter().any(|(other, _)| *other == id) {
            return None;
        }
        out.push((id, property(&mut block, id)?));
    }
    Some(())
}

fn property<'a>(block: &mut Cursor<'a>, id: u8) -> Option<Item<'a>> {
    Some(match id {
        1 | 23 | 25 | 36 | 37 | 40 | 41 | 42 => {
            let byte = block.number(1)?;
            Item::Number(Some(byte).filter(|b| *b <= 1)?)
        }
        19 | 33 | 34 => Item::Number(block.number(2)?),
        2 | 17 | 24 | 39 => Item::Number(block.number(4)?),
        _ => Item::Bytes(block.vector(2)?),
    })
}

/// What is wrong: bytes are missing, or there are the wrong ones.
enum Bad {
    Short,
    Wrong,
}

fn parse(data: &[u8]) -> Result<Packet<'_>, Bad> {
    let mut at = Cursor(data);
    let first = at.number(1).filter(|_| data.len() > 1).ok_or(Bad::Short)?;
    let mut packet = Packet { kind: i64::from(first >> 4), ..Packet::default() };
    // The flags that each type has (section 2.2.2 of MQTT 3.1.1), 3 being free to choose.
    let flags = match packet.kind {
        0 => return Err(Bad::Wrong),
        3 => first & 15,
        6 | 8 | 10 => 2,
        _ => 0,
    };
    if first & 15 != flags {
        return Err(Bad::Wrong);
    }
    let length = match varint(&mut at) {
        Some(length) => length as usize,
        None => return Err(if data.len() < 5 { Bad::Short } else { Bad::Wrong }),
    };
    // What follows the packet is of no interest.
    at = Cursor(at.0.get(..length).ok_or(Bad::Short)?);
    let done = match packet.kind {
        CONNECT => connect(&mut at, &mut packet),
        CONNACK => connack(&mut at, &mut packet),
        _ => None,
    };
    match done {
        Some(()) if at.0.is_empty() => Ok(packet),
        _ => Err(Bad::Wrong),
    }
}

fn connect<'a>(at: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Option<()> {
    let name = at.vector(2)?;
    let version = at.number(1)?;
    if !matches!((name, version), (b"MQIsdp", 3) | (b"MQTT", 4 | 5)) {
        return None;
    }
    let flags = at.number(1)?;
    let bit = |n: u32| flags >> n & 1 != 0;
    let (user, password, will) = (bit(7), bit(6), bit(2));
    if bit(0) {
        return None;
    }
    let keepalive = at.number(2)?;
    let mut set = |field: usize, item| packet.fields[field] = Some(item);
    set(PROTOCOL, Item::Bytes(name));
    set(VERSION, Item::Number(version));
    set(FLAGS, Item::Number(flags));
    set(KEEPALIVE, Item::Number(keepalive));
    if version == 5 {
        properties(at, OF_CONNECT, &mut packet.properties)?;
    }
    packet.fields[CLIENT] = Some(Item::Bytes(at.vector(2)?));
    if will {
        if version == 5 {
            properties(at, OF_WILL, &mut packet.properties)?;
        }
        packet.fields[WILL_TOPIC] = Some(Item::Bytes(at.vector(2)?));
        packet.fields[WILL_PAYLOAD] = Some(Item::Bytes(at.vector(2)?));
    }
    for (there, field) in [(user, USER), (password, PASSWORD)] {
        if there {
            packet.fields[field] = Some(Item::Bytes(at.vector(2)?));
        }
    }
    Some(())
}

fn connack<'a>(at: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Option<()> {
    let flags = at.number(1).filter(|f| *f <= 1)?;
    let reason = at.number(1)?;
    packet.fields[FLAGS] = Some(Item::Number(flags));
    packet.fields[REASON] = Some(Item::Number(reason));
    // Only version 5 has more; older ones can't be told apart.
    packet.fields[VERSION] = Some(Item::Number(4));
    if !at.0.is_empty() {
        packet.fields[VERSION] = Some(Item::Number(5));
        properties(at, OF_CONNACK, &mut packet.properties)?;
    }
    Some(())
}

fn valid<'a>(data: &[u8]) -> Found<'a> {
    match parse(data) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(Bad::Wrong) => Ok(Value::Bool(false)),
        Err(Bad::Short) => Err(Miss::None),
    }
}

fn value<'a>(env: &Env<'a>, data: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let packet = parse(bytes(data)).map_err(|_| Miss::None)?;
    if packet.kind != arg(args, 0).int_or(0) {
        return Err(Miss::None);
    }
    let number = arg(args, 1).int_or(0);
    let item = match usize::try_from(number) {
        Ok(field) if field < FIELDS.len() => packet.fields.get(field).copied().flatten(),
        _ => packet.properties.iter().find(|(id, _)| i64::from(*id) == number - 100).map(|(_, item)| *item),
    };
    let empty = |item: &Item<'_>| matches!(item, Item::Bytes(b""));
    some(item.filter(|item| !empty(item)).map(|item| match item {
        Item::Bytes(b) => Value::Str(b),
        Item::Number(n) => {
            let mut out = made(env.arena);
            let mut text = Vec::with_capacity(10);
            append_int(&mut text, i64::from(n));
            out.extend_from_slice(&text);
            Value::Str(out.into_bump_slice())
        }
    }))
}
