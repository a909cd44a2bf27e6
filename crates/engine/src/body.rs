//! How much of a body is at hand before anything of it is passed on.

use rt::Buf;
use wire::http1::{Body, Scanner};

use crate::room;
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

/// What came is no body.
struct Malformed;

/// How much of a body stands in a buffer; what was looked at once is not looked at again.
pub struct Progress {
    body: Body,
    scanner: Scanner,
    seen: usize,
    data: u64,
    taken: usize,
}

impl Progress {
    /// Nothing was looked at yet. `taken`: what a buffer does not have for the body ([`room::taken`]).
    pub fn of(body: Body, taken: usize, relax: bool) -> Progress {
        Progress { body, scanner: Scanner::new(relax), seen: 0, data: 0, taken }
    }

    /// Looks at what has come; whether that is enough.
    pub fn look(&mut self, buf: Option<&Buf>, at_least: Option<u64>) -> Option<Waited> {
        let Ok(whole) = self.whole(buf.map(Buf::filled).unwrap_or_default()) else {
            return Some(Waited::Malformed);
        };
        let full = |buf: &Buf| buf.is_full() || self.data >= room::of(buf, self.taken) as u64;
        let enough = whole || at_least.is_some_and(|n| self.data >= n) || buf.is_some_and(full);
        enough.then_some(Waited::Enough)
    }

    /// Whether `bytes` hold all of the body.
    fn whole(&mut self, bytes: &[u8]) -> Result<bool, Malformed> {
        Ok(match self.body {
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
                    Err(_) => return Err(Malformed),
                }
            }
        })
    }
}

/// Whether nothing of a request is waited for: all of it is at hand, or as much as a buffer holds.
pub fn is_whole(stream: &Stream<'_>) -> bool {
    let buf = stream.client.buf.as_ref();
    stream.http.body_received || request(stream).look(buf, None).is_some()
}

/// Whether all of a request's body is at hand.
pub fn fits(stream: &Stream<'_>) -> bool {
    let bytes = stream.client.buf.as_ref().map(Buf::filled).unwrap_or_default();
    stream.http.body_received || request(stream).whole(bytes).is_ok_and(|whole| whole)
}

/// Whether a connection goes on where its request for a service is answered in its place: what is still to
/// come of a body, with nobody there for it, ends one of HTTP/1, as in HAProxy.
pub fn is_taken(stream: &Stream<'_>) -> bool {
    stream.client.part.is_some() || fits(stream)
}

/// The body of a request, of which nothing was looked at yet.
pub fn request(stream: &Stream<'_>) -> Progress {
    let http = &stream.http;
    Progress::of(http.request_body, http.request_taken, stream.frontend().options.unsafe_request)
}
