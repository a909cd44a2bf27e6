//! What a peer sends, and what has to come of it.

mod exchange;
mod heads;
mod hostile;

use super::*;
use crate::head::Head;

/// A frame as a peer writes it.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, kind, flags, stream, payload);
    out
}

/// A block of literal lines.
pub fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in lines {
        out.push(0);
        for text in [name, value] {
            if text.len() < 127 {
                out.push(text.len() as u8);
            } else {
                let rest = text.len() - 127;
                out.extend_from_slice(&[127, (rest & 127) as u8 | 128, (rest >> 7) as u8]);
            }
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

pub const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "example.org")];
pub const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "example.org")];

/// HEADERS with END_HEADERS.
pub fn headers(stream: u32, end: bool, lines: &[(&str, &str)]) -> Vec<u8> {
    frame(frame::HEADERS, frame::END_HEADERS | u8::from(end), stream, &block(lines))
}

/// A server to which the client has said hello, and nothing to send.
pub fn server(limits: Limits) -> Connection {
    let mut out = Vec::new();
    let mut server = Connection::new(Role::Server, limits, &mut out);
    let hello = [PREFACE.as_slice(), &frame(frame::SETTINGS, 0, 0, &[]), &frame(frame::SETTINGS, 1, 0, &[])];
    assert_eq!(feed(&mut server, &hello.concat()), (vec![], vec![(frame::SETTINGS, 0, 0, 0); 2], None));
    server
}

/// A client whose request on stream 1 was sent.
pub fn client(limits: Limits) -> Connection {
    let mut out = Vec::new();
    let mut client = Connection::new(Role::Client, limits, &mut out);
    feed(&mut client, &[frame(frame::SETTINGS, 0, 0, &[]), frame(frame::SETTINGS, 1, 0, &[])].concat());
    let mut head = Head::request();
    head.set_target(b"/").unwrap();
    client.open(&head, Outline { scheme: b"http", protocol: None }, true, &mut out).unwrap();
    client
}

/// Frames that were sent: kind, flags but for acknowledgements, stream, and the number that is its payload,
/// if it is one.
pub type Sent = Vec<(u8, u8, u32, u32)>;

pub fn sent(out: &[u8]) -> Sent {
    let mut rest = out;
    let mut sent = Vec::new();
    while let Some(header) = rest.first_chunk::<HEADER>() {
        let frame = frame::Frame::parse(header);
        let payload = &rest[HEADER..HEADER + frame.len as usize];
        let number = match frame.kind {
            frame::RST_STREAM | frame::WINDOW_UPDATE => u32::from_be_bytes(payload.try_into().unwrap()),
            frame::GOAWAY => u32::from_be_bytes(payload[4..8].try_into().unwrap()),
            _ => 0,
        };
        let flags = if frame.kind == frame::SETTINGS { 0 } else { frame.flags };
        sent.push((frame.kind, flags, frame.stream, number));
        rest = &rest[HEADER + frame.len as usize..];
    }
    assert!(rest.is_empty());
    sent
}

/// Feeds input and gives back events in words, the frames sent, and how the connection failed.
pub fn feed(connection: &mut Connection, input: &[u8]) -> (Vec<String>, Sent, Option<Fatal>) {
    let (mut out, mut head, mut events) = (Vec::new(), Head::request(), Vec::new());
    let mut rest = input;
    let fatal = loop {
        match connection.receive(rest, &mut head, &mut out) {
            Err(fatal) => break Some(fatal),
            Ok(Received { consumed, event: None }) => {
                assert!(rest.len() - consumed < HEADER + 1, "{} bytes left over", rest.len() - consumed);
                break None;
            }
            Ok(Received { consumed, event: Some(event) }) => {
                events.push(word(&event, &head));
                if let Event::Data { stream, bytes, .. } = event {
                    connection.release(stream, bytes.len(), &mut out);
                }
                rest = &rest[consumed..];
            }
        }
    };
    (events, sent(&out), fatal)
}

fn word(event: &Event<'_>, head: &Head) -> String {
    match event {
        Event::Head { end, refused: Some(status), .. } => format!("refused {status} {end}"),
        Event::Head { end, .. } if head.is_request() => {
            format!("{} {} {end}", head.method().escape_ascii(), head.target().escape_ascii())
        }
        Event::Head { end, .. } => format!("{} {end}", head.status()),
        Event::Data { bytes, end, .. } => format!("data {} {end}", bytes.escape_ascii()),
        Event::Trailers { .. } => format!("trailers {}", head.len()),
        Event::Reset { code, by_peer, .. } => format!("reset {} {by_peer}", code.name()),
        Event::Malformed { why } => format!("malformed {why}"),
        Event::Window { stream } => format!("window {}", stream.is_some()),
        Event::GoAway { last, code } => format!("goaway {last} {}", code.name()),
        Event::Pause => "pause".to_string(),
    }
}
