//! Where a fetch may be used.
//!
//! HAProxy names 22 places (the columns of its `-dKall` dump). A fetch does not list them: it names
//! the source its data comes from, and one table here says at which places each source exists.

/// Sets of places, one bit for each column of the dump, leftmost column lowest.
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

    /// Whether a place is in the set.
    pub const fn has(self, place: Place) -> bool {
        self.0 & (1 << place as u32) != 0
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
pub const INTERNAL: Places = Places::row("YYYYYYYYYYYYYYYYYYYY.Y");
/// The client connection at layer 4.
pub const CLIENT_L4: Places = Places::row("YYYYYYYYYYYYYYYYYYYY..");
/// The client connection of a session, without checks.
pub const CLIENT: Places = Places::row("YYYYYYYYYYYYYYYYYYY...");
/// The client connection after its handshakes.
pub const CLIENT_L5: Places = Places::row(".YYYYYYYYYYYYYYYYYY...");
/// The request, as long as it is kept.
pub const REQUEST: Places = Places::row("..YYYYYYYYY...........");
/// Facts of the request that outlive it (method, captures).
pub const REQUEST_KEPT: Places = Places::row("..YYYYYYYYYYYYYYYYY...");
/// The same, and in checks.
pub const REQUEST_KEPT_CHECK: Places = Places::row("..YYYYYYYYYYYYYYYY.Y..");
/// The backend.
pub const BACKEND: Places = Places::row("......YYYYYYYYYYYYYY..");
/// The server, once chosen.
pub const SERVER: Places = Places::row(".........YYYYYYYYYY...");
/// The server connection being made.
pub const SERVER_CONNECT: Places = Places::row("..........YYYYYYYYYY..");
/// The server connection.
pub const SERVER_CONN: Places = Places::row("...........YYYYYYYYY..");
/// The response, as long as it is kept.
pub const RESPONSE: Places = Places::row("...........YYYYYYY.Y..");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_prints_as_it_was_written() {
        assert_eq!(REQUEST.dump(), "[ . . Y Y Y Y Y Y Y Y Y . . . . . . . . . . . ]");
        assert!(REQUEST.has(Place::FrontHttpReq) && !REQUEST.has(Place::Log));
    }
}
