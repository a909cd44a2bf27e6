//! The soft stop: running requests end, idle connections go, nobody new comes in.

use std::time::Duration;

use worlds::{ALL, Answer, CALM, End, Peer, addr, all, content, explore, get, response, spawn, within};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const PLAIN: &str = "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";

#[test]
fn idle_clients_are_closed_and_running_requests_are_served() {
    explore(PLAIN, CALM, |stage| async move {
        stage.answer(S, |request, _| {
            let bytes = response(200, request.target().as_bytes());
            if request.target() == "/slow" {
                Answer::Late(Duration::from_secs(10), bytes)
            } else {
                Answer::Bytes(bytes)
            }
        });
        let mut idle = stage.client(FRONT).await;
        assert_eq!(idle.ask(&get("/fast")).await.body, b"/fast");
        let mut running = stage.client(FRONT).await;
        running.send(&get("/slow")).await.unwrap();
        rt::sleep(Duration::from_secs(4)).await;
        stage.stop();
        let stopped = stage.elapsed();
        assert_eq!(idle.rest().await, (Vec::new(), End::Closed));
        assert!(stage.elapsed() - stopped < Duration::from_secs(2), "idle clients go at once");
        let answer = running.response().await;
        assert_eq!(answer.body, b"/slow");
        assert!(answer.closes(), "the last answer says that it is the last: {answer:?}");
        assert_eq!(running.rest().await.1, End::Closed);
        stage.ended(2).await;
    });
}

#[test]
fn nobody_new_comes_in() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        stage.stop();
        rt::sleep(Duration::from_secs(1)).await;
        let refused = within(Duration::from_secs(5), Peer::connect(&addr(FRONT))).await;
        assert!(!matches!(refused, Some(Ok(_))), "the listener is closed");
        stage.ended(0).await;
    });
}

#[test]
fn who_was_accepted_but_said_nothing_yet_may_still_ask() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        rt::sleep(Duration::from_secs(1)).await;
        stage.stop();
        rt::sleep(Duration::from_millis(300)).await;
        let answer = client.ask(&get("/5/55")).await;
        assert_eq!(answer.body, content(5, 55));
        assert!(answer.closes());
        stage.ended(1).await;
    });
}

#[test]
fn a_stop_at_any_moment_loses_no_answer() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        let jobs = (0..10u64).map(|id| {
            spawn(async move {
                let Ok(mut client) = Peer::connect(&addr(FRONT)).await else { return };
                for n in 0..5 {
                    rt::sleep(Duration::from_millis(rt::random() % 40)).await;
                    let answer = client.ask(&get(&format!("/{id}/700"))).await;
                    if answer.line.is_empty() && (n > 0 || answer.end.is_some()) {
                        // Closed while idle, or never accepted: the client asks somewhere else.
                        return;
                    }
                    assert_eq!(
                        answer.body,
                        content(id, 700),
                        "an answer that was begun is finished: {answer:?}"
                    );
                    if answer.closes() {
                        return;
                    }
                }
            })
        });
        let jobs: Vec<_> = jobs.collect();
        rt::sleep(Duration::from_millis(rt::random() % 200)).await;
        stage.stop();
        all(jobs).await;
    });
}

#[test]
fn a_stop_in_a_hostile_world_leaves_nothing() {
    explore(
        "  timeout client 3s\n  timeout server 3s\n  timeout connect 1s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 maxconn 2",
        ALL,
        |stage| async move {
            stage.origin(S);
            let jobs = (0..10u64).map(|id| {
                spawn(async move {
                    let connect = within(Duration::from_secs(5), Peer::connect(&addr(FRONT))).await;
                    let Some(Ok(mut client)) = connect else { return };
                    while client.ask(&get(&format!("/{id}/700"))).await.is_whole() {}
                })
            });
            let jobs: Vec<_> = jobs.collect();
            rt::sleep(Duration::from_millis(rt::random() % 300)).await;
            stage.stop();
            all(jobs).await;
        },
    );
}
