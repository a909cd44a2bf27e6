//! A worker that hangs is noticed and ends the process with a report: a proxy that silently serves half of
//! its connections is worse than one that is restarted. One that only waits for a processor, on a machine
//! that has too few, does not hang: what counts is the time that its thread ran.

use std::time::Duration;

use rt::{Heartbeat, Peers};

/// For how long a worker may run in one turn of its loop.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often workers are looked at, at least.
const EVERY: Duration = Duration::from_millis(500);
/// For how long a worker may be seen in the same turn at all: then it waits for what never comes. Looks are
/// counted instead of time, for the watchdog stands still along with a machine that does.
const LONGEST: Duration = Duration::from_secs(30);

/// A worker that was seen outside of its poll.
#[derive(Clone, Copy)]
struct Seen {
    /// When it was first seen in this turn.
    first: Heartbeat,
    looks: u32,
    /// It was said that it blocks traffic.
    told: bool,
}

/// What a look at a worker finds.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// It has run for longer in one turn than others can go unserved: said once.
    Blocks(Duration),
    /// It hangs.
    Stuck(Duration),
}

/// How workers are looked at.
#[derive(Clone, Copy)]
struct Watch {
    /// How often.
    every: Duration,
    /// For how long a worker may run in one turn before that is told (`warn-blocked-traffic-after`).
    blocked: Duration,
}

impl Watch {
    /// Often enough to see a turn that is to be told.
    fn of(blocked: Duration) -> Watch {
        Watch { every: (blocked / 2).clamp(Duration::from_millis(1), EVERY), blocked }
    }

    /// Takes another look.
    fn look(&self, last: &mut Option<Seen>, beat: Heartbeat) -> Option<Found> {
        let Some(seen) = last.as_mut().filter(|seen| seen.first.turns == beat.turns && !beat.polling) else {
            *last = Some(Seen { first: beat, looks: 0, told: false });
            return None;
        };
        seen.looks += 1;
        let ran = beat.busy.saturating_sub(seen.first.busy);
        if ran > PATIENCE || self.every * seen.looks > LONGEST {
            return Some(Found::Stuck(ran));
        }
        let blocks = ran >= self.blocked && !std::mem::replace(&mut seen.told, ran >= self.blocked);
        blocks.then_some(Found::Blocks(ran))
    }
}

/// Watches the workers from a thread of its own, for ever. Traffic that a worker leaves unserved for longer
/// than `blocked` is told.
pub fn start(peers: Peers, blocked: Duration) {
    let watch = move || {
        let watch = Watch::of(blocked);
        let mut seen = vec![None; peers.count()];
        loop {
            std::thread::sleep(watch.every);
            for (worker, last) in seen.iter_mut().enumerate() {
                let Some(beat) = peers.heartbeat(worker) else { continue };
                match watch.look(last, beat) {
                    Some(Found::Stuck(ran)) => report(worker, beat, ran),
                    Some(Found::Blocks(ran)) => crate::say::warning(&format!(
                        "thread {} has stopped processing traffic for {} milliseconds: what it does takes long.",
                        worker + 1,
                        ran.as_millis()
                    )),
                    None => {}
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
        Heartbeat { thread: 0, turns, polling, busy: Duration::from_millis(ran) }
    }

    const USUAL: Watch = Watch { every: EVERY, blocked: Duration::from_secs(1) };

    /// The look at which a worker is found to hang that runs for so long between two of them.
    fn found(step: u64) -> Option<u64> {
        let mut last = None;
        let mut look = |n| USUAL.look(&mut last, beat(7, false, n * step));
        (0..200).find(|n| matches!(look(*n), Some(Found::Stuck(_))))
    }

    #[test]
    fn whoever_runs_on_in_one_turn_hangs() {
        assert_eq!(found(500), Some(9));
    }

    #[test]
    fn whoever_waits_for_a_processor_does_not_hang() {
        // A twentieth of one for as long as a blocked one may take.
        let looks = (LONGEST.as_millis() / EVERY.as_millis()) as u64;
        assert_eq!(found(25), Some(looks + 1));
        let mut last = None;
        for turn in 0..100 {
            for look in 0..looks {
                assert_eq!(USUAL.look(&mut last, beat(turn, false, turn * 50 + look)), None);
            }
        }
    }

    #[test]
    fn whoever_polls_waits_for_events_however_long() {
        let mut last = None;
        assert!((0..10_000).all(|look| USUAL.look(&mut last, beat(7, true, look * 500)).is_none()));
    }

    #[test]
    fn a_long_turn_is_told_once() {
        let watch = Watch::of(Duration::from_millis(100));
        assert_eq!(watch.every, Duration::from_millis(50));
        let mut last = None;
        let told: Vec<_> = (0..10).map(|n| watch.look(&mut last, beat(7, false, n * 50))).collect();
        let expected = Some(Found::Blocks(Duration::from_millis(100)));
        assert!(
            told.iter().enumerate().all(|(n, found)| *found == expected && n == 2 || found.is_none()),
            "{told:?}"
        );
        assert!((0..10).all(|n| watch.look(&mut last, beat(8 + n, false, 600 + n * 99)).is_none()));
    }
}
