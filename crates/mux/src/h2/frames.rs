//! A stream of HTTP/2 as what moves its bytes sees it.

use base::slab::Key;
use wire::h2::Connection;
use wire::head::Head;

use crate::carrier::Carrier;

/// A stream of a connection.
pub struct Frames<'c> {
    /// The stream.
    pub stream: Key,
    /// Its connection.
    pub connection: &'c mut Connection,
}

impl Carrier for Frames<'_> {
    fn send(&mut self, data: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        self.connection.send(self.stream, data, end, out)
    }

    fn frame(&mut self, len: usize, end: bool, out: &mut Vec<u8>) -> bool {
        let header = self.connection.frame_data(self.stream, len, end);
        header.inspect(|header| out.extend_from_slice(header)).is_some()
    }

    fn trailers(&mut self, fields: &Head, out: &mut Vec<u8>) {
        self.connection.send_trailers(self.stream, fields, out);
    }

    fn release(&mut self, bytes: usize, out: &mut Vec<u8>) {
        self.connection.release(self.stream, bytes, out);
    }
}
