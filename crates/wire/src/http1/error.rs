//! Why a message was refused, as values that compare; words and statuses only at the edge.

use std::fmt;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A byte that no method may have (RFC 9110 section 9.1), or no method.
    BadMethod,
    /// A byte that no target may have, a fragment, or no target (RFC 9112 section 3.2).
    BadTarget,
    /// `CONNECT` without `host:port`, or an authority that is none (RFC 9112 section 3.2.3).
    BadAuthority,
    /// The protocol name or its version is malformed (RFC 9112 section 2.3).
    BadVersion,
    /// Well formed, but not a version of HTTP/1.
    UnsupportedVersion,
    /// The status is not three digits from 100 up (RFC 9112 section 4).
    BadStatus,
    /// A byte that no field name may have, a blank before the colon, or an empty name (RFC 9112 section 5.1).
    BadFieldName,
    /// A byte that no field value may have (RFC 9110 section 5.5).
    BadFieldValue,
    /// CR without LF (RFC 9112 section 2.2).
    BareCr,
    /// LF without CR where both are due.
    BareLf,
    /// More fields than the limit.
    TooManyFields,
    /// The head does not end within its limit.
    TooLarge,
    /// The request line does not fit (RFC 9110 section 15.5.15).
    TargetTooLong,
    /// Content-Length is no number, or one that does not fit (RFC 9110 section 8.6).
    BadContentLength,
    /// Several lengths that differ (RFC 9112 section 6.3).
    ConflictingContentLength,
    /// Transfer-Encoding is empty, or `chunked` is repeated or not the last coding (RFC 9112 section 6.1).
    BadTransferEncoding,
    /// A transfer coding beside `chunked` (RFC 9112 section 6.1).
    UnsupportedTransferEncoding,
    /// Host is repeated, or has a byte or port that no host has (RFC 9112 section 3.2).
    BadHost,
    /// Host says something else than the target's authority.
    HostMismatch,
    /// A WebSocket handshake without its key or its answer (RFC 6455 section 4).
    BadWebSocketKey,
    /// A body where HTTP/1.0 gives none a meaning: GET, HEAD, DELETE.
    BodyNotAllowed,
    /// A chunk size that is no hexadecimal number, or does not fit (RFC 9112 section 7.1).
    BadChunkSize,
    /// A chunk extension that is malformed or too long (RFC 9112 section 7.1.1).
    BadChunkExtension,
    /// Chunk data not followed by CR LF.
    BadChunkEnd,
    /// The trailer section does not end within its limit.
    TrailersTooLarge,
}

impl ErrorKind {
    /// A few fixed words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::BadMethod => "invalid method",
            ErrorKind::BadTarget => "invalid request target",
            ErrorKind::BadAuthority => "invalid authority",
            ErrorKind::BadVersion => "invalid HTTP version",
            ErrorKind::UnsupportedVersion => "unsupported HTTP version",
            ErrorKind::BadStatus => "invalid status code",
            ErrorKind::BadFieldName => "invalid header name",
            ErrorKind::BadFieldValue => "invalid header value",
            ErrorKind::BareCr => "CR without LF",
            ErrorKind::BareLf => "LF without CR",
            ErrorKind::TooManyFields => "too many headers",
            ErrorKind::TooLarge => "message headers too large",
            ErrorKind::TargetTooLong => "request target too long",
            ErrorKind::BadContentLength => "invalid content-length",
            ErrorKind::ConflictingContentLength => "conflicting content-lengths",
            ErrorKind::BadTransferEncoding => "invalid transfer-encoding",
            ErrorKind::UnsupportedTransferEncoding => "unsupported transfer coding",
            ErrorKind::BadHost => "invalid host",
            ErrorKind::HostMismatch => "host and authority differ",
            ErrorKind::BadWebSocketKey => "missing websocket key",
            ErrorKind::BodyNotAllowed => "body not allowed",
            ErrorKind::BadChunkSize => "invalid chunk size",
            ErrorKind::BadChunkExtension => "invalid chunk extension",
            ErrorKind::BadChunkEnd => "chunk data not followed by CRLF",
            ErrorKind::TrailersTooLarge => "trailers too large",
        }
    }

    /// The status that a client gets for a request with this fault. A response with any fault is a 502.
    pub fn status(self) -> u16 {
        match self {
            ErrorKind::BodyNotAllowed => 413,
            ErrorKind::UnsupportedTransferEncoding => 422,
            ErrorKind::TooLarge => 431,
            ErrorKind::TargetTooLong => 414,
            _ => 400,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The part of a message in which a fault was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Method,
    Target,
    Version,
    Status,
    Reason,
    FieldName,
    FieldValue,
    LineEnd,
    Head,
    ChunkSize,
    ChunkExtension,
    ChunkEnd,
    Trailers,
}

impl State {
    /// The word that `show errors` gives.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Method => "method",
            State::Target => "target",
            State::Version => "version",
            State::Status => "status",
            State::Reason => "reason",
            State::FieldName => "header name",
            State::FieldValue => "header value",
            State::LineEnd => "line end",
            State::Head => "headers",
            State::ChunkSize => "chunk size",
            State::ChunkExtension => "chunk extension",
            State::ChunkEnd => "chunk end",
            State::Trailers => "trailers",
        }
    }
}

/// A refused message: what, where in the input, and in which part of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub kind: ErrorKind,
    /// Offset in the input given to the parser.
    pub position: usize,
    pub state: State,
}

impl ParseError {
    pub(crate) fn new(kind: ErrorKind, position: usize, state: State) -> ParseError {
        ParseError { kind, position, state }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at position {} ({})", self.kind, self.position, self.state.as_str())
    }
}

impl std::error::Error for ParseError {}
