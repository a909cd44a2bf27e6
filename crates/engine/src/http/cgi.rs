//! What FastCGI needs of a request that HTTP does not: a length, and parameters.

use model::term::{Cause, Phase};
use mux::fcgi::Facts;
use rt::Buf;
use wire::http1::{Body, Scanner};

use super::exchange::Step;
use super::{answer, wait};
use crate::body::Waited;
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
/// chunks is waited for, and has to fit a buffer.
pub async fn measure(stream: &mut Stream<'_>) -> Step {
    if stream.backend().fcgi.is_none() || stream.http.request_body == Body::None {
        return Step::Go;
    }
    wait::invite(stream).await;
    if stream.http.request_body != Body::Chunked || stream.http.body_length.is_some() {
        return Step::Go;
    }
    let waited = wait::request(stream, wait::Wait::default()).await;
    let mut length = 0;
    let bytes = stream.client.buf.as_ref().map(Buf::filled).unwrap_or_default();
    let whole = Scanner::new(true).data(bytes, |data| length += data.len() as u64) == Ok(true);
    if waited == Waited::Enough && whole {
        stream.http.body_length = Some(length);
        return Step::Go;
    }
    let (cause, status) = match waited {
        Waited::Late => (Cause::ClientTimeout, 408),
        _ if stream.http.client_left => (Cause::ClientAbort, 400),
        _ => (Cause::Proxy, 400),
    };
    stream.end(cause, Phase::Headers);
    Step::Done(answer::refuse(stream, status).await)
}
