//! When a log line is made: `%OG`, `log-steps`, and `on` of a log profile (manual, sections 8.2.6 and 8.3.5).

/// The moment at which a line is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Origin {
    /// Not said.
    #[default]
    Unspecified,
    /// A connection failed before it was a stream.
    Error,
    /// The frontend accepted.
    Accept,
    /// The request was received.
    Request,
    /// The connection to the server stood.
    Connect,
    /// The response was received.
    Response,
    /// The end.
    Close,
    /// `do-log` of `quic-initial`.
    QuicInit,
    /// `do-log` of `tcp-request connection`.
    TcpReqConn,
    /// `do-log` of `tcp-request session`.
    TcpReqSess,
    /// `do-log` of `tcp-request content`.
    TcpReqCont,
    /// `do-log` of `tcp-response content`.
    TcpResCont,
    /// `do-log` of `http-request`.
    HttpReq,
    /// `do-log` of `http-response`.
    HttpRes,
    /// `do-log` of `http-after-response`.
    HttpAfterRes,
}

/// How many moments there are.
pub const COUNT: usize = 15;

/// Each moment with its word for `on`, and what `%OG` says.
const NAMES: [(Origin, &str, &str); COUNT] = [
    (Origin::Unspecified, "", "unspec"),
    (Origin::Error, "error", "sess_error"),
    (Origin::Accept, "accept", "txn_accept"),
    (Origin::Request, "request", "txn_request"),
    (Origin::Connect, "connect", "txn_connect"),
    (Origin::Response, "response", "txn_response"),
    (Origin::Close, "close", "txn_close"),
    (Origin::QuicInit, "quic-init", "quic-init"),
    (Origin::TcpReqConn, "tcp-req-conn", "tcp-req-conn"),
    (Origin::TcpReqSess, "tcp-req-sess", "tcp-req-sess"),
    (Origin::TcpReqCont, "tcp-req-cont", "tcp-req-cont"),
    (Origin::TcpResCont, "tcp-res-cont", "tcp-res-cont"),
    (Origin::HttpReq, "http-req", "http-req"),
    (Origin::HttpRes, "http-res", "http-res"),
    (Origin::HttpAfterRes, "http-after-res", "http-after-res"),
];

impl Origin {
    /// The moment of a word behind `on`.
    pub fn from_step(word: &str) -> Option<Origin> {
        NAMES.iter().find(|(_, step, _)| !step.is_empty() && *step == word).map(|(origin, ..)| *origin)
    }

    /// What `%OG` says.
    pub fn text(self) -> &'static str {
        NAMES[self as usize].2
    }

    /// Its place in a table of [`COUNT`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its bit in a set.
    pub fn bit(self) -> u16 {
        1 << self as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stands_in_the_order_of_the_numbers() {
        for (i, (origin, step, _)) in NAMES.iter().enumerate() {
            assert_eq!(origin.index(), i);
            assert_eq!(Origin::from_step(step), Some(*origin).filter(|_| !step.is_empty()));
        }
    }
}
