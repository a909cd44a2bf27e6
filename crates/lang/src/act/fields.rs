//! Header fields: `add-header`, `set-header`, `del-header`, `replace-header`, `replace-value` (section 4.3).

use pattern::{Flags, Groups, Kind, LiveSet, Regex, Shape, View};
use wire::head::{FieldName, Head, NoRoom, comma};
use wire::uri;

use super::{Parsed, Reading, def, rewritten, step, with_bytes, with_format};
use crate::action::{Exec, Flow};
use crate::logfmt::{LogFormat, Use};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::tag::encode_controls;
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[
    def("add-header", Sets::HTTP, add, "Adds a header field.", "add-header x-client %[src]"),
    def(
        "set-header",
        Sets::HTTP,
        set,
        "Adds a header field in place of those of its name.",
        "set-header x-client %[src]",
    ),
    def(
        "del-header",
        Sets::HTTP,
        del,
        "Removes header fields by name, or by how the name looks.",
        "del-header x- -m beg",
    ),
    def(
        "replace-header",
        Sets::HTTP,
        replace_header,
        "Rewrites the whole value of header fields.",
        "replace-header cookie foo=([^;]*);(.*) foo=\\1;ip=%bi;\\2",
    ),
    def(
        "replace-value",
        Sets::HTTP,
        replace_value,
        "Rewrites each comma-separated value of header fields.",
        "replace-value x-forwarded-for ^192\\.168\\.(.*)$ 172.16.\\1",
    ),
];

fn named(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
) -> Result<(FieldName, LogFormat), Fault> {
    let mut reading = Reading { words, at, reg, names };
    let missing = "expects exactly 2 arguments";
    let name = reading.word(missing)?;
    if name.is_empty() {
        return Err(Fault::new("header name must not be empty"));
    }
    if reading.words.is_empty() {
        return Err(Fault::new(missing));
    }
    warn_of_name(&name, &mut reading);
    Ok((FieldName::new(name.as_bytes()), reading.format(missing)?))
}

/// Warns of a field name that no parser of HTTP accepts.
pub(super) fn warn_of_name(name: &str, reading: &mut Reading<'_, '_>) {
    let allowed = |c: &u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(c);
    if let Some(odd) = name.bytes().find(|c| !allowed(c)) {
        let odd = String::from_utf8_lossy(std::slice::from_ref(&odd)).into_owned();
        reading.names.warn(format!("header name '{name}' contains forbidden character '{odd}'."));
    }
}

fn add(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let (name, value) = named(words, at, reg, names)?;
    step(move |exec| {
        with_format(exec, &value, Use::Header, |exec, bytes| {
            let done = exec.head().append(&name, bytes);
            rewritten(exec, done)
        })
    })
}

fn set(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let (name, value) = named(words, at, reg, names)?;
    let host = at.set == Sets::HTTP_REQ && name.as_bytes() == b"host";
    step(move |exec| {
        with_format(exec, &value, Use::Header, |exec, bytes| {
            let mut done = exec.head().set(&name, bytes).map(drop);
            if host && done.is_ok() {
                done = set_authority(&mut exec.txn.req, bytes);
            }
            rewritten(exec, done)
        })
    })
}

/// Gives a target in absolute form the host that the field has now: they must not differ (RFC 9112 section
/// 3.2.2).
fn set_authority(req: &mut Head, host: &[u8]) -> Result<(), NoRoom> {
    let target = req.target();
    if uri::form(target) != uri::Form::Absolute {
        return Ok(());
    }
    let old = uri::authority(target);
    let start = uri::scheme(target).map_or(0, |scheme| scheme.len() + 3);
    let tail = target.get(start + old.len()..).unwrap_or_default();
    let new = [target.get(..start).unwrap_or_default(), host, tail].concat();
    req.set_target(&new)
}

/// How the names to remove are told.
enum Match {
    Exact(FieldName),
    Pattern(View),
}

fn del(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let name = reading.word("expects at least 1 argument")?;
    let mut how = Match::Exact(FieldName::new(name.as_bytes()));
    if reading.words.take_if("-m") {
        let method = reading.word("-m flag expects exactly 1 argument")?;
        let kind = match method.as_str() {
            "str" => None,
            "beg" => Some(Kind::Beg),
            "end" => Some(Kind::End),
            "sub" => Some(Kind::Sub),
            "reg" => Some(Kind::Reg),
            _ => return Err(Fault::new(format!("-m with unsupported matching method '{method}'"))),
        };
        if let Some(kind) = kind {
            how = Match::Pattern(pattern(&name, kind)?);
        }
    }
    step(move |exec| {
        match &how {
            Match::Exact(name) => drop(exec.head().remove_all(name)),
            Match::Pattern(view) => remove_matching(exec, view),
        }
        Flow::Next
    })
}

fn pattern(name: &str, kind: Kind) -> Result<View, Fault> {
    let set = LiveSet::new("", Shape::Acl);
    let fault = |text: String| Fault::new(text);
    // An expression says itself whether it minds the case; names are in lower case.
    let flags = if kind == Kind::Reg { Flags::default() } else { Flags::IGNORE_CASE };
    let view = set.view(kind, flags).map_err(|e| fault(e.text))?;
    set.add(None, name.as_bytes(), None).map_err(|e| fault(e.to_string()))?;
    Ok(view)
}

fn remove_matching(exec: &mut Exec<'_>, view: &View) {
    let head = exec.head();
    let mut from = 0;
    // Indices stay when fields are removed.
    loop {
        let hit = |name: &[u8]| view.contains(pattern::Value::Str(name));
        let found = head.fields().find(|(i, name, _)| *i >= from && hit(name)).map(|(i, _, _)| i);
        let Some(index) = found else { return };
        head.remove(index);
        from = index + 1;
    }
}

/// A rewrite of values.
struct Replace {
    name: Box<[u8]>,
    regex: Regex,
    format: LogFormat,
}

fn replace(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
) -> Result<Replace, Fault> {
    let mut reading = Reading { words, at, reg, names };
    let missing = "expects exactly 3 arguments";
    let name = reading.word(missing)?.into_bytes().into();
    let regex = reading.word(missing)?;
    if reading.words.is_empty() {
        return Err(Fault::new(missing));
    }
    let regex = Regex::new(regex.as_bytes(), false).map_err(|e| Fault::new(e.text))?;
    Ok(Replace { name, regex, format: reading.format(missing)? })
}

fn replace_header(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let rule = replace(words, at, reg, names)?;
    step(move |exec| rule.run(exec, false))
}

fn replace_value(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let rule = replace(words, at, reg, names)?;
    step(move |exec| rule.run(exec, true))
}

impl Replace {
    fn run(&self, exec: &mut Exec<'_>, split: bool) -> Flow {
        let mut from = 0;
        loop {
            let found = exec.head().all(&*self.name).map(|(i, _)| i).find(|i| *i >= from);
            let Some(index) = found else { return Flow::Next };
            from = index + 1;
            if let flow @ Flow::Error = self.field(exec, index, split) {
                return flow;
            }
        }
    }

    fn field(&self, exec: &mut Exec<'_>, index: usize, split: bool) -> Flow {
        with_bytes(|out| {
            let arena = exec.arena;
            let old = exec.head().field(index).map(|(_, value)| value).unwrap_or_default();
            let old = arena.alloc_slice_copy(old);
            let changed = self.rewrite(exec, old, split, out);
            if !changed {
                return Flow::Next;
            }
            let done = exec.head().replace_value(index, out);
            rewritten(exec, done)
        })
    }

    /// Appends the new value; whether it differs from the old one.
    fn rewrite(&self, exec: &Exec<'_>, old: &[u8], split: bool, out: &mut Vec<u8>) -> bool {
        if !split {
            return self.part(exec, old, out);
        }
        let mut changed = false;
        // What does not match keeps its blanks; what does loses those around it.
        let mut rest = Some(old);
        while let Some(value) = rest {
            let (raw, tail) = value.split_at_checked(comma(value)).unwrap_or((value, &[]));
            let start = out.len();
            if self.part(exec, raw.trim_ascii(), out) {
                changed = true;
            } else {
                out.truncate(start);
                out.extend_from_slice(raw);
            }
            rest = tail.get(1..);
            if rest.is_some() {
                out.push(b',');
            }
        }
        changed
    }

    fn part(&self, exec: &Exec<'_>, old: &[u8], out: &mut Vec<u8>) -> bool {
        let mut groups = Groups::default();
        if !self.regex.captures_at(old, 0, &mut groups) {
            out.extend_from_slice(old);
            return false;
        }
        // The format comes behind what is there already, and what is made of it takes its place.
        let start = out.len();
        self.format.append(&exec.env(), Use::Header, out);
        let template = exec.arena.alloc_slice_copy(&out[start..]);
        out.truncate(start);
        expand(template, old, &groups, out);
        encode_controls(out, start);
        true
    }
}

/// Appends a replacement: `\0` to `\9` are groups, `\xHH` is a byte, another escaped character itself.
pub fn expand(template: &[u8], subject: &[u8], groups: &Groups, out: &mut Vec<u8>) {
    let mut rest = template.iter();
    while let Some(&c) = rest.next() {
        if c != b'\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some(d @ b'0'..=b'9') => {
                if let Some((start, end)) = groups.get(usize::from(d - b'0')) {
                    out.extend_from_slice(subject.get(start..end).unwrap_or_default());
                }
            }
            Some(b'x') => {
                let digits = rest.as_slice().get(..2).unwrap_or_default();
                match (
                    digits.first().and_then(|d| crate::codec::hex_digit(*d)),
                    digits.get(1).and_then(|d| crate::codec::hex_digit(*d)),
                ) {
                    (Some(a), Some(b)) => {
                        out.push(a << 4 | b);
                        rest.nth(1);
                    }
                    _ => out.push(b'x'),
                }
            }
            Some(other) => out.push(*other),
            None => out.push(b'\\'),
        }
    }
}
