//! Bytes on their way to the peer.
//!
//! Heads of frames and whatever is small is gathered in one vector. Data that come in a buffer of their own
//! go out from there, behind their frame's head: the kernel takes both in one call, and nothing is copied
//! before. (Under TLS everything is copied into records anyway, and full ones are the cheapest.)

use std::collections::VecDeque;
use std::io::IoSlice;
use std::task::{Context, Poll};

use link::transport::Transport;
use rt::Buf;

/// Bytes that wait to be sent at which nothing is added to them.
pub const HIGH: usize = 64 * 1024;
/// Fewer bytes than this are copied: a piece of its own costs more.
const WORTH: usize = 2048;
/// Pieces of one call.
const PIECES: usize = 16;

/// What is to be sent.
#[derive(Default)]
pub struct Outbox {
    /// Where to append it.
    pub bytes: Vec<u8>,
    /// Bytes of the vector that are sent.
    sent: usize,
    /// Data, and where in the vector they belong; none of the buffers is empty.
    data: VecDeque<(usize, Buf)>,
    /// Bytes in these buffers.
    held: usize,
    /// Buffers go out from where they are.
    vectored: bool,
}

impl Outbox {
    /// One that is empty; `plain`: bytes go over the wire as they are.
    pub fn new(plain: bool) -> Outbox {
        Outbox { vectored: plain, ..Outbox::default() }
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.held
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no more should be added for now.
    pub fn is_full(&self) -> bool {
        self.len() >= HIGH
    }

    /// Whether a buffer with so many bytes is better handed over than copied.
    pub fn wants(&self, bytes: usize) -> bool {
        self.vectored && bytes >= WORTH
    }

    /// Appends the content of a buffer.
    pub fn hand_over(&mut self, buf: Buf) {
        if !buf.is_empty() {
            self.held += buf.len();
            self.data.push_back((self.bytes.len(), buf));
        }
    }

    /// Sends; whether something went out. `idle`: memory is not kept. An error is the end of the connection.
    pub fn send(&mut self, cx: &mut Context<'_>, socket: &Transport, idle: bool) -> Result<bool, ()> {
        if self.is_empty() {
            return Ok(false);
        }
        let poll = if self.data.is_empty() {
            socket.poll_send(cx, self.bytes.get(self.sent..).unwrap_or_default(), false)
        } else {
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let count = self.pieces(&mut pieces);
            socket.raw().poll_send_vectored(cx, pieces.get(..count).unwrap_or_default(), false)
        };
        match poll {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(_)) => Err(()),
            Poll::Ready(Ok(n)) => {
                self.consume(n);
                self.tidy(idle);
                Ok(n > 0)
            }
        }
    }

    /// Nobody will get what waits.
    pub fn discard(&mut self) {
        *self = Outbox { vectored: self.vectored, ..Outbox::default() };
    }

    /// The first pieces of what waits, in order; says how many there are.
    fn pieces<'a>(&'a self, pieces: &mut [IoSlice<'a>]) -> usize {
        let (mut places, mut count, mut from) = (pieces.iter_mut(), 0, self.sent);
        let ends = self.data.iter().map(|(at, buf)| (*at, buf.filled()));
        for (at, data) in ends.chain([(self.bytes.len(), &[][..])]) {
            let small = self.bytes.get(from..at).unwrap_or_default();
            for piece in [small, data].into_iter().filter(|piece| !piece.is_empty()) {
                let Some(place) = places.next() else { return count };
                *place = IoSlice::new(piece);
                count += 1;
            }
            from = at;
        }
        count
    }

    /// So many bytes went out.
    fn consume(&mut self, mut n: usize) {
        while n > 0 {
            let front = self.data.front_mut();
            let end = front.as_ref().map_or(self.bytes.len(), |(at, _)| *at);
            let small = end.saturating_sub(self.sent).min(n);
            self.sent += small;
            n -= small;
            let Some((_, buf)) = front else { return };
            let part = buf.len().min(n);
            buf.consume(part);
            self.held -= part;
            n -= part;
            if buf.is_empty() {
                self.data.pop_front();
            }
        }
    }

    /// Gives back what is no longer needed of the vector.
    fn tidy(&mut self, idle: bool) {
        if self.is_empty() {
            self.bytes.clear();
            self.sent = 0;
            if idle || self.bytes.capacity() > 2 * HIGH {
                self.bytes = Vec::new();
            }
            if idle {
                self.data = VecDeque::new();
            }
        } else if self.sent >= HIGH {
            // A peer that is always behind must not let it grow for ever.
            self.bytes.drain(..self.sent);
            self.data.iter_mut().for_each(|(at, _)| *at -= self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buf(bytes: &[u8]) -> Buf {
        let mut buf = Buf::new();
        buf.push(bytes);
        buf
    }

    fn waiting(out: &Outbox) -> Vec<u8> {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let count = out.pieces(&mut pieces);
        pieces[..count].iter().flat_map(|piece| piece.to_vec()).collect()
    }

    #[test]
    fn bytes_and_buffers_go_out_in_order_wherever_a_write_ends() {
        let whole = b"one TWO three FOUR five";
        for step in 1..whole.len() {
            let mut out = Outbox::new(true);
            for (small, data) in [("one ", "TWO"), (" three ", "FOUR"), (" five", "")] {
                out.bytes.extend_from_slice(small.as_bytes());
                out.hand_over(buf(data.as_bytes()));
            }
            let mut seen = Vec::new();
            while !out.is_empty() {
                let rest = waiting(&out);
                assert_eq!(rest.len(), out.len());
                let n = step.min(rest.len());
                seen.extend_from_slice(&rest[..n]);
                out.consume(n);
                out.tidy(false);
            }
            assert_eq!(seen, whole);
        }
    }

    #[test]
    fn what_was_sent_is_not_kept_though_something_always_waits() {
        let (mut out, mut count, mut expected) = (Outbox::new(true), 0u32, 0u8);
        for _ in 0..3000 {
            out.bytes.extend((count..count + 100).map(|n| n as u8));
            out.hand_over(buf(&[(count + 100) as u8]));
            count += 101;
            let n = (out.len() - 1).min(101);
            for byte in waiting(&out).into_iter().take(n) {
                assert_eq!(byte, expected);
                expected = expected.wrapping_add(1);
            }
            out.consume(n);
            out.tidy(false);
            assert!(out.bytes.len() <= HIGH + 200, "{}", out.bytes.len());
        }
    }
}
