//! Every timeout, and what an operator sees of it.

use std::time::Duration;

use worlds::{
    ALL, Answer, CALM, Climate, End, Peer, QUIET, Stage, content, explore, get, post, response, within,
};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

/// Whether something took as long as it should: exactly so in a quiet world, and not less in any.
fn took(stage: &Stage, since: Duration, seconds: f64) {
    let took = (stage.elapsed() - since).as_secs_f64();
    let slack = if stage.climate.is_quiet() { 0.05 } else { 60.0 };
    assert!((seconds - 0.001..seconds + slack).contains(&took), "took {took} s instead of {seconds} s");
}

#[test]
fn a_request_head_that_does_not_come_is_408() {
    explore(
        "  timeout http-request 3s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            let mut client = stage.client(FRONT).await;
            client.send(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
            let answer = client.response().await;
            took(&stage, Duration::ZERO, 3.0);
            assert_eq!(answer.status(), 408);
            assert!(answer.closes());
            assert_eq!(client.rest().await.1, End::Closed);
            let line = stage.line().await;
            assert_eq!((&*line.server, &*line.status, &*line.term), ("p/<NOSRV>", "408", "cR--"));
            assert_eq!(stage.proxy("p").front.counters.sum(|c| &c.req_errors), 1);
        },
    );
}

#[test]
fn the_time_for_a_head_is_not_extended_by_its_bytes() {
    explore(
        "  timeout http-request 3s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            let mut client = stage.client(FRONT).await;
            let _ = client.send_slowly(b"GET / HTTP/1.1\r\n", 5, Duration::from_millis(700)).await;
            assert_eq!(client.response().await.status(), 408);
            took(&stage, Duration::ZERO, 3.0);
            assert_eq!(stage.line().await.term, "cR--");
        },
    );
}

#[test]
fn without_a_time_for_heads_only_silence_ends_one() {
    explore(
        "  timeout client 1s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        QUIET,
        |stage| async move {
            stage.origin(S);
            let mut client = stage.client(FRONT).await;
            let _ = client.send_slowly(&get("/3/30"), 5, Duration::from_millis(700)).await;
            assert_eq!(client.response().await.body, content(3, 30));
            assert!(stage.elapsed() > Duration::from_secs(2), "{:?}", stage.elapsed());
        },
    );
}

#[test]
fn the_time_for_a_head_does_not_excuse_silence() {
    explore(
        "  timeout client 1s\n  timeout http-request 5s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.response().await.status(), 408);
            took(&stage, Duration::ZERO, 1.0);
            assert_eq!(stage.line().await.term, "cR--");
        },
    );
}

#[test]
fn a_connection_that_says_nothing_is_408_but_null() {
    explore(
        "  timeout client 4s\n  option dontlognull\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.response().await.status(), 408);
            took(&stage, Duration::ZERO, 4.0);
            stage.ended(0).await;
        },
    );
}

#[test]
fn a_request_body_that_stops_is_400() {
    explore(
        "  timeout client 4s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.origin(S);
            let mut client = stage.client(FRONT).await;
            let request = post("/1/10", &content(1, 1000));
            client.send(&request[..request.len() - 100]).await.unwrap();
            assert_eq!(client.response().await.status(), 400);
            took(&stage, Duration::ZERO, 4.0);
            let line = stage.line().await;
            assert_eq!((&*line.server, &*line.status, &*line.term), ("p/s", "400", "cH--"));
            assert_eq!(stage.proxy("p").back.counters.sum(|c| &c.client_aborts), 1);
        },
    );
}

#[test]
fn a_client_that_reads_no_more_is_let_go() {
    explore(
        "  timeout client 4s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.origin(S);
            let client = stage.client(FRONT).await;
            client.send(&get("/1/1500000")).await.unwrap();
            let line = stage.line().await;
            assert_eq!((&*line.status, &*line.term), ("200", "cD--"));
            assert!(stage.elapsed() >= Duration::from_secs(4));
            drop(client);
        },
    );
}

#[test]
fn a_server_without_an_answer_is_504() {
    explore(
        "  timeout server 4s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.answer(S, |_, _| Answer::Stall(b"HTTP/1.1 200 OK\r\nx: ".to_vec()));
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&get("/")).await;
            took(&stage, Duration::ZERO, 4.0);
            assert_eq!(answer.status(), 504);
            let line = stage.line().await;
            assert_eq!((&*line.server, &*line.status, &*line.term), ("p/s", "504", "sH--"));
            assert_eq!(stage.server("p/s").counters.sum(|c| &c.resp_errors), 1);
        },
    );
}

#[test]
fn a_server_that_stops_in_the_body_is_noticed() {
    explore(
        "  timeout server 4s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.answer(S, |_, _| {
                let mut bytes = response(200, &content(1, 500));
                bytes.truncate(bytes.len() - 1);
                Answer::Stall(bytes)
            });
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&get("/")).await;
            took(&stage, Duration::ZERO, 4.0);
            assert_eq!((answer.status(), answer.body.len()), (200, 499));
            assert_ne!(answer.end, Some(End::Complete));
            let line = stage.line().await;
            assert_eq!((&*line.status, &*line.term), ("200", "sD--"));
            assert_eq!(stage.server("p/s").counters.sum(|c| &c.server_aborts), 1);
        },
    );
}

#[test]
fn a_server_that_goes_on_slowly_is_not_disturbed() {
    explore(
        "  timeout server 4s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.serve(S, |mut peer: Peer, _| async move {
                peer.request().await;
                let _ = peer.send_slowly(&response(200, &content(1, 100)), 30, Duration::from_secs(3)).await;
            });
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.ask(&get("/")).await.body, content(1, 100));
            drop(client);
            assert_eq!(stage.line().await.term, "----");
        },
    );
}

#[test]
fn a_server_that_does_not_accept_is_503() {
    let config = "  timeout connect 2s\n  retries 0\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";
    explore(config, CALM, |stage| async move {
        stage.link(S, |f| f.black_hole = 1.0);
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        let answer = client.ask(&get("/")).await;
        took(&stage, Duration::ZERO, 2.0);
        assert_eq!(answer.status(), 503);
        let line = stage.line().await;
        assert_eq!((&*line.server, &*line.status, &*line.term, &*line.retries), ("p/s", "503", "sC--", "0"));
        assert_eq!(stage.server("p/s").counters.sum(|c| &c.conn_errors), 1);
    });
}

#[test]
fn who_waits_in_the_queue_too_long_gets_503() {
    let config = "  timeout queue 3s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 maxconn 1";
    explore(config, CALM, |stage| async move {
        stage.answer(S, |_, _| Answer::Late(Duration::from_secs(15), response(200, b"late")));
        let mut first = stage.client(FRONT).await;
        first.send(&get("/first")).await.unwrap();
        // The first one has its place before the second asks.
        rt::sleep(Duration::from_secs(5)).await;
        let mut second = stage.client(FRONT).await;
        let asked = stage.elapsed();
        let refused = second.ask(&get("/second")).await;
        took(&stage, asked, 3.0);
        assert_eq!(refused.status(), 503);
        assert_eq!(first.response().await.body, b"late");
        drop((first, second));
        let lines = stage.ended(2).await;
        assert_eq!((&*lines[0].status, &*lines[0].term, &*lines[0].queues), ("503", "sQ--", "0/1"));
        assert_eq!((&*lines[1].status, &*lines[1].term), ("200", "----"));
        assert_eq!(stage.proxy("p").back.queued_max.load(std::sync::atomic::Ordering::Relaxed), 1);
    });
}

#[test]
fn an_idle_client_is_closed_without_a_word() {
    explore(
        "  timeout http-keep-alive 2s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            stage.origin(S);
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.ask(&get("/1/1")).await.status(), 200);
            let answered = stage.elapsed();
            assert_eq!(client.rest().await, (Vec::new(), End::Closed));
            if stage.climate.is_quiet() {
                took(&stage, answered, 2.0);
            }
            assert_eq!(stage.line().await.term, "----");
        },
    );
}

#[test]
fn the_time_of_an_idle_client_begins_anew_with_each_response() {
    explore(
        "  timeout http-keep-alive 2s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        &[Climate::Quiet],
        |stage| async move {
            stage.origin(S);
            let mut client = stage.client(FRONT).await;
            for id in 0..5 {
                assert_eq!(client.ask(&get(&format!("/{id}/9"))).await.body, content(id, 9));
                rt::sleep(Duration::from_millis(1900)).await;
            }
            drop(client);
            stage.ended(5).await;
        },
    );
}

#[test]
fn a_tarpit_answers_late() {
    let config = "  timeout tarpit 6s\nlisten p\n bind 127.0.0.1:80\n http-request tarpit if TRUE\n server s 127.0.1.1:80";
    explore(config, CALM, |stage| async move {
        let mut client = stage.client(FRONT).await;
        let answer = client.ask(&get("/")).await;
        took(&stage, Duration::ZERO, 6.0);
        assert_eq!(answer.status(), 500);
        let line = stage.line().await;
        assert_eq!((&*line.status, &*line.term), ("500", "PT--"));
        assert_eq!(stage.proxy("p").front.counters.sum(|c| &c.denied_req), 1);
    });
}

#[test]
fn nothing_takes_longer_than_its_timeouts_even_where_all_breaks() {
    let config = "  timeout client 3s\n  timeout server 3s\n  timeout connect 1s\n  timeout queue 2s\n  retries 2\n\
                  listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 maxconn 2";
    explore(config, ALL, |stage| async move {
        stage.answer(S, |_, n| match n % 3 {
            0 => Answer::Stall(Vec::new()),
            1 => Answer::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab".to_vec()),
            _ => Answer::Bytes(response(200, b"abcde")),
        });
        let clients = (0..6).map(|_| {
            worlds::spawn(async {
                let Ok(mut client) = Peer::connect(&worlds::addr(FRONT)).await else { return };
                let limit = Duration::from_secs(60);
                within(limit, client.ask(&get("/"))).await.expect("an answer, or the end");
            })
        });
        worlds::all(clients).await;
    });
}
