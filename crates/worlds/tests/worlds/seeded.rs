//! The harness itself: it finds a bug that was put there, and replays it.

use std::cell::RefCell;
use std::rc::Rc;

use worlds::{Climate, Peer, all, content, get, play, post, spawn};

const CONFIG: &str = "listen p\n bind 127.0.0.1:80\n server s 127.0.2.1:80";

/// Moves bytes one way. The wrong way of it sends what it read with a single call, and forgets what a short
/// write left: fine on every quiet network, and in most tests.
async fn relay(from: Rc<Peer>, to: Rc<Peer>, wrong: bool) {
    let mut room = [0u8; 4096];
    loop {
        let n = match from.socket.recv(&mut room).await {
            Ok(n) if n > 0 => n,
            _ => return to.finish(),
        };
        let sent = if wrong {
            std::future::poll_fn(|cx| to.socket.poll_send(cx, &room[..n], false)).await.map(drop)
        } else {
            to.send(&room[..n]).await
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Plays a world whose servers stand behind a relay; what it found wrong, and its trace.
fn world(seed: u64, climate: Climate, wrong: bool) -> (Option<String>, u64) {
    let found: Rc<RefCell<Option<String>>> = Rc::default();
    let note = found.clone();
    let trace = play(seed, climate, CONFIG, move |stage| {
        let note = note.clone();
        async move {
            stage.origin("127.0.1.1:80");
            stage.serve("127.0.2.1:80", move |client, _| async move {
                let Ok(server) = Peer::connect(&worlds::addr("127.0.1.1:80")).await else { return };
                let (client, server) = (Rc::new(client), Rc::new(server));
                all([
                    spawn(relay(client.clone(), server.clone(), wrong)),
                    spawn(relay(server.clone(), client.clone(), wrong)),
                ])
                .await;
            });
            let mut client = stage.client("127.0.0.1:80").await;
            for id in 0..3 {
                let target = format!("/{id}/600");
                let request = if id == 1 { post(&target, &content(id, 100)) } else { get(&target) };
                let answer = client.ask(&request).await;
                if answer.body != content(id, 600) {
                    let what =
                        format!("{target}: {} {} bytes {:?}", answer.status(), answer.body.len(), answer.end);
                    note.borrow_mut().get_or_insert(what);
                    break;
                }
            }
        }
    });
    (found.take(), trace)
}

#[test]
fn a_seeded_bug_is_found_and_replays() {
    for seed in 0..20 {
        assert_eq!(world(seed, Climate::Quiet, true).0, None, "a quiet network hides it");
    }
    let found = (0..20).find_map(|seed| world(seed, Climate::Choppy, true).0.map(|what| (seed, what)));
    let (seed, what) = found.expect("twenty choppy worlds show it");
    let (again, trace) = world(seed, Climate::Choppy, true);
    assert_eq!(again.as_ref(), Some(&what), "seed {seed} shows it again");
    assert_eq!(world(seed, Climate::Choppy, true), (Some(what), trace), "and the same world around it");
    assert_eq!(world(seed, Climate::Choppy, false).0, None, "without the bug there is nothing to find");
}

#[test]
fn equal_seeds_make_equal_worlds() {
    for climate in [Climate::Quiet, Climate::Choppy] {
        for seed in 0..4 {
            let traces = [0, 1].map(|_| world(seed, climate, false).1);
            assert_eq!(traces[0], traces[1], "seed {seed}");
            assert_ne!(traces[0], world(seed + 100, climate, false).1);
        }
    }
}
