//! HTTP/2: frames to both roles, header blocks, and heads that go from HTTP/1 to HTTP/2 and back.

use super::cuts;
use crate::h2::{Connection, Event, Limits, Outline, PREFACE, Received, Role};
use crate::head::{Head, Known};
use crate::hpack::{Decoder, Encoder};
use crate::http1::{self, Parsed, parse_request, parse_response, write_head};
use crate::method::{Method, Version};
use crate::uri;

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
pub(super) const OUTLINE: Outline<'static> = Outline { scheme: b"http", protocol: None };
pub(super) const HTTP1: http1::Limits = http1::Limits::of(65_536, 200);

/// Any bytes as the frames of a client, and as those of a server that was asked something.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn h2_frames(data: &[u8]) {
    for role in [Role::Server, Role::Client] {
        let whole = run(role, data, &[data.len()]);
        let pieces = run(role, data, &cuts(data));
        assert_eq!(whole, pieces, "{role:?}");
    }
}

/// What came of some input: what was told, and how it ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    events: Vec<String>,
    data: Vec<(u64, Vec<u8>)>,
    failed: bool,
}

pub(super) fn peer(role: Role) -> Connection {
    let mut out = Vec::new();
    let limits = Limits { window: 1000, rxbuf: 4000, streams: 4, ..Limits::default() };
    let mut connection = Connection::new(role, limits, &mut out);
    let hello =
        if role == Role::Server { [PREFACE.as_slice(), SETTINGS].concat() } else { SETTINGS.to_vec() };
    let received = connection.receive(&hello, &mut Head::request(), &mut out);
    assert_eq!(received, Ok(Received { consumed: hello.len(), event: None }));
    if role == Role::Client {
        for end in [true, false] {
            connection.open(&Head::request(), OUTLINE, end, &mut out).expect("two streams are allowed");
        }
    }
    connection
}

fn run(role: Role, data: &[u8], cuts: &[usize]) -> Told {
    let (mut connection, mut told) = (peer(role), Told::default());
    let (mut out, mut head, mut at) = (Vec::new(), Head::request(), 0);
    for &cut in cuts {
        loop {
            let Ok(Received { consumed, event }) = connection.receive(&data[at..cut], &mut head, &mut out)
            else {
                told.failed = true;
                return told;
            };
            at += consumed;
            assert!(at <= cut);
            let Some(event) = event else { break };
            tell(&mut connection, &event, &head, &mut told, &mut out);
        }
        assert!(cut - at < 10, "all but the beginning of a header is taken");
    }
    assert!(out.len() <= 3 * data.len() + 1000, "{} bytes answer {}", out.len(), data.len());
    told
}

fn tell(connection: &mut Connection, event: &Event<'_>, head: &Head, told: &mut Told, out: &mut Vec<u8>) {
    match event {
        Event::Data { stream, bytes, end, .. } => {
            connection.release(*stream, bytes.len(), out);
            match told.data.iter_mut().find(|(key, _)| *key == stream.to_bits()) {
                Some((_, data)) => data.extend_from_slice(bytes),
                None => told.data.push((stream.to_bits(), bytes.to_vec())),
            }
            if *end {
                told.events.push(format!("end {stream:?}"));
            }
        }
        Event::Head { stream, refused, end, .. } => {
            told.events.push(format!("{event:?} {}", text(head)));
            if refused.is_none() {
                one_meaning(head);
            }
            if head.is_request() && (*end || refused.is_some()) {
                connection.respond(*stream, &Head::response(), 200, true, out);
            }
        }
        // The windows depend on when what was received is used up.
        Event::Window { .. } => {}
        other => told.events.push(format!("{other:?}")),
    }
}

fn text(head: &Head) -> String {
    let mut out = Vec::new();
    write_head(head, &mut |part| out.extend_from_slice(part));
    out.escape_ascii().to_string()
}

/// Written as HTTP/1, a head is read as what it was.
pub(super) fn one_meaning(head: &Head) {
    let mut plain = head.clone();
    plain.set_version(Version::HTTP_11);
    let mut out = Vec::new();
    write_head(&plain, &mut |part| out.extend_from_slice(part));
    assert_eq!(out.len(), plain.wire_len());
    // HTTP/1 takes bytes beyond ASCII in a target only where it is told to.
    let (mut read, relax) = (Head::request(), !plain.target().is_ascii());
    let parsed = match head.is_request() {
        true => parse_request(&out, &mut read, &HTTP1, relax),
        false => parse_response(&out, &mut read, &HTTP1, relax),
    };
    let upgrade = head.has(Known::Upgrade);
    if upgrade && parsed.is_err() {
        // A WebSocket key is still to be added.
        return;
    }
    assert_eq!(parsed, Ok(Parsed::Complete { consumed: out.len() }), "{}", out.escape_ascii());
    // Of the Host of a CONNECT HTTP/1 cuts a default port.
    if plain.method_id() == Method::Connect && plain.is_request() {
        assert_eq!(plain.target(), read.target());
        plain.remove_all(Known::Host);
        read.remove_all(Known::Host);
    }
    assert_eq!(text(&plain), text(&read));
    assert!(!head.has(Known::TransferEncoding) && head.count(Known::ContentLength) <= 1);
    assert!(head.count(Known::Host) <= 1 || !head.is_request());
}

/// Any bytes as a header block: what is decoded is encoded again and decoded to the same.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn hpack(data: &[u8]) {
    let mut decoder = Decoder::new(4096);
    let (mut encoder, mut mirror) = (Encoder::new(4096), Decoder::new(4096));
    // Two blocks, so that the second one meets what the first one left.
    for block in data.chunks(data.len() / 2 + 1) {
        let (mut lines, mut size) = (Vec::new(), 0);
        let decoded = decoder.decode(block, &mut |line| {
            size += line.name.len() + line.value.len();
            if size < 100_000 {
                lines.push((line.name.to_vec(), line.value.to_vec()));
            }
        });
        assert!(lines.len() <= block.len());
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in &lines {
            encoder.field(Known::of(name), name, value, &mut out);
        }
        let mut again = Vec::new();
        let mirrored = mirror.decode(&out, &mut |line| again.push((line.name.to_vec(), line.value.to_vec())));
        assert_eq!((mirrored, again), (Ok(()), lines));
        if decoded.is_err() {
            return;
        }
    }
}

/// A request of HTTP/1 that goes through HTTP/2 says the same at the other end.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn h1_to_h2(data: &[u8]) {
    let mut head = Head::request();
    if !matches!(parse_request(data, &mut head, &HTTP1, false), Ok(Parsed::Complete { .. })) {
        return;
    }
    let mut out = Vec::new();
    let limits = || Limits { list: 200_000, fields: 300, ..Limits::default() };
    let mut client = Connection::new(Role::Client, limits(), &mut out);
    client.open(&head, OUTLINE, false, &mut out).expect("the first stream");
    let (mut server, mut got) = (Connection::new(Role::Server, limits(), &mut Vec::new()), Head::request());
    let received = server.receive(&out, &mut got, &mut Vec::new());
    let Ok(Received { event: Some(event), .. }) = received else { panic!("{received:?} of {}", text(&head)) };
    if matches!(event, Event::Head { refused: Some(400), .. } | Event::Malformed { why: "bad host" }) {
        // As an authority, a Host has to be more than what HTTP/1 lets pass: two ports, say.
        return;
    }
    let Event::Head { refused: None, extended: false, .. } = event else {
        panic!("{event:?} of {}", text(&head))
    };
    assert_eq!(head.method(), got.method());
    let path = |head: &Head| match (uri::path_and_query(head.target()), head.method_id()) {
        (_, Method::Connect) => uri::host_port(head.target()).to_vec(),
        (b"", Method::Options) => b"*".to_vec(),
        (b"*", Method::Options) => b"*".to_vec(),
        // With an authority it stands for the root.
        (b"*", _) => b"/".to_vec(),
        (path @ [b'/', ..], _) => path.to_vec(),
        (query, _) => [b"/", query].concat(),
    };
    assert_eq!(path(&head), path(&got), "{}", text(&got));
    let bound = [
        Known::Host,
        Known::Connection,
        Known::KeepAlive,
        Known::ProxyConnection,
        Known::TransferEncoding,
        Known::Upgrade,
        Known::Http2Settings,
        Known::Te,
        Known::Cookie,
    ];
    let kept = |head: &Head| -> Vec<(Vec<u8>, Vec<u8>)> {
        let fields = head.fields().filter(|(index, ..)| !bound.contains(&head.known(*index)));
        fields.map(|(_, n, v)| (n.to_vec(), v.to_vec())).collect()
    };
    assert_eq!(kept(&head), kept(&got));
    one_meaning(&got);
}
