//! A configuration takes the place of another while the process runs: sessions in every state.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use worlds::{CALM, Stage, content, explore, get, response};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const T: &str = "127.0.1.2:80";

const FIRST: &str = "frontend p
 bind 127.0.0.1:80
 http-request return status 201 if { path /which }
 default_backend b
backend b
 http-reuse always
 server s 127.0.1.1:80 weight 10 maxconn 1";

/// Other rules, another proxy in front of the others, so that all indices are others, a server more.
const SECOND: &str = "backend a
 server x 127.0.1.9:80
frontend q
 bind 127.0.0.1:81
 default_backend b
frontend p
 bind 127.0.0.1:80
 http-request return status 202 if { path /which }
 default_backend b
backend b
 http-reuse always
 server r 127.0.1.2:80 disabled
 server s 127.0.1.1:80 weight 10 maxconn 1";

#[test]
fn a_client_at_rest_is_served_by_the_new_rules_on_the_same_connection() {
    explore(FIRST, CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/which")).await.status(), 201);
        assert_eq!(client.ask(&get("/1/50")).await.body, content(1, 50));
        stage.server("b/s").weight.store(77, Relaxed);
        stage.adopt(SECOND).unwrap();
        assert_eq!(client.ask(&get("/which")).await.status(), 202);
        assert_eq!(client.ask(&get("/2/50")).await.body, content(2, 50));
        drop(client);
        stage.quiet().await;
        let server = stage.server("b/s");
        assert_eq!(server.weight.load(Relaxed), 77);
        // The connection that rested serves on.
        assert_eq!((server.counters.sum(|c| &c.connects), server.counters.sum(|c| &c.reuses)), (1, 1));
        let (_, worker) = stage.current();
        assert_eq!((worker.farm.pools.len(), stage.worker.farm.pools.len()), (1, 0));
    });
}

#[test]
fn a_request_under_way_ends_as_it_began() {
    explore(FIRST, CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            loop {
                if !peer.request().await.is_whole() {
                    return;
                }
                rt::sleep(Duration::from_secs(1)).await;
                if peer.send(&response(200, b"late")).await.is_err() {
                    return;
                }
            }
        });
        let mut client = stage.client(FRONT).await;
        client.send(&get("/slow")).await.unwrap();
        rt::sleep(Duration::from_millis(200)).await;
        stage.adopt(SECOND).unwrap();
        let answer = client.response().await;
        assert_eq!((answer.status(), &*answer.body), (200, &b"late"[..]));
        assert_eq!(client.ask(&get("/which")).await.status(), 202);
        assert_eq!(client.ask(&get("/slow")).await.body, b"late");
        drop(client);
        stage.quiet().await;
        assert_eq!(
            stage.server("b/s").counters.sum(|c| &c.connects),
            1,
            "its connection goes to the new pools"
        );
    });
}

/// Requests that wait for a place wait on, in their order, with those that come later.
#[test]
fn who_waits_for_a_place_waits_on() {
    for next in [SECOND, FIRST] {
        explore(FIRST, CALM, move |stage| async move {
            stage.serve(S, |mut peer, _| async move {
                while peer.request().await.is_whole() {
                    rt::sleep(Duration::from_secs(1)).await;
                    if peer.send(&response(200, b"served")).await.is_err() {
                        return;
                    }
                }
            });
            let mut clients = Vec::new();
            for id in 0..4 {
                if id == 2 {
                    stage.adopt(next).unwrap();
                }
                let client = stage.client(FRONT).await;
                client.send(&get("/")).await.unwrap();
                rt::sleep(Duration::from_millis(50)).await;
                clients.push(client);
            }
            for client in &mut clients {
                assert_eq!(client.response().await.body, b"served");
            }
            drop(clients);
            stage.quiet().await;
            assert_eq!(stage.server("b/s").served_max.load(Relaxed), 1, "one at a time, whoever asks");
        });
    }
}

#[test]
fn a_frontend_that_is_gone_lets_its_clients_go() {
    explore(FIRST, CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/1/50")).await.status(), 200);
        stage.adopt("frontend q\n bind 127.0.0.1:81\n http-request return status 204").unwrap();
        let answer = client.ask(&get("/2/50")).await;
        assert!(!answer.is_whole() || answer.status() == 200, "closed, or served as before");
        drop(client);
        let mut other = stage.client("127.0.0.1:81").await;
        assert_eq!(other.ask(&get("/")).await.status(), 204);
        drop(other);
        stage.quiet().await;
        assert!(stage.refusable(FRONT).await.is_none(), "nobody listens there any more");
    });
}

/// A socket goes from one frontend to another without anybody being turned away.
#[test]
fn a_listener_goes_to_a_frontend_of_another_name() {
    explore(FIRST, CALM, |stage| async move {
        stage.adopt("frontend other\n bind 127.0.0.1:80\n http-request return status 204").unwrap();
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/which")).await.status(), 204);
    });
}

/// Two configurations follow each other before anybody who accepts has looked where it belongs.
#[test]
fn two_at_once_lose_no_listener() {
    explore(FIRST, CALM, |stage| async move {
        let mut client = stage.client(FRONT).await;
        for next in [[SECOND, FIRST], [FIRST, SECOND]] {
            next.iter().for_each(|config| stage.adopt(config).unwrap());
            let mut other = stage.client(FRONT).await;
            let status = if next[1] == FIRST { 201 } else { 202 };
            assert_eq!(other.ask(&get("/which")).await.status(), status);
            assert_eq!(client.ask(&get("/which")).await.status(), status);
        }
    });
}

#[test]
fn a_refused_one_changes_nothing() {
    explore(FIRST, CALM, |stage| async move {
        let why = stage.adopt(&SECOND.replace("default_backend b", "default_backend nobody")).unwrap_err();
        assert!(why.contains("nobody"), "{why}");
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/which")).await.status(), 201);
    });
}

/// One after the other, with traffic in between: nothing is left of those before.
#[test]
fn nothing_is_left_of_those_before() {
    explore(FIRST, CALM, |stage: std::rc::Rc<Stage>| async move {
        stage.origin(S);
        stage.origin(T);
        let mut client = stage.client(FRONT).await;
        let mut before = Vec::new();
        for round in 0..6 {
            before.push(std::sync::Arc::downgrade(&stage.current().0.program));
            stage.adopt(if round % 2 == 0 { SECOND } else { FIRST }).unwrap();
            let status = if round % 2 == 0 { 202 } else { 201 };
            assert_eq!(client.ask(&get("/which")).await.status(), status);
            assert_eq!(client.ask(&get("/1/50")).await.status(), 200);
        }
        drop(client);
        stage.quiet().await;
        // The harness holds the first one.
        assert!(before.iter().skip(1).all(|program| program.upgrade().is_none()));
    });
}
