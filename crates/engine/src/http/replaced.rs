//! Responses that never reach the client, for rules put something else in their place: what they count for,
//! and what becomes of the connections that brought them.

use link::pump::{Framing, Half};
use mux::Call;
use rt::Buf;

use super::headers;
use crate::connect;
use crate::stream::Stream;

/// What the head of a response counts for, and what of it counts for nothing when it goes on: what a stream
/// of HTTP/2 added to make it one of HTTP/1. Its framing is not there by now ([`super::response::note`]).
pub fn head_size(stream: &Stream<'_>, interim: bool) -> (u64, i64) {
    let call = stream.upstream.as_ref().and_then(|up| up.call.as_ref());
    let framed = super::headers::response_is_framed(stream);
    if let Some(call) = call.filter(|call| !interim && call.speaks_fcgi()) {
        let added = call.added();
        let framing = if framed { b"transfer-encoding: chunked".len() as i64 - 2 } else { 0 };
        let grows = super::cgi::response_grows_by(stream);
        let there = added + super::cgi::measured_by(stream);
        return (headers::without(headers::counted(&stream.txn.res), there), added + grows + framing);
    }
    let added = call.filter(|_| !interim).map_or(0, Call::added);
    let reason = call.map_or(0, |_| stream.txn.res.reason().len() as i64);
    let there = if framed { 0 } else { added };
    (headers::without(headers::counted(&stream.txn.res), there + reason), added + reason)
}

/// What came of the body of a response that has not gone on yet.
pub fn unsent(stream: &mut Stream<'_>) -> u64 {
    look(stream).0
}

/// What came of the body, and whether that is the whole of it and nothing else.
fn look(stream: &mut Stream<'_>) -> (u64, bool) {
    let relax = stream.backend().options.unsafe_response;
    let mut down = Half::new(Framing::of(stream.http.response_body, relax));
    down.multiplexed = super::response::has_no_chunks(stream);
    let Some(up) = stream.upstream.as_mut() else { return (0, false) };
    let Some(buf) = &up.buf else { return (0, down.is_received()) };
    // The pump is to find the body as it came.
    let mut copy = Buf::new();
    copy.push(buf.filled());
    let mut copy = Some(copy);
    let counted = down.counted(&mut copy);
    let rest = copy.as_ref().map_or(0, Buf::len);
    (counted, down.is_whole(rest))
}

/// A connection that was to bring a response that something else has replaced.
pub struct Spare(bool);

/// Counts a response that is replaced.
pub fn count(stream: &mut Stream<'_>) -> Spare {
    let (came, whole) = look(stream);
    stream.txn.down.received += came;
    let there = stream.upstream.as_ref().and_then(|up| up.buf.as_ref()).map_or(0, Buf::len);
    stream.txn.down.wire_in += there as u64;
    let sent = stream.to_server.is_none() && stream.http.body_received && stream.http.server_keeps;
    Spare(whole && sent && !connect::authenticates_connection(stream))
}

impl Spare {
    /// Puts the connection to rest if its response has come whole: nothing stands in the way of another
    /// request.
    pub fn settle(self, stream: &mut Stream<'_>) {
        if let Some(up) = stream.upstream.as_mut().filter(|_| self.0) {
            up.buf = None;
            connect::park(stream);
        }
    }
}
