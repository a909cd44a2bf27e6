//! Receiving into the buffer.

use std::task::{Context, Poll};

use rt::Buf;

use super::{Break, Half};
use crate::transport::Transport;

impl Half {
    /// Receives what there is. Ready also if that was nothing but a reason to look again.
    pub(super) fn fill(
        &mut self,
        cx: &mut Context<'_>,
        from: &Transport,
        buf: &mut Option<Buf>,
    ) -> Poll<Result<(), Break>> {
        if !from.is_readable() {
            // An empty buffer goes back to the pool while there is nothing to put into it.
            if buf.as_ref().is_some_and(Buf::is_empty) {
                *buf = None;
            }
            return match from.poll_readable(cx) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => Poll::Pending,
            };
        }
        if from.raw().is_local() && from.is_plain() && buf.as_ref().is_none_or(Buf::is_empty) {
            return self.take(from, buf);
        }
        let b = buf.get_or_insert_default();
        if b.spare() == 0 {
            b.compact();
        }
        match from.poll_recv(cx, b.spare_mut()) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(e)) => Poll::Ready(Err(Break::Read(e))),
            Poll::Ready(Ok(0)) => {
                self.eof = true;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Ok(n)) => {
                self.full_reads = if n == b.spare() { self.full_reads.saturating_add(1) } else { 0 };
                b.advance(n);
                self.received += n as u64;
                self.moved = true;
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Takes what a sender in this worker has handed over. Ready also if that was nothing.
    fn take(&mut self, from: &Transport, buf: &mut Option<Buf>) -> Poll<Result<(), Break>> {
        match from.raw().try_take() {
            None => {}
            Some(Err(e)) => return Poll::Ready(Err(Break::Read(e))),
            Some(Ok(None)) => self.eof = true,
            Some(Ok(Some(taken))) => {
                self.received += taken.len() as u64;
                self.moved = true;
                *buf = Some(taken);
            }
        }
        Poll::Ready(Ok(()))
    }
}
