//! HTTP/1: heads in, heads out, and how the body between them is framed (RFC 9112).

mod bytes;
mod error;
mod line;
mod parse;
mod rules;

pub use error::{ErrorKind, ParseError, State};
pub use parse::{Limits, Parsed, parse_request, parse_response};
