//! HTTP/2 as bytes: frames and blocks that say anything at all, and both ends of a connection that look at
//! nothing they need not.
//!
//! Blocks are written as literals without index, so that names and values are what a case wants. They are
//! read with `wire`'s decoder, which has test vectors of its own; what a list means is judged here.

use wire::hpack::Decoder;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RESET: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;
pub const END: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// One frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn integer(out: &mut Vec<u8>, first: u8, most: usize, value: usize) {
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut left = value - most;
    while left >= 128 {
        out.push((left % 128) as u8 | 128);
        left /= 128;
    }
    out.push(left as u8);
}

/// A block of these lines, as they are.
pub fn block(lines: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in lines {
        out.push(0);
        integer(&mut out, 0, 127, name.len());
        out.extend_from_slice(name);
        integer(&mut out, 0, 127, value.len());
        out.extend_from_slice(value);
    }
    out
}

/// HEADERS in one frame.
pub fn headers(stream: u32, lines: &[(&[u8], &[u8])], end: bool) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | if end { END } else { 0 }, stream, &block(lines))
}

/// DATA.
pub fn data(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    frame(DATA, if end { END } else { 0 }, stream, bytes)
}

/// What both ends begin with: wide windows, and the extended CONNECT.
pub fn greeting() -> Vec<u8> {
    let settings = [[0, 8, 0, 0, 0, 1], [0, 4, 0, 15, 255, 255]].concat();
    [frame(SETTINGS, 0, 0, &settings), frame(8, 0, 0, &0x00ff_0000u32.to_be_bytes())].concat()
}

/// Names and values.
pub type List = Vec<(Vec<u8>, Vec<u8>)>;

/// What one side said on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Talk {
    pub stream: u32,
    /// The header lists: interim ones, the head, trailers; each with how much of the body came before it.
    pub lists: Vec<(List, usize)>,
    pub body: Vec<u8>,
    pub ended: bool,
    pub reset: bool,
}

/// Reads the frames of one side.
pub struct Ear {
    decoder: Decoder,
    buf: Vec<u8>,
    /// A block that is not complete.
    block: Vec<u8>,
    block_ends: bool,
    pub talks: Vec<Talk>,
    /// The number of a GOAWAY.
    pub goaway: Option<u32>,
    /// What is to be answered to settings and pings.
    pub replies: Vec<u8>,
}

impl Ear {
    /// One that waits for a preface, or for none.
    pub fn new() -> Ear {
        Ear {
            decoder: Decoder::new(4096),
            buf: Vec::new(),
            block: Vec::new(),
            block_ends: false,
            talks: Vec::new(),
            goaway: None,
            replies: Vec::new(),
        }
    }

    /// Takes bytes in.
    ///
    /// # Panics
    /// On blocks that can't be decoded: the proxy made them.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
        if self.buf.starts_with(PREFACE) {
            self.buf.drain(..PREFACE.len());
        }
        while let Some((head, rest)) = self.buf.split_first_chunk::<9>().filter(|(head, _)| head[0] != b'P') {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
            let Some(payload) = rest.get(..length).map(<[u8]>::to_vec) else { return };
            let (kind, flags) = (head[3], head[4]);
            self.buf.drain(..9 + length);
            self.frame(kind, flags, stream, &payload);
        }
    }

    pub fn talk(&mut self, stream: u32) -> &mut Talk {
        let at = self.talks.iter().position(|t| t.stream == stream).unwrap_or_else(|| {
            self.talks.push(Talk { stream, ..Talk::default() });
            self.talks.len() - 1
        });
        &mut self.talks[at]
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        assert!(flags & 8 == 0 || kind > HEADERS, "the proxy pads nothing");
        match kind {
            DATA => {
                let talk = self.talk(stream);
                talk.body.extend_from_slice(payload);
                talk.ended |= flags & END != 0;
            }
            HEADERS | CONTINUATION => {
                let skip = if kind == HEADERS && flags & 32 != 0 { 5 } else { 0 };
                self.block.extend_from_slice(&payload[skip..]);
                if kind == HEADERS {
                    self.block_ends = flags & END != 0;
                }
                if flags & END_HEADERS != 0 {
                    self.list(stream);
                }
            }
            RESET => self.talk(stream).reset = true,
            SETTINGS if flags & END == 0 => self.replies.extend_from_slice(&frame(SETTINGS, END, 0, b"")),
            6 if flags & END == 0 => self.replies.extend_from_slice(&frame(6, END, 0, payload)),
            GOAWAY => self.goaway = payload.first_chunk().map(|last| u32::from_be_bytes(*last)),
            _ => {}
        }
    }

    fn list(&mut self, stream: u32) {
        let (block, ends) = (std::mem::take(&mut self.block), self.block_ends);
        let mut list = Vec::new();
        let decoded =
            self.decoder.decode(&block, &mut |line| list.push((line.name.to_vec(), line.value.to_vec())));
        assert_eq!(decoded, Ok(()), "a block of the proxy can be decoded");
        let talk = self.talk(stream);
        talk.lists.push((list, talk.body.len()));
        talk.ended |= ends;
    }
}
