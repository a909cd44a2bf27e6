//! Bodies of requests and responses, cut anywhere.

use std::time::Duration;

use worlds::{Answer, CALM, Climate, End, Peer, all, chunked, content, explore, get, post, response, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const PLAIN: &str = "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";

#[test]
fn every_framing_both_ways_whole() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        for (n, size) in [0, 1, 6, 7, 8, 1000, 16_300, 16_384, 40_000].into_iter().enumerate() {
            let id = n as u64;
            let upload = content(id, size);
            let head = format!(
                "POST /{id}/{size}?chunked HTTP/1.1\r\nhost: w\r\ntransfer-encoding: chunked\r\n\r\n"
            );
            let request = [head.as_bytes(), &chunked(&upload, 1 + size / 3)].concat();
            assert_eq!(client.ask(&request).await.body, upload, "chunks of {size}");
            let answer = client.ask(&post(&format!("/{id}/{size}"), &upload)).await;
            assert_eq!(answer.body, upload, "length {size}");
        }
        let answer = client.ask(&get("/77/5000?close")).await;
        assert_eq!((answer.body, answer.end), (content(77, 5000), Some(End::Complete)));
        stage.ended(19).await;
    });
}

#[test]
fn a_chunked_response_cut_anywhere_is_never_called_whole() {
    let bytes =
        [&b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..], &chunked(&content(9, 40), 16)]
            .concat();
    let bytes: &'static [u8] = bytes.leak();
    explore(PLAIN, CALM, move |stage| async move {
        stage.answer(S, move |request, _| {
            let cut: usize = request.target()[1..].parse().unwrap();
            Answer::Close(bytes[..cut].to_vec())
        });
        let jobs = (0..=bytes.len()).map(|cut| {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                let answer = client.ask(&get(&format!("/{cut}"))).await;
                let head = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
                if cut < head {
                    assert_eq!(answer.status(), 502, "cut at {cut}");
                } else {
                    assert_eq!(answer.is_whole(), cut == bytes.len(), "cut at {cut}");
                    assert!(content(9, 40).starts_with(&answer.body));
                }
            })
        });
        all(jobs).await;
        let lines = stage.ended(bytes.len() + 1).await;
        let count = |term: &str| lines.iter().filter(|l| l.term == term).count();
        assert_eq!(count("----"), 1);
        // Nothing at all, a piece of a head, a piece of a body.
        assert_eq!(count("SH--"), 1);
        assert_eq!(count("PH--") + count("SD--"), bytes.len() - 1);
        assert_eq!(stage.server("p/s").counters.sum(|c| &c.server_aborts) as usize, count("SD--"));
    });
}

#[test]
fn a_response_with_a_length_cut_anywhere_is_never_called_whole() {
    let bytes: &'static [u8] = response(200, &content(9, 30)).leak();
    explore(PLAIN, CALM, move |stage| async move {
        stage.answer(S, move |request, _| {
            let (how, cut) = request.target()[1..].split_once('/').unwrap();
            let part = bytes[..cut.parse().unwrap()].to_vec();
            if how == "reset" { Answer::Reset(part) } else { Answer::Close(part) }
        });
        let jobs = (0..bytes.len() * 2).map(|n| {
            let stage = stage.clone();
            spawn(async move {
                let cut = n / 2;
                let target = format!("/{}/{cut}", ["close", "reset"][n % 2]);
                let mut client = stage.client(FRONT).await;
                let answer = client.ask(&get(&target)).await;
                // A reset may overtake what was sent before it, in the engine's socket.
                assert!(answer.status() == 502 || answer.status() == 200, "{target}: {answer:?}");
                assert!(answer.status() == 502 || !answer.is_whole(), "{target}: {answer:?}");
                assert!(answer.status() == 502 || content(9, 30).starts_with(&answer.body));
            })
        });
        all(jobs).await;
        let lines = stage.ended(bytes.len() * 2).await;
        assert!(lines.iter().all(|l| ["SH", "PH", "SD"].contains(&l.state())), "{lines:#?}");
    });
}

#[test]
fn broken_chunks_of_a_server_are_its_fault() {
    for junk in ["5\r\nabcdeXX", "zz\r\n", "\r\n", "-1\r\n", "ffffffffffffffff1\r\n", "3\nabc\n"] {
        explore(PLAIN, CALM, move |stage| async move {
            stage.answer(S, move |_, _| {
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
                Answer::Stall(format!("{head}{junk}").into_bytes())
            });
            let mut client = stage.client(FRONT).await;
            client.send(&get("/")).await.unwrap();
            let (heard, _) = client.rest().await;
            assert!(!heard.ends_with(b"0\r\n\r\n"), "{junk:?}");
            let line = stage.line().await;
            assert!(["PD", "PH"].contains(&line.state()), "{junk:?}: {}", line.text);
        });
    }
}

#[test]
fn broken_chunks_of_a_client_are_refused() {
    for junk in ["5\r\nabcdeXX", "zz\r\n", "-1\r\n", "3\nabc\n"] {
        explore(PLAIN, CALM, move |stage| async move {
            stage.serve(S, |mut peer: Peer, _| async move {
                let request = peer.request().await;
                assert!(!request.is_whole());
            });
            let mut client = stage.client(FRONT).await;
            let head = "POST / HTTP/1.1\r\nhost: w\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
            let answer = client.ask(format!("{head}{junk}").as_bytes()).await;
            // Without a word where the request was passed on already.
            assert!(matches!(answer.status(), 0 | 400), "{junk:?}: {}", answer.status());
            drop(client);
            let line = stage.line().await;
            assert!(["PD", "PH", "PR"].contains(&line.state()), "{junk:?}: {}", line.text);
            assert_eq!(stage.proxy("p").front.counters.sum(|c| &c.req_errors), 1);
        });
    }
}

#[test]
fn an_answer_before_the_end_of_the_upload_arrives() {
    explore(PLAIN, CALM, |stage| async move {
        // Reads the head only, answers, and closes with most of the body unread.
        stage.serve(S, |mut peer, _| async move {
            while !peer.buf.windows(4).any(|w| w == b"\r\n\r\n") {
                if peer.more().await.is_err() {
                    return;
                }
            }
            let _ = peer.send(&response(413, b"too much")).await;
            peer.finish();
            // What still comes is thrown away, else the answer could be lost on the way.
            peer.rest().await;
        });
        let mut client = stage.client(FRONT).await;
        let head = b"POST /1/1 HTTP/1.1\r\nhost: w\r\ncontent-length: 400000\r\n\r\n";
        client.send(head).await.unwrap();
        client.send(&content(1, 3000)).await.unwrap();
        let answer = client.response().await;
        assert_eq!((answer.status(), &*answer.body), (413, &b"too much"[..]));
        drop(client);
        let line = stage.line().await;
        assert_eq!(line.status, "413");
    });
}

#[test]
fn who_asks_for_100_gets_it_from_the_server() {
    explore(PLAIN, CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            while !peer.buf.ends_with(b"\r\n\r\n") {
                if peer.more().await.is_err() {
                    return;
                }
            }
            rt::sleep(Duration::from_secs(1)).await;
            let _ = peer.send(b"HTTP/1.1 100 Continue\r\n\r\n").await;
            let request = peer.request().await;
            assert_eq!(request.body, content(4, 500));
            let _ = peer.send(&response(200, b"thanks")).await;
        });
        let mut client = stage.client(FRONT).await;
        let head = b"POST /4/1 HTTP/1.1\r\nhost: w\r\nexpect: 100-continue\r\ncontent-length: 500\r\n\r\n";
        client.send(head).await.unwrap();
        assert_eq!(client.any_response().await.status(), 100);
        client.send(&content(4, 500)).await.unwrap();
        assert_eq!(client.any_response().await.body, b"thanks");
        drop(client);
        let line = stage.line().await;
        assert_eq!((&*line.status, &*line.term), ("200", "----"));
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    explore(PLAIN, CALM, |stage| async move {
        stage.answer(S, |request, _| {
            let body = request.target().as_bytes().to_vec();
            Answer::Late(Duration::from_millis(rt::random() % 300), response(200, &body))
        });
        let mut client = stage.client(FRONT).await;
        let mut all_at_once = Vec::new();
        for n in 0..10 {
            let target = format!("/{n}");
            all_at_once.extend(if n % 3 == 1 { post(&target, &content(n, 700)) } else { get(&target) });
        }
        client.send(&all_at_once).await.unwrap();
        for n in 0..10 {
            assert_eq!(client.response().await.body, format!("/{n}").as_bytes());
        }
        drop(client);
        stage.ended(10).await;
    });
}

#[test]
fn requests_in_single_bytes_are_requests() {
    explore(PLAIN, &[Climate::Quiet], |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        let request = post("/3/20", &content(3, 20));
        client.send_slowly(&request, 1, Duration::from_millis(10)).await.unwrap();
        assert_eq!(client.response().await.body, content(3, 20));
        drop(client);
        assert_eq!(stage.line().await.term, "----");
    });
}

#[test]
fn a_client_that_half_closes_after_its_request_is_answered() {
    let config = "  no option abortonclose\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";
    explore(config, CALM, |stage| async move {
        stage.answer(S, |_, _| Answer::Late(Duration::from_secs(2), response(200, b"late")));
        let mut client = stage.client(FRONT).await;
        client.send(&get("/")).await.unwrap();
        client.finish();
        assert_eq!(client.response().await.body, b"late");
        assert_eq!(client.rest().await.1, End::Closed);
        assert_eq!(stage.line().await.term, "----");
    });
}
