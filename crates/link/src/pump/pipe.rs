//! Bytes that go through a pipe inside the kernel instead of through the buffer.

use std::task::{Context, Poll};

use rt::{Buf, Pipe};

use super::{BULK, Break, Framing, Half};
use crate::transport::Transport;

/// With fewer bytes to come than this, a buffer is cheaper than a pipe.
const WORTH_A_PIPE: u64 = 16 * 1024;
/// Most bytes asked of one splice. The more a pipe takes at once, the more memory is in flight between the
/// two ends and the colder it is when its turn comes: with 1 MB the peers of `h1-1m` served 6 % fewer
/// requests a second.
const PIPEFUL: u64 = 1 << 16;

/// From so many bytes on a message is one that its receiver should keep up with.
const LONG: u64 = 128 * 1024;

impl Half {
    /// Whether what comes next should go through a pipe.
    pub(super) fn pipes(&self) -> bool {
        let asked = self.splice || (self.bulk_pipes && !self.prompt && self.full_reads >= BULK);
        asked
            && self.kept.is_none()
            && self.gates.is_none()
            && match &self.framing {
                Framing::Length(left) => *left >= WORTH_A_PIPE || self.pipe.is_some(),
                Framing::Close => true,
                Framing::Chunked(scanner) => scanner.chunk_left() >= WORTH_A_PIPE,
            }
    }

    /// Fills the pipe from the socket.
    pub(super) fn through_pipe(
        &mut self,
        cx: &mut Context<'_>,
        from: &Transport,
        buf: &mut Option<Buf>,
    ) -> Poll<Result<(), Break>> {
        if buf.as_ref().is_some_and(Buf::is_empty) {
            *buf = None;
        }
        let Ok(mut pipe) = self.pipe.take().map_or_else(Pipe::new, Ok) else {
            self.splice = false;
            return Poll::Ready(Ok(()));
        };
        let most = match self.framing {
            Framing::Length(left) => left.min(PIPEFUL),
            Framing::Chunked(ref scanner) => scanner.chunk_left().min(PIPEFUL),
            Framing::Close => PIPEFUL,
        };
        match pipe.poll_splice_in(cx, from.raw(), usize::try_from(most).unwrap_or(usize::MAX)) {
            // The pipe goes back to its pool while there is nothing to put into it.
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0)) => {
                self.eof = true;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Ok(n)) => {
                if (n as u64) < WORTH_A_PIPE {
                    self.full_reads = 0;
                }
                self.received += n as u64;
                self.moved = true;
                if let Framing::Chunked(scanner) = &mut self.framing {
                    scanner.skip(n as u64);
                }
                self.pipe = Some(pipe);
                Poll::Ready(Ok(()))
            }
            // The kernel opened a record that is no data: it comes through the buffer, or rather past it.
            Poll::Ready(Err(e)) if !from.is_plain() && e.raw_os_error() == Some(22) => {
                self.fill(cx, from, buf)
            }
            // Not every kind of socket can be spliced (EINVAL): the buffer takes over.
            Poll::Ready(Err(e)) if matches!(e.raw_os_error(), Some(22 | 38)) => {
                self.splice = false;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(e)) => Poll::Ready(Err(Break::Read(e))),
        }
    }

    /// Moves what is in the pipe to the receiver.
    pub(super) fn empty_pipe(&mut self, cx: &mut Context<'_>, to: &Transport) -> Poll<Result<(), Break>> {
        match to.poll_plain(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(ready) => ready.map_err(Break::Write)?,
        }
        let Some(pipe) = &mut self.pipe else { return Poll::Ready(Ok(())) };
        // Nothing tells whether the sender has more at hand, so what is there goes out at once.
        match pipe.poll_splice_out(cx, to.raw(), false) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(e)) => Poll::Ready(Err(Break::Write(e))),
            Poll::Ready(Ok(n)) => {
                to.passed(n);
                let n = n as u64;
                self.sent += n;
                if self.spliced < LONG && self.spliced + n >= LONG {
                    to.raw().hold_back_if_near();
                }
                self.spliced += n;
                self.done += n;
                self.moved = true;
                if let Framing::Length(left) = &mut self.framing {
                    *left = left.saturating_sub(n);
                    self.ended = *left == 0;
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}
