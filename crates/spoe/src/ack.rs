//! What an agent's answer does: variables are set and forgotten, as far as the agent may.

use std::collections::HashMap;

use engine::worker::with_worker;
use lang::action::Exec;
use lang::variables::write;
use model::vars::{Owned, Scope, VarRef};
use wire::spop::{self, Action, Actions, Data};

use crate::agent::{Agent, Known};

/// Does what the payload of an ACK frame asks for, up to what can't be read.
pub fn apply(agent: &Agent, payload: &[u8], exec: &Exec<'_>) {
    for action in Actions::new(payload) {
        match action {
            Ok(Action::SetVar { scope, name, value }) => put(agent, scope, name, owned(value), exec),
            Ok(Action::UnsetVar { scope, name }) => put(agent, scope, name, None, exec),
            Err(_) => break,
        }
    }
}

fn owned(value: Data<'_>) -> Option<Owned> {
    Some(match value {
        Data::Bool(set) => Owned::Bool(set),
        Data::Int32(n) | Data::Int64(n) => Owned::Int(n),
        Data::Uint32(n) | Data::Uint64(n) => Owned::Int(n.cast_signed()),
        Data::Ipv4(address) => Owned::Ipv4(address),
        Data::Ipv6(address) => Owned::Ipv6(address),
        Data::Text(bytes) => Owned::Str(bytes.into()),
        Data::Binary(bytes) => Owned::Bin(bytes.into()),
        // Nothing to be had: the variable has no value.
        Data::Null | Data::Unknown(_) => return None,
    })
}

fn put(agent: &Agent, scope: spop::Scope, name: &[u8], value: Option<Owned>, exec: &Exec<'_>) {
    let (scope, at) = match scope {
        spop::Scope::Process => (Scope::Proc, 0),
        spop::Scope::Session => (Scope::Sess, 1),
        spop::Scope::Transaction => (Scope::Txn, 2),
        spop::Scope::Request => (Scope::Req, 3),
        spop::Scope::Response => (Scope::Res, 4),
    };
    let known = agent.known.get_or_init(|| known(&agent.prefix, exec));
    let found = known.get(at).and_then(|names: &HashMap<_, _>| names.get(name)).copied();
    match found {
        Some(var) => write(&exec.env(), var, value),
        None if agent.forces && is_name(name) => force(agent, scope, name, value, exec),
        None => {}
    }
}

/// The variables that the configuration names behind the prefix of an agent.
fn known(prefix: &str, exec: &Exec<'_>) -> Known {
    [Scope::Proc, Scope::Sess, Scope::Txn, Scope::Req, Scope::Res].map(|scope| {
        let names = exec.live.variables(scope).iter().enumerate();
        let own = names.filter_map(|(slot, name)| {
            let name = name.strip_prefix(prefix)?.as_bytes();
            Some((name.into(), VarRef { scope, slot: u16::try_from(slot).ok()? }))
        });
        own.collect()
    })
}

/// Whether a variable may have this name.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
}

/// `option force-set-var`: a variable that nobody has named comes to be.
fn force(agent: &Agent, scope: Scope, name: &[u8], value: Option<Owned>, exec: &Exec<'_>) {
    let name = format!("{}{}", agent.prefix, String::from_utf8_lossy(name));
    if scope == Scope::Proc {
        exec.live.world().vars.set_aside(&format!("proc.{name}"), value);
        return;
    }
    let slot = |make: bool| {
        with_worker(|worker| {
            let vars = &worker.shared.program.vars;
            if make { vars.slot_late(scope, &name) } else { vars.find_late(scope, &name) }
        })
    };
    if let Some(Some(var)) = slot(value.is_some()) {
        write(&exec.env(), var, value);
    }
}
