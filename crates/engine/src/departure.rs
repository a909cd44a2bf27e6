//! Clients that leave when the process stops softly.

use std::rc::Rc;
use std::time::Duration;

use crate::sessions::Session;
use crate::worker::Worker;

/// How finely `close-spread-time` is divided among the connections.
const SHARES: u32 = 1024;

/// Whether a soft stop has this client leave by now: at once, or at a moment of its own within
/// `close-spread-time`.
pub fn is_sent_away(worker: &Worker, session: &Session) -> bool {
    worker.stopped.get().is_some_and(|since| rt::now() >= since + share(spread(worker), session))
}

fn spread(worker: &Worker) -> Duration {
    worker.shared.program.global.close_spread_time.unwrap_or_default()
}

/// What a connection has of the time. It is never nothing, so that of an infinite time none is ever over.
fn share(spread: Duration, session: &Session) -> Duration {
    spread / SHARES * (base::hash::avalanche(session.conn.serial as u32) % SHARES + 1)
}

/// Wakes the idle connections that a soft stop has leave, each when its moment has come.
pub async fn send_away(worker: Rc<Worker>) {
    let (begun, spread) = (rt::now(), spread(&worker));
    // Those who are no more by then don't count on.
    let weak = |session: &Rc<Session>| (share(spread, session), Rc::downgrade(session));
    let mut leaving: Vec<_> = worker.sessions.all().iter().map(weak).collect();
    leaving.sort_unstable_by_key(|(share, _)| *share);
    for (share, session) in leaving {
        rt::sleep_until(begun + share).await;
        if let Some(session) = session.upgrade() {
            session.leave();
        }
    }
    // Who came while the sockets were being closed.
    rt::sleep_until(begun + spread).await;
    worker.sessions.all().iter().for_each(|session| session.leave());
}
