//! Frames that go out.

use super::data::{Data, text};
use super::{PREFIX, Status, flag, kind};
use crate::varint;

/// The version of the protocol that is offered.
const VERSION: &[u8] = b"2.0";

/// What an engine says of itself (section 3.2.4).
#[derive(Clone, Copy, Debug)]
pub struct Greeting<'a> {
    /// The longest frame that it takes, in bytes without the prefix.
    pub most: u32,
    /// Whether it lets several NOTIFY frames wait for their answers.
    pub pipelining: bool,
    /// Whether the connection is a health check.
    pub check: bool,
    /// The name by which an agent knows connections of the same engine.
    pub engine: Option<&'a str>,
}

/// Appends a HAPROXY-HELLO frame.
///
/// # Errors
/// [`Status::TooBig`] when it is longer than it allows frames to be; nothing is appended then.
pub fn greeting(out: &mut Vec<u8>, greeting: &Greeting<'_>) -> Result<(), Status> {
    let mut frame = Writer::new(out, kind::HAPROXY_HELLO, 0, 0);
    frame.item(b"supported-versions", &Data::Text(VERSION));
    frame.item(b"max-frame-size", &Data::Uint32(u64::from(greeting.most)));
    frame.item(b"capabilities", &Data::Text(if greeting.pipelining { b"pipelining" } else { b"" }));
    if greeting.check {
        frame.item(b"healthcheck", &Data::Bool(true));
    }
    if let Some(engine) = greeting.engine {
        frame.item(b"engine-id", &Data::Text(engine.as_bytes()));
    }
    frame.finish(usize::try_from(greeting.most).unwrap_or(usize::MAX))
}

/// Appends a HAPROXY-DISCONNECT frame.
pub fn disconnect(out: &mut Vec<u8>, status: Status) {
    let mut frame = Writer::new(out, kind::HAPROXY_DISCONNECT, 0, 0);
    frame.item(b"status-code", &Data::Uint32(u64::from(status.code())));
    frame.item(b"message", &Data::Text(status.message().as_bytes()));
    // A code and the longest message are shorter than the smallest limit.
    let written = frame.finish(super::LEAST_FRAME);
    debug_assert!(written.is_ok());
}

/// Appends a NOTIFY frame, the first one of its stream, whose messages are written already.
///
/// # Errors
/// [`Status::TooBig`] when it is longer than `most` bytes; nothing is appended then.
pub fn notify(out: &mut Vec<u8>, stream: u64, messages: &[u8], most: usize) -> Result<(), Status> {
    let frame = Writer::new(out, kind::NOTIFY, stream, 1);
    frame.out.extend_from_slice(messages);
    frame.finish(most)
}

/// A frame in the making, at the end of a buffer. One that is not finished has to be cut off the buffer by
/// whoever gives it up: [`Writer::abandon`].
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    /// Begins a frame of one of the types in [`kind`].
    pub fn new(out: &'a mut Vec<u8>, kind: u8, stream: u64, frame: u64) -> Writer<'a> {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        out.push(kind);
        out.extend_from_slice(&flag::FIN.to_be_bytes());
        varint::put(out, stream);
        varint::put(out, frame);
        Writer { out, start }
    }

    /// Begins a message of a NOTIFY frame: so many calls of [`Writer::item`] have to follow.
    pub fn message(&mut self, name: &[u8], items: u8) {
        text(self.out, name);
        self.out.push(items);
    }

    /// A name and its value: an argument of a message, or an item of a list of keys and values.
    pub fn item(&mut self, name: &[u8], value: &Data<'_>) {
        text(self.out, name);
        value.write(self.out);
    }

    /// Bytes of the frame so far, without its prefix.
    pub fn length(&self) -> usize {
        self.out.len() - self.start - PREFIX
    }

    /// Takes back what was written.
    pub fn abandon(self) {
        self.out.truncate(self.start);
    }

    /// Ends the frame, whose prefix is only known now.
    ///
    /// # Errors
    /// [`Status::TooBig`] when it is longer than `most` bytes; nothing of it stays in the buffer then.
    pub fn finish(self, most: usize) -> Result<(), Status> {
        let length = self.length();
        let prefix = u32::try_from(length).ok().filter(|_| length <= most);
        match (prefix, self.out.get_mut(self.start..self.start + PREFIX)) {
            (Some(length), Some(room)) => {
                room.copy_from_slice(&length.to_be_bytes());
                Ok(())
            }
            _ => {
                self.out.truncate(self.start);
                Err(Status::TooBig)
            }
        }
    }
}
