//! Redirects (keyword `redirect` and the action of that name).

use wire::head::Known;
use wire::uri;

use super::{Parsed, Reading, Step, def};
use crate::action::{Exec, Flow, Payload, Reply};
use crate::env::Side;
use crate::logfmt::{LogFormat, Use};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Form, Registry, Sets};
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[def(
    "redirect",
    Sets::HTTP_REQ.and(Sets::HTTP_RES),
    parse,
    "Sends the client elsewhere.",
    "redirect location https://example.org/ code 301",
)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Location,
    Prefix,
    Scheme,
}

struct Redirect {
    to: To,
    target: LogFormat,
    code: u16,
    drop_query: bool,
    append_slash: bool,
    keep_query: bool,
    ignore_empty: bool,
    /// The value of a cookie, and what follows it.
    cookie: Option<(LogFormat, &'static str)>,
}

/// What was read so far.
#[derive(Default)]
struct Draft {
    target: Option<(To, LogFormat)>,
    code: Option<u16>,
    drop_query: bool,
    append_slash: bool,
    keep_query: bool,
    ignore_empty: bool,
    /// The value of a cookie, and what follows it.
    cookie: Option<(LogFormat, &'static str)>,
}

fn parse(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let mut draft = Draft::default();
    while !reading.is_over() {
        let position = reading.words.position();
        option(&mut reading, &mut draft).map_err(|f| f.at(position))?;
    }
    let Some((to, target)) = draft.target else {
        return Err(Fault::new("redirection type expected ('prefix', 'location', or 'scheme')"));
    };
    if at.set == Sets::HTTP_RES && to != To::Location {
        return Err(Fault::new("only 'location' redirects are supported on responses"));
    }
    let redirect = Redirect {
        to,
        target,
        code: draft.code.unwrap_or(302),
        drop_query: draft.drop_query,
        append_slash: draft.append_slash,
        keep_query: draft.keep_query,
        ignore_empty: draft.ignore_empty,
        cookie: draft.cookie,
    };
    // With ignore-empty the rules behind may be reached.
    let end = !redirect.ignore_empty;
    Ok(Box::new(Step { end, run: move |exec: &mut Exec<'_>| redirect.run(exec) }))
}

fn option(reading: &mut Reading<'_, '_>, draft: &mut Draft) -> Result<(), Fault> {
    let word = reading.word("")?;
    let missing = format!("missing argument for '{word}'");
    match word.as_str() {
        "location" => draft.target = Some((To::Location, target(reading, &missing)?)),
        "prefix" => draft.target = Some((To::Prefix, target(reading, &missing)?)),
        "scheme" => draft.target = Some((To::Scheme, target(reading, &missing)?)),
        "set-cookie-fmt" => draft.cookie = Some((reading.format(&missing)?, "; path=/;")),
        "set-cookie" => draft.cookie = Some((plain(reading, &missing)?, "; path=/;")),
        "clear-cookie" => draft.cookie = Some((plain(reading, &missing)?, "; path=/; Max-Age=0;")),
        "code" => draft.code = Some(code(&reading.word(&missing)?)?),
        "drop-query" => draft.drop_query = true,
        "keep-query" => draft.keep_query = true,
        "append-slash" => draft.append_slash = true,
        "ignore-empty" => draft.ignore_empty = true,
        _ => {
            return Err(Fault::new(format!(
                "expects 'code', 'prefix', 'location', 'scheme', 'set-cookie', 'set-cookie-fmt', 'clear-cookie', \
                 'drop-query', 'keep-query', 'ignore-empty' or 'append-slash' (was '{word}')"
            )));
        }
    }
    Ok(())
}

/// Where to: a format in a rule, the very words in a `redirect` line.
fn target(reading: &mut Reading<'_, '_>, missing: &str) -> Result<LogFormat, Fault> {
    match reading.at.form {
        Form::Rule | Form::Statistics => reading.format(missing),
        Form::Line => plain(reading, missing),
    }
}

/// A text that is no format.
fn plain(reading: &mut Reading<'_, '_>, missing: &str) -> Result<LogFormat, Fault> {
    let text = reading.word(missing)?.replace('%', "%%");
    LogFormat::parse(text.as_bytes(), reading.at.place, reading.reg, reading.names)
}

fn code(word: &str) -> Result<u16, Fault> {
    // Leading digits count.
    let known = crate::sample::parse_int(word.as_bytes())
        .and_then(|n| u16::try_from(n).ok())
        .filter(|c| [301, 302, 303, 307, 308].contains(c));
    known.ok_or_else(|| {
        Fault::new(format!(
            "'code': unsupported HTTP code '{word}' (must be one of 301, 302, 303, 307 or 308)"
        ))
    })
}

impl Redirect {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        let mut location = Vec::new();
        match self.to {
            To::Location => self.location(exec, &mut location),
            To::Prefix => self.prefix(exec, &mut location),
            To::Scheme => self.scheme(exec, &mut location),
        }
        if location.is_empty() && self.ignore_empty {
            return Flow::Next;
        }
        let mut computed = vec![("location", location)];
        // Permanent redirects may be cached.
        if !matches!(self.code, 301 | 308) {
            computed.push(("cache-control", b"no-cache".to_vec()));
        }
        if let Some((cookie, end)) = &self.cookie {
            let mut value = Vec::new();
            cookie.append(&exec.env(), Use::Header, &mut value);
            value.extend_from_slice(end.as_bytes());
            computed.push(("set-cookie", value));
        }
        Flow::Reply(Reply { computed, payload: Payload::Empty, keep_alive: true, ..Reply::error(self.code) })
    }

    fn location(&self, exec: &Exec<'_>, out: &mut Vec<u8>) {
        self.target.append(&exec.env(), Use::Header, out);
        if out.is_empty() && self.ignore_empty {
            return;
        }
        // Rules on responses know no query to keep.
        let keeps = self.keep_query && exec.side == Side::Request;
        let query = uri::query(exec.txn.req.target()).filter(|_| keeps);
        if let Some(query) = query.filter(|q| !q.is_empty()) {
            out.push(if out.contains(&b'?') { b'&' } else { b'?' });
            out.extend_from_slice(query);
        }
    }

    fn prefix(&self, exec: &Exec<'_>, out: &mut Vec<u8>) {
        self.target.append(&exec.env(), Use::Header, out);
        if out.is_empty() && self.ignore_empty {
            return;
        }
        if out == b"/" {
            out.clear();
        }
        self.path(exec, out);
    }

    fn scheme(&self, exec: &Exec<'_>, out: &mut Vec<u8>) {
        self.target.append(&exec.env(), Use::Header, out);
        if out.is_empty() && self.ignore_empty {
            return;
        }
        out.extend_from_slice(b"://");
        out.extend_from_slice(exec.txn.req.first(Known::Host).unwrap_or_default());
        self.path(exec, out);
    }

    /// The path of the request, with or without query and slash.
    fn path(&self, exec: &Exec<'_>, out: &mut Vec<u8>) {
        let whole = match uri::path_and_query(exec.txn.req.target()) {
            b"" | b"*" => b"/",
            path => path,
        };
        let path = whole.split(|c| *c == b'?').next().unwrap_or_default();
        out.extend_from_slice(if self.drop_query { path } else { whole });
        // Behind a query, too, if that is kept.
        if self.append_slash && out.last() != Some(&b'/') {
            out.push(b'/');
        }
    }
}
