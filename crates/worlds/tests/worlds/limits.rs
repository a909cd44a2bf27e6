//! What runs out: descriptors, connections, a log server's patience.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use worlds::{Answer, CALM, Climate, End, LOG, all, content, explore, get, response, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const PLAIN: &str = "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80";

#[test]
fn without_descriptors_accepting_rests_and_goes_on() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        // Connections are under way when descriptors run out.
        let jobs = (0..5u64).map(|id| {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                assert_eq!(client.ask(&get(&format!("/{id}/99"))).await.body, content(id, 99));
                stage.elapsed()
            })
        });
        let jobs: Vec<_> = jobs.collect();
        rt::yield_now().await;
        stage.link(FRONT, |f| f.no_descriptors = 1.0);
        rt::sleep(Duration::from_secs(2)).await;
        assert_eq!(stage.connections(), 0, "nothing could be accepted");
        let alerts = stage.lines().iter().filter(|l| l.text.contains("accept")).count();
        assert!((1..=25).contains(&alerts), "{alerts} alerts in two seconds");
        stage.link(FRONT, |f| f.no_descriptors = 0.0);
        for served in all(jobs).await {
            assert!(served >= Duration::from_secs(2));
        }
        stage.quiet().await;
        assert_eq!(stage.lines().len(), alerts + 5);
    });
}

#[test]
fn a_server_that_can_not_be_connected_for_want_of_descriptors_is_503() {
    explore(PLAIN, CALM, |stage| async move {
        stage.origin(S);
        stage.link(S, |f| f.no_descriptors = 1.0);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.status(), 503);
        drop(client);
        let line = stage.line().await;
        assert_eq!((&*line.status, line.state()), ("503", "RC"), "{}", line.text);
    });
}

#[test]
fn a_frontend_never_has_more_than_maxconn_connections() {
    let config = "listen p\n bind 127.0.0.1:80\n maxconn 3\n server s 127.0.1.1:80";
    explore(config, CALM, |stage| async move {
        stage.answer(S, |_, _| Answer::Late(Duration::from_secs(1), response(200, b"x")));
        let most = Rc::new(Cell::new(0));
        let jobs = (0..10).map(|_| {
            let (stage, most) = (stage.clone(), most.clone());
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                assert_eq!(client.ask(&get("/")).await.status(), 200);
                most.set(most.get().max(stage.connections()));
            })
        });
        all(jobs).await;
        stage.ended(10).await;
        assert_eq!(stage.proxy("p").front.current_max.load(Relaxed), 3);
        assert_eq!(most.get(), 3);
    });
}

#[test]
fn a_slow_log_server_slows_nobody() {
    explore(PLAIN, &[Climate::Quiet], |stage| async move {
        stage.origin(S);
        let hour = Duration::from_secs(3600);
        stage.link(LOG, |f| f.delay = hour..=hour);
        let mut client = stage.client(FRONT).await;
        for id in 0..50 {
            assert_eq!(client.ask(&get(&format!("/{id}/9"))).await.body, content(id, 9));
        }
        drop(client);
        stage.quiet().await;
        assert!(stage.elapsed() < Duration::from_secs(1));
        assert_eq!(stage.lines().len(), 0);
        rt::sleep(hour).await;
        assert_eq!(stage.lines().len(), 50);
    });
}

#[test]
fn lines_that_a_dead_log_server_refuses_are_counted() {
    let config = "listen p\n bind 127.0.0.1:80\n log /run/nobody local0\n server s 127.0.1.1:80";
    explore(config, &[Climate::Quiet], |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        for id in 0..5 {
            assert_eq!(client.ask(&get(&format!("/{id}/9"))).await.status(), 200);
        }
        drop(client);
        stage.quiet().await;
        let process = &stage.shared.program.world.process;
        assert_eq!(process.counters.sum(|c| &c.dropped_logs), 5);
        // It comes up, and gets what is logged from then on.
        let late = rt::Addr::Unix(b"/run/nobody".to_vec());
        let socket = rt::Datagram::bind(&late).unwrap();
        rt::sleep(Duration::from_secs(2)).await;
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/7/9")).await.status(), 200);
        drop(client);
        let mut room = [0; 2000];
        let got = worlds::within(Duration::from_secs(5), socket.recv(&mut room)).await;
        assert!(got.is_some(), "a log server that came back");
        assert_eq!(process.counters.sum(|c| &c.dropped_logs), 5);
    });
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    explore(PLAIN, &[Climate::Quiet], |stage| async move {
        let mut client = stage.client(FRONT).await;
        let request = format!("GET / HTTP/1.1\r\nhost: w\r\nx: {}\r\n\r\n", "x".repeat(20_000));
        let answer = client.ask(request.as_bytes()).await;
        assert_eq!(answer.status(), 431);
        drop(client);
        let line = stage.line().await;
        assert_eq!((&*line.status, &*line.term), ("431", "PR--"));
    });
}

#[test]
fn a_response_head_that_is_too_large_is_502() {
    explore(PLAIN, CALM, |stage| async move {
        let head = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(20_000));
        stage.answer(S, move |_, _| Answer::Stall(head.clone().into_bytes()));
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.status(), 502);
        assert_ne!(client.rest().await.1, End::Complete);
        let line = stage.line().await;
        assert_eq!((&*line.status, &*line.term), ("502", "PH--"));
    });
}
