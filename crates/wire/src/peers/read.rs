//! Reading messages.

use super::{Shape, TYPES, shape};
use crate::varint::{self, Taken};

/// What is wrong with what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It can't be understood.
    Protocol,
    /// A message is longer than there is room for.
    TooLong,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its class.
    pub class: u8,
    /// Its number within the class.
    pub kind: u8,
    /// What it holds; nothing in short ones.
    pub body: &'a [u8],
}

/// The message at the front and the bytes that it takes; `None` when more has to come.
///
/// # Errors
/// It is longer than `most`.
pub fn frame(data: &[u8], most: usize) -> Result<Option<(Frame<'_>, usize)>, Fault> {
    let [class, kind, rest @ ..] = data else { return Ok(None) };
    let (class, kind) = (*class, *kind);
    if kind < 128 {
        return Ok(Some((Frame { class, kind, body: &[] }, 2)));
    }
    let (length, bytes) = match varint::take(rest) {
        Taken::Short => return Ok(None),
        Taken::TooLarge => return Err(Fault::TooLong),
        Taken::Number(length, bytes) => (length, bytes),
    };
    let length = usize::try_from(length).ok().filter(|n| *n <= most).ok_or(Fault::TooLong)?;
    let body = rest.get(bytes..).and_then(|rest| rest.get(..length));
    Ok(body.map(|body| (Frame { class, kind, body }, 2 + bytes + length)))
}

/// A cursor over the bytes of a message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// At the front.
    pub fn new(body: &'a [u8]) -> Reader<'a> {
        Reader { rest: body }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let Taken::Number(value, bytes) = varint::take(self.rest) else { return None };
        self.rest = self.rest.get(bytes..)?;
        Some(value)
    }

    /// A number of four bytes.
    pub fn long(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Bytes with their number in front.
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.bytes(count)
    }
}

/// Kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// 32 bits.
    Integer,
    /// An address of IPv4.
    Ipv4,
    /// An address of IPv6.
    Ipv6,
    /// A text.
    Text,
    /// A block of bytes.
    Binary,
}

impl Key {
    /// Its number.
    pub fn code(self) -> u64 {
        match self {
            Key::Integer => 2,
            Key::Ipv4 => 4,
            Key::Ipv6 => 5,
            Key::Text => 6,
            Key::Binary => 7,
        }
    }

    fn of(code: u64) -> Option<Key> {
        [Key::Integer, Key::Ipv4, Key::Ipv6, Key::Text, Key::Binary].into_iter().find(|k| k.code() == code)
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The number of its type.
    pub number: u8,
    /// What an element is.
    pub shape: Shape,
    /// Elements.
    pub count: u32,
    /// Period of rates, ms.
    pub period: u64,
}

/// What a peer says of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition<'a> {
    /// The number that it gives the table.
    pub id: u64,
    /// Its name.
    pub name: &'a [u8],
    /// The kind of its keys; `None`: one that is not known.
    pub key: Option<Key>,
    /// Bytes of a key; of a text the most, and one more.
    pub key_len: u64,
    /// The types that it holds, a bit for each.
    pub types: u64,
    /// How long an entry lives unused, ms.
    pub expire: u64,
    /// Those of them that are known, in order.
    pub columns: Vec<Column>,
}

/// The most elements of an array that somebody may announce.
const LARGEST_ARRAY: u64 = 1024;

impl<'a> Definition<'a> {
    /// Reads one. Types that are not known stand last in entries and are passed over there.
    pub fn parse(body: &'a [u8]) -> Option<Definition<'a>> {
        let mut r = Reader::new(body);
        let (id, name) = (r.number()?, r.counted()?);
        let (key, key_len, types) = (Key::of(r.number()?), r.number()?, r.number()?);
        // Old versions end here.
        let expire = if r.rest().is_empty() { 0 } else { r.number()? };
        let mut columns = Vec::new();
        for number in (0..TYPES).filter(|n| types >> n & 1 == 1) {
            let (shape, array) = shape(number)?;
            let mut column = Column { number, shape, count: 1, period: 0 };
            if (array || shape == Shape::Rate) && !r.rest().is_empty() {
                if r.number()? != u64::from(number) {
                    return None;
                }
                if array {
                    column.count = u32::try_from(r.number().filter(|n| *n <= LARGEST_ARRAY)?).ok()?;
                }
                if shape == Shape::Rate {
                    column.period = r.number()?;
                }
            } else if array {
                // Nothing tells where it ends.
                return None;
            }
            columns.push(column);
        }
        Some(Definition { id, name, key, key_len, types, expire, columns })
    }

    /// The key of an entry of the table.
    pub fn take_key(&self, r: &mut Reader<'a>) -> Option<&'a [u8]> {
        take_key(self.key?, self.key_len, r)
    }
}

/// The key of an entry, of a table with such keys.
pub fn take_key<'a>(key: Key, len: u64, r: &mut Reader<'a>) -> Option<&'a [u8]> {
    match key {
        Key::Text => r.counted(),
        Key::Integer => r.bytes(4),
        _ => r.bytes(usize::try_from(len).ok()?),
    }
}

/// An element of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A rate: milliseconds since its period began, events in it, events in the one before.
    Rate(u64, u64, u64),
    /// A text.
    Text(Text<'a>),
}

/// A text out of the sender's dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// None.
    Absent,
    /// The one that was sent with this number.
    Known(u64),
    /// A new one, and the number that it has from here on.
    New(u64, &'a [u8]),
}

/// Reads the elements of an entry one after the other; `None` when the message is too short for them.
pub fn values<'a>(
    columns: &[Column],
    r: &mut Reader<'a>,
    mut each: impl FnMut(&Column, usize, Value<'a>),
) -> Option<()> {
    for column in columns {
        for index in 0..column.count as usize {
            let value = match column.shape {
                Shape::Number => Value::Number(r.number()?),
                Shape::Rate => Value::Rate(r.number()?, r.number()?, r.number()?),
                Shape::Text => Value::Text(text(r)?),
            };
            each(column, index, value);
        }
    }
    Some(())
}

fn text<'a>(r: &mut Reader<'a>) -> Option<Text<'a>> {
    let mut inner = Reader::new(r.counted()?);
    if inner.rest().is_empty() {
        return Some(Text::Absent);
    }
    let id = inner.number()?;
    if inner.rest().is_empty() {
        return Some(Text::Known(id));
    }
    Some(Text::New(id, inner.counted()?))
}
