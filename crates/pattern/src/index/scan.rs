//! Comparing with one pattern after the other: the fastest way for a few of them, and the
//! yardstick that the other indexes are tested against.

use std::sync::Arc;

use super::{Found, Query, Reading, longest_wins};
use crate::Regex;
use crate::entries::{Entries, TextRoom};
use crate::error::PatternError;
use crate::kind::{Flags, Kind};
use crate::net::{self, Net};
use crate::number::{self, Range};
use crate::value::{Scratch, Value};

/// One pattern, read.
#[derive(Debug)]
pub(crate) enum Matcher {
    Any,
    Range(Range),
    Net(Net),
    Bytes(Vec<u8>),
    Text,
    Regex(Regex),
}

/// Patterns in order, each read by its kind.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    kind: Kind,
    fold: bool,
    /// None of texts, which are compared as they are written.
    matchers: Option<Arc<[Matcher]>>,
}

/// Reads one pattern, as a check or to keep it; `names` allows host names.
pub(crate) fn read(kind: Kind, flags: Flags, pattern: &[u8], names: bool) -> Result<Matcher, PatternError> {
    Ok(match kind {
        Kind::Found | Kind::Bool => Matcher::Any,
        Kind::Int | Kind::Len => Matcher::Range(number::parse(false, pattern)?),
        Kind::Version => Matcher::Range(number::parse(true, pattern)?),
        Kind::Ip => Matcher::Net(read_net(pattern, names)?),
        Kind::Bin => Matcher::Bytes(hex(pattern)?),
        Kind::Str | Kind::Beg | Kind::End | Kind::Sub | Kind::Dir | Kind::Dom => Matcher::Text,
        Kind::Reg => Matcher::Regex(Regex::new(pattern, flags.ignore_case)?),
    })
}

/// Reads the pattern of an address or a network.
pub(super) fn read_net(pattern: &[u8], names: bool) -> Result<Net, PatternError> {
    net::parse(pattern, names).ok_or_else(|| {
        let shown = String::from_utf8_lossy(pattern);
        PatternError::new(pattern, format!("'{shown}' is not a valid IPv4 or IPv6 address"))
    })
}

/// The bytes that hexadecimal digits stand for.
pub(super) fn hex(pattern: &[u8]) -> Result<Vec<u8>, PatternError> {
    let digit = |c: u8| char::from(c).to_digit(16);
    if !pattern.len().is_multiple_of(2) {
        return Err(PatternError::new(pattern, "an even number of hex digit is expected"));
    }
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = pattern.chunks(2).map(byte).collect();
    bytes.ok_or_else(|| {
        let odd = pattern.iter().find(|c| !c.is_ascii_hexdigit()).copied().unwrap_or(b'?');
        let text = format!("an hex digit is expected (found '{}')", char::from(odd));
        PatternError::new(pattern, text)
    })
}

impl Scan {
    /// For a kind that has no patterns.
    pub(crate) fn empty(kind: Kind) -> Scan {
        Scan { kind, fold: false, matchers: Some(Arc::new([])) }
    }

    pub(crate) fn build(
        kind: Kind,
        flags: Flags,
        entries: &Entries,
        reading: Reading<'_>,
    ) -> Result<Scan, (u32, PatternError)> {
        let mut room = TextRoom::default();
        let mut matchers = Vec::new();
        for n in 0..entries.len() {
            let pattern = entries.pattern(n, &mut room);
            matchers.push(read(kind, flags, pattern, reading.names).map_err(|e| (n, e))?);
        }
        let texts = matchers.iter().all(|m| matches!(m, Matcher::Text));
        Ok(Scan { kind, fold: flags.ignore_case, matchers: (!texts).then(|| matchers.into()) })
    }

    pub(crate) fn find(&self, query: Query<'_>) -> Option<Found> {
        let mut scratch = Scratch::new();
        let probe = Probe::of(self.kind, &query.value, &mut scratch)?;
        let mut best: Option<Found> = None;
        let count = self.matchers.as_ref().map_or(query.entries.len(), |m| m.len() as u32);
        for n in 0..count {
            let matcher = self.matchers.as_ref().and_then(|m| m.get(n as usize)).unwrap_or(&Matcher::Text);
            let Some(weight) = self.weigh(matcher, query.entries, n, &probe) else { continue };
            if best.is_some_and(|b| b.weight >= weight) || !query.dead.spares(n) {
                continue;
            }
            best = Some(Found { entry: n, weight });
            if query.any || !longest_wins(self.kind, self.fold) {
                break;
            }
        }
        best
    }

    fn weigh(&self, matcher: &Matcher, entries: &Entries, n: u32, probe: &Probe<'_>) -> Option<u32> {
        let (hit, weight) = match (matcher, probe) {
            (Matcher::Any, _) => (true, 0),
            (Matcher::Range(r), Probe::Int(i)) => (r.contains(*i), 0),
            (Matcher::Net(net), Probe::Addr(a)) => return net.weigh(*a),
            (Matcher::Bytes(b), Probe::Bytes(v)) => (b.as_slice() == *v, 0),
            (Matcher::Regex(r), Probe::Bytes(v)) => (r.is_match(v), 0),
            (Matcher::Text, Probe::Bytes(v)) => {
                let mut room = TextRoom::default();
                let pattern = entries.pattern(n, &mut room);
                let weight = if longest_wins(self.kind, self.fold) { pattern.len() as u32 } else { 0 };
                (text_matches(self.kind, self.fold, pattern, v), weight)
            }
            _ => (false, 0),
        };
        hit.then_some(weight)
    }
}

/// The value in the form that a kind compares.
pub(crate) enum Probe<'a> {
    Present,
    Int(i64),
    Addr(std::net::IpAddr),
    Bytes(&'a [u8]),
}

impl<'a> Probe<'a> {
    pub(crate) fn of(kind: Kind, value: &Value<'a>, scratch: &'a mut Scratch) -> Option<Probe<'a>> {
        Some(match kind {
            Kind::Found => Probe::Present,
            Kind::Bool => {
                return value.as_bool().then_some(Probe::Present);
            }
            Kind::Int | Kind::Version => Probe::Int(value.as_int()?),
            Kind::Len => Probe::Int(value.as_text(scratch).len() as i64),
            Kind::Ip => Probe::Addr(value.as_addr()?),
            Kind::Bin => Probe::Bytes(value.as_bytes(scratch)),
            _ => Probe::Bytes(value.as_text(scratch)),
        })
    }
}

/// Whether `value` matches the text `pattern`.
pub(crate) fn text_matches(kind: Kind, fold: bool, pattern: &[u8], value: &[u8]) -> bool {
    let same = |a: &[u8], b: &[u8]| if fold { a.eq_ignore_ascii_case(b) } else { a == b };
    let n = pattern.len();
    match kind {
        Kind::Str => same(pattern, value),
        Kind::Beg => value.get(..n).is_some_and(|v| same(pattern, v)),
        Kind::End => value.len() >= n && same(pattern, &value[value.len() - n..]),
        Kind::Sub => holds(fold, pattern, value),
        _ => delimiter_of(kind).is_some_and(|d| delimited(pattern, value, d, &same)),
    }
}

/// Whether `value` has `pattern` in it. Only where its first byte stands the rest is looked at.
fn holds(fold: bool, pattern: &[u8], value: &[u8]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else { return true };
    let starts = value.len().checked_sub(rest.len()).and_then(|n| value.get(..n)).unwrap_or_default();
    let is_rest = |at: usize| {
        let found = value.get(at + 1..).and_then(|v| v.get(..rest.len()));
        found.is_some_and(|v| if fold { v.eq_ignore_ascii_case(rest) } else { v == rest })
    };
    if fold {
        memchr::memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), starts).any(is_rest)
    } else {
        memchr::memchr_iter(first, starts).any(is_rest)
    }
}

/// What separates the parts of a value, for kinds that look at parts.
pub(super) fn delimiter_of(kind: Kind) -> Option<fn(u8) -> bool> {
    match kind {
        Kind::Dir => Some(|c| matches!(c, b'/' | b'?')),
        Kind::Dom => Some(|c| matches!(c, b'/' | b'.' | b'?' | b':')),
        _ => None,
    }
}

/// A pattern without the delimiters at its ends.
pub(super) fn strip(pattern: &[u8], delimiter: fn(u8) -> bool) -> &[u8] {
    let start = pattern.iter().position(|c| !delimiter(*c)).unwrap_or(pattern.len());
    let end = pattern.iter().rposition(|c| !delimiter(*c)).map_or(start, |e| e + 1);
    &pattern[start..end]
}

fn delimited(
    pattern: &[u8],
    value: &[u8],
    delimiter: fn(u8) -> bool,
    same: &dyn Fn(&[u8], &[u8]) -> bool,
) -> bool {
    let pattern = strip(pattern, delimiter);
    let n = pattern.len();
    if n == 0 {
        return value.last().is_none_or(|c| delimiter(*c));
    }
    value.windows(n).enumerate().any(|(at, v)| {
        (at == 0 || delimiter(value[at - 1]))
            && value.get(at + n).is_none_or(|c| delimiter(*c))
            && same(pattern, v)
    })
}
