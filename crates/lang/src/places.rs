//! Where a fetch may be used.
//!
//! HAProxy names 22 places (the columns of its `-dKall` dump). A fetch does not list them: it names
//! the source its data comes from, and one table here says at which places each source exists.

/// Sets of places, one bit for each column of the dump, leftmost column lowest; above them the number
/// of the source, which only messages show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places(pub u32);

/// One place: where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// Frontend, `tcp-request connection`.
    FrontConn = 0,
    /// Frontend, `tcp-request session`.
    FrontSess,
    /// Frontend, `tcp-request content`.
    FrontTcpContent,
    /// Frontend, `http-request`.
    FrontHttpReq,
    /// Frontend, `http-request`, body.
    FrontHttpReqBody,
    /// Frontend, `use_backend`.
    SwitchBackend,
    /// Backend, `tcp-request content`.
    BackTcpContent,
    /// Backend, `http-request`.
    BackHttpReq,
    /// Backend, `http-request`, body.
    BackHttpReqBody,
    /// Backend, `use-server`, `balance`, `stick match`.
    ChooseServer,
    /// `source`, and other settings of the server connection.
    ServerConnect,
    /// Backend, `tcp-response content`.
    BackTcpResponse,
    /// Backend, `http-response`.
    BackHttpRes,
    /// Backend, `http-response`, body.
    BackHttpResBody,
    /// Backend, `stick store-response`.
    StickStore,
    /// Frontend, `tcp-response content`.
    FrontTcpResponse,
    /// Frontend, `http-response`.
    FrontHttpRes,
    /// Frontend, `http-response`, body.
    FrontHttpResBody,
    /// Log lines.
    Log,
    /// `tcp-check` and `http-check`.
    Check,
    /// While the configuration is read.
    Config,
    /// Runtime API.
    Cli,
    /// `http-error`: an answer to a request or instead of a response. No column of the dump.
    ErrorPage,
}

/// The places in the words of the dump's legend.
const LEGEND: [&str; COUNT as usize] = [
    "frontend tcp-request connection rule",
    "frontend tcp-request session rule",
    "frontend tcp-request content rule",
    "frontend http-request header rule",
    "frontend http-request body rule",
    "frontend use-backend rule",
    "backend tcp-request content rule",
    "backend http-request header rule",
    "backend http-request body rule",
    "backend use-server, balance or stick-match rule",
    "server source selection",
    "backend tcp-response content rule",
    "backend http-response header rule",
    "backend http-response body rule",
    "backend stick-store rule",
    "frontend tcp-response content rule",
    "frontend http-response header rule",
    "frontend http-response body rule",
    "logs",
    "backend tcp-check rule",
    "configuration parser",
    "CLI parser",
];

/// The lines of the dump's legend.
pub(crate) fn legend() -> Vec<String> {
    let count = COUNT as usize;
    let line = |(bit, words): (usize, &&str)| {
        let (blanks, slashes, dashes) =
            (" ".repeat(count + 1 - bit), "/ ".repeat(bit), "-".repeat(count - bit));
        format!("#{blanks}{slashes}_.{dashes} {words}")
    };
    let mut lines: Vec<String> = LEGEND.iter().enumerate().map(line).collect();
    lines.push(format!("# {} ", "/ ".repeat(count)));
    lines.push(format!("# {}", "| ".repeat(count)));
    lines
}

impl Place {
    /// The words of the dump's legend.
    pub fn words(self) -> &'static str {
        LEGEND.get(self as usize).copied().unwrap_or_default()
    }

    /// Whether it is on the way of a request to its server.
    pub fn is_before_response(self) -> bool {
        self as usize <= Place::ServerConnect as usize
    }
}

/// Number of places.
pub const COUNT: u32 = 22;

impl Places {
    /// No place.
    pub const NONE: Places = Places(0);

    /// From the dump's row: `Y` and `.`, other characters ignored.
    pub const fn row(row: &str) -> Places {
        let bytes = row.as_bytes();
        let (mut i, mut bit, mut set) = (0, 0, 0);
        while i < bytes.len() {
            if bytes[i] == b'Y' {
                set |= 1 << bit;
            }
            if bytes[i] == b'Y' || bytes[i] == b'.' {
                bit += 1;
            }
            i += 1;
        }
        assert!(bit == COUNT, "a row has one letter for each place");
        Places(set)
    }

    /// The same places, and the number of the source.
    const fn of(self, source: u32) -> Places {
        Places(self.0 | source << COUNT)
    }

    /// Whether the data is the request's head or its bytes, which are there until it is forwarded.
    pub fn is_of_request(self) -> bool {
        self == REQUEST || self == REQUEST_BUFFER
    }

    /// Whether the data is a request's or a response's, its bytes or what is kept of its head.
    pub fn is_of_message(self) -> bool {
        let sources = [REQUEST, REQUEST_BUFFER, REQUEST_KEPT, EITHER_HEAD, EITHER_BUFFER];
        let of_response = [RESPONSE_KEPT, RESPONSE, RESPONSE_BUFFER];
        sources.into_iter().chain(of_response).any(|places| places == self)
    }

    /// Where the data comes from, in the words of messages.
    pub fn source(self) -> &'static str {
        SOURCES.get((self.0 >> COUNT) as usize).copied().unwrap_or_default()
    }

    /// Whether a place is in the set.
    pub fn has(self, place: Place) -> bool {
        match place {
            Place::ErrorPage => {
                let either =
                    [Place::FrontHttpReq, Place::BackHttpReq, Place::FrontHttpRes, Place::BackHttpRes];
                either.into_iter().any(|place| self.has(place))
            }
            place => self.0 & (1 << place as u32) != 0,
        }
    }

    /// As in the dump: `[ Y . Y ... ]`.
    pub fn dump(self) -> String {
        let mut s = String::from("[ ");
        for bit in 0..COUNT {
            s.push(if self.0 & (1 << bit) != 0 { 'Y' } else { '.' });
            s.push(' ');
        }
        s.push(']');
        s
    }
}

/// Data that exists everywhere, the configuration parser and the runtime API included.
pub const CONSTANT: Places = Places::row("YYYYYYYYYYYYYYYYYYYYYY");
/// State of the process, of proxies, servers and tables.
pub const INTERNAL: Places = Places::row("YYYYYYYYYYYYYYYYYYYY.Y").of(0);
/// The client connection at layer 4.
pub const CLIENT_L4: Places = Places::row("YYYYYYYYYYYYYYYYYYYY..").of(1);
/// The client connection of a session, without checks.
pub const CLIENT: Places = Places::row("YYYYYYYYYYYYYYYYYYY...").of(1);
/// The client connection after its handshakes.
pub const CLIENT_L5: Places = Places::row(".YYYYYYYYYYYYYYYYYY...").of(1);
/// The request head, as long as it is kept.
pub const REQUEST: Places = Places::row("..YYYYYYYYY...........").of(2);
/// Bytes of the request that were not forwarded yet.
pub const REQUEST_BUFFER: Places = Places::row("..YYYYYYYYY...........").of(3);
/// Facts of the request that outlive it (method, captures).
pub const REQUEST_KEPT: Places = Places::row("..YYYYYYYYYYYYYYYYY...").of(4);
/// Figures of the request's bytes.
pub const REQUEST_FIGURES: Places = Places::row("..YYYYYYYYYYYYYYYYY...").of(5);
/// Heads of either direction, and of checks.
pub const EITHER_HEAD: Places = Places::row("..YYYYYYYYYYYYYYYY.Y..").of(6);
/// Bytes of either direction, and of checks.
pub const EITHER_BUFFER: Places = Places::row("..YYYYYYYYYYYYYYYY.Y..").of(7);
/// The backend.
pub const BACKEND: Places = Places::row("......YYYYYYYYYYYYYY..").of(8);
/// Figures of the response's bytes.
pub const RESPONSE_FIGURES: Places = Places::row(".........YYYYYYYYYY...").of(9);
/// The server, once chosen.
pub const SERVER: Places = Places::row("..........YYYYYYYYYY..").of(10);
/// The server connection.
pub const SERVER_CONN: Places = Places::row("...........YYYYYYYYY..").of(11);
/// Facts of the response that outlive it (status, captures).
pub const RESPONSE_KEPT: Places = Places::row("...........YYYYYYYYY..").of(12);
/// The response head, as long as it is kept.
pub const RESPONSE: Places = Places::row("...........YYYYYYY.Y..").of(13);
/// Bytes of the response that were not forwarded yet.
pub const RESPONSE_BUFFER: Places = Places::row("...........YYYYYYY.Y..").of(14);

/// The sources by number, as messages name them.
const SOURCES: [&str; 15] = [
    "internal state",
    "client-side connection",
    "HTTP request headers",
    "request buffer",
    "HTTP request",
    "request buffer statistics",
    "HTTP request headers,HTTP response headers",
    "request buffer,response buffer",
    "backend",
    "response buffer statistics",
    "server",
    "server address",
    "HTTP response",
    "HTTP response headers",
    "response buffer",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_prints_as_it_was_written() {
        assert_eq!(REQUEST.dump(), "[ . . Y Y Y Y Y Y Y Y Y . . . . . . . . . . . ]");
        assert!(REQUEST.has(Place::FrontHttpReq) && !REQUEST.has(Place::Log));
    }
}
