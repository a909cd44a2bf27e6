//! The arguments of `return`, `deny` and `tarpit`: status, headers, payload.

use std::sync::Arc;

use super::Reading;
use crate::action::{Payload, Reply};
use crate::logfmt::LogFormat;
use crate::names::Missing;
use crate::words::Fault;

/// Whose arguments are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `return`: without a payload the answer is empty.
    Answer,
    /// `deny`, `tarpit`: without arguments, or with `deny_status` alone, the proxy's error message is sent.
    Denial,
}

#[derive(Default)]
struct Draft {
    status: Option<u16>,
    content_type: Option<Arc<str>>,
    /// The keyword of the payload, and the payload.
    payload: Option<(String, Payload)>,
    errorfiles: Option<String>,
    /// The built-in messages are asked for.
    defaults: bool,
    headers: Vec<(Box<[u8]>, LogFormat)>,
}

/// Reads arguments up to the condition.
pub(super) fn parse(reading: &mut Reading<'_, '_>, default: u16, kind: Kind) -> Result<Reply, Fault> {
    let mut draft = Draft::default();
    if kind == Kind::Denial {
        let at = reading.words.position();
        if reading.words.take_if("deny_status") {
            draft.status = Some(status(reading).map_err(|f| f.at(at))?);
        }
        // Any other argument, `status` among them, makes the denial an answer of its own.
        if reading.is_over() {
            draft.defaults = true;
            draft.payload = Some(("default-errorfiles".into(), Payload::ErrorFile));
        }
    }
    while !reading.is_over() {
        let at = reading.words.position();
        let Some(word) = reading.words.peek_str().map(str::to_owned) else { break };
        reading.words.take();
        match word.as_str() {
            "status" => draft.status = Some(status(reading).map_err(|f| f.at(at))?),
            "content-type" => {
                draft.content_type = Some(reading.word("'content-type' expects <ctype> as argument")?.into())
            }
            "hdr" => draft.headers.push(header(reading)?),
            _ if PAYLOADS.contains(&word.as_str()) => {
                payload(reading, &word, &mut draft).map_err(|f| f.at(at))?
            }
            _ => {
                reading.words.seek(at);
                break;
            }
        }
    }
    finish(reading, draft, default)
}

/// The statuses that have error messages.
const HANDLED: &[u16] = &[
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502, 503, 504,
];

const PAYLOADS: &[&str] =
    &["default-errorfiles", "errorfile", "errorfiles", "file", "lf-file", "string", "lf-string"];

fn status(reading: &mut Reading<'_, '_>) -> Result<u16, Fault> {
    let word = reading.word("'status' expects <status_code> as argument")?;
    // Leading digits count, and numbers of more than 32 bits wrap around, as in HAProxy.
    let code = crate::sample::parse_int(word.as_bytes()).unwrap_or(0) as i32;
    u16::try_from(code)
        .ok()
        .filter(|n| (200..=599).contains(n))
        .ok_or_else(|| Fault::new(format!("Unexpected status code '{code}'")))
}

fn header(reading: &mut Reading<'_, '_>) -> Result<(Box<[u8]>, LogFormat), Fault> {
    let missing = "'hdr' expects <name> and <value> as arguments";
    let name = reading.word(missing)?;
    let value = reading.format(missing)?;
    Ok((name.into_bytes().into(), value))
}

fn payload(reading: &mut Reading<'_, '_>, word: &str, draft: &mut Draft) -> Result<(), Fault> {
    if let Some((other, _)) = &draft.payload {
        return Err(Fault::new(format!("unexpected '{word}' argument, '{other}' already defined")));
    }
    let missing = |what: &str| format!("'{word}' expects {what} as argument");
    let payload = match word {
        "default-errorfiles" => {
            draft.defaults = true;
            Payload::ErrorFile
        }
        "errorfile" => {
            let path = reading.word(&missing("<fmt>"))?;
            Payload::Message(file(reading, &path)?.into())
        }
        "errorfiles" => {
            draft.errorfiles = Some(reading.word(&missing("<name>"))?);
            Payload::ErrorFile
        }
        "file" => {
            let path = reading.word(&missing("<file>"))?;
            Payload::Bytes(file(reading, &path)?.into())
        }
        "lf-file" => {
            let path = reading.word(&missing("<file>"))?;
            let text = file(reading, &path)?;
            Payload::Format(Arc::new(LogFormat::parse(&text, reading.at.place, reading.reg, reading.names)?))
        }
        "string" => Payload::Bytes(reading.word(&missing("<str>"))?.into_bytes().into()),
        _ => Payload::Format(Arc::new(reading.format(&missing("<fmt>"))?)),
    };
    draft.payload = Some((word.to_owned(), payload));
    Ok(())
}

fn file(reading: &mut Reading<'_, '_>, path: &str) -> Result<Vec<u8>, Fault> {
    reading.names.read_file(path).map_err(|_| Fault::new(format!("error opening file '{path}'")))
}

/// The message that an `http-errors` section has for a status; where it has none the proxy's own takes its
/// place.
fn section_message(reading: &mut Reading<'_, '_>, section: &str, status: u16) -> Payload {
    let missing = match reading.names.error_file(section, status) {
        Ok(Some(message)) => return Payload::Message(message),
        // The built-in message takes its place.
        Ok(None) => Missing::Remark(format!(
            "status '{status}' referenced by an http reply not declared in http-errors section '{section}'"
        )),
        Err(fault) => Missing::Rule(format!("{} referenced by an http reply ", fault.text)),
    };
    reading.names.miss(missing);
    Payload::ErrorFile
}

fn finish(reading: &mut Reading<'_, '_>, mut draft: Draft, default: u16) -> Result<Reply, Fault> {
    let status = draft.status.unwrap_or(default);
    if draft.defaults && !HANDLED.contains(&status) {
        let text =
            format!("status code '{status}' not handled by default with 'default-errorfiles' argument.");
        return Err(Fault::new(text));
    }
    let payload = match (draft.payload, draft.errorfiles) {
        (_, Some(section)) => section_message(reading, &section, status),
        (Some((_, payload)), None) => payload,
        (None, None) => Payload::Empty,
    };
    if matches!(payload, Payload::ErrorFile | Payload::Message(_)) && !draft.headers.is_empty() {
        reading.names.warn("hdr parameters ignored by the http reply when used with an errorfile.".into());
        draft.headers.clear();
    }
    let own = match &payload {
        Payload::Bytes(bytes) => !bytes.is_empty(),
        Payload::Format(format) => format.constant() != Some(b""),
        _ => false,
    };
    if own && draft.content_type.is_none() {
        return Err(Fault::new("a content type must be defined when non-empty payload is configured"));
    }
    if let (false, Some(ctype)) = (own, &draft.content_type) {
        reading.names.warn(format!(
            "content-type '{ctype}' ignored by the http reply because neither errorfile nor payload defined."
        ));
    }
    Ok(Reply {
        status,
        headers: draft.headers.into(),
        computed: Vec::new(),
        content_type: draft.content_type.filter(|_| own),
        payload,
        keep_alive: true,
    })
}
