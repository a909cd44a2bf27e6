//! What goes to a responder.

use super::{Header, MOST, kind, put_pair};

/// The role of an application that answers requests.
const RESPONDER: u8 = 1;
/// The connection stays open behind the request.
const KEEP_CONN: u8 = 1;

fn record(out: &mut Vec<u8>, kind: u8, id: u16, content: &[u8]) {
    // Whatever is longer than that was cut before.
    let content = content.get(..MOST).unwrap_or(content);
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&Header::new(kind, id, length).bytes());
    out.extend_from_slice(content);
}

/// A request begins. `keep`: the application shall not close the connection behind it.
pub fn begin(out: &mut Vec<u8>, id: u16, keep: bool) {
    let flags = if keep { KEEP_CONN } else { 0 };
    record(out, kind::BEGIN_REQUEST, id, &[0, RESPONDER, flags, 0, 0, 0, 0, 0]);
}

/// All parameters of a request, which are encoded already ([`put_pair`]).
pub fn params(out: &mut Vec<u8>, id: u16, pairs: &[u8]) {
    pairs.chunks(MOST).for_each(|part| record(out, kind::PARAMS, id, part));
    record(out, kind::PARAMS, id, &[]);
}

/// A part of the body of a request; an empty one ends it.
pub fn stdin(out: &mut Vec<u8>, id: u16, part: &[u8]) {
    record(out, kind::STDIN, id, part);
}

/// A request is given up.
pub fn abort(out: &mut Vec<u8>, id: u16) {
    record(out, kind::ABORT_REQUEST, id, &[]);
}

/// The application shall tell its limits.
pub fn get_values(out: &mut Vec<u8>) {
    let mut content = Vec::new();
    put_pair(&mut content, b"FCGI_MAX_REQS", b"");
    put_pair(&mut content, b"FCGI_MPXS_CONNS", b"");
    record(out, kind::GET_VALUES, 0, &content);
}
