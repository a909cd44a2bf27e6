//! Reading and writing variables, wherever their scope keeps them (manual, section 2.8).

use model::vars::{Owned, Scope, VarRef};

use crate::env::Env;
use crate::sample::Value;

/// The value of a variable, its bytes copied into the arena.
pub(crate) fn read<'a>(env: &Env<'a>, var: VarRef) -> Option<Value<'a>> {
    let copy = |v: &Owned| Value::from_owned(v, env.arena);
    match var.scope {
        Scope::Proc => env.live.world().vars.get(var.slot).map(|v| copy(&v)),
        Scope::Sess => env.conn.vars.borrow().get(var.slot).map(copy),
        Scope::Txn => env.txn.txn_vars.borrow().get(var.slot).map(copy),
        Scope::Req => env.txn.req_vars.borrow().get(var.slot).map(copy),
        Scope::Res => env.txn.res_vars.borrow().get(var.slot).map(copy),
        Scope::Check => env.txn.check_vars.borrow().get(var.slot).map(copy),
    }
}

/// Sets a variable, or forgets it with `None`.
pub(crate) fn write(env: &Env<'_>, var: VarRef, value: Option<Owned>) {
    let slot = var.slot;
    match var.scope {
        Scope::Proc => env.live.world().vars.set(slot, value),
        Scope::Sess => drop(env.conn.vars.borrow_mut().set(slot, value)),
        Scope::Txn => drop(env.txn.txn_vars.borrow_mut().set(slot, value)),
        Scope::Req => drop(env.txn.req_vars.borrow_mut().set(slot, value)),
        Scope::Res => drop(env.txn.res_vars.borrow_mut().set(slot, value)),
        Scope::Check => drop(env.txn.check_vars.borrow_mut().set(slot, value)),
    }
}

/// When a variable may be set: the words after its name in `set-var(txn.x,ifset)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// `ifexists`: only if it exists.
    Exists,
    /// `ifnotexists`: only if it does not.
    NotExists,
    /// `ifempty`: only to an empty value; numbers and addresses are never empty.
    Empty,
    /// `ifnotempty`: only to a value that is not empty.
    NotEmpty,
    /// `ifset`: only if it has a value.
    Set,
    /// `ifnotset`: only if it has none.
    NotSet,
    /// `ifgt`: only if it is greater than the new value, as far as both are integers.
    Greater,
    /// `iflt`: only if it is less than the new value, as far as both are integers.
    Less,
}

impl When {
    /// The condition of a word.
    pub(crate) fn from_name(name: &str) -> Option<When> {
        Some(match name {
            "ifexists" => When::Exists,
            "ifnotexists" => When::NotExists,
            "ifempty" => When::Empty,
            "ifnotempty" => When::NotEmpty,
            "ifset" => When::Set,
            "ifnotset" => When::NotSet,
            "ifgt" => When::Greater,
            "iflt" => When::Less,
            _ => return None,
        })
    }

    /// Whether a variable that holds `old` may be set to `new`.
    pub(crate) fn holds(self, old: Option<Value<'_>>, new: Value<'_>) -> bool {
        match self {
            When::Exists | When::Set => old.is_some(),
            When::NotExists | When::NotSet => old.is_none(),
            When::Empty => is_empty(new),
            When::NotEmpty => !is_empty(new),
            When::Greater => !matches!((old, new), (Some(Value::Int(a)), Value::Int(b)) if a <= b),
            When::Less => !matches!((old, new), (Some(Value::Int(a)), Value::Int(b)) if a >= b),
        }
    }
}

fn is_empty(value: Value<'_>) -> bool {
    matches!(value, Value::Str(b"") | Value::Bin(b""))
}
