//! Header fields in bulk: `add-headers-bin`, `set-headers-bin`, `del-headers-bin` (section 4.3).
//!
//! They read what `req.hdrs_bin` gives: names and values, each behind its length, until an empty name. What
//! ends before that is no list: a rule that meets it fails like an edit that finds no room, and for good once
//! a part of the list has been applied.

use super::{Parsed, Reading, def, rewritten, step, with_bytes};
use crate::action::{Exec, Flow};
use crate::codec::length_of;
use crate::expr::Expr;
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::sample::Type;
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "add-headers-bin",
        Sets::HTTP,
        |w, a, r, n| fields(w, a, r, n, false),
        "Adds the header fields of a binary list.",
        "add-headers-bin var(txn.headers)",
    ),
    def(
        "set-headers-bin",
        Sets::HTTP,
        |w, a, r, n| fields(w, a, r, n, true),
        "Adds the header fields of a binary list in place of those of their names.",
        "set-headers-bin var(txn.headers) prefix x-",
    ),
    def(
        "del-headers-bin",
        Sets::HTTP,
        del,
        "Removes the header fields that a binary list of names tells.",
        "del-headers-bin var(txn.names) -m beg",
    ),
];

fn fields(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    replace: bool,
) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    if reading.words.rest().is_empty() {
        return Err(Fault::new("expects exactly one argument or three arguments <headers> prefix <pfx>"));
    }
    let expr = reading.expr()?;
    let mut prefix = None;
    if reading.words.take_if("prefix") {
        let missing = "expects 1 argument: <headers>; or 3 arguments: <headers> prefix <pfx>";
        prefix = Some(reading.word(missing)?.into_bytes());
    }
    let wanted = move |name: &[u8]| {
        // What begins with a colon is no field in any version of HTTP.
        name.first() != Some(&b':') && prefix.as_ref().is_none_or(|p| name.starts_with(p))
    };
    step(move |exec| {
        with_list(exec, &expr, |exec, list| {
            let (name, value) = (list.text()?, list.text()?);
            if name.is_empty() {
                return value.is_empty().then_some(Entry::Last);
            }
            let head = exec.head();
            let done = match (wanted(name), replace) {
                (false, _) => Ok(0),
                (true, true) => head.set(name, value),
                (true, false) => head.append(name, value),
            };
            Some(done.map_or(Entry::NoRoom, |_| Entry::Done))
        })
    })
}

/// How a name of the list is compared with those of the message.
type Test = fn(&[u8], &[u8]) -> bool;

fn del(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    if reading.words.rest().is_empty() {
        return Err(Fault::new("expects at least 1 argument"));
    }
    let expr = reading.expr()?;
    let mut test: Test = |name, wanted| name.eq_ignore_ascii_case(wanted);
    if reading.words.take_if("-m") {
        let method = reading.word("-m flag expects exactly 1 argument")?;
        test = match method.as_str() {
            "str" => test,
            "beg" => |n, w| n.get(..w.len()).is_some_and(|n| n.eq_ignore_ascii_case(w)),
            "end" => |n, w| n.len() >= w.len() && n[n.len() - w.len()..].eq_ignore_ascii_case(w),
            "sub" => |n, w| n.windows(w.len().max(1)).any(|n| n.eq_ignore_ascii_case(w)),
            "reg" => {
                return Err(Fault::new(
                    "-m reg is unsupported with del-headers-bin due to performance reasons",
                ));
            }
            _ => return Err(Fault::new(format!("-m with unsupported matching method '{method}'"))),
        };
    }
    step(move |exec| {
        with_list(exec, &expr, |exec, list| {
            let wanted = list.text()?;
            if wanted.is_empty() {
                return Some(Entry::Last);
            }
            let head = exec.head();
            let mut from = 0;
            // Indices stay when fields are removed.
            loop {
                let found = head.fields().find(|(i, n, _)| *i >= from && test(n, wanted)).map(|(i, ..)| i);
                let Some(index) = found else { return Some(Entry::Done) };
                head.remove(index);
                from = index + 1;
            }
        })
    })
}

/// What came of an entry of the list.
enum Entry {
    Done,
    Last,
    NoRoom,
}

/// What is left of a list.
struct List<'l>(&'l [u8]);

impl<'l> List<'l> {
    /// The next text behind its length, if all of it is there.
    fn text(&mut self) -> Option<&'l [u8]> {
        let (length, rest) = length_of(self.0)?;
        let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(text)
    }
}

/// Applies the entries of a list to its end. Without a list nothing happens.
fn with_list(
    exec: &mut Exec<'_>,
    expr: &Expr,
    mut apply: impl FnMut(&mut Exec<'_>, &mut List<'_>) -> Option<Entry>,
) -> Flow {
    with_bytes(|bytes| {
        let arena = exec.arena;
        let value = expr.eval(&exec.env()).ok().and_then(|v| v.cast(Type::Bin, arena));
        let Some(value) = value else { return Flow::Next };
        bytes.extend_from_slice(value.binary(arena));
        let mut list = List(bytes);
        let mut first = true;
        loop {
            if !first && list.0.is_empty() {
                // It has no entry that says that it is over.
                return Flow::Error;
            }
            match apply(exec, &mut list) {
                Some(Entry::Last) => return Flow::Next,
                Some(Entry::Done) => first = false,
                Some(Entry::NoRoom) | None => return rewritten::<()>(exec, Err(wire::head::NoRoom)),
            }
        }
    })
}
