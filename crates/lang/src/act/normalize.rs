//! `normalize-uri` (section 4.3): one rewriting of the target an action, each of them a function of bytes.

use wire::uri;

use super::{Parsed, Reading, def, rewritten, step, with_bytes};
use crate::action::Flow;
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[def(
    "normalize-uri",
    Sets::HTTP_REQ,
    parse,
    "Brings the target into a normal form; experimental.",
    "normalize-uri path-strip-dotdot full",
)];

/// A rewriting: appends the new text; `None` for a text that is refused.
type Rewrite = fn(&[u8], &mut Vec<u8>) -> Option<()>;

/// The part of the target that a rewriting works on.
#[derive(Clone, Copy)]
enum Scope {
    /// Path alone.
    Path,
    /// Path, query and fragment.
    All,
}

/// Name, its option with what it then does, scope, what it does without.
struct Normalizer {
    name: &'static str,
    option: Option<(&'static str, Rewrite)>,
    scope: Scope,
    rewrite: Rewrite,
}

const fn plain(name: &'static str, scope: Scope, rewrite: Rewrite) -> Normalizer {
    Normalizer { name, option: None, scope, rewrite }
}

const NORMALIZERS: &[Normalizer] = &[
    plain("fragment-encode", Scope::All, fragment_encode),
    plain("fragment-strip", Scope::All, fragment_strip),
    plain("path-merge-slashes", Scope::Path, merge_slashes),
    plain("path-strip-dot", Scope::Path, strip_dot),
    Normalizer {
        name: "path-strip-dotdot",
        option: Some(("full", |path, out| strip_dotdot(path, out, true))),
        scope: Scope::Path,
        rewrite: |path, out| strip_dotdot(path, out, false),
    },
    Normalizer {
        name: "percent-decode-unreserved",
        option: Some(("strict", |text, out| decode_unreserved(text, out, true))),
        scope: Scope::All,
        rewrite: |text, out| decode_unreserved(text, out, false),
    },
    Normalizer {
        name: "percent-to-uppercase",
        option: Some(("strict", |text, out| uppercase(text, out, true))),
        scope: Scope::All,
        rewrite: |text, out| uppercase(text, out, false),
    },
    plain("query-sort-by-name", Scope::All, sort_query),
];

fn parse(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    if !reading.names.experimental() {
        let text = "'normalize-uri' action is experimental, must be allowed via a global 'expose-experimental-directives'";
        return Err(Fault::new(text));
    }
    let name = reading.word("missing argument <normalizer>")?;
    let Some(normalizer) = NORMALIZERS.iter().find(|n| n.name == name) else {
        let near = syntax::nearest(&name, NORMALIZERS.iter().map(|n| n.name));
        let fault = Fault::new(format!("unknown normalizer '{name}'"));
        return Err(match near {
            Some(near) => fault.help(format!("did you mean '{near}' ?")),
            None => fault,
        });
    };
    let mut rewrite = normalizer.rewrite;
    if let Some((option, other)) = normalizer.option
        && reading.words.take_if(option)
    {
        rewrite = other;
    }
    let scope = normalizer.scope;
    step(move |exec| {
        with_bytes(|out| {
            let target = exec.txn.req.target();
            let pathq = uri::path_and_query(target);
            if pathq.is_empty() || pathq == b"*" {
                return Flow::Next;
            }
            let part = match scope {
                Scope::Path => pathq.split(|c| *c == b'?').next().unwrap_or_default(),
                Scope::All => pathq,
            };
            let (front, rest) = (&target[..target.len() - pathq.len()], &pathq[part.len()..]);
            out.extend_from_slice(front);
            if rewrite(part, out).is_none() {
                return Flow::Invalid;
            }
            out.extend_from_slice(rest);
            if out == target {
                return Flow::Next;
            }
            let done = exec.txn.req.set_target(out);
            rewritten(exec, done)
        })
    })
}

fn fragment_encode(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    for c in text {
        match c {
            b'#' => out.extend_from_slice(b"%23"),
            c => out.push(*c),
        }
    }
    Some(())
}

fn fragment_strip(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(text.split(|c| *c == b'#').next()?);
    Some(())
}

fn merge_slashes(path: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    for c in path {
        if *c != b'/' || out.len() == start || out.last() != Some(&b'/') {
            out.push(*c);
        }
    }
    Some(())
}

fn strip_dot(path: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut segments = path.split(|c| *c == b'/').peekable();
    let mut first = true;
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        // The first one stands before the leading slash.
        if segment == b"." && !first {
            if last {
                out.push(b'/');
            }
            continue;
        }
        if !first {
            out.push(b'/');
        }
        out.extend_from_slice(segment);
        first = false;
    }
    Some(())
}

/// `..` takes back the segment before it; those that have none stay, or go with `full`.
fn strip_dotdot(path: &[u8], out: &mut Vec<u8>, full: bool) -> Option<()> {
    let start = out.len();
    let mut kept = 0;
    let mut segments = path.strip_prefix(b"/").unwrap_or(path).split(|c| *c == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        if segment != b".." {
            out.push(b'/');
            out.extend_from_slice(segment);
            kept += 1;
            continue;
        }
        if kept > 0 {
            kept -= 1;
            let before = out[start..].iter().rposition(|c| *c == b'/').unwrap_or(0);
            out.truncate(start + before);
        } else if !full {
            out.extend_from_slice(b"/..");
        }
        if last {
            out.push(b'/');
        }
    }
    Some(())
}

fn digit(c: Option<&u8>) -> Option<u8> {
    let value = char::from(*c?).to_digit(16)?;
    u8::try_from(value).ok()
}

fn decode_unreserved(text: &[u8], out: &mut Vec<u8>, strict: bool) -> Option<()> {
    let mut at = 0;
    while let Some(c) = text.get(at) {
        let byte = digit(text.get(at + 1)).zip(digit(text.get(at + 2))).map(|(h, l)| h << 4 | l);
        match (c, byte) {
            (b'%', Some(b)) if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => {
                out.push(b);
                at += 3;
            }
            (b'%', Some(_)) => {
                out.extend_from_slice(text.get(at..at + 3)?);
                at += 3;
            }
            (b'%', None) if strict => return None,
            _ => {
                out.push(*c);
                at += 1;
            }
        }
    }
    Some(())
}

fn uppercase(text: &[u8], out: &mut Vec<u8>, strict: bool) -> Option<()> {
    let mut at = 0;
    while let Some(c) = text.get(at) {
        let valid = digit(text.get(at + 1)).and(digit(text.get(at + 2))).is_some();
        match c {
            b'%' if valid => {
                out.extend(text.get(at..at + 3)?.iter().map(u8::to_ascii_uppercase));
                at += 3;
            }
            b'%' if strict => return None,
            c => {
                out.push(*c);
                at += 1;
            }
        }
    }
    Some(())
}

/// Shorter names first, equal ones in the order they came.
fn sort_query(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let Some(mark) = text.iter().position(|c| *c == b'?') else {
        out.extend_from_slice(text);
        return Some(());
    };
    let (path, query) = text.split_at(mark + 1);
    let end = query.iter().position(|c| *c == b'#').unwrap_or(query.len());
    let (query, fragment) = query.split_at(end);
    let name = |p: &&[u8]| p.split(|c| *c == b'=').next().unwrap_or_default().to_vec();
    let mut parameters: Vec<&[u8]> = query.split(|c| *c == b'&').collect();
    parameters.sort_by_cached_key(name);
    out.extend_from_slice(path);
    out.extend_from_slice(&parameters.join(&b'&'));
    out.extend_from_slice(fragment);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::NORMALIZERS;

    fn normal(name: &str, text: &str) -> Option<String> {
        let (name, option) = name.split_once(' ').map_or((name, false), |(n, _)| (n, true));
        let normalizer = NORMALIZERS.iter().find(|n| n.name == name).unwrap();
        let rewrite = if option { normalizer.option.unwrap().1 } else { normalizer.rewrite };
        let mut out = Vec::new();
        rewrite(text.as_bytes(), &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn texts_become_what_haproxy_makes_of_them() {
        for (name, from, to) in [
            ("fragment-encode", "/a?b#c#d", "/a?b%23c%23d"),
            ("fragment-strip", "/a?b#c#d", "/a?b"),
            ("path-merge-slashes", "///a///", "/a/"),
            ("path-merge-slashes", "/..//x", "/../x"),
            ("path-strip-dot", "/.", "/"),
            ("path-strip-dot", "/a/.", "/a/"),
            ("path-strip-dot", "/.//", "//"),
            ("path-strip-dot", "/a/.b/..c/./d", "/a/.b/..c/d"),
            ("path-strip-dot", "/.well-known/", "/.well-known/"),
            ("path-strip-dotdot", "/..", "/../"),
            ("path-strip-dotdot", "/a/..", "/"),
            ("path-strip-dotdot", "/bar/../..", "/../"),
            ("path-strip-dotdot", "/foo//../", "/foo/"),
            ("path-strip-dotdot", "/a/...", "/a/..."),
            ("path-strip-dotdot full", "/..//x", "//x"),
            ("path-strip-dotdot full", "/bar/../../", "/"),
            ("percent-decode-unreserved", "/%%36%36", "/%66"),
            ("percent-decode-unreserved", "/%6f%2f%zz", "/o%2f%zz"),
            ("percent-to-uppercase", "/%6f%2f%zz", "/%6F%2F%zz"),
            ("query-sort-by-name", "/?b&a=&a", "/?a=&a&b"),
            ("query-sort-by-name", "/?aaa=3&a=1&aa=2", "/?a=1&aa=2&aaa=3"),
            ("query-sort-by-name", "/a?x=1?y=2&a=1", "/a?a=1&x=1?y=2"),
        ] {
            assert_eq!(normal(name, from).as_deref(), Some(to), "{name} {from}");
        }
        for text in ["/%%36%36", "/%ZZ", "/%6", "/%"] {
            assert_eq!(normal("percent-decode-unreserved strict", text), None);
            assert_eq!(normal("percent-to-uppercase strict", text), None);
        }
    }
}
