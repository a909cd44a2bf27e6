//! Start lines: method, target and its parts, status (section 4.3).

use pattern::{Groups, Regex};
use wire::head::Known;
use wire::uri;

use super::fields::expand;
use super::{Parsed, Reading, def, rewritten, step, with_bytes, with_format};
use crate::action::{Exec, Flow};
use crate::logfmt::{LogFormat, Use};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::tag::encode_controls;
use crate::words::{Fault, Words};

const REQ: Sets = Sets::HTTP_REQ;

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "replace-path",
        REQ,
        |w, a, r, n| replace(w, a, r, n, Part::Path),
        "Rewrites the path.",
        "replace-path (.*) /foo\\1",
    ),
    def(
        "replace-pathq",
        REQ,
        |w, a, r, n| replace(w, a, r, n, Part::PathQuery),
        "Rewrites path and query.",
        "replace-pathq ([^?]*)(.*) \\1/foo\\2",
    ),
    def(
        "replace-uri",
        REQ,
        |w, a, r, n| replace(w, a, r, n, Part::Target),
        "Rewrites the target.",
        "replace-uri ^http://(.*) https://\\1",
    ),
    def("set-method", REQ, set_method, "Replaces the method.", "set-method POST"),
    def(
        "set-path",
        REQ,
        |w, a, r, n| set(w, a, r, n, Part::Path),
        "Replaces the path, keeps the query.",
        "set-path /%[hdr(host)]%[path]",
    ),
    def(
        "set-pathq",
        REQ,
        |w, a, r, n| set(w, a, r, n, Part::PathQuery),
        "Replaces path and query.",
        "set-pathq /%[hdr(host)]%[pathq]",
    ),
    def(
        "set-query",
        REQ,
        |w, a, r, n| set(w, a, r, n, Part::Query),
        "Replaces the query.",
        "set-query %[query,regsub(%3D,=,g)]",
    ),
    def("set-uri", REQ, |w, a, r, n| set(w, a, r, n, Part::Target), "Replaces the target.", "set-uri /all"),
    def(
        "set-status",
        Sets::HTTP_RES.and(Sets::HTTP_AFTER),
        set_status,
        "Replaces the status.",
        "set-status 503 reason Slow",
    ),
];

/// A part of the request target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The path.
    Path,
    /// Path and query.
    PathQuery,
    /// The query.
    Query,
    /// All of it.
    Target,
}

/// Replaces a part of the request target, as `set-path` and its kin do; whether there was room.
pub fn put_part(exec: &mut Exec<'_>, part: Part, new: &[u8]) -> bool {
    matches!(set_part(exec, part, new), Flow::Next)
}

impl Part {
    fn of(self, target: &[u8]) -> &[u8] {
        match self {
            Part::Path => uri::path(target),
            Part::PathQuery => uri::path_and_query(target),
            Part::Query => uri::query(target).unwrap_or_default(),
            Part::Target => target,
        }
    }

    /// Appends the target with this part replaced.
    fn put(self, target: &[u8], new: &[u8], out: &mut Vec<u8>) {
        // A target that rules left without a slash has no path to find, but one to replace: all before the
        // query. Nor has one that ends with its host, which goes along with it in HAProxy.
        let found = uri::path_and_query(target);
        let is_path = matches!(self, Part::Path | Part::PathQuery);
        let whole = uri::form(target) == uri::Form::Authority || found.is_empty() && is_path;
        let pathq = if whole { target } else { found };
        let front = &target[..target.len() - pathq.len()];
        let path = pathq.split(|c| *c == b'?').next().unwrap_or_default();
        let query = &pathq[path.len()..];
        match self {
            Part::Target => out.extend_from_slice(new),
            Part::PathQuery => [front, new].iter().for_each(|p| out.extend_from_slice(p)),
            Part::Path => [front, new, query].iter().for_each(|p| out.extend_from_slice(p)),
            Part::Query => {
                [front, path].iter().for_each(|p| out.extend_from_slice(p));
                let new = new.strip_prefix(b"?").unwrap_or(new);
                if !new.is_empty() {
                    out.push(b'?');
                    out.extend_from_slice(new);
                }
            }
        }
    }
}

fn one(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
) -> Result<LogFormat, Fault> {
    let expects = "expects exactly 1 argument <format>";
    let mut reading = Reading { words, at, reg, names };
    let format = reading.format(expects)?;
    if !reading.is_over() { Err(Fault::new(expects)) } else { Ok(format) }
}

fn set_method(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let format = one(words, at, reg, names)?;
    step(move |exec| {
        with_format(exec, &format, Use::Header, |exec, bytes| {
            let done = exec.txn.req.set_method(bytes);
            rewritten(exec, done)
        })
    })
}

fn set(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names, part: Part) -> Parsed {
    let format = one(words, at, reg, names)?;
    step(move |exec| with_format(exec, &format, Use::Header, |exec, bytes| set_part(exec, part, bytes)))
}

fn set_part(exec: &mut Exec<'_>, part: Part, new: &[u8]) -> Flow {
    with_bytes(|out| {
        part.put(exec.txn.req.target(), new, out);
        let req = &mut exec.txn.req;
        let mut done = if part == Part::Target { req.set_uri(out) } else { req.set_target(out) };
        // A target that names a host is what the request asks for: `Host` follows it, where there is one.
        let host = if part == Part::Target { uri::host_port(out) } else { b"" };
        let field = exec.txn.req.all(Known::Host).next().map(|(index, _)| index);
        if let (Ok(()), false, Some(index)) = (&done, host.is_empty(), field) {
            done = exec.txn.req.replace_value(index, host);
        }
        rewritten(exec, done)
    })
}

fn replace(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    part: Part,
) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let missing = "expects exactly 2 arguments <match-regex> and <replace-format>";
    let regex = reading.word(missing)?;
    if reading.words.is_empty() {
        return Err(Fault::new(missing));
    }
    let regex = Regex::new(regex.as_bytes(), false)
        .map_err(|e| Fault::new(format!("failed to parse the regex : {}", e.text)))?;
    let format = reading.format(missing)?;
    if !reading.is_over() {
        return Err(Fault::new(missing));
    }
    step(move |exec| {
        let arena = exec.arena;
        let old = arena.alloc_slice_copy(part.of(exec.txn.req.target()));
        let mut groups = Groups::default();
        let absent = part != Part::Target && (old.is_empty() || old == b"*");
        if absent || !regex.captures_at(old, 0, &mut groups) {
            return Flow::Next;
        }
        with_format(exec, &format, Use::Header, |exec, template| {
            with_bytes(|new| {
                expand(template, old, &groups, new);
                encode_controls(new, 0);
                set_part(exec, part, new)
            })
        })
    })
}

fn set_status(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let word = reading.word("expects 1 argument: <status>; or 3 arguments: <status> reason <fmt>")?;
    let status = word.parse::<u16>().ok().filter(|s| (100..=999).contains(s));
    let status = status.ok_or_else(|| Fault::new("expects an integer status code between 100 and 999"))?;
    let mut reason = None;
    if reading.words.rest().len() > 1 && reading.words.take_if("reason") {
        reason = Some(reading.word("expects 3 arguments: <status> reason <fmt>")?);
    }
    step(move |exec| {
        let done = exec.txn.res.set_status(status, reason.as_deref().map(str::as_bytes));
        exec.txn.status = status;
        rewritten(exec, done)
    })
}
