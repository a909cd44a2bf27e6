//! What a user sees of sets: look-ups, run-time changes, versions.

use crate::*;

fn set(kind: Kind, patterns: &[&str]) -> PatternSet {
    PatternSet::build(kind, Flags::default(), patterns.iter().map(|p| (p.as_bytes(), 0))).unwrap()
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
    let patterns = [(&b"1.2.3.4"[..], 3), (b"1.2.3.4.5", 7)];
    let e = PatternSet::build(Kind::Ip, Flags::default(), patterns).unwrap_err();
    assert_eq!((e.line, e.to_string().as_str()), (7, "'1.2.3.4.5' is not a valid IPv4 or IPv6 address"));
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
    assert_eq!(set.del(Which::Ref(hit.id())), Ok(1));
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
