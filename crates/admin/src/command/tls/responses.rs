//! `show ssl ocsp-response`, `set ssl ocsp-response`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tls::ocsp;
use tls::store::Known;

use super::{decode, encode};
use crate::cli::call::{Call, Outcome, Refusal, Reply};

fn key(id: &[u8]) -> String {
    ocsp::hex(id).to_ascii_lowercase()
}

/// `show ssl ocsp-response [[text|base64] <id|path>]`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let all = call.shared().program.tls.responses();
    let (base64, which) = match (call.arg(0), call.arg(1)) {
        ("", _) => return Ok(Reply::Dump(list(&all))),
        ("text" | "base64", "") => {
            return Err("'show ssl ocsp-response [text|base64]' expects a valid certid.".into());
        }
        ("text", which) => (false, which),
        ("base64", which) => (true, which),
        (which, _) => (false, which),
    };
    let wanted = Refusal::from("'show ssl ocsp-response' expects a valid certid or certificate path.");
    let response: Option<Arc<[u8]>> = all
        .into_iter()
        .find(|known| *known.name == *which || key(&known.id) == which)
        .and_then(|known| known.response);
    let response = response.ok_or(wanted)?;
    Ok(Reply::Dump(match base64 {
        true => encode(&response) + "\n",
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
    let bytes = decode(text)
        .ok_or(Refusal::from("'set ssl ocsp-response' received invalid base64 encoded response."))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
    let taken = call.shared().program.tls.set_response(&bytes, now, false);
    taken.map_err(|e| Refusal::from(format!("{}.", e.words().trim_end_matches('.'))))?;
    Ok(Reply::info("OCSP Response updated!"))
}
