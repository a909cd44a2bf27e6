//! The class `CertCache`: certificates that scripts change; and `ACME`, whose certificates there are none of.

use std::rc::Rc;

use mlua::{Table, Value};

use crate::here::with_worker;
use crate::value::{Args, BARE, Bound, Outcome, inner, nothing};

/// Functions of both classes.
pub const BOUND: &[Bound] = &[("certcache.set", 0, set), ("acme.challenge_ready", 0, challenge_ready)];

fn bare<T>(text: &str) -> Result<T, String> {
    Err(format!("{BARE}{text}"))
}

/// `CertCache.set`: `set ssl cert` for each field, then `commit ssl cert`. A fault leaves all as it was.
fn set(args: &mut Args<'_>) -> Outcome {
    let table = match args.get(1) {
        Value::Table(table) if args.len() == 1 => table.clone(),
        _ => return Err("'CertCache.set' needs a table as argument".into()),
    };
    if !crate::clock::yields() {
        return Err("Cannot use CertCache.set from a non-yield capable runtime context".into());
    }
    let Value::String(name) = inner(table.raw_get("filename"))? else {
        return bare("No filename specified!");
    };
    let name = name.to_string_lossy();
    let fields = fields(&table, &name)?;
    let worker = with_worker(Rc::clone);
    let Some(worker) = worker.filter(|w| w.shared.program.tls.has_cert(&name)) else {
        return bare("Can't replace a certificate which is not referenced by the configuration!");
    };
    let store = &worker.shared.program.tls;
    if fields.is_empty() {
        return nothing();
    }
    for (typed, payload) in &fields {
        if let Err(why) = store.set_cert(typed, payload) {
            let _ = store.abort_cert(&name);
            return bare(&why);
        }
    }
    if let Err(why) = store.commit_cert(&name) {
        let _ = store.abort_cert(&name);
        return bare(&why);
    }
    engine::responder::start(&worker);
    nothing()
}

/// What is to be set, as the runtime API calls it, and to what.
fn fields(table: &Table, name: &str) -> Result<Vec<(String, String)>, String> {
    let mut pem = String::new();
    let mut rest = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = inner(pair)?;
        let text = |value: &Value| value.as_string().map(|s| s.to_string_lossy());
        let key = text(&key).unwrap_or_default();
        let value = match (text(&value), &*key) {
            (_, "filename") => continue,
            (Some(value), _) => value,
            (None, _) => return bare(&format!("Invalid value for field '{key}'")),
        };
        match &*key {
            // A certificate without its key is no use before both are there.
            "crt" => pem.insert_str(0, &(value + "\n")),
            "key" => pem += &value,
            "ocsp" | "issuer" | "sctl" => rest.push((format!("{name}.{key}"), value)),
            _ => return bare(&format!("Unsupported field '{key}'")),
        }
    }
    let key_only = !pem.is_empty() && matches!(table.raw_get::<Value>("crt"), Ok(Value::Nil));
    if !pem.is_empty() {
        rest.insert(0, (if key_only { format!("{name}.key") } else { name.to_owned() }, pem));
    }
    Ok(rest)
}

/// There are no certificates of ACME here, so none is found.
fn challenge_ready(args: &mut Args<'_>) -> Outcome {
    let (name, _domain) = (args.text(1)?, args.text(2)?);
    Err(format!("ACME.challenge_ready: certificate '{name}' not found"))
}
