//! Looking into JSON (section 7.3.1, `json_query`).
//!
//! A scanner walks the text without building a tree: steps of the path select a value, everything else is
//! passed over. Nesting is bounded, so hostile bodies cost no stack.

use super::{bytes, made, some};
use crate::arg::{Arg, arg};
use crate::entry::ConvDef;
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value, parse_int};
use crate::words::Fault;

/// Deeper nesting is no JSON to us.
const DEPTH: usize = 64;

pub(super) const CONVERTERS: &[ConvDef] = &[ConvDef::new(
    "json_query",
    Type::Str,
    Type::Any,
    query,
    "A value of a JSON text, by its path.",
    "req.body,json_query($.user.id,int)",
)
.args("string[,string]")
.check(check)];

/// One step of a path.
enum Step {
    Key(Box<[u8]>),
    Index(usize),
}

pub(super) fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let text = arg(args, 0).bytes().unwrap_or_default();
    if text.is_empty() {
        return Err(Fault::new("json_path must not be empty"));
    }
    // A path that is none leads nowhere.
    let steps = path(text).map_or(Arg::None, |steps| Arg::Other(std::sync::Arc::new(steps)));
    let int = match arg(args, 1).bytes() {
        None | Some(b"") => 0,
        Some(b"int") => 1,
        Some(other) => {
            let got = String::from_utf8_lossy(other);
            return Err(Fault::new(format!("output_type only supports \"int\" as argument, got '{got}'")));
        }
    };
    *args = vec![steps, Arg::Int(int)];
    Ok(())
}

/// `$.a.b[0]`; a backslash protects a dot in a name.
fn path(text: &[u8]) -> Option<Vec<Step>> {
    let mut rest = text.strip_prefix(b"$")?;
    let mut steps = Vec::new();
    while let Some((&first, tail)) = rest.split_first() {
        match first {
            b'[' => {
                let end = tail.iter().position(|c| *c == b']')?;
                let index = std::str::from_utf8(&tail[..end]).ok()?.parse().ok()?;
                steps.push(Step::Index(index));
                rest = &tail[end + 1..];
            }
            b'.' => {
                let mut key = Vec::new();
                let mut at = 0;
                while let Some(&c) = tail.get(at).filter(|c| !matches!(c, b'.' | b'[')) {
                    at += usize::from(c == b'\\');
                    key.push(*tail.get(at)?);
                    at += 1;
                }
                steps.push(Step::Key(key.into()));
                rest = &tail[at..];
            }
            _ => return None,
        }
    }
    Some(steps)
}

/// A cursor over JSON text.
struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Scanner<'t> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(|c| matches!(c, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, c: u8) -> Option<()> {
        (self.peek()? == c).then(|| self.at += 1)
    }

    /// A string's inside, still escaped.
    fn string(&mut self) -> Option<&'t [u8]> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            match self.text.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(start..self.at - 1)
    }

    /// Passes over one value and returns its text.
    fn value(&mut self, depth: usize) -> Option<&'t [u8]> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => drop(self.string()?),
            b'{' | b'[' if depth < DEPTH => self.members(first, depth, &mut |_, _, _| false)?,
            b'{' | b'[' => return None,
            b't' | b'f' | b'n' | b'-' | b'0'..=b'9' => {
                while self.text.get(self.at).is_some_and(|c| c.is_ascii_alphanumeric() || b"+-.".contains(c))
                {
                    self.at += 1;
                }
            }
            _ => return None,
        }
        self.text.get(start..self.at).filter(|t| !t.is_empty())
    }

    /// Walks an object or an array: each member's key, number and text, until one is the wanted one.
    fn members(
        &mut self,
        open: u8,
        depth: usize,
        wanted: &mut dyn FnMut(&'t [u8], usize, &'t [u8]) -> bool,
    ) -> Option<()> {
        self.take(open)?;
        let close = if open == b'{' { b'}' } else { b']' };
        if self.peek()? == close {
            return self.take(close);
        }
        for number in 0.. {
            let mut key: &[u8] = b"";
            if open == b'{' {
                self.peek()?;
                key = self.string()?;
                self.take(b':')?;
            }
            let value = self.value(depth + 1)?;
            if wanted(key, number, value) {
                return Some(());
            }
            if self.peek()? == close {
                return self.take(close);
            }
            self.take(b',')?;
        }
        None
    }
}

fn select<'t>(text: &'t [u8], steps: &[Step]) -> Option<&'t [u8]> {
    let mut here = Scanner { text, at: 0 }.value(0)?;
    for step in steps {
        let mut found = None;
        let mut scanner = Scanner { text: here, at: 0 };
        let open = match step {
            Step::Key(_) => b'{',
            Step::Index(_) => b'[',
        };
        scanner.members(open, 0, &mut |key, number, value| {
            let hit = match step {
                Step::Key(k) => **k == *key,
                Step::Index(i) => *i == number,
            };
            if hit {
                found = Some(value);
            }
            hit
        })?;
        here = found?;
    }
    Some(here)
}

/// The string at the end of these member names, for those who read JSON themselves.
pub(super) fn string_at(text: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let steps: Vec<Step> = names.iter().map(|n| Step::Key(n.as_bytes().into())).collect();
    match select(text, &steps)? {
        [b'"', inside @ .., b'"'] if !inside.contains(&b'\\') => Some(inside.to_vec()),
        _ => None,
    }
}

pub(super) fn query<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let Arg::Other(any) = arg(args, 0) else { return Err(Miss::None) };
    let steps = any.downcast_ref::<Vec<Step>>().ok_or(Miss::None)?;
    let text = select(bytes(value), steps).ok_or(Miss::None)?;
    let int = arg(args, 1).int_or(0) != 0;
    match text {
        b"true" => Ok(Value::Bool(true)),
        b"false" => Ok(Value::Bool(false)),
        b"null" => Err(Miss::None),
        [b'{', ..] => Err(Miss::None),
        [b'[', ..] => Ok(Value::Str(text)),
        [b'"', inside @ .., b'"'] => some(unescape(env, inside).map(Value::Str)),
        number if int => some(parse_int(number).filter(|n| *n != i64::MAX).map(Value::Int)),
        number => {
            let number =
                std::str::from_utf8(number).ok().and_then(|n| n.parse::<f64>().ok()).ok_or(Miss::None)?;
            Ok(Value::Str(env.arena.alloc_str(&six_digits(number)).as_bytes()))
        }
    }
}

/// A number as `%g` of printf has it: six significant digits, without needless zeros.
fn six_digits(number: f64) -> String {
    if !number.is_finite() || number == 0.0 {
        return if number == 0.0 { "0".to_owned() } else { number.to_string() };
    }
    // Rounding may carry into the exponent, so it is read off what was rounded.
    let rounded = format!("{number:.5e}");
    let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{number:.*}", usize::try_from(5 - exponent).unwrap_or(0)));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.unsigned_abs())
}

fn unescape<'a>(env: &Env<'a>, inside: &'a [u8]) -> Option<&'a [u8]> {
    if !inside.contains(&b'\\') {
        return Some(inside);
    }
    let mut out = made(env.arena);
    let mut rest = inside;
    while let Some((&c, tail)) = rest.split_first() {
        rest = tail;
        if c != b'\\' {
            out.push(c);
            continue;
        }
        let (&kind, tail) = rest.split_first()?;
        rest = tail;
        match kind {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let code = unit(&mut rest)?;
                let c = match code {
                    0xd800..=0xdbff if rest.starts_with(b"\\u") => {
                        rest = &rest[2..];
                        let low = unit(&mut rest)?.wrapping_sub(0xdc00) & 0x3ff;
                        0x10000 + ((code - 0xd800) << 10 | low)
                    }
                    other => other,
                };
                let mut utf8 = [0; 4];
                out.extend_from_slice(char::from_u32(c)?.encode_utf8(&mut utf8).as_bytes());
            }
            other => out.push(other),
        }
    }
    Some(out.into_bump_slice())
}

fn unit(rest: &mut &[u8]) -> Option<u32> {
    let (digits, tail) = rest.split_at_checked(4)?;
    *rest = tail;
    digits.iter().try_fold(0, |n, c| Some(n << 4 | u32::from(crate::codec::hex_digit(*c)?)))
}
