//! Log-format strings; the expected texts were seen on HAProxy.

use crate::logfmt::Use;
use crate::testing::Stage;

#[test]
fn options_quote_escape_and_encode() {
    let mut stage = Stage::new();
    for (text, expected) in [
        ("a%%b%-x", "a%b-x"),
        ("%{+Q}[path] %{+Q}[hdr(none)] %[hdr(none)]|", "\"/a/b\" \"\" |"),
        ("%{+X}ci %{+X}cp %{+X}[src]", "C0000201 04D2 192.0.2.1"),
        ("%{+E}[str('a\"b\\c]d')]", "a\\\"b\\\\c\\]d"),
        ("%{+Q}[str('a\"b\\c]d')]", "\"a\"b\\c]d\""),
        ("%{+Q}o %ci %cp %{-Q}f %b", " \"192.0.2.1\" 1234 fe \"be\""),
        ("%[bin(410042)]", "A"),
        (
            "%{+json}o %(a)ci x %(b)[path] %[path] %(c:sint)[str(12)] %(d:bool)[str(1)] %(e)[int(5)] %(f)[bool(true)] %(g)[hdr(none)]",
            "{\"a\": \"192.0.2.1\", \"b\": \"/a/b\", \"c\": 12, \"d\": true, \"e\": 5, \"f\": true, \"g\": \"\"}",
        ),
        ("%{+json}[int(1)] %{+json}ci %{+json}[bool(true)] %{+json}[hdr(none)]", "1 \"192.0.2.1\" true \"\""),
        (
            "%{+cbor}o %(c:sint)[str(12)] %(e)[int(500)] %(f)[bool(true)] %(g)[hdr(none)] %(s)[str(ab)]",
            "BF61630C61651901F46166F56167F66173626162FF",
        ),
    ] {
        assert_eq!(stage.format(text, Use::Value), expected, "{text}");
    }
}

#[test]
fn a_log_line_shows_what_is_missing_and_merges_blanks() {
    let mut stage = Stage::new();
    for (text, expected) in [
        ("%ci  %bi   %[capture.req.hdr(0)]", "192.0.2.1 - -"),
        ("%f %hr %hs %{+Q}r", "fe \"GET /a/b?c=d&e=f HTTP/1.1\""),
        ("%{+Q}si %{+Q}o %t", "\"\" 21/Nov/2026:04:57:36.000"),
        ("%ST %tsc %HM %HP %HQ %HV %rc", "200 ---- GET /a/b ?c=d&e=f HTTP/1.1 0"),
    ] {
        assert_eq!(stage.format(text, Use::Log), expected, "{text}");
    }
}

#[test]
fn captures_stand_in_braces_and_are_encoded() {
    let mut stage = Stage::new();
    stage.txn.req_captures = vec![None, Some(b"1{|}\"\xe9 #2"[..].into())].into();
    assert_eq!(stage.format("%hr", Use::Log), "{|1#7B#7C#7D#22#E9 #232}");
    assert_eq!(stage.format("%hrl", Use::Log), "- 1#7B#7C#7D#22#E9 #232");
    assert_eq!(stage.format("%{+Q}hrl", Use::Log), "\"\" \"1#7B#7C#7D#22#E9 #232\"");
    assert_eq!(stage.format("%{+json}o %(a)hrl", Use::Log), "{\"a\": [\"-\", \"1#7B#7C#7D#22#E9 #232\"]}");
}

#[test]
fn a_field_that_is_empty_is_not_one_that_was_missing() {
    let mut stage = Stage::new();
    stage.txn.req_captures = vec![Some(b""[..].into()), None, Some(b"x"[..].into())].into();
    assert_eq!(stage.format("%hr", Use::Log), "{||x}");
    assert_eq!(stage.format("%hrl", Use::Log), " - x");
    assert_eq!(stage.format("%{+json}o %(a)hrl", Use::Log), "{\"a\": [\"\", \"-\", \"x\"]}");
}

#[test]
fn times_that_were_not_reached_are_minus_one() {
    let mut stage = Stage::new();
    let at = |ms: u64| Some(base::time::Mono::from_nanos(ms * 1_000_000));
    stage.conn.handshake_done.set(at(1010));
    stage.txn.times.first_byte = at(1030);
    stage.txn.times.request = at(1035);
    let times = "%Th/%Ti/%TR/%Tq/%Tw/%Tc/%Tr/%Td";
    assert_eq!(stage.format(times, Use::Log), "10/20/5/35/-1/-1/-1/-1");
    stage.txn.times.queued = at(1040);
    stage.txn.times.connected = at(1041);
    stage.txn.times.response = at(1050);
    stage.txn.times.ended = at(1100);
    assert_eq!(stage.format(times, Use::Log), "10/20/5/35/5/1/9/50");
    assert_eq!(stage.format("%Ta %Tt %Tu", Use::Log), "70 100 80");
}

#[test]
fn totals_carry_a_plus_where_the_frontend_logs_early() {
    let mut stage = Stage::new();
    stage.txn.down.received = 243;
    assert_eq!(stage.format("%B", Use::Log), "0", "known at the end");
    stage.txn.times.ended = Some(base::time::Mono::from_nanos(1));
    assert_eq!(stage.format("%B", Use::Log), "243");
    stage.outside.logs_early = true;
    assert_eq!(stage.format("%B", Use::Log), "+243");
    assert_eq!(stage.format("%B", Use::Value), "243");
}

#[test]
fn control_characters_never_reach_a_header() {
    let mut stage = Stage::new();
    assert_eq!(stage.format("%[str(\"a\\r\\nb\")]", Use::Header), "a%0D%0Ab");
}

#[test]
fn faults_read_as_haproxy_words_them() {
    let mut stage = Stage::new();
    for (text, fault) in [
        ("%[foo]", "failed to parse sample expression <foo]> : unknown fetch method 'foo'"),
        ("%[path,foo]", "failed to parse sample expression <path,foo]> : unknown converter 'foo'"),
        ("%[path", "missing ']' after 'path'"),
        ("%[path lower]", "expected ']' after 'path', but found ' '"),
        (
            "%zz",
            "no such format alias 'zz'. If you wanted to emit the '%' character verbatim, you need to use '%%'",
        ),
        ("%{+Q", "truncated line after '+Q'"),
        ("%", "truncated line after '%'"),
        (
            "%[status]",
            "sample fetch <status> may not be reliably used here because it needs 'HTTP response' which is not available here",
        ),
    ] {
        assert_eq!(stage.format(text, Use::Value), format!("fault: {fault}"), "{text}");
    }
}
