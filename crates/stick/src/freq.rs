//! Events per period, as an entry keeps them: three words.
//!
//! Two periods are remembered, the running one and the one before. The first event opens the first period; later
//! ones follow at multiples of the period, and a silence of two periods starts anew. What is read is the running
//! count plus that part of the previous one which the period, looking back from now, still covers. (`base::rate` does
//! the same for many threads at once.)

/// Words that a rate takes.
pub const WORDS: usize = 3;

/// Start of the running period plus one (0: none yet), its count, the count before.
fn parts(words: &mut [u64]) -> Option<(&mut u64, &mut u64, &mut u64)> {
    match words {
        [start, now, before] => Some((start, now, before)),
        _ => None,
    }
}

/// Counts `events` at `now` in periods of `period` ms; the count of the running period stays within 32 bits.
pub fn add(words: &mut [u64], now: u64, period: u32, events: u64) {
    let Some((start, current, before)) = parts(words) else { return };
    let period = u64::from(period.max(1));
    let age = now.saturating_sub(start.wrapping_sub(1));
    if *start == 0 || age >= 2 * period {
        (*start, *current, *before) = (now + 1, 0, 0);
    } else if age >= period {
        (*start, *before, *current) = (*start + period, *current, 0);
    }
    *current = current.saturating_add(events).min(u64::from(u32::MAX));
}

/// The events of the period that ends at `now`.
pub fn read(words: &[u64], now: u64, period: u32) -> u64 {
    let [start, current, before] = *words else { return 0 };
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
pub fn set(words: &mut [u64], now: u64, events: u64) {
    if let Some((start, current, before)) = parts(words) {
        (*start, *current, *before) = (now + 1, events.min(u64::from(u32::MAX)), 0);
    }
}
