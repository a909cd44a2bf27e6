//! What FastCGI needs of a request that HTTP does not: a length, and parameters.

use lang::filter::Moment;
use model::term::{Cause, Phase};
use mux::fcgi::Facts;
use rt::Buf;
use wire::http1::{Body, Scanner};

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
