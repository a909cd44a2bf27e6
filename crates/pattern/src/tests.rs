//! What a user sees of sets: look-ups, run-time changes, versions.

use crate::*;

fn set(kind: Kind, patterns: &[&str]) -> View {
    let set = LiveSet::new("", Shape::Acl);
    set.fill(patterns.iter().map(|p| p.as_bytes()), Flags::default()).unwrap();
    set.view(kind, Flags::default()).unwrap()
}

fn text(s: &str) -> Value<'_> {
    Value::Str(s.as_bytes())
}

#[test]
fn strings_match_by_kind() {
    let cases = [
        (Kind::Str, "abc", "abc", "abcd"),
        (Kind::Beg, "ab", "abc", "xab"),
        (Kind::End, "bc", "abc", "bcd"),
        (Kind::Sub, "b", "abc", "acd"),
        (Kind::Dir, "images/png", "/a/images/png/x", "/images/pngs"),
        (Kind::Dom, ".example.", "http://www.example:80/", "http://examples/"),
        (Kind::Reg, "^a.c$", "abc", "abbc"),
    ];
    for (kind, pattern, yes, no) in cases {
        let set = set(kind, &[pattern]);
        assert!(set.contains(text(yes)), "{kind:?} {pattern} {yes}");
        assert!(!set.contains(text(no)), "{kind:?} {pattern} {no}");
    }
}

#[test]
fn the_line_of_a_bad_pattern_is_named() {
    let file = std::env::temp_dir().join(format!("harrier-pattern-{}", std::process::id()));
    std::fs::write(&file, "# addresses\n1.2.3.4\n\n  5.6.7.8/8\n1.2.3.4.5\n").unwrap();
    let e = LiveSet::load("", &file, Shape::Acl, Kind::Ip, Flags::default());
    std::fs::remove_file(&file).unwrap();
    let Err(LoadError::Pattern(e)) = e else { panic!("{e:?}") };
    assert_eq!((e.line, e.to_string().as_str()), (5, "'1.2.3.4.5' is not a valid IPv4 or IPv6 address"));
}

#[test]
fn changes_are_seen_at_once_and_hits_outlive_them() {
    let set = LiveSet::new("hosts", Shape::Map);
    let view = set.view(Kind::Str, Flags::default()).unwrap();
    set.add(None, b"a", Some(b"1")).unwrap();
    let hit = view.find(text("a")).unwrap();
    set.set(Which::Key(b"a"), b"2").unwrap();
    assert_eq!(hit.value(), Some(&b"1"[..]));
    assert_eq!(view.find(text("a")).unwrap().value(), Some(&b"2"[..]));
    assert_eq!(set.del(Which::Ref(hit.id())), Ok(()));
    assert!(!view.contains(text("a")));
    assert_eq!(set.del(Which::Key(b"a")), Err(ChangeError::NotFound));
}

#[test]
fn a_prepared_version_replaces_the_current_one_when_committed() {
    let set = LiveSet::new("", Shape::Acl);
    let view = set.view(Kind::Ip, Flags::default()).unwrap();
    set.add(None, b"10.0.0.0/8", None).unwrap();
    let v = set.prepare();
    set.add(Some(v), b"192.168.0.0/16", None).unwrap();
    assert!(!view.contains(Value::Ipv4([192, 168, 0, 1].into())));
    assert_eq!(set.commit(v + 1), Err(ChangeError::Version));
    set.commit(v).unwrap();
    assert!(view.contains(Value::Ipv4([192, 168, 0, 1].into())));
    assert!(!view.contains(Value::Ipv4([10, 0, 0, 1].into())));
    assert_eq!(set.versions(), Versions { current: v, next: v, entries: 1 });
}

#[test]
fn many_changes_one_by_one_leave_few_segments_and_the_same_answers() {
    let set = LiveSet::new("", Shape::Map);
    let view = set.view(Kind::Str, Flags::default()).unwrap();
    for n in 0..3000u32 {
        set.add(None, format!("k{n}").as_bytes(), Some(b"old")).unwrap();
        if n % 3 == 0 {
            set.del(Which::Key(format!("k{}", n / 2).as_bytes())).ok();
        } else {
            set.set(Which::Key(format!("k{}", n / 2).as_bytes()), n.to_string().as_bytes()).ok();
        }
    }
    let state = || {
        let look = |n: u32| view.find(text(&format!("k{n}"))).map(|h| h.value().map(<[u8]>::to_vec));
        (0..3000).map(look).collect::<Vec<_>>()
    };
    let mut keys = Vec::new();
    let mut listing = set.entries(None);
    while let Some(entry) = listing.advance() {
        keys.push((entry.id, entry.pattern.into_owned()));
    }
    let before = state();
    assert!(set.maintenance(), "there is something to merge");
    assert!(!set.maintenance(), "and then nothing more");
    assert_eq!(state(), before);
    let mut listing = set.entries(None);
    for (id, key) in keys {
        let entry = listing.advance().unwrap();
        assert_eq!((entry.id, &*entry.pattern), (id, &*key), "order and references stay");
    }
    assert!(listing.advance().is_none());
}

#[test]
fn what_changes_during_a_merge_is_not_lost() {
    let set = LiveSet::new("", Shape::Acl);
    let view = set.view(Kind::Str, Flags::default()).unwrap();
    let key = |n: u32| n.to_string().into_bytes();
    for n in 0..5000 {
        set.add(None, &key(n), None).unwrap();
    }
    std::thread::scope(|scope| {
        let merger = scope.spawn(|| while !set.maintenance() {});
        for n in 0..5000 {
            if n % 2 == 0 {
                set.del(Which::Key(&key(n))).unwrap();
            }
            set.add(None, &key(n + 10_000), None).unwrap();
        }
        merger.join().unwrap();
    });
    for n in 0..5000 {
        assert_eq!(view.contains(Value::Str(&key(n))), n % 2 == 1, "{n}");
        assert!(view.contains(Value::Str(&key(n + 10_000))), "{n}");
    }
}

#[test]
fn precedence_over_segments_is_that_of_one_list() {
    let set = LiveSet::new("", Shape::Map);
    let view = set.view(Kind::Ip, Flags::default()).unwrap();
    let find = |a: &str| {
        let hit = view.find(text(a))?;
        Some(String::from_utf8(hit.value()?.to_vec()).unwrap())
    };
    for (pattern, value) in [
        ("10.0.0.0/255.0.255.255", "holes"),
        ("::/0", "six"),
        ("10.0.0.0/8", "four"),
        ("10.1.0.0/16", "longer"),
        ("10.1.0.0/16", "later"),
    ] {
        set.add(None, pattern.as_bytes(), Some(value.as_bytes())).unwrap();
    }
    assert_eq!(find("10.1.2.3").as_deref(), Some("longer"));
    assert_eq!(find("10.2.0.0").as_deref(), Some("four"));
    assert_eq!(find("::ffff:10.2.0.0").as_deref(), Some("six"));
    set.del(Which::Key(b"10.0.0.0/8")).unwrap();
    assert_eq!(find("10.2.0.0").as_deref(), Some("six"), "the other family comes before holes");
    set.del(Which::Key(b"::/0")).unwrap();
    assert_eq!(find("10.2.0.0").as_deref(), Some("holes"));
}

#[test]
fn of_two_entries_written_alike_one_is_deleted_and_both_are_changed() {
    let set = LiveSet::new("", Shape::Map);
    let view = set.view(Kind::Str, Flags::default()).unwrap();
    set.add_all(None, [(&b"k"[..], &b"1"[..]), (b"k", b"2"), (b"z", b"3")]).unwrap();
    set.del(Which::Key(b"k")).unwrap();
    assert_eq!(view.find(text("k")).unwrap().value(), Some(&b"2"[..]), "the first is gone");
    set.add(None, b"k", Some(b"4")).unwrap();
    set.set(Which::Key(b"k"), b"5").unwrap();
    set.del(Which::Key(b"k")).unwrap();
    assert_eq!(view.find(text("k")).unwrap().value(), Some(&b"5"[..]));
}

#[test]
fn values_are_checked_by_what_they_are_read_as() {
    let set = LiveSet::new("", Shape::Map);
    let view = set.view(Kind::Str, Flags::default()).unwrap();
    set.add(None, b"old", Some(b"x")).unwrap();
    let int = Face::of_map(Kind::Str, Output::Int);
    assert_eq!(set.face(int).unwrap_err().to_string(), "unable to parse 'x'");
    set.del(Which::Key(b"old")).unwrap();
    set.clear(None).unwrap();
    set.face(int).unwrap();
    let list = [(&b"a"[..], &b"1"[..]), (b"b", b"-"), (b"c", b"0x1"), (b"d", b"4")];
    let refused = set.add_all(None, list).unwrap_err();
    assert_eq!(refused.to_string(), "unable to parse '0x1'");
    assert!(view.contains(text("b")) && !view.contains(text("d")), "what came before is kept");
    assert!(set.set(Which::Key(b"a"), b"q").is_err());
    assert_eq!(view.find(text("a")).unwrap().value(), Some(&b"1"[..]));
}

#[test]
fn a_key_that_several_threads_put_at_once_is_there_once() {
    let set = LiveSet::new("", Shape::Map);
    set.view(Kind::Str, Flags::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..200u32 {
                    set.put(&n.to_string().into_bytes(), Some(b"v")).unwrap();
                }
            });
        }
    });
    assert_eq!(set.versions().entries, 200);
}

#[test]
fn an_entry_of_an_acl_keeps_the_value_it_is_given() {
    let set = LiveSet::new("", Shape::Acl);
    let view = set.view(Kind::Str, Flags::default()).unwrap();
    set.add_all(None, [(&b"plain"[..], &b""[..]), (b"given", b"v1"), (b"changed", b"")]).unwrap();
    set.set(Which::Key(b"changed"), b"v2").unwrap();
    let listed = || {
        let (mut listing, mut out) = (set.entries(None), Vec::new());
        while let Some(e) = listing.advance() {
            let value = e.value.map_or(String::new(), |v| String::from_utf8(v.into_owned()).unwrap());
            out.push(format!("{} {value}", String::from_utf8_lossy(&e.pattern)));
        }
        out
    };
    assert_eq!(listed(), ["plain ", "given v1", "changed v2"]);
    for n in 0..40u32 {
        set.add(None, &n.to_string().into_bytes(), None).unwrap();
    }
    set.maintenance();
    assert_eq!(listed().get(..4).unwrap(), ["plain ", "given v1", "changed v2", "0 "]);
    assert!(view.contains(text("plain")) && view.contains(text("given")) && view.contains(text("39")));
}
