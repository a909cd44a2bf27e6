//! FastCGI 1.0, as a proxy speaks it to responders: records, name-value pairs, requests and what comes back.
//!
//! [`Reader`] takes what a responder sent, in pieces of any size: data are handed out as they come and never
//! gathered, the few small records that have to be whole are kept up to a limit. [`mod@write`] composes what
//! is sent. Who knows which requests are under way is somebody else: a record of an unknown request is read
//! like any other.

mod pairs;
mod read;
#[cfg(test)]
mod tests;
pub mod write;

pub use pairs::{Pairs, put_pair};
pub use read::{Event, Malformed, Reader, Received};

/// The bytes of the header that each record begins with (section 3.3 of the specification).
pub const HEADER: usize = 8;
/// Most bytes of content of one record.
pub const MOST: usize = 65_535;

/// Types of records (section 8).
pub mod kind {
    /// A request begins.
    pub const BEGIN_REQUEST: u8 = 1;
    /// A request is given up.
    pub const ABORT_REQUEST: u8 = 2;
    /// A request is over, whoever ends it.
    pub const END_REQUEST: u8 = 3;
    /// A part of the parameters of a request.
    pub const PARAMS: u8 = 4;
    /// A part of the body of a request.
    pub const STDIN: u8 = 5;
    /// A part of a response.
    pub const STDOUT: u8 = 6;
    /// A part of what an application says of errors.
    pub const STDERR: u8 = 7;
    /// A request to tell the limits of an application.
    pub const GET_VALUES: u8 = 9;
    /// They are told.
    pub const GET_VALUES_RESULT: u8 = 10;
    /// The application does not know a type of records.
    pub const UNKNOWN_TYPE: u8 = 11;
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its type, one of [`kind`] or one that is not known.
    pub kind: u8,
    /// The request that it belongs to; 0 when it belongs to the connection.
    pub id: u16,
    /// Bytes of content.
    pub content: u16,
    /// Bytes of no meaning behind the content.
    pub padding: u8,
}

impl Header {
    /// One without padding.
    pub fn new(kind: u8, id: u16, content: u16) -> Header {
        Header { kind, id, content, padding: 0 }
    }

    /// Reads one. An error: it is of another version of the protocol.
    pub(crate) fn parse(bytes: &[u8; HEADER]) -> Result<Header, Malformed> {
        let [version, kind, id1, id0, content1, content0, padding, _] = *bytes;
        if version != 1 {
            return Err(Malformed::Version);
        }
        let (id, content) = (u16::from_be_bytes([id1, id0]), u16::from_be_bytes([content1, content0]));
        Ok(Header { kind, id, content, padding })
    }

    /// As it goes over the wire.
    pub fn bytes(self) -> [u8; HEADER] {
        let ([id1, id0], [content1, content0]) = (self.id.to_be_bytes(), self.content.to_be_bytes());
        [1, self.kind, id1, id0, content1, content0, self.padding, 0]
    }
}

/// How a request ended, as the responder says it (section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was served.
    Complete,
    /// The application takes one request at a time on a connection.
    CannotMultiplex,
    /// The application has too much to do.
    Overloaded,
    /// The application plays no such role, or gives no reason that is known.
    Refused,
}

/// What an application tells of its limits (section 4.1); what it does not know it leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// `FCGI_MAX_REQS`: requests that it takes at a time.
    pub max_reqs: Option<u32>,
    /// `FCGI_MPXS_CONNS`: whether a connection carries several at a time.
    pub mpxs_conns: Option<bool>,
}

impl Values {
    /// Reads the content of a record.
    pub fn parse(content: &[u8]) -> Values {
        let mut values = Values::default();
        for (name, value) in Pairs::new(content) {
            let number = || std::str::from_utf8(value).ok()?.parse::<u32>().ok();
            match name {
                b"FCGI_MAX_REQS" => values.max_reqs = number(),
                b"FCGI_MPXS_CONNS" => values.mpxs_conns = number().map(|n| n != 0),
                _ => {}
            }
        }
        values
    }
}
