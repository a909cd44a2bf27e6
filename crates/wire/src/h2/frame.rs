//! Frames (RFC 9113 sections 4 and 6): the header of one, and the small ones written whole.

use super::Code;

/// What a client says first (section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of the header of a frame.
pub const HEADER: usize = 9;
/// The largest stream number and the largest window.
pub const MAX31: u32 = 0x7fff_ffff;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
/// RFC 9218 section 7.1.
pub const PRIORITY_UPDATE: u8 = 16;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITIZED: u8 = 32;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of payload, below 2^24.
    pub len: u32,
    pub kind: u8,
    pub flags: u8,
    /// The stream, below 2^31; 0 for the connection.
    pub stream: u32,
}

impl Frame {
    #[inline]
    pub fn parse(bytes: &[u8; HEADER]) -> Frame {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *bytes;
        Frame {
            len: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & MAX31,
        }
    }

    #[inline]
    pub fn bytes(self) -> [u8; HEADER] {
        let [_, a, b, c] = self.len.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }

    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame whose payload is at hand.
pub fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&Frame { len: payload.len() as u32, kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

pub fn put_reset(out: &mut Vec<u8>, stream: u32, code: Code) {
    put(out, RST_STREAM, 0, stream, &code.0.to_be_bytes());
}

pub fn put_window(out: &mut Vec<u8>, stream: u32, more: u32) {
    put(out, WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
}

pub fn put_goaway(out: &mut Vec<u8>, last: u32, code: Code) {
    let [a, b, c, d] = last.to_be_bytes();
    let [e, f, g, h] = code.0.to_be_bytes();
    put(out, GOAWAY, 0, 0, &[a, b, c, d, e, f, g, h]);
}

/// Writes the header of a block of header fields that `out` holds from `start + HEADER` on, and cuts it into
/// frames of at most `max` bytes if it is longer.
pub fn seal_block(out: &mut Vec<u8>, start: usize, stream: u32, end: bool, max: usize) {
    let len = out.len().saturating_sub(start + HEADER);
    let flags = if end { END_STREAM } else { 0 };
    let whole = len <= max;
    let first = Frame {
        len: len.min(max) as u32,
        kind: HEADERS,
        flags: flags | if whole { END_HEADERS } else { 0 },
        stream,
    };
    if let Some(room) = out.get_mut(start..start + HEADER) {
        room.copy_from_slice(&first.bytes());
    }
    if !whole {
        let tail = out.split_off(start + HEADER + max);
        let pieces = tail.chunks(max).count();
        for (at, piece) in tail.chunks(max).enumerate() {
            put(out, CONTINUATION, if at + 1 == pieces { END_HEADERS } else { 0 }, stream, piece);
        }
    }
}
