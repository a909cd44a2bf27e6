//! Log-format strings (manual, section 8.2.6): text, `%[expressions]` and `%tags`.
//!
//! They make log lines, but also header values, redirect locations, names of backends and more.

use crate::env::Env;
use crate::expr::Expr;
use crate::names::Names;
use crate::parse::Merge;
use crate::places::Place;
use crate::registry::{Known, Registry, TagDef};
use crate::words::Fault;

/// How one item is written (`%{+Q}x`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `+Q`: in double quotes.
    pub quote: bool,
    /// `+X`: as hexadecimal digits (addresses, ports, counters).
    pub hex: bool,
    /// `+E`: `"`, `\` and `]` escaped with a backslash.
    pub escape: bool,
    /// `+M` (mandatory): `-` where there is no value.
    pub mandatory: bool,
    /// `+bin`: bytes as they are.
    pub bin: bool,
    /// `+json`, `+cbor`: the whole line in that encoding.
    pub encoding: Encoding,
    /// `(name)`, the key under which JSON and CBOR put the item.
    pub name: Option<Box<str>>,
    /// `(name:type)`, the type the item is turned into.
    pub cast: Option<crate::sample::Type>,
}

/// Encoding of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Plain text.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// One CBOR map.
    Cbor,
}

/// One piece of a format.
pub enum Item {
    /// As it is.
    Text(Box<[u8]>),
    /// `%[expr]`.
    Expr(Expr, Options),
    /// `%tag`.
    Tag(&'static TagDef, Options),
}

/// A compiled format.
pub struct LogFormat {
    /// In order.
    pub items: Box<[Item]>,
    /// Encoding of the whole (`%{+json}o`).
    pub encoding: Encoding,
    /// Bytes of samples pass as they are, NUL included (`%{+bin}o`).
    pub bin: bool,
    /// As written.
    pub text: Box<str>,
}

impl LogFormat {
    /// The text, if the format is nothing but text.
    pub fn constant(&self) -> Option<&[u8]> {
        match &*self.items {
            [] => Some(b""),
            [Item::Text(t)] => Some(t),
            _ => None,
        }
    }
}

/// What formats wait for until all that they say is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The head of the request.
    pub request: bool,
    /// The head of the response.
    pub response: bool,
    /// The end of the stream.
    pub end: bool,
    /// The request line as it was received is kept: for an expression, whatever it tells, or for the line itself.
    pub line: bool,
    /// There is a format at all, be it of a header, or a capture of something that is named.
    pub some: bool,
}

impl Waits {
    /// Keeps the request line if an item has it kept.
    pub fn keep(&mut self, item: &Item) {
        self.line |= match item {
            Item::Text(_) => false,
            Item::Tag(tag, _) => matches!(tag.known, Known::Request),
            Item::Expr(..) => true,
        };
    }

    /// Waits for what an item needs as well.
    pub fn add(&mut self, item: &Item) {
        self.some = true;
        let known = match item {
            Item::Text(_) => Known::Early,
            Item::Tag(tag, _) => tag.known,
            Item::Expr(expr, _) if expr.fetch.def.is_of_the_end() => Known::End,
            Item::Expr(..) => Known::Response,
        };
        match known {
            Known::Early => {}
            Known::Request => self.request = true,
            Known::Response => self.response = true,
            Known::End => self.end = true,
        }
    }
}

/// How the result is used, which decides how odd bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A log line: control characters as `#XX`, missing values as `-`.
    Log,
    /// A payload, a name, a variable: bytes as they are, missing values as nothing.
    Value,
    /// A header field's value: control characters as `%XX`, missing values as nothing.
    Header,
}

impl LogFormat {
    /// Reads a format whose blanks are text: header values, payloads, names.
    ///
    /// `place` is where its expressions stand.
    ///
    /// # Errors
    /// In HAProxy's words: unknown aliases and fetches, data that does not exist at `place`.
    pub fn parse(
        text: &[u8],
        place: Place,
        reg: &Registry,
        names: &mut dyn Names,
    ) -> Result<LogFormat, Fault> {
        crate::parse::format(text, Merge::Nothing, place, reg, names)
    }

    /// Reads a format whose blanks are delimiters and are merged (`log-format`, `log-format-sd`,
    /// `unique-id-format`).
    ///
    /// # Errors
    /// As [`LogFormat::parse`].
    pub fn parse_log(
        text: &[u8],
        place: Place,
        reg: &Registry,
        names: &mut dyn Names,
    ) -> Result<LogFormat, Fault> {
        crate::parse::format(text, Merge::Blanks, place, reg, names)
    }

    /// Appends the line as it can be made when the messages are gone: what needs them is left out.
    pub fn append_late(&self, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
        crate::tag::write_late(self, env, how, out);
    }

    /// Appends the line to `out`.
    pub fn append(&self, env: &Env<'_>, how: Use, out: &mut Vec<u8>) {
        crate::tag::write_line(self, env, how, out);
    }
}
