//! Two connections that talk to each other.

use proptest::prelude::*;

use super::*;
use base::slab::Key;

/// One end, and what it has yet to send.
struct End {
    connection: Connection,
    out: Vec<u8>,
    events: Vec<String>,
    heads: Vec<Key>,
    body: Vec<u8>,
}

impl End {
    fn new(role: Role, limits: Limits) -> End {
        let mut out = Vec::new();
        let connection = Connection::new(role, limits, &mut out);
        End { connection, out, events: Vec::new(), heads: Vec::new(), body: Vec::new() }
    }

    fn take(&mut self, input: &[u8]) -> usize {
        let (mut head, mut at) = (Head::request(), 0);
        loop {
            let received = self.connection.receive(&input[at..], &mut head, &mut self.out).unwrap();
            at += received.consumed;
            let Some(event) = received.event else { return at };
            if !matches!(event, Event::Window { stream: None }) {
                self.events.push(word(&event, &head));
            }
            match event {
                Event::Head { stream, .. } => self.heads.push(stream),
                Event::Data { stream, bytes, .. } => {
                    self.body.extend_from_slice(bytes);
                    self.connection.release(stream, bytes.len(), &mut self.out);
                }
                _ => {}
            }
        }
    }
}

struct Pair {
    client: End,
    server: End,
    /// Bytes that arrive at once.
    cut: usize,
}

impl Pair {
    fn new(client: Limits, server: Limits, cut: usize) -> Pair {
        let (client, server) = (End::new(Role::Client, client), End::new(Role::Server, server));
        let mut pair = Pair { client, server, cut };
        pair.settle();
        pair
    }

    /// Until nobody has anything to say.
    fn settle(&mut self) {
        while !self.client.out.is_empty() || !self.server.out.is_empty() {
            pass(&mut self.client, &mut self.server, self.cut);
            pass(&mut self.server, &mut self.client, self.cut);
        }
    }

    fn open(&mut self, end: bool) -> Key {
        let mut head = Head::request();
        head.set_target(b"/x").unwrap();
        head.append(b"host", b"h").unwrap();
        let outline = Outline { scheme: b"http", protocol: None };
        self.client.connection.open(&head, outline, end, &mut self.client.out).unwrap()
    }
}

fn pass(from: &mut End, to: &mut End, cut: usize) {
    let bytes = std::mem::take(&mut from.out);
    let (mut at, mut upto) = (0, 0);
    while upto < bytes.len() {
        upto = (upto + cut).min(bytes.len());
        at += to.take(&bytes[at..upto]);
    }
    assert_eq!(at, bytes.len());
}

#[test]
fn a_request_and_its_response_with_trailers() {
    let mut pair = Pair::new(Limits::default(), Limits::default(), 7);
    let stream = pair.open(false);
    assert_eq!(pair.client.connection.send(stream, b"hello", true, &mut pair.client.out), 5);
    pair.settle();
    assert_eq!(pair.server.body, b"hello");
    let key = pair.server.heads[0];
    let mut head = Head::response();
    head.append(b"server", b"x").unwrap();
    let end = &mut pair.server;
    end.connection.respond(key, &Head::response(), 103, false, &mut end.out);
    end.connection.respond(key, &head, 200, false, &mut end.out);
    assert_eq!(end.connection.send(key, b"world", false, &mut end.out), 5);
    end.connection.send_trailers(key, &head, &mut end.out);
    pair.settle();
    assert_eq!(pair.client.body, b"world");
    assert_eq!(pair.client.events.first().unwrap(), "103 false");
    assert_eq!(pair.client.events.last().unwrap(), "trailers 1");
    assert!(pair.client.connection.is_empty() && pair.server.connection.is_empty());
}

#[test]
fn long_blocks_are_continued() {
    let mut pair = Pair::new(
        Limits { list: 60_000, ..Limits::default() },
        Limits { list: 60_000, ..Limits::default() },
        1000,
    );
    let mut head = Head::request();
    head.set_target(b"/x").unwrap();
    head.append(b"x-long", &b"x".repeat(40_000)).unwrap();
    let outline = Outline { scheme: b"http", protocol: None };
    pair.client.connection.open(&head, outline, true, &mut pair.client.out).unwrap();
    pair.settle();
    assert_eq!(pair.server.events.first().unwrap(), "GET /x true");
}

#[test]
fn a_graceful_end_loses_no_stream() {
    let mut pair = Pair::new(Limits::default(), Limits::default(), 100);
    let first = pair.open(true);
    pair.settle();
    let end = &mut pair.server;
    end.connection.shutdown(&mut end.out);
    // A request crosses the announcement.
    pair.open(true);
    pair.settle();
    assert_eq!(pair.server.heads.len(), 2);
    assert!(pair.client.connection.is_ending() && !pair.client.connection.can_open());
    assert!(!pair.server.connection.is_over());
    for key in pair.server.heads.clone() {
        pair.server.connection.respond(key, &Head::response(), 200, true, &mut pair.server.out);
    }
    pair.settle();
    assert!(pair.server.connection.is_over());
    assert!(pair.client.connection.id(first).is_none(), "answered");
}

#[test]
fn a_client_that_is_asked_to_leave_is_served_as_long_as_it_stays() {
    let mut pair = Pair::new(Limits::default(), Limits::default(), 100);
    pair.open(true);
    pair.settle();
    for _ in 0..2 {
        let end = &mut pair.server;
        end.connection.hint(&mut end.out);
    }
    assert_eq!(pair.server.out.len(), 9 + 8, "one GOAWAY, no ping");
    let key = pair.server.heads[0];
    pair.server.connection.respond(key, &Head::response(), 200, true, &mut pair.server.out);
    pair.settle();
    assert!(pair.client.connection.is_ending() && !pair.server.connection.is_over());
    // The process stops later: now the end is waited for.
    let end = &mut pair.server;
    end.connection.shutdown(&mut end.out);
    assert_eq!(pair.server.out.len(), 9 + 8, "a ping, no second GOAWAY");
    pair.settle();
    assert!(pair.server.connection.is_over());
}

#[test]
fn streams_that_were_not_processed_are_given_back() {
    let mut pair = Pair::new(Limits::default(), Limits::default(), 100);
    pair.open(true);
    pair.settle();
    let lost = pair.open(true);
    pair.client.out.clear();
    pair.server.connection.finish(&mut pair.server.out);
    pair.settle();
    assert_eq!(pair.client.connection.refused(), Some(lost));
    assert_eq!(pair.client.connection.refused(), None);
    assert_eq!(pair.client.connection.len(), 1);
}

#[test]
fn streams_take_turns() {
    let mut pair = Pair::new(Limits::default(), Limits::default(), 100);
    let streams = [pair.open(false), pair.open(false), pair.open(false)];
    pair.settle();
    let connection = &mut pair.client.connection;
    streams.iter().chain(&streams).for_each(|stream| connection.want_turn(*stream));
    assert_eq!(connection.next_turn(), Some(streams[0]));
    connection.want_turn(streams[0]);
    connection.reset(streams[1], Code::CANCEL, &mut pair.client.out);
    assert_eq!(connection.next_turn(), Some(streams[2]));
    assert_eq!(connection.next_turn(), Some(streams[0]));
    assert_eq!(connection.next_turn(), None);
}

#[test]
fn a_window_that_is_shut_holds_data_back_until_it_opens() {
    let mut pair = Pair::new(Limits::default(), Limits { window: 10, rxbuf: 10, ..Limits::default() }, 100);
    let stream = pair.open(false);
    let end = &mut pair.client;
    assert_eq!(end.connection.send(stream, &[1; 25], true, &mut end.out), 10);
    assert_eq!(end.connection.room(stream), 0);
    end.connection.want_turn(stream);
    assert_eq!(end.connection.next_turn(), None);
    pair.settle();
    let end = &mut pair.client;
    assert_eq!(end.events.last().unwrap(), "window true");
    assert_eq!(end.connection.send(stream, &[1; 15], true, &mut end.out), 10);
    pair.settle();
    let end = &mut pair.client;
    assert_eq!(end.connection.send(stream, &[1; 5], true, &mut end.out), 5);
    pair.settle();
    assert_eq!(pair.server.body, [1; 25]);
}

#[test]
fn a_lone_upload_gets_most_of_the_buffer() {
    let mut pair = Pair::new(Limits::default(), Limits::default(), 100_000);
    let stream = pair.open(false);
    pair.settle();
    let room = pair.client.connection.room(stream);
    assert!(room > 1_000_000, "{room}");
}

#[test]
fn what_was_sent_before_settings_were_known_is_taken() {
    let mut pair = Pair {
        client: End::new(Role::Client, Limits::default()),
        server: End::new(Role::Server, Limits { window: 100, rxbuf: 100, ..Limits::default() }),
        cut: 5000,
    };
    let stream = pair.open(false);
    let end = &mut pair.client;
    assert_eq!(end.connection.send(stream, &[1; 60_000], false, &mut end.out), 60_000);
    pair.settle();
    assert_eq!(pair.server.body.len(), 60_000);
    let room = pair.client.connection.room(stream);
    assert!((50..=100).contains(&room), "{room}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bodies_arrive_whatever_the_windows(
        bodies in proptest::collection::vec(0usize..50_000, 1..8),
        window in 1u32..20_000,
        extra in 0u32..60_000,
        cut in 1usize..4000,
    ) {
        let limits = Limits { window, rxbuf: window + extra, ..Limits::default() };
        let mut pair = Pair::new(Limits::default(), limits, cut);
        let mut left: Vec<(Key, usize)> = bodies.iter().map(|len| (pair.open(false), *len)).collect();
        let total: usize = bodies.iter().sum();
        let mut rounds = 0;
        while !left.is_empty() {
            for (stream, len) in &mut left {
                let end = &mut pair.client;
                let sent = end.connection.send(*stream, &vec![7; *len], true, &mut end.out);
                *len -= sent;
            }
            left.retain(|(stream, _)| pair.client.connection.streams.slab.get(*stream).is_some_and(|live| live.sending));
            pair.settle();
            rounds += 1;
            prop_assert!(rounds < 200_000);
        }
        prop_assert_eq!(pair.server.body.len(), total);
        prop_assert_eq!(pair.server.events.iter().filter(|event| event.starts_with("data") && event.ends_with("true")).count(), bodies.len());
    }
}
