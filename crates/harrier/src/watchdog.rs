//! A worker that hangs is noticed and ends the process with a report: a proxy that silently serves half of its
//! connections is worse than one that is restarted.

use std::time::{Duration, Instant};

use rt::{Heartbeat, Peers};

/// How long a worker may be busy with one turn of its loop.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often workers are looked at.
const EVERY: Duration = Duration::from_millis(500);

/// Watches the workers from a thread of its own, for ever.
pub fn start(peers: Peers) {
    let watch = move || {
        let mut seen: Vec<Option<(Heartbeat, Instant)>> = vec![None; peers.count()];
        loop {
            std::thread::sleep(EVERY);
            for (worker, last) in seen.iter_mut().enumerate() {
                let Some(beat) = peers.heartbeat(worker) else { continue };
                match last {
                    Some((old, since)) if old.turns == beat.turns && !beat.polling => {
                        if since.elapsed() > PATIENCE {
                            report(worker, beat, since.elapsed());
                        }
                    }
                    _ => *last = Some((beat, Instant::now())),
                }
            }
        }
    };
    // Without it the proxy works all the same.
    let _ = std::thread::Builder::new().name("watchdog".into()).spawn(watch);
}

fn report(worker: usize, beat: Heartbeat, since: Duration) -> ! {
    eprintln!(
        "[ALERT]    ({}) : worker {} has been stuck in turn {} of its loop for {} ms; aborting, so that the \
         service manager can start a working process.",
        std::process::id(),
        worker + 1,
        beat.turns,
        since.as_millis()
    );
    std::process::abort()
}
