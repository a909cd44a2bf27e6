//! Waiting for a place at a server.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use worlds::{ALL, Answer, CALM, Climate, Stage, all, content, explore, get, response, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

/// A server that takes a second for each request, and the targets in the order in which it saw them.
fn slow_origin(stage: &Stage) -> Rc<RefCell<Vec<String>>> {
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let list = seen.clone();
    stage.answer(S, move |request, _| {
        list.borrow_mut().push(request.target().to_owned());
        Answer::Late(Duration::from_secs(1), response(200, request.target().as_bytes()))
    });
    seen
}

/// Clients that ask one after the other, far enough apart to arrive in this order, but all within a second.
async fn queue_up(stage: &Rc<Stage>, targets: &[&str]) -> Vec<u16> {
    let pause = if stage.climate.is_quiet() { 10 } else { 5000 };
    let mut jobs = Vec::new();
    for target in targets {
        let (stage, request, wanted) = (stage.clone(), get(target), target.to_string());
        jobs.push(spawn(async move {
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&request).await;
            if answer.status() == 200 {
                assert_eq!(answer.body, wanted.as_bytes(), "the answer of somebody else");
            }
            answer.status()
        }));
        rt::sleep(Duration::from_millis(pause)).await;
    }
    all(jobs).await
}

#[test]
fn requests_beyond_maxconn_wait_and_are_served_in_order() {
    let config = "  timeout queue 60s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 maxconn 1";
    explore(config, &[Climate::Quiet], |stage| async move {
        let seen = slow_origin(&stage);
        let targets = ["/1", "/2", "/3", "/4", "/5"];
        assert_eq!(queue_up(&stage, &targets).await, [200; 5]);
        assert_eq!(*seen.borrow(), targets);
        let lines = stage.ended(5).await;
        let before: Vec<_> = lines.iter().map(|l| &*l.queues).collect();
        assert_eq!(before, ["0/0", "0/1", "0/2", "0/3", "0/4"]);
        for (n, line) in lines.iter().enumerate() {
            let waited = n as i64 * 1000;
            assert!((waited - 100..=waited + 100).contains(&line.times[1]), "{}", line.text);
        }
        let server = stage.server("p/s");
        assert_eq!(server.served_max.load(Relaxed), 1);
        assert_eq!(stage.proxy("p").back.queued_max.load(Relaxed), 4);
    });
}

#[test]
fn a_server_never_serves_more_than_maxconn() {
    let config = "  timeout queue 120s\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 maxconn 3";
    explore(config, CALM, |stage| async move {
        let now = Rc::new(std::cell::Cell::new(0));
        stage.serve(S, move |mut peer, _| {
            let now = now.clone();
            async move {
                loop {
                    let request = peer.request().await;
                    if !request.is_whole() {
                        return;
                    }
                    now.set(now.get() + 1);
                    assert!(now.get() <= 3, "{} requests at once", now.get());
                    rt::sleep(Duration::from_millis(rt::random() % 500)).await;
                    now.set(now.get() - 1);
                    if peer.send(&response(200, request.target().as_bytes())).await.is_err() {
                        return;
                    }
                }
            }
        });
        let targets: Vec<String> = (0..20).map(|n| format!("/{n}")).collect();
        let jobs = targets.into_iter().map(|target| {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                assert_eq!(client.ask(&get(&target)).await.body, target.as_bytes());
            })
        });
        all(jobs).await;
        let lines = stage.ended(20).await;
        assert!(lines.iter().all(|l| l.term == "----"));
        assert_eq!(stage.server("p/s").served_max.load(Relaxed), 3);
    });
}

#[test]
fn priority_classes_overtake() {
    let config = "  timeout queue 60s\nlisten p\n bind 127.0.0.1:80\n \
                  http-request set-priority-class int(-5) if { path_beg /vip }\n \
                  http-request set-priority-class int(5) if { path_beg /late }\n server s 127.0.1.1:80 maxconn 1";
    explore(config, &[Climate::Quiet], |stage| async move {
        let seen = slow_origin(&stage);
        let targets = ["/1", "/late", "/2", "/vip1", "/3", "/vip2"];
        assert_eq!(queue_up(&stage, &targets).await, [200; 6]);
        assert_eq!(*seen.borrow(), ["/1", "/vip1", "/vip2", "/2", "/3", "/late"]);
    });
}

#[test]
fn priority_offsets_move_by_time() {
    let config = "  timeout queue 60s\nlisten p\n bind 127.0.0.1:80\n \
                  http-request set-priority-offset int(-200) if { path_beg /vip }\n server s 127.0.1.1:80 maxconn 1";
    explore(config, &[Climate::Quiet], |stage| async move {
        let seen = slow_origin(&stage);
        assert_eq!(queue_up(&stage, &["/1", "/2", "/3", "/vip"]).await, [200; 4]);
        assert_eq!(*seen.borrow(), ["/1", "/vip", "/2", "/3"]);
    });
}

#[test]
fn a_full_queue_of_a_server_sends_elsewhere_or_fails() {
    let config = "  timeout queue 60s\nlisten p\n bind 127.0.0.1:80\n cookie C insert\n \
                  server s 127.0.1.1:80 maxconn 1 maxqueue 1 cookie s";
    explore(config, &[Climate::Quiet], |stage| async move {
        slow_origin(&stage);
        let mut jobs = Vec::new();
        for _ in 0..3 {
            let stage = stage.clone();
            jobs.push(spawn(async move {
                let mut client = stage.client(FRONT).await;
                client.ask(b"GET / HTTP/1.1\r\nhost: w\r\ncookie: C=s\r\n\r\n").await.status()
            }));
            rt::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(all(jobs).await, [200, 200, 503]);
        let lines = stage.ended(3).await;
        let refused = lines.iter().find(|l| l.status == "503").unwrap();
        assert_eq!(&refused.term[1..2], "Q", "{}", refused.text);
    });
}

#[test]
fn who_gives_up_leaves_the_queue() {
    let config = "  timeout queue 60s\n  option abortonclose\nlisten p\n bind 127.0.0.1:80\n \
                  server s 127.0.1.1:80 maxconn 1";
    explore(config, CALM, |stage| async move {
        let seen = slow_origin(&stage);
        let mut first = stage.client(FRONT).await;
        first.send(&get("/1")).await.unwrap();
        rt::sleep(Duration::from_millis(if stage.climate.is_quiet() { 10 } else { 900 })).await;
        let second = stage.client(FRONT).await;
        second.send(&get("/2")).await.unwrap();
        drop(second);
        assert_eq!(first.response().await.status(), 200);
        drop(first);
        let lines = stage.ended(2).await;
        let gone = lines.iter().find(|l| l.status != "200").map(|l| l.term.clone());
        if stage.climate.is_quiet() {
            assert_eq!(gone.as_deref(), Some("CQ--"));
            assert_eq!(*seen.borrow(), ["/1"]);
        }
    });
}

#[test]
fn a_queue_survives_everything() {
    let config = "  timeout queue 2s\n  timeout server 3s\n  timeout client 5s\n  timeout connect 1s\n  retries 1\n  \
                  option redispatch 1\n  option abortonclose\nlisten p\n bind 127.0.0.1:80\n balance leastconn\n \
                  server s 127.0.1.1:80 maxconn 1\n server t 127.0.1.2:80 maxconn 2\n server u 127.0.1.3:80 maxconn 1";
    explore(config, ALL, |stage| async move {
        stage.origin(S);
        stage.origin("127.0.1.2:80");
        let jobs = (0..25u64).map(|id| {
            spawn(async move {
                rt::sleep(Duration::from_millis(rt::random() % 300)).await;
                let Ok(mut client) = worlds::Peer::connect(&worlds::addr(FRONT)).await else { return };
                if client.send(&get(&format!("/{id}/2000"))).await.is_err() || rt::random().is_multiple_of(4)
                {
                    return;
                }
                let answer = client.response().await;
                if answer.is_whole() && answer.status() == 200 {
                    assert_eq!(answer.body, content(id, 2000));
                }
            })
        });
        all(jobs).await;
    });
}
