//! The lists of `trace` and `show trace`.

use std::fmt::Write;

use super::table::SinkName;
use super::{Kind, LEVELS, Name, Settings, Source, State, sources};

/// The words behind a source.
pub(super) const COMMANDS: &[Name] = &[
    ("event", "list or choose the events that are told"),
    ("level", "list or choose how much is told"),
    ("lock", "list or choose what to stay with"),
    ("follow", "tell what another source has locked on"),
    ("pause", "wait for the next start, now or at an event"),
    ("sink", "list or choose where lines go"),
    ("start", "begin, now or at an event"),
    ("stop", "end, now or at an event"),
    ("verbosity", "list or choose how much is told besides"),
];

fn line(out: &mut String, mark: char, (name, about): Name) {
    let _ = writeln!(out, "  {mark} {name:<10} : {about}");
}

fn state(state: State) -> char {
    match state {
        State::Stopped => '.',
        State::Waiting => 'w',
        State::Running => 'R',
    }
}

/// What the words behind a source may be.
pub(super) fn commands() -> String {
    let lines = COMMANDS.iter().map(|(name, about)| format!("  {name:<10}: {about}\n"));
    lines.fold("Supported commands:\n".into(), |text, line| text + &line)
}

const HEADING: &str = "Supported trace sources and states (.=stopped, w=waiting, R=running) :\n";

/// All sources, with what they are.
pub(super) fn sources_menu(all: &[Settings]) -> String {
    let mut out = HEADING.to_owned();
    out.push_str(" [.] 0          : no source: stops all traces at once\n");
    out.push_str(" [.] all        : all of them, for 'sink', 'level' and 'follow' only\n");
    each(all, &mut out);
    out
}

fn each(all: &[Settings], out: &mut String) {
    for (source, set) in sources().iter().zip(all) {
        let _ = writeln!(out, " [{}] {:<10} : {}", state(set.state), source.table.name, source.table.about);
    }
}

pub(super) fn levels(name: &str, level: u8) -> String {
    let mut out = format!("Supported trace levels for source {name}:\n");
    for (at, about) in LEVELS.iter().enumerate() {
        line(&mut out, star(at == usize::from(level)), *about);
    }
    out
}

fn star(is: bool) -> char {
    if is { '*' } else { ' ' }
}

pub(super) fn verbosities(source: &Source, verbosity: u8) -> String {
    let mut out = format!("Supported trace verbosities for source {}:\n", source.table.name);
    for (at, about) in source.table.verbosities.iter().enumerate() {
        line(&mut out, star(at == usize::from(verbosity)), *about);
    }
    out
}

pub(super) fn locks(source: &Source, lock: Kind) -> String {
    let mut out = format!("Supported lock-on criteria for source {}:\n", source.table.name);
    for kind in source.table.locks {
        line(&mut out, star(*kind == lock), source.lock_name(*kind));
    }
    out
}

pub(super) fn sinks(name: &str, sink: Option<&str>, sinks: &[SinkName<'_>]) -> String {
    let mut out = format!("Supported sinks for source {name} (*=current):\n");
    line(&mut out, star(sink.is_none()), ("none", "nowhere"));
    for (name, about) in sinks {
        let _ = writeln!(out, "  {} {name:<10} : {about}", star(sink == Some(name)));
    }
    out
}

/// What may be followed; with a source that it is about, what it follows.
pub(super) fn follow(all: &[Settings], follow: Option<Option<usize>>) -> String {
    let mut out = match follow {
        None => String::new(),
        Some(None) => "Not currently following any other source.\n".to_owned(),
        Some(Some(other)) => format!("Currently following source '{}'.\n", sources()[other].table.name),
    };
    out.push_str("Please specify another source to follow, among the following ones:\n");
    out.push_str(" [.] none       : no other source\n");
    each(all, &mut out);
    out
}

/// The events of a source. With `acts`, what happens at them can also happen now.
pub(super) fn events(source: &Source, bits: u32, acts: bool) -> String {
    let name = source.table.name;
    let mut out = format!("Supported events for source {name} (+=enabled, -=disabled):\n");
    if acts {
        line(&mut out, '-', ("now", "at once, without an event"));
    }
    line(&mut out, '-', ("none", "no event at all"));
    line(&mut out, '-', ("any", "all events"));
    for (at, about) in source.table.events.iter().enumerate() {
        line(&mut out, sign(bits, at), *about);
    }
    out
}

fn sign(bits: u32, at: usize) -> char {
    if bits >> at & 1 == 1 { '+' } else { '-' }
}

/// `show trace`.
pub fn overview() -> String {
    let mut out = HEADING.to_owned();
    for source in sources() {
        let set = source.settings();
        let (name, sink) = (source.table.name, set.sink.as_deref().unwrap_or("none"));
        let dropped = source.dropped();
        let _ = writeln!(
            out,
            " [{}] {name:<10} -> {sink} [drp {dropped}]  [{}]",
            state(set.state),
            source.table.about
        );
    }
    out
}

/// `show trace <source>`; `None` if there is no such source.
pub fn one(name: &str) -> Option<String> {
    let source = sources().iter().find(|s| s.table.name == name)?;
    let set = source.settings();
    let sink = set.sink.as_deref().unwrap_or("none");
    let mut out = format!("Trace status for {name}:\n  - sink: {sink} [{} dropped]\n", source.dropped());
    out.push_str("  - event name   :     report    start    stop    pause\n");
    for (at, (event, _)) in source.table.events.iter().enumerate() {
        let [report, start, stop, pause] =
            [set.report, set.start, set.stop, set.pause].map(|bits| sign(bits, at));
        let _ = writeln!(out, "    {event:<12} :        {report}        {start}        {stop}       {pause}");
    }
    Some(out)
}

impl Source {
    /// A criterion of this source, as it is written.
    pub(super) fn lock_name(&self, kind: Kind) -> Name {
        match kind {
            Kind::Nothing => ("nothing", "nothing: all are told"),
            Kind::Backend => ("backend", "the backend that began the trace"),
            Kind::Connection => ("connection", "the connection that began the trace"),
            Kind::Frontend => ("frontend", "the frontend that began the trace"),
            Kind::Listener => ("listener", "the listener that began the trace"),
            Kind::Server => ("server", "the server that began the trace"),
            Kind::Session => ("session", "the client's session that began the trace"),
            Kind::Thread => ("thread", "the thread that began the trace"),
            Kind::Own => self.table.own,
        }
    }
}
