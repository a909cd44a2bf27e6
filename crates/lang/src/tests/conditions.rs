//! ACLs and conditions: what holds, and how faults read.

use crate::cond::Outcome;
use crate::testing::Stage;

#[test]
fn conditions_hold_as_the_manual_says() {
    let mut stage = Stage::new();
    for (text, expected) in [
        ("if TRUE", true),
        ("if !TRUE", false),
        ("if ! TRUE", false),
        ("if !! TRUE", true),
        ("unless FALSE", true),
        ("if TRUE FALSE", false),
        ("if FALSE or TRUE", true),
        ("if FALSE || TRUE !FALSE", true),
        ("if { path /a/b }", true),
        ("if { path_beg /a /z }", true),
        ("if { path -m end /b }", true),
        ("if { path -i -m str /A/B }", true),
        ("if { path,upper /A/B }", true),
        ("if { hdr(x-list) b }", true),
        ("if { hdr(x-list,1) b }", false),
        ("if { hdr(none) -m found }", false),
        ("if !{ hdr(none) -m found }", true),
        ("if { hdr_cnt(x-list) gt 2 }", true),
        ("if { hdr_cnt(x-list) gt 2 lt 3 }", true),
        ("if { hdr_cnt(x-list) 5:9 }", false),
        ("if { dst_port 80 }", true),
        ("if { src 192.0.2.0/24 }", true),
        ("if { src -f nets }", false),
        ("if { path_len 4 }", true),
        ("if { path_reg ^/[a-c]/b$ }", true),
        ("if METH_GET HTTP_1.1", true),
        ("if LOCALHOST", false),
        ("if { cook(sid) 1 }", true),
        ("if { urlp(c) -- d }", true),
        ("if", false),
    ] {
        stage.names.files.insert("nets".into(), "10.0.0.0/8\n".into());
        assert_eq!(stage.holds(text), Ok(Outcome::from(expected)), "{text}");
    }
}

#[test]
fn faults_read_as_haproxy_words_them() {
    let mut stage = Stage::new();
    for (text, fault) in [
        ("if foo", "no such ACL : 'foo'"),
        ("if { foo }", "unknown fetch method 'foo' in ACL expression 'foo'"),
        ("if { path /a", "missing closing '}' in condition"),
        ("if { }", "missing fetch method in ACL expression ''"),
        ("when TRUE", "expects either 'if' or 'unless' followed by a condition but found 'when'"),
        ("if { path,foo a }", "ACL keyword 'path' : unknown converter 'foo'"),
        ("if { src,foo a }", "unknown converter 'foo' in ACL expression 'src,foo'"),
        ("if { path(x) a }", "ACL keyword 'path' : expected ')' before 'x)'"),
        (
            "if { req.fhdr(a,b) }",
            "fetch method 'req.fhdr' : failed to parse 'b' as type 'integer' at position 2 in ACL expression 'req.fhdr(a,b)'",
        ),
        ("if { path -m foo x }", "unknown matching method 'foo' when parsing ACL expression"),
        ("if { src -m int 1 }", "matching method 'int' cannot be used with fetch keyword 'src'"),
        ("if { dst_port gt x }", "'x' is neither a number nor a supported operator"),
        (
            "if { base32+src x }",
            "matching method must be specified first (using '-m') when using a sample fetch of this type ('base32+src')",
        ),
        (
            "if { bool(true),ipmask(24) 1.2.3.4 }",
            "converter 'ipmask' cannot be applied in ACL expression 'bool(true),ipmask(24)'",
        ),
    ] {
        assert_eq!(stage.holds(text).unwrap_err().text, fault, "{text}");
    }
}

#[test]
fn a_slip_of_the_hand_gets_a_suggestion() {
    let fault = Stage::new().holds("if { path_bge /a }").unwrap_err();
    assert_eq!(fault.help.as_deref(), Some("did you mean 'path_beg' ?"));
    assert_eq!(fault.word, Some(2));
}

#[test]
fn a_test_that_can_never_match_is_warned_of() {
    let mut stage = Stage::new();
    stage.holds("if { status 200 }").unwrap();
    stage.holds("if { hdr(host) }").unwrap();
    assert!(stage.names.warnings[0].contains("will never match because it uses keyword 'status'"));
    assert!(stage.names.warnings[1].contains("no pattern to match against were provided"));
}

#[test]
fn an_acl_that_waits_for_data_is_not_told_yet() {
    let mut stage = Stage::new();
    (stage.outside.complete, stage.last) = (false, false);
    assert_eq!(stage.holds("if { req.len gt 100000 }"), Ok(Outcome::Later));
    assert_eq!(stage.holds("if { req.len gt 100000 } or TRUE"), Ok(Outcome::Yes));
    assert_eq!(stage.holds("if { req.len gt 100000 } FALSE"), Ok(Outcome::No));
    assert_eq!(stage.holds("if WAIT_END"), Ok(Outcome::Later));
    // In TCP a block that has not come whole is waited for, and one that has is not.
    (stage.txn.has_req, stage.outside.body) = (false, b"abcdef".to_vec());
    assert_eq!(stage.holds("if { req.payload(0,5000) -m found }"), Ok(Outcome::Later));
    assert_eq!(stage.holds("if { req.payload(0,5000) -m found } or TRUE"), Ok(Outcome::Yes));
    assert_eq!(stage.holds("if { req.payload(0,5000) -m found } FALSE"), Ok(Outcome::No));
    assert_eq!(stage.holds("if { req.payload(0,4) -m str other }"), Ok(Outcome::No));
    stage.last = true;
    assert_eq!(stage.holds("if { req.payload(0,5000) -m found }"), Ok(Outcome::No));
}
