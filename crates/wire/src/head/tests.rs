use super::*;

fn sample() -> Head {
    let mut head = Head::request();
    head.set_method(b"POST").unwrap();
    head.set_target(b"/a").unwrap();
    for (name, value) in
        [("Host", "x"), ("X-List", "a, \"b,c\" ,d"), ("x-list", ""), ("Cookie", "a=1; b = 2 ;c")]
    {
        head.append(name.as_bytes(), value.as_bytes()).unwrap();
    }
    head
}

#[test]
fn names_are_found_in_any_case_and_stored_in_lower() {
    let head = sample();
    assert_eq!(head.first("HOST"), Some(&b"x"[..]));
    assert_eq!(head.first(Known::Host), Some(&b"x"[..]));
    assert_eq!(head.count("X-LIST"), 2);
    assert_eq!(head.last(b"x-list"), Some(&b""[..]));
    assert_eq!(head.fields().next(), Some((0, &b"host"[..], &b"x"[..])));
}

#[test]
fn lists_split_at_commas_outside_quotes() {
    let head = sample();
    let values: Vec<&[u8]> = head.values("x-list").collect();
    assert_eq!(values, [&b"a"[..], b"\"b,c\"", b"d", b""]);
}

#[test]
fn cookies_are_pairs_without_blanks() {
    let head = sample();
    let all: Vec<_> = head.cookies().map(|cookie| (cookie.name, cookie.value)).collect();
    assert_eq!(all, [(&b"a"[..], &b"1"[..]), (b"b", b"2")]);
    assert_eq!(head.cookie(b"b"), Some(&b"2"[..]));
    assert_eq!(head.cookie(b"B"), None);
}

#[test]
fn edits_keep_indices_and_count_live_bytes() {
    let mut head = sample();
    let before = head.wire_len();
    let index = head.append(b"X-New", b"value").unwrap();
    assert_eq!(head.wire_len(), before + 14);
    head.replace_value(index, b"v").unwrap();
    assert_eq!(head.wire_len(), before + 10);
    assert!(head.remove(index) && !head.remove(index));
    assert_eq!(head.wire_len(), before);
    head.set(b"X-List", b"one").unwrap();
    assert_eq!(head.all("x-list").map(|(_, value)| value).collect::<Vec<_>>(), [b"one"]);
    head.prepend(b"first", b"1").unwrap();
    assert_eq!(head.fields().next().map(|(_, name, _)| name), Some(&b"first"[..]));
}

#[test]
fn an_edit_beyond_the_limit_changes_nothing() {
    let mut head = sample();
    head.set_limit(head.wire_len() + 8);
    let before = head.clone();
    assert_eq!(head.append(b"name", b"value"), Err(NoRoom));
    assert_eq!(head.set(b"x-list", &[b'x'; 100]), Err(NoRoom));
    assert_eq!(head.set_target(&[b'/'; 100]), Err(NoRoom));
    assert!(head.fields().eq(before.fields()) && head.target() == before.target());
    head.append(b"n", b"val").unwrap();
}

#[test]
fn endless_edits_take_bounded_memory() {
    let mut head = sample();
    for round in 0..10_000 {
        head.replace_value(0, format!("host-{round}").as_bytes()).unwrap();
    }
    assert_eq!(head.first("host"), Some(&b"host-9999"[..]));
    assert_eq!(head.first("cookie"), Some(&b"a=1; b = 2 ;c"[..]));
    assert!(head.bytes.capacity() < 64 * 1024);
}

#[test]
fn status_brings_its_reason() {
    let mut head = Head::response();
    head.set_status(404, None).unwrap();
    assert_eq!((head.status(), head.reason()), (404, &b"Not Found"[..]));
    head.set_status(299, Some(b"Fine")).unwrap();
    assert_eq!(head.reason(), b"Fine");
}
