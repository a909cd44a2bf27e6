//! Blocks out.
//!
//! What deserves a place in the dynamic table is what comes again. So the encoder remembers a hash of each
//! line in a small direct-mapped table; a line that is met a second time is inserted, from the third time on
//! it is a byte or two. Unique values (lengths, dates of files, tags, locations) never push out what is
//! useful, and neither memory nor time is spent on a connection that sends one response. Lines are compared
//! before they are referred to: hashes only say where to look.

use super::statics::{STATIC, name_index};
use super::table::{Stored, Table, ValueForm};
use super::{DEFAULT_TABLE, Pseudo, Tag, int};
use crate::head::Known;

/// Slots of the memory of lines.
const SLOTS: usize = 64;
/// A line with a longer value is never inserted.
const LONG: usize = 256;

/// How a line may be kept by those that it passes (RFC 7541 section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// It may be kept.
    Common,
    /// It is written each time.
    Once,
    /// It is written each time, and no proxy may do otherwise: what guessing could reveal.
    Secret,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u32,
    /// Its number in the table plus one; 0 if it was only seen.
    number: u64,
}

/// The encoder of one direction of a connection.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// Changes of the size that the next block has to tell: the smallest and the last.
    update: Option<(usize, usize)>,
    seen: Vec<Slot>,
    /// The most that the table may ever have.
    most: u32,
}

impl Encoder {
    /// An encoder that uses at most `most` bytes for its table, however much the peer allows.
    pub fn new(most: u32) -> Encoder {
        let mut encoder = Encoder { table: Table::new(DEFAULT_TABLE), update: None, seen: Vec::new(), most };
        encoder.set_limit(DEFAULT_TABLE);
        encoder
    }

    /// The peer allows a table of `limit` bytes.
    pub fn set_limit(&mut self, limit: u32) {
        let size = limit.min(self.most) as usize;
        if size == self.table.max() {
            return;
        }
        self.table.set_max(size);
        let smallest = self.update.map_or(size, |(smallest, _)| smallest.min(size));
        self.update = Some((smallest, size));
    }

    /// To be called before the first line of each block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some((smallest, last)) = self.update.take() else { return };
        if smallest < last {
            int::write(out, 32, 5, smallest);
        }
        int::write(out, 32, 5, last);
    }

    /// Writes `:status`.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits =
                    [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
                return self.keyed(Tag::Pseudo(Pseudo::Status), 8, b":status", &digits, Care::Common, out);
            }
        };
        out.push(128 | index);
    }

    /// Writes a pseudo-header field of a request.
    pub fn pseudo(&mut self, pseudo: Pseudo, value: &[u8], out: &mut Vec<u8>) {
        let (name, index, whole, care): (&[u8], u8, u8, Care) = match (pseudo, value) {
            (Pseudo::Method, b"GET") => (b"", 0, 2, Care::Common),
            (Pseudo::Method, b"POST") => (b"", 0, 3, Care::Common),
            (Pseudo::Path, b"/") => (b"", 0, 4, Care::Common),
            (Pseudo::Scheme, b"http") => (b"", 0, 6, Care::Common),
            (Pseudo::Scheme, b"https") => (b"", 0, 7, Care::Common),
            (Pseudo::Method, _) => (b":method", 2, 0, Care::Common),
            (Pseudo::Path, _) => (b":path", 4, 0, Care::Once),
            (Pseudo::Scheme, _) => (b":scheme", 6, 0, Care::Common),
            (Pseudo::Authority, _) => (b":authority", 1, 0, Care::Common),
            (Pseudo::Protocol, _) => (b":protocol", 0, 0, Care::Common),
            (Pseudo::Status, _) => (b":status", 8, 0, Care::Common),
        };
        if whole > 0 {
            out.push(128 | whole);
        } else {
            self.keyed(Tag::Pseudo(pseudo), index, name, value, care, out);
        }
    }

    /// Writes a field; `name` is in lower case.
    #[inline]
    pub fn field(&mut self, known: Known, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let index = name_index(known, name);
        self.keyed(Tag::Field(known), index, name, value, care(known), out);
    }

    fn keyed(&mut self, tag: Tag, index: u8, name: &[u8], value: &[u8], care: Care, out: &mut Vec<u8>) {
        if care != Care::Common || value.len() > LONG || self.table.max() == 0 {
            let first = if care == Care::Secret { 16 } else { 0 };
            return literal(out, first, 4, index, name, value);
        }
        if let Some(&(_, whole, _)) = STATIC.get(usize::from(index).wrapping_sub(1))
            && !value.is_empty()
            && whole.as_bytes() == value
        {
            return out.push(128 | index);
        }
        if self.seen.is_empty() {
            self.seen.resize(SLOTS, Slot::default());
        }
        let hash = hash(name, value);
        let Some(slot) = self.seen.get_mut(hash as usize % SLOTS) else { return };
        if slot.hash != hash {
            *slot = Slot { hash, number: 0 };
            return literal(out, 0, 4, index, name, value);
        }
        if slot.number > 0 {
            // The newest has index 0.
            let back = self.table.inserted() - slot.number;
            let same = |stored: &Stored<'_>| stored.name == name && stored.value == value;
            if self.table.get(back as usize).as_ref().is_some_and(same) {
                return int::write(out, 128, 7, back as usize + STATIC.len() + 1);
            }
        }
        literal(out, 64, 6, index, name, value);
        self.table.insert(Stored { name, value, tag, form: ValueForm::Sound });
        slot.number = self.table.inserted();
    }
}

/// What may be kept: neither what is secret nor what is different each time.
fn care(known: Known) -> Care {
    match known {
        Known::Authorization | Known::ProxyAuthorization => Care::Secret,
        Known::Cookie
        | Known::SetCookie
        | Known::ContentLength
        | Known::Etag
        | Known::IfNoneMatch
        | Known::XRequestId => Care::Once,
        _ => Care::Common,
    }
}

fn literal(out: &mut Vec<u8>, first: u8, prefix: u32, index: u8, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 12);
    int::write(out, first, prefix, usize::from(index));
    if index == 0 {
        int::write(out, 0, 7, name.len());
        out.extend_from_slice(name);
    }
    int::write(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// A cheap hash, of which only the spread matters. Never 0, which stands for an empty slot.
fn hash(name: &[u8], value: &[u8]) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = name.len() as u64 ^ (value.len() as u64) << 32;
    for part in [name, value] {
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
        }
        let last = rest.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        sum = (sum ^ last).wrapping_mul(ODD).rotate_left(29);
    }
    (sum.wrapping_mul(ODD) >> 32) as u32 | 1 << 31
}
