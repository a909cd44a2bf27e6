//! Floor 5: the way of a request, from accept to the log line.
#![forbid(unsafe_code)]
