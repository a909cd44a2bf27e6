//! HTTP/1: heads in, heads out, and how the body between them is framed (RFC 9112).

mod bytes;
mod error;
mod framing;
mod line;
mod parse;
mod rules;
mod write;

pub use error::{ErrorKind, ParseError, State};
pub use framing::{Body, Framing};
pub use parse::{Limits, Parsed, parse_request, parse_response};
pub use write::write_head;
