//! Agents of SPOE filters that are late, silent, gone or torn down: requests wait no longer than they are
//! told to, and none hangs.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use lang::Registry;
use wire::spop::write::{Writer, notify};
use wire::spop::{Data, PREFIX, Reader, frame, kind};
use worlds::{CALM, Climate, End, Peer, QUIET, Setup, Stage, explore_with, get};

const FRONT: &str = "127.0.0.1:80";
const AGENT: &str = "127.0.1.1:12345";
/// The longest frame here.
const MOST: usize = 16380;

fn extend(registry: &mut Registry) {
    registry.add_filters(spoe::FILTERS);
    registry.add_actions(spoe::ACTIONS);
}

fn play<F>(engine: &str, back: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worlds/fixtures/spoe.conf");
    let config = format!(
        "frontend f\n bind {FRONT}\n filter spoe engine {engine} config {file}\n \
         http-request return status 200 hdr x-v \"%[var(txn.px.v)]\" hdr x-err \"%[var(txn.px.err)]\"\n\
         backend agents\n mode spop\n {back}\n server a {AGENT}"
    );
    explore_with(
        move || Setup::extended(&config, extend).unwrap_or_else(|why| panic!("{why}")),
        climates,
        scene,
    );
}

/// The next frame: its kind, stream and first argument, if it is text.
async fn next(peer: &mut Peer) -> Result<(u8, u64, Vec<u8>), End> {
    loop {
        if let Some((read, taken)) = frame(&peer.buf, MOST).expect("the engine speaks SPOP") {
            let mut reader = Reader::new(read.payload);
            let mut first = Vec::new();
            if read.kind == kind::NOTIFY {
                let _ = (reader.text(), reader.byte(), reader.text());
                if let Some(Data::Text(word)) = reader.data() {
                    first = word.to_vec();
                }
            }
            let found = (read.kind, read.stream, first);
            assert!(taken > PREFIX);
            peer.buf.drain(..taken);
            return Ok(found);
        }
        peer.more().await?;
    }
}

fn hello(capabilities: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, kind::AGENT_HELLO, 0, 0);
    writer.item(b"version", &Data::Text(b"2.0"));
    writer.item(b"max-frame-size", &Data::Uint32(MOST as u64));
    writer.item(b"capabilities", &Data::Text(capabilities));
    writer.finish(MOST).unwrap();
    out
}

/// An answer that sets `txn.v` to the number of the stream.
fn ack(stream: u64) -> Vec<u8> {
    let mut actions = b"\x01\x03\x02\x01v".to_vec();
    Data::Int64(stream.cast_signed()).write(&mut actions);
    let mut out = Vec::new();
    notify(&mut out, stream, &actions, MOST).unwrap();
    out[PREFIX] = kind::ACK;
    out
}

/// Serves a connection: what is asked with `silent` is never answered, with `late` after half a second.
async fn serve(mut peer: Peer, capabilities: &'static [u8]) {
    while let Ok((kind, stream, word)) = next(&mut peer).await {
        let sent = match (kind, &word[..]) {
            (kind::HAPROXY_HELLO, _) => peer.send(&hello(capabilities)).await,
            (kind::NOTIFY, b"silent") => Ok(()),
            (kind::NOTIFY, b"late") => {
                rt::sleep(Duration::from_millis(500)).await;
                peer.send(&ack(stream)).await
            }
            (kind::NOTIFY, _) => peer.send(&ack(stream)).await,
            _ => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A request that tells the agent what to do; what the filter made of it: value and error.
async fn ask(stage: &Stage, word: &str) -> (String, String) {
    let mut client = stage.client(FRONT).await;
    let request = format!("GET / HTTP/1.1\r\nhost: h\r\ndo: {word}\r\n\r\n");
    let answer = client.ask(request.as_bytes()).await;
    let of = |name| answer.field(name).unwrap_or_default().to_owned();
    (of("x-v"), of("x-err"))
}

fn is(got: (String, String), value: &str, error: &str) {
    assert_eq!((got.0.as_str(), got.1.as_str()), (value, error));
}

#[test]
fn a_silent_agent_holds_a_request_for_the_processing_time() {
    play("short", "", QUIET, |stage| async move {
        stage.serve(AGENT, |peer, _| serve(peer, b"pipelining"));
        is(ask(&stage, "x").await, "1", "");
        let before = stage.elapsed().as_millis();
        is(ask(&stage, "silent").await, "", "1");
        let spent = stage.elapsed().as_millis() - before;
        assert!((100..130).contains(&spent), "{spent}");
        // Its connection is used on, and what comes late is passed over.
        is(ask(&stage, "late").await, "", "1");
        is(ask(&stage, "late").await, "", "1");
        rt::sleep(Duration::from_secs(1)).await;
        is(ask(&stage, "x").await, "9", "");
    });
}

#[test]
fn the_time_of_the_server_ends_a_question_and_a_greeting() {
    play("long", "timeout server 2s", QUIET, |stage| async move {
        stage.serve(AGENT, |mut peer, n| async move {
            if n > 0 {
                return serve(peer, b"pipelining").await;
            }
            // The first one never greets, and is told at last.
            assert_eq!(next(&mut peer).await.map(|f| f.0), Ok(kind::HAPROXY_HELLO));
            assert_eq!(next(&mut peer).await.map(|f| f.0), Ok(kind::HAPROXY_DISCONNECT));
        });
        is(ask(&stage, "x").await, "", "257");
        assert_eq!(stage.elapsed().as_millis() / 100, 20);
        rt::sleep(Duration::from_millis(100)).await;
        is(ask(&stage, "x").await, "1", "");
        is(ask(&stage, "silent").await, "", "257");
        assert_eq!(stage.elapsed().as_millis() / 100, 41);
    });
}

#[test]
fn a_client_that_leaves_gives_the_place_back() {
    let back = "timeout queue 30s\n default-server maxconn 1";
    play("long", back, QUIET, |stage| async move {
        stage.serve(AGENT, |peer, _| serve(peer, b"pipelining"));
        let client = stage.client(FRONT).await;
        let request = b"POST / HTTP/1.1\r\nhost: h\r\ndo: silent\r\ncontent-length: 9\r\n\r\nhalf";
        let _ = client.send(request).await;
        rt::sleep(Duration::from_millis(200)).await;
        assert_eq!(stage.proxy("agents").back.current.load(std::sync::atomic::Ordering::Relaxed), 1);
        client.reset();
        is(ask(&stage, "x").await, "3", "");
        assert!(stage.elapsed() < Duration::from_secs(5), "{:?}", stage.elapsed());
    });
}

/// Connections that an agent needs for questions at the same time are closed again, all but one.
#[test]
fn connections_beyond_the_need_are_closed() {
    thread_local! {
        static OPEN: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }
    play("long", "", QUIET, |stage| async move {
        OPEN.set((0, 0));
        stage.serve(AGENT, |peer, _| async move {
            let (now, most) = OPEN.get();
            OPEN.set((now + 1, most.max(now + 1)));
            serve(peer, b"").await;
            let (now, most) = OPEN.get();
            OPEN.set((now - 1, most));
        });
        is(ask(&stage, "x").await, "1", "");
        let work: Vec<_> = (0..4)
            .map(|_| {
                let stage = stage.clone();
                worlds::spawn(async move { ask(&stage, "late").await })
            })
            .collect();
        for got in worlds::all(work).await {
            assert_eq!(got.1, "");
        }
        assert_eq!(OPEN.get(), (4, 4));
        rt::sleep(Duration::from_secs(11)).await;
        assert_eq!(OPEN.get().0, 1);
        assert_eq!(ask(&stage, "x").await.1, "");
        assert_eq!(OPEN.get(), (1, 4));
    });
}

#[test]
fn an_agent_that_nobody_reaches_holds_a_request_for_the_connect_timeout() {
    play("long", "timeout connect 2s\n retries 1", QUIET, |stage| async move {
        stage.link(AGENT, |faults| faults.black_hole = 1.0);
        for n in 1..=2 {
            let before = stage.elapsed().as_millis();
            let (value, error) = ask(&stage, "x").await;
            assert!(value.is_empty() && !error.is_empty(), "{value} {error}");
            let spent = stage.elapsed().as_millis() - before;
            // Twice, for it is tried once more.
            assert!((3900..5200).contains(&spent), "question {n}: {spent}");
        }
    });
}

#[test]
fn a_question_waits_for_a_place_at_an_agent_no_longer_than_the_queue_allows() {
    let back = "timeout queue 1s\n default-server maxconn 1\n timeout server 30s";
    play("long", back, CALM, |stage| async move {
        stage.serve(AGENT, |peer, _| serve(peer, b"pipelining"));
        // Somebody has the only place for longer than that.
        let client = stage.client(FRONT).await;
        let _ = client.send(b"GET / HTTP/1.1\r\nhost: h\r\ndo: silent\r\n\r\n").await;
        while stage.server("agents/a").served.load(std::sync::atomic::Ordering::Relaxed) == 0 {
            rt::sleep(Duration::from_millis(50)).await;
        }
        let before = stage.elapsed().as_millis();
        let (value, error) = ask(&stage, "x").await;
        assert!(value.is_empty() && !error.is_empty(), "{value} {error}");
        let spent = stage.elapsed().as_millis() - before;
        assert!(spent >= 1000 && (!stage.climate.is_quiet() || spent < 1100), "{spent}");
        drop(client);
    });
}

/// An agent that goes and comes back under load: each request is answered, in time.
#[test]
fn no_request_hangs_when_agents_die() {
    play("short", "timeout server 5s", CALM, |stage| async move {
        stage.serve(AGENT, |mut peer, n| async move {
            if n % 3 == 2 {
                // Dies in the midst of a frame.
                let _ = next(&mut peer).await;
                let _ = peer.send(&hello(b"pipelining")).await;
                if let Ok((_, stream, _)) = next(&mut peer).await {
                    let _ = peer.send(&ack(stream)[..7]).await;
                }
                return peer.reset();
            }
            let end = rt::now() + Duration::from_millis(300);
            let serving = serve(peer, b"pipelining");
            let _ = worlds::within(end.since(rt::now()), serving).await;
        });
        let work: Vec<_> = (0..20)
            .map(|_| {
                let stage = stage.clone();
                worlds::spawn(async move {
                    for _ in 0..10 {
                        let mut client = stage.client(FRONT).await;
                        let answer = client.ask(&get("/")).await;
                        if answer.is_whole() {
                            assert_eq!(answer.status(), 200);
                        }
                        rt::sleep(Duration::from_millis(20)).await;
                    }
                })
            })
            .collect();
        worlds::all(work).await;
        assert!(stage.elapsed() < Duration::from_secs(300), "{:?}", stage.elapsed());
    });
}

/// In any world what is asked is answered or given up, and nothing is left over.
#[test]
fn answers_in_pieces_are_answers() {
    play("long", "", CALM, |stage| async move {
        stage.serve(AGENT, |mut peer, _| async move {
            while let Ok((kind, stream, _)) = next(&mut peer).await {
                let bytes = if kind == kind::NOTIFY { ack(stream) } else { hello(b"pipelining") };
                let _ = peer.send_slowly(&bytes, 1, Duration::from_millis(1)).await;
            }
        });
        is(ask(&stage, "x").await, "1", "");
        is(ask(&stage, "x").await, "3", "");
    });
}
