//! The file of an SPOE filter (SPOE.txt, section 2): its lines, the scope that is asked for, its sections.
//!
//! What is wrong with a line is said with its place in that file, in HAProxy's words; the line of the filter
//! is refused then. How the sections fit together is only looked at when all lines could be read (`fit`).

mod agent;
mod fit;
mod message;

use std::borrow::Cow;

use lang::registry::{FilterPlace, Registry};
use lang::{Fault, Names, Words};
use syntax::{Cut, Line, Span, Word, cut};

use crate::agent::Agent;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// What is wrong with a line of the file.
pub enum Wrong {
    /// Behind its place and a colon with blanks around it.
    Parsing(String),
    /// Behind its place and a colon, as HAProxy writes some of them.
    Reading(String),
}

/// What is wrong, in the usual form.
fn wrong<T>(text: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Parsing(text.into()))
}

/// What is wrong, in the other one.
fn odd<T>(text: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Reading(text.into()))
}

/// The sections of a scope as they are read.
#[derive(Default)]
pub struct Sections {
    /// `spoe-agent`
    pub agent: Option<agent::Draft>,
    /// `spoe-message`
    pub messages: Vec<message::Draft>,
    /// `spoe-group`
    pub groups: Vec<GroupDraft>,
}

/// `spoe-group` while it is read.
pub struct GroupDraft {
    /// Its name.
    pub name: String,
    /// Its line.
    pub line: usize,
    /// The names of its messages.
    pub messages: Vec<String>,
}

/// The section at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Nowhere,
    /// In one whose head was wrong.
    Wrong,
    Agent,
    Message,
    Group,
}

/// The words of a filter line.
struct Given {
    engine: Option<String>,
    path: String,
}

/// Reads the words behind `spoe`, and the file.
pub fn read(
    words: &mut Words<'_>,
    place: &FilterPlace<'_>,
    registry: &Registry,
    names: &mut dyn Names,
) -> Result<Agent, Fault> {
    let given = given(words).map_err(|text| Fault::new(format!("'filter' : {text}")))?;
    let file = match contents(&given.path) {
        Ok(file) => file,
        Err(e) => {
            let why = e.to_string();
            let why = why.split(" (os error").next().unwrap_or_default();
            names.aside(true, format!("stat() failed for configuration file {} : {why}", given.path));
            return Err(Fault::new("'filter' : error encountered while processing 'spoe'"));
        }
    };
    let mut reader = Reader { given: &given, names, registry, sections: Sections::default(), failed: false };
    reader.lines(&file);
    let Reader { sections, failed, .. } = reader;
    if failed {
        let text = format!("'filter' : Error(s) found in configuration file {}", given.path);
        return Err(Fault::new(text));
    }
    fit::agent(sections, given.engine, &given.path, place, names)
        .map_err(|text| Fault::new(format!("'filter' : {text}")))
}

fn given(words: &mut Words<'_>) -> Result<Given, String> {
    let (mut engine, mut path) = (None, None);
    while let Some(word) = words.take() {
        let word = String::from_utf8_lossy(word).into_owned();
        let to = match word.as_str() {
            "engine" => &mut engine,
            "config" => &mut path,
            _ => return Err(format!("unknown keyword '{word}'")),
        };
        let value = words.take().filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("'spoe' : '{word}' option without value"))?;
        *to = Some(String::from_utf8_lossy(value).into_owned());
    }
    let path = path.ok_or("'spoe' : missing config file")?;
    Ok(Given { engine, path })
}

fn contents(path: &str) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    base::outside::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The file while it is read.
struct Reader<'r> {
    given: &'r Given,
    names: &'r mut dyn Names,
    registry: &'r Registry,
    sections: Sections,
    failed: bool,
}

impl Reader<'_> {
    fn fail(&mut self, line: usize, wrong: Wrong) {
        self.failed = true;
        let place = format!("{}:{line}", self.given.path);
        let text = match wrong {
            Wrong::Parsing(text) => format!("parsing [{place}] : {text}"),
            Wrong::Reading(text) => format!("parsing [{place}]: {text}"),
        };
        self.names.aside(true, text);
    }

    fn lines(&mut self, file: &[u8]) {
        let wanted = self.given.engine.clone();
        let (mut inside, mut at) = (wanted.is_none(), At::Nowhere);
        let last = file.last().is_some_and(|byte| *byte != b'\n');
        let rows: Vec<&[u8]> =
            file.strip_suffix(b"\n").unwrap_or(file).split(|byte| *byte == b'\n').collect();
        for (index, row) in rows.iter().enumerate() {
            let number = index + 1;
            let text = row.trim_ascii();
            if text.first() == Some(&b'[') {
                match scope(text) {
                    Ok(name) => (inside, at) = (wanted.as_deref() == Some(&*name), At::Nowhere),
                    Err(text) => {
                        self.fail(number, Wrong::Parsing(text));
                        (inside, at) = (false, At::Nowhere);
                    }
                }
                continue;
            }
            if inside {
                self.line(row, number, &mut at);
            }
            if last && number == rows.len() && !self.failed {
                let text = format!(
                    "Missing LF on last line, file might have been truncated at position {}.",
                    row.len() + 1
                );
                self.fail(number, Wrong::Reading(text));
            }
        }
    }

    fn line(&mut self, row: &[u8], number: usize, at: &mut At) {
        let names = &*self.names;
        let lookup = |name: &[u8]| names.environment(std::str::from_utf8(name).ok()?).map(Cow::Owned);
        let Cut { words, fault, .. } = cut(row, Span::default(), 1 << 20, lookup);
        if fault.is_some() {
            return self.fail(number, Wrong::Reading("unmatched quote or invalid character.".into()));
        }
        let Some(line) = Line::new(words) else { return };
        let list: Vec<&str> = line.words().iter().map(Word::text).collect();
        let off = line.modifier() != syntax::Modifier::Set;
        let keyword = list.first().copied().unwrap_or_default();
        if off && !matches!(keyword, "option" | "log") || list == ["no"] {
            self.fail(number, Wrong::Reading(NEGATION.into()));
            if list == ["no"] {
                return;
            }
        }
        let done = match keyword {
            "spoe-agent" | "spoe-message" | "spoe-group" => self.section(&list, number, at),
            _ => match *at {
                At::Nowhere => odd(format!("unknown keyword '{keyword}' out of section.")),
                At::Wrong => Ok(()),
                At::Agent => match self.sections.agent.as_mut() {
                    Some(draft) => draft.line(&list, off, self.names),
                    None => Ok(()),
                },
                At::Message => match self.sections.messages.last_mut() {
                    Some(draft) => draft.line(&line, self.registry, self.names),
                    None => Ok(()),
                },
                At::Group => match self.sections.groups.last_mut() {
                    Some(draft) => draft.line(&list),
                    None => Ok(()),
                },
            },
        };
        if let Err(wrong) = done {
            self.fail(number, wrong);
        }
    }

    /// The head of a section.
    fn section(&mut self, list: &[&str], line: usize, at: &mut At) -> Result<(), Wrong> {
        let kind = list.first().copied().unwrap_or_default();
        *at = At::Wrong;
        if kind == "spoe-agent" && self.sections.agent.is_some() {
            return wrong("another spoe-agent section previously defined.");
        }
        let Some(name) = list.get(1).filter(|name| !name.is_empty()) else {
            return wrong(format!("missing name for {kind} section."));
        };
        alone(list, 1)?;
        if let Some(c) = syntax::invalid_character(name) {
            return wrong(format!("character '{c}' is not permitted in '{kind}' name '{name}'."));
        }
        let twice = |line: usize| {
            let path = &self.given.path;
            odd(format!(
                "{kind} section '{name}' has the same name as another one declared at {path}:{line}."
            ))
        };
        let name = (*name).to_owned();
        match kind {
            "spoe-agent" => {
                self.sections.agent = Some(agent::Draft::new(name, line, self.names.buffer_size()));
                *at = At::Agent;
            }
            "spoe-message" => {
                if let Some(other) = self.sections.messages.iter().find(|m| m.name == name) {
                    return twice(other.line);
                }
                self.sections.messages.push(message::Draft::new(name, line));
                *at = At::Message;
            }
            _ => {
                if let Some(other) = self.sections.groups.iter().find(|g| g.name == name) {
                    return twice(other.line);
                }
                self.sections.groups.push(GroupDraft { name, line, messages: Vec::new() });
                *at = At::Group;
            }
        }
        Ok(())
    }
}

/// What is said of `no` in front of what has no opposite.
const NEGATION: &str = "negation/default currently supported only for options, log, busy-polling, set-dumpable, strict-limits, insecure-fork-wanted and numa-cpu-mapping.";

impl GroupDraft {
    fn line(&mut self, list: &[&str]) -> Result<(), Wrong> {
        match list {
            ["messages", names @ ..] => add(&mut self.messages, names, "message"),
            [other, ..] => wrong(format!("unknown keyword '{other}' in spoe-group section.")),
            [] => Ok(()),
        }
    }
}

/// Adds the names of messages or groups, none twice.
fn add(list: &mut Vec<String>, names: &[&str], kind: &str) -> Result<(), Wrong> {
    for name in names {
        if list.iter().any(|known| known == name) {
            return odd(format!("spoe-{kind} '{name}' already used."));
        }
        list.push((*name).to_owned());
    }
    Ok(())
}

/// No more than `most` words may stand behind the keyword.
fn alone(list: &[&str], most: usize) -> Result<(), Wrong> {
    match (list.first(), list.get(most + 1)) {
        (Some(keyword), Some(extra)) => {
            wrong(format!("'{keyword}' cannot handle unexpected argument '{extra}'."))
        }
        _ => Ok(()),
    }
}

/// The name of a scope, `[name]`.
fn scope(text: &[u8]) -> Result<String, String> {
    let inside = text.get(1..).unwrap_or_default();
    let end = inside.iter().position(|byte| *byte == b']');
    let (name, behind) = match end {
        Some(end) => inside.split_at(end),
        None => return Err("empty scope name is forbidden.".into()),
    };
    if name.is_empty() {
        return Err("empty scope name is forbidden.".into());
    }
    let name = String::from_utf8_lossy(name).into_owned();
    if let Some(c) = syntax::invalid_character(&name) {
        return Err(format!("character '{c}' is not permitted in a scope name."));
    }
    let behind = behind.get(1..).unwrap_or_default().trim_ascii();
    match behind.first() {
        Some(byte) if *byte != b'#' => {
            Err(format!("character '{}' is not permitted after scope declaration.", char::from(*byte)))
        }
        _ => Ok(name),
    }
}
