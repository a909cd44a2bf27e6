//! Typed values (`SPOE.txt`, section 3.1) and the cursor that reads them.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::number;
use crate::varint;

/// Bits of the first byte that hold the type; the others are flags.
const TYPE: u8 = 0x0f;
/// The flag of a boolean that is true.
const TRUE: u8 = 0x10;

/// A typed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// Nothing: an argument whose sample was not there.
    Null,
    /// True or false.
    Bool(bool),
    /// A number that was announced as one of 32 bits with a sign. What comes is not cut down to that, as
    /// HAProxy does not cut it down.
    Int32(i64),
    /// A number that was announced as one of 32 bits without a sign, likewise.
    Uint32(u64),
    /// A signed number of 64 bits, the form in which an engine sends integers.
    Int64(i64),
    /// An unsigned number of 64 bits.
    Uint64(u64),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// Text, which need not be UTF-8.
    Text(&'a [u8]),
    /// Any bytes.
    Binary(&'a [u8]),
    /// A type that nobody knows, one of 10 to 15. Such a value is taken to have no bytes.
    Unknown(u8),
}

impl Data<'_> {
    /// Appends the value. A negative number is written as its two's complement in 64 bits.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut numbered = |id: u8, value: u64| {
            out.push(id);
            varint::put(out, value);
        };
        match *self {
            Data::Null => out.push(0),
            Data::Bool(set) => out.push(if set { 1 | TRUE } else { 1 }),
            Data::Int32(n) => numbered(2, n.cast_unsigned()),
            Data::Uint32(n) => numbered(3, n),
            Data::Int64(n) => numbered(4, n.cast_unsigned()),
            Data::Uint64(n) => numbered(5, n),
            Data::Ipv4(address) => {
                out.push(6);
                out.extend_from_slice(&address.octets());
            }
            Data::Ipv6(address) => {
                out.push(7);
                out.extend_from_slice(&address.octets());
            }
            Data::Text(bytes) => {
                out.push(8);
                text(out, bytes);
            }
            Data::Binary(bytes) => {
                out.push(9);
                text(out, bytes);
            }
            Data::Unknown(id) => out.push(id & TYPE),
        }
    }
}

/// Appends bytes behind their length, without a type: names of messages, of arguments and of variables.
pub fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A cursor over a payload. Each step gives `None` when what it looks for is not whole.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// At the front of a payload.
    pub fn new(payload: &'a [u8]) -> Reader<'a> {
        Reader { rest: payload }
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Bytes behind their length.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }

    /// A typed value.
    pub fn data(&mut self) -> Option<Data<'a>> {
        let first = self.byte()?;
        Some(match first & TYPE {
            0 => Data::Null,
            1 => Data::Bool(first & TRUE != 0),
            2 => Data::Int32(self.number()?.cast_signed()),
            3 => Data::Uint32(self.number()?),
            4 => Data::Int64(self.number()?.cast_signed()),
            5 => Data::Uint64(self.number()?),
            6 => Data::Ipv4(Ipv4Addr::from(self.array::<4>()?)),
            7 => Data::Ipv6(Ipv6Addr::from(self.array::<16>()?)),
            8 => Data::Text(self.text()?),
            9 => Data::Binary(self.text()?),
            unknown => Data::Unknown(unknown),
        })
    }

    fn number(&mut self) -> Option<u64> {
        let (value, rest) = number(self.rest)?;
        self.rest = rest;
        Some(value)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*array)
    }
}
