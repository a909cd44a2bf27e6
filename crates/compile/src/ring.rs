//! `ring` sections (manual, section 12.5), and the rings that `log` lines to streams make for themselves.

use std::time::Duration;

use program::Mode;
use program::log::{Format, Ring};
use syntax::{Diagnostic, Diagnostics, Section, Style, Word};

use crate::draft::{Draft, Kind};
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
        file: None,
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
pub(crate) fn line(s: &mut Statement<'_>, ring: &mut Ring, servers: &mut Draft) -> Step {
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
        "size" => {
            if ring.file.is_some() {
                return Err(s.fail(
                    "cannot resize an already mapped file, please specify 'size' before 'backing-file'.",
                ));
            }
            ring.size = size(s)?.min(1 << 30);
        }
        "timeout" => timeout(s, ring)?,
        "server" => server(s, servers)?,
        "backing-file" => backing_file(s, ring)?,
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

/// The draft that the servers of a ring are read into.
pub(crate) fn servers(ring: &Ring, section: &Section) -> Draft {
    let mut draft = Draft::new(Kind::Backend);
    (draft.name, draft.span, draft.mode) = (ring.name.clone(), section.header.span(), Mode::Log);
    draft
}

/// Words of servers that are about requests, checks and states.
const IDLE: &[&str] = &[
    "agent-addr",
    "agent-check",
    "agent-inter",
    "agent-port",
    "agent-send",
    "backup",
    "check",
    "cookie",
    "disabled",
    "downinter",
    "enabled",
    "error-limit",
    "fall",
    "fastinter",
    "init-addr",
    "init-state",
    "inter",
    "log-bufsize",
    "maxconn",
    "maxqueue",
    "max-reuse",
    "minconn",
    "non-stick",
    "observe",
    "on-error",
    "on-marked-down",
    "on-marked-up",
    "pool-conn-name",
    "pool-low-conn",
    "pool-max-conn",
    "pool-purge-delay",
    "port",
    "redir",
    "resolvers",
    "rise",
    "slowstart",
    "track",
    "weight",
    "ws",
];

/// `server <name> <address> [words]`.
fn server(s: &mut Statement<'_>, servers: &mut Draft) -> Step {
    let (place, name) = (s.line.keyword().span(), s.peek());
    let at = |span: syntax::Span| format!("{}:{}", s.around.sources.name(span.file), span.line);
    if let Some(other) = servers.servers.iter().find(|other| *other.name == *name) {
        let line = other.span.line;
        let text = format!(
            "'server {}/{name}' : another server named '{name}' was already defined at line {line}, please use a distinct name.",
            servers.name
        );
        return Err(bracket(s.fail_at(place, text)));
    }
    crate::server::server(s, servers)?;
    let Some(server) = servers.servers.last() else { return Ok(()) };
    let label = format!("'server {}/{}'", servers.name, server.name);
    if server.datagrams {
        let text =
            format!("{label} : a server for datagrams of a ring is not supported yet by Harrier (planned).");
        return Err(bracket(s.fail_at(place, text)));
    }
    if server.send_proxy.version().is_some() {
        let text = format!("[{}] : 'send-proxy*' server option is unsupported there, ignoring it", at(place));
        s.notes.push(Diagnostic::warning(place, text).styled(Style::Plain));
    }
    for word in s.line.args().iter().skip(2).filter(|word| IDLE.contains(&word.text())) {
        let text = format!(
            "{label} : {}",
            crate::keyword::idle(word.text(), "A ring sends its lines to all servers.")
        );
        s.notes.push(bracket(Diagnostic::notice(word.span(), text)));
    }
    Ok(())
}

/// `backing-file <path>`: whether it can be written is seen here, nothing is changed before the ring runs.
fn backing_file(s: &mut Statement<'_>, ring: &mut Ring) -> Step {
    if let Some(known) = &ring.file {
        return Err(s.fail(format!(
            "'backing-file' already specified for ring '{}' (was '{}').",
            ring.name,
            known.display()
        )));
    }
    let text = s.next().map_or("", Word::text);
    let path = std::path::Path::new(text);
    let there = path.exists();
    let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
    if let Err(e) = opened {
        let why = crate::notes::os_text(&e);
        return Err(s.fail(format!("cannot open backing-file '{text}' for ring '{}': {why}.", ring.name)));
    }
    if !there {
        let _ = std::fs::remove_file(path);
    }
    ring.file = Some(path.into());
    s.args.eat_rest();
    Ok(())
}
