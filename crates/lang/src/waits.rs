//! What formats wait for.

/// What formats wait for until all that they say is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The head of the request.
    pub request: bool,
    /// The head of the response.
    pub response: bool,
    /// The end of the stream.
    pub end: bool,
    /// The request line as it was received is kept: for an expression, whatever it tells, or for the line
    /// itself.
    pub line: bool,
    /// The same for what is of HTTP alone: nothing else counts of a format that is inherited.
    pub http_line: bool,
    /// There is a format at all, be it of a header, or a capture of something that is named.
    pub some: bool,
}

impl Waits {
    /// Waits for what another one waits for as well.
    pub fn join(&mut self, other: Waits) {
        self.request |= other.request;
        self.response |= other.response;
        self.end |= other.end;
        self.line |= other.line;
        self.http_line |= other.http_line;
        self.some |= other.some;
    }
}
