//! `capture request header`, `capture response header`, `capture cookie`: what the log line keeps of a
//! message.

use program::proxy::{Capture, CaptureCookie};
use wire::head::Head;

use crate::stream::Stream;

/// What is declared has its place in the log of TCP, too, where only rules fill it.
pub fn declared(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let front = worker.shared.program.configured(stream.client.front);
    stream.txn.req_captures.get_mut().resize(front.req_captures.len(), None);
    stream.txn.res_captures.get_mut().resize(front.res_captures.len(), None);
}

/// Takes what the frontend captures of a request.
pub fn request(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let front = worker.shared.program.configured(stream.client.front);
    if !front.req_captures.is_empty() {
        let txn = &mut *stream.txn;
        headers(&front.req_captures, &txn.req, txn.req_captures.get_mut());
    }
    // The log shows what is declared also where no response comes.
    stream.txn.res_captures.get_mut().resize(front.res_captures.len(), None);
}

/// Takes the cookie of a request that the frontend captures: the one that all rules leave, or that a refused
/// request has.
pub fn request_cookie(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let front = worker.shared.program.configured(stream.client.front);
    if let Some(wanted) = &front.capture_cookie {
        let found = stream.txn.req.cookies().find(|c| matches(wanted, c.name));
        stream.txn.req_cookie = found.map(|c| pair(wanted, c.name, c.value));
    }
}

/// Takes what the frontend captures of a response: as it came, before `http-response` rules.
pub fn response(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let front = worker.shared.program.configured(stream.client.front);
    if !front.res_captures.is_empty() {
        let txn = &mut *stream.txn;
        headers(&front.res_captures, &txn.res, txn.res_captures.get_mut());
    }
}

/// Takes the cookie of a response that the frontend captures: the one that all rules leave.
pub fn response_cookie(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let front = worker.shared.program.configured(stream.client.front);
    if let Some(wanted) = &front.capture_cookie {
        let found = stream.txn.res.set_cookies().find(|c| matches(wanted, c.name));
        stream.txn.res_cookie = found.map(|c| pair(wanted, c.name, c.value));
    }
}

/// The last line of each header, cut to the length declared; slots without a header are for rules.
fn headers(captures: &[Capture], head: &Head, out: &mut Vec<Option<Box<[u8]>>>) {
    out.resize(captures.len(), None);
    for (capture, slot) in captures.iter().zip(out) {
        let Some(name) = &capture.header else { continue };
        if let Some(value) = head.last(&**name) {
            *slot = Some(value[..value.len().min(capture.len)].into());
        }
    }
}

fn matches(wanted: &CaptureCookie, name: &[u8]) -> bool {
    if wanted.exact { name == &*wanted.name } else { name.starts_with(&wanted.name) }
}

fn pair(wanted: &CaptureCookie, name: &[u8], value: &[u8]) -> Box<[u8]> {
    let mut text = [name, b"=", value].concat();
    text.truncate(wanted.len);
    text.into()
}
