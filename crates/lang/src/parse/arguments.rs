//! Arguments in parentheses, checked against a signature.

use std::net::{Ipv4Addr, Ipv6Addr};

use model::vars::VarRef;

use super::text::{Text, printable};
use crate::arg::{Arg, Kind, Signature};
use crate::names::Names;
use crate::words::Fault;

/// Why arguments can't be read.
pub(super) enum Wrong {
    /// The text itself: which argument (from 0), and what.
    Text(usize, String),
    /// A name that does not resolve: which argument (from 0), and the resolver's fault.
    Name(usize, Fault),
}

/// Reads `(a,b)`, if there is an opening parenthesis, and checks it.
pub(super) fn read(
    text: &mut Text<'_>,
    signature: &Signature,
    names: &mut dyn Names,
) -> Result<Vec<Arg>, Wrong> {
    let open = text.take_if(b'(');
    let empty = !open || text.peek() == Some(b')');
    let mut args = Vec::new();
    if !(signature.kinds.is_empty() || empty && signature.required == 0) {
        list(text, open, signature, names, &mut args)?;
    }
    if open && !text.take_if(b')') {
        let rest = printable(text.rest());
        let what =
            if rest.is_empty() { "expected ')'".into() } else { format!("expected ')' before '{rest}'") };
        return Err(Wrong::Text(args.len().saturating_sub(usize::from(!args.is_empty())), what));
    }
    Ok(args)
}

fn list(
    text: &mut Text<'_>,
    open: bool,
    signature: &Signature,
    names: &mut dyn Names,
    args: &mut Vec<Arg>,
) -> Result<(), Wrong> {
    loop {
        let i = args.len();
        let Some(&kind) = signature.kinds.get(i) else { return Ok(()) };
        let word = if open { text.argument() } else { Some(Vec::new()) };
        let Some(word) = word else { return Err(Wrong::Text(i, "expected ')'".into())) };
        args.push(value(kind, word, i, i < signature.required, names)?);
        if i + 1 >= signature.kinds.len() || !open || !text.take_if(b',') {
            break;
        }
    }
    match signature.kinds.get(args.len()) {
        Some(next) if args.len() < signature.required => Err(Wrong::Text(
            args.len(),
            format!(
                "missing arguments (got {}/{}), type '{}' expected",
                args.len(),
                signature.required,
                next.word()
            ),
        )),
        _ => Ok(()),
    }
}

/// Turns the word of one argument into its value.
fn value(kind: Kind, word: Vec<u8>, i: usize, required: bool, names: &mut dyn Names) -> Result<Arg, Wrong> {
    let by_name =
        matches!(kind, Kind::Frontend | Kind::Backend | Kind::Server | Kind::Table | Kind::Userlist);
    let text = printable(&word);
    if by_name {
        return named(kind, &text, names).map_err(|fault| Wrong::Name(i, fault));
    }
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

fn named(kind: Kind, text: &str, names: &mut dyn Names) -> Result<Arg, Fault> {
    let name = (!text.is_empty()).then_some(text);
    Ok(match kind {
        Kind::Frontend => Arg::Frontend(names.frontend(name)?),
        Kind::Backend => Arg::Backend(names.backend(name)?),
        Kind::Server => {
            let name = name.ok_or_else(|| Fault::new("missing server name"))?;
            let (proxy, server) = names.server(name)?;
            Arg::Server(proxy, server)
        }
        Kind::Table => Arg::Table(crate::stick::table(names, name)?),
        _ => Arg::Other(names.object(kind, name)?),
    })
}

/// A variable name, checked: a scope, a dot, then letters, digits, `_` and `.`.
///
/// # Errors
/// In HAProxy's words; what the resolver says of names that read well.
pub fn variable(name: &str, names: &mut dyn Names) -> Result<VarRef, Fault> {
    let scope = name.split_once('.').filter(|(scope, rest)| {
        let scope = scope.strip_prefix('p').filter(|s| *s != "roc").unwrap_or(scope);
        !rest.is_empty() && model::vars::Scope::from_prefix(scope).is_some()
    });
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

/// A number and its unit.
fn scaled(text: &str, units: &[(&str, u64)], default: u64) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit {
        "" => default,
        _ => units.iter().find(|(u, _)| *u == unit)?.1,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A time in milliseconds (section 2.5).
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    if let Some(us) = text.strip_suffix("us") {
        return us.parse::<u64>().ok().map(|n| n.div_ceil(1000));
    }
    scaled(text, &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)], 1)
}

/// A size in bytes (section 2.6).
pub(crate) fn size(text: &str) -> Option<u64> {
    let (k, m, g) = (1 << 10, 1 << 20, 1 << 30);
    scaled(text, &[("k", k), ("K", k), ("m", m), ("M", m), ("g", g), ("G", g)], 1)
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
