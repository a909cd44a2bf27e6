//! Clients that go away, at every byte of an exchange.

use std::rc::Rc;
use std::time::Duration;

use worlds::{ALL, Answer, CALM, Stage, all, chunked, content, explore, get, post, response, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const PLAIN: &str = "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";

/// Clients that send `request` up to each of its bytes and then end in every way.
async fn abort_everywhere(stage: &Rc<Stage>, request: &'static [u8]) {
    let jobs = (0..request.len() * 3).map(|n| {
        let stage = stage.clone();
        spawn(async move {
            let mut client = stage.client(FRONT).await;
            let _ = client.send(&request[..n / 3]).await;
            match n % 3 {
                0 => drop(client),
                1 => client.reset(),
                _ => {
                    client.finish();
                    let answer = client.response().await;
                    assert!([0, 400].contains(&answer.status()), "cut at {}: {answer:?}", n / 3);
                }
            }
        })
    });
    all(jobs).await;
}

#[test]
fn a_request_head_cut_anywhere() {
    let request: &'static [u8] = get("/1/10").leak();
    explore(PLAIN, CALM, move |stage| async move {
        stage.answer(S, |_, _| panic!("half a request must not get here"));
        abort_everywhere(&stage, request).await;
        let lines = stage.ended(request.len() * 3).await;
        assert!(lines.iter().all(|l| l.term == "CR--" && l.server == "p/<NOSRV>"), "{lines:#?}");
    });
}

#[test]
fn a_request_body_cut_anywhere() {
    let body = chunked(&content(1, 20), 8);
    let head = b"POST /1/5 HTTP/1.1\r\nhost: w\r\ntransfer-encoding: chunked\r\n\r\n";
    let request: &'static [u8] = [&head[..], &body].concat().leak();
    explore(PLAIN, CALM, move |stage| async move {
        stage.answer(S, |_, _| panic!("half a request must not get here"));
        abort_everywhere(&stage, request).await;
        let lines = stage.ended(request.len() * 3).await;
        assert!(lines.iter().all(|l| ["CR", "CD", "CH", "CC"].contains(&l.state())), "{lines:#?}");
        let request: &'static [u8] = post("/1/5", &content(1, 20)).leak();
        abort_everywhere(&stage, request).await;
    });
}

#[test]
fn a_client_that_goes_at_any_byte_of_the_response() {
    explore(PLAIN, CALM, move |stage| async move {
        stage.origin(S);
        let jobs = (0..84usize).map(|n| {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                client.send(&get(&format!("/{n}/40{}", ["", "?chunked"][n % 2]))).await.unwrap();
                client.take(n).await;
                if n.is_multiple_of(3) { client.reset() } else { drop(client) }
            })
        });
        all(jobs).await;
        let lines = stage.ended(84).await;
        assert!(lines.iter().all(|l| ["--", "CD", "CH", "CC", "CR"].contains(&l.state())), "{lines:#?}");
        // One whose connection broke before there was a response counts twice, as in HAProxy: the connection,
        // the request.
        let aborts = |l: &&worlds::Line| if l.status == "400" && l.state() == "CD" { 2 } else { 1 };
        // Who leaves before there is a connection cuts nothing off.
        let cut = |l: &&worlds::Line| l.state().starts_with('C') && l.state() != "CC" && l.server == "p/s";
        let at_server = lines.iter().filter(cut);
        let aborts: u64 = at_server.map(|l| aborts(&l)).sum();
        assert_eq!(stage.proxy("p").back.counters.sum(|c| &c.client_aborts), aborts);
    });
}

#[test]
fn a_client_that_goes_while_it_waits_is_noticed_with_abortonclose() {
    explore(
        "  option abortonclose\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.serve(S, |mut peer, _| async move {
                peer.request().await;
                // The engine tells the server, which need not wait for its work to be done.
                peer.rest().await;
            });
            let client = stage.client(FRONT).await;
            client.send(&get("/")).await.unwrap();
            rt::sleep(Duration::from_secs(1)).await;
            drop(client);
            let line = stage.line().await;
            assert_eq!(line.state(), "CH", "{}", line.text);
            assert!(stage.elapsed() < Duration::from_secs(5), "{:?}", stage.elapsed());
        },
    );
}

#[test]
fn a_client_that_goes_while_it_waits_without_it_costs_nothing_else() {
    explore(
        "  no option abortonclose\n  timeout server 6s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.answer(S, |_, _| Answer::Late(Duration::from_secs(3), response(200, b"nobody reads this")));
            let client = stage.client(FRONT).await;
            client.send(&get("/")).await.unwrap();
            rt::sleep(Duration::from_secs(1)).await;
            client.reset();
            let line = stage.line().await;
            // A reset is no half-close: it ends the request in any case.
            assert_eq!((line.state(), &*line.status), ("CD", "400"), "{}", line.text);
            assert!(stage.elapsed() < Duration::from_secs(2));
        },
    );
}

/// Everything at once: clients, servers and the network do as they please.
#[test]
fn whatever_happens_no_byte_is_wrong_and_nothing_is_left() {
    let config = "  timeout client 3s\n  timeout server 3s\n  timeout connect 1s\n  timeout queue 2s\n  retries 2\n  \
                  option redispatch 1\nlisten p\n bind 127.0.0.1:80\n http-reuse aggressive\n \
                  retry-on empty-response junk-response response-timeout conn-failure 503\n \
                  server s 127.0.1.1:80 maxconn 4\n server t 127.0.1.2:80";
    explore(config, ALL, |stage| async move {
        for at in [S, "127.0.1.2:80"] {
            stage.answer(at, |request, _| wild(request));
        }
        all((0..20u64).map(|id| spawn(wild_client(id)))).await;
    });
}

/// A server that fails in some way every other time.
fn wild(request: &worlds::Message) -> Answer {
    let id: u64 = request.target()[1..].parse().unwrap_or(0);
    let whole = response(200, &content(id, 1500));
    let cut = (rt::random() % whole.len() as u64) as usize;
    match rt::random() % 12 {
        0 => Answer::Close(whole[..cut].to_vec()),
        1 => Answer::Reset(whole[..cut].to_vec()),
        2 => Answer::Stall(whole[..cut].to_vec()),
        3 => Answer::Stall(b"\x00\x01\x02garbage\r\n\r\n".to_vec()),
        4 => Answer::Bytes(response(503, b"busy")),
        5 => Answer::Close(whole),
        6 => Answer::Late(Duration::from_millis(rt::random() % 4000), whole),
        _ => Answer::Bytes(whole),
    }
}

async fn wild_client(id: u64) {
    let Ok(mut client) = worlds::Peer::connect(&worlds::addr(FRONT)).await else { return };
    for _ in 0..3 {
        let body = content(id, (rt::random() % 5000) as usize);
        let request = if rt::random().is_multiple_of(2) {
            get(&format!("/{id}"))
        } else {
            post(&format!("/{id}"), &body)
        };
        let cut = (rt::random() % request.len() as u64) as usize;
        match rt::random() % 8 {
            0 => return drop(client.send(&request[..cut]).await),
            1 => {
                let _ = client.send(&request[..cut]).await;
                return client.reset();
            }
            2 => {
                let _ = client.send(&request).await;
                return client.finish();
            }
            _ => {}
        }
        let answer = client.ask(&request).await;
        assert!([0, 200, 400, 408, 502, 503, 504].contains(&answer.status()), "{answer:?}");
        if answer.status() == 200 {
            assert!(content(id, 1500).starts_with(&answer.body));
            assert!(!answer.is_whole() || answer.body.len() == 1500);
        }
        if !answer.is_whole() || answer.closes() {
            return;
        }
    }
}
