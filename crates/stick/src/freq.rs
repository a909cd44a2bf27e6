//! Events per period, as an entry keeps them: sixteen bytes.
//!
//! Two periods are remembered, the running one and the one before. The first event opens the first period;
//! later ones follow at multiples of the period, and a silence of two periods starts anew. What is read is
//! the running count plus that part of the previous one which the period, looking back from now, still
//! covers. (`base::rate` does the same for many threads at once.)

/// A rate as it is told to peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawRate {
    /// Milliseconds since the running period began.
    pub age: u64,
    /// Events in it.
    pub current: u32,
    /// Events in the one before.
    pub before: u32,
}

/// Bytes that a rate takes.
pub const BYTES: usize = 16;

/// A rate as a number: the start of the running period plus one (0: none yet), its count, the count before.
struct Rate {
    start: u64,
    current: u32,
    before: u32,
}

fn load(cell: &[u8]) -> Rate {
    let all = cell.first_chunk().map_or(0, |all| u128::from_ne_bytes(*all));
    Rate { start: all as u64, current: (all >> 64) as u32, before: (all >> 96) as u32 }
}

fn store(cell: &mut [u8], rate: Rate) {
    if let Some(all) = cell.first_chunk_mut() {
        let counts = u128::from(rate.before) << 32 | u128::from(rate.current);
        *all = (counts << 64 | u128::from(rate.start)).to_ne_bytes();
    }
}

/// Counts `events` at `now` in periods of `period` ms; the count of a period stays within 32 bits.
pub fn add(cell: &mut [u8], now: u64, period: u32, events: u64) {
    let mut rate = load(cell);
    let period = u64::from(period.max(1));
    let age = now.saturating_sub(rate.start.wrapping_sub(1));
    if rate.start == 0 || age >= 2 * period {
        rate = Rate { start: now + 1, current: 0, before: 0 };
    } else if age >= period {
        rate = Rate { start: rate.start + period, current: 0, before: rate.current };
    }
    rate.current = rate.current.saturating_add(count(events));
    store(cell, rate);
}

/// The events of the period that ends at `now`.
pub fn read(cell: &[u8], now: u64, period: u32) -> u64 {
    let Rate { start, current, before } = load(cell);
    let (current, before) = (u64::from(current), u64::from(before));
    let period = u64::from(period.max(1));
    let age = now.saturating_sub(start.wrapping_sub(1));
    let (current, before, age) = match age {
        _ if start == 0 => return 0,
        a if a < period => (current, before, a),
        a if a < 2 * period => (0, current, a - period),
        _ => return 0,
    };
    if current == 0 && before <= 1 {
        return before; // one event a period reads as 1, not as 1 and 0 in turns
    }
    current + before * (period - age) / period
}

/// Makes `read` answer `events` now (`set table`).
pub fn set(cell: &mut [u8], now: u64, events: u64) {
    store(cell, Rate { start: now + 1, current: count(events), before: 0 });
}

/// What peers are told.
pub fn tell(cell: &[u8], now: u64) -> RawRate {
    let Rate { start, current, before } = load(cell);
    let age = if start == 0 { 0 } else { now.saturating_sub(start - 1) };
    RawRate { age, current, before }
}

/// What a peer has told. A period that began before this machine did is over.
pub fn learn(cell: &mut [u8], now: u64, rate: RawRate) {
    let known = match now.checked_sub(rate.age) {
        Some(start) if (rate.current, rate.before) != (0, 0) => {
            Rate { start: start + 1, current: rate.current, before: rate.before }
        }
        _ => Rate { start: 0, current: 0, before: 0 },
    };
    store(cell, known);
}

fn count(events: u64) -> u32 {
    u32::try_from(events).unwrap_or(u32::MAX)
}
