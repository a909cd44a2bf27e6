//! The arguments of `return`, `deny` and `tarpit`: status, headers, payload.

use std::sync::Arc;

use super::Reading;
use crate::action::{Payload, Reply};
use crate::logfmt::LogFormat;
use crate::words::Fault;

/// Whose arguments are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `return`: without a payload the answer is empty.
    Answer,
    /// `deny`, `tarpit`: without a payload the proxy's error message is sent.
    Denial,
}

#[derive(Default)]
struct Draft {
    status: Option<u16>,
    content_type: Option<Arc<str>>,
    /// The keyword of the payload, and the payload.
    payload: Option<(String, Payload)>,
    errorfiles: Option<String>,
    headers: Vec<(Box<[u8]>, LogFormat)>,
}

/// Reads arguments up to the condition.
pub(super) fn parse(reading: &mut Reading<'_, '_>, default: u16, kind: Kind) -> Result<Reply, Fault> {
    let mut draft = Draft::default();
    while !reading.is_over() {
        let at = reading.words.position();
        let Some(word) = reading.words.peek_str().map(str::to_owned) else { break };
        reading.words.take();
        match word.as_str() {
            "status" | "deny_status" => draft.status = Some(status(reading).map_err(|f| f.at(at))?),
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
    finish(reading, draft, default, kind)
}

const PAYLOADS: &[&str] =
    &["default-errorfiles", "errorfile", "errorfiles", "file", "lf-file", "string", "lf-string"];

fn status(reading: &mut Reading<'_, '_>) -> Result<u16, Fault> {
    let word = reading.word("'status' expects <status_code> as argument")?;
    let code = word.parse::<i64>().unwrap_or(0);
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
        "default-errorfiles" => Payload::ErrorFile,
        "errorfile" => {
            let path = reading.word(&missing("<file>"))?;
            Payload::Message(reading.names.read_file(&path)?.into())
        }
        "errorfiles" => {
            draft.errorfiles = Some(reading.word(&missing("<http_errors_name>"))?);
            Payload::ErrorFile
        }
        "file" => {
            let path = reading.word(&missing("<file>"))?;
            Payload::Bytes(reading.names.read_file(&path)?.into())
        }
        "lf-file" => {
            let path = reading.word(&missing("<file>"))?;
            let text = reading.names.read_file(&path)?;
            Payload::Format(Arc::new(LogFormat::parse(&text, reading.at.place, reading.reg, reading.names)?))
        }
        "string" => Payload::Bytes(reading.word(&missing("<str>"))?.into_bytes().into()),
        _ => Payload::Format(Arc::new(reading.format(&missing("<fmt>"))?)),
    };
    draft.payload = Some((word.to_owned(), payload));
    Ok(())
}

fn finish(reading: &mut Reading<'_, '_>, draft: Draft, default: u16, kind: Kind) -> Result<Reply, Fault> {
    let status = draft.status.unwrap_or(default);
    let payload = match (draft.payload, draft.errorfiles, kind) {
        (_, Some(section), _) => Payload::Message(reading.names.error_file(Some(&section), status)?),
        (Some((_, payload)), None, _) => payload,
        (None, None, Kind::Answer) => Payload::Empty,
        // Fields of its own make a denial an answer of its own.
        (None, None, Kind::Denial) if !draft.headers.is_empty() => Payload::Empty,
        (None, None, Kind::Denial) => Payload::ErrorFile,
    };
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
