//! Floor 1: sans-IO codecs: the message head, HTTP/1, HTTP/2 with HPACK, PROXY protocol, DNS, FastCGI, SPOP,
//! SMTP, syslog lines, HTTP dates.
//!
//! Nothing here knows a socket, a clock or a proxy: bytes go in, facts and bytes come out. What a peer sends
//! never panics; each parser is total and says where and why it stopped.
#![forbid(unsafe_code)]

pub mod caching;
pub mod dns;
pub mod fcgi;
pub mod fuzzing;
pub mod h2;
pub mod handover;
pub mod head;
pub mod hpack;
pub mod http1;
pub mod method;
pub mod peers;
pub mod proxy;
pub mod ring_file;
pub mod smtp;
pub mod spop;
pub mod syslog;
pub mod uri;
mod varint;
