//! What a rule changed: the request before it and after it, side by side.

use lang::sample::Value;
use model::vars::{Owned, Scope};
use model::{Conn, Txn};
use program::Program;

use crate::report::Change;
use crate::seen::printable;

/// The scopes a rule can write, with their prefix.
const SCOPES: [(Scope, &str); 4] =
    [(Scope::Sess, "sess"), (Scope::Txn, "txn"), (Scope::Req, "req"), (Scope::Res, "res")];

/// The request as it stood at one moment.
pub struct Snapshot {
    line: String,
    fields: Vec<(String, String)>,
    vars: Vec<(String, Option<String>)>,
    addresses: (String, String),
    decisions: String,
    overrides: String,
}

impl Snapshot {
    /// As it stands.
    pub fn of(program: &Program, conn: &Conn, txn: &Txn) -> Snapshot {
        let d = &txn.decisions;
        let plain = model::txn::Decisions { src: None, dst: None, ..d.clone() };
        Snapshot {
            line: line(txn),
            fields: fields(txn),
            vars: variables(program, conn, txn),
            addresses: (
                d.src.unwrap_or_else(|| conn.src.get()).to_string(),
                d.dst.unwrap_or_else(|| conn.dst.get()).to_string(),
            ),
            decisions: format!("{plain:?}"),
            overrides: format!("{:?}", txn.overrides),
        }
    }

    /// What is different now, one sentence each.
    pub fn until(&self, now: &Snapshot) -> Vec<String> {
        let mut out = Vec::new();
        if self.line != now.line {
            out.push(format!("request line: {}", now.line));
        }
        for (change, name, value) in compare(&self.fields, &now.fields) {
            match change {
                Change::Kept => {}
                Change::Added => out.push(format!("+ {name}: {value}")),
                Change::Removed => out.push(format!("- {name}: {value}")),
            }
        }
        for ((name, was), (_, is)) in self.vars.iter().zip(&now.vars) {
            match is {
                _ if was == is => {}
                Some(value) => out.push(format!("{name} = {value}")),
                None => out.push(format!("{name} is forgotten")),
            }
        }
        if self.addresses.0 != now.addresses.0 {
            out.push(format!("source: {}", now.addresses.0));
        }
        if self.addresses.1 != now.addresses.1 {
            out.push(format!("destination: {}", now.addresses.1));
        }
        if out.is_empty() && (self.decisions != now.decisions || self.overrides != now.overrides) {
            out.push("set for this request".into());
        }
        out
    }

    /// Method, target and version.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// What became of each field.
    pub fn fields_until(&self, now: &Snapshot) -> Vec<(Change, String, String)> {
        compare(&self.fields, &now.fields)
    }
}

fn line(txn: &Txn) -> String {
    if !txn.has_req {
        return String::new();
    }
    let text = String::from_utf8_lossy;
    format!("{} {} {}", text(txn.req.method()), text(txn.req.target()), txn.req.version().as_str())
}

fn fields(txn: &Txn) -> Vec<(String, String)> {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    txn.req.fields().map(|(_, name, value)| (text(name), text(value))).collect()
}

fn variables(program: &Program, conn: &Conn, txn: &Txn) -> Vec<(String, Option<String>)> {
    let mut out = Vec::new();
    for (scope, prefix) in SCOPES {
        for (slot, name) in (0u16..).zip(program.vars.of(scope)) {
            let show = |v: &Owned| owned(v);
            let value = match scope {
                Scope::Sess => conn.vars.borrow().get(slot).map(show),
                Scope::Txn => txn.txn_vars.borrow().get(slot).map(show),
                Scope::Req => txn.req_vars.borrow().get(slot).map(show),
                _ => txn.res_vars.borrow().get(slot).map(show),
            };
            out.push((format!("{prefix}.{name}"), value));
        }
    }
    out
}

fn owned(value: &Owned) -> String {
    let arena = bumpalo::Bump::new();
    printable(Value::from_owned(value, &arena))
}

/// Those that went first, then those that are there.
fn compare(before: &[(String, String)], after: &[(String, String)]) -> Vec<(Change, String, String)> {
    let mut left: Vec<Option<&(String, String)>> = before.iter().map(Some).collect();
    let present: Vec<_> = after
        .iter()
        .map(|field| {
            let old = left.iter_mut().find(|f| **f == Some(field));
            let change = if old.is_some() { Change::Kept } else { Change::Added };
            if let Some(old) = old {
                *old = None;
            }
            (change, field.0.clone(), field.1.clone())
        })
        .collect();
    let gone = left.into_iter().flatten().map(|(n, v)| (Change::Removed, n.clone(), v.clone()));
    gone.chain(present).collect()
}
