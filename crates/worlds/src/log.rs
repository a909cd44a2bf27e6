//! Log lines as the scenes read them.
//!
//! The format is one of ours, given by the harness to every configuration, so that a line is cut at blanks.

/// The format of a line; see [`Line`].
pub(crate) const FORMAT: &str = "%ft %b/%s %ST %tsc %rc %TR/%Tw/%Tc/%Tr %Ta %U %B %sq/%bq %rt";

/// The same for `mode tcp`, which has no statuses.
pub const TCP_FORMAT: &str = "%ft %b/%s - %ts-- %rc -1/%Tw/%Tc/-1 %Tt %U %B %sq/%bq %rt";

/// One line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Everything behind the tag.
    pub text: String,
    /// Frontend.
    pub frontend: String,
    /// Backend and server, `b/s`.
    pub server: String,
    /// Status.
    pub status: String,
    /// Termination state, four letters.
    pub term: String,
    /// Retries, with a `+` if redispatched.
    pub retries: String,
    /// Times: request, queue, connect, response.
    pub times: Vec<i64>,
    /// Bytes from the client.
    pub up: u64,
    /// Bytes to the client.
    pub down: u64,
    /// Position in the queues of server and backend.
    pub queues: String,
}

impl Line {
    pub(crate) fn parse(text: &str) -> Line {
        let text = text.split_once("]: ").map_or(text, |(_, rest)| rest).trim_end();
        let word = |n: usize| text.split(' ').nth(n).unwrap_or_default().to_owned();
        Line {
            text: text.to_owned(),
            frontend: word(0),
            server: word(1),
            status: word(2),
            term: word(3),
            retries: word(4),
            times: word(5).split('/').filter_map(|t| t.parse().ok()).collect(),
            up: word(7).parse().unwrap_or(0),
            down: word(8).parse().unwrap_or(0),
            queues: word(9),
        }
    }

    /// Whether it is one of this frontend (which has `~` behind its name where there was TLS).
    pub(crate) fn is_of(&self, frontend: &str) -> bool {
        self.frontend.trim_end_matches('~') == frontend
    }

    /// How the request ended: answered, broken off by the client, by the server, refused.
    ///
    /// # Panics
    /// If the line contradicts itself: nobody broke off, and there was no answer.
    pub(crate) fn end(&self) -> usize {
        match self.term.as_bytes().first() {
            Some(b'-' | b'L') => {
                assert_ne!(self.status, "-1", "an answer without a status: {}", self.text);
                0
            }
            Some(b'C' | b'c') => 1,
            Some(b'S' | b's') => 2,
            _ => 3,
        }
    }

    /// The first two letters of the termination state.
    pub fn state(&self) -> &str {
        self.term.get(..2).unwrap_or_default()
    }
}
