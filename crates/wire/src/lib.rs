//! Floor 1: sans-IO codecs: the message head, HTTP/1, PROXY protocol.
#![forbid(unsafe_code)]
