use super::*;

fn events(reader: &mut Reader, bytes: &[u8]) -> Result<Vec<String>, Malformed> {
    let (mut rest, mut seen) = (bytes, Vec::new());
    loop {
        let Received { consumed, event } = reader.receive(rest)?;
        rest = &rest[consumed..];
        match event {
            Some(event) => seen.push(format!("{event:?}")),
            None => return Ok(seen),
        }
    }
}

fn record(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
    let header = Header { padding, ..Header::new(kind, id, content.len() as u16) };
    [&header.bytes()[..], content, &vec![0xff; padding.into()]].concat()
}

#[test]
fn records_are_the_same_however_they_come() {
    let mut values = Vec::new();
    put_pair(&mut values, b"FCGI_MPXS_CONNS", b"1");
    put_pair(&mut values, b"FCGI_MAX_REQS", b"100");
    let all = [
        record(kind::GET_VALUES_RESULT, 0, &values, 3),
        record(kind::UNKNOWN_TYPE, 0, &[42, 0, 0, 0, 0, 0, 0, 0], 0),
        record(kind::STDERR, 7, b"", 0),
        record(kind::STDOUT, 7, b"", 9),
        record(kind::END_REQUEST, 7, &[0, 0, 0, 2, 1, 0, 0, 0], 255),
    ]
    .concat();
    let whole = events(&mut Reader::default(), &all).unwrap();
    assert_eq!(whole[0], "Values(Values { max_reqs: Some(100), mpxs_conns: Some(true) })");
    assert_eq!(whole[1], "Unknown(42)");
    assert_eq!(whole[4], "End { id: 7, code: 2, status: CannotMultiplex }");
    let (mut reader, mut kept, mut seen) = (Reader::default(), Vec::new(), Vec::new());
    for byte in &all {
        kept.push(*byte);
        loop {
            let Received { consumed, event } = reader.receive(&kept).unwrap();
            let event = event.map(|event| format!("{event:?}"));
            kept.drain(..consumed);
            match event {
                Some(event) => seen.push(event),
                None => break,
            }
        }
    }
    assert_eq!(seen, whole);
    assert!(reader.is_between() && kept.is_empty());
}

#[test]
fn data_are_handed_out_as_they_come() {
    let mut reader = Reader::default();
    let all = record(kind::STDOUT, 1, b"hello", 4);
    let first = reader.receive(&all[..10]).unwrap();
    assert_eq!(first, Received { consumed: 10, event: Some(Event::Stdout { id: 1, bytes: b"he" }) });
    let second = reader.receive(&all[10..]).unwrap();
    assert_eq!(second, Received { consumed: 3, event: Some(Event::Stdout { id: 1, bytes: b"llo" }) });
    assert_eq!(reader.receive(&all[13..]).unwrap(), Received { consumed: 4, event: None });
}

#[test]
fn records_of_unknown_types_are_passed_over() {
    let all = [record(99, 1, b"abc", 3), record(99, 1, b"", 0), record(kind::STDOUT, 1, b"", 0)].concat();
    assert_eq!(events(&mut Reader::default(), &all).unwrap(), ["Stdout { id: 1, bytes: [] }"]);
}

#[test]
fn what_no_responder_says_is_refused() {
    for (bytes, why) in [
        (record(kind::STDOUT, 0, b"x", 0), Malformed::Place),
        (record(kind::GET_VALUES_RESULT, 1, b"", 0), Malformed::Place),
        (record(99, 0, &[0; 8], 0), Malformed::Type),
        (record(kind::END_REQUEST, 1, &[0; 7], 0), Malformed::Length),
        (record(kind::END_REQUEST, 1, &[], 0), Malformed::Length),
        (record(kind::GET_VALUES_RESULT, 0, &[0; 2000], 0), Malformed::Length),
        ([&[2], &record(kind::STDOUT, 1, b"x", 0)[1..]].concat(), Malformed::Version),
    ] {
        assert_eq!(events(&mut Reader::default(), &bytes), Err(why), "{bytes:?}");
    }
}

#[test]
fn pairs_keep_names_and_values_of_any_length() {
    let long = vec![b'v'; 70_000];
    let mut out = Vec::new();
    put_pair(&mut out, b"A", b"");
    put_pair(&mut out, &[b'n'; 127], &[b'v'; 128]);
    put_pair(&mut out, b"LONG", &long);
    assert_eq!(&out[..3], [1, 0, b'A']);
    assert_eq!(out[3], 127);
    assert_eq!(&out[4..8], [0x80, 0, 0, 128]);
    let read: Vec<_> = Pairs::new(&out).map(|(name, value)| (name.len(), value.len())).collect();
    assert_eq!(read, [(1, 0), (127, 128), (4, 70_000)]);
    let mut cut = Pairs::new(&out[..out.len() - 1]);
    assert_eq!(cut.by_ref().count(), 2);
    assert!(!cut.rest().is_empty());
    let mut record = Vec::new();
    write::params(&mut record, 3, &out);
    let first = Header::parse(record.first_chunk().unwrap()).unwrap();
    assert_eq!(first, Header::new(kind::PARAMS, 3, u16::MAX));
    assert_eq!(record.len(), out.len() + 3 * HEADER, "two parts and the end");
}
