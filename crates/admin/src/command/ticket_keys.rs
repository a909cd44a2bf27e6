//! Keys of TLS tickets: `show tls-keys`, `set ssl tls-key`.

use std::fmt::Write as _;

use base::base64;
use tls::tickets::Keys;

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["set", "ssl", "tls-key"],
        "[id|file] <key>",
        "add a key of TLS tickets, the oldest goes",
        Level::Admin,
        set,
    ),
    Command::now(&["show", "tls-keys"], "[id|*]", "keys of TLS tickets", Level::Admin, show),
];

/// The set of keys that `#id` or a file names.
fn find<'k>(all: &'k [std::sync::Arc<Keys>], name: &str) -> Option<(usize, &'k Keys)> {
    let by_number = name.strip_prefix('#').map(str::parse::<usize>);
    let at = match by_number {
        Some(number) => number.ok(),
        None => all.iter().position(|k| *k.file == *name),
    }?;
    Some((at, all.get(at)?))
}

/// `show tls-keys [id|*]`: the files, or the keys of one or of all.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let all = &call.shared().program.ticket_keys;
    let mut out = String::new();
    match call.arg(0) {
        "" => {
            out.push_str("# id (file)\n");
            for (id, keys) in all.iter().enumerate() {
                let _ = writeln!(out, "{id} ({})", keys.file);
            }
        }
        "*" => {
            out.push_str("# id secret\n");
            all.iter().enumerate().for_each(|(id, keys)| secrets(&mut out, id, keys));
        }
        name => {
            let found = find(all, name);
            let (id, keys) =
                found.ok_or(Refusal::from("'show tls-keys' unable to locate referenced filename"))?;
            out.push_str("# id secret\n");
            secrets(&mut out, id, keys);
        }
    }
    Ok(Reply::Dump(out))
}

fn secrets(out: &mut String, id: usize, keys: &Keys) {
    let _ = writeln!(out, "# {id} ({})", keys.file);
    for (number, raw) in keys.raw().iter().enumerate() {
        let _ = writeln!(out, "{id}.{number} {}", base64::encode(raw));
    }
}

/// `set ssl tls-key <id|file> <key>`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    if call.arg(0).is_empty() || call.arg(1).is_empty() {
        return Err("'set ssl tls-key' expects a filename and the new TLS key in base64 encoding.".into());
    }
    let found = find(&call.shared().program.ticket_keys, call.arg(0));
    let (_, keys) = found.ok_or(Refusal::from("'set ssl tls-key' unable to locate referenced filename"))?;
    let raw = base64::decode(call.arg(1).as_bytes())
        .ok_or(Refusal::from("'set ssl tls-key' received invalid base64 encoded TLS key."))?;
    keys.push(&raw).map_err(|_| Refusal::from("'set ssl tls-key' received a key of wrong size."))?;
    Ok(Reply::info("TLS ticket key updated!"))
}
