//! HTTP/1: heads in, heads out, and how the body between them is framed (RFC 9112).

mod authority;
pub(crate) mod bytes;
mod chunk;
mod error;
mod framing;
mod line;
mod parse;
mod rules;
mod start;
mod trailers;
mod write;

pub use bytes::is_field_name;
pub use chunk::{Malformed, Scanned, Scanner, split_trailers};
pub use error::{ErrorKind, ParseError, State};
pub use framing::{Body, keeps_alive, request_body, response_body, upgrades};
pub use parse::{Limits, Parsed, parse_request, parse_response, violation};
pub use trailers::counted as counted_trailers;
pub use write::{write_head, write_head_as};

pub(crate) use rules::{check_translated, decimal};

#[cfg(test)]
mod vectors;
