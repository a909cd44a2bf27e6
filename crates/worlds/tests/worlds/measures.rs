//! How much and how many: rates, hashes that keep their servers, windows, pipes.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use wire::h2::{Connection, Limits, Role};
use wire::head::Head;
use wire::http1::parse_request;
use worlds::{Answer, QUIET, all, chunked, content, explore, get, label, response, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

/// A burst of connections, all accepted before the first of them is looked at, is within the rate as well.
#[test]
fn a_burst_of_sessions_is_within_their_rate() {
    const RATE: &str = "listen p\n bind 127.0.0.1:80\n rate-limit sessions 5\n server s 127.0.1.1:80";
    explore(RATE, QUIET, |stage| async move {
        stage.origin(S);
        let served: Rc<Cell<u32>> = Rc::default();
        let jobs: Vec<_> = (0..30u64)
            .map(|id| {
                let (stage, served) = (stage.clone(), served.clone());
                spawn(async move {
                    let mut client = stage.client(FRONT).await;
                    assert_eq!(client.ask(&get(&format!("/{id}/9"))).await.status(), 200);
                    served.set(served.get() + 1);
                })
            })
            .collect();
        // Nothing can be accepted for a while, so that they come all at once.
        rt::yield_now().await;
        stage.link(FRONT, |f| f.no_descriptors = 1.0);
        rt::sleep(Duration::from_secs(2)).await;
        stage.link(FRONT, |f| f.no_descriptors = 0.0);
        rt::sleep(Duration::from_millis(900)).await;
        assert!((1..=5).contains(&served.get()), "{} sessions in the first second", served.get());
        all(jobs).await;
    });
}

/// Requests of one key wait for their server though another one is free.
#[test]
fn a_hash_waits_for_its_server() {
    const HASH: &str = "listen p\n bind 127.0.0.1:80\n balance hash path\n hash-type consistent\n hash-preserve-affinity always\n \
                        http-response set-header x-server %s\n server s 127.0.1.1:80 maxconn 1\n server t 127.0.1.1:80 maxconn 1";
    explore(HASH, QUIET, |stage| async move {
        stage.answer(S, |_, _| Answer::Late(Duration::from_secs(1), response(200, b"x")));
        let jobs: Vec<_> = (0..4)
            .map(|_| {
                let stage = stage.clone();
                spawn(async move {
                    let mut client = stage.client(FRONT).await;
                    client.ask(&get("/same")).await.field("x-server").unwrap_or_default().to_owned()
                })
            })
            .collect();
        let mut servers: Vec<String> = all(jobs).await;
        servers.dedup();
        assert_eq!(servers.len(), 1, "{servers:?}");
        assert!(stage.elapsed() >= Duration::from_secs(4), "one after the other");
    });
}

/// What a client may send is what somebody takes: a server that reads nothing stops it, at the latest when
/// `tune.h2.fe.rxbuf` is full.
#[test]
fn a_window_opens_only_as_the_server_takes_what_came() {
    const STALLED: &str = "listen p\n bind 127.0.0.1:80 proto h2\n timeout server 60s\n timeout client 60s\n server s 127.0.1.1:80";
    explore(STALLED, QUIET, |stage| async move {
        stage.serve(S, |peer, _| async move {
            rt::sleep(Duration::from_secs(20)).await;
            drop(peer);
        });
        let mut peer = stage.client(FRONT).await;
        let (mut out, mut head) = (Vec::new(), Head::request());
        let mut connection = Connection::new(Role::Client, Limits::default(), &mut out);
        let text = b"POST /1/1 HTTP/1.1\r\nhost: w\r\ncontent-length: 4000000\r\n\r\n";
        parse_request(text, &mut head, &Default::default(), false).expect("a request");
        let outline = wire::h2::Outline { scheme: b"http", protocol: None };
        let stream = connection.open(&head, outline, false, &mut out).expect("room");
        let (mut sent, body) = (0, vec![b'x'; 16_384]);
        let limit = rt::now() + Duration::from_secs(10);
        while rt::now() < limit && sent < 3_900_000 {
            sent += connection.send(stream, &body, false, &mut out);
            if peer.send(&std::mem::take(&mut out)).await.is_err() {
                break;
            }
            let _ = worlds::within(Duration::from_millis(20), peer.more()).await;
            let input = std::mem::take(&mut peer.buf);
            let mut at = 0;
            while let Ok(received) = connection.receive(&input[at..], &mut head, &mut out) {
                at += received.consumed;
                if received.event.is_none() {
                    break;
                }
            }
            peer.buf.extend_from_slice(&input[at..]);
        }
        assert!(sent < 2_000_000, "{sent} bytes were taken for a server that reads nothing");
    });
}

/// Long chunks go through pipes, and are counted.
#[test]
fn long_chunks_go_through_pipes() {
    const SPLICED: &str = "listen p\n bind 127.0.0.1:80\n option splice-response\n server s 127.0.1.1:80";
    explore(SPLICED, QUIET, |stage| async move {
        let body = content(3, 1_000_000);
        let head = format!("HTTP/1.1 200 OK\r\n{}transfer-encoding: chunked\r\n\r\n", label(&body));
        let answer = [head.into_bytes(), chunked(&body, 300_000)].concat();
        stage.answer(S, move |_, _| Answer::Bytes(answer.clone()));
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.body, body);
        drop(client);
        stage.quiet().await;
        let spliced = stage.proxy("p").back.counters.sum(|c| &c.spliced_in);
        assert!(spliced > 300_000, "{spliced} bytes went through pipes");
    });
}
