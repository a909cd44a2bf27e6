//! HTTP/2 on both sides: whole exchanges through two engines' worth of it, clients that break off at every
//! point, that open their windows by single bytes, that flood, and both sides of a GOAWAY.

use std::time::Duration;

use wire::h2::{Connection, Event, Limits, Outline, Received, Role};
use wire::head::Head;
use wire::http1::parse_request;
use worlds::{ALL, CALM, End, Peer, QUIET, all, content, explore, get, post, response, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
/// HTTP/1, then HTTP/2 to a server that is the same engine, then HTTP/1.
const CHAIN: &str = "listen p\n bind 127.0.0.1:80\n http-reuse always\n server h 127.0.0.1:81 proto h2\n\
                     listen q\n bind 127.0.0.1:81 proto h2\n server s 127.0.1.1:80";
const PLAIN: &str = "listen p\n bind 127.0.0.1:80 proto h2\n server s 127.0.1.1:80";

/// A client that speaks HTTP/2.
pub(super) struct Client {
    peer: Peer,
    pub(super) connection: Connection,
    pub(super) out: Vec<u8>,
    head: Head,
}

/// A response as it came.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) whole: bool,
}

impl Client {
    pub(super) fn new(peer: Peer, limits: Limits) -> Client {
        let mut out = Vec::new();
        let connection = Connection::new(Role::Client, limits, &mut out);
        Client { peer, connection, out, head: Head::response() }
    }

    /// Writes a request whose body, if there is one, fits the first window.
    pub(super) fn ask(&mut self, text: &[u8], body: &[u8]) -> base::slab::Key {
        let mut head = Head::request();
        parse_request(text, &mut head, &Default::default(), false).expect("a request");
        let outline = Outline { scheme: b"http", protocol: None };
        let stream = self.connection.open(&head, outline, body.is_empty(), &mut self.out).expect("room");
        if !body.is_empty() {
            assert_eq!(self.connection.send(stream, body, true, &mut self.out), body.len());
        }
        stream
    }

    pub(super) async fn flush(&mut self) -> Result<(), End> {
        let out = std::mem::take(&mut self.out);
        self.peer.send(&out).await.map_err(|_| End::Reset)
    }

    /// Reads until all these streams have their answers, or the connection ends.
    pub(super) async fn answers(&mut self, streams: &[base::slab::Key]) -> Vec<Answer> {
        let mut answers: Vec<Answer> = streams.iter().map(|_| Answer::default()).collect();
        let mut left = streams.len();
        while left > 0 {
            if self.flush().await.is_err() || self.peer.more().await.is_err() {
                break;
            }
            let input = std::mem::take(&mut self.peer.buf);
            let mut at = 0;
            let at_of = |key| streams.iter().position(|s| *s == key).expect("one of ours");
            let mut over = false;
            while let Ok(Received { consumed, event }) =
                self.connection.receive(&input[at..], &mut self.head, &mut self.out)
            {
                at += consumed;
                match event {
                    None => break,
                    Some(Event::Head { stream, end, .. }) => {
                        let answer = &mut answers[at_of(stream)];
                        answer.status = self.head.status();
                        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                        answer.fields = self.head.fields().map(|(_, n, v)| (text(n), text(v))).collect();
                        answer.whole = end;
                        left -= usize::from(end);
                    }
                    Some(Event::Data { stream, bytes, end, .. }) => {
                        let answer = &mut answers[at_of(stream)];
                        answer.body.extend_from_slice(bytes);
                        answer.whole = end;
                        left -= usize::from(end);
                        self.connection.release(stream, bytes.len(), &mut self.out);
                    }
                    Some(Event::Trailers { .. }) => left -= 1,
                    Some(Event::Reset { .. }) => left -= 1,
                    Some(_) => {}
                }
                over |= self.connection.is_over();
            }
            self.peer.buf.extend_from_slice(&input[at..]);
            if over {
                break;
            }
        }
        answers
    }
}

fn text(target: &str) -> Vec<u8> {
    get(target)
}

#[test]
fn whatever_arrives_through_two_connections_of_streams_is_what_was_sent() {
    explore(CHAIN, ALL, |stage| async move {
        stage.origin(S);
        let jobs = (0..4u64).map(|job| {
            let stage = stage.clone();
            spawn(async move {
                let Ok(mut client) = Peer::connect(&worlds::addr(FRONT)).await else { return };
                for step in 0..4 {
                    let id = job * 10 + step;
                    let size = [30, 5000, 40_000, 0][step as usize];
                    let target = format!("/{id}/{size}");
                    let request =
                        if step % 2 == 1 { post(&target, &content(id, 20_000)) } else { get(&target) };
                    let answer = client.ask(&request).await;
                    if answer.is_whole() && answer.status() == 200 {
                        assert_eq!(answer.body, content(id, size), "{target}");
                    } else {
                        assert!(stage.climate.is_hostile(), "{target}: {answer:?}");
                        return;
                    }
                }
            })
        });
        all(jobs.collect::<Vec<_>>()).await;
        if !stage.climate.is_hostile() {
            let server = stage.server("p/h");
            let figures = (server.counters.sum(|c| &c.connects), server.counters.sum(|c| &c.reuses));
            assert_eq!(figures.0 + figures.1, 16);
            assert!(figures.0 <= 4, "requests share connections: {figures:?}");
        }
    });
}

#[test]
fn many_streams_at_once_get_their_own_answers_however_small_the_windows_are() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        let window = if stage.climate.is_quiet() { 100 } else { 16_384 };
        let limits = Limits { window, rxbuf: window, ..Limits::default() };
        let mut client = Client::new(stage.client(FRONT).await, limits);
        let asked: Vec<u64> = (0..12).collect();
        let streams: Vec<_> =
            asked.iter().map(|id| client.ask(&text(&format!("/{id}/{}", 700 * id)), b"")).collect();
        let answers = client.answers(&streams).await;
        for (id, answer) in asked.iter().zip(answers) {
            assert!(answer.whole && answer.status == 200, "{id}: {} {}", answer.status, answer.body.len());
            assert_eq!(answer.body, content(*id, 700 * *id as usize));
        }
        drop(client);
        stage.ended(12).await;
    });
}

#[test]
fn a_head_that_becomes_a_get_reads_the_body_on_and_keeps_the_connection() {
    const TURNED: &str = "listen p\n bind 127.0.0.1:80 proto h2\n http-reuse always\n http-request set-method GET\n \
                          server s 127.0.1.1:80";
    explore(TURNED, CALM, |stage| async move {
        stage.origin(S);
        let mut client = Client::new(stage.client(FRONT).await, Limits::default());
        for id in 0..3usize {
            let head = format!("HEAD /{id}/100000 HTTP/1.1\r\nhost: w\r\n\r\n");
            let stream = client.ask(head.as_bytes(), b"");
            let answers = client.answers(&[stream]).await;
            assert_eq!((answers[0].status, answers[0].body.len(), answers[0].whole), (200, 0, true));
            while stage.lines().len() <= id && stage.elapsed() < Duration::from_secs(200) {
                rt::sleep(Duration::from_millis(10)).await;
            }
        }
        drop(client);
        let lines = stage.ended(3).await;
        assert!(lines.iter().all(|line| line.state() == "--"), "{lines:#?}");
        assert_eq!(stage.server("p/s").counters.sum(|c| &c.connects), 1, "the connection is kept");
    });
}

#[test]
fn a_burst_to_an_idle_server_shares_the_connection_that_is_being_opened() {
    const BURST: &str = "listen p\n bind 127.0.0.1:80 proto h2\n http-reuse always\n server h 127.0.0.1:81 proto h2\n\
                         listen q\n bind 127.0.0.1:81 proto h2\n server s 127.0.1.1:80";
    explore(BURST, CALM, |stage| async move {
        stage.origin(S);
        let mut client = Client::new(stage.client(FRONT).await, Limits::default());
        let streams: Vec<_> = (0..90).map(|id| client.ask(&text(&format!("/{id}/10")), b"")).collect();
        for (id, answer) in client.answers(&streams).await.iter().enumerate() {
            assert_eq!((answer.status, &answer.body), (200, &content(id as u64, 10)), "{id}");
        }
        let server = stage.server("p/h");
        assert_eq!((server.counters.sum(|c| &c.connects), server.counters.sum(|c| &c.reuses)), (1, 89));
    });
}

#[test]
fn whoever_waited_for_a_connection_that_fails_tries_as_if_it_had_not() {
    const NOBODY: &str = "  retries 1\nlisten p\n bind 127.0.0.1:80 proto h2\n http-reuse always\n timeout connect 3s\n \
                          server h 127.0.0.1:81 proto h2";
    explore(NOBODY, QUIET, |stage| async move {
        let mut client = Client::new(stage.client(FRONT).await, Limits::default());
        let streams: Vec<_> = (0..5).map(|id| client.ask(&text(&format!("/{id}/10")), b"")).collect();
        let answers = client.answers(&streams).await;
        assert!(answers.iter().all(|answer| answer.status == 503), "{answers:?}");
        drop(client);
        let lines = stage.ended(5).await;
        assert!(lines.iter().all(|line| line.retries == "1" && line.state() == "SC"), "{lines:?}");
        assert!(stage.elapsed() < Duration::from_secs(4), "nobody waits for ever");
    });
}

#[test]
fn a_client_may_break_off_at_every_point() {
    explore(PLAIN, QUIET, |stage| async move {
        stage.origin(S);
        let mut whole = Client::new(stage.client(FRONT).await, Limits::default());
        whole.ask(&post("/1/3000", b"")[..], b"");
        let mut upload = Vec::new();
        std::mem::swap(&mut upload, &mut whole.out);
        drop(whole);
        for (cut, reset) in (0..=upload.len()).flat_map(|cut| [(cut, false), (cut, true)]) {
            let peer = stage.client(FRONT).await;
            let _ = peer.send(&upload[..cut]).await;
            rt::sleep(Duration::from_millis(1)).await;
            if reset {
                peer.reset();
            }
        }
        stage.quiet().await;
        let mut client = Client::new(stage.client(FRONT).await, Limits::default());
        let stream = client.ask(&text("/2/50"), b"");
        assert_eq!(client.answers(&[stream]).await[0].body, content(2, 50), "the engine still serves");
    });
}

#[test]
fn streams_that_are_reset_at_once_hold_nothing() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        let mut client = Client::new(stage.client(FRONT).await, Limits::default());
        for round in 0..200u64 {
            let stream = client.ask(&text(&format!("/{round}/2000")), b"");
            client.connection.reset(stream, wire::h2::Code::CANCEL, &mut client.out);
            if round % 7 == 0 && client.flush().await.is_err() {
                break;
            }
        }
        let _ = client.flush().await;
        let stream = client.ask(&text("/999/60"), b"");
        assert_eq!(client.answers(&[stream]).await[0].body, content(999, 60));
    });
}

#[test]
fn floods_of_what_is_legal_end_the_connection() {
    for frame in [
        // PING, an empty SETTINGS, PRIORITY.
        &b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0"[..],
        b"\0\0\0\x04\0\0\0\0\0",
        b"\0\0\x05\x02\0\0\0\0\x01\0\0\0\x03\x10",
    ] {
        explore(PLAIN, QUIET, move |stage| async move {
            let mut client = Client::new(stage.client(FRONT).await, Limits::default());
            client.flush().await.expect("room");
            let _ = client.peer.send(&frame.repeat(12_000)).await;
            // Whatever it was worth, the answer ends with a GOAWAY that asks to be calm.
            let (bytes, end) = client.peer.rest().await;
            assert_eq!(end, End::Closed);
            assert_eq!(bytes.last_chunk(), Some(&[0, 0, 0, 11]), "ENHANCE_YOUR_CALM");
            assert!(stage.elapsed() < Duration::from_secs(5), "at once");
        });
    }
}

#[test]
fn a_stop_lets_running_streams_end_and_says_goaway() {
    explore(PLAIN, CALM, |stage| async move {
        stage.answer(S, |request, _| {
            worlds::Answer::Late(Duration::from_secs(3), response(200, request.target().as_bytes()))
        });
        let mut client = Client::new(stage.client(FRONT).await, Limits::default());
        let stream = client.ask(&text("/late"), b"");
        client.flush().await.expect("room");
        rt::sleep(Duration::from_secs(1)).await;
        stage.stop();
        let answers = client.answers(&[stream]).await;
        assert_eq!((answers[0].status, &answers[0].body[..]), (200, &b"/late"[..]));
        assert_eq!(client.peer.rest().await.1, End::Closed);
        assert!(stage.elapsed() < Duration::from_secs(6));
    });
}

/// Another configuration takes the place of the one at work: streams under way end as they began, the next
/// one on the same connection is served by the new rules.
#[test]
fn streams_of_a_connection_are_served_by_two_configurations() {
    const RULES: &str = "frontend p
 bind 127.0.0.1:80 proto h2
 http-request return status 201 if { path /which }
 default_backend b
backend b
 server s 127.0.1.1:80";
    let next = "backend a\n server x 127.0.1.9:80\n".to_owned() + &RULES.replace("201", "202");
    let next: &'static str = next.leak();
    explore(RULES, CALM, move |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            while peer.request().await.is_whole() {
                rt::sleep(Duration::from_secs(1)).await;
                if peer.send(&response(200, b"late")).await.is_err() {
                    return;
                }
            }
        });
        let mut client = Client::new(stage.client(FRONT).await, Limits::default());
        let first = client.ask(&text("/which"), b"");
        assert_eq!(client.answers(&[first]).await[0].status, 201);
        let slow = client.ask(&text("/slow"), b"");
        client.flush().await.unwrap();
        rt::sleep(Duration::from_millis(200)).await;
        stage.adopt(next).unwrap();
        let which = client.ask(&text("/which"), b"");
        let answers = client.answers(&[slow, which]).await;
        assert_eq!((answers[0].status, &*answers[0].body, answers[1].status), (200, &b"late"[..], 202));
        let before = std::sync::Arc::downgrade(&stage.current().0.program);
        stage.adopt(RULES).unwrap();
        let which = client.ask(&text("/which"), b"");
        assert_eq!(client.answers(&[which]).await[0].status, 201);
        // The connection rests, and nothing of the one before is left.
        rt::sleep(Duration::from_secs(1)).await;
        assert!(before.upgrade().is_none());
        drop(client);
        stage.quiet().await;
    });
}
