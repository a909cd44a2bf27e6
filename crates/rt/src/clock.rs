//! The coarse clocks and the random numbers of a thread.
//!
//! Reading the clock costs about 20 ns, a request asks for it a dozen times, and within one turn of the loop
//! the answer hardly changes: so the worker reads it once per turn and everybody else reads a thread-local
//! integer. The date is derived from a second clock only when somebody asks for it during the turn. In a
//! simulated world the world sets both.

use std::cell::Cell;

use base::time::{Mono, Wall};
use rustix::time::{ClockId, clock_gettime};

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    /// The date of this turn; 0 until somebody asks.
    static WALL: Cell<u64> = const { Cell::new(0) };
    /// Added to NOW (in microseconds) to get the date in a simulated world; 0 outside.
    static VIRTUAL_EPOCH: Cell<u64> = const { Cell::new(0) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// The monotonic clock as of this turn of the loop; outside a worker, read now.
#[inline]
pub fn now() -> Mono {
    match NOW.get() {
        0 => precise(),
        nanos => Mono::from_nanos(nanos),
    }
}

/// The date as of this turn of the loop; outside a worker, read now.
#[inline]
pub fn wall() -> Wall {
    match WALL.get() {
        0 => read_wall(),
        micros => Wall::from_micros(micros),
    }
}

/// The monotonic clock, read now (virtual in a simulated world, where it stands still within a turn).
pub fn precise() -> Mono {
    if VIRTUAL_EPOCH.get() != 0 {
        return Mono::from_nanos(NOW.get());
    }
    Mono::from_nanos(monotonic())
}

/// How long before the kernel's zero ours lies: longer than any duration of a configuration, so that "an hour
/// ago" exists on a machine that has just started.
const BEFORE_BOOT: u64 = (1 << 32) * 1_000_000;

fn monotonic() -> u64 {
    read(ClockId::Monotonic, 1_000_000_000) + BEFORE_BOOT
}

/// Microseconds on the kernel's own monotonic clock, for those who read it as well (sd_notify(3),
/// `MONOTONIC_USEC`).
pub fn kernel_micros() -> u64 {
    read(ClockId::Monotonic, 1_000_000)
}

fn read_wall() -> Wall {
    let epoch = VIRTUAL_EPOCH.get();
    if epoch != 0 {
        return Wall::from_micros(epoch + NOW.get() / 1_000);
    }
    let micros = read(ClockId::Realtime, 1_000_000);
    if NOW.get() != 0 {
        WALL.set(micros);
    }
    Wall::from_micros(micros)
}

/// Reads a clock as a number of `unit`ths of a second.
fn read(clock: ClockId, unit: u64) -> u64 {
    let t = clock_gettime(clock);
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    seconds * unit + t.tv_nsec as u64 / (1_000_000_000 / unit)
}

/// A new turn of the loop begins.
#[inline]
pub(crate) fn refresh() {
    NOW.set(monotonic());
    WALL.set(0);
}

/// The world says what time it is; `epoch` is the date of instant zero, in microseconds, not 0.
pub(crate) fn set_virtual(now: Mono, epoch: u64) {
    NOW.set(now.as_nanos().max(1));
    VIRTUAL_EPOCH.set(epoch);
    WALL.set(0);
}

/// The worker leaves this thread: the clocks are read on demand again.
pub(crate) fn leave() {
    NOW.set(0);
    WALL.set(0);
    VIRTUAL_EPOCH.set(0);
}

/// A number from the thread's generator (SplitMix64): fast and well spread, not for secrets. Seeded from the
/// kernel; in a simulated world from its seed.
#[inline]
pub fn random() -> u64 {
    let mut state = RANDOM.get();
    if state == 0 {
        state = kernel_seed();
    }
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    RANDOM.set(state);
    mix(state)
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Sets the state of this thread's generator and returns the former one.
pub(crate) fn seed_random(seed: u64) -> u64 {
    RANDOM.replace(seed)
}

#[cold]
fn kernel_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // RandomState is keyed by the kernel's generator, and differently each time.
    RandomState::new().hash_one(precise().as_nanos()) | 1
}
