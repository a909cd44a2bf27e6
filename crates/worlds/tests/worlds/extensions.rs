//! Actions that an extension adds while the configuration is read, and what they wait for.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use engine::Worker;
use engine::inner::http::Exchange;
use engine::inner::line::{Line, Patience, To};
use lang::Registry;
use lang::action::{Action, Exec, Extension, Flow, Fulfilled, Need, Reply};
use lang::registry::{OwnedAction, Sets};
use rt::ConnectOptions;
use wire::method::Method;
use worlds::{CALM, Climate, QUIET, Setup, Stage, addr, content, explore_with, get};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
/// What is asked by the way.
const ASIDE: &str = "127.0.1.2:80";

thread_local! {
    /// Waits that have begun, and those that came to their end.
    static WAITS: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// `ext.sleep MS`: goes on after that time; `ext.ask`: denies what the server by the way denies.
struct Extended(Option<Duration>);

impl Action for Extended {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        let time = self.0;
        match exec.resumed.take() {
            None => Flow::Yield(Need::Extension(Extension::new(move |worker| {
                let worker = worker.downcast::<Worker>().expect("the worker");
                Box::pin(async move {
                    let (begun, over) = WAITS.get();
                    WAITS.set((begun + 1, over));
                    let status = match time {
                        Some(time) => {
                            rt::sleep(time).await;
                            200
                        }
                        None => ask(&worker).await,
                    };
                    let (begun, over) = WAITS.get();
                    WAITS.set((begun, over + 1));
                    Box::new(status) as Box<dyn std::any::Any>
                })
            }))),
            Some(Fulfilled::Brought(status)) => match status.downcast_ref::<u16>() {
                Some(200) => Flow::Next,
                _ => Flow::Deny(Reply::error(403)),
            },
            Some(_) => Flow::Reject,
        }
    }
}

/// The status of a call of the extension's own.
async fn ask(worker: &Worker) -> u16 {
    let second = Duration::from_secs(1);
    let patience = Patience { connect: second, silence: second, whole: None };
    let to = To { addr: &addr(ASIDE), options: ConnectOptions::default(), tls: None };
    let Ok(line) = Line::open(worker, &to, patience).await else { return 0 };
    let request = b"GET / HTTP/1.1\r\nhost: aside\r\n\r\n";
    let Ok(mut exchange) = Exchange::begin(worker, line, Method::Get, request).await else { return 0 };
    exchange.answer().await.map_or(0, |head| head.status())
}

fn extend(registry: &mut Registry) {
    let sets = Sets::HTTP_REQ.and(Sets::HTTP_RES).and(Sets::TCP_REQ);
    // Names that are made up while the configuration is read.
    for (name, waits) in [("sleep", true), ("ask", false)] {
        registry.add_action(OwnedAction {
            name: format!("ext.{name}").into(),
            sets,
            parse: Box::new(move |words, _, _, _| {
                let number = |w: &[u8]| std::str::from_utf8(w).ok()?.parse().ok();
                let time = match waits {
                    true => words.take().and_then(number).map(Duration::from_millis),
                    false => None,
                };
                Ok(Box::new(Extended(time)))
            }),
        });
    }
}

fn play<F>(rule: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let config = format!("listen p\n bind {FRONT}\n {rule}\n server s {S}");
    let setup = || {
        WAITS.set((0, 0));
        Setup::extended(&config, extend).unwrap_or_else(|why| panic!("{why}"))
    };
    explore_with(setup, climates, scene);
}

#[test]
fn rules_wait_for_what_an_extension_waits_for() {
    for rule in
        ["http-request ext.sleep 700", "http-response ext.sleep 700", "tcp-request content ext.sleep 700"]
    {
        play(&format!("tcp-request inspect-delay 5s\n {rule}"), QUIET, |stage| async move {
            stage.origin(S);
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&get("/1/9")).await;
            assert_eq!((answer.status(), answer.body), (200, content(1, 9)));
            assert_eq!(stage.elapsed().as_millis() / 100, 7);
            assert_eq!(WAITS.get(), (1, 1));
        });
    }
}

#[test]
fn an_extension_asks_somebody_else_and_decides() {
    play("http-request ext.ask if { path_beg /2 }", CALM, |stage| async move {
        stage.origin(S);
        stage.serve(ASIDE, |mut peer, n| async move {
            peer.request().await;
            let status = if n == 0 { "200 OK" } else { "401 No" };
            let _ = peer.send(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await;
        });
        for (target, status, waits) in [("/1/9", 200, 0), ("/2/9", 200, 1), ("/2/9", 403, 2)] {
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.ask(&get(target)).await.status(), status, "{target}");
            assert_eq!(WAITS.get(), (waits, waits));
        }
    });
}

/// Nothing waits for a client that has gone.
#[test]
fn a_wait_ends_when_the_client_leaves() {
    play("http-request ext.sleep 60000", QUIET, |stage| async move {
        stage.origin(S);
        let client = stage.client(FRONT).await;
        let _ = client.send(b"POST / HTTP/1.1\r\nhost: s\r\ncontent-length: 9\r\n\r\nhalf").await;
        rt::sleep(Duration::from_millis(100)).await;
        assert_eq!(WAITS.get(), (1, 0));
        client.reset();
        let line = stage.line().await;
        assert!(stage.elapsed() < Duration::from_secs(5), "{:?} {}", stage.elapsed(), line.text);
        assert_eq!(WAITS.get(), (1, 0), "it was dropped");
    });
}

#[test]
fn a_wait_ends_with_the_inspection_delay() {
    for mode in ["http", "tcp"] {
        let rules = "tcp-request inspect-delay 2s\n tcp-request content ext.sleep 60000";
        play(&format!("mode {mode}\n {rules}"), QUIET, |stage| async move {
            stage.origin(S);
            let mut client = stage.client(FRONT).await;
            let _ = client.send(&get("/1/9")).await;
            let (bytes, end) = client.rest().await;
            assert_eq!((bytes.len(), stage.elapsed().as_secs(), WAITS.get()), (0, 2, (1, 0)), "{end:?}");
        });
    }
}

/// Nor does TCP wait for one.
#[test]
fn a_wait_ends_when_the_connection_breaks() {
    play(
        "mode tcp\n tcp-request inspect-delay 50s\n tcp-request content ext.sleep 60000",
        QUIET,
        |stage| async move {
            stage.origin(S);
            let client = stage.client(FRONT).await;
            rt::sleep(Duration::from_millis(100)).await;
            client.reset();
            let _ = stage.line().await;
            assert!(stage.elapsed() < Duration::from_secs(5), "{:?}", stage.elapsed());
            assert_eq!(WAITS.get(), (1, 0), "it was dropped");
        },
    );
}
