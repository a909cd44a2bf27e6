//! Peers of HTTP/2 that break off, starve, wind up and flood, on both sides of the engine.
//!
//! What is random comes from the world's seed. In every scene each answer that is whole has to be that of its own request, and at
//! the end the harness looks for whatever is left over.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::slab::Key;
use wire::h2::{Code, Connection, Event, Limits, PREFACE, Received, Role};
use wire::head::Head;
use worlds::{ALL, CALM, End, Peer, QUIET, Stage, addr, all, content, explore, get, post, spawn};

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
    let limits = Limits { window, rxbuf: window, streams: 20, ..Limits::default() };
    let mut connection = Connection::new(Role::Server, limits, &mut out);
    let (mut head, mut answers): (Head, Vec<Answer>) = (Head::request(), Vec::new());
    let (mut served, most) = (0, 1 + dice(6));
    // The stream that is still answered after an abrupt farewell.
    let mut last = None;
    loop {
        if peer.send(&std::mem::take(&mut out)).await.is_err() || peer.more().await.is_err() {
            return;
        }
        let (input, mut at) = (std::mem::take(&mut peer.buf), 0);
        loop {
            let Ok(Received { consumed, event }) = connection.receive(&input[at..], &mut head, &mut out)
            else {
                panic!("the engine speaks HTTP/2")
            };
            at += consumed;
            match event {
                None => break,
                Some(Event::Head { .. }) if last.is_some() => {}
                Some(Event::Head { stream, end, .. }) => {
                    served += 1;
                    let patient = matches!(mood, Mood::Farewell | Mood::Abrupt);
                    answers.push(Answer { due: end || !patient, ..answer(&head, stream, mood) });
                }
                Some(Event::Data { stream, bytes, end }) => {
                    connection.release(stream, bytes.len(), &mut out);
                    answers.iter_mut().filter(|a| a.stream == stream).for_each(|a| a.due |= end);
                }
                Some(Event::Reset { stream, .. }) => answers.retain(|a| a.stream != stream),
                Some(_) => {}
            }
        }
        peer.buf = input[at..].to_vec();
        match mood {
            Mood::Leaves if served >= most => return,
            Mood::Farewell if served >= most => connection.shutdown(&mut out),
            Mood::Abrupt if served >= most && last.is_none() => {
                // Those behind the first one that is open were never looked at; that one is answered to its end.
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

/// Four clients that ask one request after the other; how many answers were whole.
async fn clients(stage: &Rc<Stage>, requests: u64) -> u64 {
    let whole: Rc<Cell<u64>> = Rc::default();
    let jobs = (0..4u64).map(|job| {
        let whole = whole.clone();
        spawn(async move {
            let Ok(mut client) = Peer::connect(&addr(FRONT)).await else { return };
            for step in 0..requests {
                let id = job * 100 + step;
                let size = dice(9000) as usize;
                let target = format!("/{id}/{size}");
                let upload = content(id, dice(300) as usize);
                let request = if step % 3 == 1 { post(&target, &upload) } else { get(&target) };
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
    explore(BACK_TWO, climates, move |stage| async move {
        stage.serve(S, move |peer, _| serve(peer, mood));
        let whole = clients(&stage, 10).await;
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

/// Frames that are repeated until the engine has had enough of them: what comes first, what is repeated, how the
/// connection ends.
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
            // No more than is read after the end: what lies unread when a connection is closed destroys the last word.
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
