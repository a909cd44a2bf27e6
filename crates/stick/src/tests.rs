//! What users of a table notice, in virtual time.

use std::sync::Arc;

use crate::data::{Shape, TYPES};
use crate::{Data, KeyKind, Layout, Row, Settings, SrvKey, Table, Trackers};

fn table(size: u32, expire: u64, nopurge: bool, store: &[(Data, usize, u32)]) -> Arc<Table> {
    let mut layout = Layout::default();
    for (data, count, period) in store {
        assert!(layout.store(*data, *count, *period));
    }
    let settings = Settings {
        name: "t".into(),
        kind: KeyKind::Text(32),
        size,
        expire,
        nopurge,
        recv_only: false,
        write_to: None,
        srvkey: SrvKey::Name,
        brates_factor: 1,
        peers: None,
        layout,
    };
    Arc::new(Table::new(settings, 7))
}

fn each<T>(table: &Arc<Table>, now: u64, look: impl Fn(&Row<'_>) -> T) -> Vec<T> {
    let mut walk = table.walk();
    std::iter::from_fn(|| walk.advance(now).map(|row| look(&row))).collect()
}

fn keys(table: &Arc<Table>, now: u64) -> Vec<String> {
    each(table, now, |row| String::from_utf8_lossy(row.key()).into_owned())
}

fn remove(table: &Arc<Table>, key: &[u8], now: u64) -> bool {
    table.peek(key, now).is_some_and(Row::remove)
}

#[test]
fn types_stand_at_the_place_of_their_number() {
    for (i, entry) in TYPES.iter().enumerate() {
        assert_eq!(entry.data as usize, i, "{}", entry.name);
        assert_eq!(Data::from_name(entry.name), Some(entry.data));
        assert_eq!(entry.name.ends_with("_rate"), entry.shape == Shape::Rate);
    }
}

#[test]
fn an_entry_expires_when_it_was_not_used_for_the_time_given() {
    let t = table(10, 1000, false, &[(Data::Gpc0, 1, 0)]);
    drop(t.enter(b"a", 0));
    assert!(t.find(b"a", 999).is_some(), "looking does not touch");
    assert!(t.find(b"a", 1000).is_none());
    assert_eq!(t.used(1000), 0);
    drop(t.enter(b"a", 2000));
    drop(t.enter(b"a", 2900));
    assert!(t.find(b"a", 3899).is_some(), "using it gives it more time");
    assert!(t.find(b"a", 3900).is_none());
}

#[test]
fn an_expired_entry_that_is_met_again_starts_anew() {
    let t = table(10, 1000, false, &[(Data::Gpc0, 1, 0)]);
    t.enter(b"a", 0).unwrap().row(0).add(Data::Gpc0, 0, 5);
    let again = t.enter(b"a", 1500).unwrap();
    assert_eq!(again.row(1500).get(Data::Gpc0, 0), Some(0));
    assert_eq!(t.used(1500), 1);
}

#[test]
fn what_is_tracked_does_not_expire() {
    let t = table(10, 1000, false, &[(Data::ConnCur, 1, 0)]);
    let mut trackers = Trackers::default();
    trackers.start(0, t.enter(b"a", 0).unwrap(), 0, |_| ());
    assert_eq!(t.find(b"a", 60_000).unwrap().row(60_000).get(Data::ConnCur, 0), Some(1));
    assert_eq!(t.used(60_000), 1);
    trackers.stop(60_000);
    let t2 = t.find(b"a", 60_999).unwrap();
    let row = t2.row(60_999);
    assert_eq!((row.get(Data::ConnCur, 0), row.uses()), (Some(0), 1));
    drop(row);
    drop(t2);
    assert!(t.find(b"a", 61_000).is_none());
}

#[test]
fn a_full_table_gives_up_its_oldest_entry() {
    let t = table(3, 0, false, &[]);
    for (now, key) in [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"a")] {
        drop(t.enter(key, now));
    }
    assert!(t.enter(b"d", 5).is_some());
    assert_eq!(keys(&t, 5), ["a", "c", "d"], "b was used least lately");
}

#[test]
fn what_is_tracked_makes_no_room() {
    let t = table(2, 0, false, &[]);
    let held = t.enter(b"a", 1).unwrap();
    drop(t.enter(b"b", 1));
    let c = t.enter(b"c", 1).unwrap();
    assert_eq!(keys(&t, 1), ["a", "c"]);
    assert!(t.enter(b"d", 2).is_none(), "both are held");
    drop((held, c));
    assert!(t.enter(b"d", 3).is_some());
}

#[test]
fn what_was_held_goes_back_to_its_place_in_the_order() {
    let t = table(4, 0, false, &[]);
    for (now, key) in [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"d")] {
        drop(t.enter(key, now));
    }
    let held = [t.find(b"a", 5), t.find(b"b", 5)];
    drop(t.enter(b"e", 5));
    assert_eq!(keys(&t, 5), ["a", "b", "d", "e"], "what is held stays");
    drop(held);
    drop(t.enter(b"f", 6));
    assert_eq!(keys(&t, 6), ["b", "d", "e", "f"], "looking has not touched it");
    drop(t.enter(b"g", 7));
    assert_eq!(keys(&t, 7), ["d", "e", "f", "g"]);
}

#[test]
fn places_are_used_again_and_keep_nothing() {
    let t = table(1000, 0, false, &[(Data::ServerKey, 1, 0), (Data::Gpc0, 1, 0)]);
    for round in 0..3u64 {
        for i in 0..500u64 {
            let held = t.enter(&i.to_be_bytes(), round).unwrap();
            let mut row = held.row(round);
            assert_eq!((row.server().is_none(), row.get(Data::Gpc0, 0)), (true, Some(0)));
            row.set_server(&"s".into());
            row.add(Data::Gpc0, 0, round + 1);
        }
        let sum: u64 = each(&t, round, |row| row.get(Data::Gpc0, 0).unwrap()).iter().sum();
        assert_eq!(sum, 500 * (round + 1));
        assert!((0..500u64).all(|i| remove(&t, &i.to_be_bytes(), round)));
        assert_eq!(t.used(round), 0);
    }
}

#[test]
fn an_entry_is_little_more_than_what_it_holds() {
    let mut layout = Layout::default();
    for (data, period) in
        [(Data::Gpc0, 0), (Data::HttpReqRate, 10_000), (Data::ConnCnt, 0), (Data::BytesOutCnt, 0)]
    {
        layout.store(data, 1, period);
    }
    assert_eq!((size_of::<crate::slab::Head>(), layout.bytes()), (24, 32));
}

#[test]
fn without_purging_a_full_table_refuses_new_keys_until_old_ones_expire() {
    let t = table(2, 100, true, &[]);
    drop(t.enter(b"a", 0));
    drop(t.enter(b"b", 50));
    assert!(t.enter(b"c", 60).is_none());
    assert!(t.enter(b"b", 60).is_some(), "known keys still are found");
    assert!(t.enter(b"c", 100).is_some());
    assert_eq!(keys(&t, 100), ["b", "c"]);
}

#[test]
fn a_large_table_gives_up_its_oldest_entries_wherever_they_are() {
    let t = table(5120, 0, false, &[]);
    for i in 0u64..5120 {
        drop(t.enter(&i.to_be_bytes(), i));
    }
    drop(t.enter(b"new", 6000));
    assert_eq!(t.used(6000), 5120 - 21 + 1, "one in 256, and one");
    for i in 0u64..21 {
        assert!(t.find(&i.to_be_bytes(), 6000).is_none(), "{i}");
    }
    assert!(t.find(&21u64.to_be_bytes(), 6000).is_some());
}

#[test]
fn clearing_and_filling_again_leaves_no_litter_behind() {
    let t = table(2, 0, false, &[]);
    for i in 0..1000u64 {
        let held = t.enter(&i.to_be_bytes(), i).unwrap();
        assert!(!remove(&t, &i.to_be_bytes(), i), "it is held");
        drop(held);
        assert!(remove(&t, &i.to_be_bytes(), i));
    }
    assert_eq!(t.used(1000), 0);
}

#[test]
fn arrays_answer_for_the_single_counters() {
    let t = table(2, 0, false, &[(Data::Gpc, 3, 0), (Data::GpcRate, 2, 1000), (Data::Gpt, 1, 0)]);
    let held = t.enter(b"a", 0).unwrap();
    let mut row = held.row(0);
    assert_eq!(row.add(Data::Gpc1, 0, 4), Some(4));
    assert_eq!(row.get(Data::Gpc, 1), Some(4));
    assert_eq!(row.get(Data::Gpc, 3), None);
    assert_eq!(row.add(Data::Gpc1Rate, 0, 2), Some(2));
    assert_eq!(row.get(Data::GpcRate, 1), Some(2));
    assert!(row.set(Data::Gpt0, 0, 1 << 33 | 9));
    assert_eq!(row.get(Data::Gpt, 0), Some(9), "tags have 32 bits");
    assert_eq!(row.add(Data::ConnCnt, 0, 1), None, "not stored");
}

#[test]
fn a_rate_starts_with_its_first_event_and_fades() {
    let t = table(2, 0, false, &[(Data::ConnRate, 1, 60_000)]);
    let held = t.enter(b"a", 0).unwrap();
    // Just before a full minute of the clock: the events still are in one period.
    for now in [59_998, 59_999, 60_000, 60_001] {
        held.row(now).add(Data::ConnRate, 0, 1);
    }
    let read = |now| held.row(now).get(Data::ConnRate, 0);
    assert_eq!(read(60_001), Some(4));
    assert_eq!(read(119_997), Some(4));
    assert_eq!(read(119_998 + 30_000), Some(2));
    assert_eq!(read(119_998 + 60_000), Some(0));
    held.row(500_000).set(Data::ConnRate, 0, 33);
    assert_eq!(read(500_500), Some(33));
}

#[test]
fn a_steady_rate_reads_steadily() {
    let t = table(2, 0, false, &[(Data::HttpReqRate, 1, 1000)]);
    let held = t.enter(b"a", 0).unwrap();
    for now in (0..10_000).step_by(10) {
        let read = held.row(now).add(Data::HttpReqRate, 0, 1).unwrap();
        if now > 2000 {
            assert!((99..=101).contains(&read), "{read} at {now}");
        }
    }
}

#[test]
fn keys_are_printed_so_that_lines_stay_lines() {
    let print = |kind: KeyKind, key: &[u8]| {
        let mut out = String::new();
        kind.print(key, &mut out);
        out
    };
    assert_eq!(print(KeyKind::Ip, &[10, 0, 0, 1]), "10.0.0.1");
    assert_eq!(print(KeyKind::Integer, &[0, 0, 1, 2]), "258");
    assert_eq!(print(KeyKind::Binary(3), b"\x2fxz"), "2F787A");
    assert_eq!(print(KeyKind::Text(9), b"a b\n\\"), "a\\ b\\n\\\\");
    assert_eq!(print(KeyKind::Ipv6, &[0; 16]), "::");
}

#[test]
fn threads_share_a_table_without_losing_counts() {
    let t = table(2000, 0, false, &[(Data::HttpReqCnt, 1, 0), (Data::ConnCur, 1, 0)]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..5000u64 {
                    let mut trackers = Trackers::default();
                    let held = t.enter(&(i % 50).to_be_bytes(), i).unwrap();
                    trackers.start(0, held, i, |row| {
                        let _ = row.add(Data::HttpReqCnt, 0, 1);
                    });
                    trackers.stop(i);
                }
            });
        }
    });
    let entries = each(&t, 9999, |row| (row.get(Data::HttpReqCnt, 0).unwrap(), row.uses()));
    let sum: u64 = entries.iter().map(|(requests, _)| requests).sum();
    assert_eq!((entries.len(), sum, t.used(9999)), (50, 20_000, 50));
    assert!(entries.iter().all(|(_, uses)| *uses == 0));
}

#[test]
fn a_walk_that_pauses_sees_each_entry_once_and_none_that_is_gone() {
    let t = table(5000, 1000, false, &[]);
    for n in 0..4000u32 {
        drop(t.enter(&n.to_be_bytes(), 0));
    }
    let mut walk = t.walk();
    let mut seen: std::collections::HashSet<_> =
        (0..100).map(|_| walk.advance(10).unwrap().key().to_vec()).collect();
    // What was touched lives on; what is new may be seen or not, and is left out of the count.
    for n in 0..2000u32 {
        drop(t.enter(&n.to_be_bytes(), 900));
    }
    while let Some(entry) = walk.advance(1500) {
        assert!(seen.insert(entry.key().to_vec()), "twice");
        assert!(entry.key() < &2000u32.to_be_bytes()[..], "it has expired");
    }
    assert!((0..2000u32).all(|n| seen.contains(&n.to_be_bytes()[..])));
}

/// A table that peers share.
fn shared(size: u32) -> Arc<Table> {
    let mut settings = table(size, 1000, false, &[(Data::Gpc0, 1, 0)]).settings().clone();
    settings.peers = Some("p".into());
    Arc::new(Table::new(settings, 7))
}

/// The keys that whoever reads from these places is told of.
fn news(t: &Table, cursors: &mut [crate::Cursor], now: u64) -> Vec<String> {
    let mut told = Vec::new();
    for (part, cursor) in (0..).zip(cursors) {
        t.news(part, cursor, now, usize::MAX, |row| {
            told.push(String::from_utf8_lossy(row.key()).into_owned());
        });
    }
    told
}

#[test]
fn readers_of_changes_are_told_of_each_entry_once_in_the_order_of_changes() {
    let t = shared(100);
    let mut one = [crate::Cursor::default()];
    let mut two = [crate::Cursor::default()];
    for key in [b"a", b"b", b"c"] {
        drop(t.enter(key, 0));
    }
    t.enter(b"a", 1).unwrap().touched_row(1).add(Data::Gpc0, 0, 1);
    assert_eq!(news(&t, &mut one, 1), ["a", "b", "c"], "changed again before anybody was told");
    assert!(!t.has_news(0, one[0]));
    t.enter(b"a", 2).unwrap().touched_row(2).add(Data::Gpc0, 0, 1);
    assert_eq!(news(&t, &mut one, 2), ["a"]);
    assert_eq!(news(&t, &mut two, 2), ["b", "c", "a"]);
    assert!(remove(&t, b"b", 3));
    assert_eq!(news(&t, &mut [crate::Cursor::default()], 3), ["c", "a"]);
}

#[test]
fn what_was_learned_is_told_to_nobody() {
    let t = shared(100);
    let mut cursor = [crate::Cursor::default()];
    let mut row = t.learned(b"a", 100).unwrap();
    row.set(Data::Gpc0, 0, 3);
    row.set_idle(40);
    row.keep_quiet();
    drop(row);
    assert_eq!(news(&t, &mut cursor, 100), [""; 0]);
    assert_eq!(t.peek(b"a", 100).unwrap().expires_in(), 960);
    assert!(t.peek(b"a", 1060).is_none());
}

#[test]
fn many_changes_of_few_entries_leave_few_records() {
    let t = shared(100);
    let mut cursor = [crate::Cursor::default()];
    for round in 0..10_000u64 {
        drop(t.enter(&(round % 10).to_be_bytes(), 1));
        assert_eq!(news(&t, &mut cursor, 1).len(), 1);
    }
    assert!(t.shard(0).log.len() < 200);
}
