//! Health checks, agents, observation, and what a change of state brings about.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use farm::state::{self, Wanted};
use model::server::Op;
use worlds::{Answer, CALM, Climate, QUIET, Stage, all, explore, get, play, response, spawn};

pub(super) const FRONT: &str = "127.0.0.1:80";
pub(super) const S: &str = "127.0.1.1:80";
pub(super) const T: &str = "127.0.1.2:80";
pub(super) const AGENT: &str = "127.0.1.9:99";

/// The first proxy's first server.
pub(super) const FIRST: farm::At = farm::At { proxy: 0, server: 0 };

pub(super) async fn after(ms: u64) {
    rt::sleep(Duration::from_millis(ms)).await;
}

/// No more checks: what is under way ends before the world does, and its buffers with it.
pub(super) async fn silence(stage: &Stage) {
    for server in stage.shared.program.proxies.beginning().iter().flat_map(|p| p.servers.beginning()) {
        server.state.check_enabled.store(false, Relaxed);
        server.state.agent_enabled.store(false, Relaxed);
    }
    after(11_000).await;
}

/// Plays a scene in which checks run until its end.
pub(super) fn checked<F>(config: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    explore(config, climates, move |stage| async move {
        scene(stage.clone()).await;
        silence(&stage).await;
    });
}

/// Waits until something holds that has to come true: a choppy network takes its time.
pub(super) async fn until(what: impl Fn() -> bool) {
    for _ in 0..600 {
        if what() {
            return;
        }
        after(50).await;
    }
    panic!("it does not come true");
}

/// The lines logged so far, without those of traffic.
pub(super) fn told(stage: &Stage) -> Vec<String> {
    let about = |t: &String| t.contains("erver ") && !t.starts_with("p p/");
    stage.lines().into_iter().map(|l| l.text).filter(about).collect()
}

/// A server that answers each request with a status that the scene changes.
pub(super) fn status(stage: &Stage, at: &str, first: u16) -> Rc<Cell<u16>> {
    let status = Rc::new(Cell::new(first));
    let now = status.clone();
    stage.answer(at, move |_, _| Answer::Close(response(now.get(), b"ok")));
    status
}

#[test]
fn a_tcp_check_follows_a_server_down_and_up() {
    let config = "listen p\n bind 127.0.0.1:80\n option log-health-checks\n \
                  server s 127.0.1.1:80 check inter 1s rise 2 fall 3";
    checked(config, QUIET, |stage| async move {
        after(500).await;
        let refused = "reason: Layer4 connection problem, info: \"ECONNREFUSED returned by OS (Connection refused)\", \
                       check duration: 0ms";
        assert_eq!(
            told(&stage),
            [
                format!("Health check for server p/s failed, {refused}, status: 0/2 DOWN."),
                "Server p/s is DOWN. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, \
                 0 remaining in queue."
                    .to_owned(),
                "proxy p has no server available!".to_owned(),
            ]
        );
        let open = stage.serve(S, |_, _| async {});
        after(2000).await;
        let passed = "Health check for server p/s succeeded, reason: Layer4 check passed, check duration: 0ms, status:";
        assert_eq!(
            told(&stage)[3..],
            [
                format!("{passed} 1/2 DOWN."),
                format!("{passed} 3/3 UP."),
                "Server p/s is UP. 1 active and 0 backup servers online. 0 sessions requeued, 0 total in queue."
                    .to_owned(),
            ]
        );
        rt::cancel(open);
        after(3000).await;
        let last = told(&stage).split_off(6);
        assert_eq!(last.len(), 5);
        for (line, state) in last.iter().zip(["2/3 UP.", "1/3 UP.", "0/2 DOWN."]) {
            assert_eq!(*line, format!("Health check for server p/s failed, {refused}, status: {state}"));
        }
        let server = stage.server("p/s");
        assert_eq!((server.failed_checks.load(Relaxed), server.went_down.load(Relaxed)), (3, 2));
    });
}

#[test]
fn statuses_decide_and_404_only_stops_new_work() {
    let config = "listen p\n bind 127.0.0.1:80\n option httpchk GET /up HTTP/1.1 host\n http-check disable-on-404\n \
                  server s 127.0.1.1:80 check inter 1s rise 2 fall 2\n server t 127.0.1.2:80 backup\n\
                  listen q\n bind 127.0.0.1:81\n option httpchk\n http-check disable-on-404\n \
                  server f 127.0.1.1:80 track p/s";
    checked(config, CALM, |stage| async move {
        let answer = status(&stage, S, 200);
        let (server, follower) = (stage.server("p/s"), stage.server("q/f"));
        let both = || (server.op(), follower.op());
        until(|| server.health.load(Relaxed) == 3).await;
        assert_eq!(both(), (Op::Running, Op::Running));
        answer.set(404);
        until(|| both() == (Op::Stopping, Op::Stopping)).await;
        assert!(server.is_up() && !server.is_usable());
        answer.set(200);
        until(|| both() == (Op::Running, Op::Running)).await;
        answer.set(500);
        until(|| both() == (Op::Stopped, Op::Stopped)).await;
        answer.set(404);
        after(3000).await;
        assert_eq!(both(), (Op::Stopped, Op::Stopped), "a server that is down stays so");
        answer.set(200);
        until(|| both() == (Op::Running, Op::Running)).await;
        if !stage.climate.is_quiet() {
            return;
        }
        let said: Vec<String> = told(&stage)
            .into_iter()
            .map(|l| l.split(", check duration").next().unwrap().to_owned())
            .collect();
        let rest = "0 sessions requeued, 0 total in queue.";
        let lost = "0 sessions active, 0 requeued, 0 remaining in queue.";
        let nobody = "proxy q has no server available!".to_owned();
        let down = format!("Server q/f is DOWN via p/s. 0 active and 0 backup servers left. {lost}");
        let up = format!("Server q/f is UP via p/s. 1 active and 0 backup servers online. {rest}");
        assert_eq!(
            said,
            [
                "Server p/s is stopping, reason: Layer7 check conditionally passed, code: 404".to_owned(),
                format!("Server q/f is stopping via p/s. 0 active and 0 backup servers online. {rest}"),
                nobody.clone(),
                "Server p/s is UP, reason: Layer7 check passed, code: 200".to_owned(),
                up.clone(),
                "Server p/s is DOWN, reason: Layer7 wrong status, code: 500, info: \"Whatever\"".to_owned(),
                down,
                nobody,
                "Server p/s is UP, reason: Layer7 check passed, code: 200".to_owned(),
                up,
            ]
        );
    });
}

#[test]
fn an_answer_that_is_late_broken_or_missing_is_a_failure() {
    let config = "listen p\n bind 127.0.0.1:80\n option httpchk\n option log-health-checks\n timeout check 300ms\n \
                  server s 127.0.1.1:80 check inter 1s fall 9 init-state fully-up";
    checked(config, QUIET, |stage| async move {
        stage.serve(S, |mut peer, number| async move {
            let _ = peer.request().await;
            match number {
                0 => drop(peer.send(&response(200, b"ok")).await),
                1 => after(900).await,
                2 => peer.reset(),
                3 => drop(peer.send(b"junk\r\n\r\n").await),
                4 => {}
                _ => drop(peer.send(b"HTTP/1.1 200 OK\r\n").await),
            }
        });
        after(5700).await;
        let said: Vec<String> =
            told(&stage).iter().map(|l| l.replace("300ms", "30xms").replace("301ms", "30xms")).collect();
        let reset = "Socket error, info: \"ECONNRESET returned by OS (Connection reset by peer)\", check duration: 0ms";
        let expected = [
            "succeeded, reason: Layer7 check passed, code: 200, check duration: 0ms, status: 9/9 UP."
                .to_owned(),
            "failed, reason: Layer7 timeout, check duration: 30xms, status: 8/9 UP.".to_owned(),
            format!("failed, reason: {reset}, status: 7/9 UP."),
            "failed, reason: Socket error, check duration: 0ms, status: 6/9 UP.".to_owned(),
            "failed, reason: Socket error, check duration: 0ms, status: 5/9 UP.".to_owned(),
            "failed, reason: Socket error, check duration: 0ms, status: 4/9 UP.".to_owned(),
        ];
        let expected: Vec<_> = expected.iter().map(|e| format!("Health check for server p/s {e}")).collect();
        assert_eq!(said, expected);
    });
}

#[test]
fn a_silent_address_costs_no_more_than_the_interval() {
    let config =
        "listen p\n bind 127.0.0.1:80\n timeout connect 10s\n server s 127.0.1.1:80 check inter 2s fall 1";
    checked(config, QUIET, |stage| async move {
        stage.link(S, |f| f.black_hole = 1.0);
        after(2100).await;
        let last = stage.server("p/s").status.lock().last.clone();
        assert_eq!((last.status.code(), last.duration_ms), ("L4TOUT", 2000));
        assert_eq!(stage.server("p/s").op(), Op::Stopped);
    });
}

#[test]
fn without_an_initial_state_the_first_checks_have_to_prove_a_server() {
    let config =
        "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 check inter 1s fastinter 100ms rise 3 fall 2";
    checked(config, QUIET, |stage| async move {
        let times: Rc<std::cell::RefCell<Vec<u64>>> = Rc::default();
        let (seen, start) = (times.clone(), stage.start);
        stage.serve(S, move |_, _| {
            seen.borrow_mut().push(rt::now().millis_since(start) / 100);
            async {}
        });
        after(50).await;
        assert_eq!(stage.server("p/s").op(), Op::Running, "it is used from the start");
        after(1450).await;
        // Every 100 ms until the third success, then once a second.
        assert_eq!(*times.borrow(), [0, 1, 2, 12]);
    });
}

#[test]
fn the_intervals_are_those_of_the_manual() {
    let config = "listen p\n bind 127.0.0.1:80\n \
                  server s 127.0.1.1:80 check inter 1s fastinter 100ms downinter 3s rise 2 fall 2 init-state fully-up";
    checked(config, QUIET, |stage| async move {
        let times: Rc<std::cell::RefCell<Vec<u64>>> = Rc::default();
        let (seen, start) = (times.clone(), stage.start);
        let open = stage.serve(S, move |_, _| {
            seen.borrow_mut().push(rt::now().millis_since(start) / 100);
            async {}
        });
        after(2050).await;
        // One success makes it sure: from then on once a second.
        assert_eq!(*times.borrow(), [0, 10, 20]);
        rt::cancel(open);
        after(2000).await;
        // Failed at 3.0, again at 3.1: down until 6.1, then quickly up.
        assert_eq!(stage.server("p/s").op(), Op::Stopped);
        let (seen, start) = (times.clone(), stage.start);
        times.borrow_mut().clear();
        stage.serve(S, move |_, _| {
            seen.borrow_mut().push(rt::now().millis_since(start) / 100);
            async {}
        });
        after(4000).await;
        assert_eq!(*times.borrow(), [61, 62, 72]);
        assert_eq!(stage.server("p/s").op(), Op::Running);
    });
}

#[test]
fn the_interval_begins_with_the_end_of_a_check() {
    let config = "listen p\n bind 127.0.0.1:80\n option httpchk\n \
                  server s 127.0.1.1:80 check inter 1s init-state fully-up";
    checked(config, QUIET, |stage| async move {
        let times: Rc<std::cell::RefCell<Vec<u64>>> = Rc::default();
        let (seen, start) = (times.clone(), stage.start);
        stage.serve(S, move |mut peer, _| {
            seen.borrow_mut().push(rt::now().millis_since(start) / 100);
            async move {
                let _ = peer.request().await;
                after(400).await;
                let _ = peer.send(&response(200, b"ok")).await;
            }
        });
        after(3050).await;
        assert_eq!(*times.borrow(), [0, 14, 28]);
    });
}

#[test]
fn tcp_rules_talk_and_listen() {
    let config = "listen p\n bind 127.0.0.1:80\n mode tcp\n option tcp-check\n option log-health-checks\n \
                  tcp-check connect\n tcp-check send PING\\r\\n\n tcp-check expect string +PONG comment pong\n \
                  tcp-check send-binary 515549540d0a\n tcp-check expect rstring bye\n \
                  server s 127.0.1.1:80 check inter 1s rise 2 fall 3";
    checked(config, CALM, |stage| async move {
        let broken = Rc::new(Cell::new(false));
        let now = broken.clone();
        stage.serve(S, move |mut peer, _| {
            let broken = now.get();
            async move {
                assert_eq!(peer.take(6).await, b"PING\r\n");
                let _ = peer.send_slowly(b"+PONG\r\n", 2, Duration::from_millis(1)).await;
                assert_eq!(peer.take(6).await, b"QUIT\r\n");
                let _ = peer.send(if broken { b"+error" } else { b"+bye\r\n" }).await;
            }
        });
        until(|| stage.server("p/s").health.load(Relaxed) == 4).await;
        let last = stage.server("p/s").status.lock().last.clone();
        assert_eq!((last.status.code(), &*last.detail), ("L7OK", "(tcp-check)"));
        broken.set(true);
        until(|| stage.server("p/s").health.load(Relaxed) == 3).await;
        let last = stage.server("p/s").status.lock().last.clone();
        let missed = "TCPCHK did not match content (regex) at step 5";
        assert_eq!((last.status.code(), &*last.detail), ("L7RSP", missed));
        assert_eq!(stage.server("p/s").op(), Op::Running, "one failure of three");
    });
}

#[test]
fn a_check_asks_for_what_the_configuration_says() {
    let config = "listen p\n bind 127.0.0.1:80\n option httpchk\n http-check send-state\n \
                  http-check send meth POST uri /a ver HTTP/1.1 hdr Host foo hdr X-Name \"a %[be_name]\" body hello\n \
                  http-check expect string wor\n \
                  server s 127.0.1.1:80 check inter 1s";
    checked(config, CALM, |stage| async move {
        let body = Rc::new(Cell::new("hello world"));
        let now = body.clone();
        stage.answer(S, move |request, _| {
            assert_eq!(request.line, "POST /a HTTP/1.1");
            assert_eq!(request.body, b"hello");
            assert_eq!(request.field("x-name"), Some("a p"));
            assert_eq!(request.field("connection"), Some("close"));
            let state = request.field("x-haproxy-server-state").unwrap();
            assert!(state.starts_with("UP") && state.contains("; name=p/s; "), "{state}");
            let chunks = worlds::chunked(now.get().as_bytes(), 3);
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            Answer::Close([&head[..], &chunks].concat())
        });
        let code = || stage.server("p/s").status.lock().last.status.code();
        until(|| code() == "L7OK").await;
        body.set("nothing");
        until(|| code() == "L7RSP").await;
        let last = stage.server("p/s").status.lock().last.clone();
        let missed = "HTTP content check did not match";
        assert_eq!((last.status.code(), &*last.detail, last.code), ("L7RSP", missed, 200));
    });
}

#[test]
fn a_chain_of_tracking_servers_follows_its_end() {
    let config = "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 check inter 1s fall 1 rise 1\n\
                  listen q\n bind 127.0.0.1:81\n server m 127.0.1.1:80 track p/s\n\
                  listen r\n bind 127.0.0.1:82\n server e 127.0.1.1:80 track q/m\n server b 127.0.1.1:80 backup";
    checked(config, CALM, |stage| async move {
        let servers = ["p/s", "q/m", "r/e"].map(|n| stage.server(n));
        let ops = || servers.each_ref().map(|s| s.op());
        until(|| ops() == [Op::Stopped; 3]).await;
        stage.serve(S, |_, _| async {});
        until(|| ops() == [Op::Running; 3]).await;
        state::set_admin(&stage.worker.farm, FIRST, Wanted::Drain);
        assert!(servers.iter().all(|s| s.is_up() && !s.is_usable()));
        state::set_admin(&stage.worker.farm, FIRST, Wanted::Maint);
        assert!(servers.iter().all(|s| !s.is_up()));
        state::set_admin(&stage.worker.farm, FIRST, Wanted::Ready);
        assert!(servers.iter().all(|s| s.is_usable()), "{:?}", ops());
    });
}

#[test]
fn a_follower_begins_where_its_end_begins() {
    let config = "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 check inter 1s disabled\n \
                  server d 127.0.1.1:80 check inter 9s init-state fully-down\n\
                  listen q\n bind 127.0.0.1:81\n server e 127.0.1.1:80 track q/m\n server m 127.0.1.1:80 track p/s\n \
                  server f 127.0.1.1:80 track p/d";
    checked(config, QUIET, |stage| async move {
        let followers = ["q/e", "q/m", "q/f"].map(|n| stage.server(n));
        assert!(followers.iter().all(|s| !s.is_up()));
        assert!(followers.iter().all(|s| s.went_down.load(Relaxed) == 0));
        stage.origin(S);
        let mut client = stage.client("127.0.0.1:81").await;
        assert_eq!(client.ask(&get("/1/1")).await.status(), 503);
        drop(client);
        state::set_admin(&stage.worker.farm, FIRST, Wanted::Ready);
        assert!(followers[0].is_usable() && followers[1].is_usable());
        let mut client = stage.client("127.0.0.1:81").await;
        assert_eq!(client.ask(&get("/1/1")).await.status(), 200);
    });
}

#[test]
fn sessions_end_with_their_server_if_so_configured() {
    let config = "listen p\n bind 127.0.0.1:80\n mode tcp\n \
                  server s 127.0.1.1:80 check inter 1s fall 1 rise 1 on-marked-down shutdown-sessions \
                  on-marked-up shutdown-backup-sessions\n server b 127.0.1.2:80 backup";
    checked(config, CALM, |stage| async move {
        let open = stage.serve(S, |mut peer, _| async move { drop(peer.rest().await) });
        stage.serve(T, |mut peer, _| async move { drop(peer.rest().await) });
        after(500).await;
        let mut client = stage.client(FRONT).await;
        client.send(b"hello").await.unwrap();
        after(200).await;
        rt::cancel(open);
        client.rest().await;
        assert!(stage.elapsed() < Duration::from_secs(2));
        // The next one goes to the backup, until the server is back.
        let mut client = stage.client(FRONT).await;
        client.send(b"hello").await.unwrap();
        after(200).await;
        stage.serve(S, |mut peer, _| async move { drop(peer.rest().await) });
        client.rest().await;
        stage.quiet().await;
        let ends: Vec<_> = stage.lines().into_iter().filter(|l| l.frontend == "p").collect();
        let ends: Vec<_> = ends.iter().map(|l| (&*l.server, l.state())).collect();
        assert_eq!(ends, [("p/s", "DC"), ("p/b", "UC")]);
    });
}

#[test]
fn who_waits_for_a_server_that_fails_goes_elsewhere() {
    let config = "listen p\n bind 127.0.0.1:80\n balance roundrobin\n cookie C insert\n option redispatch\n \
                  server s 127.0.1.1:80 cookie s maxconn 1 check addr 127.0.1.9 port 99 inter 1s fall 1\n \
                  server t 127.0.1.2:80 cookie t weight 0";
    checked(config, QUIET, |stage| async move {
        stage.answer(S, |_, _| Answer::Late(Duration::from_secs(10), response(200, b"s")));
        stage.answer(T, |_, _| Answer::Bytes(response(200, b"t")));
        let open = stage.serve(AGENT, |_, _| async {});
        after(500).await;
        let ask = |stage: Rc<Stage>| {
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                client.ask(b"GET / HTTP/1.1\r\nHost: a\r\nCookie: C=s\r\n\r\n").await.status()
            })
        };
        let first = ask(stage.clone());
        after(50).await;
        let second = ask(stage.clone());
        after(50).await;
        assert_eq!(stage.server("p/s").queued.load(Relaxed), 1);
        rt::cancel(open);
        state::set_weight(&stage.worker.farm, farm::At { proxy: 0, server: 1 }, 1);
        let statuses = all([first, second]).await;
        assert_eq!(statuses, [200, 200]);
        let down = told(&stage).into_iter().find(|l| l.contains("is DOWN")).unwrap();
        assert!(down.ends_with("1 sessions active, 1 requeued, 0 remaining in queue."), "{down}");
    });
}

#[test]
fn a_server_that_comes_back_is_loaded_slowly() {
    let config = "listen p\n bind 127.0.0.1:80\n \
                  server s 127.0.1.1:80 weight 100 slowstart 10s check inter 1s fall 1 rise 1\n \
                  server t 127.0.1.2:80 weight 100";
    checked(config, QUIET, |stage| async move {
        let server = stage.server("p/s");
        stage.origin(T);
        after(500).await;
        assert_eq!(server.op(), Op::Stopped);
        stage.origin(S);
        after(1000).await;
        assert_eq!(server.op(), Op::Starting);
        let share = |stage: Rc<Stage>| async move {
            let before = stage.server("p/s").counters.sum(|c| &c.sessions);
            for _ in 0..40 {
                let mut client = stage.client(FRONT).await;
                assert_eq!(client.ask(&get("/1/1")).await.status(), 200);
            }
            stage.server("p/s").counters.sum(|c| &c.sessions) - before
        };
        let early = share(stage.clone()).await;
        assert!((1..=8).contains(&early), "{early} of 40 so early");
        after(11_000).await;
        assert_eq!(server.op(), Op::Running);
        let late = share(stage.clone()).await;
        assert!((18..=22).contains(&late), "{late} of 40");
    });
}

#[test]
fn traffic_that_fails_brings_a_server_down() {
    let config = "listen p\n bind 127.0.0.1:80\n option log-health-checks\n \
                  server s 127.0.1.1:80 check addr 127.0.1.9 port 99 inter 60s fastinter 100ms rise 2 fall 3 init-state fully-up \
                  observe layer7 error-limit 2 on-error mark-down";
    checked(config, QUIET, |stage| async move {
        stage.serve(AGENT, |_, _| async {});
        let answer = status(&stage, S, 500);
        after(50).await;
        let ask = |stage: Rc<Stage>| async move {
            let mut client = stage.client(FRONT).await;
            client.ask(&get("/")).await.status()
        };
        assert_eq!(ask(stage.clone()).await, 500);
        answer.set(404);
        assert_eq!(ask(stage.clone()).await, 404);
        answer.set(500);
        assert_eq!(ask(stage.clone()).await, 500);
        assert_eq!(stage.server("p/s").op(), Op::Running, "the errors were not in a row");
        assert_eq!(ask(stage.clone()).await, 500);
        assert_eq!(stage.server("p/s").op(), Op::Stopped);
        let said = told(&stage);
        assert_eq!(
            said[1],
            "Health check for server p/s failed, reason: Health analyze, info: \"Detected 2 consecutive errors, \
             last one was: Wrong http response\", status: 0/2 DOWN."
        );
        assert_eq!(ask(stage.clone()).await, 503);
        after(2000).await;
        assert_eq!(stage.server("p/s").op(), Op::Stopped, "the next check is a minute away");
    });
}

#[test]
fn traffic_that_fails_brings_the_next_check_forward() {
    let config = "listen p\n bind 127.0.0.1:80\n retries 0\n \
                  server s 127.0.1.1:80 check addr 127.0.1.9 port 99 inter 60s fastinter 100ms rise 2 fall 3 init-state fully-up \
                  observe layer4 error-limit 1";
    checked(config, QUIET, |stage| async move {
        stage.serve(AGENT, |_, _| async {});
        after(50).await;
        let server = stage.server("p/s");
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/")).await.status(), 503);
        assert_eq!((server.op(), server.health.load(Relaxed)), (Op::Running, 3));
        // It has nothing to complain about.
        after(150).await;
        assert_eq!(server.health.load(Relaxed), 4);
    });
}

#[test]
fn first_checks_are_spread_over_the_interval() {
    let servers: String = (0..10).map(|i| format!(" server s{i} 127.0.1.1:80 check inter 10s\n")).collect();
    let config = format!("listen p\n bind 127.0.0.1:80\n{servers}");
    checked(&config, QUIET, |stage| async move {
        let times: Rc<std::cell::RefCell<Vec<u64>>> = Rc::default();
        let (seen, start) = (times.clone(), stage.start);
        stage.serve(S, move |_, _| {
            seen.borrow_mut().push(rt::now().millis_since(start) / 1000);
            async {}
        });
        after(9_500).await;
        assert_eq!(*times.borrow(), (0..10).collect::<Vec<u64>>());
    });
}

#[test]
fn worlds_of_one_seed_are_the_same_and_no_fault_breaks_the_checks() {
    let config = "listen p\n bind 127.0.0.1:80\n option httpchk\n timeout check 500ms\n \
                  server s 127.0.1.1:80 check inter 1s fastinter 300ms rise 1 fall 2 on-marked-down shutdown-sessions\n \
                  server t 127.0.1.2:80 check inter 700ms agent-check agent-addr 127.0.1.9 agent-port 99\n \
                  server u 127.0.1.2:80 track p/s backup";
    let scene = |stage: Rc<Stage>| async move {
        stage.origin(S);
        stage.origin(T);
        stage.serve(AGENT, |peer, n| async move {
            let words = ["up\n", "down #x\n", "drain 40%\n", "ready up\n", "maint\n", "", "junk"];
            let word = words[n % words.len()];
            let _ = peer.send_slowly(word.as_bytes(), 2, Duration::from_millis(30)).await;
        });
        for _ in 0..60 {
            after(1000).await;
            for name in ["p/s", "p/t"] {
                let health = stage.server(name).health.load(Relaxed);
                assert!((0..=4).contains(&health), "{name} {health}");
            }
            assert_eq!(
                stage.server("p/s").op() == Op::Stopped,
                stage.server("p/u").op() == Op::Stopped,
                "a follower strays"
            );
        }
        silence(&stage).await;
    };
    for seed in worlds::seeds() {
        let traces = [0, 1].map(|_| play(seed, Climate::Hostile, config, scene));
        assert_eq!(traces[0], traces[1], "seed {seed}");
    }
}
