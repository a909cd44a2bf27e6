//! Ready-made checks (`option redis-check` and its kin), as conversations.
//!
//! Each is what the protocol's documents say a client does first: greet, and look whether the answer is the one of a
//! healthy server.

/// One step of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Canned {
    /// Send these bytes.
    Send(Vec<u8>),
    /// The answer contains this text.
    Text(Vec<u8>),
    /// The answer, as hexadecimal digits, matches.
    BinaryRegex(&'static str),
    /// The answer matches.
    Regex(&'static str),
}

/// Redis: `PING` is answered by `PONG`.
pub(crate) fn redis() -> Vec<Canned> {
    vec![Canned::Send(b"*1\r\n$4\r\nPING\r\n".to_vec()), Canned::Text(b"+PONG\r\n".to_vec())]
}

/// LDAP version 3 (RFC 4511): an anonymous simple bind succeeds.
pub(crate) fn ldap() -> Vec<Canned> {
    let bind = [0x30, 0x0c, 0x02, 0x01, 0x01, 0x60, 0x07, 0x02, 0x01, 0x03, 0x04, 0x00, 0x80, 0x00];
    vec![Canned::Send(bind.to_vec()), Canned::BinaryRegex("^30.*02010161.*0A0100")]
}

/// SMTP (RFC 5321): a greeting, an answer to ours.
pub(crate) fn smtp(hello: &str, domain: &str) -> Vec<Canned> {
    vec![
        Canned::Regex("^2[0-9]{2}[- \r]"),
        Canned::Send(format!("{hello} {domain}\r\n").into_bytes()),
        Canned::Regex("^2[0-9]{2}[- \r]"),
        Canned::Send(b"QUIT\r\n".to_vec()),
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
    vec![Canned::Send(message), Canned::BinaryRegex("^52[0-9A-F]{8}0000000[0A253]")]
}

/// MySQL: the server's greeting is no error; with a user, so is its answer to a log-in.
pub(crate) fn mysql(user: Option<&[u8]>, modern: bool) -> Vec<Canned> {
    let mut steps = vec![Canned::BinaryRegex("^[0-9A-F]{6}00(?!FF)")];
    let Some(user) = user else { return steps };
    let mut body = Vec::new();
    if modern {
        // Capabilities, largest packet, character set, 23 bytes of filling, user, no password.
        body.extend_from_slice(&[0x00, 0x82, 0x00, 0x00, 0x00, 0x80, 0x00, 0x01, 0x21]);
        body.extend_from_slice(&[0; 23]);
        body.extend_from_slice(user);
        body.extend_from_slice(&[0, 0, 0]);
    } else {
        body.extend_from_slice(&[0x80, 0x00, 0x00, 0x00, 0x01]);
        body.extend_from_slice(user);
        body.push(0);
    }
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut message = vec![length[0], length[1], length[2], 1];
    message.extend_from_slice(&body);
    // COM_QUIT, so that the server doesn't count an aborted connection.
    steps.push(Canned::Send(message));
    steps.push(Canned::BinaryRegex("^[0-9A-F]{8}(?!FF)"));
    steps.push(Canned::Send(vec![1, 0, 0, 0, 1]));
    steps
}

/// A TLS server answers an SSLv3 hello by a handshake or an alert record.
pub(crate) fn ssl_hello() -> Vec<Canned> {
    let mut hello = vec![0x16, 0x03, 0x00, 0x00, 0x79, 0x01, 0x00, 0x00, 0x75, 0x03, 0x00];
    hello.extend_from_slice(b"\x00\x00\x00\x00HAPROXYSSLCHK\nHEALTHCHK OK\n\x00");
    hello.push(0);
    let suites: Vec<u8> = (0x01u8..=0x1c).chain(0x30..=0x3b).flat_map(|n| [0, n]).collect();
    hello.extend_from_slice(&u16::try_from(suites.len()).unwrap_or(0).to_be_bytes());
    hello.extend_from_slice(&suites);
    hello.extend_from_slice(&[1, 0]);
    // The two lengths follow from what was put together.
    let record = u16::try_from(hello.len() - 5).unwrap_or(0).to_be_bytes();
    let message = u16::try_from(hello.len() - 9).unwrap_or(0).to_be_bytes();
    hello[3..5].copy_from_slice(&record);
    hello[7..9].copy_from_slice(&message);
    vec![Canned::Send(hello), Canned::BinaryRegex("^1[56]")]
}
