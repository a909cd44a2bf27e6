//! Connections that stop being HTTP, and bytes that go through pipes.

use std::time::Duration;

use worlds::{
    ALL, Answer, CALM, Climate, End, Peer, QUIET, Stage, TCP_FORMAT, addr, all, content, explore, get,
    response, spawn,
};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const UPGRADE: &[u8] = b"GET /chat HTTP/1.1\r\nhost: w\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/// A server that switches protocols and then sends back what it gets.
fn switching(stage: &Stage) {
    stage.serve(S, |mut peer, _| async move {
        if !peer.request().await.is_whole() || peer.send(SWITCH).await.is_err() {
            return;
        }
        loop {
            let bytes = std::mem::take(&mut peer.buf);
            if peer.send(&bytes).await.is_err() || peer.more().await.is_err() {
                return;
            }
        }
    });
}

#[test]
fn after_101_bytes_pass_both_ways() {
    explore(
        "  timeout tunnel 60s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80",
        CALM,
        |stage| async move {
            switching(&stage);
            let mut client = stage.client(FRONT).await;
            // What is said without waiting for the switch is not lost either.
            client.send(UPGRADE).await.unwrap();
            assert_eq!(client.any_response().await.status(), 101);
            for n in 0..4 {
                client.send(&content(n, 3000)).await.unwrap();
                assert_eq!(client.take(3000).await, content(n, 3000));
                rt::sleep(Duration::from_secs(30)).await;
            }
            client.finish();
            assert_eq!(client.rest().await, (Vec::new(), End::Closed));
            let line = stage.line().await;
            assert_eq!((&*line.status, line.state()), ("101", "--"), "{}", line.text);
            assert!(line.down >= 12_000);
        },
    );
}

#[test]
fn a_silent_tunnel_ends_by_its_timeout() {
    let config = "  timeout tunnel 40s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";
    explore(config, &[Climate::Quiet], |stage| async move {
        switching(&stage);
        let mut client = stage.client(FRONT).await;
        client.send(UPGRADE).await.unwrap();
        assert_eq!(client.any_response().await.status(), 101);
        assert_eq!(client.rest().await.1, End::Closed);
        let took = stage.elapsed().as_secs_f64();
        assert!((40.0..40.1).contains(&took), "{took}");
        assert_eq!(&stage.line().await.state()[1..], "D");
    });
}

#[test]
fn a_refused_upgrade_is_an_ordinary_answer() {
    explore("listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80", CALM, |stage| async move {
        stage.answer(S, |_, _| Answer::Bytes(response(200, b"no")));
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(UPGRADE).await.body, b"no");
        assert_eq!(client.ask(&get("/")).await.body, b"no");
        drop(client);
        stage.ended(2).await;
    });
}

#[test]
fn large_bodies_through_pipes() {
    let config = "  option splice-auto\n  option splice-request\n  option splice-response\n  timeout client 5s\n  \
                  timeout server 5s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";
    explore(config, ALL, |stage| async move {
        stage.origin(S);
        let hostile = stage.climate.is_hostile();
        let jobs = (0..3u64).map(|id| {
            spawn(async move {
                let Ok(mut client) = Peer::connect(&addr(FRONT)).await else { return };
                for size in [16_384, 50_000, 17] {
                    let body = content(id, size);
                    let answer = client.ask(&worlds::post(&format!("/{id}/{size}"), &body)).await;
                    if answer.is_whole() && answer.status() == 200 {
                        assert_eq!(answer.body, body);
                    } else {
                        assert!(hostile, "{answer:?}");
                        return;
                    }
                }
            })
        });
        all(jobs).await;
    });
}

#[test]
fn a_relay_through_pipes() {
    let config: &'static str = format!(
        "listen t\n mode tcp\n option splice-auto\n bind 127.0.0.1:80\n log-format \"{TCP_FORMAT}\"\n server s 127.0.1.1:80"
    )
    .leak();
    explore(config, CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let (said, _) = peer.rest().await;
            let _ = peer.send(&said).await;
        });
        let mut client = stage.client(FRONT).await;
        let body = content(1, 30_000);
        client.send(&body).await.unwrap();
        client.finish();
        assert_eq!(client.rest().await, (body, End::Closed));
        let line = stage.line().await;
        assert_eq!((line.state(), line.up, line.down), ("--", 30_000, 30_000), "{}", line.text);
        let process = &stage.shared.program.world.process.counters;
        // Both directions.
        assert_eq!(process.sum(|c| &c.spliced_bytes_out), 60_000);
    });
}

#[test]
fn old_clients_are_told_the_end_by_closing() {
    explore("listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80", CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        client.send(b"GET /3/500 HTTP/1.0\r\n\r\n").await.unwrap();
        let answer = client.response().await;
        assert_eq!(answer.body, content(3, 500));
        assert_eq!(client.rest().await, (Vec::new(), End::Closed));
        stage.ended(1).await;
    });
}

#[test]
fn http_server_close_and_httpclose_end_what_they_name() {
    for (option, connects, kept) in
        [("http-server-close", 3, true), ("httpclose", 3, false), ("http-keep-alive", 1, true)]
    {
        let config: &'static str =
            format!("  option {option}\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80").leak();
        explore(config, CALM, move |stage| async move {
            stage.origin(S);
            let mut client = stage.client(FRONT).await;
            for id in 0..3 {
                let answer = client.ask(&get(&format!("/{id}/9"))).await;
                assert_eq!(answer.body, content(id, 9));
                assert_eq!(answer.closes(), !kept, "{option}");
                if !kept {
                    assert_eq!(client.rest().await.1, End::Closed);
                    client = stage.client(FRONT).await;
                }
            }
            drop(client);
            stage.quiet().await;
            assert_eq!(stage.server("p/s").counters.sum(|c| &c.connects), connects, "{option}");
        });
    }
}

#[test]
fn a_proxy_header_passes_the_address_on_and_a_wrong_one_ends_the_connection() {
    let config = "listen a\n bind 127.0.0.1:80\n mode http\n server b 127.0.0.1:81 send-proxy-v2\n\
                  listen b\n bind 127.0.0.1:81 accept-proxy\n http-request set-header x-src %[src]\n \
                  server s 127.0.1.1:80";
    // A header has to come in one piece, as in HAProxy, which choppy links can't promise.
    explore(config, QUIET, |stage| async move {
        stage.answer(S, |request, _| {
            Answer::Bytes(response(200, request.field("x-src").unwrap_or("nobody").as_bytes()))
        });
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.body, b"127.0.0.1");
        drop(client);
        let mut liar = stage.client("127.0.0.1:81").await;
        liar.send(&get("/")).await.unwrap();
        assert_eq!(liar.rest().await.0, b"");
        stage.quiet().await;
        assert_eq!(stage.proxy("b").front.counters.sum(|c| &c.requests), 1);
    });
}
