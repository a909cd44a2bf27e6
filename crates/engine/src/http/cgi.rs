//! What FastCGI needs of a request that HTTP does not: a length, and parameters.

use lang::filter::Moment;
use model::term::{Cause, Phase};
use mux::Call;
use mux::fcgi::Facts;
use rt::Buf;
use wire::head::{Head, Known};
use wire::http1::{Body, Scanner};
use wire::method::Method;

use super::exchange::Step;
use super::{answer, rules};
use crate::filters::Whose;
use crate::stream::Stream;

/// Parameters of a request for a server that speaks FastCGI; `None`: it has none that make sense.
pub fn params(stream: &Stream<'_>) -> Option<Vec<u8>> {
    let backend = stream.backend();
    let fcgi = backend.fcgi.as_ref()?;
    let facts = Facts { src: stream.src(), dst: stream.dst(), secure: stream.client.conn().tls.get() };
    mux::fcgi::params(&fcgi.app, &stream.txn.req, &facts, &stream.txn.decisions.params)
}

/// The head of a request gets its final form: filters have their say, and where it goes to an application
/// the length of its body is told. Scripts know that before the first byte of it (manual, section 10.2): a
/// body in chunks has been waited for, and has to be whole by now.
pub async fn finish_head(stream: &mut Stream<'_>) -> Step {
    if let Step::Done(next) = rules::filters(stream, Moment::RequestHead, Whose::All).await {
        return Step::Done(next);
    }
    let chunked = stream.service.is_none() && stream.http.request_body == Body::Chunked;
    if !chunked || stream.backend().fcgi.is_none() {
        return Step::Go;
    }
    let mut length = 0;
    let bytes = stream.client.buf.as_ref().map(Buf::filled).unwrap_or_default();
    let relax = stream.frontend().options.unsafe_request;
    if Scanner::new(relax).data(bytes, |data| length += data.len() as u64) == Ok(true) {
        let params = &mut stream.txn.decisions.params;
        lang::fcgi::put(params, b"CONTENT_LENGTH", length.to_string().as_bytes());
        return Step::Go;
    }
    let left = stream.http.client_left;
    stream.end(if left { Cause::ClientAbort } else { Cause::Proxy }, Phase::Headers);
    Step::Done(answer::refuse(stream, 400).await)
}

/// The call of a stream whose server speaks FastCGI.
fn call<'s>(stream: &'s Stream<'_>) -> Option<&'s Call> {
    stream.upstream.as_ref()?.call.as_ref().filter(|call| call.speaks_fcgi())
}

/// Takes a length out of a response that its application did not say: rules see what it said.
pub fn hide_length(stream: &mut Stream<'_>) {
    if call(stream).is_some_and(Call::was_measured) {
        stream.txn.res.remove_all(Known::ContentLength);
    }
}

/// Bytes of the length that its application did not say, in the head of a response.
pub fn measured_by(stream: &Stream<'_>) -> i64 {
    let length = match stream.http.response_body {
        Body::Length(length) => length,
        // What has the length 0 has no body.
        Body::None => 0,
        _ => return 0,
    };
    if !call(stream).is_some_and(Call::was_measured) {
        return 0;
    }
    let digits = &mut [0; base::text::INT_MAX];
    let bytes = "content-length".len() + base::text::int(length, digits).len();
    i64::try_from(bytes).unwrap_or(0)
}

/// Bytes of a date of HTTP.
const DATE: usize = "Thu, 01 Jan 1970 00:00:00 GMT".len();

/// The fields that [`finish_response`] is going to add count for nothing: how many bytes they have.
pub fn response_grows_by(stream: &Stream<'_>) -> i64 {
    let date = if stream.txn.res.has("date") { 0 } else { "date".len() + DATE };
    let status = stream.txn.res.fields().filter(|(_, name, _)| *name == STATUS.as_bytes());
    let gone: usize = status.map(|(_, name, value)| name.len() + value.len()).sum();
    measured_by(stream) + i64::try_from(date).unwrap_or(0) - i64::try_from(gone).unwrap_or(0)
}

/// What an application says of the status. Rules see it; a client does not.
const STATUS: &str = "status";

/// What a response of an application lacks once rules are through with it: a date, and the length of a body
/// that was whole when its head went on.
pub fn finish_response(stream: &mut Stream<'_>) {
    let Some(measured) = call(stream).map(Call::was_measured) else { return };
    let body = stream.http.response_body;
    // Whatever rules have made of its method.
    let head_alone = stream.txn.first_method() == Method::Head;
    // Rules may have made something of a response without a body that has one.
    let emptied = body == Body::None
        && stream.txn.req.method_id() != Method::Head
        && !super::response::is_bodiless(stream.txn.res.status());
    let res = &mut stream.txn.res;
    res.remove_all(STATUS);
    if !res.has("date") {
        date(res);
    }
    let framed = res.has(Known::ContentLength) || res.has(Known::TransferEncoding);
    if framed || res.status() == 204 || head_alone {
        return;
    }
    match body {
        Body::Length(bytes) if measured => length(res, bytes),
        _ if emptied => length(res, 0),
        _ => {}
    }
}

fn date(head: &mut Head) {
    let mut date = Vec::with_capacity(DATE);
    lang::http_date_of(&mut date, i64::try_from(rt::wall().as_secs()).unwrap_or(0));
    let _ = head.append(b"date", &date);
}

fn length(head: &mut Head, bytes: u64) {
    let _ = head.append(b"content-length", base::text::int(bytes, &mut [0; base::text::INT_MAX]));
}
