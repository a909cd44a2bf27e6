//! SPOP, the protocol between stream processing engines and their agents (`SPOE.txt`, version 2.0).
//!
//! [`frame`] cuts a frame off what has come, [`data`] reads the typed values inside, [`hello`] judges an
//! agent's greeting and its farewell, [`action`] reads what an acknowledgement asks for, and [`mod@write`]
//! composes the frames that go out. Fragmented payloads are no longer part of the protocol: a frame without
//! the flag of the last fragment is refused.

pub mod action;
pub mod data;
pub mod hello;
pub mod write;

pub use action::{Action, Actions, Scope};
pub use data::{Data, Reader};
pub use hello::{AgentHello, Disconnect, Status};

#[cfg(test)]
mod tests;

use crate::varint::{self, Taken};

/// The smallest limit that either side may set to the length of a frame, in bytes.
pub const LEAST_FRAME: usize = 256;
/// The limit that a health check offers: a buffer of the usual 16384 bytes without the prefix.
pub const CHECK_FRAME: u32 = 16380;
/// The bytes in front of each frame, which hold its length.
pub const PREFIX: usize = 4;

/// Types of frames (section 3.2.2).
pub mod kind {
    /// The first frame of a connection, sent by the engine.
    pub const HAPROXY_HELLO: u8 = 1;
    /// The engine is about to end the connection.
    pub const HAPROXY_DISCONNECT: u8 = 2;
    /// Messages about a stream, sent by the engine.
    pub const NOTIFY: u8 = 3;
    /// An agent's answer to the first frame.
    pub const AGENT_HELLO: u8 = 101;
    /// The agent is about to end the connection.
    pub const AGENT_DISCONNECT: u8 = 102;
    /// An agent's answer to a NOTIFY frame.
    pub const ACK: u8 = 103;
}

/// Bits of a frame's flags.
pub mod flag {
    /// The last fragment of a payload. All frames have it.
    pub const FIN: u32 = 1;
    /// The work on this frame is given up.
    pub const ABORT: u32 = 2;
}

/// A frame without the length in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type, one of [`kind`] or one that is not known.
    pub kind: u8,
    /// Its flags, see [`flag`].
    pub flags: u32,
    /// The stream that it belongs to; 0 when it belongs to the connection.
    pub stream: u64,
    /// Which frame of the stream it is, or which one it answers.
    pub frame: u64,
    /// What it holds, in a form that depends on its type.
    pub payload: &'a [u8],
}

/// The frame at the front of `bytes`, and the bytes that it takes with its prefix; `None` when more has to
/// come. `most` is the length that was agreed upon, in bytes, without the prefix.
///
/// # Errors
/// [`Status::TooBig`] as soon as the prefix says so, [`Status::Invalid`] for a frame whose head can't be
/// read, [`Status::Fragmented`] for one that is not whole.
pub fn frame(bytes: &[u8], most: usize) -> Result<Option<(Frame<'_>, usize)>, Status> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*prefix)).map_err(|_| Status::TooBig)?;
    if length > most {
        return Err(Status::TooBig);
    }
    let Some((body, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    let frame = parse(body).ok_or(Status::Invalid)?;
    if frame.flags & flag::FIN == 0 {
        return Err(Status::Fragmented);
    }
    Ok(Some((frame, bytes.len() - rest.len())))
}

fn parse(body: &[u8]) -> Option<Frame<'_>> {
    let (kind, rest) = body.split_first()?;
    let (flags, rest) = rest.split_first_chunk()?;
    let (stream, rest) = number(rest)?;
    let (frame, payload) = number(rest)?;
    Some(Frame { kind: *kind, flags: u32::from_be_bytes(*flags), stream, frame, payload })
}

/// A number and what is behind it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match varint::take(bytes) {
        Taken::Number(value, taken) => Some((value, bytes.get(taken..)?)),
        Taken::Short | Taken::TooLarge => None,
    }
}
