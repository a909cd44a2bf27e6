//! Blocks in.

use super::statics::STATIC;
use super::table::{Stored, Table, ValueForm};
use super::{Error, Tag, huffman, int};

/// A line of a header list.
#[derive(Clone, Copy, Debug)]
pub struct Line<'l> {
    pub name: &'l [u8],
    pub value: &'l [u8],
    pub tag: Tag,
    pub form: ValueForm,
}

/// The decoder of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// What the peer may set the table to.
    limit: usize,
    /// The limit was lowered below the table's size: the next block has to say so.
    due: bool,
    text: Vec<u8>,
}

/// Where a string lies.
enum Text<'i> {
    Input(&'i [u8]),
    Static(&'static str),
    /// A range of the scratch buffer.
    Scratch(usize, usize),
}

impl Text<'_> {
    fn of<'t>(&'t self, scratch: &'t [u8]) -> &'t [u8] {
        match self {
            Text::Input(text) => text,
            Text::Static(text) => text.as_bytes(),
            Text::Scratch(start, end) => scratch.get(*start..*end).unwrap_or_default(),
        }
    }
}

/// A line with a literal value, as it was read.
struct Literal<'i> {
    name: Text<'i>,
    value: Text<'i>,
    tag: Tag,
}

impl Decoder {
    /// A decoder whose table may have `limit` bytes. Until the peer knows a limit below the default, it uses
    /// that one.
    pub fn new(limit: u32) -> Decoder {
        Decoder {
            table: Table::new(super::DEFAULT_TABLE),
            limit: limit.max(super::DEFAULT_TABLE) as usize,
            due: false,
            text: Vec::new(),
        }
    }

    /// The peer has acknowledged that its table may have `limit` bytes.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit as usize;
        self.due = self.table.max() > self.limit;
    }

    /// Decodes a whole block and hands each line to `each`.
    ///
    /// # Errors
    /// The block is at fault; the connection can't go on.
    pub fn decode(&mut self, block: &[u8], each: &mut impl FnMut(Line<'_>)) -> Result<(), Error> {
        let mut rest = self.sizes(block)?;
        while let Some(&first) = rest.first() {
            rest = match first {
                128.. => {
                    let (index, rest) = int::read(rest, 7)?;
                    each(self.indexed(index)?);
                    rest
                }
                64.. => {
                    let (literal, rest) = self.literal(rest, 6)?;
                    self.emit(&literal, true, each);
                    rest
                }
                32.. => return Err(Error::TableSize),
                _ => {
                    let (literal, rest) = self.literal(rest, 4)?;
                    self.emit(&literal, false, each);
                    rest
                }
            };
        }
        // A large value is no reason to keep its memory.
        if self.text.capacity() > 1024 {
            self.text = Vec::new();
        }
        Ok(())
    }

    /// The size updates that a block may start with (RFC 7541 section 4.2).
    fn sizes<'i>(&mut self, block: &'i [u8]) -> Result<&'i [u8], Error> {
        let mut rest = block;
        while rest.first().is_some_and(|first| first & 0b1110_0000 == 0b0010_0000) {
            let (size, tail) = int::read(rest, 5)?;
            if size as usize > self.limit {
                return Err(Error::TableSize);
            }
            self.table.set_max(size as usize);
            self.due = false;
            rest = tail;
        }
        if self.due { Err(Error::TableSize) } else { Ok(rest) }
    }

    #[inline]
    fn indexed(&self, index: u32) -> Result<Line<'_>, Error> {
        let index = (index as usize).checked_sub(1).ok_or(Error::Index)?;
        if let Some(&(name, value, tag)) = STATIC.get(index) {
            return Ok(Line { name: name.as_bytes(), value: value.as_bytes(), tag, form: ValueForm::Sound });
        }
        let stored = self.table.get(index - STATIC.len()).ok_or(Error::Index)?;
        Ok(Line { name: stored.name, value: stored.value, tag: stored.tag, form: stored.form })
    }

    fn literal<'i>(&mut self, input: &'i [u8], prefix: u32) -> Result<(Literal<'i>, &'i [u8]), Error> {
        self.text.clear();
        let (index, rest) = int::read(input, prefix)?;
        let (name, tag, rest) = match (index as usize).checked_sub(1) {
            None => {
                let (name, rest) = self.string(rest)?;
                let tag = Tag::of(name.of(&self.text));
                (name, tag, rest)
            }
            Some(at) => match STATIC.get(at) {
                Some(&(name, _, tag)) => (Text::Static(name), tag, rest),
                None => {
                    // The entry may be evicted by the one that repeats its name.
                    let stored = self.table.get(at - STATIC.len()).ok_or(Error::Index)?;
                    self.text.extend_from_slice(stored.name);
                    (Text::Scratch(0, self.text.len()), stored.tag, rest)
                }
            },
        };
        let (value, rest) = self.string(rest)?;
        Ok((Literal { name, value, tag }, rest))
    }

    /// Reads a string (RFC 7541 section 5.2).
    fn string<'i>(&mut self, input: &'i [u8]) -> Result<(Text<'i>, &'i [u8]), Error> {
        let coded = input.first().is_some_and(|first| *first >= 128);
        let (len, rest) = int::read(input, 7)?;
        let (text, rest) = rest.split_at_checked(len as usize).ok_or(Error::Truncated)?;
        if !coded {
            return Ok((Text::Input(text), rest));
        }
        let start = self.text.len();
        huffman::decode(text, &mut self.text)?;
        Ok((Text::Scratch(start, self.text.len()), rest))
    }

    fn emit(&mut self, literal: &Literal<'_>, keep: bool, each: &mut impl FnMut(Line<'_>)) {
        let (name, value, tag) = (literal.name.of(&self.text), literal.value.of(&self.text), literal.tag);
        let form = form(value);
        each(Line { name, value, tag, form });
        if keep {
            self.table.insert(Stored { name, value, tag, form });
        }
    }

    #[cfg(test)]
    pub fn table(&self) -> &Table {
        &self.table
    }
}

fn form(value: &[u8]) -> ValueForm {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if memchr::memchr3(0, b'\r', b'\n', value).is_some() {
        ValueForm::Bad
    } else if blank(value.first()) || blank(value.last()) {
        ValueForm::Padded
    } else {
        ValueForm::Sound
    }
}
