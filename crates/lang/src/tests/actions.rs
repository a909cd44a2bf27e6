//! What actions do.

use crate::action::{Flow, Need, Payload};
use crate::env::Side;
use crate::registry::Sets;
use crate::rules::{Position, RuleSet, Run};
use crate::testing::Stage;

const REQ: Sets = Sets::HTTP_REQ;

fn field(stage: &Stage, name: &str) -> String {
    let all: Vec<_> = stage.txn.req.all(name).map(|(_, v)| String::from_utf8_lossy(v).into_owned()).collect();
    all.join("|")
}

#[test]
fn header_fields_are_edited() {
    let mut stage = Stage::new();
    stage.pass(REQ, "add-header x-list d");
    assert_eq!(field(&stage, "x-list"), "a, b|c|d");
    stage.pass(REQ, "replace-value x-list ^(.)$ <\\1>");
    assert_eq!(field(&stage, "x-list"), "<a>,<b>|<c>|<d>");
    stage.pass(REQ, "replace-header x-list ^(.*),.* \\1-%[src]");
    assert_eq!(field(&stage, "x-list"), "<a>-192.0.2.1|<c>|<d>");
    stage.pass(REQ, "set-header x-list %[path]");
    assert_eq!(field(&stage, "x-list"), "/a/b");
    stage.pass(REQ, "del-header X- -m beg");
    assert!(!stage.txn.req.has("x-list") && !stage.txn.req.has("x-n") && stage.txn.req.has("host"));
    stage.pass(REQ, "del-header host if FALSE");
    assert!(stage.txn.req.has("host"));
    stage.pass(REQ, "del-header host");
    assert!(!stage.txn.req.has("host"));
}

#[test]
fn the_target_is_edited_part_by_part() {
    for (rule, expected) in [
        ("set-path /x", "/x?c=d&e=f"),
        ("set-pathq /x?y", "/x?y"),
        ("set-query q=1", "/a/b?q=1"),
        ("set-query %[hdr(none)]", "/a/b"),
        ("set-uri http://h/%[path]", "http://h//a/b"),
        ("replace-path ^/(.*) /z/\\1", "/z/a/b?c=d&e=f"),
        ("replace-pathq ^(.*)\\?(.*)$ \\1/\\2", "/a/b/c=d&e=f"),
        ("replace-path nothing /z", "/a/b?c=d&e=f"),
        ("replace-uri b(.) \\x41\\1\\1", "A??"),
    ] {
        let mut stage = Stage::new();
        stage.pass(REQ, rule);
        assert_eq!(String::from_utf8_lossy(stage.txn.req.target()), expected, "{rule}");
    }
    let mut stage = Stage::new();
    stage.pass(REQ, "set-method POST");
    assert_eq!(stage.txn.req.method(), b"POST");
}

#[test]
fn variables_keep_type_and_obey_conditions() {
    let mut stage = Stage::new();
    stage.pass(REQ, "set-var(txn.n) int(5)");
    assert_eq!(stage.value("var(txn.n)"), "5");
    stage.pass(REQ, "set-var(txn.n,ifnotexists) int(6)");
    assert_eq!(stage.value("var(txn.n)"), "5");
    stage.pass(REQ, "set-var(txn.n,iflt) int(6)");
    assert_eq!(stage.value("var(txn.n)"), "6");
    stage.pass(REQ, "set-var(txn.n) hdr(none)");
    assert_eq!(stage.value("var(txn.n)"), "6");
    stage.pass(REQ, "set-var-fmt(sess.s) %[src]-%[path]");
    assert_eq!(stage.value("var(sess.s)"), "192.0.2.1-/a/b");
    stage.pass(REQ, "unset-var(txn.n)");
    assert_eq!(stage.value("var(txn.n)"), "none");
}

fn location(flow: Flow) -> (u16, String) {
    let Flow::Reply(reply) = flow else { panic!("no reply") };
    let value = reply.computed.iter().find(|(n, _)| *n == "location").map(|(_, v)| v.clone()).unwrap();
    (reply.status, String::from_utf8(value).unwrap())
}

#[test]
fn redirects_build_their_location() {
    for (rule, code, expected) in [
        ("redirect location /x", 302, "/x"),
        ("redirect location /x?y keep-query", 302, "/x?y&c=d&e=f"),
        ("redirect prefix http://h code 301", 301, "http://h/a/b?c=d&e=f"),
        ("redirect prefix /p drop-query append-slash", 302, "/p/a/b/"),
        ("redirect prefix /p append-slash", 302, "/p/a/b?c=d&e=f/"),
        ("redirect prefix / drop-query", 302, "/a/b"),
        ("redirect scheme https code 308", 308, "https://www.example.com:80/a/b?c=d&e=f"),
    ] {
        assert_eq!(location(Stage::new().decide(REQ, rule)), (code, expected.into()), "{rule}");
    }
    Stage::new().pass(REQ, "redirect location %[hdr(none)] ignore-empty");
    let Flow::Reply(reply) = Stage::new().decide(REQ, "redirect location / clear-cookie SID=") else {
        panic!()
    };
    assert_eq!(reply.computed[1], ("cache-control", b"no-cache".to_vec()));
    assert_eq!(reply.computed[2], ("set-cookie", b"SID=; path=/; Max-Age=0;".to_vec()));
}

#[test]
fn replies_carry_status_headers_and_payload() {
    let Flow::Reply(reply) =
        Stage::new().decide(REQ, "return status 418 content-type a/b string hi hdr x-a %[path]")
    else {
        panic!()
    };
    assert_eq!((reply.status, reply.content_type.as_deref(), reply.headers.len()), (418, Some("a/b"), 1));
    assert!(matches!(reply.payload, Payload::Bytes(b) if *b == *b"hi"));
    let Flow::Deny(reply) = Stage::new().decide(REQ, "deny deny_status 429 if METH_GET") else { panic!() };
    assert!(reply.status == 429 && matches!(reply.payload, Payload::ErrorFile));
    assert!(matches!(Stage::new().decide(Sets::HTTP_RES, "deny"), Flow::Deny(r) if r.status == 502));
    assert!(matches!(Stage::new().decide(REQ, "tarpit"), Flow::Tarpit(r) if r.status == 500));
    assert!(
        matches!(Stage::new().decide(REQ, "return"), Flow::Reply(r) if r.status == 200 && matches!(r.payload, Payload::Empty))
    );
    let service = Stage::new().decide(REQ, "use-service prometheus-exporter");
    assert!(matches!(service, Flow::Service(name) if *name == *"prometheus-exporter"));
    let Flow::Reply(reply) = Stage::new().decide(REQ, "auth realm R") else { panic!() };
    assert_eq!(
        (reply.status, &reply.computed[0]),
        (401, &("www-authenticate", b"Basic realm=\"R\"".to_vec()))
    );
}

#[test]
fn settings_reach_the_transaction() {
    let mut stage = Stage::new();
    for rule in [
        "set-log-level silent",
        "set-nice 5000",
        "set-priority-class int(-3)",
        "set-timeout tunnel 2s",
        "set-retries 7",
        "set-fc-mark 0x1f",
        "set-src ipv4(203.0.113.9)",
        "set-src-port int(99)",
        "set-dst ipv4(203.0.113.10)",
        "set-dst-port int(81)",
        "set-mark 0x2f",
        "set-fc-mark 0x1f",
        "set-tos 0x3",
        "set-fc-tos 0x4",
        "set-bc-mark 5",
        "set-bc-tos 0x6",
        "disable-l7-retry",
        "capture src len 5",
        "strict-mode off",
    ] {
        stage.pass(REQ, rule);
    }
    let all = &stage.txn.decisions;
    assert_eq!(
        (all.log_level, all.nice, all.priority_class, all.fc_mark),
        (Some(8), Some(1024), -3, Some(31))
    );
    assert_eq!((all.fc_tos, all.bc_mark, all.bc_tos), (Some(4), Some(5), Some(6)));
    assert!(all.lenient_rewrites && all.no_l7_retry);
    assert_eq!(stage.txn.overrides.tunnel, Some(std::time::Duration::from_secs(2)));
    assert_eq!(stage.txn.overrides.retries, Some(7));
    assert_eq!(*stage.txn.req_captures.borrow(), vec![Some(b"203.0"[..].into())]);
    assert_eq!(stage.value("src"), "203.0.113.9");
    assert_eq!(stage.value("src_port"), "99");
    assert_eq!(stage.value("dst"), "203.0.113.10");
    assert_eq!(stage.value("fc_src"), "192.0.2.1");
    assert_eq!(stage.value("dst_port"), "81");
}

#[test]
fn a_rewrite_without_room_is_an_error_unless_lenient() {
    let mut stage = Stage::new();
    let length = stage.txn.req.wire_len();
    stage.txn.req.set_limit(length);
    assert!(matches!(stage.decide(REQ, "add-header x-more text"), Flow::Error));
    let words: [&[&str]; 2] = [&["strict-mode", "off"], &["add-header", "x-more", "text"]];
    let rules = words.map(|rule| stage.rule(REQ, rule).expect("a rule"));
    assert!(matches!(stage.run_all(&RuleSet::new(rules.into()), Position(0)), Run::Done));
    assert!(!stage.txn.req.has("x-more"));
    assert_eq!(stage.outside.front.front.counters.sum(|c| &c.failed_rewrites), 2);
    // The next set is strict again.
    assert!(matches!(stage.decide(REQ, "add-header x-more text"), Flow::Error));
}

#[test]
fn what_takes_time_is_asked_for_once() {
    let mut stage = Stage::new();
    assert!(matches!(stage.decide(REQ, "pause 20ms"), Flow::Yield(Need::Delay(d)) if d.as_millis() == 20));
    assert!(
        matches!(stage.decide(REQ, "early-hint link x"), Flow::Yield(Need::Interim(b)) if *b == *b"link: x\r\n")
    );
    stage.pass(REQ, "wait-for-body time 1s");
    stage.outside.complete = false;
    assert!(matches!(
        stage.decide(REQ, "wait-for-body time 1s at-least 1k"),
        Flow::Yield(Need::Body { at_least: Some(1024), .. })
    ));
    let rule = stage.decide(Sets::TCP_CONN, "expect-proxy layer4");
    assert!(matches!(rule, Flow::Yield(Need::ProxyHeader)));
}

#[test]
fn the_status_is_replaced() {
    let mut stage = Stage::new();
    stage.side = Side::Response;
    stage.pass(Sets::HTTP_RES, "set-status 503 reason Slow");
    assert_eq!((stage.txn.res.status(), stage.txn.res.reason()), (503, &b"Slow"[..]));
}

#[test]
fn faults_read_as_haproxy_words_them() {
    let mut stage = Stage::new();
    let in_rule = |name: &str, text: &str| {
        format!("error detected in frontend 'fe' while parsing 'http-request {name}' rule : {text}")
    };
    for (rule, fault) in [
        ("set-header a", in_rule("set-header", "expects exactly 2 arguments")),
        ("set-header a %[foo]", in_rule("set-header", "failed to parse sample expression <foo]> : unknown fetch method 'foo'")),
        ("set-header a b c", "'http-request set-header' expects either 'if' or 'unless' followed by a condition but found 'c'".into()),
        ("deny if foo", "error detected while parsing an 'http-request deny' condition : no such ACL : 'foo'".into()),
        ("deny foo", "'http-request deny' expects either 'if' or 'unless' followed by a condition but found 'foo'".into()),
        ("deny deny_status 999", in_rule("deny", "Unexpected status code '999'")),
        ("return string a", in_rule("return", "a content type must be defined when non-empty payload is configured")),
        ("redirect", in_rule("redirect", "redirection type expected ('prefix', 'location', or 'scheme')")),
        ("redirect location /a code 200", in_rule("redirect", "'code': unsupported HTTP code '200' (must be one of 301, 302, 303, 307 or 308)")),
        ("set-var(foo.a) path", in_rule("set-var(foo.a)", "invalid variable name 'foo.a'. A variable name must start with its scope. The scope can be 'proc', '(p)sess', '(p)txn', '(p)req', '(p)res' or 'check'")),
        ("set-var(txn.a) str(a)b", in_rule("set-var(txn.a)", "missing comma after fetch keyword")),
        ("set-var(txn.a) path lower foo", "'http-request set-var(txn.a)' expects either 'if' or 'unless' followed by a condition but found 'foo'".into()),
        ("set-timeout foo 3", in_rule("set-timeout", "'set-timeout' rule supports 'client'/'connect'/'queue'/'server'/'tarpit'/'tunnel' (got 'foo')")),
        ("track-sc0 foo", in_rule("track-sc0", "unknown fetch method 'foo'")),
    ] {
        let words: Vec<&str> = rule.split(' ').collect();
        assert_eq!(stage.rule(REQ, &words).err().map(|f| f.text), Some(fault), "{rule}");
    }
    let fault = stage.rule(REQ, &["set-haeder"]).err().unwrap();
    assert!(
        fault.text.starts_with("'http-request' expects 'capture', ")
            && fault.text.ends_with(", but got 'set-haeder'")
    );
    assert_eq!(fault.help.as_deref(), Some("did you mean 'set-header' ?"));
}

#[test]
fn a_rule_changes_the_map_that_a_converter_reads() {
    let mut stage = Stage::new();
    let list = [b"path,map(map.txt)".as_slice()];
    let place = crate::places::Place::BackHttpReq;
    let expr =
        crate::Expr::parse(&mut crate::Words::new(&list), place, &stage.reg, &mut stage.names).unwrap();
    let now = |stage: &Stage| {
        stage.with_env(|env| {
            let mut out = Vec::new();
            expr.append_text(env, &mut out).map(|()| String::from_utf8(out).unwrap())
        })
    };
    assert_eq!(now(&stage).as_deref(), Some("two words"));
    stage.pass(REQ, "set-map(map.txt) %[path] %[src]");
    assert_eq!(now(&stage).as_deref(), Some("192.0.2.1"));
    stage.pass(REQ, "del-map(map.txt) %[path]");
    assert_eq!(now(&stage), None);
    stage.pass(REQ, "set-map(map.txt) %[path] new");
    assert_eq!(now(&stage).as_deref(), Some("new"));
}
