//! Filters that change what passes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lang::Registry;
use lang::action::{Exec, Extension, Flow, Need, Reply};
use lang::env::Side;
use lang::filter::{Broken, Data, Filter, Maker, Moment, Moved, Rewriter};
use lang::registry::FilterDef;
use wire::head::Head;
use worlds::{
    ALL, Answer, CALM, Climate, Peer, QUIET, Setup, Stage, content, explore, explore_with, get, post_chunked,
};

use crate::upper;

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

const FILTERS: &[FilterDef] = &[
    FilterDef {
        name: "twice",
        tag: "TEST",
        parse: |_, _, _, _| Ok(Arc::new(Twice)),
        doc: "Each byte twice, the last of them only when no more is at hand.",
        example: "twice",
    },
    FilterDef {
        name: "broken",
        tag: "TEST",
        parse: |_, _, _, _| Ok(Arc::new(Fails)),
        doc: "Fails behind the first piece.",
        example: "broken",
    },
    FilterDef {
        name: "waits",
        tag: "TEST",
        parse: |_, _, _, _| Ok(Arc::new(Waits)),
        doc: "Waits 300 ms at each moment, and refuses what asks for /no.",
        example: "waits",
    },
];

/// `filter twice`.
struct Twice;

impl Maker for Twice {
    fn begin(&self, _: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        Some(Box::new(Twice))
    }
}

impl Filter for Twice {
    fn data(&mut self, _: Side) -> Option<Data> {
        Some(Data::Rewriter(Box::<Doubling>::default()))
    }
}

/// Holds some bytes back.
#[derive(Default)]
struct Doubling(Vec<u8>);

impl Doubling {
    fn give(&mut self, room: &mut [u8]) -> (usize, bool) {
        let n = self.0.len().min(room.len() / 2);
        for (pair, byte) in room.chunks_exact_mut(2).zip(self.0.drain(..n)) {
            pair.fill(byte);
        }
        (n * 2, self.0.is_empty())
    }
}

impl Rewriter for Doubling {
    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
        payload: &[u8],
        room: &mut [u8],
    ) -> Poll<Result<Moved, Broken>> {
        let taken = payload.len().min(100);
        self.0.extend_from_slice(&payload[..taken]);
        let made = if self.0.len() > 1000 { self.give(room).0 } else { 0 };
        Poll::Ready(Ok(Moved { taken, made }))
    }

    fn poll_pause(&mut self, _: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        Poll::Ready(Ok(self.give(room)))
    }

    fn poll_end(&mut self, _: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        Poll::Ready(Ok(self.give(room)))
    }

    fn trailers(&mut self, trailers: &mut Head) {
        let _ = trailers.append(b"x-twice", b"yes");
    }
}

/// `filter broken`.
struct Fails;

impl Maker for Fails {
    fn begin(&self, _: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        Some(Box::new(Fails))
    }
}

impl Filter for Fails {
    fn data(&mut self, side: Side) -> Option<Data> {
        (side == Side::Response).then(|| Data::Rewriter(Box::new(Fails)))
    }
}

impl Rewriter for Fails {
    fn poll_data(&mut self, _: &mut Context<'_>, _: &[u8], _: &mut [u8]) -> Poll<Result<Moved, Broken>> {
        Poll::Ready(Err(Broken))
    }
}

/// `filter waits`.
struct Waits;

thread_local! {
    static OVER: Cell<u32> = const { Cell::new(0) };
}

impl Maker for Waits {
    fn begin(&self, _: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        Some(Box::new(Waits))
    }
}

impl Filter for Waits {
    fn meet(&mut self, moment: Moment, exec: &mut Exec<'_>) -> Flow {
        if exec.resumed.take().is_none() {
            return Flow::Yield(Need::Extension(Extension::new(|_| {
                Box::pin(async {
                    rt::sleep(Duration::from_millis(300)).await;
                    Box::new(()) as Box<dyn std::any::Any>
                })
            })));
        }
        match moment {
            Moment::Rules if exec.txn.req.target() == b"/no" => Flow::Deny(Reply::error(403)),
            Moment::ResponseHead => {
                let _ = exec.txn.res.append(b"x-waited", b"yes");
                Flow::Next
            }
            _ => Flow::Next,
        }
    }

    fn over(&mut self, _: &mut Exec<'_>) {
        OVER.set(OVER.get() + 1);
    }
}

fn extend(registry: &mut Registry) {
    registry.add_filters(FILTERS);
    registry.add_filters(upper::FILTERS);
}

fn play<F>(filters: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let config = format!("listen p\n bind {FRONT}\n {filters}\n server s {S}");
    explore_with(|| Setup::extended(&config, extend).unwrap_or_else(|why| panic!("{why}")), climates, scene);
}

/// A message whose body nobody expects to arrive as it is: without the label that the harness checks.
fn whole(start: &str, body: &[u8]) -> Vec<u8> {
    [format!("{start}\r\nhost: h\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// The same in chunks.
fn chunks(start: &str, body: &[u8], size: usize) -> Vec<u8> {
    let mut out = format!("{start}\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
    for piece in body.chunks(size) {
        out.extend_from_slice(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

const OK: &str = "HTTP/1.1 200 OK";

fn doubled(body: &[u8]) -> Vec<u8> {
    body.iter().flat_map(|byte| [*byte, *byte]).collect()
}

#[test]
fn the_example_writes_bodies_in_capital_letters() {
    play("filter upper", ALL, |stage| async move {
        stage.answer(S, |request, _| {
            let text = request.body.to_ascii_lowercase();
            Answer::Bytes(match request.target() {
                "/chunks" => chunks(OK, &text, 7),
                _ => whole(OK, &text),
            })
        });
        let text: Vec<u8> = (0..4_000u32).flat_map(|n| n.to_string().into_bytes()).chain(*b"abc").collect();
        for target in ["/whole", "/chunks"] {
            let start = format!("POST {target} HTTP/1.1");
            for request in [whole(&start, &text), chunks(&start, &text, 1000)] {
                let Some(mut client) = stage.refusable(FRONT).await else { continue };
                let answer = client.ask(&request).await;
                if answer.is_whole() && answer.status() == 200 {
                    assert_eq!(answer.body, text.to_ascii_uppercase(), "{target}");
                }
            }
        }
    });
}

#[test]
fn what_changes_its_length_goes_in_chunks() {
    play("filter twice", CALM, |stage| async move {
        stage.answer(S, |request, _| {
            assert_eq!(request.field("content-length"), None);
            assert_eq!(request.field("transfer-encoding"), Some("chunked"));
            Answer::Bytes(whole(OK, &request.body))
        });
        for body in [&b"x"[..], &content(3, 100_000)] {
            let start = "POST / HTTP/1.1";
            for request in [whole(start, body), chunks(start, body, 999)] {
                let mut client = stage.client(FRONT).await;
                let answer = client.ask(&request).await;
                assert_eq!(answer.field("content-length"), None);
                assert!(answer.is_whole());
                assert_eq!(answer.body, doubled(&doubled(body)));
            }
        }
    });
}

#[test]
fn filters_stand_in_a_row() {
    play(
        "filter twice\n filter upper\n filter trace quiet random-forwarding\n filter twice",
        CALM,
        |stage| async move {
            stage.answer(S, |request, _| Answer::Bytes(chunks(OK, &request.body, 300)));
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&whole("POST / HTTP/1.1", &[b'a'; 3000])).await;
            assert_eq!(answer.body, vec![b'A'; 48_000]);
        },
    );
}

#[test]
fn a_client_of_the_old_version_gets_no_chunks() {
    play("filter twice", QUIET, |stage| async move {
        stage.answer(S, |_, _| Answer::Bytes(whole(OK, b"hello")));
        let mut client = stage.client(FRONT).await;
        let answer = client.ask(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").await;
        assert_eq!((answer.field("transfer-encoding"), answer.field("content-length")), (None, None));
        assert_eq!(answer.body, b"hheelllloo");
        assert!(!answer.closes() || answer.end.is_some());
    });
}

/// What a packer holds back goes when the sender makes a pause.
#[test]
fn nothing_waits_for_more_that_does_not_come() {
    play("filter twice", QUIET, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            peer.request().await;
            let _ = peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
            rt::sleep(Duration::from_secs(5)).await;
            let _ = peer.send(b"0\r\nx-end: 1\r\n\r\n").await;
            peer.rest().await;
        });
        let mut client = stage.client(FRONT).await;
        let _ = client.send(&get("/")).await;
        let came = client
            .take(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhheelllloo\r\n".len())
            .await;
        assert!(came.ends_with(b"hheelllloo\r\n"), "{}", String::from_utf8_lossy(&came));
        assert!(stage.elapsed() < Duration::from_secs(1));
        let end = client.take(b"0\r\nx-end: 1\r\nx-twice: yes\r\n\r\n".len()).await;
        assert_eq!(String::from_utf8_lossy(&end), "0\r\nx-end: 1\r\nx-twice: yes\r\n\r\n");
    });
}

#[test]
fn a_filter_that_fails_breaks_the_message_off() {
    play("filter broken", QUIET, |stage| async move {
        stage.answer(S, |_, _| Answer::Bytes(whole(OK, b"hello")));
        let mut client = stage.client(FRONT).await;
        let answer = client.ask(&get("/")).await;
        assert!(!answer.is_whole());
        assert_eq!(stage.ended(1).await.len(), 1);
    });
}

#[test]
fn filters_wait_refuse_and_change_heads() {
    play("filter waits", QUIET, |stage| async move {
        OVER.set(0);
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        let answer = client.ask(&get("/1/9")).await;
        assert_eq!((answer.status(), answer.field("x-waited")), (200, Some("yes")));
        // Seven moments.
        assert_eq!(stage.elapsed().as_millis() / 100, 21);
        assert_eq!(OVER.get(), 1);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/no")).await.status(), 403);
        assert_eq!(OVER.get(), 2);
    });
}

#[test]
fn a_stream_of_tcp_passes_filters_too() {
    play("mode tcp\n filter upper\n filter twice", CALM, |stage| async move {
        stage.serve(S, |mut peer: Peer, _| async move {
            let (text, _) = peer.rest().await;
            let _ = peer.send(&text.to_ascii_lowercase()).await;
        });
        let mut client = stage.client(FRONT).await;
        let _ = client.send(b"hello").await;
        client.finish();
        assert_eq!(client.rest().await.0, doubled(&doubled(b"HELLO")));
    });
}

/// Trailers that come in pieces pass a filter as they are.
#[test]
fn trailers_in_pieces_pass_filters_whole() {
    let config = format!(
        "listen p\n bind {FRONT}\n filter bwlim-in x default-limit 100m default-period 1s\n \
         http-request set-bandwidth-limit x\n server s {S}"
    );
    explore(&config, CALM, |stage| async move {
        stage.origin(S);
        for _ in 0..9 {
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&post_chunked("/3/10", &content(3, 1001), 100)).await;
            assert_eq!(answer.status(), 200);
        }
    });
}
