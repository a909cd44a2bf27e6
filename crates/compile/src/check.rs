//! Ready-made checks (`option redis-check` and its kin), as conversations.
//!
//! Each is what the protocol's documents say a client does first: greet, and look whether the answer is the
//! one of a healthy server. The bytes, judgements and texts are those that were observed of HAProxy, because
//! people match on them.

use model::check::CheckStatus::{self, L6Ok, L6Rsp, L6Timeout, L7Ok, L7Rsp, L7Sts};
use program::check::Protocol;
use wire::spop::{CHECK_FRAME, write::Greeting};

/// One step of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Canned {
    /// Connect, and close in order.
    Connect {
        /// Close in order instead of with a reset.
        linger: bool,
    },
    /// Send these bytes.
    Send(Vec<u8>),
    /// Send what the hexadecimal digits of a format stand for.
    SendHex(&'static str),
    /// Look at the answer.
    Expect(Answer),
}

/// What an answer must be, and what it is called if it is so or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub what: Sought,
    pub negated: bool,
    /// Bytes before which nothing is decided.
    pub least: Option<u32>,
    pub ok: CheckStatus,
    pub error: CheckStatus,
    pub timeout: Option<CheckStatus>,
    /// Formats; empty: nothing is said.
    pub on_success: &'static str,
    pub on_error: &'static str,
    /// An expression; empty: none.
    pub code: &'static str,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    Text(&'static [u8]),
    Regex(&'static str),
    /// On the hexadecimal digits of the answer.
    BinaryRegex(&'static str),
    Protocol(Protocol),
}

const fn answer(what: Sought, error: CheckStatus) -> Answer {
    Answer {
        what,
        negated: false,
        least: None,
        ok: L7Ok,
        error,
        timeout: None,
        on_success: "",
        on_error: "",
        code: "",
    }
}

const LINGER: Canned = Canned::Connect { linger: true };
const CONNECT: Canned = Canned::Connect { linger: false };
const FIRST_LINE: &str = "%[res.payload(0,0),cut_crlf]";

fn protocol(protocol: Protocol) -> Canned {
    Canned::Expect(answer(Sought::Protocol(protocol), L7Rsp))
}

/// Redis: `PING` is answered by `PONG`.
pub(crate) fn redis() -> Vec<Canned> {
    let pong = answer(Sought::Text(b"+PONG\r\n"), L7Sts);
    vec![
        Canned::Send(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        Canned::Expect(Answer { on_success: "Redis server is ok", on_error: FIRST_LINE, ..pong }),
    ]
}

/// LDAP version 3 (RFC 4511): an anonymous simple bind succeeds.
pub(crate) fn ldap() -> Vec<Canned> {
    let bind = [0x30, 0x0c, 0x02, 0x01, 0x01, 0x60, 0x07, 0x02, 0x01, 0x03, 0x04, 0x00, 0x80, 0x00];
    vec![Canned::Send(bind.to_vec()), protocol(Protocol::Ldap)]
}

/// SMTP (RFC 5321): a greeting, an answer to ours of one or more lines, a farewell.
pub(crate) fn smtp(hello: &str, domain: &str) -> Vec<Canned> {
    let rest = "%[res.payload(4,0),ltrim(' '),cut_crlf]";
    let status = |regex, least| Answer {
        least,
        on_error: rest,
        code: "res.payload(0,3)",
        ..answer(Sought::Regex(regex), L7Sts)
    };
    let any = answer(Sought::Regex("^[0-9]{3}[ \r]"), L7Rsp);
    vec![
        LINGER,
        Canned::Expect(Answer { least: Some(4), on_error: FIRST_LINE, ..any }),
        Canned::Expect(status("^2[0-9]{2}[ \r]", Some(4))),
        Canned::Send(format!("{hello} {domain}\r\n").into_bytes()),
        Canned::Expect(status("^(2[0-9]{2}-[^\r]*\r\n)*2[0-9]{2}[ \r]", None)),
        Canned::Send(b"QUIT\r\n".to_vec()),
        Canned::Expect(Answer { on_success: rest, ..status("^2[0-9]{2}[- \r]", Some(4)) }),
    ]
}

/// PostgreSQL: a start-up message for a user is answered by a request to authenticate.
pub(crate) fn pgsql(user: &[u8]) -> Vec<Canned> {
    let mut body = Vec::from(0x0003_0000u32.to_be_bytes());
    body.extend_from_slice(b"user\0");
    body.extend_from_slice(user);
    body.extend_from_slice(b"\0\0");
    let mut message = Vec::from(u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes());
    message.extend_from_slice(&body);
    let refused = answer(Sought::Regex("^E"), L7Rsp);
    let asks = answer(Sought::BinaryRegex("^52000000[0-9A-F]{2}000000(00|02|03|04|05|06|07|09|0A)"), L7Sts);
    vec![
        LINGER,
        Canned::Send(message),
        Canned::Expect(Answer { negated: true, least: Some(5), on_error: "%[res.payload(6,0)]", ..refused }),
        Canned::Expect(Answer {
            least: Some(9),
            on_success: "PostgreSQL server is ok",
            on_error: "PostgreSQL unknown error",
            ..asks
        }),
    ]
}

/// MySQL: the server's greeting is no error; with a user, so is its answer to a log-in.
pub(crate) fn mysql(user: Option<&[u8]>, modern: bool) -> Vec<Canned> {
    let Some(user) = user else { return vec![LINGER, protocol(Protocol::MysqlGreeting)] };
    let mut body = Vec::new();
    if modern {
        // Capabilities, largest packet, character set, 23 bytes of filling, user, no password.
        body.extend_from_slice(&[0x00, 0x82, 0x00, 0x00, 0x00, 0x80, 0x00, 0x01, 0x21]);
        body.extend_from_slice(&[0; 23]);
    } else {
        // Capabilities and largest packet, as servers before 4.1 know them.
        body.extend_from_slice(&[0x00, 0x80, 0x00, 0x00, 0x01]);
    }
    body.extend_from_slice(user);
    body.extend_from_slice(&[0, 0]);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut message = vec![length[0], length[1], length[2], 1];
    message.extend_from_slice(&body);
    // COM_QUIT, so that the server doesn't count an aborted connection.
    message.extend_from_slice(&[1, 0, 0, 0, 1]);
    vec![LINGER, Canned::Send(message), protocol(Protocol::MysqlGreeting), protocol(Protocol::MysqlAnswer)]
}

/// A TLS server answers an SSLv3 hello by a handshake or an alert record: 121 bytes of record, 117 of
/// message, the time, a recognisable text for the random bytes, no session, 39 cipher suites, no compression.
pub(crate) fn ssl_hello() -> Vec<Canned> {
    const HELLO: &str = "16030000790100007503\
        00%[date(),htonl,hex]\
        484150524F585953534C43484B0A484150524F585953534C43484B0A00\
        004E000100020003000400050006000700080009000A000B000C000D000E000F\
        0010001100120013001400150016001700180019001A001B\
        002F0030003100320033003400350036003700380039003A0100";
    let record = answer(Sought::BinaryRegex("^1[56]"), L6Rsp);
    vec![
        Canned::SendHex(HELLO),
        Canned::Expect(Answer { least: Some(5), ok: L6Ok, timeout: Some(L6Timeout), ..record }),
    ]
}

/// SPOP (SPOE.txt, section 3.2.4): an agent answers a HAPROXY-HELLO that says it is a check by an
/// AGENT-HELLO.
pub(crate) fn spop() -> Vec<Canned> {
    let mut message = Vec::new();
    let hello = Greeting { most: CHECK_FRAME, pipelining: false, check: true, engine: None };
    // The frame is far shorter than it allows frames to be.
    let written = wire::spop::write::greeting(&mut message, &hello);
    debug_assert!(written.is_ok());
    vec![CONNECT, Canned::Send(message), protocol(Protocol::Spop)]
}
