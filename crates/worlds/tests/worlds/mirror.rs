//! Copies of requests (`http-request mirror`): what comes to the mirror, and that no mirror, however it
//! behaves, is noticed by the original.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use worlds::{
    ALL, Answer, CALM, Climate, Message, QUIET, Stage, content, explore, get, post, post_chunked, response,
};

use crate::checks::{FRONT, S, T, after, until};

/// A frontend whose requests go to one server and are copied for another.
fn config(rule: &str, server: &str) -> String {
    format!(
        "frontend f\n bind {FRONT}\n {rule}\n default_backend b\nbackend b\n server s {S}\n\
         backend m\n timeout server 3s\n timeout connect 1s\n timeout queue 1s\n {server}"
    )
}

fn plain(rule: &str) -> String {
    config(rule, &format!("server t {T}"))
}

/// Requests that came to a mirror.
type Came = Rc<RefCell<Vec<Message>>>;

fn mirror(stage: &Stage) -> Came {
    let came = Came::default();
    let all = came.clone();
    stage.answer(T, move |request, _| {
        all.borrow_mut().push(request.clone());
        Answer::Bytes(response(404, b"nobody wants this"))
    });
    came
}

/// What is counted of copies, in the order of the names.
fn counted(stage: &Stage) -> Vec<(&'static str, u64)> {
    let mirror = stage.proxy("m");
    let counters = mirror.back.counters.of(0).mirror.all();
    counters.into_iter().filter(|(_, c)| c.get() > 0).map(|(name, c)| (name, c.get())).collect()
}

/// Nothing is under way any more, and nothing is held.
fn at_rest(stage: &Stage) {
    let held = stage.current().0.program.world.mirrored.bytes();
    assert_eq!((stage.proxy("m").back.mirrored.load(Relaxed), held), (0, 0));
}

/// Asks, and checks that the original is served as if there were no mirror.
async fn ask(stage: &Stage, request: &[u8]) -> Message {
    let mut client = stage.client(FRONT).await;
    let answer = client.ask(request).await;
    assert_eq!(answer.status(), 200, "{:?}", stage.lines());
    answer
}

fn scene<F>(config: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    explore(config, climates, scene);
}

#[test]
fn a_copy_has_head_and_body_as_the_rules_left_them() {
    let rules = "http-request set-header x-before 1\n http-request mirror m body 100k\n \
                 http-request set-header x-behind 1\n http-request set-query q";
    scene(&plain(rules), CALM, |stage| async move {
        stage.origin(S);
        let came = mirror(&stage);
        ask(&stage, &get("/1/10")).await;
        ask(&stage, &post("/2/10", &content(2, 60_000))).await;
        ask(&stage, &post_chunked("/3/10", &content(3, 60_000), 777)).await;
        until(|| counted(&stage) == [("sent", 3)]).await;
        let came = came.borrow();
        for (request, target) in came.iter().zip(["/1/10", "/2/10", "/3/10"]) {
            assert_eq!(request.target(), target);
            assert_eq!((request.field("x-before"), request.field("x-behind")), (Some("1"), None));
        }
        assert_eq!(came[0].field("content-length"), None);
        for (request, id) in came[1..].iter().zip([2, 3]) {
            assert!(request.body == content(id, 60_000) && request.field("content-length") == Some("60000"));
            assert_eq!(request.field("transfer-encoding"), None);
        }
        at_rest(&stage);
    });
}

#[test]
fn a_body_that_is_too_long_is_not_copied() {
    scene(&plain("http-request mirror m body 1000"), CALM, |stage| async move {
        stage.origin(S);
        let came = mirror(&stage);
        ask(&stage, &post("/2/10", &content(2, 1001))).await;
        ask(&stage, &post_chunked("/3/10", &content(3, 1001), 100)).await;
        ask(&stage, &post_chunked("/3/10", &content(3, 1000), 100)).await;
        until(|| counted(&stage) == [("sent", 1), ("too_long", 2)]).await;
        assert_eq!(came.borrow().len(), 1);
        at_rest(&stage);
    });
}

/// However the mirror behaves: the original has its answer at once.
#[test]
fn no_mirror_is_noticed() {
    for (which, fate) in
        [("absent", "failed"), ("silent", "failed"), ("closes", "failed"), ("nonsense", "failed")]
    {
        scene(&plain("http-request mirror m"), QUIET, move |stage| async move {
            stage.origin(S);
            if which != "absent" {
                stage.serve(T, move |mut peer, _| async move {
                    peer.request().await;
                    match which {
                        "silent" => drop(peer.rest().await),
                        "nonsense" => drop(peer.send(b"what?\r\n\r\n").await),
                        _ => {}
                    }
                });
            }
            let began = stage.elapsed();
            ask(&stage, &get("/1/10")).await;
            ask(&stage, &post("/2/10", &content(2, 9000))).await;
            let took = stage.elapsed() - began;
            assert!(took < Duration::from_millis(100), "{which}: {took:?}");
            after(20_000).await;
            assert_eq!(counted(&stage), [(fate, 2)], "{which}");
            at_rest(&stage);
            // The frontend's own log and counters know of two requests.
            assert_eq!(stage.lines().len(), 2, "{which}");
            assert_eq!(stage.proxy("f").front.counters.of(0).requests.get(), 2);
            assert_eq!(stage.proxy("f").front.counters.of(0).req_errors.get(), 0);
        });
    }
}

#[test]
fn a_mirror_without_servers_is_counted() {
    let down = config("http-request mirror m", &format!("server t {T} disabled"));
    scene(&down, QUIET, |stage| async move {
        stage.origin(S);
        let came = mirror(&stage);
        ask(&stage, &get("/1/10")).await;
        after(100).await;
        assert_eq!((counted(&stage), came.borrow().len()), (vec![("no_server", 1)], 0));
        at_rest(&stage);
    });
}

/// `maxconn` of the mirror's server is obeyed: copies wait for it, and some in vain.
#[test]
fn a_mirror_that_is_full_has_copies_wait() {
    let narrow = config("http-request mirror m", &format!("server t {T} maxconn 1"));
    scene(&narrow, QUIET, |stage| async move {
        stage.origin(S);
        let slow = Duration::from_millis(800);
        stage.answer(T, move |_, _| Answer::Late(slow, response(200, b"slow")));
        for _ in 0..4 {
            ask(&stage, &get("/1/10")).await;
        }
        assert!(stage.elapsed() < Duration::from_millis(100));
        after(10_000).await;
        // The first at once, the second after 800 ms; the others have waited for a second by then.
        assert_eq!(counted(&stage), [("sent", 2), ("queue", 2)]);
        at_rest(&stage);
    });
}

/// Only so many copies are under way at once.
#[test]
fn copies_under_way_have_a_limit() {
    scene(&plain("http-request mirror m"), QUIET, |stage| async move {
        stage.origin(S);
        stage.serve(T, |mut peer, _| async move {
            let _ = peer.rest().await;
        });
        let mut client = stage.client(FRONT).await;
        for _ in 0..1005 {
            assert_eq!(client.ask(&get("/1/10")).await.status(), 200);
        }
        assert_eq!(counted(&stage), [("full", 5)]);
        after(20_000).await;
        assert_eq!(counted(&stage), [("full", 5), ("failed", 1000)]);
        at_rest(&stage);
    });
}

#[test]
fn what_is_answered_here_is_copied_only_without_a_body() {
    let rules = "http-request mirror m\n http-request deny if { path_beg /no }";
    scene(&plain(rules), CALM, |stage| async move {
        stage.origin(S);
        let came = mirror(&stage);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/no")).await.status(), 403);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&post("/no", b"body")).await.status(), 403);
        until(|| counted(&stage) == [("sent", 1), ("incomplete", 1)]).await;
        assert_eq!(came.borrow().len(), 1);
        at_rest(&stage);
    });
}

/// What asks for a tunnel has no copy; a HEAD has.
#[test]
fn tunnels_are_not_copied() {
    scene(&plain("http-request mirror m"), CALM, |stage| async move {
        stage.origin(S);
        let came = mirror(&stage);
        let mut client = stage.client(FRONT).await;
        let upgrade = b"GET /1/10 HTTP/1.1\r\nhost: w\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n";
        let _ = client.ask(upgrade).await;
        assert_eq!(counted(&stage), [("tunnel", 1)]);
        let client = stage.client(FRONT).await;
        let _ = client.send(b"HEAD /1/10 HTTP/1.1\r\nhost: w\r\n\r\n").await;
        until(|| counted(&stage) == [("sent", 1), ("tunnel", 1)]).await;
        assert_eq!(came.borrow()[0].method(), "HEAD");
    });
}

/// Rules of the mirror's backend see the copy; two that mirror to each other don't go round in circles, and
/// what they refuse is not the frontend's.
#[test]
fn rules_of_the_mirror_are_run() {
    let rules = config(
        "http-request mirror m",
        &format!(
            "http-request set-header x-copy %[src]\n http-request deny if {{ path_beg /2 }}\n \
             http-request mirror m\n server t {T}"
        ),
    );
    scene(&rules, CALM, |stage| async move {
        stage.origin(S);
        let came = mirror(&stage);
        ask(&stage, &get("/1/10")).await;
        ask(&stage, &get("/2/10")).await;
        until(|| counted(&stage) == [("sent", 1), ("failed", 1)]).await;
        after(1000).await;
        assert_eq!((came.borrow().len(), came.borrow()[0].field("x-copy").is_some()), (1, true));
        let front = stage.proxy("f");
        assert_eq!(front.front.counters.of(0).denied_req.get(), 0);
        assert_eq!(stage.proxy("m").back.counters.of(0).denied_req.get(), 1);
        at_rest(&stage);
    });
}

/// In the worst of networks each copy has one end, nothing stays behind, and the original is what it is
/// without.
#[test]
fn each_copy_has_one_end() {
    scene(&plain("http-request mirror m body 20k"), ALL, |stage| async move {
        stage.origin(S);
        mirror(&stage);
        let mut copied = 0;
        for id in 0..6 {
            let Some(mut client) = stage.refusable(FRONT).await else { continue };
            let request = match id % 3 {
                0 => get(&format!("/{id}/50")),
                1 => post(&format!("/{id}/50"), &content(id, 12_000)),
                _ => post_chunked(&format!("/{id}/50"), &content(id, 12_000), 999),
            };
            if client.send(&request).await.is_ok() && client.any_response().await.is_whole() {
                copied += 1;
            }
        }
        after(70_000).await;
        let total: u64 = counted(&stage).into_iter().map(|(_, n)| n).sum();
        assert!(total >= copied, "{copied}, of which {:?}", counted(&stage));
        at_rest(&stage);
    });
}

/// A copy goes where the configuration said that its request came under, however another one counts proxies.
#[test]
fn a_copy_outlives_a_reload_in_place() {
    scene(&plain("http-request mirror m"), QUIET, |stage| async move {
        stage.origin(S);
        let came = mirror(&stage);
        let request = post("/1/10", &content(1, 2000));
        let (first, second) = request.split_at(1000);
        let mut client = stage.client(FRONT).await;
        let _ = client.send(first).await;
        after(100).await;
        let other = format!("backend new\n server x 127.0.9.9:1\n{}", plain("http-request set-header x y"));
        stage.adopt(&other).expect("it is right");
        assert_eq!(client.ask(second).await.status(), 200);
        after(100).await;
        assert_eq!((came.borrow().len(), counted(&stage)), (1, vec![("sent", 1)]));
        ask(&stage, &get("/1/10")).await;
        after(100).await;
        assert_eq!(came.borrow().len(), 1);
        at_rest(&stage);
    });
}
