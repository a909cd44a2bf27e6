//! Reading and writing variables, wherever their scope keeps them (manual, section 2.8).

use std::cell::RefCell;
use std::sync::Arc;

use model::account::{Account, Limits};
use model::vars::{Owned, Scope, VarRef, Vars};

use crate::env::Env;
use crate::sample::Value;

/// Where the variables of a scope are.
enum Kept<'a> {
    Process,
    Here(&'a RefCell<Vars>),
    /// Nowhere: the request is over, there is no response yet, or no other stream.
    Nowhere,
}

fn kept<'a>(env: &Env<'a>, scope: Scope) -> Kept<'a> {
    let txn = env.txn;
    match scope {
        Scope::Proc => Kept::Process,
        Scope::Sess => Kept::Here(&env.conn.vars),
        Scope::Txn => Kept::Here(&txn.txn_vars),
        Scope::Req if !txn.responding => Kept::Here(&txn.req_vars),
        Scope::Res if txn.responding => Kept::Here(&txn.res_vars),
        Scope::Req | Scope::Res | Scope::Parent => Kept::Nowhere,
        Scope::Check => Kept::Here(&txn.check_vars),
    }
}

/// The value of a variable, its bytes copied into the arena.
pub fn read<'a>(env: &Env<'a>, var: VarRef) -> Option<Value<'a>> {
    let copy = |v: &Owned| Value::from_owned(v, env.arena);
    match kept(env, var.scope) {
        Kept::Here(vars) => vars.borrow().get(var.slot).map(copy),
        Kept::Process => env.live.world().vars.get(var.slot).map(|v| copy(&v)),
        Kept::Nowhere => None,
    }
}

/// Sets a variable, or forgets it with `None`, as far as the limits of its scope allow.
pub fn write(env: &Env<'_>, var: VarRef, value: Option<Owned>) {
    let world = env.live.world();
    match (kept(env, var.scope), world.vars.limits()) {
        (Kept::Process, _) => world.vars.set(var.slot, value),
        (Kept::Here(vars), None) => drop(vars.borrow_mut().set(var.slot, value)),
        (Kept::Here(vars), Some(limits)) => {
            account(env, var.scope, limits);
            vars.borrow_mut().set_limited(var.slot, value);
        }
        (Kept::Nowhere, _) => {}
    }
}

/// The account of a scope, within those of the scopes around it.
fn account(env: &Env<'_>, scope: Scope, limits: &Limits) -> Arc<Account> {
    let (most, around) = match scope {
        Scope::Proc => return limits.process.clone(),
        Scope::Sess => (limits.session, Scope::Proc),
        Scope::Txn => (limits.transaction, Scope::Sess),
        Scope::Check => (limits.check, Scope::Sess),
        Scope::Req | Scope::Res | Scope::Parent => (limits.message, Scope::Txn),
    };
    let make = || Account::new(most, Some(account(env, around, limits)));
    match kept(env, scope) {
        Kept::Here(vars) => vars.borrow_mut().account(make).clone(),
        Kept::Process | Kept::Nowhere => make(),
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
