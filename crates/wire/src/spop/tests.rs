//! What goes out reads as what was meant, and what comes is judged as HAProxy judges it.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::write::{Greeting, Writer, disconnect, greeting};
use super::{Action, Actions, AgentHello, Data, Disconnect, Reader, Scope, Status, frame, kind};

/// The longest frame of these tests.
const MOST: usize = 16380;

/// What HAProxy 3.5 sent to an agent for `args frontend=fe_id src method path hdr(nope) int(-5) bool(true)
/// str(abc),hex bin(0001) ipv6(::1) int(300)`.
const NOTIFY: &[u8] = b"\x00\x00\x00\x5d\x03\x00\x00\x00\x01\x01\x01\x02m1\x0b\x08frontend\x04\x02\
    \x00\x06\x7f\x00\x00\x01\x00\x08\x03GET\x00\x08\x04/abc\x00\x00\
    \x00\x04\xfb\xf0\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x0e\x00\x11\x00\x08\x06616263\
    \x00\x09\x02\x00\x01\x00\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x04\xfc\x03";

fn notify() -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, kind::NOTIFY, 1, 1);
    writer.message(b"m1", 11);
    writer.item(b"frontend", &Data::Int64(2));
    for value in [
        Data::Ipv4(Ipv4Addr::LOCALHOST),
        Data::Text(b"GET"),
        Data::Text(b"/abc"),
        Data::Null,
        Data::Int64(-5),
        Data::Bool(true),
        Data::Text(b"616263"),
        Data::Binary(&[0, 1]),
        Data::Ipv6(Ipv6Addr::LOCALHOST),
        Data::Int64(300),
    ] {
        writer.item(b"", &value);
    }
    writer.finish(MOST).unwrap();
    out
}

#[test]
fn a_notification_is_byte_for_byte_that_of_haproxy() {
    assert_eq!(notify(), NOTIFY);
}

#[test]
fn a_frame_is_read_once_it_is_whole() {
    let whole = notify();
    for end in 0..whole.len() {
        assert_eq!(frame(&whole[..end], MOST), Ok(None), "{end}");
    }
    let twice = [whole.clone(), whole.clone()].concat();
    let (read, taken) = frame(&twice, MOST).unwrap().unwrap();
    assert_eq!((read.kind, read.stream, read.frame, taken), (kind::NOTIFY, 1, 1, whole.len()));
    let mut reader = Reader::new(read.payload);
    assert_eq!((reader.text(), reader.byte()), (Some(&b"m1"[..]), Some(11)));
    assert_eq!((reader.text(), reader.data()), (Some(&b"frontend"[..]), Some(Data::Int64(2))));
}

#[test]
fn a_frame_that_is_too_long_cut_off_or_in_fragments_is_refused() {
    assert_eq!(frame(&[0, 0, 1, 1], 256), Err(Status::TooBig));
    assert_eq!(frame(&[0, 0, 0, 0], 256), Err(Status::Invalid));
    assert_eq!(frame(b"\0\0\0\x06\x67\0\0\0\x01\0", 256), Err(Status::Invalid));
    assert_eq!(frame(b"\0\0\0\x07\x67\0\0\0\0\0\0", 256), Err(Status::Fragmented));
    assert_eq!(frame(b"HTTP/1.0 400 Bad", MOST), Err(Status::TooBig));
}

#[test]
fn what_does_not_fit_leaves_the_buffer_as_it_was() {
    let mut out = b"before".to_vec();
    let mut writer = Writer::new(&mut out, kind::NOTIFY, 7, 300);
    writer.item(b"", &Data::Binary(&[0; 300]));
    assert_eq!(writer.finish(256), Err(Status::TooBig));
    assert_eq!(out, b"before");
    let mut writer = Writer::new(&mut out, kind::NOTIFY, 7, 300);
    writer.item(b"", &Data::Null);
    writer.abandon();
    assert_eq!(out, b"before");
}

#[test]
fn the_greeting_of_a_connection_is_that_of_haproxy() {
    let mut out = Vec::new();
    let engine = "ed218e41-db57-4754-b563-980dbb3cbab9";
    let hello = Greeting { most: 16380, pipelining: true, check: false, engine: Some(engine) };
    greeting(&mut out, &hello).unwrap();
    let (read, _) = frame(&out, MOST).unwrap().unwrap();
    let seen = b"\x12supported-versions\x08\x032.0\x0emax-frame-size\x03\xfc\xf0\x06\x0ccapabilities\x08\
        \npipelining\tengine-id\x08$ed218e41-db57-4754-b563-980dbb3cbab9";
    assert_eq!((read.kind, read.payload), (kind::HAPROXY_HELLO, &seen[..]));
}

#[test]
fn a_farewell_is_that_of_haproxy_and_reads_again() {
    let mut out = Vec::new();
    disconnect(&mut out, Status::Version);
    let (read, _) = frame(&out, 256).unwrap().unwrap();
    assert_eq!(read.payload, b"\x0bstatus-code\x03\x08\x07message\x08\x13unsupported version");
    let told = Disconnect::parse(read.payload);
    assert_eq!(told, Ok(Disconnect { code: 8, message: b"unsupported version" }));
    assert_eq!(Disconnect::parse(b"\x0bstatus-code\x03\x08"), Err(Status::Invalid));
}

fn hello(items: &[(&[u8], Data<'_>)]) -> Result<AgentHello, Status> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, kind::AGENT_HELLO, 0, 0);
    items.iter().for_each(|(name, value)| writer.item(name, value));
    writer.finish(MOST).unwrap();
    let (read, _) = frame(&out, MOST).unwrap().unwrap();
    AgentHello::parse(read.payload, MOST)
}

#[test]
fn an_agent_says_how_long_frames_may_be_and_whether_it_can_pipeline() {
    let version = (&b"version"[..], Data::Text(b" 2.0"));
    let size = |n| (&b"max-frame-size"[..], Data::Uint32(n));
    let able = (&b"capabilities"[..], Data::Text(b"async, pipelining"));
    let whole = hello(&[version, size(256), (b"other", Data::Bool(true)), able]);
    assert_eq!(whole, Ok(AgentHello { most: 256, pipelining: true }));
    assert_eq!(hello(&[size(256), able]), Err(Status::NoVersion));
    assert_eq!(hello(&[version, able]), Err(Status::NoSize));
    assert_eq!(hello(&[version, size(256)]), Err(Status::NoCapabilities));
    assert_eq!(hello(&[(b"version", Data::Text(b"1.0"))]), Err(Status::Version));
    for out_of_range in [0, 255, 16381] {
        assert_eq!(hello(&[version, size(out_of_range), able]), Err(Status::Size));
    }
    assert_eq!(hello(&[(b"max-frame-size", Data::Int64(-1))]), Err(Status::Size));
    assert_eq!(hello(&[(b"max-frame-size", Data::Text(b"256"))]), Err(Status::Invalid));
}

#[test]
fn actions_are_read_up_to_the_first_that_cannot_be() {
    let all: Vec<_> =
        Actions::new(b"\x01\x03\x02\x05score\x04\x4d\x02\x02\x01\x04gone\x09\x00\x01").collect();
    let set = Action::SetVar { scope: Scope::Transaction, name: b"score", value: Data::Int64(77) };
    let unset = Action::UnsetVar { scope: Scope::Session, name: b"gone" };
    assert_eq!(all, [Ok(set), Ok(unset), Err(Status::Invalid)]);
    let wrong: [&[u8]; 4] =
        [b"\x01\x02\x02\x01a", b"\x01\x03\x05\x01a\0", b"\x01\x03\x02\x09a\0", b"\x01\x03\x02\x01a\x04"];
    for payload in wrong {
        assert_eq!(Actions::new(payload).collect::<Vec<_>>(), [Err(Status::Invalid)], "{payload:?}");
    }
}

#[test]
fn numbers_of_32_bits_are_not_cut_down_and_unknown_types_have_no_bytes() {
    let set = |payload| match Actions::new(payload).next() {
        Some(Ok(Action::SetVar { value, .. })) => value,
        other => panic!("{other:?}"),
    };
    // Minus five in 32 bits: HAProxy makes 4294967291 of it.
    assert_eq!(set(b"\x01\x03\x02\x01a\x02\xfb\xf0\xfe\xfe\x7e"), Data::Int32(4_294_967_291));
    let two: Vec<_> = Actions::new(b"\x01\x03\x02\x01a\x0c\x02\x02\x02\x01b").collect();
    let first = Action::SetVar { scope: Scope::Transaction, name: b"a", value: Data::Unknown(12) };
    assert_eq!(two, [Ok(first), Ok(Action::UnsetVar { scope: Scope::Transaction, name: b"b" })]);
}
