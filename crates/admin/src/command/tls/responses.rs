//! `show|set|update ssl ocsp-response`, `show ssl ocsp-updates`.

use std::fmt::Write as _;
use std::pin::Pin;

use base::base64;
use tls::ocsp;
use tls::store::{Came, Known};

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["set", "ssl", "ocsp-response"],
        "<resp|payload>",
        "take an OCSP response for the certificate that it is about",
        Level::Admin,
        set,
    ),
    Command::now(
        &["show", "ssl", "ocsp-response"],
        "[[text|base64] id]",
        "OCSP responses, or one of them",
        Level::Admin,
        show,
    ),
    Command::now(
        &["show", "ssl", "ocsp-updates"],
        "",
        "when OCSP responses are asked for, and what came of it",
        Level::Admin,
        updates,
    ),
    Command::later(
        &["update", "ssl", "ocsp-response"],
        "<certfile>",
        "ask the responder of a certificate for its OCSP response",
        Level::Admin,
        update,
    ),
];

fn key(id: &[u8]) -> String {
    tls::text::hex(id).to_ascii_lowercase()
}

/// `show ssl ocsp-response [[text|base64] <id|path>]`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let all = call.shared().program.tls.responses();
    let (coded, which) = match (call.arg(0), call.arg(1)) {
        ("", _) if all.is_empty() => return Ok(Reply::Done),
        ("", _) => return Ok(Reply::Dump(list(&all))),
        ("text" | "base64", "") => {
            return Err("'show ssl ocsp-response [text|base64]' expects a valid certid.".into());
        }
        ("text", which) => (false, which),
        ("base64", which) => (true, which),
        (which, _) => (false, which),
    };
    let wanted = Refusal::from(match which.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => "Certificate ID or path does not match any certificate.",
        false => "'show ssl ocsp-response' expects a valid certid or certificate path.",
    });
    let known = all.into_iter().find(|known| *known.name == *which || key(&known.id) == which);
    let Some(response) = known.ok_or(wanted)?.response else { return Ok(Reply::Done) };
    Ok(Reply::Dump(match coded {
        true => base64::encode(&response),
        false => ocsp::text(&response).map_err(|e| Refusal::from(format!("{}.", e.words())))?,
    }))
}

fn list(all: &[Known]) -> String {
    let mut out = String::from("# Certificate IDs\n");
    for known in all {
        let _ = writeln!(out, "Certificate ID key : {}", key(&known.id));
        let _ = writeln!(out, "Certificate path : {}\n Certificate ID:", known.name);
        out.push_str(&ocsp::id_text(&known.id, "   ", false).unwrap_or_default());
    }
    out
}

/// `set ssl ocsp-response <response|payload>`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    let text = call.payload.unwrap_or(call.arg(0));
    if text.is_empty() {
        return Err("'set ssl ocsp-response' expects response in base64 encoding.".into());
    }
    let bytes = base64::decode_lines(text.as_bytes())
        .ok_or(Refusal::from("'set ssl ocsp-response' received invalid base64 encoded response."))?;
    let now = i64::try_from(rt::wall().as_secs()).unwrap_or(i64::MAX);
    let taken = call.shared().program.tls.set_response(&bytes, now, false);
    taken.map_err(|e| Refusal::from(format!("{}.", e.words().trim_end_matches('.'))))?;
    Ok(Reply::info("OCSP Response updated!"))
}

/// `show ssl ocsp-updates`.
pub fn updates(call: &mut Call<'_>) -> Outcome {
    let mut out = String::from(
        "OCSP Certid | Path | Next Update | Last Update | Successes | Failures | Last Update Status | Last Update Status (str)\n",
    );
    let program = &call.shared().program;
    let now = i64::try_from(rt::wall().as_secs()).unwrap_or(i64::MAX);
    for (id, update) in program.tls.updates(program.global.ocsp.pace, now) {
        let (number, words) = update.came.words();
        let last = update.last.map_or("-".to_owned(), crate::cli::date::zoned);
        let _ = writeln!(
            out,
            "{} | {} | {} | {last} | {} | {} | {number} | {words}",
            key(&id),
            update.name,
            crate::cli::date::zoned(update.next),
            update.successes,
            update.failures,
        );
    }
    Ok(Reply::Dump(out))
}

/// `update ssl ocsp-response <certfile>`.
pub fn update<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let name = call.arg(0).to_owned();
        if name.is_empty() {
            return Err("'update ssl ocsp-response' expects a filename".into());
        }
        let store = call.shared().program.tls.clone();
        if !store.has_cert(&name) {
            return Err(format!(
                "Unknown certificate! 'update ssl ocsp-response' expects an already known certificate file name.\nCan't send ocsp request for {name}!"
            )
            .into());
        }
        let Some(question) = store.question(&name) else {
            return Err(format!(
                "'update ssl ocsp-response' only works on certificates that already have a known OCSP response.\nCan't send ocsp request for {name}!"
            )
            .into());
        };
        let refused = || Refusal::from(format!("Can't send ocsp request for {name}!"));
        let worker = call.worker.clone();
        match engine::responder::update(&worker, &name, &question).await {
            Came::Updated => {
                let response = store.ocsp_response(&name).ok_or_else(refused)?;
                Ok(Reply::Dump(ocsp::text(&response).unwrap_or_default()))
            }
            came => Err(format!("{}.", came.words().1).into()),
        }
    })
}
