//! Bytes that two HAProxys were seen to exchange, and what must not be believed.

use super::hello::{self, Hello, Status};
use super::read::{Column, Text, Value, values};
use super::{Definition, Fault, Key, Reader, Shape, frame, table, write};
use crate::varint;

#[test]
fn numbers_are_those_of_the_document() {
    for (value, bytes) in [(0x1234, &b"\xf4\x94\x01"[..]), (0xef, b"\xef"), (60000, b"\xf0\x97\x1c")] {
        let mut out = Vec::new();
        varint::put(&mut out, value);
        assert_eq!(out, bytes);
        assert_eq!(varint::take(bytes), varint::Taken::Number(value, bytes.len()));
    }
    for value in [0, 239, 240, 2287, 2288, 264_431, 264_432, u64::from(u32::MAX), u64::MAX] {
        let mut out = Vec::new();
        varint::put(&mut out, value);
        assert_eq!(varint::take(&out), varint::Taken::Number(value, out.len()));
        assert_eq!(varint::take(&out[..out.len() - 1]), varint::Taken::Short);
    }
    assert_eq!(varint::take(&[0xff; 12]), varint::Taken::TooLarge);
}

#[test]
fn a_hello_is_three_lines_of_a_version_that_is_spoken() {
    let text = hello::compose("A", "B", 7);
    assert_eq!(text, b"HAProxyS 2.1\nA\nB 7 1\n");
    assert_eq!(hello::parse(&text), Ok(Some((Hello { remote: b"A", local: b"B" }, text.len()))));
    assert_eq!(hello::parse(&text[..15]), Ok(None));
    assert_eq!(hello::parse(b"HAProxyS 2.2\n"), Err(Status::Version));
    assert_eq!(hello::parse(b"HAProxy 2.1\n"), Err(Status::Protocol));
    assert_eq!(hello::parse(&[b'x'; 2000]), Err(Status::Protocol));
    assert_eq!(hello::status(b"200\n\0\0"), Ok(Some((200, 4))));
    assert_eq!(hello::status(b"20"), Ok(None));
    assert_eq!(hello::status(b"2x0\n"), Err(Status::Protocol));
}

/// A table with gpt(3), gpc(2) and gpc_rate(2,20s), keys are integers, expires after a minute.
const DEFINITION: &[u8] =
    b"\x0a\x82\x18\x03\x04tint\x02\x04\xf0\xf1\xfe\x6e\xf0\x97\x1c\x16\x03\x17\x02\x18\x02\xf0\xd3\x08";

#[test]
fn a_definition_tells_arrays_and_periods() {
    let (f, bytes) = frame(DEFINITION, 16384).unwrap().unwrap();
    assert_eq!((f.class, f.kind, bytes), (10, 130, DEFINITION.len()));
    let d = Definition::parse(f.body).unwrap();
    assert_eq!((d.id, d.name, d.key, d.expire), (3, &b"tint"[..], Some(Key::Integer), 60000));
    let column = |number, shape, count, period| Column { number, shape, count, period };
    assert_eq!(
        d.columns,
        [
            column(22, Shape::Number, 3, 0),
            column(23, Shape::Number, 2, 0),
            column(24, Shape::Rate, 2, 20_000)
        ]
    );
    let mut out = Vec::new();
    write::definition(&mut out, 3, "tint", (Key::Integer, 4), 60_000, &d.columns);
    assert_eq!(out, DEFINITION);
}

#[test]
fn an_entry_has_a_key_and_its_values_in_order() {
    let (f, _) = frame(DEFINITION, 16384).unwrap().unwrap();
    let d = Definition::parse(f.body).unwrap();
    let update =
        b"\x0a\x80\x1b\0\0\0\x02\0\0\0\x08\0\0\0\x03\0\xf5\xee\xf8\xfe\x7e\0\0\xf5\xee\xf8\xfe\x7e\0\0";
    let (f, _) = frame(update, 16384).unwrap().unwrap();
    let mut r = Reader::new(f.body);
    assert_eq!(r.long(), Some(2));
    assert_eq!(d.take_key(&mut r), Some(&[0, 0, 0, 8][..]));
    let mut seen = Vec::new();
    assert!(values(&d.columns, &mut r, |c, i, v| seen.push((c.number, i, v))).is_some());
    assert_eq!(seen.len(), 7);
    assert_eq!(seen[3], (23, 0, Value::Number(3)));
    assert!(r.rest().is_empty());
}

#[test]
fn texts_come_once_and_then_by_number() {
    let column = [Column { number: 19, shape: Shape::Text, count: 1, period: 0 }];
    let mut out = Vec::new();
    write::text(&mut out, 1, Some("s1"));
    write::text(&mut out, 1, None);
    write::text(&mut out, 0, None);
    assert_eq!(out, b"\x04\x01\x02s1\x01\x01\x00");
    let mut r = Reader::new(&out);
    let mut seen = Vec::new();
    for _ in 0..3 {
        values(&column, &mut r, |_, _, v| seen.push(v)).unwrap();
    }
    let text = |t| Value::Text(t);
    assert_eq!(seen, [text(Text::New(1, b"s1")), text(Text::Known(1)), text(Text::Absent)]);
}

#[test]
fn long_messages_are_framed_and_too_long_ones_refused() {
    let mut out = Vec::new();
    write::message(&mut out, table::UPDATE, |out| out.extend_from_slice(&[7; 300]));
    let (f, bytes) = frame(&out, 300).unwrap().unwrap();
    assert_eq!((f.body, bytes), (&[7; 300][..], out.len()));
    assert_eq!(frame(&out, 299), Err(Fault::TooLong));
    assert_eq!(frame(&out[..40], 300), Ok(None));
    assert_eq!(frame(b"\x0a", 300), Ok(None));
}
