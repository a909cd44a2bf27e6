//! Origins that keep every byte they get, and the readings of it.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::rc::Rc;

use worlds::{Peer, Stage};

use crate::frames::{Ear, Talk, data, frame, greeting, headers};
use crate::read::{MARK, Reading, WAYS, Way, requests};
use crate::replies::{REPLIES, STREAMS};

/// Which version a side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// What came on one connection.
pub struct Record {
    bytes: RefCell<Vec<u8>>,
    ear: RefCell<Ear>,
    /// How much of it was looked at: bytes, or streams.
    seen: Cell<usize>,
    open: Cell<bool>,
}

/// All connections of an origin that understands requests in one way.
pub struct Origin {
    version: Version,
    records: RefCell<Vec<Rc<Record>>>,
}

impl Origin {
    /// Listens at `at`.
    pub fn start(stage: &Stage, at: &str, version: Version, way: Way) -> Rc<Origin> {
        let origin = Rc::new(Origin { version, records: RefCell::default() });
        let owner = origin.clone();
        stage.serve(at, move |peer, _| {
            let record = Rc::new(Record {
                bytes: RefCell::default(),
                ear: RefCell::new(Ear::new()),
                seen: Cell::new(0),
                open: Cell::new(true),
            });
            owner.records.borrow_mut().push(record.clone());
            async move {
                match version {
                    Version::One => plain(peer, &record, way).await,
                    Version::Two => streams(peer, &record, way).await,
                }
                record.open.set(false);
            }
        });
        origin
    }

    /// What came since the last call, as everybody reads it.
    ///
    /// # Errors
    /// Two readings differ, or somebody who reads strictly can't read it.
    pub fn news(&self) -> Result<Vec<Reading>, String> {
        let mut all = Vec::new();
        let mut outcome = Ok(());
        for record in self.records.borrow().iter() {
            outcome = outcome.and(match self.version {
                Version::One => record.plain(&mut all),
                Version::Two => record.streams(&mut all),
            });
        }
        self.records.borrow_mut().retain(|record| record.open.get());
        outcome.map(|()| all)
    }
}

impl Record {
    fn plain(&self, all: &mut Vec<Reading>) -> Result<(), String> {
        let bytes = self.bytes.borrow();
        let fresh = &bytes[self.seen.replace(bytes.len())..];
        let one = agreed(fresh)?;
        if self.open.get() && one.1 != fresh.len() {
            return Err(format!(
                "half a request on a connection that is kept: {}",
                fresh[one.1..].escape_ascii()
            ));
        }
        all.extend(one.0);
        Ok(())
    }

    fn streams(&self, all: &mut Vec<Reading>) -> Result<(), String> {
        let ear = self.ear.borrow();
        let seen = self.seen.replace(ear.talks.len());
        for talk in &ear.talks[seen..] {
            if talk.lists.is_empty() {
                continue;
            }
            let strict = by_the_letter(talk)?;
            if !strict.whole {
                all.push(strict);
                continue;
            }
            let naive = downgraded(talk);
            for way in [Way::Loose, Way::Lengths, Way::Returns] {
                let mut loose = requests(way, &naive);
                let whole = loose.list.len() == 1 && loose.used == naive.len();
                if !whole || loose.list.pop().as_ref() != Some(&strict) {
                    return Err(format!("{way:?} of {}: {loose:?} but {strict:?}", naive.escape_ascii()));
                }
            }
            all.push(strict);
        }
        Ok(())
    }
}

/// The one reading of these bytes, and how many of them are whole requests.
///
/// # Errors
/// There are two.
pub fn agreed(bytes: &[u8]) -> Result<(Vec<Reading>, usize), String> {
    let strict = requests(Way::Strict, bytes);
    if let Some(why) = strict.refused {
        return Err(format!("{why}: {}", bytes.escape_ascii()));
    }
    // Where a connection breaks off behind a carriage return, one of them sees an empty line.
    let broken_off = strict.used < bytes.len() && bytes.ends_with(b"\r");
    for way in WAYS {
        let other = requests(way, bytes);
        if other != strict && !(way == Way::Returns && broken_off) {
            return Err(format!("{way:?} of {}: {other:?} but {strict:?}", bytes.escape_ascii()));
        }
    }
    Ok((strict.list, strict.used))
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

/// A request as RFC 9113 section 8 defines it.
fn by_the_letter(talk: &Talk) -> Result<Reading, String> {
    let (list, trailers) = match &talk.lists[..] {
        [(list, _)] => (list, None),
        [(list, _), (trailers, _)] if talk.ended => (list, Some(trailers)),
        _ => return Err(format!("{} lists", talk.lists.len())),
    };
    let told = |why: &str| format!("{why}: {}", shown(talk));
    let no = |why: &str| Err(told(why));
    let mut reading =
        Reading { body: talk.body.clone(), whole: talk.ended && !talk.reset, ..Reading::default() };
    let (mut path, mut authority, mut hosts, mut length, mut protocol) =
        (None, None, Vec::new(), None, false);
    let mut regular = false;
    for (name, value) in list {
        if name.starts_with(b":") {
            let first = match &name[..] {
                _ if regular => return no("a pseudo-header behind a field"),
                b":method" => std::mem::replace(&mut reading.what, text(value)).is_empty(),
                b":path" => path.replace(String::from_utf8_lossy(value).into_owned()).is_none(),
                b":authority" => authority.replace(text(value)).is_none(),
                b":protocol" => !std::mem::replace(&mut protocol, true),
                b":scheme" => true,
                _ => return no("a strange pseudo-header"),
            };
            let raw = name == b":path";
            if !first || !value.iter().all(|b| b.is_ascii_graphic() || raw && *b >= 128) {
                return no("a bad pseudo-header");
            }
            continue;
        }
        regular = true;
        field(name, value).map_err(told)?;
        match &name[..] {
            b"host" => hosts.push(text(value)),
            b"content-length" if length.replace(text(value)).is_some() => return no("two lengths"),
            _ if text(name) == MARK => reading.marks.push(text(value)),
            _ => {}
        }
    }
    for (name, value) in trailers.into_iter().flatten() {
        let framing = matches!(&name[..], b"content-length" | b"host");
        if name.starts_with(b":") || framing {
            return no("a bad trailer");
        }
        field(name, value).map_err(told)?;
    }
    if hosts.len() > 1 || hosts.first().is_some_and(|host| authority.as_ref().is_some_and(|a| a != host)) {
        return no("two hosts");
    }
    if protocol {
        // RFC 8441: what asks for an upgrade elsewhere.
        reading.what = "GET".to_owned();
    }
    reading.authority = authority.clone().or(hosts.pop()).unwrap_or_default().to_ascii_lowercase();
    let tunnel = reading.what == "CONNECT";
    reading.target = match (path, authority) {
        (Some(path), _) if !tunnel || protocol => path,
        (None, Some(authority)) if tunnel => authority,
        _ => return no("no target"),
    };
    if !(tunnel || reading.target.starts_with('/') || reading.target == "*") {
        return no("a bad path");
    }
    let sound = |length: &String| length.parse() == Ok(reading.body.len()) && !length.starts_with('+');
    if reading.whole && length.as_ref().is_some_and(|length| !sound(length)) {
        return no("a wrong length");
    }
    Ok(reading)
}

/// What RFC 9113 section 8.2 demands of a field.
pub fn field(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let token = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(b);
    if name.is_empty() || !name.iter().all(token) {
        return Err("a bad name");
    }
    let blank = |b: Option<&u8>| b.is_some_and(|b| matches!(b, b' ' | b'\t'));
    if value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')) || blank(value.first()) || blank(value.last()) {
        return Err("a bad value");
    }
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            Err("a field of the connection")
        }
        b"te" if value != b"trailers" => Err("a bad te"),
        _ => Ok(()),
    }
}

/// What an origin that turns HTTP/2 into HTTP/1 without a look would send on.
fn downgraded(talk: &Talk) -> Vec<u8> {
    let (list, _) = &talk.lists[0];
    let protocol = list.iter().any(|(n, _)| n == b":protocol");
    let find = |name: &[u8]| list.iter().find(|(n, _)| n == name).map(|(_, v)| &v[..]);
    let target = find(b":path").or(find(b":authority")).unwrap_or_default();
    let method = if protocol { Some(&b"GET"[..]) } else { find(b":method") };
    let mut out = [method.unwrap_or_default(), b" ", target, b" HTTP/1.1\r\n"].concat();
    let mut line = |name: &[u8], value: &[u8]| out.extend([name, b": ", value, b"\r\n"].concat());
    if let Some(authority) = find(b":authority") {
        line(b"host", authority);
    }
    for (name, value) in list.iter().filter(|(n, _)| !n.starts_with(b":")) {
        line(name, value);
    }
    let chunked = find(b"content-length").is_none() && (!talk.body.is_empty() || talk.lists.len() > 1);
    if chunked {
        line(b"transfer-encoding", b"chunked");
    }
    out.extend_from_slice(b"\r\n");
    if !chunked {
        out.extend_from_slice(&talk.body);
        return out;
    }
    if !talk.body.is_empty() {
        out.extend(format!("{:x}\r\n", talk.body.len()).bytes());
        out.extend_from_slice(&talk.body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n");
    for (name, value) in talk.lists.get(1).map(|(list, _)| list).into_iter().flatten() {
        out.extend([name, &b": "[..], value, b"\r\n"].concat());
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// A stream for messages about it.
pub fn shown(talk: &Talk) -> String {
    let mut out = String::new();
    for (list, _) in &talk.lists {
        for (name, value) in list {
            let _ = write!(out, "{}={} ", name.escape_ascii(), value.escape_ascii());
        }
        out.push('/');
    }
    let _ = write!(out, " {} ended {} reset {}", talk.body.escape_ascii(), talk.ended, talk.reset);
    out
}

/// What a request is answered with, if it is not asked for a hostile answer.
fn echo(reading: &Reading) -> Vec<u8> {
    format!("{} {} {}", reading.marks.join(","), reading.what, reading.target).into_bytes()
}

fn hostile(reading: &Reading) -> Option<usize> {
    reading.target.strip_prefix("/hostile/")?.parse().ok()
}

async fn plain(mut peer: Peer, record: &Record, way: Way) {
    let mut at = 0;
    loop {
        let ended = peer.more().await.is_err();
        record.bytes.borrow_mut().append(&mut peer.buf);
        let read = requests(way, &record.bytes.borrow()[at..]);
        at += read.used;
        for reading in read.list.iter().filter(|r| r.whole) {
            if let Some(reply) = hostile(reading).and_then(|n| REPLIES.get(n)) {
                if peer.send(reply.bytes).await.is_err() || reply.close {
                    return;
                }
                continue;
            }
            let body = echo(reading);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let body = if reading.what == "HEAD" || reading.what == "CONNECT" { &[][..] } else { &body[..] };
            // A tunnel is never opened.
            let head = if reading.what == "CONNECT" {
                "HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n"
            } else {
                &head
            };
            if peer.send(&[head.as_bytes(), body].concat()).await.is_err() {
                return;
            }
        }
        if read.refused.is_some() {
            let _ = peer
                .send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await;
            return;
        }
        if ended {
            return;
        }
    }
}

async fn streams(mut peer: Peer, record: &Record, way: Way) {
    let _ = peer.send(&greeting()).await;
    let mut answered: Vec<u32> = Vec::new();
    while peer.more().await.is_ok() {
        let mut out = Vec::new();
        {
            let mut ear = record.ear.borrow_mut();
            ear.hear(&std::mem::take(&mut peer.buf));
            out.append(&mut ear.replies);
            let due = |talk: &&Talk| talk.ended || is_connect(talk);
            for talk in ear.talks.iter().filter(due).filter(|t| !t.reset && !t.lists.is_empty()) {
                if !answered.contains(&talk.stream) {
                    answered.push(talk.stream);
                    out.extend(answer(talk, way));
                }
            }
        }
        if peer.send(&out).await.is_err() {
            return;
        }
    }
}

fn is_connect(talk: &Talk) -> bool {
    talk.lists.first().is_some_and(|(list, _)| list.iter().any(|(n, v)| n == b":method" && v == b"CONNECT"))
}

fn answer(talk: &Talk, way: Way) -> Vec<u8> {
    let stream = talk.stream;
    let reading = match by_the_letter(talk) {
        Err(_) if way == Way::Strict => return frame(crate::frames::RESET, 0, stream, &[0, 0, 0, 1]),
        Err(_) => Reading::default(),
        Ok(reading) => reading,
    };
    if let Some(reply) = hostile(&reading).and_then(|n| STREAMS.get(n)) {
        return (reply.frames)(stream);
    }
    // No tunnel is opened.
    if is_connect(talk) {
        return headers(stream, &[(b":status", b"405")], true);
    }
    let body = echo(&reading);
    let length = body.len().to_string();
    let head = headers(
        stream,
        &[(b":status", b"200"), (b"content-length", length.as_bytes())],
        reading.what == "HEAD",
    );
    if reading.what == "HEAD" { head } else { [head, data(stream, &body, true)].concat() }
}
