//! What the bytes of one stream go through on a connection, whatever protocol that speaks.

use wire::head::Head;

/// One stream of a connection, for as long as something of it is moved.
pub trait Carrier {
    /// Appends data in frames, as far as the peer takes them now; says how many bytes of them. `end`: behind
    /// the last of them the message is over.
    fn send(&mut self, data: &[u8], end: bool, out: &mut Vec<u8>) -> usize;

    /// Appends the head of one frame for `len` bytes that follow from elsewhere; whether there may be one.
    fn frame(&mut self, len: usize, end: bool, out: &mut Vec<u8>) -> bool;

    /// The bytes of that frame were put behind its head.
    fn framed(&mut self, end: bool, out: &mut Vec<u8>) {
        let _ = (end, out);
    }

    /// Ends the message with fields, where the protocol knows such.
    fn trailers(&mut self, fields: &Head, out: &mut Vec<u8>);

    /// So many bytes that came were taken.
    fn release(&mut self, bytes: usize, out: &mut Vec<u8>);
}
