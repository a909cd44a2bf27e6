//! Reasons of failures that come from this side (`option set-on-error`).

/// `timeout processing` passed.
pub const TIMEOUT: u32 = 1;
/// The messages are longer than a frame may be.
pub const TOO_BIG: u32 = 3;
/// The stream did not wait for the answer.
pub const INTERRUPTED: u32 = 5;
/// Nobody knows.
pub const UNKNOWN: u32 = 255;
/// Added to the status codes of the protocol.
pub const SPOP: u32 = 256;
