//! Failed connects, failed attempts, and where the next one goes.

use std::time::Duration;

use worlds::{Answer, CALM, QUIET, content, explore, get, post, post_chunked, response};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const T: &str = "127.0.1.2:80";

#[test]
fn a_refused_connect_is_tried_again_a_second_later() {
    explore("listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80", QUIET, |stage| async move {
        let mut client = stage.client(FRONT).await;
        let answer = client.ask(&get("/")).await;
        assert_eq!(answer.status(), 503);
        let seconds = stage.elapsed().as_secs_f64();
        assert!((3.0..3.1).contains(&seconds), "three retries, a second between them, took {seconds} s");
        let line = stage.line().await;
        assert_eq!((&*line.server, &*line.term, &*line.retries), ("p/s", "SC--", "3"));
        let counters = &stage.server("p/s").counters;
        // One request failed; its attempts are four connections.
        let count = |f: fn(&model::server::ServerCounters) -> &model::Counter| counters.sum(f);
        assert_eq!((count(|c| &c.conn_errors), count(|c| &c.retries), count(|c| &c.connects)), (1, 3, 4));
        assert_eq!(stage.proxy("p").back.counters.sum(|c| &c.redispatches), 0);
    });
}

#[test]
fn a_server_that_comes_back_in_time_is_reached() {
    explore("listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80", CALM, |stage| async move {
        let mut client = stage.client(FRONT).await;
        client.send(&get("/3/30")).await.unwrap();
        rt::sleep(Duration::from_millis(1500)).await;
        stage.origin(S);
        assert_eq!(client.response().await.body, content(3, 30));
        drop(client);
        let line = stage.line().await;
        assert_eq!((&*line.status, &*line.term), ("200", "----"));
        assert_ne!(line.retries, "0");
    });
}

#[test]
fn redispatch_leaves_a_server_that_the_request_is_bound_to_on_the_last_retry() {
    let config = "  option redispatch\nlisten p\n bind 127.0.0.1:80\n use-server s if TRUE\n\
                  server s 127.0.1.1:80\n server t 127.0.1.2:80";
    explore(config, CALM, |stage| async move {
        stage.origin(T);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/3/30")).await.body, content(3, 30));
        drop(client);
        let line = stage.line().await;
        assert_eq!((&*line.server, &*line.term, &*line.retries), ("p/t", "----", "+3"));
        let (s, t) = (stage.server("p/s"), stage.server("p/t"));
        // The request did not fail: it left.
        assert_eq!(s.counters.sum(|c| &c.conn_errors), 0);
        assert_eq!((s.counters.sum(|c| &c.retries), s.counters.sum(|c| &c.redispatches)), (2, 1));
        assert_eq!((t.counters.sum(|c| &c.sessions), t.counters.sum(|c| &c.conn_errors)), (1, 0));
    });
}

/// The first of two servers refuses: the second one answers at once, after one retry that was a change of
/// servers.
fn redispatched_at_once(option: &str) {
    let config = format!(
        "  {option}\nlisten p\n bind 127.0.0.1:80\n balance first\n server s 127.0.1.1:80\n server t 127.0.1.2:80"
    );
    explore(&config, QUIET, |stage| async move {
        stage.origin(T);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/3/30")).await.status(), 200);
        assert!(stage.elapsed() < Duration::from_millis(50), "{:?}", stage.elapsed());
        drop(client);
        assert_eq!(stage.line().await.retries, "+1");
        let s = stage.server("p/s");
        assert_eq!((s.counters.sum(|c| &c.retries), s.counters.sum(|c| &c.redispatches)), (0, 1));
    });
}

#[test]
fn redispatch_leaves_a_server_that_the_load_chose_at_once() {
    redispatched_at_once("option redispatch");
}

#[test]
fn redispatch_on_every_retry_takes_no_time() {
    redispatched_at_once("option redispatch 1");
}

#[test]
fn redispatch_leaves_a_black_hole_too() {
    let config = "  option redispatch 1\n  timeout connect 1s\nlisten p\n bind 127.0.0.1:80\n balance first\n\
                  server s 127.0.1.1:80\n server t 127.0.1.2:80";
    explore(config, CALM, |stage| async move {
        stage.link(S, |f| f.black_hole = 1.0);
        stage.origin(T);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/3/30")).await.body, content(3, 30));
        if stage.climate.is_quiet() {
            let seconds = stage.elapsed().as_secs_f64();
            assert!((1.0..1.05).contains(&seconds), "{seconds}");
        }
        drop(client);
        let line = stage.line().await;
        assert_eq!((&*line.server, &*line.term, &*line.retries), ("p/t", "----", "+1"));
    });
}

#[test]
fn all_servers_refusing_is_503() {
    let config = "  option redispatch 1\nlisten p\n bind 127.0.0.1:80\n\
                  server s 127.0.1.1:80\n server t 127.0.1.2:80";
    explore(config, CALM, |stage| async move {
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.status(), 503);
        drop(client);
        let line = stage.line().await;
        assert_eq!((&*line.status, &*line.term, &*line.retries), ("503", "SC--", "+3"));
        assert_eq!(stage.proxy("p").back.counters.sum(|c| &c.conn_errors), 1);
    });
}

#[test]
fn a_backend_without_a_usable_server_is_503_at_once() {
    explore("listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 disabled", CALM, |stage| async move {
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.status(), 503);
        let line = stage.line().await;
        assert_eq!((&*line.server, &*line.term), ("p/<NOSRV>", "SC--"));
    });
}

/// Servers whose first answer of all is `bad`.
fn once_bad(stage: &worlds::Stage, bad: Answer) {
    let left = std::rc::Rc::new(std::cell::Cell::new(1));
    for at in [S, T] {
        let (left, bad) = (left.clone(), bad.clone());
        stage.answer(at, move |_, _| {
            if left.replace(0) == 1 { bad.clone() } else { Answer::Bytes(response(200, b"good")) }
        });
    }
}

const RETRY: &str = "  option redispatch 1\n  timeout server 2s\nlisten p\n bind 127.0.0.1:80\n\
                     retry-on conn-failure empty-response junk-response response-timeout 503 425\n\
                     server s 127.0.1.1:80\n server t 127.0.1.2:80";

#[test]
fn retry_on_hides_every_kind_of_failure_it_names() {
    for bad in [
        Answer::Close(Vec::new()),
        Answer::Reset(Vec::new()),
        Answer::Close(b"HTTP/1.1 200 OK\r\nconte".to_vec()),
        Answer::Stall(b"\x16\x03\x01\r\n\r\n".to_vec()),
        Answer::Stall(Vec::new()),
        Answer::Bytes(response(503, b"busy")),
    ] {
        let bad: &'static Answer = Box::leak(Box::new(bad));
        explore(RETRY, CALM, move |stage| async move {
            once_bad(&stage, bad.clone());
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&get("/")).await;
            assert_eq!((answer.status(), &*answer.body), (200, &b"good"[..]), "after {bad:?}");
            drop(client);
            let line = stage.line().await;
            assert_eq!((&*line.status, &*line.term, &*line.retries), ("200", "----", "+1"), "after {bad:?}");
        });
    }
}

#[test]
fn without_retry_on_the_failure_is_the_clients() {
    for (bad, status, term) in [
        (Answer::Close(Vec::new()), 502, "SH--"),
        (Answer::Close(b"HTTP/1.1 200 OK\r\nconte".to_vec()), 502, "PH--"),
        (Answer::Stall(b"\x16\x03\x01\r\n\r\n".to_vec()), 502, "PH--"),
        (Answer::Bytes(response(503, b"busy")), 503, "----"),
    ] {
        let bad: &'static Answer = Box::leak(Box::new(bad));
        explore("listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80", CALM, move |stage| async move {
            stage.answer(S, move |_, _| bad.clone());
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.ask(&get("/")).await.status(), status, "{bad:?}");
            drop(client);
            let line = stage.line().await;
            assert_eq!((&*line.term, &*line.retries), (term, "0"), "{bad:?}");
        });
    }
}

#[test]
fn a_failure_that_lasts_ends_the_retries() {
    explore(RETRY, CALM, |stage| async move {
        stage.answer(S, |_, _| Answer::Close(Vec::new()));
        stage.answer(T, |_, _| Answer::Close(Vec::new()));
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.status(), 502);
        let _ = client.rest().await;
        let line = stage.line().await;
        assert_eq!((&*line.term, &*line.retries), ("SH--", "+3"));
        assert_eq!(stage.proxy("p").back.counters.sum(|c| &c.retries), 3);
    });
}

#[test]
fn a_body_that_was_sent_whole_goes_out_again() {
    explore(RETRY, CALM, |stage| async move {
        once_bad(&stage, Answer::Close(Vec::new()));
        let mut client = stage.client(FRONT).await;
        let answer = client.ask(&post("/5/5", &content(5, 300))).await;
        assert_eq!(answer.status(), 200);
        drop(client);
        assert_eq!(stage.line().await.retries, "+1");
    });
}

/// Extensions and trailers are taken out of a body as it is read, wherever the attempt broke off.
#[test]
fn a_body_in_chunks_goes_out_again_with_its_trailers() {
    for part in 0..20 {
        explore(RETRY, CALM, move |stage| async move {
            stage.serve(S, |mut peer, _| async move {
                let _ = peer.more().await;
                rt::sleep(Duration::from_millis(300)).await;
            });
            stage.origin(T);
            let mut client = stage.client(FRONT).await;
            let request = post_chunked("/5/5", &content(5, 300), 70);
            let cut = request.len() - part * 15;
            client.send(&request[..cut]).await.unwrap();
            rt::sleep(Duration::from_millis(500)).await;
            client.send(&request[cut..]).await.unwrap();
            let answer = client.response().await;
            assert_eq!(answer.status(), 200);
            drop(client);
            let line = stage.line().await;
            assert_eq!((&*line.server, &*line.retries), ("p/t", "+1"));
        });
    }
}

#[test]
fn a_client_that_resets_while_it_is_retried_ends_it() {
    let config = "  option abortonclose\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";
    explore(config, CALM, |stage| async move {
        let client = stage.client(FRONT).await;
        client.send(&get("/")).await.unwrap();
        rt::sleep(Duration::from_millis(1500)).await;
        client.reset();
        let line = stage.line().await;
        assert_eq!(line.state(), "CC", "{}", line.text);
        assert!(stage.elapsed() < Duration::from_secs(4));
    });
}

#[test]
fn retry_on_none_fails_at_once() {
    explore(
        "listen p\n bind 127.0.0.1:80\n retry-on none\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.ask(&get("/")).await.status(), 503);
            let line = stage.line().await;
            assert_eq!((&*line.term, &*line.retries), ("SC--", "0"));
        },
    );
}
