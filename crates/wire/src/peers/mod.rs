//! The protocol of peers, which exchange the entries of stick tables (`peers.txt`, version 2.1).
//!
//! [`hello`] is the handshake in lines of text, [`read`] a total cursor over what comes, [`mod@write`] what
//! goes out. Where the document is silent, this is what HAProxy was seen to do: the acknowledgement has
//! number 132; 133 and 134 are updates with the time that the entry has left in front of the key; the
//! definition names the elements of arrays, too; the length of a text as key is announced with one more for
//! its end.

pub mod hello;
pub mod read;
pub mod write;

pub use read::{Definition, Fault, Frame, Key, Reader, frame};

#[cfg(test)]
mod tests;

/// Classes of messages.
pub mod class {
    /// Who wants to learn, who has told everything, who is alive.
    pub const CONTROL: u8 = 0;
    /// Why the connection ends.
    pub const ERROR: u8 = 1;
    /// Tables and their entries.
    pub const TABLE: u8 = 10;
}

/// Messages of the class of control.
pub mod control {
    /// Tell me everything.
    pub const RESYNC: u8 = 0;
    /// That was everything.
    pub const FINISHED: u8 = 1;
    /// That was everything, but I may not know all.
    pub const PARTIAL: u8 = 2;
    /// I have seen that you have told everything.
    pub const CONFIRMED: u8 = 3;
    /// I am alive.
    pub const HEARTBEAT: u8 = 4;
}

/// Messages of the class of errors.
pub mod error {
    /// Something can't be understood.
    pub const PROTOCOL: u8 = 0;
    /// A message is too long.
    pub const SIZE: u8 = 1;
}

/// Messages of the class of tables.
pub mod table {
    /// An entry.
    pub const UPDATE: u8 = 128;
    /// An entry whose number is one more than that of the one before.
    pub const NEXT: u8 = 129;
    /// What a table holds.
    pub const DEFINITION: u8 = 130;
    /// Which table is meant from here on.
    pub const SWITCH: u8 = 131;
    /// How far updates have come.
    pub const ACK: u8 = 132;
    /// An entry, with the time that it has left.
    pub const TIMED: u8 = 133;
    /// The same, with a number that is one more than that of the one before.
    pub const TIMED_NEXT: u8 = 134;
}

/// What an element of a type of data is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A number.
    Number,
    /// Events per period.
    Rate,
    /// A text out of a dictionary.
    Text,
}

/// A type of data by its number: what it is, and whether it is an array. Those of versions to come are not
/// known.
pub fn shape(number: u8) -> Option<(Shape, bool)> {
    Some(match number {
        3 | 5 | 8 | 10 | 12 | 14 | 16 | 18 | 21 | 26 => (Shape::Rate, false),
        19 => (Shape::Text, false),
        22 | 23 => (Shape::Number, true),
        24 => (Shape::Rate, true),
        0..=26 => (Shape::Number, false),
        _ => return None,
    })
}

/// How many types there are.
pub const TYPES: u8 = 27;
