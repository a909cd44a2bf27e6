//! All variables as text (section 7.3.2, `dump_all_vars`).

use model::vars::{Scope, VarRef};

use crate::arg::{Arg, arg};
use crate::entry::FetchDef;
use crate::env::Env;
use crate::names::Names;
use crate::places::CONSTANT;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

/// Scopes in the order in which they are shown.
const SCOPES: [(&str, Scope); 5] = [
    ("sess", Scope::Sess),
    ("txn", Scope::Txn),
    ("req", Scope::Req),
    ("res", Scope::Res),
    ("proc", Scope::Proc),
];

pub(super) const FETCHES: &[FetchDef] = &[FetchDef::new(
    "dump_all_vars",
    Type::Str,
    CONSTANT,
    dump,
    "All variables of a scope, or of all, whose names begin so, as name=value.",
)
.args("[string,string,string]", "dump_all_vars(txn)")
.check(check)
.volatile()];

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let scope = arg(args, 0).bytes().unwrap_or_default();
    if scope.is_empty() || SCOPES.iter().any(|(name, _)| name.as_bytes() == scope) {
        return Ok(());
    }
    let scope = String::from_utf8_lossy(scope);
    Err(Fault::new(format!("invalid scope '{scope}', must be one of 'sess', 'txn', 'req', 'res', or 'proc'")))
}

fn dump<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let wanted = arg(args, 0).bytes().unwrap_or_default();
    let prefix = arg(args, 1).bytes().unwrap_or_default();
    let between = arg(args, 2).bytes().filter(|d| !d.is_empty()).unwrap_or(b", ");
    let mut out = Vec::new();
    for (word, scope) in SCOPES.iter().filter(|(name, _)| wanted.is_empty() || name.as_bytes() == wanted) {
        for (slot, name) in env.live.variables(*scope).iter().enumerate() {
            let var = VarRef { scope: *scope, slot: slot as u16 };
            let Some(value) =
                crate::variables::read(env, var).filter(|_| name.as_bytes().starts_with(prefix))
            else {
                continue;
            };
            if !out.is_empty() {
                out.extend_from_slice(between);
            }
            out.extend_from_slice(word.as_bytes());
            out.push(b'.');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            append(value, &mut out);
        }
    }
    if out.len() >= env.live.buffer_size() {
        return Err(Miss::None);
    }
    Ok(Value::Str(env.arena.alloc_slice_copy(&out)))
}

fn append(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Str(text) | Value::Method(text) => {
            out.push(b'"');
            for c in text {
                match c {
                    b'"' | b'\\' => out.extend([b'\\', *c]),
                    b'\r' => out.extend(b"\\r"),
                    b'\n' => out.extend(b"\\n"),
                    8 => out.extend(b"\\b"),
                    0 => out.extend(b"\\0"),
                    c => out.push(*c),
                }
            }
            out.push(b'"');
        }
        Value::Bin(bytes) => {
            out.push(b'x');
            out.extend(bytes.iter().flat_map(|b| format!("{b:02x}").into_bytes()));
        }
        Value::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        other => other.append_text(out),
    }
}
