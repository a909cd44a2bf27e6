//! A bandwidth limit: bytes over a sliding period, of one stream or shared by all that hold an entry of a
//! table.

use base::rate::Rate;
use lang::bandwidth::Bwlim;
use lang::filter::Gate;
use model::bandwidth::{Bandwidth, Share};

/// A limit at work.
pub struct Limit {
    settings: Bandwidth,
    /// What this stream passed; not used with a shared limit.
    own: Rate,
    /// When it was first asked, ms: its periods begin there.
    start: Option<u64>,
    /// Until when nothing goes, ms: what went has its share of the period, so that no period begins with all
    /// of it.
    next: u64,
}

impl Limit {
    /// A limit of a stream that passed nothing yet.
    pub fn new(settings: Bandwidth) -> Limit {
        Limit { settings, own: Rate::new(), start: None, next: 0 }
    }

    /// The time of its own clock, ms.
    fn own_time(&self, now: u64, period: u32) -> u64 {
        now.saturating_sub(self.start.unwrap_or(now)) + u64::from(period)
    }

    /// The bytes of the last period, its length, and how many streams share the limit.
    fn used(&self, now: u64) -> (u64, u64, u64) {
        match &self.settings.share {
            Share::Alone { period } => {
                (self.own.read(self.own_time(now, *period), *period), u64::from(*period), 1)
            }
            Share::Entry(held) => {
                let data = Bwlim::data(self.settings.upload);
                let period = held.table().layout().column(data).map_or(1000, |c| u64::from(c.period));
                let row = held.row(now);
                (row.get(data, 0).unwrap_or(0), period, u64::from(row.uses().max(1)))
            }
        }
    }
}

impl Gate for Limit {
    fn admit(&mut self, now: u64, ready: usize) -> Result<usize, u64> {
        self.start.get_or_insert(now);
        if now < self.next {
            return Err(self.next - now);
        }
        let (used, period, users) = self.used(now);
        let limit = self.settings.limit.max(1);
        let share = (limit.saturating_sub(used) + users / 2) / users;
        // Crumbs are not worth a system call each: a hundredth of the limit at least, or what is left.
        let least = self.settings.min_size.max(limit / 100).max(1).min(limit / users).max(1);
        let ready = ready as u64;
        if share >= least.min(ready) {
            return Ok(usize::try_from(share.min(ready)).unwrap_or(usize::MAX));
        }
        let short = (least.min(ready) * users).saturating_sub(limit.saturating_sub(used));
        Err((period.saturating_mul(short) / limit).clamp(1, period))
    }

    fn passed(&mut self, now: u64, bytes: &[u8]) {
        let n = bytes.len() as u64;
        let (_, period, users) = self.used(now);
        let pause = n.saturating_mul(period).saturating_mul(users) / self.settings.limit.max(1);
        self.next = now.max(self.next).saturating_add(pause);
        match &self.settings.share {
            Share::Alone { period } => self.own.add(self.own_time(now, *period), *period, n),
            Share::Entry(held) => {
                held.touched_row(now).add(Bwlim::data(self.settings.upload), 0, n);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(limit: u64, period: u32, min_size: u64) -> Limit {
        let share = Share::Alone { period };
        Limit::new(Bandwidth { order: 0, upload: false, min_size, limit, share })
    }

    /// Bytes that pass in a time, when there is always more.
    fn pass(limit: &mut Limit, from: u64, to: u64) -> u64 {
        let (mut now, mut sum) = (from, 0);
        while now < to {
            match limit.admit(now, 16384) {
                Ok(n) => {
                    limit.passed(now, &vec![0; n]);
                    sum += n as u64;
                }
                Err(wait) => now += wait,
            }
        }
        sum
    }

    #[test]
    fn a_stream_passes_its_limit_in_each_period() {
        let mut limit = alone(10_000, 1000, 0);
        // What fits one piece passes at once and has its share of the period.
        assert_eq!(pass(&mut limit, 10_250, 11_200), 10_000);
        let more = pass(&mut limit, 11_200, 15_250);
        assert!((38_000..=41_000).contains(&more), "{more} in 4 s");
    }

    #[test]
    fn a_long_period_does_not_pass_at_once() {
        let mut limit = alone(100_000, 10_000, 0);
        assert_eq!(limit.admit(5_000, 16_384), Ok(16_384));
        limit.passed(5_000, &[0; 16_384]);
        assert_eq!(limit.admit(5_000, 16_384), Err(1_638), "its share of the period");
        let sum = 16_384 + pass(&mut limit, 6_638, 9_000);
        assert!((30_000..=50_000).contains(&sum), "{sum} in 4 s");
    }

    #[test]
    fn small_pieces_wait_until_they_are_worth_it() {
        let mut limit = alone(10_000, 1000, 3_000);
        assert!(limit.admit(10_000, 16384).is_ok());
        limit.passed(10_000, &[0; 9_000]);
        assert_eq!(limit.admit(10_001, 16384), Err(899));
        assert!(limit.admit(10_900, 16384).is_err());
        // The last bytes of a message go even so.
        assert_eq!(limit.admit(10_900, 500), Ok(500));
    }
}
