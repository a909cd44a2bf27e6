//! Values on their way between Lua and the rest, and the arguments of functions that scripts call.

use lang::sample::Value as Sample;
use mlua::{Lua, MultiValue, Table, Value};
use model::vars::Owned;

/// What a function bound to Lua gives: its values, or what is said where it was called.
pub type Outcome = Result<MultiValue, String>;

/// The arguments of a call.
pub struct Args<'a> {
    lua: &'a Lua,
    name: &'a str,
    /// 1 where the first one is the object.
    shift: usize,
    all: Vec<Value>,
}

impl<'a> Args<'a> {
    /// Of a function, or of a method (`shift` is 1).
    pub fn new(lua: &'a Lua, name: &'a str, shift: usize, all: MultiValue) -> Args<'a> {
        Args { lua, name, shift, all: all.into_vec() }
    }

    /// How many there are, without the object.
    pub fn len(&self) -> usize {
        self.all.len().saturating_sub(self.shift)
    }

    /// The state.
    pub fn lua(&self) -> &Lua {
        self.lua
    }

    /// Argument `n`, from 1 on; nil where there is none.
    pub fn get(&self, n: usize) -> &Value {
        const NIL: Value = Value::Nil;
        self.all.get(n + self.shift - 1).unwrap_or(&NIL)
    }

    /// The object that a method was called on.
    pub fn object(&self) -> Result<&Table, String> {
        let own = self.all.first().and_then(Value::as_table);
        own.ok_or_else(|| format!("calling '{}' on bad self", self.name))
    }

    /// What stands in its first place.
    pub fn own<T: mlua::FromLua>(&self) -> Result<T, String> {
        self.object()?.raw_get(0).map_err(|_| format!("calling '{}' on bad self", self.name))
    }

    /// What is said of a wrong argument.
    pub fn bad(&self, n: usize, why: &str) -> String {
        format!("bad argument #{n} to '{}' ({why})", self.name)
    }

    fn expected(&self, n: usize, what: &str) -> String {
        let got = match self.get(n) {
            Value::Nil if n > self.len() => "no value",
            Value::Integer(_) => "number",
            other => other.type_name(),
        };
        self.bad(n, &format!("{what} expected, got {got}"))
    }

    /// A string, or a number as one.
    pub fn bytes(&self, n: usize) -> Result<Vec<u8>, String> {
        match self.get(n) {
            Value::String(s) => Ok(s.as_bytes().to_vec()),
            other @ (Value::Integer(_) | Value::Number(_)) => {
                let text = self.lua.coerce_string(other.clone()).ok().flatten();
                Ok(text.map(|s| s.as_bytes().to_vec()).unwrap_or_default())
            }
            _ => Err(self.expected(n, "string")),
        }
    }

    /// The same as text; other bytes are replaced.
    pub fn text(&self, n: usize) -> Result<String, String> {
        Ok(String::from_utf8_lossy(&self.bytes(n)?).into_owned())
    }

    /// The same, where it may be missing.
    pub fn text_or_none(&self, n: usize) -> Result<Option<String>, String> {
        if self.get(n).is_nil() { Ok(None) } else { self.text(n).map(Some) }
    }

    /// An integer, or what can be one.
    pub fn int(&self, n: usize) -> Result<i64, String> {
        let number = match self.get(n) {
            Value::Integer(i) => return Ok(*i),
            Value::Number(f) => *f,
            Value::String(s) => {
                let text = s.to_string_lossy();
                if let Ok(i) = text.trim().parse::<i64>() {
                    return Ok(i);
                }
                text.trim().parse::<f64>().map_err(|_| self.expected(n, "number"))?
            }
            _ => return Err(self.expected(n, "number")),
        };
        if number.fract() == 0.0 && number.abs() < 9.3e18 {
            return Ok(number as i64);
        }
        Err(self.bad(n, "number has no integer representation"))
    }

    /// The same, where it may be missing.
    pub fn int_or(&self, n: usize, default: i64) -> Result<i64, String> {
        if self.get(n).is_nil() { Ok(default) } else { self.int(n) }
    }

    /// A number.
    pub fn number(&self, n: usize) -> Result<f64, String> {
        match self.get(n) {
            Value::Number(f) => Ok(*f),
            _ => self.int(n).map(|i| i as f64),
        }
    }

    /// Whether it is neither nil nor false.
    pub fn truth(&self, n: usize) -> bool {
        !matches!(self.get(n), Value::Nil | Value::Boolean(false))
    }

    /// A table.
    pub fn table(&self, n: usize) -> Result<Table, String> {
        self.get(n).as_table().cloned().ok_or_else(|| self.expected(n, "table"))
    }

    /// A function.
    pub fn function(&self, n: usize) -> Result<mlua::Function, String> {
        self.get(n).as_function().cloned().ok_or_else(|| self.expected(n, "function"))
    }

    /// Whether there are as many as there must be.
    pub fn want(&self, least: usize, most: usize) -> Result<(), String> {
        let (n, name) = (self.len(), self.name);
        if n >= least && n <= most {
            return Ok(());
        }
        Err(match least == most {
            true => format!("'{name}' needs {least} arguments"),
            false => format!("'{name}' needs between {least} and {most} arguments"),
        })
    }
}

/// Values as a result.
pub fn give<T: mlua::IntoLuaMulti>(lua: &Lua, values: T) -> Outcome {
    values.into_lua_multi(lua).map_err(|e| crate::failure::words(&e))
}

/// Functions bound to Lua: name, arguments before those that messages count, function.
pub type Bound = (&'static str, usize, fn(&mut Args<'_>) -> Outcome);

/// Stands in front of what is said without the place in the script.
pub const BARE: char = '\0';

/// Nothing as a result.
pub fn nothing() -> Outcome {
    Ok(MultiValue::new())
}

/// What Lua said itself.
pub fn inner<T>(result: mlua::Result<T>) -> Result<T, String> {
    result.map_err(|e| crate::failure::words(&e))
}

/// How samples reach scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As what they are, but booleans are integers (`pre-3.1-bug`).
    Old,
    /// As what they are.
    Plain,
    /// As strings.
    Text,
}

/// A sample as a script gets it.
pub fn to_lua(lua: &Lua, sample: Sample<'_>, form: Form) -> mlua::Result<Value> {
    Ok(match (sample, form) {
        (Sample::Bool(b), Form::Plain) => Value::Boolean(b),
        (Sample::Bool(b), Form::Old) => Value::Integer(b.into()),
        (Sample::Int(i), Form::Plain | Form::Old) => Value::Integer(i),
        (Sample::Str(s) | Sample::Bin(s) | Sample::Method(s), _) => Value::String(lua.create_string(s)?),
        (other, _) => {
            let mut text = Vec::new();
            other.append_text(&mut text);
            Value::String(lua.create_string(text)?)
        }
    })
}

/// A value of a script's as a sample that can be kept. What has no form as one is `false`, as in HAProxy.
pub fn to_owned(value: &Value) -> Owned {
    match value {
        Value::Boolean(b) => Owned::Bool(*b),
        Value::Integer(i) => Owned::Int(*i),
        // As Lua has it, one with a fraction is no integer.
        Value::Number(f) => Owned::Int(if f.fract() == 0.0 { *f as i64 } else { 0 }),
        Value::String(s) => Owned::Str(s.as_bytes().to_vec().into()),
        _ => Owned::Bool(false),
    }
}

/// The same in the arena of an evaluation.
pub fn to_sample<'a>(value: &Value, arena: &'a bumpalo::Bump) -> Sample<'a> {
    Sample::from_owned(&to_owned(value), arena)
}
