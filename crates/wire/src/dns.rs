//! Questions to name servers and what they answer (RFC 1035, 2782, 3596, 6891), as resolvers use them: one
//! question, three kinds of records.
//!
//! The format itself is `hickory-proto`'s business. What is judged here is whether an answer is one to our
//! question, and what it amounts to.

use std::net::IpAddr;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, RecordType};

/// The longest name in its textual form.
const LONGEST_NAME: usize = 253;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An address of IPv4.
    A,
    /// An address of IPv6.
    Aaaa,
    /// Where a service is.
    Srv,
}

impl Kind {
    fn record(self) -> RecordType {
        match self {
            Kind::A => RecordType::A,
            Kind::Aaaa => RecordType::AAAA,
            Kind::Srv => RecordType::SRV,
        }
    }
}

/// A question that was asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its number.
    pub id: u16,
    /// The name.
    pub name: Box<str>,
    /// What of it.
    pub kind: Kind,
}

/// A place where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The host, in lower case and without the final dot.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// Its share of the requests.
    pub weight: u16,
}

/// A valid answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Addresses in the server's order.
    pub addresses: Vec<IpAddr>,
    /// Services in the server's order.
    pub services: Vec<Service>,
    /// Addresses of their hosts that came along.
    pub hosts: Vec<(Box<str>, IpAddr)>,
}

/// Why a message is no valid answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It answers a question with another number: an old one, or a guess.
    Outdated,
    /// It answers something that nobody asked.
    Stray,
    /// It can't be read.
    Invalid,
    /// It was cut short.
    Truncated,
    /// The name does not exist.
    Nx,
    /// The server refuses.
    Refused,
    /// The server reports another error.
    Other,
    /// There is no record of the kind asked for.
    Empty,
    /// The name is an alias of one without a record of the kind asked for.
    Alias,
}

/// Whether something may be asked for as a name: labels of 1 to 63 visible characters, not too long.
pub fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let fits = |label: &str| !label.is_empty() && label.len() <= 63;
    text.len() <= LONGEST_NAME && text.bytes().all(|b| b.is_ascii_graphic()) && text.split('.').all(fits)
}

/// The message that asks, which announces answers of up to `payload` bytes; `None`: that is no name.
pub fn query(question: &Question, payload: u16) -> Option<Vec<u8>> {
    if !is_name(&question.name) {
        return None;
    }
    let name = question.name.strip_suffix('.').unwrap_or(&question.name);
    let mut name = Name::from_labels(name.split('.').map(str::as_bytes)).ok()?;
    name.set_fqdn(true);
    let mut message = Message::new(question.id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, question.kind.record()));
    let mut edns = Edns::new();
    edns.set_max_payload(payload);
    message.set_edns(edns);
    message.to_vec().ok()
}

/// The number of a message.
pub fn number(message: &[u8]) -> Option<u16> {
    message.first_chunk().map(|id| u16::from_be_bytes(*id))
}

/// Reads the answer to a question.
///
/// # Errors
/// Why it is none.
pub fn answer(message: &[u8], question: &Question) -> Result<Answer, Fault> {
    if number(message).ok_or(Fault::Invalid)? != question.id {
        return Err(Fault::Outdated);
    }
    let message = Message::from_vec(message).map_err(|_| Fault::Invalid)?;
    if message.metadata.message_type != MessageType::Response {
        return Err(Fault::Stray);
    }
    let [asked] = message.queries.as_slice() else { return Err(Fault::Invalid) };
    let ours = text(&asked.name).is_some_and(|name| same(&name, &question.name));
    if !ours || asked.query_type != question.kind.record() {
        return Err(Fault::Stray);
    }
    if message.metadata.truncation {
        return Err(Fault::Truncated);
    }
    match message.metadata.response_code {
        ResponseCode::NoError => {}
        ResponseCode::NXDomain => return Err(Fault::Nx),
        ResponseCode::Refused => return Err(Fault::Refused),
        _ => return Err(Fault::Other),
    }
    found(&message, question)
}

/// Follows aliases from the name that was asked for to the records; each answer record is looked at once.
fn found(message: &Message, question: &Question) -> Result<Answer, Fault> {
    let mut owner: Box<str> = question.name.to_ascii_lowercase().into();
    let (mut answer, mut alias) = (Answer::default(), false);
    for record in message.answers.iter().filter(|r| r.dns_class == DNSClass::IN) {
        if !text(&record.name).is_some_and(|name| same(&name, &owner)) {
            continue;
        }
        match (&record.data, question.kind) {
            (RData::CNAME(to), _) => {
                owner = text(&to.0).ok_or(Fault::Invalid)?;
                alias = true;
            }
            (RData::A(ip), Kind::A) => answer.addresses.push(ip.0.into()),
            (RData::AAAA(ip), Kind::Aaaa) => answer.addresses.push(ip.0.into()),
            (RData::SRV(to), Kind::Srv) => {
                let host = text(&to.target).ok_or(Fault::Invalid)?;
                // "." says that there is no such service (RFC 2782).
                if !host.is_empty() {
                    answer.services.push(Service { host, port: to.port, weight: to.weight });
                }
            }
            _ => {}
        }
    }
    if answer.addresses.is_empty() && answer.services.is_empty() {
        return Err(if alias { Fault::Alias } else { Fault::Empty });
    }
    for record in message.additionals.iter().filter(|r| r.dns_class == DNSClass::IN) {
        let ip = match &record.data {
            RData::A(ip) => IpAddr::from(ip.0),
            RData::AAAA(ip) => IpAddr::from(ip.0),
            _ => continue,
        };
        answer.hosts.extend(text(&record.name).map(|name| (name, ip)));
    }
    Ok(answer)
}

fn same(one: &str, other: &str) -> bool {
    let bare = |name: &str| name.strip_suffix('.').unwrap_or(name).len();
    one.get(..bare(one)).zip(other.get(..bare(other))).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// A name as text in lower case; `None`: it has characters that no host's name has.
fn text(name: &Name) -> Option<Box<str>> {
    let mut out = String::with_capacity(64);
    for label in name.iter() {
        if !out.is_empty() {
            out.push('.');
        }
        if !label.iter().all(|b| b.is_ascii_graphic() && *b != b'.') {
            return None;
        }
        out.extend(label.iter().map(|b| char::from(b.to_ascii_lowercase())));
    }
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: Kind) -> Question {
        Question { id: 0xa01e, name: name.into(), kind }
    }

    /// An answer with one record behind the question; the record's owner is the name that was asked for.
    fn reply(question: &Question, flags: u16, records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = query(question, 512).unwrap();
        out.truncate(out.len() - 11);
        out[2..4].copy_from_slice(&flags.to_be_bytes());
        out[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
        out[10..12].copy_from_slice(&[0, 0]);
        for (kind, data) in records {
            out.extend([0xc0, 12]);
            out.extend(kind.to_be_bytes());
            out.extend([0, 1, 0, 0, 0, 9]);
            out.extend((data.len() as u16).to_be_bytes());
            out.extend(*data);
        }
        out
    }

    #[test]
    fn a_question_is_what_the_oracle_sends() {
        // Seen on the oracle.
        let seen = b"\xa0\x1e\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01a\x04test\x00\x00\x01\x00\x01\x00\x00\x29\x02\x00\x00\x00\x00\x00\x00\x00";
        assert_eq!(query(&question("a.test", Kind::A), 512).as_deref(), Some(&seen[..]));
        assert_eq!(query(&question("a..test", Kind::A), 512), None);
        assert_eq!(query(&question(&"x".repeat(64), Kind::A), 512), None);
        assert_eq!(query(&question("", Kind::A), 512), None);
    }

    #[test]
    fn answers_and_what_is_none() {
        let q = question("A.test", Kind::A);
        let good = reply(&q, 0x8580, &[(1, &[127, 0, 0, 2]), (28, &[0; 16]), (1, &[127, 0, 0, 3])]);
        let ips: Vec<IpAddr> = ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap()).into();
        assert_eq!(answer(&good, &q).unwrap().addresses, ips);
        let code = |flags| answer(&reply(&q, flags, &[(1, &[127, 0, 0, 2])]), &q).unwrap_err();
        assert_eq!(code(0x8583), Fault::Nx);
        assert_eq!(code(0x8585), Fault::Refused);
        assert_eq!(code(0x8582), Fault::Other);
        assert_eq!(code(0x8780), Fault::Truncated);
        assert_eq!(code(0x0100), Fault::Stray);
        assert_eq!(answer(&reply(&q, 0x8580, &[]), &q), Err(Fault::Empty));
        assert_eq!(answer(&reply(&q, 0x8580, &[(5, b"\x01b\x00")]), &q), Err(Fault::Alias));
        assert_eq!(answer(&good, &Question { id: 1, ..q.clone() }), Err(Fault::Outdated));
        assert_eq!(answer(&good, &Question { name: "b.test".into(), ..q.clone() }), Err(Fault::Stray));
        assert_eq!(answer(&good, &Question { kind: Kind::Aaaa, ..q.clone() }), Err(Fault::Stray));
        for end in 2..good.len() {
            assert!(answer(&good[..end], &q).is_err(), "{end}");
        }
    }

    #[test]
    fn a_name_that_points_to_itself_is_invalid() {
        let q = question("a.test", Kind::A);
        let mut looped = reply(&q, 0x8580, &[(1, &[127, 0, 0, 2])]);
        let at = looped.len() - 16;
        looped[at..at + 2].copy_from_slice(&[0xc0, at as u8]);
        assert_eq!(answer(&looped, &q), Err(Fault::Invalid));
    }

    #[test]
    fn services_have_a_host_a_port_and_a_weight() {
        let q = question("_w._tcp.s.test", Kind::Srv);
        let good = reply(&q, 0x8580, &[(33, b"\0\x01\0\x0a\0\x51\x02UP\x04test\x00")]);
        let service = Service { host: "up.test".into(), port: 81, weight: 10 };
        assert_eq!(answer(&good, &q).unwrap().services, [service]);
    }
}
