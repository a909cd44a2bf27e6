//! Commands on maps and ACLs (management manual, `show map` and its kin).
//!
//! A set that is both (an ACL that reads a map with `-M`) is found by the commands of either kind. `add`,
//! `get` and `set` find any set, whatever its kind, as HAProxy's do. Answers are HAProxy's to the letter, for
//! scripts compare them: `entry_cnt` counts an entry once for every way in which the set is looked up.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use base::foreign;
use pattern::{ChangeError, Face, Listed, LiveSet, Output, Shape, Value, Versions, Which};

use crate::cli::call::{Call, Lines, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["add", "acl"],
        "[@<ver>] <acl> <pattern>",
        "add an entry to an ACL",
        Level::Admin,
        add_acl,
    ),
    Command::now(
        &["add", "map"],
        "[@<ver>] <map> <key> <val>",
        "add an entry to a map, or those of a payload",
        Level::Admin,
        add_map,
    ),
    Command::now(&["clear", "acl"], "[@<ver>] <acl>", "remove all entries of an ACL", Level::Admin, clear),
    Command::now(&["clear", "map"], "[@<ver>] <map>", "remove all entries of a map", Level::Admin, clear),
    Command::now(
        &["commit", "acl"],
        "@<ver> <acl>",
        "let a version of an ACL take effect",
        Level::Admin,
        commit,
    ),
    Command::now(
        &["commit", "map"],
        "@<ver> <map>",
        "let a version of a map take effect",
        Level::Admin,
        commit,
    ),
    Command::now(&["del", "acl"], "<acl> [<key>|#<ref>]", "remove an entry of an ACL", Level::Admin, del),
    Command::now(&["del", "map"], "<map> [<key>|#<ref>]", "remove an entry of a map", Level::Admin, del),
    Command::now(&["get", "acl"], "<acl> <value>", "what a value finds in an ACL", Level::Admin, get),
    Command::now(&["get", "map"], "<map> <value>", "what a value finds in a map", Level::Admin, get),
    Command::now(&["prepare", "acl"], "<acl>", "begin a new version of an ACL", Level::Admin, prepare),
    Command::now(&["prepare", "map"], "<map>", "begin a new version of a map", Level::Admin, prepare),
    Command::now(
        &["set", "map"],
        "<map> [<key>|#<ref>] <value>",
        "change values of a map",
        Level::Admin,
        set_map,
    ),
    Command::now(&["show", "acl"], "[@<ver>] <acl>", "list ACLs, or the entries of one", Level::Admin, show),
    Command::now(&["show", "map"], "[@<ver>] [map]", "list maps, or the entries of one", Level::Admin, show),
];

/// What a command is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Acl,
    Map,
}

impl Kind {
    /// As in sentences.
    fn word(self) -> &'static str {
        if self == Kind::Acl { "ACL" } else { "map" }
    }

    /// As in commands.
    fn command(self) -> &'static str {
        if self == Kind::Acl { "acl" } else { "map" }
    }

    fn has(self, listed: &Listed) -> bool {
        if self == Kind::Acl { listed.in_acls } else { listed.in_maps }
    }

    /// The kind that the second word of a command names.
    fn of(call: &Call<'_>) -> Kind {
        if call.words.get(1).is_some_and(|w| w == "acl") { Kind::Acl } else { Kind::Map }
    }

    fn unknown(self) -> Refusal {
        format!("Unknown {} identifier. Please use #<id> or <file>.", self.word()).into()
    }
}

/// The words behind the command: a version, if one is given, and the rest.
fn versioned<'c>(call: &'c Call<'_>) -> (Option<u32>, &'c [String]) {
    match call.args().split_first() {
        Some((first, rest)) => match first.strip_prefix('@') {
            Some(version) => (Some(number(version)), rest),
            None => (None, call.args()),
        },
        None => (None, &[]),
    }
}

/// The digits that a text begins with, as a number.
fn number(text: &str) -> u32 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text.get(..end).unwrap_or_default();
    digits.bytes().fold(0u32, |n, c| n.wrapping_mul(10).wrapping_add(u32::from(c - b'0')))
}

fn word(words: &[String], n: usize) -> &str {
    words.get(n).map_or("", String::as_str)
}

/// Any set.
fn any<'c>(call: &'c Call<'_>, kind: Kind, name: &str) -> Result<&'c Listed, Refusal> {
    call.shared().program.patterns.get(name).ok_or_else(|| kind.unknown())
}

/// A set of the kind that the command is about.
fn find<'c>(call: &'c Call<'_>, kind: Kind, name: &str) -> Result<&'c Listed, Refusal> {
    any(call, kind, name).and_then(|listed| if kind.has(listed) { Ok(listed) } else { Err(kind.unknown()) })
}

/// `show acl`, `show map`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let kind = Kind::of(call);
    if call.arg(0).is_empty() {
        return Ok(Reply::Dump(list(call, kind)));
    }
    let (version, words) = versioned(call);
    let set = &find(call, kind, word(words, 0))?.set;
    // A version that is no number means the current one.
    let version = version.filter(|_| call.arg(0).as_bytes().get(1).is_some_and(u8::is_ascii_digit));
    Ok(Reply::Lines(Box::new(Entries(set.entries(version)))))
}

/// The entries of a set, one a line.
#[derive(Debug)]
struct Entries(pattern::Listing);

impl Lines for Entries {
    fn append(&mut self, out: &mut String) -> bool {
        let Some(entry) = self.0.advance() else { return false };
        let _ = write!(out, "{:#x} {}", entry.id, foreign::text(&entry.pattern));
        if let Some(value) = &entry.value {
            let _ = write!(out, " {}", foreign::text(value));
        }
        out.push('\n');
        true
    }
}

fn list(call: &Call<'_>, kind: Kind) -> String {
    let mut out = String::from("# id (file) description\n");
    for (id, listed) in call.shared().program.patterns.iter().filter(|(_, l)| kind.has(l)) {
        let Versions { current, next, entries } = listed.set.versions();
        let (name, about) = (listed.set.name(), &listed.about);
        let entries = entries * listed.set.stores().len().max(1);
        let counts = format!("curr_ver={current} next_ver={next} entry_cnt={entries}");
        let _ = writeln!(out, "{id} ({name}) {about} {counts}");
    }
    out
}

/// `get acl`, `get map`.
pub fn get(call: &mut Call<'_>) -> Outcome {
    let kind = Kind::of(call);
    let value = call.arg(1);
    if value.is_empty() {
        return Err(format!("Missing {} identifier and/or key.", kind.word()).into());
    }
    let set = &any(call, kind, call.arg(0))?.set;
    let mut out = String::new();
    for face in set.stores() {
        look_up(set, &face, kind, value, &mut out);
    }
    Ok(Reply::Dump(out))
}

/// One line of `get`: what one use of the set finds.
fn look_up(set: &Arc<LiveSet>, face: &Face, kind: Kind, value: &str, out: &mut String) {
    let Ok(view) = set.view(face.kind, face.flags) else { return };
    let case = if face.flags.ignore_case { "insensitive" } else { "sensitive" };
    let (result, key) = if kind == Kind::Acl { ("match", "pattern") } else { ("found", "key") };
    let _ = write!(out, "type={}, case={case}, {result}=", face.method());
    let hit = view.kind().takes_patterns().then(|| view.find(Value::Str(&foreign::bytes(value)))).flatten();
    let Some(hit) = hit else { return out.push_str("no\n") };
    let pattern = hit.pattern();
    let _ = write!(out, "yes, idx={}, {key}=\"{}\"", view.index_name(), foreign::text(&pattern));
    if kind == Kind::Map {
        match hit.value().filter(|_| !face.acl) {
            Some(value) => {
                let (text, word) = shown(face.output, value);
                let _ = write!(out, ", value=\"{text}\", type=\"{word}\"");
            }
            None => out.push_str(", value=none"),
        }
    }
    out.push('\n');
}

/// A value as its use reads it, and the name of its type.
fn shown(output: Output, value: &[u8]) -> (Cow<'_, str>, &'static str) {
    let text = foreign::text(value);
    match output {
        Output::Text => (text, "str"),
        Output::Int => match text.parse::<i64>() {
            Ok(n) => (n.to_string().into(), "sint"),
            Err(_) => (text, "sint"),
        },
        Output::Ip if text.contains(':') => (text, "ipv6"),
        Output::Ip => (text, "ipv4"),
    }
}

/// `add acl`.
pub fn add_acl(call: &mut Call<'_>) -> Outcome {
    let (version, words) = versioned(call);
    let (name, key) = (word(words, 0), word(words, 1));
    if name.is_empty() || key.is_empty() {
        return Err("'add acl' expects two parameters: ACL identifier and pattern.".into());
    }
    let set = &any(call, Kind::Acl, name)?.set;
    if set.shape() == Shape::Map {
        let text = "This ACL is shared with a map containing samples. You must use the command 'add map' to add values.";
        return Err(text.into());
    }
    let lines = match call.payload {
        Some(text) => text.lines().filter_map(|l| l.split([' ', '\t']).find(|w| !w.is_empty())).collect(),
        None => vec![key],
    };
    let keys: Vec<_> = lines.into_iter().map(foreign::bytes).collect();
    let entries = keys.iter().map(|key| (&**key, &b""[..]));
    done(set.add_all(version, entries), Kind::Acl, set, version)
}

/// `add map`.
pub fn add_map(call: &mut Call<'_>) -> Outcome {
    let (version, words) = versioned(call);
    let (name, key, value) = (word(words, 0), word(words, 1), word(words, 2));
    let payload = call.payload.filter(|text| !text.is_empty());
    if name.is_empty() || payload.is_none() && (key.is_empty() || value.is_empty()) {
        let text = "'add map' expects three parameters (map identifier, key and value) or one parameter (map identifier) \
                    and a payload";
        return Err(text.into());
    }
    let set = &any(call, Kind::Map, name)?.set;
    let Some(text) = payload else {
        let (key, value) = (foreign::bytes(key), foreign::bytes(value));
        let entry = [(&*key, &*value)];
        return done(set.add_all(version, entry), Kind::Map, set, version);
    };
    let (entries, missing) = pairs(text);
    let entries = entries.iter().map(|(key, value)| (&**key, &**value));
    done(set.add_all(version, entries), Kind::Map, set, version)?;
    match missing {
        Some(key) => Err(format!("Missing value for key '{key}'.").into()),
        None => Ok(Reply::Done),
    }
}

/// A key and its value.
type Pair<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Keys and values of a payload, up to a line that is a key alone, which is the second thing returned.
fn pairs(text: &str) -> (Vec<Pair<'_>>, Option<&str>) {
    let mut out = Vec::new();
    for line in text.lines().filter(|l| !l.is_empty()) {
        let (key, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let value = value.trim_start_matches([' ', '\t']);
        if value.is_empty() {
            return (out, Some(key));
        }
        out.push((foreign::bytes(key), foreign::bytes(value)));
    }
    (out, None)
}

/// What came of a change.
fn done(result: Result<(), ChangeError>, kind: Kind, set: &LiveSet, version: Option<u32>) -> Outcome {
    let Err(error) = result else { return Ok(Reply::Done) };
    let next = set.versions().next;
    let ahead = version.is_some_and(|v| v.wrapping_sub(next).wrapping_sub(1) < u32::MAX / 2);
    Err(match error {
        ChangeError::Version if ahead => {
            let command = kind.command();
            format!("Version number in the future, please use 'prepare {command}' before.").into()
        }
        ChangeError::Version => "Version number out of range.".into(),
        other => format!("{other}.").into(),
    })
}

/// `del acl`, `del map`.
pub fn del(call: &mut Call<'_>) -> Outcome {
    let kind = Kind::of(call);
    let key = call.arg(1);
    if key.is_empty() {
        return Err(
            format!("This command expects two parameters: {} identifier and key.", kind.word()).into()
        );
    }
    let set = &find(call, kind, call.arg(0))?.set;
    match set.del(which(key, &foreign::bytes(key))?) {
        Ok(()) => Ok(Reply::Done),
        Err(_) => Err("Key not found.".into()),
    }
}

/// `set map`.
pub fn set_map(call: &mut Call<'_>) -> Outcome {
    let (key, value) = (call.arg(1), call.arg(2));
    if value.is_empty() {
        return Err("'set map' expects three parameters: map identifier, key and value.".into());
    }
    let set = &any(call, Kind::Map, call.arg(0))?.set;
    let bytes = foreign::bytes(key);
    let which = which(key, &bytes)?;
    match set.set(which, &foreign::bytes(value)) {
        Err(ChangeError::NotFound) if matches!(which, Which::Ref(_)) => {
            Err("key or pattern not found.".into())
        }
        result => done(result, Kind::Map, set, None),
    }
}

/// Entries by key, or by the reference that `show` displays.
fn which<'k>(key: &str, bytes: &'k [u8]) -> Result<Which<'k>, Refusal> {
    match key.strip_prefix("#0x") {
        Some(digits) => u64::from_str_radix(digits, 16)
            .map(Which::Ref)
            .map_err(|_| "Malformed identifier. Please use #<id> or <file>.".into()),
        None => Ok(Which::Key(bytes)),
    }
}

/// `clear acl`, `clear map`.
pub fn clear(call: &mut Call<'_>) -> Outcome {
    let kind = Kind::of(call);
    let (version, words) = versioned(call);
    let name = word(words, 0);
    if name.is_empty() {
        return Err(format!("Missing {} identifier.", kind.word()).into());
    }
    let set = &find(call, kind, name)?.set;
    // A version that does not exist is as empty as one that was cleared.
    let _ = set.clear(version);
    Ok(Reply::Done)
}

/// `prepare acl`, `prepare map`.
pub fn prepare(call: &mut Call<'_>) -> Outcome {
    let set = &find(call, Kind::of(call), call.arg(0))?.set;
    Ok(Reply::info(format!("New version created: {}\n", set.prepare())))
}

/// `commit acl`, `commit map`.
pub fn commit(call: &mut Call<'_>) -> Outcome {
    let kind = Kind::of(call);
    let (version, words) = versioned(call);
    let version = version.ok_or("Missing version number.")?;
    let name = word(words, 0);
    if name.is_empty() {
        return Err(format!("Missing {} identifier.", kind.word()).into());
    }
    let set = &find(call, kind, name)?.set;
    done(set.commit(version), kind, set, None)
}
