//! `ring` sections (manual, section 12.5), and the rings that `log` lines to streams make for themselves.

use std::time::Duration;

use program::log::{Format, Ring, RingServer};
use syntax::addr::{self, Accept};
use syntax::{Diagnostic, Diagnostics, Section, Style, Word};

use crate::resolve::stream_target;
use crate::statement::{Statement, Step, bracket};
use crate::units;

/// The size of a ring whose section does not say it: that of a buffer.
const SIZE: usize = 16384;

/// What HAProxy keeps of a ring's size for itself.
pub(crate) const OVERHEAD: usize = 192;

/// The size of the ring `buf0`, which holds nothing until somebody writes to it.
const BUILT_IN: usize = 1 << 20;

/// A ring as it stands before the first line of its section.
pub(crate) fn new(name: &str) -> Ring {
    Ring {
        name: name.into(),
        description: name.into(),
        format: Format::Raw,
        maxlen: 1024,
        size: SIZE,
        servers: Vec::new(),
        connect_timeout: None,
        server_timeout: None,
    }
}

/// The ring that every process has: where the converter `debug` writes unless told otherwise.
pub(crate) fn built_in() -> Ring {
    Ring { format: Format::Timed, description: "in-memory ring buffer".into(), size: BUILT_IN, ..new("buf0") }
}

/// What the first line of a section says.
pub(crate) fn header(section: &Section, rings: &[Ring], notes: &mut Diagnostics) -> Option<Ring> {
    if section.name().is_empty() {
        notes.alert(section.header.span(), "missing ring name.");
        return None;
    }
    if rings.iter().any(|r| *r.name == *section.name()) {
        let text = format!("sink named '{}' already exists.", section.name());
        notes.alert(section.header.span(), text);
        return None;
    }
    Some(new(section.name()))
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, ring: &mut Ring) -> Step {
    match s.keyword() {
        "description" => {
            let words = s.args.eat_rest();
            if words.is_empty() {
                return Err(s.fail("missing ring description text."));
            }
            ring.description = words.iter().map(Word::text).collect::<Vec<_>>().join(" ").into();
        }
        "format" => {
            let name = s.next().map_or("", Word::text);
            ring.format =
                crate::log::format(name).ok_or_else(|| s.fail(format!("unknown format '{name}'.")))?;
        }
        "maxlen" => ring.maxlen = size(s)?,
        "size" => ring.size = size(s)?.min(1 << 30),
        "timeout" => timeout(s, ring)?,
        "server" => {
            let server = server(s, &ring.name)?;
            ring.servers.push(server);
        }
        "backing-file" => {
            let text = "'backing-file' of a ring is not supported yet by Harrier (planned)";
            return Err(s.fail(text));
        }
        other => return Err(s.fail(format!("unknown statement '{other}'."))),
    }
    Ok(())
}

/// What only the whole section shows: a line has to fit.
pub(crate) fn finish(ring: &mut Ring, section: &Section, notes: &mut Diagnostics) {
    // What HAProxy keeps for itself, and what a line takes besides its bytes.
    const WHOLE: usize = OVERHEAD + 4;
    let room = ring.size.saturating_sub(WHOLE).max(1);
    let given = section.lines.iter().any(|l| l.keyword() == "maxlen");
    if given && ring.maxlen > room {
        let text = format!(
            "ring '{}' event max length '{}' exceeds max payload size, forced to '{room}'.",
            ring.name, ring.maxlen
        );
        notes.push(Diagnostic::warning(section.header.span(), text).styled(Style::Plain));
        ring.maxlen = room;
    }
}

fn size(s: &mut Statement<'_>) -> Step<usize> {
    let text = s.next().map_or("", Word::text);
    let size = units::size(text).ok().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    size.ok_or_else(|| s.fail(format!("invalid size '{text}' for new sink buffer.")))
}

/// `timeout connect|server <time>`; others are ignored, as HAProxy does.
fn timeout(s: &mut Statement<'_>, ring: &mut Ring) -> Step {
    let which = s.next().map_or("", Word::text);
    if !matches!(which, "connect" | "server") {
        s.args.eat_rest();
        return Ok(());
    }
    let word = s.word(format!("'timeout {which}' expects <time> as argument."))?;
    let ms = s.millis(word, &format!("timeout {which}"), |c| {
        format!("unexpected character '{c}' in argument to <timeout {which}>.")
    })?;
    let time = Some(Duration::from_millis(ms)).filter(|d| !d.is_zero());
    match which {
        "connect" => ring.connect_timeout = time,
        _ => ring.server_timeout = time,
    }
    Ok(())
}

/// `server <name> <address> [log-proto <proto>]`.
fn server(s: &mut Statement<'_>, ring: &str) -> Step<RingServer> {
    const EXPECTS: &str = "'server' expects <name> and <addr>[:<port>] as arguments.";
    let name = s.word(EXPECTS).map_err(bracket)?;
    let word = s.word(EXPECTS).map_err(bracket)?;
    let label = format!("'server {ring}/{name}'");
    let refuse = |why: String| bracket(Diagnostic::alert(word.span(), format!("{label} : {why}")));
    let address = addr::parse(word.text(), Accept::SERVER, s.around.environment).map_err(refuse)?;
    let target =
        stream_target(&address).ok_or_else(|| refuse(format!("could not resolve address '{word}'.")))?;
    let mut out = RingServer { name: name.text().into(), target, octet_count: false, tls: None, state: None };
    while let Some(word) = s.next() {
        match word.text() {
            "log-proto" => {
                let proto = s.next().map_or("", Word::text);
                out.octet_count = match proto {
                    "octet-count" => true,
                    "legacy" => false,
                    other => {
                        return Err(refuse(format!(
                            "'log-proto' expects one of 'legacy' or 'octet-count' but got '{other}'."
                        )));
                    }
                };
            }
            other => {
                let text =
                    format!("{label} : '{other}' of a ring is not supported yet by Harrier (planned).");
                return Err(bracket(s.fail_at(word.span(), text)));
            }
        }
    }
    Ok(out)
}
