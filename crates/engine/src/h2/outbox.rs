//! Bytes on their way to the peer.

use std::task::{Context, Poll};

use crate::transport::Transport;

/// Bytes that wait to be sent at which nothing is added to them.
pub const HIGH: usize = 64 * 1024;

/// What is to be sent.
#[derive(Default)]
pub struct Outbox {
    /// Where to append it.
    pub bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no more should be added for now.
    pub fn is_full(&self) -> bool {
        self.len() >= HIGH
    }

    /// Sends; whether something went out. `idle`: memory is not kept. An error is the end of the connection.
    pub fn send(&mut self, cx: &mut Context<'_>, socket: &Transport, idle: bool) -> Result<bool, ()> {
        let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) else {
            return Ok(false);
        };
        match socket.poll_send(cx, rest, false) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(_)) => Err(()),
            Poll::Ready(Ok(n)) => {
                self.sent += n;
                if self.sent == self.bytes.len() {
                    self.bytes.clear();
                    self.sent = 0;
                    if idle || self.bytes.capacity() > 2 * HIGH {
                        self.bytes = Vec::new();
                    }
                }
                Ok(n > 0)
            }
        }
    }
}
