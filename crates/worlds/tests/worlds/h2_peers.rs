//! Peers of HTTP/2 that break off, starve, wind up and flood, on both sides of the engine.
//!
//! What is random comes from the world's seed. In every scene each answer that is whole has to be that of its
//! own request, and at the end the harness looks for whatever is left over.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::slab::Key;
use wire::h2::{Code, Connection, Event, Limits, PREFACE, Role};
use wire::head::Head;
use worlds::{
    ALL, CALM, End, Peer, QUIET, Stage, addr, all, content, explore, get, post, post_chunked, spawn,
};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const FRONT_TWO: &str = "listen p\n bind 127.0.0.1:80\n timeout client 5s\n server s 127.0.1.1:80";
const BACK_TWO: &str = "  timeout server 4s\n  timeout client 6s\nlisten p\n bind 127.0.0.1:80\n http-reuse always\n \
                        server s 127.0.1.1:80 proto h2";

/// How a server of HTTP/2 misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    /// Resets streams at any point, with any code.
    Resets,
    /// Winds each connection up after some requests, gently.
    Farewell,
    /// The same at once: streams above the last one were never looked at.
    Abrupt,
    /// Closes the connection in the midst of it.
    Leaves,
    /// Opens no window for requests, or only a byte at a time.
    Starves,
}

/// An answer on its way.
struct Answer {
    stream: Key,
    body: Vec<u8>,
    sent: usize,
    /// Where it is reset.
    cut: Option<usize>,
    /// The request is whole, or the server does not wait for that.
    due: bool,
}

fn dice(sides: u64) -> u64 {
    rt::random() % sides
}

/// Serves `/<id>/<length>` on a connection, in a mood.
async fn serve(mut peer: Peer, mood: Mood) {
    let mut out = Vec::new();
    let window = if mood == Mood::Starves { 1 + dice(40) as u32 } else { 16_384 };
    let limits = Limits {
        window,
        rxbuf: window,
        streams: if mood == Mood::Farewell { 2 } else { 20 },
        ..Limits::default()
    };
    let mut connection = Connection::new(Role::Server, limits, &mut out);
    let (mut head, mut answers): (Head, Vec<Answer>) = (Head::request(), Vec::new());
    let (mut served, most) = (0, 1 + dice(3));
    // The stream that is still answered after an abrupt farewell.
    let mut last = None;
    loop {
        if peer.send(&std::mem::take(&mut out)).await.is_err() || peer.more().await.is_err() {
            return;
        }
        peer.events(&mut connection, &mut head, &mut out, |connection, head, out, event| match event {
            Event::Head { .. } if last.is_some() => {}
            Event::Head { stream, end, .. } => {
                served += 1;
                let patient = matches!(mood, Mood::Farewell | Mood::Abrupt);
                answers.push(Answer { due: end || !patient, ..answer(head, stream, mood) });
            }
            Event::Data { stream, bytes, end, .. } => {
                connection.release(stream, bytes.len(), out);
                answers.iter_mut().filter(|a| a.stream == stream).for_each(|a| a.due |= end);
            }
            Event::Trailers { stream } => {
                assert!(head.first(&b"x-body"[..]).is_some(), "trailers are whole");
                answers.iter_mut().filter(|a| a.stream == stream).for_each(|a| a.due = true);
            }
            Event::Reset { stream, .. } => answers.retain(|a| a.stream != stream),
            _ => {}
        });
        match mood {
            Mood::Leaves if served >= most => return,
            Mood::Farewell if served >= most => connection.shutdown(&mut out),
            Mood::Abrupt if served >= most && last.is_none() => {
                // Those behind the first one that is open were never looked at; that one is answered to its
                // end.
                let first = answers.iter().filter_map(|a| connection.id(a.stream)).min().unwrap_or(1);
                let goaway = [&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], &first.to_be_bytes(), &[0; 4]].concat();
                out.extend_from_slice(&goaway);
                answers.retain(|a| connection.id(a.stream) == Some(first));
                last = Some(first);
            }
            _ => {}
        }
        answers.retain_mut(|answer| answer.go_on(&mut connection, &mut out));
        if connection.is_over() || (last.is_some() && answers.is_empty()) {
            let _ = peer.send(&out).await;
            peer.finish();
            peer.rest().await;
            return;
        }
    }
}

fn answer(request: &Head, stream: Key, mood: Mood) -> Answer {
    let target = String::from_utf8_lossy(request.target()).into_owned();
    let mut numbers = target.split('/').filter_map(|n| n.parse::<u64>().ok());
    let (id, length) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0) as usize);
    let cut = (mood == Mood::Resets && dice(2) == 0).then(|| dice(length as u64 + 1) as usize);
    Answer { stream, body: content(id, length), sent: 0, cut, due: true }
}

impl Answer {
    /// Sends what can be sent; whether there is more to come.
    fn go_on(&mut self, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        if !self.due {
            return true;
        }
        let codes = [Code::NO_ERROR, Code::CANCEL, Code::INTERNAL_ERROR, Code::REFUSED_STREAM, Code(77)];
        if self.sent == 0 {
            if self.cut == Some(0) {
                connection.reset(self.stream, codes[dice(5) as usize], out);
                return false;
            }
            let mut head = Head::response();
            head.append(b"content-length", self.body.len().to_string().as_bytes()).expect("room");
            connection.respond(self.stream, &head, 200, self.body.is_empty(), out);
        }
        let end = self.cut.unwrap_or(self.body.len());
        self.sent += connection.send(self.stream, &self.body[self.sent..end], self.cut.is_none(), out);
        if self.sent < end {
            return true;
        }
        if self.cut.is_some() {
            connection.reset(self.stream, codes[dice(5) as usize], out);
        }
        false
    }
}

/// Four clients that ask one request after the other, with bodies of less than `upload` bytes; how many
/// answers were whole.
async fn clients(stage: &Rc<Stage>, requests: u64, upload: u64) -> u64 {
    let whole: Rc<Cell<u64>> = Rc::default();
    let jobs = (0..4u64).map(|job| {
        let whole = whole.clone();
        spawn(async move {
            let Ok(mut client) = Peer::connect(&addr(FRONT)).await else { return };
            for step in 0..requests {
                let id = job * 100 + step;
                let size = dice(9000) as usize;
                let target = format!("/{id}/{size}");
                let upload = content(id, dice(upload) as usize);
                let request = match step % 6 {
                    1 => post(&target, &upload),
                    4 => post_chunked(&target, &upload, 1 + dice(4000) as usize),
                    _ => get(&target),
                };
                let answer = client.ask(&request).await;
                if answer.status() == 200 && answer.is_whole() {
                    assert_eq!(answer.body, content(id, size), "{target}");
                    whole.set(whole.get() + 1);
                } else {
                    assert!(content(id, size).starts_with(&answer.body) || answer.status() >= 400);
                }
                if !answer.is_whole() || answer.closes() {
                    let Ok(again) = Peer::connect(&addr(FRONT)).await else { return };
                    client = again;
                }
            }
        })
    });
    all(jobs.collect::<Vec<_>>()).await;
    stage.quiet().await;
    whole.get()
}

fn moody(mood: Mood, climates: &[worlds::Climate], at_least: u64) {
    let patient = BACK_TWO.replace("timeout server 4s", "timeout server 40s");
    let config = if mood == Mood::Farewell { &patient } else { BACK_TWO };
    explore(config, climates, move |stage| async move {
        stage.serve(S, move |peer, _| serve(peer, mood));
        // Whoever leaves gently lets no request go lost, be it longer than what is kept to be sent again.
        let upload = if mood == Mood::Farewell { 40_000 } else { 300 };
        let whole = clients(&stage, 10, upload).await;
        let lines = stage.lines();
        let others: Vec<_> = lines
            .iter()
            .filter(|line| line.status != "200" || line.state() != "--")
            .map(|line| &line.text)
            .collect();
        assert!(
            whole >= at_least || stage.climate.is_hostile(),
            "{whole} of 40 answers were whole: {others:#?}"
        );
    });
}

#[test]
fn a_server_that_resets_streams_at_every_point_spoils_no_other() {
    moody(Mood::Resets, ALL, 8);
}

#[test]
fn a_server_that_winds_up_gently_loses_no_request() {
    moody(Mood::Farewell, CALM, 40);
}

#[test]
fn requests_that_a_server_never_looked_at_go_elsewhere() {
    moody(Mood::Abrupt, ALL, 40);
}

#[test]
fn a_server_that_leaves_takes_only_its_own_streams_along() {
    moody(Mood::Leaves, ALL, 1);
}

#[test]
fn windows_of_a_few_bytes_slow_uploads_down_and_stop_none() {
    moody(Mood::Starves, CALM, 40);
}

/// A server that takes two streams at a time says farewell while others wait for their turn on its
/// connection: nothing was sent of those, so they go elsewhere, each with all of its body, be that more than
/// is kept of what was sent. One may meet four farewells in a row: `retries` is 3 by default.
#[test]
fn an_upload_that_waits_for_a_stream_when_a_farewell_comes_goes_elsewhere_whole() {
    explore(&BACK_TWO.replace(" http-reuse", " retries 50\n http-reuse"), QUIET, |stage| async move {
        stage.serve(S, |peer, _| serve(peer, Mood::Farewell));
        for round in 0..10 {
            let jobs = (0..6u64).map(|id| {
                let stage = stage.clone();
                spawn(async move {
                    let mut client = stage.client(FRONT).await;
                    let answer = client.ask(&post(&format!("/{id}/10"), &content(id, 30_000))).await;
                    assert_eq!(answer.status(), 200, "round {round}: {:?}", stage.lines().last());
                    assert_eq!(answer.body, content(id, 10));
                })
            });
            all(jobs.collect::<Vec<_>>()).await;
        }
    });
}

/// Where nobody else may use it, because of `pool-max-conn 0` or because the server went into maintenance
/// while it was being made, a connection ends with its request.
#[test]
fn a_connection_that_nobody_may_use_again_does_not_rest() {
    for (words, maintenance) in [("proto h2 pool-max-conn 0", false), ("proto h2", true)] {
        explore(&BACK_TWO.replace("proto h2", words), QUIET, move |stage| async move {
            stage.serve(S, |peer, _| serve(peer, Mood::Starves));
            let slow = Duration::from_millis(200);
            stage.link(S, |link| link.delay = slow..=slow);
            let mut client = stage.client(FRONT).await;
            client.send(&get("/1/50")).await.unwrap();
            rt::sleep(Duration::from_millis(100)).await;
            if maintenance {
                let first = farm::At { proxy: 0, server: 0 };
                farm::state::set_admin(&stage.worker.farm, first, farm::state::Wanted::Maint);
            }
            assert_eq!(client.response().await.body, content(1, 50));
            drop(client);
            stage.quiet().await;
            let open = || stage.proxy("p").back.counters.sum(|c| &c.h2.open_connections);
            rt::sleep(Duration::from_secs(1)).await;
            assert_eq!((stage.server("p/s").conns.idle(), open()), (0, 0), "{words}");
        });
    }
}

/// The same holds for one that a client keeps for itself: it need not leave before the server can be deleted.
#[test]
fn a_connection_that_a_client_keeps_ends_when_its_server_goes_into_maintenance() {
    explore(&BACK_TWO.replace("http-reuse always", "http-reuse never"), QUIET, move |stage| async move {
        stage.serve(S, |peer, _| serve(peer, Mood::Starves));
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/1/50")).await.body, content(1, 50));
        rt::sleep(Duration::from_millis(50)).await;
        let first = farm::At { proxy: 0, server: 0 };
        farm::state::set_admin(&stage.worker.farm, first, farm::state::Wanted::Maint);
        rt::sleep(Duration::from_millis(50)).await;
        let conns = || (stage.server("p/s").conns.used(), stage.server("p/s").conns.idle());
        assert_eq!((conns(), stage.connections()), ((0, 0), 1));
    });
}

/// The header block of a GET for `/1/<size>`.
fn block(size: &str) -> Vec<u8> {
    let path = format!("/1/{size}");
    let lines: [(&[u8], &[u8]); 4] =
        [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"w"), (b":path", path.as_bytes())];
    let literal = |(name, value): &(&[u8], &[u8])| {
        [&[0, name.len() as u8], *name, &[value.len() as u8], value].concat()
    };
    lines.iter().flat_map(literal).collect()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const HELLO: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Lines of a header block, none of them indexed.
fn literals(lines: &[(&str, &str)]) -> Vec<u8> {
    let literal = |(name, value): &(&str, &str)| {
        [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    };
    lines.iter().flat_map(literal).collect()
}

/// What the engine says to the first stream: the status as the static table numbers it (8: 200, 12: 400), or
/// the code of a reset.
async fn first_word(stage: &Stage, frames: &[Vec<u8>]) -> Result<u8, u32> {
    let mut client = stage.client(FRONT).await;
    let _ = client.send(&[PREFACE.as_slice(), &HELLO, &frames.concat()].concat()).await;
    loop {
        let mut rest = &client.buf[..];
        while let Some((head, tail)) = rest.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = tail.get(..length) else { break };
            match (head[3], payload) {
                (1, [first, ..]) => return Ok(first & 0x7f),
                (3, [a, b, c, d]) => return Err(u32::from_be_bytes([*a, *b, *c, *d])),
                _ => rest = &tail[length..],
            }
        }
        assert!(client.more().await.is_ok(), "nothing was said to the stream");
    }
}

#[test]
fn requests_of_http2_are_read_as_strictly_as_they_should_be() {
    explore(FRONT_TWO, QUIET, |stage| async move {
        stage.origin(S);
        let usual = [(":method", "GET"), (":scheme", "http"), (":authority", "w"), (":path", "/1/1")];
        let with = |method: &'static str, more: &[(&'static str, &'static str)]| {
            let mut lines = usual.to_vec();
            lines[0].1 = method;
            lines.extend(more);
            literals(&lines)
        };
        let one = |block: Vec<u8>| vec![frame(1, 5, 1, &block)];
        assert_eq!(first_word(&stage, &one(with("GET", &[]))).await, Ok(8));
        assert_eq!(first_word(&stage, &one(with("PRI", &[]))).await, Ok(12), "nobody asks for the preface");
        assert_eq!(
            first_word(&stage, &one(with("GET", &[("x-a", " v ")]))).await,
            Ok(8),
            "blanks are no part of a value"
        );
        let body = |trailer: &[(&str, &str)]| {
            vec![
                frame(1, 4, 1, &with("POST", &[])),
                frame(0, 0, 1, &content(1, 3)),
                frame(1, 5, 1, &literals(trailer)),
            ]
        };
        assert_eq!(first_word(&stage, &body(&[("x-a", "1")])).await, Ok(8));
        assert_eq!(
            first_word(&stage, &body(&[("content-length", "3")])).await,
            Err(1),
            "it comes too late to say so"
        );
    });
}

/// Sends frames to the engine; how that ended, with the code of a GOAWAY.
async fn flood(stage: &Stage, frames: Vec<u8>) -> (End, Option<u32>) {
    let mut client = stage.client(FRONT).await;
    let _ = client.send(&[PREFACE.as_slice(), &HELLO, &frames].concat()).await;
    let (bytes, end) = client.rest().await;
    let mut code = None;
    let mut rest = &bytes[..];
    while let Some((head, tail)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some(payload) = tail.get(..length) else { break };
        if head[3] == 7 {
            code = payload.get(4..8).map(|c| u32::from_be_bytes([c[0], c[1], c[2], c[3]]));
        }
        rest = &tail[length..];
    }
    (end, code)
}

/// After a flood everybody else is served as ever.
async fn still_serves(stage: &Stage) {
    let answer = stage.client(FRONT).await.ask(&get("/2/50")).await;
    assert_eq!(answer.body, content(2, 50), "the engine still serves");
}

/// Frames that are repeated until the engine has had enough of them: what comes first, what is repeated, how
/// the connection ends.
fn floods() -> Vec<(&'static str, Vec<u8>, Vec<u8>, u32)> {
    const CALM_DOWN: u32 = 11;
    let block = block("10");
    let open = frame(1, 4, 1, &block);
    let (protocol, compression, flow) = (1, 9, 3);
    vec![
        ("empty continuations", frame(1, 0, 1, &block), frame(9, 0, 1, b""), CALM_DOWN),
        ("continuations", frame(1, 0, 1, &block), frame(9, 0, 1, b"\0\x01x\x01y"), CALM_DOWN),
        ("empty data", open.clone(), frame(0, 0, 1, b""), CALM_DOWN),
        ("padding alone", open.clone(), frame(0, 8, 1, b"\0"), CALM_DOWN),
        ("windows by bytes", open.clone(), frame(8, 0, 0, &[0, 0, 0, 1]), CALM_DOWN),
        ("windows that overflow", open.clone(), frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), flow),
        ("settings", vec![], frame(4, 0, 0, &[0, 4, 0, 0, 0, 9]), CALM_DOWN),
        ("unknown frames", vec![], frame(99, 0, 1, b""), CALM_DOWN),
        (
            "table sizes",
            vec![],
            frame(1, 5, 1, &[&[0x3f, 0xe1, 0xff, 0xff, 0x7f], &block[..]].concat()),
            compression,
        ),
        ("data of nobody", vec![], frame(0, 0, 7, b"x"), protocol),
    ]
}

#[test]
fn floods_of_frames_end_the_connection_and_nothing_else() {
    explore(FRONT_TWO, QUIET, |stage| async move {
        stage.origin(S);
        for (name, first, again, code) in floods() {
            let began = stage.elapsed();
            // No more than is read after the end: what lies unread when a connection is closed destroys the
            // last word.
            let times = 12_000.min(240_000 / again.len());
            let outcome = flood(&stage, [first, again.repeat(times)].concat()).await;
            assert_eq!(outcome.1, Some(code), "{name}: {outcome:?}");
            assert!(stage.elapsed() - began < Duration::from_secs(6), "{name}");
            still_serves(&stage).await;
        }
    });
}

#[test]
fn streams_that_are_opened_and_reset_by_thousands_end_the_connection() {
    explore(FRONT_TWO, QUIET, |stage| async move {
        let asked: Rc<Cell<u32>> = Rc::default();
        let count = asked.clone();
        stage.answer(S, move |request, _| {
            count.set(count.get() + 1);
            worlds::Answer::Bytes(worlds::response(
                200,
                &content(2, if request.target() == "/2/50" { 50 } else { 9 }),
            ))
        });
        let block = block("10");
        let pairs = (0..12_500u32).flat_map(|n| {
            let id = 2 * n + 1;
            [frame(1, 5, id, &block), frame(3, 0, id, &[0, 0, 0, 8])].concat()
        });
        let outcome = flood(&stage, pairs.collect()).await;
        assert_ne!(outcome.1, Some(0), "not a friendly end");
        let opened = stage.proxy("p").front.counters.sum(|c| &c.h2.streams);
        assert!(opened < 12_000 && asked.get() < 12_000, "{opened} streams, {} requests", asked.get());
        still_serves(&stage).await;
    });
}

#[test]
fn a_small_block_that_unfolds_to_megabytes_is_refused() {
    explore(FRONT_TWO, QUIET, |stage| async move {
        stage.origin(S);
        // A field of 4,000 bytes goes to the table, and is named ten thousand times by one byte each.
        let value = [b'v'; 3900];
        let field = [&[0x40, 1, b'x', 0x7f, 0xbd, 0x1d][..], &value].concat();
        let mut bomb = [block("10"), field].concat();
        bomb.extend_from_slice(&[0xbe; 10_000]);
        let client = stage.client(FRONT).await;
        let _ = client.send(&[PREFACE.as_slice(), &HELLO, &frame(1, 5, 1, &bomb)].concat()).await;
        rt::sleep(Duration::from_secs(1)).await;
        still_serves(&stage).await;
        drop(client);
        assert!(!stage.lines().iter().any(|line| line.status == "200" && line.up > 20_000));
    });
}

#[test]
fn a_client_that_opens_no_window_is_given_up_after_its_timeout() {
    explore(FRONT_TWO, CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        let closed_windows = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let asked: Vec<u8> = (0..5).flat_map(|n| frame(1, 5, 2 * n + 1, &block("5000"))).collect();
        let _ = client.send(&[PREFACE.as_slice(), &closed_windows, &asked].concat()).await;
        let (bytes, _) = client.rest().await;
        let begun = bytes.windows(4).filter(|w| *w == b"aaaa").count();
        assert_eq!(begun, 0, "no data without a window");
        assert!(stage.elapsed() < Duration::from_secs(30), "it took {:?}", stage.elapsed());
    });
}

/// The connection's timeout passes a moment before that of the stream, whose task still has more than fits in
/// between.
#[test]
fn a_client_that_opens_no_window_for_long_responses_is_given_up_after_one_timeout() {
    explore(&FRONT_TWO.replace("client 5s", "client 30s"), CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        let closed_windows = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let asked = frame(1, 5, 1, &block("400000"));
        let _ = client.send(&[PREFACE.as_slice(), &closed_windows, &asked].concat()).await;
        let _ = client.rest().await;
        assert!(stage.elapsed() < Duration::from_secs(45), "it took {:?}", stage.elapsed());
    });
}

/// No window comes from a client that has closed its side: what waits for one is over, whatever
/// `abortonclose` says.
#[test]
fn a_response_that_waits_for_a_window_ends_with_its_clients_side() {
    let patient = FRONT_TWO.replace("client 5s", "client 300s\n no option abortonclose");
    explore(&patient, CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        let small_windows = frame(4, 0, 0, &[0, 4, 0, 0, 0, 10]);
        let asked: Vec<u8> = [1, 3].iter().flat_map(|n| frame(1, 5, *n, &block("40000"))).collect();
        let _ = client.send(&[PREFACE.as_slice(), &small_windows, &asked].concat()).await;
        // Now and then the client has left before its first answer is begun.
        rt::sleep(Duration::from_millis(dice(20))).await;
        client.finish();
        let _ = client.rest().await;
        let ends: Vec<String> = stage.ended(2).await.iter().map(|line| line.term.clone()).collect();
        assert!(ends.iter().all(|term| matches!(&term[..], "CD--" | "CL--")), "{ends:?}");
        assert!(stage.elapsed() < Duration::from_secs(60), "it took {:?}", stage.elapsed());
    });
}

#[test]
fn an_answer_is_sent_when_the_windows_have_taken_it_and_not_before() {
    explore(FRONT_TWO, CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        let small_windows = frame(4, 0, 0, &[0, 4, 0, 0, 0, 10]);
        let asked = frame(1, 5, 1, &block("50"));
        let _ = client.send(&[PREFACE.as_slice(), &small_windows, &asked].concat()).await;
        // Each step is shorter than `timeout client`, together they are longer.
        for _ in 0..4 {
            rt::sleep(Duration::from_secs(3)).await;
            assert!(stage.lines().is_empty(), "nobody has taken the answer yet: {:?}", stage.lines());
            let _ = client.send(&frame(8, 0, 1, &[0, 0, 0, 10])).await;
        }
        rt::sleep(Duration::from_secs(1)).await;
        assert_eq!(stage.lines()[0].term, "----");
        // A second one is never taken whole.
        let _ = client.send(&frame(1, 5, 3, &block("50"))).await;
        rt::sleep(Duration::from_secs(4)).await;
        assert_eq!(stage.lines().len(), 1, "its time is not over: {:?}", stage.lines());
        let (bytes, _) = client.rest().await;
        let reset = frame(3, 0, 3, &[0, 0, 0, 8]);
        assert!(bytes.windows(reset.len()).any(|part| part == reset), "the second stream is reset");
        // A third is reset by its client.
        let mut client = stage.client(FRONT).await;
        let asked = frame(1, 5, 1, &block("50"));
        let _ = client.send(&[PREFACE.as_slice(), &small_windows, &asked].concat()).await;
        rt::sleep(Duration::from_secs(1)).await;
        let _ = client.send(&frame(3, 0, 1, &[0, 0, 0, 8])).await;
        client.finish();
        let _ = client.rest().await;
        let ends: Vec<String> = stage.ended(3).await.iter().map(|line| line.term.clone()).collect();
        assert_eq!(ends, ["----", "cL--", "CL--"]);
    });
}

#[test]
fn a_client_that_resets_streams_at_every_point_spoils_no_other() {
    explore(FRONT_TWO, ALL, |stage| async move {
        stage.origin(S);
        let Some(client) = stage.refusable(FRONT).await else { return };
        let mut sent = [PREFACE.as_slice(), &HELLO].concat();
        for n in 0..40u32 {
            let id = 2 * n + 1;
            sent.extend(frame(1, 5, id, &block("3000")));
            if n % 2 == 0 {
                if client.send(&std::mem::take(&mut sent)).await.is_err() {
                    return;
                }
                rt::sleep(Duration::from_micros(dice(900))).await;
                sent.extend(frame(3, 0, id, &[0, 0, 0, dice(14) as u8]));
            }
            sent.extend(frame(8, 0, 0, &[0, 0, 8, 0]));
        }
        let _ = client.send(&sent).await;
        rt::sleep(Duration::from_secs(3)).await;
        drop(client);
        if !stage.climate.is_hostile() {
            still_serves(&stage).await;
        }
    });
}
