//! What HAProxy 3.5 does with odd heads, one row each: the input, and what is passed on or refused, strictly
//! and with `option accept-unsafe-violations-in-http-request` (or `-response`). Every row was asked of the
//! real program; where the answer here is meant to be stricter, the row says why.

mod request;
mod response;

use super::{Limits, Parsed, parse_request, parse_response, write_head};
use crate::head::{Head, Kind};

/// What becomes of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// This text goes on, without the empty line at its end.
    Text(&'static str),
    /// The client gets this status; of a response, that it was refused.
    Status(u16),
    /// More bytes are awaited.
    Partial,
}
use Becomes::{Partial, Status, Text};

/// Reads a head and tells what became of it.
fn outcome(kind: Kind, input: &[u8], relax: bool) -> Result<Option<String>, u16> {
    let mut head = if kind == Kind::Request { Head::request() } else { Head::response() };
    let parse = if kind == Kind::Request { parse_request } else { parse_response };
    match parse(input, &mut head, &Limits::default(), relax) {
        Ok(Parsed::Partial) => Ok(None),
        Err(error) => Err(if kind == Kind::Request { error.kind.status() } else { 502 }),
        Ok(Parsed::Complete { .. }) => {
            let mut out = Vec::new();
            write_head(&head, &mut |part| out.extend_from_slice(part));
            let text: String = out.iter().map(|&byte| char::from(byte)).collect();
            Ok(Some(text.strip_suffix("\r\n\r\n").expect("an empty line").to_owned()))
        }
    }
}

fn check(kind: Kind, name: &str, input: &[u8], relax: bool, expected: Becomes) {
    let wanted = match expected {
        Text(text) => Ok(Some(text.to_owned())),
        Status(status) => Err(status),
        Partial => Ok(None),
    };
    let mode = if relax { "relaxed" } else { "strict" };
    assert_eq!(outcome(kind, input, relax), wanted, "{mode}: {name}: {}", input.escape_ascii());
}
