//! A worker that hangs is noticed and ends the process with a report: a proxy that silently serves half of its
//! connections is worse than one that is restarted. One that only waits for a processor, on a machine that has too few, does not
//! hang: what counts is the time that its thread ran.

use std::time::Duration;

use rt::{Heartbeat, Peers};

/// For how long a worker may run in one turn of its loop.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often workers are looked at.
const EVERY: Duration = Duration::from_millis(500);
/// How often a worker may be seen in the same turn at all: then it waits for what never comes. Looks are counted instead of time,
/// for the watchdog stands still along with a machine that does.
const LOOKS: u32 = 60;

/// A worker that was seen outside of its poll.
#[derive(Clone, Copy)]
struct Seen {
    /// When it was first seen in this turn.
    first: Heartbeat,
    looks: u32,
}

impl Seen {
    /// Takes another look; for how long it has run in this turn, if that is a sign that it hangs.
    fn look(last: &mut Option<Seen>, beat: Heartbeat) -> Option<Duration> {
        let Some(seen) = last.as_mut().filter(|seen| seen.first.turns == beat.turns && !beat.polling) else {
            *last = Some(Seen { first: beat, looks: 0 });
            return None;
        };
        seen.looks += 1;
        let ran = beat.busy.saturating_sub(seen.first.busy);
        (ran > PATIENCE || seen.looks > LOOKS).then_some(ran)
    }
}

/// Watches the workers from a thread of its own, for ever.
pub fn start(peers: Peers) {
    let watch = move || {
        let mut seen = vec![None; peers.count()];
        loop {
            std::thread::sleep(EVERY);
            for (worker, last) in seen.iter_mut().enumerate() {
                let Some(beat) = peers.heartbeat(worker) else { continue };
                if let Some(ran) = Seen::look(last, beat) {
                    report(worker, beat, ran);
                }
            }
        }
    };
    // Without it the proxy works all the same.
    let _ = std::thread::Builder::new().name("watchdog".into()).spawn(watch);
}

fn report(worker: usize, beat: Heartbeat, ran: Duration) -> ! {
    crate::say::hush(false);
    crate::say::alert(&format!(
        "worker {} is stuck in turn {} of its loop, in which it ran for {} ms; aborting, so that the \
         service manager can start a working process.",
        worker + 1,
        beat.turns,
        ran.as_millis()
    ));
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(turns: u64, polling: bool, ran: u64) -> Heartbeat {
        Heartbeat { turns, polling, busy: Duration::from_millis(ran) }
    }

    /// The look at which a worker is found to hang that runs for so long between two of them.
    fn found(step: u64) -> Option<u64> {
        let mut last = None;
        (0..200).find(|look| Seen::look(&mut last, beat(7, false, look * step)).is_some())
    }

    #[test]
    fn whoever_runs_on_in_one_turn_hangs() {
        assert_eq!(found(500), Some(9));
    }

    #[test]
    fn whoever_waits_for_a_processor_does_not_hang() {
        // A twentieth of one for as long as a blocked one may take.
        assert_eq!(found(25), Some(u64::from(LOOKS) + 1));
        let mut last = None;
        for turn in 0..100 {
            for look in 0..u64::from(LOOKS) {
                assert_eq!(Seen::look(&mut last, beat(turn, false, turn * 50 + look)), None);
            }
        }
    }

    #[test]
    fn whoever_polls_waits_for_events_however_long() {
        let mut last = None;
        assert!((0..10_000).all(|look| Seen::look(&mut last, beat(7, true, look * 500)).is_none()));
    }
}
