//! Servers that speak FastCGI: timeouts, ends at the wrong moment, connections that are closed at rest.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use wire::fcgi::{Header, kind};
use worlds::{CALM, Climate, Peer, QUIET, Stage, content, explore, get, post};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const FIELDS: &[u8] = b"Content-Type: text/plain\r\n\r\n";

/// Plays a scene with one server; `app` are lines of its application.
fn scene<F>(lines: &str, app: &str, climates: &[Climate], play: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let config = format!(
        "{lines}\nlisten p\n bind 127.0.0.1:80\n http-reuse always\n use-fcgi-app a\n server s 127.0.1.1:80 proto fcgi\nfcgi-app a\n docroot /www\n{app}"
    );
    explore(&config, climates, play);
}

fn record(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
    [&Header::new(kind, id, content.len() as u16).bytes()[..], content].concat()
}

fn end(id: u16) -> Vec<u8> {
    [record(kind::STDOUT, id, b""), record(kind::END_REQUEST, id, &[0; 8])].concat()
}

fn whole(id: u16, body: &[u8]) -> Vec<u8> {
    let parts: Vec<u8> = body.chunks(9000).flat_map(|part| record(kind::STDOUT, id, part)).collect();
    [record(kind::STDOUT, id, FIELDS), parts, end(id)].concat()
}

/// The records of a connection, one after the other.
struct Records<'p> {
    peer: &'p mut Peer,
}

impl Records<'_> {
    fn of(peer: &mut Peer) -> Records<'_> {
        Records { peer }
    }

    /// Type, number and content of the next one; nothing when the connection ends.
    async fn next(&mut self) -> Option<(u8, u16, Vec<u8>)> {
        let header = self.peer.take(8).await;
        let [_, kind, id1, id0, content1, content0, ..] = header[..] else { return None };
        let content = self.peer.take(usize::from(u16::from_be_bytes([content1, content0]))).await;
        Some((kind, u16::from_be_bytes([id1, id0]), content))
    }

    /// The number and the body of the next request.
    async fn request(&mut self) -> Option<(u16, Vec<u8>)> {
        let mut body = Vec::new();
        loop {
            match self.next().await? {
                (kind::STDIN, id, part) if part.is_empty() => return Some((id, body)),
                (kind::STDIN, _, part) => body.extend(part),
                _ => {}
            }
        }
    }
}

#[test]
fn an_application_that_says_nothing_is_504() {
    scene("  timeout server 3s\n  retries 0", "", CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            Records::of(&mut peer).request().await;
            peer.rest().await;
        });
        let mut client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        assert_eq!(client.response().await.status(), 504);
        let line = stage.line().await;
        assert_eq!((&*line.status, line.state()), ("504", "sH"));
    });
}

#[test]
fn an_application_that_stops_in_the_middle_is_cut_off_by_its_timeout() {
    scene("  timeout server 3s", "", CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let asked = Records::of(&mut peer).request().await;
            let (id, _) = asked.expect("a request");
            peer.send(&record(kind::STDOUT, id, &[FIELDS, b"some"].concat())).await.unwrap();
            peer.rest().await;
        });
        let mut client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        client.rest().await;
        let line = stage.line().await;
        assert_eq!((&*line.status, line.state()), ("200", "sD"));
    });
}

#[test]
fn an_application_that_dies_in_the_middle_is_told_apart_from_one_that_ends() {
    scene("  retries 0", "", CALM, |stage| async move {
        stage.serve(S, |mut peer, n| async move {
            let asked = Records::of(&mut peer).request().await;
            let (id, _) = asked.expect("a request");
            match n {
                0 => drop(peer.send(&record(kind::STDOUT, id, &[FIELDS, b"some"].concat())).await),
                1 => drop(peer.send(&record(kind::STDOUT, id, b"Content-Ty")).await),
                _ => {}
            }
            rt::sleep(Duration::from_millis(100)).await;
        });
        for (n, expected) in [("200", "SD"), ("502", "PH"), ("502", "SH")].into_iter().enumerate() {
            let mut client = stage.client(FRONT).await;
            client.send(&get("/x.php")).await.unwrap();
            client.rest().await;
            let line = stage.ended(n + 1).await.pop().expect("a line");
            assert_eq!((&*line.status, line.state()), expected);
        }
    });
}

#[test]
fn bodies_of_any_length_pass_both_ways_however_they_come() {
    scene("", "", CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let mut records = Records::of(&mut peer);
            while let Some((id, body)) = records.request().await {
                if records.peer.send(&whole(id, &body)).await.is_err() {
                    return;
                }
            }
        });
        let mut client = stage.client(FRONT).await;
        for (n, size) in [(1, 0), (2, 10), (3, 40_000), (4, 150_000)] {
            let body = content(n, size);
            client.send(&post("/x.php", &body)).await.unwrap();
            let answer = client.response().await;
            assert_eq!((answer.status(), answer.body == body), (200, true), "{size} bytes");
        }
    });
}

#[test]
fn a_request_on_a_connection_that_was_closed_at_rest_goes_to_another() {
    scene("", " option mpxs-conns\n option max-reqs 5", CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let asked = Records::of(&mut peer).request().await;
            let (id, _) = asked.expect("a request");
            peer.send(&whole(id, b"body")).await.unwrap();
            rt::sleep(Duration::from_millis(500)).await;
        });
        for _ in 0..3 {
            let mut client = stage.client(FRONT).await;
            client.send(&get("/x.php")).await.unwrap();
            assert_eq!(client.response().await.body, b"body");
            rt::sleep(Duration::from_secs(2)).await;
        }
    });
}

#[test]
fn one_request_is_answered_while_another_waits_on_the_same_connection() {
    scene("", " option mpxs-conns\n option max-reqs 5", CALM, |stage| async move {
        let (count, waits) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let (counted, waiting) = (count.clone(), waits.clone());
        stage.serve(S, move |mut peer, _| {
            counted.set(counted.get() + 1);
            let waiting = waiting.clone();
            async move {
                let mut records = Records::of(&mut peer);
                let mut held = None;
                while let Some((id, body)) = records.request().await {
                    // The first one is answered last.
                    let answers = match held.take() {
                        None if body == b"first" => {
                            held = Some(id);
                            waiting.set(true);
                            continue;
                        }
                        Some(first) => [whole(id, &body), whole(first, b"late")].concat(),
                        None => whole(id, &body),
                    };
                    records.peer.send(&answers).await.unwrap();
                }
            }
        });
        let mut one = stage.client(FRONT).await;
        one.send(&post("/warm", b"warm")).await.unwrap();
        assert_eq!(one.response().await.body, b"warm");
        one.send(&post("/a", b"first")).await.unwrap();
        while !waits.get() {
            rt::sleep(Duration::from_millis(10)).await;
        }
        let mut other = stage.client(FRONT).await;
        other.send(&post("/b", b"second")).await.unwrap();
        assert_eq!(other.response().await.body, b"second");
        assert_eq!(one.response().await.body, b"late");
        assert_eq!(count.get(), 1, "one connection");
    });
}

#[test]
fn a_request_that_is_given_up_is_aborted_and_its_number_not_used_before_it_is_over() {
    scene("  option abortonclose", " option mpxs-conns\n option max-reqs 5", QUIET, |stage| async move {
        let aborted = Rc::new(Cell::new(false));
        let told = aborted.clone();
        stage.serve(S, move |mut peer, _| {
            let told = told.clone();
            async move {
                let mut records = Records::of(&mut peer);
                let (first, _) = records.request().await.expect("a request");
                let abort = records.next().await.expect("a record");
                assert_eq!((abort.0, abort.1), (kind::ABORT_REQUEST, first));
                told.set(true);
                let (second, _) = records.request().await.expect("another request");
                assert_ne!(second, first);
                records.peer.send(&[end(first), whole(second, b"body")].concat()).await.unwrap();
                records.peer.rest().await;
            }
        });
        let client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        rt::sleep(Duration::from_millis(500)).await;
        client.reset();
        rt::sleep(Duration::from_millis(500)).await;
        assert!(aborted.get());
        let mut client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        assert_eq!(client.response().await.body, b"body");
    });
}

#[test]
fn nobody_answers_at_the_address() {
    scene("  timeout connect 2s\n  retries 0", "", QUIET, |stage| async move {
        stage.link(S, |faults| faults.black_hole = 1.0);
        let mut client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        assert_eq!(client.response().await.status(), 503);
        let line = stage.line().await;
        assert_eq!((&*line.status, line.state()), ("503", "sC"));
    });
}

#[test]
fn an_application_that_does_not_tell_its_limits_holds_the_request_until_its_timeout() {
    scene("  timeout server 3s\n  retries 0", " option get-values", QUIET, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let first = Records::of(&mut peer).next().await.expect("a record");
            assert_eq!((first.0, first.1), (kind::GET_VALUES, 0));
            peer.rest().await;
        });
        let mut client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        assert_eq!(client.response().await.status(), 504);
    });
}

#[test]
fn a_request_waits_for_a_place_no_longer_than_the_queue_allows() {
    let lines = "  timeout queue 1s\n  timeout server 30s\n  default-server maxconn 1";
    scene(lines, "", CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            Records::of(&mut peer).request().await;
            peer.rest().await;
        });
        let first = stage.client(FRONT).await;
        first.send(&get("/x.php")).await.unwrap();
        while stage.server("p/s").served.load(std::sync::atomic::Ordering::Relaxed) == 0 {
            rt::sleep(Duration::from_millis(50)).await;
        }
        let before = stage.elapsed().as_millis();
        let mut client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        assert_eq!(client.response().await.status(), 503);
        let spent = stage.elapsed().as_millis() - before;
        assert!(spent >= 1000 && (!stage.climate.is_quiet() || spent < 1100), "{spent}");
        let line = stage.lines().pop().expect("a line");
        assert_eq!((&*line.status, line.state()), ("503", "sQ"));
    });
}

/// Of connections that are kept (`option keep-conn`) those that are needed no more are closed in time.
#[test]
fn connections_that_are_kept_rest_no_longer_than_they_may() {
    let lines = "  default-server pool-purge-delay 1s";
    scene(lines, " option keep-conn", CALM, |stage| async move {
        let (open, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (count, highest) = (open.clone(), most.clone());
        stage.serve(S, move |mut peer, _| {
            let (count, highest) = (count.clone(), highest.clone());
            async move {
                count.set(count.get() + 1);
                highest.set(highest.get().max(count.get()));
                let mut records = Records::of(&mut peer);
                while let Some((id, _)) = records.request().await {
                    rt::sleep(Duration::from_millis(500)).await;
                    let _ = records.peer.send(&whole(id, b"body")).await;
                }
                count.set(count.get() - 1);
            }
        });
        let jobs = (0..4).map(|_| {
            let stage = stage.clone();
            worlds::spawn(async move {
                let mut client = stage.client(FRONT).await;
                client.send(&get("/x.php")).await.unwrap();
                assert_eq!(client.response().await.body, b"body");
            })
        });
        worlds::all(jobs).await;
        rt::sleep(Duration::from_millis(300)).await;
        assert!(most.get() > 1 && open.get() > 0, "{} of {}", open.get(), most.get());
        rt::sleep(Duration::from_secs(20)).await;
        assert!(open.get() <= 1, "{} rest", open.get());
        // Whoever comes then is served.
        let mut client = stage.client(FRONT).await;
        client.send(&get("/x.php")).await.unwrap();
        assert_eq!(client.response().await.body, b"body");
    });
}
