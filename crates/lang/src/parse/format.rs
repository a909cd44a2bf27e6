//! Log-format strings (section 8.2.6): text, `%%`, `%[expressions]`, `%aliases`, with options in braces
//! and names in parentheses.

use super::did_you_mean;
use super::expression::{Around, Reader};
use super::text::{Text, printable};
use crate::logfmt::{Encoding, Item, LogFormat, Options, Waits};
use crate::names::Names;
use crate::places::Place;
use crate::registry::Registry;
use crate::sample::Type;
use crate::words::Fault;

/// What happens to blanks between items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// They are delimiters: none in front, one in a row (`log-format` and its kin).
    Blanks,
    /// They are text.
    Nothing,
}

struct Builder<'b> {
    reg: &'b Registry,
    names: &'b mut dyn Names,
    place: Place,
    merge: Merge,
    /// What `%{...}o` set for all items that follow.
    global: Options,
    items: Vec<Item>,
}

/// Reads a format.
pub(crate) fn read(
    bytes: &[u8],
    merge: Merge,
    place: Place,
    reg: &Registry,
    names: &mut dyn Names,
) -> Result<LogFormat, Fault> {
    let mut builder = Builder { reg, names, place, merge, global: Options::default(), items: Vec::new() };
    let mut text = Text::new(bytes, 0);
    while let Some(c) = text.peek() {
        match c {
            b'%' => builder.item(&mut text, bytes)?,
            b' ' if merge == Merge::Blanks => {
                text.take_while(|c| c == b' ');
                builder.blank();
            }
            _ => {
                let blanks = merge == Merge::Blanks;
                let plain = text.take_while(|c| c != b'%' && !(blanks && c == b' '));
                builder.text(plain);
            }
        }
    }
    let Builder { global, items, names, .. } = builder;
    let mut waits = Waits::default();
    for item in &items {
        waits.add(item);
        waits.keep(item);
    }
    names.format_waits(waits);
    let is_http = |item: &Item| matches!(item, Item::Expr(expr, _) if expr.fetch.def.is_http());
    if place != Place::Check && items.iter().any(is_http) {
        names.looks_at_http();
    }
    Ok(LogFormat {
        items: items.into(),
        encoding: global.encoding,
        bin: global.bin,
        text: printable(bytes).into(),
    })
}

impl Builder<'_> {
    fn text(&mut self, more: &[u8]) {
        match self.items.last_mut() {
            Some(Item::Text(last)) => *last = [last, more].concat().into(),
            _ => self.items.push(Item::Text(more.into())),
        }
    }

    fn blank(&mut self) {
        let again = match self.items.last() {
            None => true,
            Some(Item::Text(t)) => t.last() == Some(&b' '),
            Some(_) => false,
        };
        if !again {
            self.text(b" ");
        }
    }

    /// One item, from its percent sign on.
    fn item(&mut self, text: &mut Text<'_>, whole: &[u8]) -> Result<(), Fault> {
        let start = text.at();
        text.bump();
        if text.take_if(b'%') {
            self.text(b"%");
            return Ok(());
        }
        let mut options = self.global.clone();
        if text.peek() == Some(b'(') {
            name(text, whole, &mut options)?;
        }
        let braces = text.peek() == Some(b'{');
        if braces {
            modifiers(text, &mut options)?;
        }
        match text.peek() {
            Some(b'[') => self.expression(text, options),
            Some(c) if c.is_ascii_alphanumeric() => self.alias(text, options),
            _ if braces => {
                let near = printable(text.since(start));
                Err(Fault::new(format!("parse argument modifier without alias name near '{near}'")))
            }
            None => Err(Fault::new("truncated line after '%'")),
            Some(c @ (b' ' | b'\t')) => Err(Fault::new(format!(
                "unexpected alias name near '{}' at position {} line : '{}'. Maybe you want to write a single '%', use \
                 the syntax '%%'",
                char::from(c),
                text.at(),
                printable(whole)
            ))),
            // A sign that means nothing is dropped, whatever follows is text.
            Some(_) => {
                let c = text.bump().unwrap_or_default();
                self.text(&[c]);
                Ok(())
            }
        }
    }

    fn expression(&mut self, text: &mut Text<'_>, options: Options) -> Result<(), Fault> {
        text.bump();
        let from = text.at();
        let rest = printable(text.rest());
        let mut reader = Reader {
            reg: self.reg,
            names: self.names,
            around: Around::Format,
            keyword: None,
            whole: rest.clone(),
        };
        let expr = reader.read(text).map_err(|f| {
            let text = format!("failed to parse sample expression <{rest}> : {}", f.text);
            Fault { text, ..f }
        })?;
        if !text.take_if(b']') {
            let after = printable(text.since(from));
            return Err(Fault::new(match text.peek() {
                None => format!("missing ']' after '{after}'"),
                Some(c) => format!("expected ']' after '{after}', but found '{}'", char::from(c)),
            }));
        }
        let def = expr.fetch.def;
        if !def.places.has(self.place) {
            return Err(Fault::new(format!(
                "sample fetch <{}> may not be reliably used here because it needs '{}' which is not available here",
                def.name,
                def.places.source()
            )));
        }
        self.items.push(Item::Expr(expr, options));
        Ok(())
    }

    fn alias(&mut self, text: &mut Text<'_>, options: Options) -> Result<(), Fault> {
        let name = printable(text.take_while(|c| c.is_ascii_alphanumeric()));
        if name == "o" {
            self.global = Options { name: None, cast: None, ..options };
            if self.merge == Merge::Blanks && self.items.is_empty() {
                text.take_while(|c| c == b' ');
            }
            return Ok(());
        }
        let Some(tag) = self.reg.tag(&name) else {
            let text = format!(
                "no such format alias '{name}'. If you wanted to emit the '%' character verbatim, you need to use '%%'"
            );
            let help = did_you_mean(&name, self.reg.all_tags().iter().map(|t| t.name));
            return Err(Fault { help, ..Fault::new(text) });
        };
        self.items.push(Item::Tag(tag, options));
        Ok(())
    }
}

/// `(name:type)`, either of which may be missing.
fn name(text: &mut Text<'_>, whole: &[u8], options: &mut Options) -> Result<(), Fault> {
    text.bump();
    let name = printable(text.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.')));
    if !name.is_empty() {
        options.name = Some(name.into());
    }
    if text.take_if(b':') {
        let at = text.at();
        let word = printable(text.take_while(|c| c.is_ascii_alphanumeric()));
        options.cast = match word.as_str() {
            "str" => Some(Type::Str),
            "sint" => Some(Type::Int),
            "bool" => Some(Type::Bool),
            "raw" => None,
            _ => {
                return Err(Fault::new(format!(
                    "unexpected output type '{word}' at position {at} line : '{}'. Supported types are: str, sint, \
                     bool, raw",
                    printable(whole)
                )));
            }
        };
    }
    if text.take_if(b')') {
        return Ok(());
    }
    Err(Fault::new(format!("invalid character in custom name near '{}'", printable(text.rest()))))
}

/// `{+Q,-X}`; words that mean nothing are passed over.
fn modifiers(text: &mut Text<'_>, options: &mut Options) -> Result<(), Fault> {
    text.bump();
    let inside = text.take_while(|c| c != b'}');
    if !text.take_if(b'}') {
        return Err(Fault::new(format!("truncated line after '{}'", printable(inside))));
    }
    for word in printable(inside).split(',') {
        let word = word.trim();
        let (on, name) = match word.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, word.strip_prefix('+').unwrap_or(word)),
        };
        if !word.starts_with(['+', '-']) {
            continue;
        }
        let encoding = |e: Encoding| if on { e } else { Encoding::Text };
        match name {
            "Q" => options.quote = on,
            "X" => options.hex = on,
            "E" => options.escape = on,
            "M" => options.mandatory = on,
            "bin" => options.bin = on,
            "json" => options.encoding = encoding(Encoding::Json),
            "cbor" => options.encoding = encoding(Encoding::Cbor),
            _ => {}
        }
    }
    Ok(())
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
        read(text, Merge::Nothing, place, reg, names)
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
        read(text, Merge::Blanks, place, reg, names)
    }
}
