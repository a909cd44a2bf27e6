//! `mode tcp`: bytes both ways, and their ends.

use std::time::Duration;

use worlds::{ALL, CALM, Climate, End, QUIET, Stage, TCP_FORMAT, all, content, explore, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

fn relay(lines: &str) -> String {
    format!(
        "listen t\n mode tcp\n bind 127.0.0.1:80\n log-format \"{TCP_FORMAT}\"\n {lines}\n server s 127.0.1.1:80"
    )
}

/// A server that sends back what it gets, and closes when the client does.
fn echo(stage: &Stage) {
    stage.serve(S, |mut peer, _| async move {
        while peer.more().await.is_ok() {
            let bytes = std::mem::take(&mut peer.buf);
            if peer.send(&bytes).await.is_err() {
                return;
            }
        }
    });
}

#[test]
fn what_one_side_sends_the_other_gets() {
    explore(&relay(""), CALM, |stage| async move {
        echo(&stage);
        let jobs = (0..4u64).map(|id| {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                let bytes = content(id, 20_000);
                for piece in bytes.chunks(2_500) {
                    client.send(piece).await.unwrap();
                    assert_eq!(client.take(piece.len()).await, piece);
                }
                client.finish();
                assert_eq!(client.rest().await, (Vec::new(), End::Closed));
            })
        });
        all(jobs).await;
        let lines = stage.ended(4).await;
        for line in lines {
            assert_eq!((line.state(), line.up, line.down), ("--", 20_000, 20_000), "{}", line.text);
        }
    });
}

#[test]
fn a_client_that_closed_its_side_and_found_no_server_is_reset_with_nolinger() {
    for (line, expected) in [("", End::Closed), ("option nolinger", End::Reset)] {
        explore(&relay(line), QUIET, move |stage| async move {
            let mut client = stage.client(FRONT).await;
            client.finish();
            assert_eq!(client.rest().await, (Vec::new(), expected), "{line}");
        });
    }
}

#[test]
fn a_client_that_has_said_all_still_hears() {
    explore(&relay(""), CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let (said, end) = peer.rest().await;
            assert_eq!((said, end), (content(1, 5000), End::Closed));
            rt::sleep(Duration::from_secs(5)).await;
            peer.send(&content(2, 9000)).await.unwrap();
        });
        let mut client = stage.client(FRONT).await;
        client.send(&content(1, 5000)).await.unwrap();
        client.finish();
        assert_eq!(client.rest().await, (content(2, 9000), End::Closed));
        let line = stage.line().await;
        assert_eq!((line.state(), line.up, line.down), ("--", 5000, 9000));
    });
}

#[test]
fn a_server_that_has_said_all_still_hears() {
    explore(&relay(""), CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            peer.send(b"bye").await.unwrap();
            peer.finish();
            assert_eq!(peer.rest().await, (content(1, 9000), End::Closed));
        });
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.rest().await, (b"bye".to_vec(), End::Closed));
        rt::sleep(Duration::from_secs(5)).await;
        client.send(&content(1, 9000)).await.unwrap();
        drop(client);
        let line = stage.line().await;
        assert_eq!((line.state(), line.up, line.down), ("--", 9000, 3));
    });
}

#[test]
fn a_silent_connection_ends_by_the_clients_timeout() {
    explore(&relay("timeout client 3s\n timeout server 9s"), CALM, |stage| async move {
        echo(&stage);
        let mut client = stage.client(FRONT).await;
        client.send(b"hello").await.unwrap();
        assert_eq!(client.take(5).await, b"hello");
        let since = stage.elapsed();
        assert_eq!(client.rest().await, (Vec::new(), End::Closed));
        let took = (stage.elapsed() - since).as_secs_f64();
        assert!(took > 2.0 && (took < 3.1 || !stage.climate.is_quiet()), "{took}");
        assert_eq!(stage.line().await.state(), "cD");
    });
}

#[test]
fn a_silent_connection_ends_by_the_servers_timeout() {
    explore(&relay("timeout client 9s\n timeout server 3s"), CALM, |stage| async move {
        echo(&stage);
        let mut client = stage.client(FRONT).await;
        client.send(b"hello").await.unwrap();
        assert_eq!(client.take(5).await, b"hello");
        assert_eq!(client.rest().await.1, End::Closed);
        assert_eq!(stage.line().await.state(), "sD");
    });
}

#[test]
fn each_side_of_a_silent_connection_has_its_own_time() {
    for (limits, first, state) in [
        ("timeout client 6s\n timeout server 3s", "client", "sD"),
        ("timeout client 3s\n timeout server 6s", "server", "cD"),
    ] {
        explore(&relay(limits), &[Climate::Quiet], move |stage| async move {
            let seen = std::rc::Rc::new(std::cell::Cell::new(0.0));
            let (told, clock) = (seen.clone(), stage.clone());
            // Neither side closes before the other's time is over, too.
            stage.serve(S, move |mut peer, _| {
                let (told, clock) = (told.clone(), clock.clone());
                async move {
                    assert_eq!(peer.rest().await.1, End::Closed);
                    told.set(clock.elapsed().as_secs_f64());
                    rt::sleep(Duration::from_secs(3600)).await;
                }
            });
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.rest().await.1, End::Closed);
            let client_told = stage.elapsed().as_secs_f64();
            let line = stage.line().await;
            rt::sleep(Duration::from_secs(1)).await;
            let (early, late) =
                if first == "client" { (client_told, seen.get()) } else { (seen.get(), client_told) };
            assert!((2.9..3.1).contains(&early) && (5.9..6.1).contains(&late), "{first} {early} {late}");
            assert_eq!(line.state(), state);
        });
    }
}

#[test]
fn a_tunnel_begins_before_anybody_speaks() {
    explore(
        &relay("timeout client 2s\n timeout server 2s\n timeout tunnel 5s"),
        &[Climate::Quiet],
        |stage| async move {
            echo(&stage);
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.rest().await.1, End::Closed);
            let took = stage.elapsed().as_secs_f64();
            assert!((4.9..5.1).contains(&took), "{took}");
        },
    );
}

#[test]
fn a_tunnel_has_its_own_timeout() {
    explore(&relay("timeout client 2s\n timeout server 2s\n timeout tunnel 30s"), CALM, |stage| async move {
        echo(&stage);
        let mut client = stage.client(FRONT).await;
        for _ in 0..3 {
            client.send(b"hello").await.unwrap();
            assert_eq!(client.take(5).await, b"hello");
            rt::sleep(Duration::from_secs(20)).await;
        }
        let since = stage.elapsed();
        assert_eq!(client.rest().await.1, End::Closed);
        let took = (stage.elapsed() - since).as_secs_f64();
        assert!(took < 11.0, "{took}");
        assert_eq!(&stage.line().await.state()[1..], "D");
    });
}

#[test]
fn a_half_closed_client_has_less_time() {
    explore(
        &relay("timeout client 60s\n timeout server 60s\n timeout client-fin 5s\n timeout server-fin 3s"),
        &[Climate::Quiet],
        |stage| async move {
            // Never closes.
            stage.serve(S, |mut peer, _| async move {
                peer.rest().await;
                rt::sleep(Duration::from_secs(3600)).await;
            });
            let mut client = stage.client(FRONT).await;
            client.send(b"last words").await.unwrap();
            client.finish();
            assert_eq!(client.rest().await.1, End::Closed);
            let took = stage.elapsed().as_secs_f64();
            assert!((2.9..5.1).contains(&took), "{took}");
            assert_eq!(&stage.line().await.state()[1..], "D");
        },
    );
}

#[test]
fn a_half_closed_server_has_less_time() {
    explore(
        &relay("timeout client 60s\n timeout server 60s\n timeout client-fin 5s\n timeout server-fin 3s"),
        &[Climate::Quiet],
        |stage| async move {
            stage.serve(S, |mut peer, _| async move {
                peer.finish();
                peer.rest().await;
            });
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.rest().await.1, End::Closed);
            rt::sleep(Duration::from_secs(20)).await;
            let line = stage.line().await;
            let took: u64 = line.text.split(' ').nth(6).unwrap().parse().unwrap();
            assert!((4900..5100).contains(&took), "{}", line.text);
            drop(client);
        },
    );
}

#[test]
fn a_reset_reaches_the_other_side() {
    explore(&relay(""), CALM, |stage| async move {
        let ends = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let seen = ends.clone();
        stage.serve(S, move |mut peer, n| {
            let seen = seen.clone();
            async move {
                peer.take(4).await;
                if n == 0 {
                    let end = peer.rest().await.1;
                    seen.borrow_mut().push(end);
                } else {
                    peer.reset();
                }
            }
        });
        let client = stage.client(FRONT).await;
        client.send(b"ping").await.unwrap();
        rt::sleep(Duration::from_secs(3)).await;
        client.reset();
        let line = stage.line().await;
        assert_eq!(line.state(), "CD", "{}", line.text);
        rt::sleep(Duration::from_secs(1)).await;
        assert_eq!(ends.borrow().len(), 1, "the server learns that the client is gone");
        let mut client = stage.client(FRONT).await;
        client.send(b"ping").await.unwrap();
        client.rest().await;
        drop(client);
        assert_eq!(stage.ended(2).await[1].state(), "SD");
    });
}

#[test]
fn a_refused_server_ends_the_connection() {
    explore(&relay("retries 0"), CALM, |stage| async move {
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.rest().await.0, b"");
        let line = stage.line().await;
        assert_eq!((line.state(), &*line.server), ("SC", "t/s"));
    });
}

#[test]
fn a_relay_changes_no_byte_and_ends_always() {
    explore(
        &relay("timeout client 5s\n timeout server 5s\n timeout connect 1s\n retries 1"),
        ALL,
        |stage| async move {
            stage.serve(S, |mut peer, _| async move {
                let (said, end) = peer.rest().await;
                let id = said.first().map_or(0, |b| u64::from(*b));
                if end == End::Closed {
                    let _ = peer.send(&content(id, said.len() * 2)).await;
                }
            });
            let hostile = stage.climate.is_hostile();
            let jobs = (0..6u64).map(|n| {
                spawn(async move {
                    let Ok(mut client) = worlds::Peer::connect(&worlds::addr(FRONT)).await else { return };
                    let size = 1 + (rt::random() % 30_000) as usize;
                    let said = content(n, size);
                    if client.send(&said).await.is_err() {
                        return;
                    }
                    client.finish();
                    let (heard, end) = client.rest().await;
                    let expected = content(u64::from(said[0]), size * 2);
                    if hostile {
                        // What the server got may have ended early, and then it said less.
                        assert!(expected.starts_with(&heard));
                    } else {
                        assert_eq!((heard, end), (expected, End::Closed));
                    }
                })
            });
            all(jobs).await;
        },
    );
}

/// A server that says nothing is silent, whatever it is sent, where `option independent-streams` says so.
#[test]
fn what_is_sent_to_a_side_is_no_word_of_it() {
    for (option, ends) in [("", false), ("option independent-streams\n", true)] {
        let lines = format!("{option} timeout server 1s\n timeout client 5s");
        explore(&relay(&lines), QUIET, move |stage| async move {
            stage.serve(S, |mut peer, _| async move {
                while peer.more().await.is_ok() {
                    peer.buf.clear();
                }
            });
            let mut client = stage.client(FRONT).await;
            for _ in 0..4 {
                if client.send(b"x").await.is_err() {
                    break;
                }
                rt::sleep(Duration::from_millis(700)).await;
            }
            client.finish();
            let _ = client.rest().await;
            let line = stage.ended(1).await.remove(0);
            assert_eq!(line.state(), if ends { "sD" } else { "--" }, "{option}: {}", line.text);
        });
    }
}

/// `option contstats`: the counters follow a long connection while it goes on, and count each byte once.
#[test]
fn counters_follow_a_connection_that_goes_on() {
    for (option, meanwhile) in [("", false), ("option contstats", true)] {
        explore(&relay(option), QUIET, move |stage| async move {
            echo(&stage);
            let proxy = stage.proxy("t");
            let moved = || {
                let front = &proxy.front.counters;
                (front.sum(|c| &c.bytes.request_in), front.sum(|c| &c.bytes.response_in))
            };
            let mut client = stage.client(FRONT).await;
            let mut seen = Vec::new();
            for _ in 0..8 {
                client.send(&[b'x'; 100]).await.unwrap();
                client.take(100).await;
                rt::sleep(Duration::from_secs(3)).await;
                seen.push(moved());
            }
            let grew = seen.windows(2).filter(|pair| pair[0] < pair[1]).count();
            assert_eq!(grew >= 3, meanwhile, "{option}: {seen:?}");
            // What moved last before a silence is counted, too.
            rt::sleep(Duration::from_secs(6)).await;
            assert_eq!(moved() == (800, 800), meanwhile, "{option}");
            client.finish();
            client.rest().await;
            stage.ended(1).await;
            assert_eq!(moved(), (800, 800), "{option}");
        });
    }
}
