//! What LDAP, MySQL and SPOP servers answer to the first words of a client, as far as a health check cares
//! (manual, `option ldap-check`, `option mysql-check`, `option spop-check`). Pure functions of what was
//! received.

use model::check::CheckStatus;
use program::check::Protocol;
use wire::spop::{self, AgentHello, Status};

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is not complete.
    Later,
    /// The server is fine, in its own words.
    Passed(String),
    /// It is not: status, code, why.
    Failed(CheckStatus, i32, String),
}

/// Where an LDAP result code is explained (RFC 4511 section 4.1.9).
const LDAP_CODES: &str = "See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9";
/// The shortest LDAP message that can hold a bind response.
const LDAP_LEAST: usize = 14;
/// Longest text of a server that is kept.
const TEXT: usize = 512;

/// Judges what came so far; `over`: no more will.
pub fn judge(protocol: Protocol, data: &[u8], over: bool) -> Judged {
    match protocol {
        Protocol::Ldap => ldap(data, over),
        Protocol::MysqlGreeting => mysql(data, 0, over),
        Protocol::MysqlAnswer => mysql(data, 1, over),
        Protocol::Spop => spop(data, over),
    }
}

fn invalid(why: &str) -> Judged {
    Judged::Failed(CheckStatus::L7Rsp, 0, why.to_owned())
}

/// More is needed; an answer that ended before that is no answer.
fn incomplete(over: bool) -> Judged {
    if over { invalid("") } else { Judged::Later }
}

/// Text as a log line may hold it.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(TEXT).collect()
}

/// The result of a bind: `SEQUENCE { messageID 1, [APPLICATION 1] { ENUMERATED code, ... } }` in BER.
fn ldap(data: &[u8], over: bool) -> Judged {
    if !over && data.len() < LDAP_LEAST {
        return Judged::Later;
    }
    let not = || invalid("Not LDAPv3 protocol");
    let Some(rest) = data.strip_prefix(&[0x30]).filter(|r| !r.is_empty()) else { return not() };
    let Some(rest) = ber_content(rest) else { return incomplete(over) };
    let Some(rest) = rest.strip_prefix(&[0x02, 0x01, 0x01, 0x61]) else { return not() };
    let Some(rest) = ber_content(rest) else { return incomplete(over) };
    match rest {
        [0x0a, 0x01, 0, ..] => Judged::Passed("Success".to_owned()),
        [0x0a, 0x01, code, ..] => Judged::Failed(CheckStatus::L7Sts, i32::from(*code), LDAP_CODES.to_owned()),
        _ => not(),
    }
}

/// What follows a BER length, if at least that much does.
fn ber_content(bytes: &[u8]) -> Option<&[u8]> {
    let (first, rest) = bytes.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let significant = digits.iter().copied().skip_while(|d| *d == 0);
            let whole = significant.clone().count() <= size_of::<u32>();
            let length = significant.fold(0usize, |n, d| n << 8 | usize::from(d));
            (if whole { length } else { usize::MAX }, rest)
        }
    };
    (rest.len() >= length).then_some(rest)
}

/// Looks at the first packet (the greeting), or at the second (the answer to a log-in) when `skip` is 1. A
/// packet has three bytes of length, one of sequence, and its payload; one that begins with 0xff is an error
/// with a code.
fn mysql(data: &[u8], skip: usize, over: bool) -> Judged {
    let Some((greeting, rest)) = packet(data) else { return incomplete(over) };
    let (payload, tail) = match skip {
        0 => (greeting, data.get(4..)),
        _ => match packet(rest) {
            Some((payload, _)) => (payload, rest.get(4..)),
            None => return incomplete(over),
        },
    };
    if payload.first() == Some(&0xff) {
        let mut reader = Reader(payload.get(1..).unwrap_or_default());
        let low = reader.u8().unwrap_or(0);
        let high = reader.u8().unwrap_or(0);
        let why = tail.and_then(|t| t.get(3..)).unwrap_or_default();
        return Judged::Failed(CheckStatus::L7Sts, i32::from(u16::from_le_bytes([low, high])), text(why));
    }
    // A greeting says the version of the protocol, then that of the server, ended by a zero.
    let version = greeting.get(1..).unwrap_or_default();
    let end = version.iter().position(|b| *b == 0).unwrap_or(version.len());
    Judged::Passed(text(version.get(..end).unwrap_or_default()))
}

fn packet(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = data.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// The length of a frame's length, and of what stands before its payload: type, flags, numbers of stream and
/// frame, which are zero.
const SPOP_HEAD: [usize; 2] = [4, 11];

/// An AGENT-HELLO frame (SPOE.txt, section 3.2.5). What it begins with is judged as soon as it is there, and
/// what its length says is only waited for, as in HAProxy: all that came is its payload.
fn spop(data: &[u8], over: bool) -> Judged {
    const MOST: usize = spop::CHECK_FRAME as usize;
    let broken = || invalid(Status::Invalid.message());
    let later = || if over { broken() } else { Judged::Later };
    let [size, head] = SPOP_HEAD;
    let Some((head, payload)) = data.split_at_checked(head) else { return later() };
    let Some((length, [kind, flags @ .., 0, 0])) = head.split_at_checked(size) else { return broken() };
    if flags != spop::flag::FIN.to_be_bytes() {
        return broken();
    }
    let length = length.iter().fold(0usize, |length, b| length << 8 | usize::from(*b));
    let judged = match *kind {
        spop::kind::AGENT_HELLO => match AgentHello::parse(payload, MOST) {
            Ok(_) => Judged::Passed("SPOA server is ok".to_owned()),
            Err(status) => invalid(status.message()),
        },
        // A frame that says goodbye has nothing of a greeting.
        spop::kind::AGENT_DISCONNECT => invalid(Status::NoVersion.message()),
        _ => return broken(),
    };
    if data.len() - size < length { later() } else { judged }
}

/// What is left to read of an answer; past its end there is nothing.
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    fn take(&mut self, n: usize) -> Option<&'d [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digits: &str) -> Vec<u8> {
        let plain: Vec<u8> = digits.bytes().filter(|b| *b != b' ').collect();
        super::super::expect::unhex(&plain).unwrap()
    }

    fn failed(status: CheckStatus, code: i32, why: &str) -> Judged {
        Judged::Failed(status, code, why.into())
    }

    #[test]
    fn an_ldap_server_answers_a_bind_with_its_code() {
        let ok = hex("30 0c 02 01 01 61 07 0a 01 00 04 00 04 00");
        assert_eq!(judge(Protocol::Ldap, &ok, false), Judged::Passed("Success".into()));
        let long = hex("30 84 00000010 02 01 01 61 84 00000007 0a 01 31 04 00 04 00");
        assert_eq!(judge(Protocol::Ldap, &long, false), failed(CheckStatus::L7Sts, 49, LDAP_CODES));
        assert_eq!(judge(Protocol::Ldap, &ok[..13], false), Judged::Later);
        assert_eq!(judge(Protocol::Ldap, &ok[..13], true), failed(CheckStatus::L7Rsp, 0, ""));
        let not = failed(CheckStatus::L7Rsp, 0, "Not LDAPv3 protocol");
        assert_eq!(judge(Protocol::Ldap, b"HTTP/1.0 400 Bad", false), not);
        assert_eq!(judge(Protocol::Ldap, b"", true), not);
    }

    #[test]
    fn a_mysql_server_greets_and_lets_in_or_says_why_not() {
        let greeting = hex("0b000000 0a 382e302e313900 000000");
        assert_eq!(judge(Protocol::MysqlGreeting, &greeting, false), Judged::Passed("8.0.19".into()));
        let answer = |data: &[u8]| judge(Protocol::MysqlAnswer, data, false);
        assert_eq!(answer(&greeting), Judged::Later);
        let welcome = [greeting.clone(), hex("07000002 00000002000000")].concat();
        assert_eq!(answer(&welcome), Judged::Passed("8.0.19".into()));
        let mut denied = [greeting.clone(), hex("0a000002 ff1504")].concat();
        denied.extend_from_slice(b"go away");
        assert_eq!(answer(&denied), failed(CheckStatus::L7Sts, 1045, "go away"));
        assert_eq!(judge(Protocol::MysqlGreeting, &greeting[..6], false), Judged::Later);
        assert_eq!(judge(Protocol::MysqlGreeting, b"", true), failed(CheckStatus::L7Rsp, 0, ""));
    }

    fn spop_frame(kind: u8, items: &str) -> Vec<u8> {
        let body = [vec![kind, 0, 0, 0, 1, 0, 0], hex(items)].concat();
        [u32::try_from(body.len()).unwrap().to_be_bytes().to_vec(), body].concat()
    }

    #[test]
    fn a_spop_agent_has_to_say_version_size_and_capabilities() {
        let version = "07 76657273696f6e 08 03 322e30";
        let size = "0e 6d61782d6672616d652d73697a65 03 fcf006";
        let capabilities = "0c 6361706162696c6974696573 08 00";
        let all = format!("{version}{size}{capabilities}");
        let seen = |items: &str| judge(Protocol::Spop, &spop_frame(0x65, items), false);
        assert_eq!(seen(&all), Judged::Passed("SPOA server is ok".into()));
        let why = |w| failed(CheckStatus::L7Rsp, 0, w);
        assert_eq!(seen(version), why("max-frame-size value not found"));
        assert_eq!(seen(size), why("version value not found"));
        assert_eq!(seen(&format!("{size}{version}")), why("capabilities value not found"));
        assert_eq!(seen("07 76657273696f6e 08 03 312e30"), why("unsupported version"));
        assert_eq!(judge(Protocol::Spop, &spop_frame(0x64, &all), false), why("invalid frame received"));
        assert_eq!(judge(Protocol::Spop, b"HTTP/1.0 400 Bad", false), why("invalid frame received"));
        assert_eq!(judge(Protocol::Spop, b"HTTP/1.0 4", false), Judged::Later);
        let whole = spop_frame(0x65, &all);
        assert_eq!(judge(Protocol::Spop, &whole[..whole.len() - 1], false), Judged::Later);
        assert_eq!(judge(Protocol::Spop, &whole[..4], true), why("invalid frame received"));
        // A length is waited for, and no more than that.
        let with_length = |n: u32| [&n.to_be_bytes(), &whole[4..]].concat();
        assert_eq!(judge(Protocol::Spop, &with_length(1 << 31), false), Judged::Later);
        assert_eq!(judge(Protocol::Spop, &with_length(3), false), Judged::Passed("SPOA server is ok".into()));
    }
}
