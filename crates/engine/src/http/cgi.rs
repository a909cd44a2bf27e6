//! What FastCGI needs of a request that HTTP does not: a length, and parameters.

use model::term::{Cause, Phase};
use mux::fcgi::Facts;
use rt::Buf;
use wire::http1::{Body, Scanner};

use super::answer;
use super::exchange::Step;
use crate::stream::Stream;

/// Parameters of a request for a server that speaks FastCGI; `None`: it has none that make sense.
pub fn params(stream: &Stream<'_>) -> Option<Vec<u8>> {
    let backend = stream.backend();
    let fcgi = backend.fcgi.as_ref()?;
    let facts = Facts {
        src: stream.src(),
        dst: stream.dst(),
        secure: stream.client.conn().tls.get(),
        length: stream.http.body_length,
    };
    mux::fcgi::params(&fcgi.app, &stream.txn.req, &facts, &stream.txn.decisions.params)
}

/// Scripts are told the length of a body before the first byte of it (manual, section 10.2): one that comes in
/// chunks has been waited for, and has to be whole by now.
pub async fn measure(stream: &mut Stream<'_>) -> Step {
    if stream.http.request_body != Body::Chunked
        || stream.http.body_length.is_some()
        || stream.backend().fcgi.is_none()
    {
        return Step::Go;
    }
    let mut length = 0;
    let bytes = stream.client.buf.as_ref().map(Buf::filled).unwrap_or_default();
    let relax = stream.frontend().options.unsafe_request;
    if Scanner::new(relax).data(bytes, |data| length += data.len() as u64) == Ok(true) {
        stream.http.body_length = Some(length);
        return Step::Go;
    }
    let left = stream.http.client_left;
    stream.end(if left { Cause::ClientAbort } else { Cause::Proxy }, Phase::Headers);
    Step::Done(answer::refuse(stream, 400).await)
}
