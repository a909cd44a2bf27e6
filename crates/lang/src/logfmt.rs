//! Log-format strings (manual, section 8.2.6): text, `%[expressions]` and `%tags`.
//!
//! They make log lines, but also header values, redirect locations, names of backends and more.

use crate::env::Env;
use crate::expr::Expr;
pub use crate::waits::Waits;

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

/// One log tag (`%ci`).
pub struct TagDef {
    /// Without the percent sign.
    pub name: &'static str,
    /// Appends its text. `None` means that there is no value: `-` is logged. Nothing appended means that the
    /// item does not exist in this line, and the blank behind it is left out.
    pub write: for<'a> fn(&Env<'a>, &Options, &mut Vec<u8>) -> Option<()>,
    /// Only in HTTP mode.
    pub http_only: bool,
    /// When it is known.
    pub known: Known,
    /// What it writes.
    pub kind: TagKind,
    /// One line of documentation.
    pub doc: &'static str,
}

/// When what a log tag says is known: a line that nobody names a moment for is written as soon as all of it
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// From the start, or whenever the line happens to be made.
    Early,
    /// With the head of the request.
    Request,
    /// With the head of the response; in TCP mode with the connection to the server.
    Response,
    /// At the end of the stream.
    End,
}

/// What a log tag writes, which decides how it is quoted and encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// Text: quoted with `+Q`.
    Text,
    /// An address: quoted with `+Q`, unless `+X` writes it in hexadecimal digits.
    Address,
    /// Text of a peer with odd bytes as `#XX`: quoted with `+Q`, in CBOR a text of several chunks.
    Encoded,
    /// Captured headers in braces, the same.
    Captures,
    /// Text that is never quoted (dates, termination states).
    Plain,
    /// A number.
    Number,
    /// A number that `+X` writes in hexadecimal digits, as a text where it is encoded.
    Figure,
    /// A number that still grows while the transaction lasts: `+` stands before it in all lines of a frontend
    /// that logs before the end (`option logasap`, or a format that does not wait for it), and in no others.
    Running,
    /// Texts separated by blanks, each quoted alone; `\0` separates them as they are written.
    List,
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

impl Waits {
    /// Keeps the request line if an item has it kept.
    pub fn keep(&mut self, item: &Item) {
        let (line, http) = match item {
            Item::Text(_) => (false, false),
            Item::Tag(tag, _) => {
                let line = matches!(tag.known, Known::Request);
                (line, line)
            }
            Item::Expr(expr, _) => (true, expr.fetch.def.is_http()),
        };
        self.line |= line;
        self.http_line |= http;
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
