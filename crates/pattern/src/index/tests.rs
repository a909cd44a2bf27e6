//! Every index against the list that is looked through from end to end.

use proptest::collection::vec;
use proptest::prelude::*;

use super::scan::Scan;
use super::*;
use crate::draft::Draft;
use crate::hosts::Hosts;

/// What a look-up finds, one way and the other, with some entries deleted.
fn agree(kind: Kind, fold: bool, entries: &Entries, values: &[Value<'_>], deaths: &[u32]) {
    let flags = Flags { ignore_case: fold, no_names: true };
    let index = Index::build(kind, flags, entries, Reading::default()).unwrap();
    let list = Scan::build(kind, flags, entries, Reading::default()).unwrap();
    let dead = Dead::of(entries.len());
    for deaths in [&[], deaths] {
        for n in deaths {
            dead.kill(n % entries.len());
        }
        for value in values {
            let query = Query { entries, dead: &dead, value: *value, any: false };
            let want = list.find(query);
            assert_eq!(index.find(query), want, "{kind:?} -i {fold} {value:?}");
            let any = index.find(Query { any: true, ..query });
            assert_eq!(any.is_some(), want.is_some(), "{kind:?} -i {fold} {value:?}");
        }
    }
    for n in 0..entries.len() {
        let mut found = false;
        index.written(entries, entries.text(n).unwrap(), &mut |m| found |= m == n);
        assert!(found, "{kind:?}: entry {n} is not found by its own text");
    }
}

fn entries(patterns: &[String]) -> Entries {
    let mut draft = Draft::new(false);
    patterns.iter().for_each(|p| draft.push(p.as_bytes(), None).unwrap());
    draft.finish().unwrap()
}

fn text(alphabet: &'static str, len: usize) -> impl Strategy<Value = String> {
    vec(proptest::sample::select(alphabet.chars().collect::<Vec<_>>()), 0..len)
        .prop_map(|c| c.into_iter().collect())
}

fn address() -> impl Strategy<Value = String> {
    let v4 = (0u8..3, 0u8..3, 0u8..3, 0u8..3).prop_map(|(a, b, c, d)| format!("{a}.{b}.{c}.{d}"));
    let v6 = (0u8..3, 0u8..3).prop_map(|(a, b)| format!("::ffff:{a}.0.{b}.1"));
    let other = (0u8..3, 0u8..3).prop_map(|(a, b)| format!("2002:{a}00:{b}01::"));
    prop_oneof![4 => v4, 1 => v6, 1 => other]
}

fn net() -> impl Strategy<Value = String> {
    let mask = prop_oneof![
        Just(String::new()),
        (0u8..=32).prop_map(|m| format!("/{m}")),
        Just("/255.0.255.0".to_owned()),
        Just("/255.255.0.1".to_owned()),
    ];
    (address(), mask).prop_map(|(a, m)| if a.contains(':') && m.contains('.') { a } else { a + &m })
}

fn range() -> impl Strategy<Value = String> {
    prop_oneof![
        (0i64..30).prop_map(|n| n.to_string()),
        (0i64..30, 0i64..9).prop_map(|(n, m)| format!("{n}:{}", n + m)),
        (0i64..30).prop_map(|n| format!("{n}:")),
        (0i64..30).prop_map(|n| format!(":{n}")),
        (0i64..30).prop_map(|n| format!(":-{n}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn texts(
        patterns in vec(text("abB/.?", 5), 7..60),
        values in vec(text("abAB/.?:", 12), 1..20),
        deaths in vec(0u32..60, 0..30),
        fold: bool,
    ) {
        let entries = entries(&patterns);
        let values: Vec<_> = values.iter().map(|v| Value::Str(v.as_bytes())).collect();
        for kind in [Kind::Str, Kind::Beg, Kind::End, Kind::Sub, Kind::Dir, Kind::Dom] {
            agree(kind, fold, &entries, &values, &deaths);
        }
    }

    #[test]
    fn numbers(
        patterns in vec(range(), 7..60),
        values in vec(-35i64..45, 1..20),
        deaths in vec(0u32..60, 0..30),
    ) {
        let entries = entries(&patterns);
        let values: Vec<_> = values.into_iter().map(Value::Int).collect();
        agree(Kind::Int, false, &entries, &values, &deaths);
    }

    #[test]
    fn addresses(
        patterns in vec(net(), 7..60),
        values in vec(address(), 1..20),
        deaths in vec(0u32..60, 0..30),
    ) {
        let entries = entries(&patterns);
        let values: Vec<_> = values.iter().map(|v| Value::Str(v.as_bytes())).collect();
        agree(Kind::Ip, false, &entries, &values, &deaths);
    }

    #[test]
    fn blocks_of_bytes(
        patterns in vec(vec(0u8..3, 0..4), 7..60),
        values in vec(vec(0u8..3, 0..4), 1..20),
        deaths in vec(0u32..60, 0..30),
    ) {
        let hex = |b: &Vec<u8>| b.iter().map(|c| format!("{c:02x}")).collect::<String>();
        let entries = entries(&patterns.iter().map(hex).collect::<Vec<_>>());
        let values: Vec<_> = values.iter().map(|v| Value::Bin(v)).collect();
        agree(Kind::Bin, false, &entries, &values, &deaths);
    }

    #[test]
    fn expressions(
        patterns in vec(text("ab.", 4).prop_map(|t| format!("^{t}")), 7..80),
        odd in any::<bool>(),
        values in vec(text("abAB", 5), 1..20),
        deaths in vec(0u32..80, 0..30),
        fold: bool,
    ) {
        let mut patterns = patterns;
        if odd {
            patterns.insert(3, "a(?=b)".to_owned());
        }
        let entries = entries(&patterns);
        let values: Vec<_> = values.iter().map(|v| Value::Str(v.as_bytes())).collect();
        agree(Kind::Reg, fold, &entries, &values, &deaths);
    }

    /// The tables that stand in for an automaton when there are very many substrings.
    #[test]
    fn windows(
        patterns in vec(text("abB", 9), 7..60),
        values in vec(text("abAB", 30), 1..10),
        fold: bool,
    ) {
        let entries = entries(&patterns);
        let automaton = substrings::Substrings::build(Flags { ignore_case: fold, no_names: false }, &entries);
        let windows = substrings::Substrings::windows(fold, &entries);
        let dead = Dead::of(entries.len());
        for value in &values {
            let value = Value::Str(value.as_bytes());
            let query = Query { entries: &entries, dead: &dead, value, any: false };
            prop_assert_eq!(windows.find(query), automaton.find(query));
        }
    }
}

/// Addresses without text, nets among them, in file order and out of it.
#[test]
fn addresses_without_text() {
    let mut draft = Draft::new(true);
    let count = 70_000u32;
    let at = |n: u32| n.wrapping_mul(2_654_435_761) % 200_000;
    for n in 0..count {
        draft.push(std::net::Ipv4Addr::from(at(n)).to_string().as_bytes(), None).unwrap();
        if n % 1000 == 0 {
            draft.push(format!("10.{}.0.0/16", n / 1000).as_bytes(), None).unwrap();
        }
    }
    let entries = draft.finish().unwrap();
    assert_eq!(entries.hosts().map(Hosts::len), Some(count));
    let index = Index::build(Kind::Ip, Flags::default(), &entries, Reading::default()).unwrap();
    let dead = Dead::of(entries.len());
    let has = |a: u32| {
        let value = Value::Ipv4(a.into());
        index.find(Query { entries: &entries, dead: &dead, value, any: true }).is_some()
    };
    let members: std::collections::HashSet<u32> = (0..count).map(at).collect();
    assert!((0..200_000).all(|a| has(a) == members.contains(&a)));
    assert!(has(0x0a05_0102) && !has(0x0a7f_0000));
    let text = |place| {
        let mut room = crate::entries::TextRoom::default();
        String::from_utf8(entries.pattern(entries.at(place), &mut room).to_vec()).unwrap()
    };
    assert_eq!(text(1), "10.0.0.0/16");
    assert_eq!(text(3), std::net::Ipv4Addr::from(at(2)).to_string());
    index.written(&entries, text(3).as_bytes(), &mut |n| {
        dead.kill(n);
    });
    assert!(!has(at(2)) && has(at(4)));
}
