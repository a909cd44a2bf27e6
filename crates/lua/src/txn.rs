//! The class `TXN`, and what applets have of it: variables, private data, logs, decisions.

use lang::action::Exec;
use mlua::Value;
use model::vars::{Owned, Scope, VarRef};
use wire::method::Version;

use crate::core::{form, of};
use crate::here::with_worker;
use crate::message::field;
use crate::value::Bound;
use crate::value::{Args, Outcome, give, inner, nothing, to_lua, to_owned};
use crate::{host, told};

/// Functions of the class.
pub const BOUND: &[Bound] = &[
    ("txn.log", 1, log),
    ("txn.Debug", 1, |args| log_at(args, 7)),
    ("txn.Info", 1, |args| log_at(args, 6)),
    ("txn.Warning", 1, |args| log_at(args, 4)),
    ("txn.Alert", 1, |args| log_at(args, 1)),
    ("txn.deflog", 1, deflog),
    ("txn.get_priv", 1, get_priv),
    ("txn.set_priv", 1, set_priv),
    ("txn.set_var", 1, set_var),
    ("txn.unset_var", 1, unset_var),
    ("txn.get_var", 1, get_var),
    ("txn.set_loglevel", 1, set_loglevel),
    ("txn.set_fc_tos", 1, set_tos),
    ("txn.set_tos", 1, set_tos),
    ("txn.set_fc_mark", 1, set_mark),
    ("txn.set_mark", 1, set_mark),
    ("txn.set_priority_class", 1, set_priority_class),
    ("txn.set_priority_offset", 1, set_priority_offset),
    ("txn.is_http", 1, is_http),
    ("txn.done", 1, done),
    ("applet.get_priv", 1, get_priv),
    ("applet.set_priv", 1, set_priv),
    ("applet.set_var", 1, set_var),
    ("applet.unset_var", 1, unset_var),
    ("applet.get_var", 1, get_var),
    ("applet.set_status", 1, status),
    ("applet.add_header", 1, header),
    ("applet.receive", 1, size),
    ("reply.set_status", 1, reply_status),
    ("reply.add_header", 1, header),
    ("reply.del_header", 1, reply_text),
    ("reply.set_body", 1, reply_text),
];

/// What is said where an object is used when its transaction is not at hand.
pub fn away(what: &str) -> String {
    format!("'{what}': the transaction is not available here")
}

fn log(args: &mut Args<'_>) -> Outcome {
    let level = args.int(1)?;
    let text = args.bytes(2)?;
    let level = u8::try_from(level).ok().filter(|l| *l < 8);
    // HAProxy blames the object.
    let level = level.ok_or("calling 'log' on bad self (Invalid loglevel.)")?;
    told::log(&of(args), told::Loggers::Proxy, level, &text);
    nothing()
}

/// The same with the level in its name.
fn log_at(args: &mut Args<'_>, level: u8) -> Outcome {
    let text = args.bytes(1)?;
    told::log(&of(args), told::Loggers::Proxy, level, &text);
    nothing()
}

/// With the level of the proxy's own lines.
fn deflog(args: &mut Args<'_>) -> Outcome {
    let text = args.bytes(1)?;
    told::log(&of(args), told::Loggers::Proxy, 6, &text);
    nothing()
}

/// Private data of a transaction, kept with it.
struct Private(mlua::RegistryKey);

fn get_priv(args: &mut Args<'_>) -> Outcome {
    let id: u64 = args.own()?;
    let lua = args.lua();
    let found = host::env(id, |env| {
        let kept = env.txn.kept.borrow();
        let private = kept.as_ref().and_then(|any| any.downcast_ref::<Private>());
        private.and_then(|private| lua.registry_value::<Value>(&private.0).ok())
    });
    give(lua, found.flatten().unwrap_or(Value::Nil))
}

fn set_priv(args: &mut Args<'_>) -> Outcome {
    let id: u64 = args.own()?;
    let key = inner(args.lua().create_registry_value(args.get(1).clone()))?;
    let kept = host::env(id, |env| *env.txn.kept.borrow_mut() = Some(Box::new(Private(key))));
    kept.ok_or_else(|| away("set_priv"))?;
    args.lua().expire_registry_values();
    nothing()
}

/// A variable by its name.
enum Named {
    /// One with a slot.
    Slot(VarRef),
    /// One of the process that no rule mentions.
    Aside(String),
}

/// Finds a variable, or makes one; `None`: there is none, or its name is none.
fn variable(name: &str, make: bool) -> Option<Named> {
    let (prefix, rest) = name.split_once('.')?;
    let scope = Scope::from_prefix(prefix)?;
    if rest.is_empty() || !rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')) {
        return None;
    }
    with_worker(|worker| {
        let vars = &worker.shared.program.vars;
        if scope == Scope::Proc {
            let known = vars.find(scope, rest).map(Named::Slot);
            return Some(known.unwrap_or_else(|| Named::Aside(name.into())));
        }
        let found = if make { vars.slot_late(scope, rest) } else { vars.find_late(scope, rest) };
        found.map(Named::Slot)
    })?
}

/// The slot of a variable that is not one of the process, made if it has none.
pub fn slot(name: &str) -> Option<VarRef> {
    match variable(name, true)? {
        Named::Slot(var) if var.scope != Scope::Proc => Some(var),
        _ => None,
    }
}

fn put(id: u64, name: &str, value: Option<Owned>, make: bool) -> bool {
    // Only those of the process are looked for: any other may come to be.
    let make = make || value.is_some() && !name.starts_with("proc.");
    let Some(named) = variable(name, make) else { return false };
    match named {
        Named::Slot(var) => {
            crate::changes::changed(id, var, value.as_ref());
            host::env(id, |env| lang::variables::write(env, var, value)).is_some()
        }
        Named::Aside(name) => {
            let world = with_worker(|worker| worker.shared.program.world.clone());
            world.is_some_and(|world| {
                (make || world.vars.aside(&name).is_some()) && world.vars.set_aside(&name, value)
            })
        }
    }
}

fn set_var(args: &mut Args<'_>) -> Outcome {
    let id: u64 = args.own()?;
    let name = args.text(1)?;
    let value = to_owned(args.get(2));
    let set = put(id, &name, Some(value), !args.truth(3));
    give(args.lua(), set)
}

fn unset_var(args: &mut Args<'_>) -> Outcome {
    let id: u64 = args.own()?;
    let name = args.text(1)?;
    let set = put(id, &name, None, false);
    give(args.lua(), set)
}

fn get_var(args: &mut Args<'_>) -> Outcome {
    let id: u64 = args.own()?;
    let name = args.text(1)?;
    let (lua, form) = (args.lua(), form(args, false));
    let value = match variable(&name, false) {
        None => None,
        Some(Named::Slot(var)) => host::env(id, |env| {
            let found = lang::variables::read(env, var)?;
            to_lua(lua, found, form).ok()
        })
        .flatten(),
        Some(Named::Aside(name)) => {
            let found = with_worker(|worker| worker.shared.program.world.vars.aside(&name)).flatten();
            let arena = bumpalo::Bump::new();
            found.and_then(|v| to_lua(lua, lang::sample::Value::from_owned(&v, &arena), form).ok())
        }
    };
    give(lua, value.unwrap_or(Value::Nil))
}

/// Changes what is decided of the transaction.
fn decide(args: &mut Args<'_>, change: impl FnOnce(&mut Exec<'_>, i64)) -> Outcome {
    let id: u64 = args.own()?;
    let n = args.int(1)?;
    host::exec(id, |exec| change(exec, n)).ok_or_else(|| away("this function"))?;
    nothing()
}

const LEVELS: &str = "Bad log level. It must be one of the following value: core.silent(-1), core.emerg(0), core.alert(1), core.crit(2), core.error(3), core.warning(4), core.notice(5), core.info(6) or core.debug(7)";

fn set_loglevel(args: &mut Args<'_>) -> Outcome {
    let level = args.int(1)?;
    if !(-1..8).contains(&level) {
        return Err(args.bad(1, LEVELS));
    }
    decide(args, |exec, n| exec.txn.decisions.log_level = Some(u8::try_from(n).unwrap_or(8)))
}

fn set_tos(args: &mut Args<'_>) -> Outcome {
    decide(args, |exec, n| exec.txn.decisions.fc_tos = Some(n as u8))
}

fn set_mark(args: &mut Args<'_>) -> Outcome {
    decide(args, |exec, n| exec.txn.decisions.fc_mark = Some(n as u32))
}

fn set_priority_class(args: &mut Args<'_>) -> Outcome {
    decide(args, |exec, n| exec.txn.decisions.priority_class = n.clamp(-2047, 2047) as i16)
}

fn set_priority_offset(args: &mut Args<'_>) -> Outcome {
    decide(args, |exec, n| exec.txn.decisions.priority_offset = n.clamp(-524_287, 524_287) as i32)
}

fn is_http(args: &mut Args<'_>) -> Outcome {
    let id: u64 = args.own()?;
    let http = host::env(id, |env| env.txn.has_req || env.txn.has_res).unwrap_or(false);
    give(args.lua(), http)
}

thread_local! {
    static SAID: std::cell::RefCell<Option<(u64, Option<Vec<u8>>)>> = const { std::cell::RefCell::new(None) };
}

/// What `txn:done` of this host left behind: the message to answer, if any.
pub fn take_done(id: u64) -> Option<Option<Vec<u8>>> {
    SAID.with_borrow_mut(|said| said.take_if(|(whose, _)| *whose == id).map(|(_, message)| message))
}

/// Notes the answer; the prelude ends the script.
fn done(args: &mut Args<'_>) -> Outcome {
    let id: u64 = args.own()?;
    let message = match args.get(1) {
        Value::Table(reply) if host::env(id, |env| env.txn.has_req).unwrap_or(false) => {
            let old = host::env(id, |env| env.txn.req.version() < Version::HTTP_11).unwrap_or(false);
            Some(message(args, reply, old)?)
        }
        _ => None,
    };
    SAID.set(Some((id, message)));
    nothing()
}

/// Status and reason of a reply; false where the status is none.
fn reply_status(args: &mut Args<'_>) -> Outcome {
    let status = u16::try_from(args.int(1)?).ok().filter(|s| (200..=599).contains(s));
    let Some(status) = status else { return give(args.lua(), false) };
    let reason = args.text_or_none(2)?;
    let reason = reason.unwrap_or_else(|| wire::head::Head::reason_for(status).to_owned());
    give(args.lua(), (status, reason))
}

fn reply_text(args: &mut Args<'_>) -> Outcome {
    let text = args.bytes(1)?;
    give(args.lua(), inner(args.lua().create_string(text))?)
}

/// The message of a reply, in the version that its client spoke: scripts answer HTTP/1.0 in kind.
fn message(args: &Args<'_>, reply: &mlua::Table, old: bool) -> Result<Vec<u8>, String> {
    let status: i64 = inner(reply.get::<Option<i64>>("status"))?.unwrap_or(200);
    if !(200..=599).contains(&status) {
        return Err("set_status: invalid status code".into());
    }
    let status = u16::try_from(status).unwrap_or(200);
    let reason: Option<mlua::String> = inner(reply.get("reason"))?;
    let reason = reason.map(|r| r.as_bytes().to_vec());
    let known = || wire::head::Head::reason_for(status).as_bytes().to_vec();
    let reason = reason.filter(|r| r.iter().all(|c| !c.is_ascii_control())).unwrap_or_else(known);
    let version = if old { "1.0" } else { "1.1" };
    let mut out = format!("HTTP/{version} {status} ").into_bytes();
    out.extend_from_slice(&reason);
    out.extend_from_slice(b"\r\n");
    let body: Option<mlua::String> = inner(reply.get("body"))?;
    let body = body.map(|b| b.as_bytes().to_vec()).unwrap_or_default();
    let headers: Option<mlua::Table> = inner(reply.get("headers"))?;
    let mut length = false;
    for pair in headers.iter().flat_map(mlua::Table::pairs::<String, Value>) {
        let (name, values) = inner(pair)?;
        let values: Vec<mlua::String> = match values {
            Value::Table(list) => inner(list.sequence_values().collect())?,
            Value::String(one) => vec![one],
            Value::Integer(n) => vec![inner(args.lua().create_string(n.to_string()))?],
            _ => return Err("'headers' must be a table of lists of strings".into()),
        };
        for value in values {
            length |= name.eq_ignore_ascii_case("content-length");
            field(&mut out, name.as_bytes(), &value.as_bytes());
        }
    }
    if !length {
        field(&mut out, b"content-length", body.len().to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&body);
    Ok(out)
}

/// `AppletHTTP.set_status`: false where the status is none.
fn status(args: &mut Args<'_>) -> Outcome {
    let status = args.int(1)?;
    if !(100..=599).contains(&status) {
        return give(args.lua(), false);
    }
    let reason = args.text_or_none(2)?;
    give(args.lua(), (status, reason))
}

/// The size that `AppletHTTP.receive` was given; -1: all.
fn size(args: &mut Args<'_>) -> Outcome {
    let size = match args.len() {
        0 => -1,
        1 => args.int(1)?,
        _ => return Err("The 'recv' function requires between 1 and 2 arguments.".into()),
    };
    give(args.lua(), size)
}

/// `AppletHTTP.add_header`.
fn header(args: &mut Args<'_>) -> Outcome {
    let (name, value) = (args.bytes(1)?, args.bytes(2)?);
    let made = (inner(args.lua().create_string(name))?, inner(args.lua().create_string(value))?);
    give(args.lua(), made)
}
