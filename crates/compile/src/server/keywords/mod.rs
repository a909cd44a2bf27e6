//! The words of `server` lines, a table for each family.

use std::time::Duration;

use syntax::Diagnostic;

use crate::draft::{Draft, ServerDraft, Where};
use crate::mux::Mux;
use crate::statement::{Statement, Step, bracket, suspicious, trailing_text};
use crate::units::{self, TimeFault};

mod check;
mod naming;
mod share;
mod tls;
mod wire;

/// Sets one word of a server line.
pub(crate) type Set = fn(&mut ServerDraft, &mut Statement<'_>, &mut Draft) -> Step;

/// One word of a `server` line.
pub(crate) struct ServerKeyword {
    /// The word.
    pub name: &'static str,
    /// How many words follow, for the dump; -1 for as many as it likes.
    pub args: i8,
    /// What it does; `None`: not built yet.
    pub set: Option<Set>,
    /// Read, checked, and without effect here; `doc` says why, and so does a notice where it is used.
    pub idle: bool,
    /// `default-server` may have it.
    pub in_default: bool,
    /// A server that is added at run time may have it (`add server`).
    pub dynamic: bool,
    /// One line of documentation.
    pub doc: &'static str,
    /// Words that compile behind an address; empty: they need another section or a file that a test has not.
    pub example: &'static str,
    /// What holds where the word does not stand; empty: nothing to say.
    pub default: &'static str,
}

const fn word(name: &'static str, args: i8, set: Set, doc: &'static str) -> ServerKeyword {
    ServerKeyword {
        name,
        args,
        set: Some(set),
        idle: false,
        in_default: true,
        dynamic: true,
        doc,
        example: "",
        default: "",
    }
}

const fn own(name: &'static str, args: i8, set: Set, doc: &'static str) -> ServerKeyword {
    ServerKeyword {
        name,
        args,
        set: Some(set),
        idle: false,
        in_default: false,
        dynamic: true,
        doc,
        example: "",
        default: "",
    }
}

/// A word with a value and without effect, and why it has none.
const fn vain(name: &'static str, why: &'static str) -> ServerKeyword {
    fn set(_: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
        let missing = format!("'{}' expects an argument.", s.eaten().text());
        s.word(missing).map(drop)
    }
    ServerKeyword {
        name,
        args: 1,
        set: Some(set),
        idle: true,
        in_default: true,
        dynamic: true,
        doc: why,
        example: "",
        default: "",
    }
}

impl ServerKeyword {
    /// The same keyword with an example.
    const fn example(self, example: &'static str) -> ServerKeyword {
        ServerKeyword { example, ..self }
    }

    /// The same keyword, with what holds where it does not stand.
    const fn default(self, default: &'static str) -> ServerKeyword {
        ServerKeyword { default, ..self }
    }

    /// The same keyword, which only servers of the configuration have.
    const fn configured(self) -> ServerKeyword {
        ServerKeyword { dynamic: false, ..self }
    }
}

const QUIC: &str = "It is about QUIC, which is not built yet.";

const TABLES: &[&[ServerKeyword]] = &[check::KEYWORDS, share::KEYWORDS, tls::KEYWORDS, wire::KEYWORDS];

/// All words.
pub(crate) fn all() -> impl Iterator<Item = &'static ServerKeyword> {
    TABLES.iter().copied().flatten()
}

fn on(field: &mut bool) -> Step {
    *field = true;
    Ok(())
}

/// `enabled`: not in maintenance, which counts as something said about its state.
fn enabled(server: &mut ServerDraft) -> Step {
    server.defaulted = true;
    off(&mut server.disabled)
}

/// `disabled`: in maintenance, and nothing is proved.
fn disabled(server: &mut ServerDraft) -> Step {
    server.defaulted = false;
    on(&mut server.disabled)
}

fn off(field: &mut bool) -> Step {
    *field = false;
    Ok(())
}

fn text(s: &mut Statement<'_>, field: &mut Option<Box<str>>, missing: &str) -> Step {
    *field = Some(s.word(missing)?.text().into());
    Ok(())
}

/// A number as HAProxy reads it; a missing word counts as zero where HAProxy lets it, with a hint in `-dD`.
fn value(s: &mut Statement<'_>, name: &str, missing: &str) -> Step<i64> {
    let word = s.word(format!("'{name}' {missing}"))?;
    Ok(s.lenient(word))
}

/// A number; a missing word counts as zero.
fn bare(s: &mut Statement<'_>) -> i64 {
    match s.next() {
        Some(word) => s.lenient(word),
        None => 0,
    }
}

fn strictly(s: &Statement<'_>, n: i64, text: &str) -> Step<u32> {
    u32::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| s.fail(text))
}

/// Times whose overflow HAProxy tells with the server's name.
const OF_SERVER: [&str; 6] = ["slowstart", "inter", "downinter", "fastinter", "agent-inter", "idle-ping"];

/// Times that are doubted when they are small.
const CHECKED: &[&str] = &["inter", "fastinter", "downinter", "agent-inter"];

/// A time in milliseconds. HAProxy says `agent-inter` for `inter` as well, and tools may look for that.
fn time(s: &mut Statement<'_>, v: &ServerDraft, p: &Draft, name: &str, missing: &str) -> Step<Duration> {
    let word = s.word(missing)?;
    let shown = if matches!(name, "inter" | "downinter" | "fastinter") { "agent-inter" } else { name };
    match units::tolerant(word.text()) {
        Ok((ms, trailing)) => {
            if let Some(found) = trailing {
                let text = trailing_text(found, word);
                s.notes
                    .push(bracket(Diagnostic::warning(word.span(), format!("'server {}' : {text}", v.name))));
            }
            if let Some(text) =
                suspicious(name, word, &format!("server '{}'", v.name)).filter(|_| CHECKED.contains(&name))
            {
                let text = match v.place {
                    Where::Nowhere => text,
                    _ => format!("'server {}/{}' : {text}", p.name, v.name),
                };
                s.notes.push(bracket(Diagnostic::warning(word.span(), text)));
            }
            Ok(Duration::from_millis(ms))
        }
        Err(TimeFault::Unexpected(c)) => {
            Err(s.fail(format!("unexpected character '{c}' in '{shown}' argument of server {}.", v.name)))
        }
        Err(TimeFault::Overflow) if OF_SERVER.contains(&name) => {
            let timer = if name == "slowstart" { "" } else { "timer " };
            let of = &v.name;
            Err(s.fail(format!(
                "{timer}overflow in argument <{word}> to <{name}> of server {of}, maximum value is 2147483647 ms (~24.8 days)."
            )))
        }
        Err(fault) => Err(s.time_fault(fault, word, name, |_| String::new())),
    }
}

fn delay(s: &mut Statement<'_>, v: &ServerDraft, p: &Draft, name: &str) -> Step<Duration> {
    let d = time(s, v, p, name, &format!("'{name}' expects a delay as argument."))?;
    if d.is_zero() {
        return Err(s.fail(format!(
            "invalid value {} for argument '{name}' of server {}.",
            d.as_millis(),
            v.name
        )));
    }
    Ok(d)
}

/// A protocol.
fn proto(s: &mut Statement<'_>, name: &str) -> Step<Mux> {
    let word = s.word(format!("'{name}' : missing value."))?;
    Mux::of(word.text()).ok_or_else(|| s.fail(format!("'{name}' :  unknown MUX protocol '{word}'")))
}
