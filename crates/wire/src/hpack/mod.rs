//! HPACK (RFC 7541): header lists of HTTP/2 in and out.
//!
//! The decoder hands each line on as slices of where it lies: the static table, the dynamic one, the input,
//! or a scratch buffer for what was Huffman-coded. Whoever receives it copies it once, into its head. What
//! the check of a name or value found is kept beside the entry of the dynamic table, so a line that comes a
//! hundred times is checked once. The work for a block is linear in its length, whatever it refers to: a line
//! is a pair of slices, not a copy, so a small block that names a large entry thousands of times costs
//! thousands of look-ups and no more.
//!
//! The encoder writes literals plainly, without Huffman coding: it would cost more than the bytes it saves.
//! It gives the dynamic table only what it has seen before, see [`Encoder`].

mod decode;
mod encode;
mod huffman;
mod int;
mod statics;
mod table;

pub use decode::{Decoder, Line};
pub use encode::{Care, Encoder};
pub use statics::{Pseudo, Tag};
pub use table::ValueForm;

/// The size of the dynamic table until a setting says otherwise (RFC 9113 section 6.5.2).
pub const DEFAULT_TABLE: u32 = 4096;

/// A block that can't be decoded. Each of these ends the connection with `COMPRESSION_ERROR` (RFC 9113
/// section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The block ends within a line.
    Truncated,
    /// An integer above 2^28, or one of too many bytes (RFC 7541 section 5.1).
    Integer,
    /// No entry has this index (section 2.3.3).
    Index,
    /// A code that is none, the end-of-string symbol, or bad padding (section 5.2).
    Huffman,
    /// A size update above the limit, not at the start of a block, or missing where one is due (section 4.2).
    TableSize,
}

#[cfg(test)]
mod tests;
