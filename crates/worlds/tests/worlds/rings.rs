//! Servers of rings: lines get there whatever happened to the connection before.

use std::cell::RefCell;
use std::rc::Rc;

use worlds::{Peer, QUIET, explore, get};

use crate::checks::{FRONT, after, until};

const RING: &str = "127.0.3.1:514";

/// Long enough for `timeout connect`, a pause and another attempt.
const AGAIN: u64 = 3_000;

#[test]
fn a_connection_that_nobody_answers_is_given_up() {
    let config = format!(
        "ring r\n size 10000\n timeout connect 500ms\n timeout server 5s\n server s {RING}\n\
         listen p\n bind {FRONT}\n log ring@r local0\n http-request return status 200"
    );
    explore(&config, QUIET, |stage| async move {
        stage.link(RING, |faults| faults.black_hole = 1.0);
        let mut client = Peer::connect(&worlds::addr(FRONT)).await.expect("the frontend listens");
        assert_eq!(client.ask(&get("/")).await.status(), 200);
        after(AGAIN).await;
        stage.link(RING, |faults| faults.black_hole = 0.0);
        let lines = Rc::new(RefCell::new(Vec::new()));
        let came = lines.clone();
        stage.serve(RING, move |mut peer, _| {
            let came = came.clone();
            async move {
                while peer.more().await.is_ok() {
                    came.borrow_mut().extend(std::mem::take(&mut peer.buf));
                }
            }
        });
        until(|| lines.borrow().ends_with(b"\n")).await;
        assert!(lines.borrow().windows(4).any(|w| w == b" p/<"), "{:?}", lines.borrow());
    });
}
