use std::sync::Arc;

use crate::{Found, Hints, Settings, Store};

fn store(blocks: usize, hints: Hints) -> Arc<Store<u32>> {
    Arc::new(Store::new(Settings {
        name: "c".into(),
        blocks,
        max_object: blocks * 512,
        max_age: 60,
        max_secondary: 2,
        vary: true,
        hints,
        ranges: false,
        wait: None,
        stale_meanwhile: 0,
        stale_on_error: 0,
        standard: false,
    }))
}

fn keep(store: &Arc<Store<u32>>, key: &[u8], meta: u32, length: usize, hints: &[u8]) -> bool {
    let Some(mut writer) = store.begin(key, 50, None) else { return false };
    if !writer.push(&vec![b'x'; length]) {
        return false;
    }
    writer.finish(meta, hints.into(), (0, 10), |m| *m == meta);
    true
}

fn is_kept(store: &Store<u32>, key: &[u8]) -> bool {
    matches!(store.find(key, 1, |_| true), Found::Fresh(_))
}

#[test]
fn what_is_whole_is_found_until_it_is_stale() {
    let store = store(100, Hints::Off);
    let mut writer = store.begin(b"a", 50, Some(3)).unwrap();
    assert!(writer.push(b"abc"));
    assert!(!is_kept(&store, b"a"));
    writer.finish(7, Box::default(), (0, 10), |_| true);
    match store.find(b"a", 9, |meta| *meta == 7) {
        Found::Fresh(entry) => assert_eq!((entry.meta, entry.body.as_slice()), (7, &b"abc"[..])),
        other => panic!("{other:?}"),
    }
    assert!(matches!(store.find(b"a", 9, |meta| *meta == 8), Found::Nothing));
    assert!(matches!(store.find(b"a", 10, |_| true), Found::Nothing));
    store.forget(b"a");
    assert_eq!(store.used(), 0);
}

#[test]
fn a_renewed_entry_has_the_body_of_the_one_before_it() {
    let store = store(100, Hints::Off);
    assert!(keep(&store, b"a", 1, 3000, b""));
    let Found::Fresh(old) = store.find(b"a", 1, |_| true) else { panic!("it is there") };
    let (used, size) = (store.used(), old.size());
    let new = store.renew(&old, 2, size + 2000, 20);
    assert!(Arc::ptr_eq(&old.body, &new.body));
    assert_eq!(store.used(), used + 2, "its head is longer");
    assert!(matches!(store.find(b"a", 15, |meta| *meta == 2), Found::Fresh(_)));
    // Of what went meanwhile nothing comes back.
    store.forget(b"a");
    store.renew(&new, 3, size, 30);
    assert!(matches!(store.find(b"a", 15, |_| true), Found::Nothing));
    assert_eq!(store.used(), 0);
}

#[test]
fn who_was_not_asked_for_the_longest_goes_first() {
    let store = store(10, Hints::Off);
    for key in [b"a", b"b", b"c"] {
        assert!(keep(&store, key, 1, 2500, b""));
    }
    assert!(is_kept(&store, b"a"));
    assert!(keep(&store, b"d", 1, 2500, b""));
    assert!(
        is_kept(&store, b"a") && !is_kept(&store, b"b") && is_kept(&store, b"c") && is_kept(&store, b"d")
    );
    assert_eq!(store.used(), 9);
}

#[test]
fn nothing_is_kept_that_is_too_long_or_breaks_off() {
    let store = store(10, Hints::Off);
    assert!(store.begin(b"a", 50, Some(5100)).is_none());
    assert!(!keep(&store, b"a", 1, 5100, b""));
    let mut writer = store.begin(b"a", 50, Some(3000)).unwrap();
    assert!(writer.push(b"abc"));
    assert_eq!(store.used(), 4);
    drop(writer);
    assert_eq!(store.used(), 0);
    assert!(store.rows(|_| ()).is_empty());
}

#[test]
fn so_many_variants_and_no_more() {
    let store = store(10, Hints::Off);
    for meta in 1..=3 {
        assert!(keep(&store, b"a", meta, 10, b""));
    }
    let found = |meta| matches!(store.find(b"a", 1, |m| *m == meta), Found::Fresh(_));
    assert!(found(1) && found(2) && !found(3));
    assert_eq!(store.used(), 2);
    // One that is there already is replaced.
    assert!(keep(&store, b"a", 2, 2000, b""));
    assert_eq!(store.used(), 4);
}

#[test]
fn links_outlive_what_had_them() {
    let store = store(10, Hints::On { ratio: 20 });
    for key in [b"a", b"b"] {
        assert!(keep(&store, key, 1, 4000, b"link: x\r\n"));
    }
    assert!(keep(&store, b"c", 1, 4000, b""));
    assert!(matches!(store.find(b"a", 1, |_| true), Found::Links(hints) if &*hints == b"link: x\r\n"));
    assert!(is_kept(&store, b"c"));
    // A whole entry takes their place again.
    assert!(keep(&store, b"a", 1, 10, b"link: x\r\n"));
    assert!(is_kept(&store, b"a"));
    assert_eq!(store.rows(|_| ()).iter().map(|row| row.blocks).sum::<usize>(), store.used());
}

#[test]
fn links_alone() {
    let store = store(3, Hints::Only);
    for key in [b"a", b"b", b"c", b"d"] {
        store.keep_links(key, b"link: x\r\n", 10);
    }
    assert!(matches!(store.find(b"a", 1, |_| true), Found::Nothing));
    assert!(matches!(store.find(b"d", 99, |_| true), Found::Links(_)));
    assert_eq!(store.used(), 3);
}

/// Threads that keep, find and forget the same few keys: what is found is whole and of its key, and the room
/// taken is that of what is there.
#[test]
fn threads_share_it() {
    let store = store(40, Hints::On { ratio: 25 });
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let store = &store;
            scope.spawn(move || {
                for turn in 0..3000_u32 {
                    let number = (turn.wrapping_mul(2_654_435_761) ^ thread) % 13;
                    let key = number.to_le_bytes();
                    match turn % 3 {
                        0 => {
                            let length = 500 * number as usize + 1;
                            let Some(mut writer) = store.begin(&key, 50, None) else { continue };
                            if writer.push(&vec![number as u8; length]) {
                                writer.finish(number, b"link: x\r\n"[..].into(), (0, 10), |_| true);
                            }
                        }
                        1 => {
                            if let Found::Fresh(entry) = store.find(&key, 1, |_| true) {
                                assert_eq!(entry.meta, number);
                                assert!(entry.body.iter().all(|b| u32::from(*b) == number));
                            }
                        }
                        _ => store.forget(&key),
                    }
                    assert!(store.used() <= 40 + 16);
                }
            });
        }
    });
    assert_eq!(store.rows(|_| ()).iter().map(|row| row.blocks).sum::<usize>(), store.used());
}
