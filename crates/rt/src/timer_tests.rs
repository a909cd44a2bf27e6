use super::*;
use crate::waker::Tag;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Mono {
    Mono::from_nanos(ms * MS)
}

fn task(n: u32) -> TaskId {
    TaskId::new(Tag::new(1, 1), n, 0)
}

/// Adds a timer of task `n` at `ms`.
fn add(wheel: &mut Wheel, n: u32, ms: u64) -> u32 {
    let key = wheel.insert();
    wheel.entries[key as usize].task = task(n);
    wheel.set(key, at(ms));
    key
}

/// Advances as the loop does, from one promise to the next; returns (task slot, time).
fn drain(wheel: &mut Wheel, until: u64) -> Vec<(u32, u64)> {
    let mut fired = Vec::new();
    while let Some(next) = wheel.next().filter(|&n| n <= at(until)) {
        let mut expired = Vec::new();
        wheel.advance(next, &mut expired);
        fired.extend(expired.iter().map(|t| (t.slot(), next.as_millis())));
    }
    fired
}

#[test]
fn timers_expire_in_order_and_on_time_at_every_distance() {
    let mut wheel = Wheel::new(at(123));
    let mut times: Vec<u64> =
        (0..38).flat_map(|p| [1u64 << p, (1 << p) + 1, (1 << p) * 3 / 2]).map(|d| 123 + d).collect();
    for (n, &ms) in times.iter().enumerate() {
        add(&mut wheel, n as u32, ms);
    }
    let fired = drain(&mut wheel, u64::MAX / MS);
    let order: Vec<u64> = fired.iter().map(|f| f.1).collect();
    for &(n, ms) in &fired {
        assert_eq!(times[n as usize], ms);
    }
    times.sort();
    assert_eq!(order, times);
}

#[test]
fn a_deadline_moved_later_is_kept_and_costs_no_move() {
    let mut wheel = Wheel::new(at(0));
    let key = add(&mut wheel, 1, 100);
    for ms in 101..5000 {
        wheel.set(key, at(ms));
        assert_eq!(wheel.entries[key as usize].tick, 100, "the promise stays");
    }
    assert_eq!(drain(&mut wheel, 10_000), [(1, 4999)]);
}

#[test]
fn a_deadline_moved_earlier_expires_earlier() {
    let mut wheel = Wheel::new(at(0));
    let key = add(&mut wheel, 1, 100_000);
    wheel.set(key, at(7));
    assert_eq!(drain(&mut wheel, 200_000), [(1, 7)]);
}

#[test]
fn cleared_and_removed_timers_do_not_expire() {
    let mut wheel = Wheel::new(at(0));
    let cleared = add(&mut wheel, 1, 50);
    let removed = add(&mut wheel, 2, 50);
    add(&mut wheel, 3, 50);
    wheel.set(cleared, Mono::FAR);
    wheel.remove(removed);
    assert_eq!(drain(&mut wheel, 1000), [(3, 50)]);
    assert_eq!(wheel.len(), 2);
    wheel.set(cleared, at(2000));
    assert_eq!(drain(&mut wheel, 3000), [(1, 2000)]);
}

#[test]
fn a_late_loop_expires_everything_that_passed() {
    let mut wheel = Wheel::new(at(0));
    for n in 0..1000 {
        add(&mut wheel, n, 1 + u64::from(n) * 7);
    }
    let mut expired = Vec::new();
    wheel.advance(at(3500), &mut expired);
    assert_eq!(expired.len(), 500);
    wheel.advance(at(100_000), &mut expired);
    assert_eq!(expired.len(), 1000);
    assert_eq!(wheel.next(), None);
}

#[test]
fn many_random_timers_agree_with_a_sorted_list() {
    let mut wheel = Wheel::new(at(1000));
    let mut seed = 7u64;
    let mut random = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::clock::mix(seed)
    };
    let mut times = Vec::new();
    let mut keys = Vec::new();
    for n in 0..10_000 {
        let ms = 1001 + random() % (1 << (random() % 24));
        keys.push(add(&mut wheel, n, ms));
        times.push(ms);
    }
    for (n, &key) in keys.iter().enumerate() {
        if random() % 2 == 0 {
            times[n] = 1001 + random() % (1 << (random() % 24));
            wheel.set(key, at(times[n]));
        }
    }
    let fired = drain(&mut wheel, u64::MAX / MS);
    assert_eq!(fired.len(), 10_000);
    assert!(fired.iter().all(|&(n, ms)| times[n as usize] == ms));
    assert!(fired.is_sorted_by_key(|f| f.1));
}
