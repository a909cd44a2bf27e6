//! Answers of the proxy itself: `errorfile`, `errorloc`, `errorfiles`, `http-error` (manual, section 4.2).

use std::sync::Arc;

use syntax::Word;

use crate::draft::{Draft, ErrorDraft, Named};
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry(
        "errorfile",
        Places::ALL,
        |s, p| {
            let (status, message) = file(s)?;
            p.errors.push(ErrorDraft::Message(status, message));
            Ok(())
        },
        "The answer to a status, from a file.",
        "errorfile 503 /dev/null",
    ),
    entry(
        "errorfiles",
        Places::ALL,
        |s, p| {
            let name = s.word("errorfiles : expects <name> as argument.")?;
            let mut statuses = Vec::new();
            while let Some(word) = s.next() {
                statuses.push(status(s, word)?);
            }
            p.errors
                .push(ErrorDraft::Section(Named { name: name.text().into(), span: name.span() }, statuses));
            Ok(())
        },
        "Answers from an http-errors section.",
        "",
    ),
    entry(
        "errorloc",
        Places::ALL,
        location,
        "Redirect instead of an error.",
        "errorloc 503 http://a.example/",
    ),
    entry(
        "errorloc302",
        Places::ALL,
        location,
        "Redirect instead of an error.",
        "errorloc302 503 http://a.example/",
    ),
    entry(
        "errorloc303",
        Places::ALL,
        location,
        "Redirect to a GET instead of an error.",
        "errorloc303 503 http://a.example/",
    ),
    entry(
        "http-error",
        Places::ALL,
        |s, p| {
            if s.peek() != "status" {
                return Err(s.fail("http-error : expects at least a <status> as arguments.\n"));
            }
            s.next();
            let word = s.word("http-error : 'status' expects <status_code> as argument")?;
            let code = units::lenient(word.text());
            if !HANDLED.iter().any(|n| i64::from(*n) == code) {
                return Err(s.fail(format!("http-error : Unexpected status code '{code}'")));
            }
            s.args.eat_rest();
            p.errors.push(ErrorDraft::Reply(s.at));
            Ok(())
        },
        "The answer to a status, made of parts.",
        "http-error status 503 content-type text/plain string sorry",
    ),
];

/// The statuses that the proxy itself may answer with.
pub(crate) const HANDLED: &[u16] = &[
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502, 503, 504,
];

fn status(s: &Statement<'_>, word: &Word) -> Step<u16> {
    let keyword = s.keyword();
    let number = units::lenient(word.text());
    let code = HANDLED.iter().copied().find(|n| i64::from(*n) == number);
    code.ok_or_else(|| s.fail(format!("{keyword} : status code '{number}' not handled.")))
}

/// `errorfile <status> <path>`, also in `http-errors` sections.
pub(crate) fn file(s: &mut Statement<'_>) -> Step<(u16, Arc<[u8]>)> {
    let expects = format!("{} : expects <status_code> and <file> as arguments.\n", s.keyword());
    let word = s.word(&*expects)?;
    let path = s.args.peek().filter(|w| !w.is_empty());
    let path = path.ok_or_else(|| s.fail(expects))?;
    let status = status(s, word)?;
    s.next();
    let message = read(path.text()).map_err(|why| s.fail(format!("errorfile : {why}")))?;
    s.end()?;
    Ok((status, message))
}

/// A complete message from a file; an empty file closes without a word.
pub(crate) fn read(path: &str) -> Result<Arc<[u8]>, String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = base::outside::open(path).map_err(|_| format!("error opening file '{path}'."))?;
    file.take(1 << 20).read_to_end(&mut bytes).map_err(|_| format!("error reading file '{path}'."))?;
    if !bytes.is_empty() {
        whole(&bytes).map_err(|why| format!("'{path}': {why}"))?;
    }
    Ok(bytes.into())
}

/// A message must be one by the rules of HTTP, and as long as it says.
fn whole(message: &[u8]) -> Result<(), String> {
    use wire::http1::{Body, Limits, Parsed, parse_response, response_body};
    let unreadable = |at: &dyn std::fmt::Display| format!("unable to parse headers (error offset: {at})");
    let mut head = wire::head::Head::default();
    let limits = Limits::of(message.len() + 1, usize::MAX);
    let consumed = match parse_response(message, &mut head, &limits, false) {
        Ok(Parsed::Complete { consumed }) => consumed,
        Ok(Parsed::Partial) => return Err(unreadable(&-2)),
        Err(why) => return Err(unreadable(&why.position)),
    };
    let length = message.len().saturating_sub(consumed);
    match response_body(&head, wire::method::Method::Get) {
        _ if head.status() < 200 => {
            Err(format!("invalid http status code for an error message ({})", head.status()))
        }
        Body::None if length > 0 => Err("message payload not expected".into()),
        Body::Length(told) if told != length as u64 => {
            Err(format!("payload size does not match the announced content-length ({length} != {told})"))
        }
        Body::Chunked => Err("chunk-encoded payload not supported".into()),
        _ => Ok(()),
    }
}

fn location(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let keyword = s.keyword();
    let expects = format!("{keyword} : expects <status_code> and <url> as arguments.\n");
    let word = s.word(&*expects)?;
    let url = s.args.peek().filter(|w| !w.is_empty());
    let url = url.ok_or_else(|| s.fail(expects))?;
    let status = status(s, word)?;
    s.next();
    if s.args.peek().is_some() {
        return Err(s.fail(format!("{keyword} : expects exactly two arguments.\n")));
    }
    let line = if keyword == "errorloc303" { "303 See Other" } else { "302 Found" };
    let mut message =
        format!("HTTP/1.1 {line}\r\nCache-Control: no-cache\r\nContent-length: 0\r\nLocation: ").into_bytes();
    message.extend_from_slice(url.bytes());
    message.extend_from_slice(b"\r\n\r\n");
    p.errors.push(ErrorDraft::Message(status, message.into()));
    s.end()
}
