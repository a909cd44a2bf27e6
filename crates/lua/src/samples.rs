//! The classes `Fetches` and `Converters`: all of the rule language, called from scripts.
//!
//! A call is read like an expression of a rule the first time, and kept: scripts call the same few again and
//! again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use lang::env::{Env, Side};
use lang::expr::Expr;
use lang::places::Place;
use lang::sample::Found;
use lang::{Registry, Words};
use mlua::Value;
use program::Program;

use crate::book::Book;
use crate::core::form;
use crate::here::with_worker;
use crate::host;
use crate::value::Bound;
use crate::value::{Args, Outcome, give, inner, to_lua, to_sample};

/// Functions of the classes.
pub const BOUND: &[Bound] = &[
    ("fetch.call", 0, fetch),
    ("fetch.known", 0, |args| known(args, |names| &names.fetches)),
    ("fetch.of_data", 0, of_data),
    ("conv.call", 0, convert),
    ("conv.known", 0, |args| known(args, |names| &names.convs)),
];

/// Expressions kept by each thread.
const MOST_KEPT: usize = 2048;

/// Names as scripts write them, with what they stand for.
struct Names {
    registry: Registry,
    fetches: HashMap<String, &'static str>,
    convs: HashMap<String, &'static str>,
}

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let registry = Registry::standard();
        let written = |name: &str| name.replace(['.', '-', '+'], "_");
        let fetches = registry.all_fetches().iter().map(|def| (written(def.name), def.name)).collect();
        let convs = registry.all_converters().iter().map(|def| (written(def.name), def.name)).collect();
        Names { registry, fetches, convs }
    })
}

fn known(
    args: &mut Args<'_>,
    table: fn(&'static Names) -> &'static HashMap<String, &'static str>,
) -> Outcome {
    let name = args.text(1)?;
    give(args.lua(), table(names()).contains_key(&name))
}

/// The name of a fetch, as rules write it, that looks at the data of a message; nil: it looks at none.
fn of_data(args: &mut Args<'_>) -> Outcome {
    let name = args.text(1)?;
    let real = names().fetches.get(&name).copied();
    let found = real.and_then(|real| names().registry.fetch(real));
    let name = found.map(|(def, _)| def).filter(|def| def.places.is_of_message()).map(|def| def.name);
    give(args.lua(), name)
}

type Kept = HashMap<Key, Arc<Expr>>;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    load: u64,
    proxy: u32,
    response: bool,
    text: Vec<u8>,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// What HAProxy says of arguments that can't be read; `words` are those that were given, in quotes, and
/// `shift` counts what stands before them.
fn complaint(args: &Args<'_>, fault: &str, words: &[u8], shift: usize) -> String {
    let words = String::from_utf8_lossy(words);
    if let Some((_, rest)) = fault.split_once("expected ')' before '") {
        let rest =
            rest.strip_suffix("')").or(rest.strip_suffix('\'')).unwrap_or(rest).trim_start_matches(',');
        let before = words.trim_end_matches(')').strip_suffix(rest.trim_end_matches(')'));
        let taken = before.map_or(0, |before| before.matches("',").count());
        return args.bad(taken + 1 + shift, "Last argument expected");
    }
    if let Some((_, place)) = fault.split_once(" as type 'integer' at position ") {
        let place = place.trim_end_matches(')').parse().unwrap_or(1);
        return args.bad(usize::wrapping_add(place, shift), "integer expected");
    }
    args.bad(1, fault)
}

/// Lets go of all that is kept: scripts of another configuration begin.
pub fn forget() {
    KEPT.take();
}

/// The words of a call as an argument list, each argument in quotes.
fn list(args: &Args<'_>, first: usize, name: &str, out: &mut Vec<u8>) -> Result<(), String> {
    if args.len() < first {
        return Ok(());
    }
    out.push(b'(');
    for n in first..=args.len() {
        if n > first {
            out.push(b',');
        }
        let word = match args.get(n) {
            Value::Boolean(b) => i64::from(*b).to_string().into_bytes(),
            Value::Nil => Vec::new(),
            _ => args.bytes(n).map_err(|_| {
                format!("bad argument #{} to '{name}' (unable to duplicate string arg)", n - first + 1)
            })?,
        };
        for (i, part) in word.split(|c| *c == b'\'').enumerate() {
            if i > 0 {
                out.extend_from_slice(b"\"'\"");
            }
            out.push(b'\'');
            out.extend_from_slice(part);
            out.push(b'\'');
        }
    }
    out.push(b')');
    Ok(())
}

/// Why there is no expression.
enum Wrong {
    /// Its data does not exist where it was asked for.
    Place,
    /// It is wrong.
    Text(String),
}

/// The expression of a text, where `env` is.
fn expression(env: &Env<'_>, load: u64, text: &[u8]) -> Result<Arc<Expr>, Wrong> {
    let program: Option<Arc<Program>> = with_worker(|worker| worker.shared.program.clone());
    let program = program.ok_or(Wrong::Place)?;
    let proxy = env.txn.backend.unwrap_or_else(|| env.conn.frontend.get());
    let response = env.side == Side::Response;
    let key = Key { load, proxy, response, text: text.to_vec() };
    if let Some(kept) = KEPT.with_borrow(|kept| kept.get(&key).cloned()) {
        return Ok(kept);
    }
    let read = Arc::new(read(&program, proxy, response, text)?);
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key, read.clone());
    });
    Ok(read)
}

/// The expression of a fetch without arguments, where `env` is.
pub fn plain(env: &Env<'_>, load: u64, name: &str) -> Option<Arc<Expr>> {
    expression(env, load, names().fetches.get(name)?.as_bytes()).ok()
}

fn read(program: &Arc<Program>, proxy: u32, response: bool, text: &[u8]) -> Result<Expr, Wrong> {
    let places: &[Place] = match response {
        true => &[Place::BackHttpRes, Place::BackTcpResponse, Place::Log],
        false => &[Place::BackHttpReqBody, Place::BackHttpReq, Place::BackTcpContent, Place::Log],
    };
    let mut wrong = Wrong::Place;
    for place in places {
        let mut book = Book { program, proxy, missing: None };
        let words = [text];
        match Expr::parse(&mut Words::new(&words), *place, &names().registry, &mut book) {
            Ok(expr) => match book.missing {
                None => return Ok(expr),
                Some(text) => return Err(Wrong::Text(text)),
            },
            Err(fault) if fault.text.ends_with("none of which is available here") => {}
            Err(fault) => wrong = Wrong::Text(fault.text),
        }
    }
    Err(wrong)
}

/// Nothing, in the form that was asked for.
fn none(args: &Args<'_>, text: bool) -> Outcome {
    match text {
        true => give(args.lua(), ""),
        false => give(args.lua(), Value::Nil),
    }
}

/// What stands behind the next parenthesis that opens.
fn second(text: &[u8]) -> &[u8] {
    text.iter().position(|c| *c == b'(').and_then(|at| text.get(at + 1..)).unwrap_or_default()
}

/// Evaluates an expression for a script, on the host at hand if it is number `id`.
fn evaluate(
    args: &Args<'_>,
    (id, as_text, name): (u64, bool, &str),
    text: &[u8],
    eval: impl for<'e> FnOnce(&'e Expr, &Env<'e>) -> Found<'e>,
) -> Outcome {
    let (lua, form, load) = (args.lua(), form(args, as_text), crate::core::of(args).load);
    let found = host::env(id, |env| {
        let expr = match expression(env, load, text) {
            Ok(expr) => expr,
            Err(Wrong::Place) => return Ok(None),
            Err(Wrong::Text(text)) => return Err(text),
        };
        let env: Env<'_> = *env;
        match eval(&expr, &env) {
            Ok(value) => inner(to_lua(lua, value, form)).map(Some),
            Err(_) => Ok(None),
        }
    });
    let words = second(text);
    let words = if text.starts_with(b"str(),") { second(words) } else { words };
    let shift = usize::from(text.starts_with(b"str(),"));
    let told = |fault: String| complaint(args, &fault, words, shift).replace("'call'", &format!("'{name}'"));
    match found.transpose().map_err(told)?.flatten() {
        Some(value) => give(lua, value),
        None => none(args, as_text),
    }
}

/// A call of a fetch: number of the host, whether as text, name, arguments.
pub fn fetch(args: &mut Args<'_>) -> Outcome {
    let id = u64::try_from(args.int(1)?).unwrap_or_default();
    let as_text = args.truth(2);
    let name = args.text(3)?;
    let real = names().fetches.get(&name).ok_or_else(|| format!("no fetch '{name}'"))?;
    let mut text = real.as_bytes().to_vec();
    list(args, 4, &name, &mut text)?;
    evaluate(args, (id, as_text, &name), &text, |expr, env| expr.eval(env))
}

/// A call of a converter: number of the host, whether as text, name, value, arguments.
fn convert(args: &mut Args<'_>) -> Outcome {
    let id = u64::try_from(args.int(1)?).unwrap_or_default();
    let as_text = args.truth(2);
    let name = args.text(3)?;
    let real = names().convs.get(&name).ok_or_else(|| format!("no converter '{name}'"))?;
    let mut text = format!("str(),{real}").into_bytes();
    list(args, 5, &name, &mut text)?;
    let input = args.get(4).clone();
    evaluate(args, (id, as_text, &name), &text, |expr, env| expr.convert(env, to_sample(&input, env.arena)))
}
