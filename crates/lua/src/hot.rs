//! Functions that scripts call for nearly every request, bound with as few values on the way as can be: the
//! prelude calls these first, and the plain ones where something is out of the ordinary.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use lang::env::Side;
use lang::expr::Expr;
use mlua::{Function, Lua, MultiValue, Table, Value, Variadic};
use model::vars::VarRef;
use parking_lot::Mutex;

use crate::host;
use crate::settings::Settings;
use crate::value::{Args, Form, to_lua, to_owned};

/// Puts them where the prelude finds them.
///
/// # Errors
/// Lua has no memory.
pub fn bind(lua: &Lua, place: &Table, settings: &Arc<Settings>) -> mlua::Result<()> {
    let (form, load) = (settings.form(), settings.load);
    let bound = move |lua: &Lua, (name, text): (String, bool)| {
        fetch(lua, name, if text { Form::Text } else { form }, load)
    };
    place.raw_set("fetch.bound", lua.create_function(bound)?)?;
    place.raw_set("hot.set_var", lua.create_function(set_var)?)?;
    place.raw_set("hot.headers", lua.create_function(headers)?)
}

/// A function for one fetch: what it means without arguments is read once for a place.
fn fetch(lua: &Lua, name: String, form: Form, load: u64) -> mlua::Result<Function> {
    let kept: Mutex<Option<(u32, Side, Arc<Expr>)>> = Mutex::default();
    lua.create_function(move |lua, (id, rest): (Value, Variadic<Value>)| {
        let number = if let Value::Integer(id) = id { u64::try_from(id).unwrap_or(0) } else { 0 };
        if rest.is_empty() {
            let found = host::env(number, |env| {
                let proxy = env.txn.backend.unwrap_or_else(|| env.conn.frontend.get());
                let mut kept = kept.lock();
                if kept.as_ref().is_none_or(|(p, side, _)| (*p, *side) != (proxy, env.side)) {
                    *kept = Some((proxy, env.side, crate::samples::plain(env, load, &name)?));
                }
                let (.., expr) = kept.as_ref()?;
                match expr.eval(env) {
                    Ok(value) => to_lua(lua, value, form).ok(),
                    Err(_) if form == Form::Text => lua.create_string("").ok().map(Value::String),
                    Err(_) => Some(Value::Nil),
                }
            });
            if let Some(value) = found.flatten() {
                return Ok((true, value));
            }
        }
        let name = Value::String(lua.create_string(&name)?);
        let mut all = MultiValue::from_iter([id, Value::Boolean(form == Form::Text), name]);
        all.extend(rest);
        match crate::samples::fetch(&mut Args::new(lua, "call", 0, all)) {
            Ok(values) => Ok((true, values.into_iter().next().unwrap_or(Value::Nil))),
            Err(text) => Ok((false, Value::String(lua.create_string(text)?))),
        }
    })
}

thread_local! {
    static VARS: RefCell<HashMap<Box<[u8]>, VarRef>> = RefCell::default();
}

/// Names of variables that a thread keeps.
const MOST_NAMES: usize = 1024;

/// Lets go of all that is kept: scripts of another configuration begin.
pub fn forget() {
    VARS.take();
}

/// Sets a variable of a transaction; nil: it is none that is known by now.
fn set_var(_: &Lua, (id, name, value): (Value, Value, Value)) -> mlua::Result<Option<bool>> {
    let (Value::Integer(id), Value::String(name)) = (id, name) else { return Ok(None) };
    let id = u64::try_from(id).unwrap_or(0);
    let name = name.as_bytes();
    let known = VARS.with_borrow(|vars| vars.get(&*name).copied());
    // After a reload in place the slots of another program may be at hand.
    let known = known.filter(|_| !crate::here::is_other());
    let var = match known.or_else(|| slot(&name)) {
        Some(var) => var,
        None => return Ok(None),
    };
    let value = to_owned(&value);
    crate::changes::changed(id, var, Some(&value));
    Ok(Some(host::env(id, |env| lang::variables::write(env, var, Some(value))).is_some()))
}

fn slot(name: &[u8]) -> Option<VarRef> {
    let var = crate::txn::slot(std::str::from_utf8(name).ok()?)?;
    if !crate::here::is_other() {
        VARS.with_borrow_mut(|vars| {
            if vars.len() < MOST_NAMES {
                vars.insert(name.into(), var);
            }
        });
    }
    Some(var)
}

/// The fields of a head, name and value each behind its length, and how many there are; nil: there is no
/// head.
fn headers(lua: &Lua, (id, response): (Value, bool)) -> mlua::Result<(Option<mlua::String>, usize)> {
    let Value::Integer(id) = id else { return Ok((None, 0)) };
    let side = if response { Side::Response } else { Side::Request };
    let made = host::env(u64::try_from(id).unwrap_or(0), |env| {
        let head = env.head(side)?;
        let (mut all, mut count) = (bumpalo::collections::Vec::with_capacity_in(1024, env.arena), 0);
        for (_, name, value) in head.fields() {
            all.extend_from_slice(&u32::try_from(name.len()).ok()?.to_le_bytes());
            all.extend(name.iter().map(u8::to_ascii_lowercase));
            all.extend_from_slice(&u32::try_from(value.len()).ok()?.to_le_bytes());
            all.extend_from_slice(value);
            count += 1;
        }
        Some((lua.create_string(&all), count))
    });
    match made.flatten() {
        Some((blob, count)) => Ok((Some(blob?), count)),
        None => Ok((None, 0)),
    }
}
