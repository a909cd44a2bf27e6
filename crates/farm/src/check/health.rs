//! The counter of a server's health, apart from everything that happens because of it.
//!
//! ```text
//!   0 ... rise-1        down; each success counts up, a failure starts over
//!   rise ... rise+fall-1  up; each failure counts down, a success starts over at the top
//! ```
//!
//! A step over the border between the two is a verdict. What a verdict does to the server also depends on the
//! other check (health or agent) and on the state that the server is in; [`settle`] decides that. Both are
//! pure, so the whole behaviour of `rise`, `fall`, `disable-on-404`, agents and `set server health` stands in
//! tables.

use model::server::Op;

/// `rise` and `fall` of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Successes in a row that bring it up.
    pub rise: i64,
    /// Failures in a row that bring it down.
    pub fall: i64,
}

impl Limits {
    /// Those of agent checks: one answer decides.
    pub const AGENT: Limits = Limits { rise: 1, fall: 1 };

    /// The limits that a configuration names; neither is below 1.
    pub fn new(rise: u32, fall: u32) -> Limits {
        Limits { rise: i64::from(rise.max(1)), fall: i64::from(fall.max(1)) }
    }

    /// The counter of a server that never failed.
    pub fn top(self) -> i64 {
        self.rise + self.fall - 1
    }

    /// Whether the counter says up.
    pub fn is_up(self, value: i64) -> bool {
        value >= self.rise
    }

    /// The counter within its side of the border, and the size of that side: `2/3` of "2/3 UP".
    pub fn progress(self, value: i64) -> (i64, i64) {
        if self.is_up(value) { (value - self.rise + 1, self.fall) } else { (value, self.rise) }
    }
}

/// What one check found, as far as the counter cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server is fine.
    Passed,
    /// It is fine but wants no new work (404 with `disable-on-404`).
    Conditional,
    /// It failed.
    Failed,
    /// Nothing was learned: an agent that can't be reached, or had nothing to say about health.
    Neutral,
}

/// What a check wants the server to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Up.
    Up,
    /// Up, without new work.
    Stopping,
    /// Down.
    Down,
}

/// The counter after an outcome, and the verdict if there is one.
pub fn step(limits: Limits, value: i64, outcome: Outcome) -> (i64, Option<Verdict>) {
    let up = limits.is_up(value);
    match outcome {
        Outcome::Neutral => (value, None),
        Outcome::Failed if value > limits.rise => (value - 1, None),
        // Also below the border: a failure while rising starts over.
        Outcome::Failed => (0, Some(Verdict::Down)),
        Outcome::Passed if up || value + 1 >= limits.rise => (limits.top(), Some(Verdict::Up)),
        Outcome::Conditional if up || value + 1 >= limits.rise => (limits.top(), Some(Verdict::Stopping)),
        Outcome::Passed | Outcome::Conditional => (value + 1, None),
    }
}

/// The state that follows from a verdict; `None`: it stays. `other` is what the other check says (`true`
/// without one).
pub fn settle(now: Op, verdict: Verdict, other: bool) -> Option<Op> {
    let next = match verdict {
        Verdict::Down => Op::Stopped,
        Verdict::Up if !other => return None,
        Verdict::Up if now == Op::Starting => return None,
        Verdict::Up => Op::Running,
        // A server that is down stays so.
        Verdict::Stopping if now == Op::Stopped => return None,
        Verdict::Stopping => Op::Stopping,
    };
    (next != now).then_some(next)
}

/// What `on-error` makes of the counter just before the failure that it simulates.
pub fn before_error(limits: Limits, value: i64, how: program::server::OnError) -> i64 {
    use program::server::OnError;
    match how {
        OnError::FastInter | OnError::FailCheck => value,
        OnError::SuddenDeath if value > limits.rise => limits.rise + 1,
        OnError::SuddenDeath => value,
        OnError::MarkDown if limits.is_up(value) => limits.rise,
        OnError::MarkDown => value,
    }
}

#[cfg(test)]
mod tests {
    use program::server::OnError;

    use super::*;

    const L: Limits = Limits { rise: 2, fall: 3 };

    fn walk(from: i64, outcomes: &str) -> Vec<(i64, Option<Verdict>)> {
        let mut value = from;
        let each = outcomes.chars().map(|c| {
            let outcome = match c {
                '+' => Outcome::Passed,
                '~' => Outcome::Conditional,
                '-' => Outcome::Failed,
                _ => Outcome::Neutral,
            };
            let (next, verdict) = step(L, value, outcome);
            value = next;
            (next, verdict)
        });
        each.collect()
    }

    #[test]
    fn it_falls_after_fall_failures_and_rises_after_rise_successes() {
        let down = Some(Verdict::Down);
        assert_eq!(walk(4, "---"), [(3, None), (2, None), (0, down)]);
        assert_eq!(walk(0, "++"), [(1, None), (4, Some(Verdict::Up))]);
        assert_eq!(walk(0, "+-+"), [(1, None), (0, down), (1, None)]);
        assert_eq!(walk(4, "--+-"), [(3, None), (2, None), (4, Some(Verdict::Up)), (3, None)]);
    }

    #[test]
    fn a_server_that_just_started_falls_at_once_and_rises_at_once() {
        assert_eq!(walk(2, "-"), [(0, Some(Verdict::Down))]);
        assert_eq!(walk(2, "+"), [(4, Some(Verdict::Up))]);
        assert_eq!(walk(1, "+"), [(4, Some(Verdict::Up))]);
    }

    #[test]
    fn a_conditional_success_counts_like_another_and_stops_the_server() {
        assert_eq!(walk(3, "~"), [(4, Some(Verdict::Stopping))]);
        assert_eq!(walk(0, "~~"), [(1, None), (4, Some(Verdict::Stopping))]);
        assert_eq!(walk(3, "?"), [(3, None)]);
    }

    #[test]
    fn progress_is_counted_on_each_side() {
        let text = |v| L.progress(v);
        assert_eq!([0, 1, 2, 3, 4].map(text), [(0, 2), (1, 2), (1, 3), (2, 3), (3, 3)]);
    }

    #[test]
    fn states_follow_verdicts() {
        use Op::*;
        let table = [
            (Running, Verdict::Down, true, Some(Stopped)),
            (Stopped, Verdict::Down, true, None),
            (Stopping, Verdict::Down, true, Some(Stopped)),
            (Stopped, Verdict::Up, true, Some(Running)),
            (Stopped, Verdict::Up, false, None),
            (Running, Verdict::Up, true, None),
            (Starting, Verdict::Up, true, None),
            (Stopping, Verdict::Up, true, Some(Running)),
            (Running, Verdict::Stopping, true, Some(Stopping)),
            (Starting, Verdict::Stopping, true, Some(Stopping)),
            (Stopped, Verdict::Stopping, true, None),
        ];
        for (now, verdict, other, next) in table {
            assert_eq!(settle(now, verdict, other), next, "{now:?} {verdict:?} {other}");
        }
    }

    #[test]
    fn on_error_shortens_the_way_down() {
        let after = |how, from| step(L, before_error(L, from, how), Outcome::Failed).0;
        assert_eq!(after(OnError::FailCheck, 4), 3);
        assert_eq!(after(OnError::SuddenDeath, 4), 2);
        assert_eq!(after(OnError::SuddenDeath, 2), 0);
        assert_eq!(after(OnError::MarkDown, 4), 0);
    }
}
