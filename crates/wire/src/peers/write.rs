//! Writing messages.

use super::read::{Column, Key};
use super::{Shape, class, shape, table};
use crate::varint;

/// Appends a number.
pub fn number(out: &mut Vec<u8>, value: u64) {
    varint::put(out, value);
}

/// Appends a message without a body.
pub fn short(out: &mut Vec<u8>, class: u8, kind: u8) {
    out.extend_from_slice(&[class, kind]);
}

/// Appends a message about tables whose body is what `body` appends.
pub fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[class::TABLE, kind, 0]);
    let start = out.len();
    body(out);
    let length = out.len().saturating_sub(start);
    if length < 0xf0 {
        if let Some(place) = out.get_mut(start.saturating_sub(1)) {
            *place = length as u8;
        }
        return;
    }
    // Few messages are so long that their length takes more than the byte kept for it.
    let mut bytes = Vec::with_capacity(4);
    varint::put(&mut bytes, length as u64);
    out.splice(start.saturating_sub(1)..start, bytes);
}

/// Appends what is told of a table before its entries.
pub fn definition(out: &mut Vec<u8>, id: u64, name: &str, key: (Key, u64), expire: u64, columns: &[Column]) {
    message(out, table::DEFINITION, |out| {
        varint::put(out, id);
        varint::put(out, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
        varint::put(out, key.0.code());
        varint::put(out, key.1);
        varint::put(out, columns.iter().fold(0, |bits, c| bits | 1 << c.number));
        varint::put(out, expire);
        for column in columns {
            let array = shape(column.number).is_some_and(|(_, array)| array);
            if array || column.shape == Shape::Rate {
                varint::put(out, column.number.into());
                if array {
                    varint::put(out, column.count.into());
                }
                if column.shape == Shape::Rate {
                    varint::put(out, column.period);
                }
            }
        }
    });
}

/// Appends an acknowledgement: the updates of the peer's table are known up to this one.
pub fn ack(out: &mut Vec<u8>, table: u64, update: u32) {
    message(out, table::ACK, |out| {
        varint::put(out, table);
        out.extend_from_slice(&update.to_be_bytes());
    });
}

/// Appends a rate.
pub fn rate(out: &mut Vec<u8>, age: u64, current: u32, before: u32) {
    varint::put(out, age);
    varint::put(out, current.into());
    varint::put(out, before.into());
}

/// Appends a text out of the dictionary: its number, and itself if the peer does not know it yet. Number 0:
/// there is none.
pub fn text(out: &mut Vec<u8>, id: u64, new: Option<&str>) {
    if id == 0 {
        return out.push(0);
    }
    let mut inner = Vec::with_capacity(16);
    varint::put(&mut inner, id);
    if let Some(text) = new {
        varint::put(&mut inner, text.len() as u64);
        inner.extend_from_slice(text.as_bytes());
    }
    varint::put(out, inner.len() as u64);
    out.extend_from_slice(&inner);
}
