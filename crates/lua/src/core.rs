//! The class `core`: logs, dates, addresses, maps by name, the process.

use mlua::Value;
use model::vars::Scope;

use crate::here::with_worker;
use crate::told;
use crate::value::Bound;
use crate::value::{Args, Form, Outcome, give, inner, nothing, to_lua};

/// Functions of the class.
pub const BOUND: &[Bound] = &[
    ("core.log", 0, log),
    ("core.Debug", 0, |args| log_at(args, 7)),
    ("core.Info", 0, |args| log_at(args, 6)),
    ("core.Warning", 0, |args| log_at(args, 4)),
    ("core.Alert", 0, |args| log_at(args, 1)),
    ("core.sleep", 0, seconds),
    ("core.msleep", 0, millis),
    ("core.wait", 0, wait),
    ("core.now", 0, now),
    ("core.http_date", 0, http_date),
    ("core.imf_date", 0, imf_date),
    ("core.rfc850_date", 0, rfc850_date),
    ("core.asctime_date", 0, asctime_date),
    ("core.set_nice", 0, set_nice),
    ("core.get_var", 0, get_var),
    ("core.get_info", 0, get_info),
    ("concat.add", 0, text),
    ("applet.send", 1, text),
    ("raise", 0, raise),
    ("waker", 0, waker),
    ("traceback", 0, traceback),
    ("inspect", 0, inspect),
    ("os.getenv", 0, getenv),
    ("yields", 0, |args| give(args.lua(), crate::clock::yields())),
    ("act.wake_time", 0, wake_time),
];

fn settings(args: &Args<'_>) -> std::sync::Arc<crate::settings::Settings> {
    args.lua()
        .app_data_ref::<std::sync::Arc<crate::settings::Settings>>()
        .map(|s| s.clone())
        .unwrap_or_default()
}

/// `core.log(level, msg)`; those with the level in their name come here, too.
fn log(args: &mut Args<'_>) -> Outcome {
    let level = args.int(1)?;
    let text = args.bytes(2)?;
    let level =
        u8::try_from(level).ok().filter(|l| *l < 8).ok_or_else(|| args.bad(1, "Invalid loglevel."))?;
    told::log(&settings(args), told::Loggers::Process, level, &text);
    nothing()
}

/// The same with the level in its name.
fn log_at(args: &mut Args<'_>, level: u8) -> Outcome {
    let text = args.bytes(1)?;
    told::log(&settings(args), told::Loggers::Process, level, &text);
    nothing()
}

/// Milliseconds of `core.wait()`, nil without an end.
fn wait(args: &mut Args<'_>) -> Outcome {
    let n = if args.len() == 0 { None } else { Some(args.int(1)?) };
    give(args.lua(), n)
}

/// Milliseconds of `core.sleep(seconds)`.
fn seconds(args: &mut Args<'_>) -> Outcome {
    let n = args.number(1)?;
    give(args.lua(), (n * 1000.0).clamp(0.0, 1e15) as i64)
}

/// Milliseconds of `core.msleep(milliseconds)`.
fn millis(args: &mut Args<'_>) -> Outcome {
    let n = args.number(1)?;
    give(args.lua(), n.clamp(0.0, 1e15) as i64)
}

fn now(args: &mut Args<'_>) -> Outcome {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let table = inner(args.lua().create_table_with_capacity(0, 2))?;
    inner(table.raw_set("sec", now.as_secs()))?;
    inner(table.raw_set("usec", now.subsec_micros()))?;
    give(args.lua(), table)
}

fn http_date(args: &mut Args<'_>) -> Outcome {
    date(args, lang::conv::seconds_of)
}

fn imf_date(args: &mut Args<'_>) -> Outcome {
    date(args, |text| lang::conv::seconds_of(text).filter(|_| text.get(3) == Some(&b',')))
}

fn rfc850_date(args: &mut Args<'_>) -> Outcome {
    date(args, |text| lang::conv::seconds_of(text).filter(|_| text.contains(&b'-')))
}

fn asctime_date(args: &mut Args<'_>) -> Outcome {
    date(args, |text| lang::conv::seconds_of(text).filter(|_| !text.contains(&b',')))
}

fn date(args: &mut Args<'_>, parse: impl Fn(&[u8]) -> Option<i64>) -> Outcome {
    let text = args.bytes(1)?;
    give(args.lua(), parse(&text))
}

/// The scheduler here has no priorities: checked, and without effect.
fn set_nice(args: &mut Args<'_>) -> Outcome {
    args.int(1)?;
    nothing()
}

/// A variable of the process.
fn get_var(args: &mut Args<'_>) -> Outcome {
    let name = args.text(1)?;
    let form = settings(args).form();
    let name = name
        .strip_prefix("proc.")
        .ok_or("'get_var': Only 'proc.' scope allowed to be retrieved in 'core.get_var()'.")?;
    let found = with_worker(|w| proc_var(&w.shared.program, name)).flatten();
    let Some(found) = found else { return give(args.lua(), Value::Nil) };
    let arena = bumpalo::Bump::new();
    let value = inner(to_lua(args.lua(), lang::sample::Value::from_owned(&found, &arena), form))?;
    give(args.lua(), value)
}

/// The value of a variable of the process, by its name without the scope.
pub fn proc_var(program: &program::Program, name: &str) -> Option<std::sync::Arc<model::vars::Owned>> {
    let vars = &program.world.vars;
    match program.vars.find(Scope::Proc, name) {
        Some(var) => vars.get(var.slot),
        None => vars.aside(&format!("proc.{name}")),
    }
}

/// What `show info` tells, by name.
fn get_info(args: &mut Args<'_>) -> Outcome {
    let table = inner(args.lua().create_table())?;
    for (name, value) in crate::objects::info() {
        match value.parse::<i64>() {
            Ok(number) => inner(table.raw_set(name, number))?,
            Err(_) => inner(table.raw_set(name, value))?,
        }
    }
    give(args.lua(), table)
}

/// A string of a string or a number.
fn text(args: &mut Args<'_>) -> Outcome {
    let bytes = args.bytes(1)?;
    give(args.lua(), inner(args.lua().create_string(bytes))?)
}

/// What wakes a script, as scripts hold it.
struct Waker(std::sync::Arc<crate::clock::Wake>);

impl mlua::UserData for Waker {}

fn waker(args: &mut Args<'_>) -> Outcome {
    match crate::clock::wake() {
        Some(wake) => give(args.lua(), inner(args.lua().create_userdata(Waker(wake)))?),
        None => give(args.lua(), Value::Nil),
    }
}

fn raise(args: &mut Args<'_>) -> Outcome {
    if let Some(data) = args.get(1).as_userdata()
        && let Ok(waker) = data.borrow::<Waker>()
    {
        waker.0.raise();
    }
    nothing()
}

/// As the configuration has it: `setenv` and its kin do not change that of the process.
fn getenv(args: &mut Args<'_>) -> Outcome {
    let name = args.bytes(1)?;
    let all = args.lua().app_data_ref::<std::sync::Arc<syntax::Environment>>().map(|all| all.clone());
    match all.as_ref().and_then(|all| all.get(&name)) {
        Some(value) => give(args.lua(), inner(args.lua().create_string(value))?),
        None => give(args.lua(), Value::Nil),
    }
}

fn traceback(args: &mut Args<'_>) -> Outcome {
    let message = args.text_or_none(1)?;
    let trace = inner(args.lua().traceback(message.as_deref(), 1))?.to_string_lossy();
    let kept = trace.lines().filter(|l| !l.contains(crate::failure::PRELUDE)).collect::<Vec<_>>().join("\n");
    give(args.lua(), kept)
}

/// What `debug.getinfo` tells of a level of the stack: where it is.
fn inspect(args: &mut Args<'_>) -> Outcome {
    let level = usize::try_from(args.int(1)?).unwrap_or(usize::MAX);
    let table = inner(args.lua().create_table())?;
    // This function and the wrapper around it are two levels.
    let seen = args.lua().inspect_stack(level.saturating_add(1), |debug| {
        let source = debug.source();
        (
            debug.current_line(),
            source.short_src.map(|s| s.into_owned()),
            debug.names().name.map(|s| s.into_owned()),
        )
    });
    let Some((line, source, name)) = seen else { return give(args.lua(), Value::Nil) };
    inner(table.raw_set("currentline", line.map_or(-1, |l| i64::try_from(l).unwrap_or(-1))))?;
    inner(table.raw_set("short_src", source.clone().unwrap_or_default()))?;
    inner(table.raw_set("source", source.map(|s| format!("@{s}")).unwrap_or_default()))?;
    inner(table.raw_set("name", name))?;
    give(args.lua(), table)
}

thread_local! {
    static WAKE_TIME: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// How long an action that returns `act.YIELD` wants to pause at most, taken.
pub fn take_wake_time() -> Option<std::time::Duration> {
    WAKE_TIME.take().map(std::time::Duration::from_millis)
}

fn wake_time(args: &mut Args<'_>) -> Outcome {
    // As in HAProxy, what is no number says nothing.
    let ms = args.number(1).unwrap_or(0.0) as i64;
    WAKE_TIME.set(u64::try_from(ms).ok().filter(|ms| *ms > 0));
    nothing()
}

/// A form of samples for this call: as strings, or as the configuration says.
pub fn form(args: &Args<'_>, text: bool) -> Form {
    if text { Form::Text } else { settings(args).form() }
}

/// The settings.
pub fn of(args: &Args<'_>) -> std::sync::Arc<crate::settings::Settings> {
    settings(args)
}
