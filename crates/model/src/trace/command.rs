//! The words of `trace`: on the runtime API, in `traces` sections and behind `-dt`. They change settings, a
//! plain value, and may ask for a list of what there is.

pub use super::table::SinkName;

use super::settings::{Settings, State};
use super::{Kind, LEVELS, Source, show, sources};

/// What became of the words.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing more is to be said.
    Nothing,
    /// A list that was asked for.
    List(String),
    /// Something that was done.
    Notice(&'static str),
}

/// One source, or all.
#[derive(Clone, Copy)]
enum Meant {
    One(usize),
    All,
}

/// Changes settings, those of all sources in their order, as the words behind `trace` say.
///
/// # Errors
/// What is wrong with a word. The words before it are obeyed.
pub fn run(all: &mut [Settings], words: &[&str], sinks: &[SinkName<'_>]) -> Result<Told, String> {
    let Some((name, mut rest)) = words.split_first() else { return Ok(Told::List(show::sources_menu(all))) };
    let meant = match *name {
        "" => return Ok(Told::List(show::sources_menu(all))),
        "0" => {
            all.iter_mut().for_each(Settings::halt);
            return Ok(Told::Notice("All traces now stopped"));
        }
        "all" => Meant::All,
        name => Meant::One(find(name).ok_or_else(|| format!("No such trace source '{name}'"))?),
    };
    if rest.is_empty() {
        return Ok(Told::List(show::commands()));
    }
    while let Some((word, behind)) = rest.split_first() {
        if !show::COMMANDS.iter().any(|(known, _)| known == word) {
            return Err(format!("Unknown trace keyword '{word}'"));
        }
        if matches!(meant, Meant::All) && !matches!(*word, "sink" | "level" | "follow") {
            return Err(format!("'{word}' not applicable to meta-source 'all'"));
        }
        let Some((value, left)) = behind.split_first() else {
            return Ok(Told::List(list(all, meant, word, sinks)));
        };
        rest = left;
        for index in indices(meant) {
            set(all, index, word, value, sinks).map_err(|text| match meant {
                Meant::One(_) => text,
                Meant::All => of_all(&text, index),
            })?;
        }
    }
    Ok(Told::Nothing)
}

/// A message about a source as one about all.
fn of_all(text: &str, index: usize) -> String {
    let own = format!("for source {}:", sources()[index].table.name);
    text.replacen(&own, "for source all:", 1).replace("  * ", "    ")
}

fn find(name: &str) -> Option<usize> {
    sources().iter().position(|s| s.table.name == name)
}

fn indices(meant: Meant) -> std::ops::Range<usize> {
    match meant {
        Meant::One(i) => i..i + 1,
        Meant::All => 0..sources().len(),
    }
}

/// What a word without a value asks for.
fn list(all: &[Settings], meant: Meant, word: &str, sinks: &[SinkName<'_>]) -> String {
    let (name, set) = match meant {
        Meant::One(i) => (sources()[i].table.name, all.get(i).cloned().unwrap_or_default()),
        Meant::All => ("all", Settings { level: u8::MAX, ..Settings::off() }),
    };
    let source = match meant {
        Meant::One(i) => sources()[i],
        Meant::All => sources()[0],
    };
    match word {
        "level" => show::levels(name, set.level),
        "sink" => show::sinks(name, set.sink.as_deref(), sinks),
        "follow" => show::follow(all, matches!(meant, Meant::One(_)).then_some(set.follow)),
        "lock" => show::locks(source, set.lock),
        "verbosity" => show::verbosities(source, set.verbosity),
        "event" => show::events(source, set.report, false),
        "start" => show::events(source, set.start, true),
        "stop" => show::events(source, set.stop, true),
        _ => show::events(source, set.pause, true),
    }
}

/// Obeys a word with its value.
fn set(
    all: &mut [Settings],
    index: usize,
    word: &str,
    value: &str,
    sinks: &[SinkName<'_>],
) -> Result<(), String> {
    let source = sources()[index];
    let Some(set) = all.get_mut(index) else { return Ok(()) };
    match word {
        "level" => {
            let at = LEVELS.iter().position(|(name, _)| *name == value);
            let text =
                || format!("No such trace level '{value}'. {}", show::levels(source.table.name, set.level));
            set.level = u8::try_from(at.ok_or_else(text)?).unwrap_or(0);
        }
        "verbosity" => {
            let at = source.table.verbosities.iter().position(|(name, _)| *name == value);
            let text =
                || format!("No such verbosity level '{value}'. {}", show::verbosities(source, set.verbosity));
            set.verbosity = u8::try_from(at.ok_or_else(text)?).unwrap_or(0);
        }
        "sink" if value == "none" => set.sink = None,
        "sink" => {
            if !sinks.iter().any(|(name, _)| *name == value) {
                return Err(format!("No such trace sink '{value}' "));
            }
            set.sink = Some(value.into());
        }
        "lock" => {
            let named = |kind: &&Kind| source.lock_name(**kind).0 == value;
            let kind = source.table.locks.iter().find(named);
            set.lock = *kind.ok_or_else(|| format!("Unsupported lock-on criterion '{value}'"))?;
        }
        "follow" if value == "none" => set.follow = None,
        "follow" => {
            let other = find(value).ok_or_else(|| format!("No such trace source '{value}'"))?;
            set.follow = Some(other).filter(|other| *other != index);
        }
        "event" => change(source, &mut set.report, value)?,
        "start" | "pause" | "stop" => act(source, set, word, value)?,
        _ => {}
    }
    Ok(())
}

/// `start`, `pause`, `stop`: at once, or at an event.
fn act(source: &Source, set: &mut Settings, word: &str, value: &str) -> Result<(), String> {
    if value == "now" {
        set.state = match word {
            "start" => State::Running,
            "pause" => State::Waiting,
            _ => State::Stopped,
        };
        return Ok(());
    }
    match word {
        "start" => {
            change(source, &mut set.start, value)?;
            set.state = if set.start == 0 { State::Stopped } else { State::Waiting };
        }
        "pause" => change(source, &mut set.pause, value)?,
        _ => change(source, &mut set.stop, value)?,
    }
    Ok(())
}

/// Adds an event to a set, or takes it out.
fn change(source: &Source, bits: &mut u32, word: &str) -> Result<(), String> {
    let (out, name) = match word.as_bytes().first() {
        Some(b'-' | b'!') => (true, &word[1..]),
        Some(b'+') => (false, &word[1..]),
        _ => (false, word),
    };
    let which = match name {
        "none" => {
            *bits = if out { u32::MAX } else { 0 };
            return Ok(());
        }
        "any" => u32::MAX,
        name => {
            let at = source.table.events.iter().position(|(known, _)| *known == name);
            1 << at.ok_or_else(|| format!("No such trace event '{name}'"))?
        }
    };
    *bits = if out { *bits & !which } else { *bits | which };
    Ok(())
}

/// What `-dt` says: `SOURCE:LEVEL:VERBOSITY`, with commas between them; nothing stands for all sources and
/// errors. All go to standard error.
///
/// # Errors
/// What is wrong.
pub fn of_command_line(all: &mut [Settings], words: &str) -> Result<(), String> {
    for entry in words.split(',') {
        let mut parts = entry.splitn(3, ':');
        let mut part = || parts.next().unwrap_or("");
        let (name, level, verbosity) = (part(), part(), part());
        let meant = match name {
            "" | "all" => Meant::All,
            name => Meant::One(find(name).ok_or_else(|| format!("-dt: unknown trace source '{name}'."))?),
        };
        let level = match level {
            "" => Some(0),
            level => LEVELS.iter().position(|(known, _)| *known == level),
        };
        let level = level.ok_or_else(|| {
            format!(
                "-dt: no such trace level '{}', available levels are {}.",
                entry.split(':').nth(1).unwrap_or(""),
                quoted(LEVELS)
            )
        })?;
        for index in indices(meant) {
            let table = &sources()[index].table;
            let at = match (verbosity, meant) {
                ("", _) => Some(1),
                ("quiet", _) => Some(0),
                (_, Meant::All) => {
                    return Err("-dt: only the verbosity 'quiet' is known to all trace sources.".into());
                }
                (verbosity, _) => table.verbosities.iter().position(|(known, _)| *known == verbosity),
            };
            let at = at.ok_or_else(|| {
                format!(
                    "-dt: no such trace verbosity '{verbosity}' for source '{}', available verbosities for this source are: {}.",
                    table.name,
                    quoted(table.verbosities)
                )
            })?;
            let Some(set) = all.get_mut(index) else { continue };
            set.level = u8::try_from(level).unwrap_or(0);
            set.verbosity = u8::try_from(at).unwrap_or(0);
            (set.state, set.sink) = (State::Running, Some("stderr".into()));
        }
    }
    Ok(())
}

fn quoted(names: &[super::Name]) -> String {
    let mut text = String::new();
    for (at, (name, _)) in names.iter().enumerate() {
        let before = match at {
            0 => "",
            at if at + 1 == names.len() => ", and ",
            _ => ", ",
        };
        text.push_str(&format!("{before}'{name}'"));
    }
    text
}
