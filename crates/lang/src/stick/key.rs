//! Keys of tables as samples make them, and the samples that keys give back.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::stick::KeyKind;
use bumpalo::Bump;

use crate::sample::{Type, Value};

/// The type that a sample is turned into.
pub fn wants(kind: KeyKind) -> Type {
    match kind {
        KeyKind::Ip => Type::Ipv4,
        KeyKind::Ipv6 => Type::Ipv6,
        KeyKind::Integer => Type::Int,
        KeyKind::Text(_) => Type::Str,
        KeyKind::Binary(_) => Type::Bin,
    }
}

/// The key that a sample makes; none if it can't be one.
pub fn of<'a>(kind: KeyKind, value: Value<'a>, arena: &'a Bump) -> Option<&'a [u8]> {
    Some(match (kind, value.cast(wants(kind), arena)?) {
        (KeyKind::Ip, Value::Ipv4(a)) => arena.alloc_slice_copy(&a.octets()),
        (KeyKind::Ipv6, Value::Ipv6(a)) => arena.alloc_slice_copy(&a.octets()),
        (KeyKind::Integer, Value::Int(i)) => arena.alloc_slice_copy(&(i as u32).to_be_bytes()),
        // A text ends at a NUL, as it does in HAProxy: a peer of that kind knows no other.
        (KeyKind::Text(len), Value::Str(s)) => s[..s.len().min(len)].split(|b| *b == 0).next()?,
        (KeyKind::Binary(len), Value::Bin(b)) => {
            if b.len() >= len {
                &b[..len]
            } else {
                let padded = arena.alloc_slice_fill_copy(len, 0);
                padded[..b.len()].copy_from_slice(b);
                padded
            }
        }
        _ => return None,
    })
}

/// The sample that a key gives.
pub fn sample<'a>(kind: KeyKind, key: &[u8], arena: &'a Bump) -> Option<Value<'a>> {
    Some(match kind {
        KeyKind::Ip => Value::Ipv4(Ipv4Addr::from(<[u8; 4]>::try_from(key).ok()?)),
        KeyKind::Ipv6 => Value::Ipv6(Ipv6Addr::from(<[u8; 16]>::try_from(key).ok()?)),
        KeyKind::Integer => Value::Int(u32::from_be_bytes(key.try_into().ok()?).into()),
        KeyKind::Text(_) => Value::Str(arena.alloc_slice_copy(key)),
        KeyKind::Binary(_) => Value::Bin(arena.alloc_slice_copy(key)),
    })
}
