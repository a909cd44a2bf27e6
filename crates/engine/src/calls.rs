//! The calls of the future that serves a stream: counted, and measured where that is asked for.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use model::world::profiling;

use crate::profile::{Profile, nanos};
use crate::sessions::Session;
use crate::worker::Worker;

impl Worker {
    /// Measures calls from now on, or no more. The figures begin anew when it is switched on.
    pub fn profile(&self, on: bool) {
        rt::measure_waits(on);
        let before = self.profiled.get();
        self.profiled.set(if on {
            Profile::begun(true)
        } else {
            Profile { until: before.until.or(before.since.map(|_| rt::now())), ..before }
        });
    }
}

/// Runs the future that serves one stream. Its calls are counted, and measured if that is asked for. The
/// future stays where it was made: it is several kilobytes.
pub async fn serve<R>(worker: &Worker, session: &Session, mut work: Pin<&mut impl Future<Output = R>>) -> R {
    let conn = &session.conn;
    conn.calls.set(0);
    conn.cpu_ns.set(0);
    conn.lat_ns.set(0);
    if worker.shared.program.world.process.profiling.load(Relaxed) != profiling::ON {
        return poll_fn(|cx| {
            conn.calls.set(conn.calls.get().saturating_add(1));
            work.as_mut().poll(cx)
        })
        .await;
    }
    poll_fn(|cx| {
        conn.calls.set(conn.calls.get().saturating_add(1));
        let waited = nanos(rt::take_wait());
        conn.lat_ns.set(conn.lat_ns.get().saturating_add(waited));
        let start = Instant::now();
        worker.call_began.set(Some(start));
        let result = work.as_mut().poll(cx);
        worker.call_began.set(None);
        let took = nanos(start.elapsed());
        conn.cpu_ns.set(conn.cpu_ns.get().saturating_add(took));
        worker.profiled.set(worker.profiled.get().call(took, waited));
        result
    })
    .await
}
