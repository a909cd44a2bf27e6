//! Arguments in parentheses, checked against a signature.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::units::{TimeError, Unit};
use model::vars::VarRef;

use super::text::{Text, printable};
use crate::arg::{Arg, Kind, Signature};
use crate::names::Names;
use crate::words::Fault;

/// Why arguments can't be read.
pub(super) enum Wrong {
    /// The text itself: which argument (from 0), and what.
    Text(usize, String),
    /// A variable that can't be: which argument (from 0), and the resolver's fault.
    Name(usize, Fault),
}

/// Arguments, and which of them (from 0) name what is not there; those are [`Arg::None`].
#[derive(Default)]
pub(super) struct Read {
    pub(super) args: Vec<Arg>,
    pub(super) missing: Vec<(usize, Fault)>,
}

/// Reads `(a,b)`, if there is an opening parenthesis, and checks it.
pub(super) fn read(text: &mut Text<'_>, signature: &Signature, names: &mut dyn Names) -> Result<Read, Wrong> {
    let open = text.take_if(b'(');
    // An empty pair of parentheses still names a table, the proxy's own.
    let table = signature.kinds.first() == Some(&Kind::Table);
    let empty = !open || text.peek() == Some(b')') && !table;
    let mut read = Read::default();
    if !(signature.kinds.is_empty() || empty && signature.required == 0) {
        list(text, open, signature, names, &mut read)?;
    }
    if open && !text.take_if(b')') {
        let rest = printable(text.rest());
        let what =
            if rest.is_empty() { "expected ')'".into() } else { format!("expected ')' before '{rest}'") };
        // HAProxy counts what should not be there for the last of several arguments, but for the second of
        // one.
        let at = match read.args.len() {
            count @ 0..=1 => count,
            count => count - 1,
        };
        return Err(Wrong::Text(at, what));
    }
    Ok(read)
}

fn list(
    text: &mut Text<'_>,
    open: bool,
    signature: &Signature,
    names: &mut dyn Names,
    read: &mut Read,
) -> Result<(), Wrong> {
    loop {
        let i = read.args.len();
        let Some(&kind) = signature.kinds.get(i) else { return Ok(()) };
        let word = if open { text.argument() } else { Some(Vec::new()) };
        let Some(word) = word else { return Err(Wrong::Text(i, "expected ')'".into())) };
        // What is left out ends the list, unless it is a word or a name.
        let words = matches!(kind, Kind::Str | Kind::Regex) || is_name(kind);
        if open && word.is_empty() && i >= signature.required && !words && text.peek() == Some(b',') {
            return Ok(());
        }
        match named(kind, &word, names) {
            Some(Ok(arg)) => read.args.push(arg),
            Some(Err(fault)) => {
                read.args.push(Arg::None);
                read.missing.push((i, fault));
            }
            None => read.args.push(value(kind, word, i, i < signature.required, names)?),
        }
        if i + 1 >= signature.kinds.len() || !open || !text.take_if(b',') {
            break;
        }
    }
    let count = read.args.len();
    match signature.kinds.get(count) {
        Some(next) if count < signature.required => Err(Wrong::Text(
            count,
            format!(
                "missing arguments (got {count}/{}), type '{}' expected",
                signature.required,
                next.word()
            ),
        )),
        _ => Ok(()),
    }
}

/// Turns the word of one argument into its value.
fn value(kind: Kind, word: Vec<u8>, i: usize, required: bool, names: &mut dyn Names) -> Result<Arg, Wrong> {
    let text = printable(&word);
    if word.is_empty() && !matches!(kind, Kind::Str | Kind::Regex) {
        let nothing = format!("expected type '{}' at position {}, but got nothing", kind.word(), i + 1);
        return if required { Err(Wrong::Text(i, nothing)) } else { Ok(Arg::None) };
    }
    let parsed = match kind {
        Kind::Str | Kind::Regex => Some(Arg::Str(word.into())),
        Kind::FieldNumber => field_number(&text).map(|()| Arg::Str(word.into())),
        Kind::Int => integer(&text).map(Arg::Int),
        Kind::Time => milliseconds(&text).map(Arg::Time),
        Kind::Size => size(&text).map(Arg::Size),
        Kind::Ipv4 => text.parse().ok().map(Arg::Ipv4),
        Kind::Ipv6 => text.parse().ok().map(Arg::Ipv6),
        Kind::Mask4 => mask4(&text).map(Arg::Mask4),
        Kind::Mask6 => mask6(&text).map(Arg::Mask6),
        Kind::Var => return variable(&text, names).map(Arg::Var).map_err(|fault| Wrong::Name(i, fault)),
        _ => None,
    };
    parsed.ok_or_else(|| {
        Wrong::Text(i, format!("failed to parse '{text}' as type '{}' at position {}", kind.word(), i + 1))
    })
}

/// Whether an argument names something of the configuration.
fn is_name(kind: Kind) -> bool {
    matches!(kind, Kind::Frontend | Kind::Backend | Kind::Server | Kind::Table | Kind::Userlist)
}

/// What an argument names, if it is of a kind that names something.
fn named(kind: Kind, word: &[u8], names: &mut dyn Names) -> Option<Result<Arg, Fault>> {
    let text = printable(word);
    let name = (!text.is_empty()).then_some(text.as_str());
    Some(match kind {
        Kind::Frontend => names.frontend(name).map(Arg::Frontend),
        Kind::Backend => names.backend(name).map(Arg::Backend),
        Kind::Server => match name {
            None => Err(Fault::new("missing server name")),
            Some(name) => names.server(name).map(|(proxy, server)| Arg::Server(proxy, server)),
        },
        // Rules of defaults are for several proxies, none of whose tables is "the" one.
        Kind::Table if name.is_none() && names.in_defaults() => Err(Fault::new("table name must be set")),
        Kind::Table => crate::names::table(names, name).map(Arg::Table),
        Kind::Userlist if name.is_none() => Err(Fault::new("missing userlist name")),
        Kind::Userlist => names.object(kind, name).map(Arg::Other),
        _ => return None,
    })
}

/// A variable name, checked: a scope, a dot, then letters, digits, `_` and `.`.
///
/// # Errors
/// In HAProxy's words; what the resolver says of names that read well.
pub fn variable(name: &str, names: &mut dyn Names) -> Result<VarRef, Fault> {
    if name.is_empty() {
        return Err(Fault::new("Empty variable name cannot be accepted"));
    }
    let scope = name
        .split_once('.')
        .filter(|(scope, rest)| !rest.is_empty() && model::vars::Scope::from_prefix(scope).is_some());
    let Some((_, rest)) = scope else {
        return Err(Fault::new(format!(
            "invalid variable name '{name}'. A variable name must start with its scope. The scope can be 'proc', \
             '(p)sess', '(p)txn', '(p)req', '(p)res' or 'check'"
        )));
    };
    if let Some(c) = rest.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))) {
        return Err(Fault::new(format!("invalid syntax at char '{c}'")));
    }
    names.variable(name)
}

/// Numbers joined by dots.
fn field_number(text: &str) -> Option<()> {
    text.split('.').all(|n| n.parse::<u64>().is_ok()).then_some(())
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    crate::sample::parse_int(text.as_bytes())
}

/// A time in milliseconds (section 2.5).
fn milliseconds(text: &str) -> Option<u64> {
    base::units::time(text, Unit::Millisecond).ok().map(u64::from)
}

/// The same with a warning for what stands behind its unit.
pub(crate) fn tolerant(text: &str, names: &mut dyn Names) -> Result<u64, TimeError> {
    match base::units::time(text, Unit::Millisecond) {
        Err(fault @ TimeError::Trailing { value, .. }) => {
            names.warn(fault.text(text, ""));
            Ok(value.into())
        }
        other => other.map(u64::from),
    }
}

/// A size in bytes (section 2.6).
pub(crate) fn size(text: &str) -> Option<u64> {
    base::units::size(text, u32::MAX.into()).ok()
}

fn mask4(text: &str) -> Option<Ipv4Addr> {
    match text.parse::<u32>() {
        Ok(bits @ 0..=32) => Some(Ipv4Addr::from(u32::MAX.checked_shl(32 - bits).unwrap_or(0))),
        _ => text.parse().ok(),
    }
}

fn mask6(text: &str) -> Option<Ipv6Addr> {
    match text.parse::<u32>() {
        Ok(bits @ 0..=128) => Some(Ipv6Addr::from(u128::MAX.checked_shl(128 - bits).unwrap_or(0))),
        _ => text.parse().ok(),
    }
}
