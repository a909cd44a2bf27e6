//! Settings (RFC 9113 section 6.5, RFC 8441 section 3, RFC 9218 section 2.1): what the peer set, and what
//! this side sets, which the configuration's `tune.h2.*` become.

use super::code::{Code, Fault, Notice, protocol, size};
use super::frame::{self, MAX31};

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;
const NO_RFC7540_PRIORITIES: u16 = 9;

/// The smallest and default frame size.
pub const FRAME_MIN: u32 = 16_384;
/// The initial window until a setting says otherwise.
pub const WINDOW_DEFAULT: u32 = 65_535;

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// What this side allows. The defaults are those of the manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `tune.h2.header-table-size`: bytes of the decoder's dynamic table.
    pub header_table: u32,
    /// Bytes that this side's encoder keeps at most.
    pub encoder_table: u32,
    /// `tune.h2.{fe,be}.max-concurrent-streams`. 0 stands for no limit.
    pub streams: u32,
    /// `tune.h2.{fe,be}.initial-window-size`: the smallest window of a stream, in bytes.
    pub window: u32,
    /// `tune.h2.{fe,be}.rxbuf`: bytes that all streams of the connection may have on their way to here.
    pub rxbuf: u32,
    /// `tune.h2.max-frame-size`, 16384 at least.
    pub frame: u32,
    /// `tune.h2.fe.max-total-streams`; 0 stands for no limit.
    pub total_streams: u32,
    /// `tune.h2.{fe,be}.max-frames-at-once`; 0 stands for no limit.
    pub frames_at_once: u32,
    /// `tune.h2.fe.max-rst-at-once`; 0 stands for no limit.
    pub resets_at_once: u32,
    /// `tune.h2.{fe,be}.glitches-threshold`; 0 stands for none.
    pub glitches: u32,
    /// `tune.glitches.kill.cpu-usage`, percent: whoever drives the connection knows the use, and says what
    /// follows ([`Connection::spare`](super::Connection::spare)).
    pub spared_below: u32,
    /// Whether WebSocket over streams is offered (RFC 8441); not with
    /// `h2-workaround-bogus-websocket-clients`.
    pub extended_connect: bool,
    /// Bytes of a header list as it came, and of the list decoded: `tune.bufsize` less `tune.maxrewrite`.
    pub list: usize,
    /// Fields of a header list, plus one: `tune.http.maxhdr`.
    pub fields: usize,
    /// `option accept-unsafe-violations-in-http-request`, or `-response`.
    pub relax: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            header_table: 4096,
            encoder_table: 4096,
            streams: 100,
            window: 16_384,
            rxbuf: 100 * 16_384,
            frame: FRAME_MIN,
            total_streams: 0,
            frames_at_once: 0,
            resets_at_once: 0,
            glitches: 0,
            spared_below: 0,
            extended_connect: true,
            list: 16_384 - 1024,
            fields: 101,
            relax: false,
        }
    }
}

impl Limits {
    /// Appends the first `SETTINGS` frame of the connection.
    pub(super) fn announce(&self, role: Role, out: &mut Vec<u8>) {
        // A client's limit and its word on CONNECT mean nothing to a server, but HAProxy's carry them, and in
        // this order.
        let streams = (self.streams > 0).then_some(self.streams);
        let entries = [
            (ENABLE_PUSH, (role == Role::Client).then_some(0)),
            (ENABLE_CONNECT_PROTOCOL, self.extended_connect.then_some(1)),
            (HEADER_TABLE_SIZE, (self.header_table != 4096).then_some(self.header_table)),
            (INITIAL_WINDOW_SIZE, (self.window != WINDOW_DEFAULT).then_some(self.window.min(MAX31))),
            (MAX_CONCURRENT_STREAMS, streams),
            (MAX_FRAME_SIZE, (self.frame > FRAME_MIN).then_some(self.frame)),
        ];
        let mut payload = Vec::with_capacity(36);
        for (id, value) in entries {
            if let Some(value) = value {
                payload.extend_from_slice(&u16::to_be_bytes(id));
                payload.extend_from_slice(&u32::to_be_bytes(value));
            }
        }
        frame::put(out, frame::SETTINGS, 0, 0, &payload);
    }
}

/// What the peer set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub header_table: u32,
    /// Streams that this side may have open at once.
    pub streams: u32,
    pub window: u32,
    pub frame: u32,
    /// The peer takes extended CONNECT (RFC 8441).
    pub extended_connect: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            header_table: 4096,
            streams: u32::MAX,
            window: WINDOW_DEFAULT,
            frame: FRAME_MIN,
            extended_connect: false,
        }
    }
}

impl Settings {
    /// Takes over the payload of a `SETTINGS` frame that `role` received. How often it made the window
    /// smaller, which is odd.
    pub(super) fn update(&mut self, payload: &[u8], role: Role) -> Result<u32, Fault> {
        let mut shrunk = 0;
        let (entries, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(size("SETTINGS of an odd length"));
        }
        for [a, b, c, d, e, f] in entries {
            let value = u32::from_be_bytes([*c, *d, *e, *f]);
            match u16::from_be_bytes([*a, *b]) {
                HEADER_TABLE_SIZE => self.header_table = value,
                // A server should not say that it takes pushes, but no harm is in it.
                ENABLE_PUSH if value > 1 => return Err(protocol("bad ENABLE_PUSH")),
                MAX_CONCURRENT_STREAMS => self.streams = value,
                INITIAL_WINDOW_SIZE if value > MAX31 => {
                    return Err(Fault::Connection(
                        Code::FLOW_CONTROL_ERROR,
                        "initial window above 2^31-1",
                        Notice::Logged,
                    ));
                }
                INITIAL_WINDOW_SIZE => {
                    shrunk += u32::from(std::mem::replace(&mut self.window, value) > value)
                }
                MAX_FRAME_SIZE if !(FRAME_MIN..1 << 24).contains(&value) => {
                    return Err(protocol("bad MAX_FRAME_SIZE"));
                }
                MAX_FRAME_SIZE => self.frame = value,
                // A client's word on CONNECT means nothing to a server.
                ENABLE_CONNECT_PROTOCOL if role == Role::Server => {}
                // What means nothing (RFC 8441 section 3) is passed over: a server that speaks so is
                // understood.
                ENABLE_CONNECT_PROTOCOL => self.extended_connect |= value == 1,
                NO_RFC7540_PRIORITIES if value > 1 => return Err(protocol("bad NO_RFC7540_PRIORITIES")),
                _ => {}
            }
        }
        Ok(shrunk)
    }
}
