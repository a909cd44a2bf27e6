//! Regular expressions, maps and sets of patterns: the classes `Regex`, `Map` and `Patref`, and those
//! functions of `core` that change one by its name.

use std::collections::HashMap;
use std::sync::Arc;

use mlua::Value;
use parking_lot::Mutex;
use pattern::{ChangeError, Flags, Groups, Kind, LiveSet, Regex, Shape, View};

use crate::here::with_worker;
use crate::value::Bound;
use crate::value::{Args, Outcome, give, inner, nothing};

/// Functions of the classes.
pub const BOUND: &[Bound] = &[
    ("regex.new", 0, regex_new),
    ("regex.exec", 1, regex_exec),
    ("regex.match", 1, regex_match),
    ("map.new", 0, map_new),
    ("map.lookup", 1, |args| lookup(args, false)),
    ("map.slookup", 1, |args| lookup(args, true)),
    ("core.add_acl", 0, add_acl),
    ("core.del_acl", 0, |args| del(args, "del_acl")),
    ("core.del_map", 0, |args| del(args, "del_map")),
    ("core.set_map", 0, set_map),
    ("core.get_patref", 0, patref_new),
    ("patref.get_name", 1, get_name),
    ("patref.is_map", 1, is_map),
    ("patref.purge", 1, purge),
    ("patref.prepare", 1, prepare),
    ("patref.commit", 1, commit),
    ("patref.giveup", 1, giveup),
    ("patref.add", 1, add),
    ("patref.add_bulk", 1, add_bulk),
    ("patref.del", 1, remove),
    ("patref.set", 1, set),
    ("patref.look", 1, look),
    ("patref.all", 1, all),
];

/// Groups of an expression that scripts see.
const MOST_GROUPS: usize = 20;

struct Expression(Regex);

impl mlua::UserData for Expression {}

fn regex_new(args: &mut Args<'_>) -> Outcome {
    let text = args.bytes(1)?;
    let Value::Boolean(cased) = args.get(2) else { return Err(args.bad(2, "boolean expected")) };
    match Regex::new(&text, !cased) {
        Ok(regex) => give(args.lua(), inner(args.lua().create_userdata(Expression(regex)))?),
        Err(e) => give(args.lua(), (false, e.text.to_string())),
    }
}

fn regex_exec(args: &mut Args<'_>) -> Outcome {
    let own: mlua::AnyUserData = args.own()?;
    let text = args.bytes(1)?;
    let regex = inner(own.borrow::<Expression>())?;
    give(args.lua(), regex.0.is_match(&text))
}

fn regex_match(args: &mut Args<'_>) -> Outcome {
    let own: mlua::AnyUserData = args.own()?;
    let text = args.bytes(1)?;
    let regex = inner(own.borrow::<Expression>())?;
    let mut groups = Groups::default();
    if !regex.0.captures_at(&text, 0, &mut groups) {
        return give(args.lua(), (false, inner(args.lua().create_table())?));
    }
    let list = inner(args.lua().create_table())?;
    for n in 0..groups.len().min(MOST_GROUPS) {
        // As in HAProxy, the list ends before a group that matched nothing.
        let Some(part) = groups.get(n).and_then(|(a, b)| text.get(a..b)) else { break };
        inner(list.raw_set(n + 1, inner(args.lua().create_string(part))?))?;
    }
    give(args.lua(), (true, list))
}

/// A map of a script's.
struct Held(Arc<View>);

impl mlua::UserData for Held {}

/// Maps that scripts of a load made while the configuration was read: those files are shared with its rules,
/// if any names them, once it is known.
pub type Made = Arc<Mutex<HashMap<String, Arc<LiveSet>>>>;

fn made(args: &Args<'_>) -> Made {
    args.lua().app_data_ref::<Made>().map(|made| made.clone()).unwrap_or_default()
}

/// The set of a name: the configuration's, or one that a script made.
fn find(args: &Args<'_>, name: &str) -> Option<Arc<LiveSet>> {
    let known = with_worker(|worker| worker.shared.program.patterns.named(name).map(|l| l.set.clone()));
    known.flatten().or_else(|| made(args).lock().get(name).cloned())
}

/// The kinds of match by the numbers that scripts find in `Map`; those without a name have no maps of Lua's.
const KINDS: [&str; 14] = ["", "", "int", "ip", "", "", "str", "beg", "sub", "dir", "dom", "end", "reg", ""];

fn kind(n: i64) -> Result<Kind, String> {
    let name = usize::try_from(n).ok().and_then(|n| KINDS.get(n));
    let name = name.ok_or("'new' needs a valid match method.")?;
    Kind::from_name(name)
        .filter(|_| !name.is_empty())
        .ok_or_else(|| "'new' doesn't support this match mode.".into())
}

fn map_new(args: &mut Args<'_>) -> Outcome {
    if args.len() == 0 || args.len() > 2 {
        return Err("'new' needs at least 1 argument.".into());
    }
    let name = args.text(1)?;
    let kind = kind(args.int_or(2, 6)?)?;
    let set = match find(args, &name) {
        Some(set) => set,
        None => {
            let file = name.strip_prefix("opt@").unwrap_or(&name);
            let set = LiveSet::new(name.as_str(), Shape::Map);
            if !name.starts_with("virt@") {
                fill(&set, file, name.starts_with("opt@"))?;
            }
            made(args).lock().insert(name.clone(), set.clone());
            set
        }
    };
    let view = set.view(kind, Flags::default()).map_err(|e| format!("unable to load: {}", e.text))?;
    give(args.lua(), inner(args.lua().create_userdata(Held(Arc::new(view))))?)
}

/// Reads the file of a map.
fn fill(set: &LiveSet, file: &str, may_miss: bool) -> Result<(), String> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(e) if may_miss && e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(_) => return Err(format!("'new': failed to open pattern file <{file}>.")),
    };
    for line in bytes.split(|c| *c == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (key, value) = line.split_at(end);
        set.add(None, key, Some(value.trim_ascii())).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn lookup(args: &mut Args<'_>, text: bool) -> Outcome {
    let own: mlua::AnyUserData = args.own()?;
    let held = inner(own.borrow::<Held>())?;
    let number = if held.0.kind() == Kind::Int { Some(args.int(1)?) } else { None };
    let key = args.bytes(1)?;
    let value = match held.0.kind() {
        Kind::Int => pattern::Value::Int(number.unwrap_or_default()),
        Kind::Ip => match std::str::from_utf8(&key).ok().and_then(|k| k.trim().parse().ok()) {
            Some(std::net::IpAddr::V4(a)) => pattern::Value::Ipv4(a),
            Some(std::net::IpAddr::V6(a)) => pattern::Value::Ipv6(a),
            None => pattern::Value::Str(&key),
        },
        _ => pattern::Value::Str(&key),
    };
    let hit = held.0.find(value);
    match hit.as_ref().and_then(|hit| hit.value()) {
        Some(value) => give(args.lua(), inner(args.lua().create_string(value))?),
        None if text => give(args.lua(), ""),
        None => give(args.lua(), Value::Nil),
    }
}

fn by_name(args: &Args<'_>, what: &str) -> Result<Arc<LiveSet>, String> {
    let name = args.text(1)?;
    for n in 2..=args.len() {
        args.bytes(n)?;
    }
    let kind = if what == "set_map" { "map" } else { "acl" };
    find(args, &name).ok_or_else(|| format!("'{what}': unknown {kind} file '{name}'"))
}

fn add_acl(args: &mut Args<'_>) -> Outcome {
    let (set, key) = (by_name(args, "add_acl")?, args.bytes(2)?);
    let _ = set.put(&key, None);
    nothing()
}

fn del(args: &mut Args<'_>, what: &str) -> Outcome {
    let (set, key) = (by_name(args, what)?, args.bytes(2)?);
    let _ = set.del_all(None, &key);
    nothing()
}

fn set_map(args: &mut Args<'_>) -> Outcome {
    let (set, key, value) = (by_name(args, "set_map")?, args.bytes(2)?, args.bytes(3)?);
    set.put(&key, Some(&value)).map_err(|e| e.to_string())?;
    nothing()
}

/// A set as a script holds it, and the version that it prepares.
struct Reference {
    set: Arc<LiveSet>,
    version: Mutex<Option<u32>>,
}

impl mlua::UserData for Reference {}

fn patref_new(args: &mut Args<'_>) -> Outcome {
    let name = args.text(1)?;
    match find(args, &name) {
        Some(set) => {
            let made = Reference { set, version: Mutex::default() };
            give(args.lua(), inner(args.lua().create_userdata(made))?)
        }
        None => Err(format!("'get_patref': unknown pattern reference '{name}'")),
    }
}

/// The set that an object is of.
pub fn held(args: &Args<'_>) -> Result<Arc<LiveSet>, String> {
    on(args, |held| held.set.clone())
}

fn on<R>(args: &Args<'_>, work: impl FnOnce(&Reference) -> R) -> Result<R, String> {
    let own: mlua::AnyUserData = args.own()?;
    let held = inner(own.borrow::<Reference>())?;
    Ok(work(&held))
}

fn get_name(args: &mut Args<'_>) -> Outcome {
    let name = on(args, |held| held.set.name().to_owned())?;
    give(args.lua(), name)
}

fn is_map(args: &mut Args<'_>) -> Outcome {
    let map = on(args, |held| held.set.shape() == Shape::Map)?;
    give(args.lua(), map)
}

fn purge(args: &mut Args<'_>) -> Outcome {
    let _ = on(args, |held| held.set.clear(None))?;
    nothing()
}

fn prepare(args: &mut Args<'_>) -> Outcome {
    on(args, |held| *held.version.lock() = Some(held.set.prepare()))?;
    nothing()
}

/// `true`, or nil and why.
fn told(args: &Args<'_>, result: Result<(), ChangeError>) -> Outcome {
    match result {
        Ok(()) => give(args.lua(), true),
        Err(e) => give(args.lua(), (Value::Nil, e.to_string())),
    }
}

fn commit(args: &mut Args<'_>) -> Outcome {
    let done = on(args, |held| held.version.lock().take().map(|version| held.set.commit(version)))?;
    match done {
        Some(result) => told(args, result),
        None => give(args.lua(), true),
    }
}

fn giveup(args: &mut Args<'_>) -> Outcome {
    on(args, |held| {
        if let Some(version) = held.version.lock().take() {
            let _ = held.set.clear(Some(version));
        }
    })?;
    nothing()
}

fn add(args: &mut Args<'_>) -> Outcome {
    let key = args.bytes(1)?;
    let value = if args.get(2).is_nil() { None } else { Some(args.bytes(2)?) };
    let done = on(args, |held| {
        let version = *held.version.lock();
        held.set.add(version, &key, value.as_deref())
    })?;
    told(args, done)
}

fn add_bulk(args: &mut Args<'_>) -> Outcome {
    let Value::Table(table) = args.get(1) else {
        return Err(args.bad(1, "argument is expected to be a table"));
    };
    let map = on(args, |held| held.set.shape() == Shape::Map)?;
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for pair in table.pairs::<Value, mlua::String>() {
        let (key, value) = inner(pair)?;
        let value = value.as_bytes().to_vec();
        match key {
            Value::String(key) if map => all.push((key.as_bytes().to_vec(), value)),
            other if map => return Err(args.bad(1, &format!("string expected, got {}", other.type_name()))),
            _ => all.push((value, Vec::new())),
        }
    }
    let done = on(args, |held| {
        let version = *held.version.lock();
        held.set.add_all(version, all.iter().map(|(key, value)| (&**key, &**value)))
    })?;
    told(args, done)
}

fn remove(args: &mut Args<'_>) -> Outcome {
    let key = args.bytes(1)?;
    let done = on(args, |held| held.set.del_all(*held.version.lock(), &key).is_ok())?;
    give(args.lua(), done)
}

fn set(args: &mut Args<'_>) -> Outcome {
    let (key, value, force) = (args.bytes(1)?, args.bytes(2)?, args.truth(3));
    let done = on(args, |held| match *held.version.lock() {
        None if force => held.set.put(&key, Some(&value)),
        version => match held.set.set_in(version, &key, &value) {
            Err(ChangeError::NotFound) if force => held.set.add(version, &key, Some(&value)),
            done => done,
        },
    })?;
    told(args, done)
}

fn look(args: &mut Args<'_>) -> Outcome {
    let key = args.bytes(1)?;
    let found = on(args, |held| {
        let mut listing = held.set.entries(*held.version.lock());
        while let Some(entry) = listing.advance() {
            if *entry.pattern == *key {
                return Some(entry.value.map(|v| v.to_vec()));
            }
        }
        None
    })?;
    match found {
        Some(Some(value)) => give(args.lua(), inner(args.lua().create_string(value))?),
        Some(None) => give(args.lua(), true),
        None => give(args.lua(), Value::Nil),
    }
}

/// Keys and values, one behind the other.
fn all(args: &mut Args<'_>) -> Outcome {
    let list = inner(args.lua().create_table())?;
    let done = on(args, |held| {
        let mut listing = held.set.entries(*held.version.lock());
        while let Some(entry) = listing.advance() {
            list.raw_push(args.lua().create_string(&*entry.pattern)?)?;
            match entry.value {
                Some(value) => list.raw_push(args.lua().create_string(&*value)?)?,
                None => list.raw_push(false)?,
            }
        }
        Ok(())
    })?;
    inner(done)?;
    give(args.lua(), list)
}
