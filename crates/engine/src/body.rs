//! How much of a body is at hand before anything of it is passed on.

use rt::Buf;
use wire::http1::{Body, Scanner};

use crate::stream::Stream;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The body is whole, or as much of it is there as was asked for, or as fits; or no more will come.
    Enough,
    /// The time is over.
    Late,
    /// What came can't be a body.
    Malformed,
}

/// How much of a body stands in a buffer; what was looked at once is not looked at again.
pub struct Progress {
    body: Body,
    scanner: Scanner,
    seen: usize,
    data: u64,
}

impl Progress {
    /// Nothing was looked at yet.
    pub fn of(body: Body, relax: bool) -> Progress {
        Progress { body, scanner: Scanner::new(relax), seen: 0, data: 0 }
    }

    /// Looks at what has come; whether that is enough.
    pub fn look(&mut self, buf: Option<&Buf>, at_least: Option<u64>) -> Option<Waited> {
        let bytes = buf.map(Buf::filled).unwrap_or_default();
        let whole = match self.body {
            Body::None => true,
            Body::Length(n) => {
                self.data = n.min(bytes.len() as u64);
                self.data == n
            }
            Body::UntilClose => {
                self.data = bytes.len() as u64;
                false
            }
            Body::Chunked => {
                let fresh = bytes.get(self.seen..).unwrap_or_default();
                self.seen = bytes.len();
                let data = &mut self.data;
                match self.scanner.data(fresh, |piece| *data += piece.len() as u64) {
                    Ok(end) => end,
                    Err(_) => return Some(Waited::Malformed),
                }
            }
        };
        let enough = whole || at_least.is_some_and(|n| self.data >= n) || buf.is_some_and(Buf::is_full);
        enough.then_some(Waited::Enough)
    }
}

/// Whether all of a request is at hand.
pub fn is_whole(stream: &Stream<'_>) -> bool {
    let relax = stream.frontend().options.unsafe_request;
    stream.http.body_received
        || Progress::of(stream.http.request_body, relax).look(stream.client.buf.as_ref(), None).is_some()
}
