//! Wrong configurations: what is said, where it points, and that nothing comes of it.

use std::path::Path;

use lang::Registry;
use syntax::{Diagnostic, Level};

use super::run;

/// A proxy with everything that is needed, and one line more.
fn backend(line: &str) -> String {
    format!("backend b\n timeout server 1s\n timeout connect 1s\n {line}\n")
}

fn first(text: &str) -> Diagnostic {
    let outcome = run(text);
    let found = outcome.diagnostics.iter().find(|d| d.level >= Level::Warning);
    found.cloned().unwrap_or_else(|| panic!("nobody complained about {text}"))
}

/// Words seen on the oracle, and the word of the line under which the caret stands.
/// A line of a backend, what is said of it, and the words that it points at.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "balance foo",
        "balance only supports 'roundrobin', 'static-rr', 'leastconn', 'source', 'uri', 'url_param', 'hash', 'hdr(name)', 'rdp-cookie(name)', 'log-hash' and 'sticky' options.",
        "foo",
    ),
    ("balance uri len x", "balance uri : 'len' expects a positive integer (got 'x').", "x"),
    ("hash-balance-factor 50", "'hash-balance-factor' must be 0 or greater than 100.", "50"),
    (
        "cookie c insert bar",
        "'cookie' supports 'rewrite', 'insert', 'prefix', 'indirect', 'nocache', 'postonly', 'domain', 'maxidle', 'dynamic', 'maxlife' and 'attr' options.",
        "bar",
    ),
    ("cookie c insert rewrite", "cookie 'rewrite', 'insert' and 'prefix' modes are incompatible.", "rewrite"),
    (
        "server a 1.2.3.4 weight 300",
        "'server b/a' : weight of server a is not within 0 and 256 (300)..",
        "300",
    ),
    ("server a 1.2.3.4 chek", "'server b/a' : unknown keyword 'chek'; did you mean 'check' maybe ?", "chek"),
    (
        "server a 1.2.3.4:80-90",
        "'server b/a' : port range not permitted here in '1.2.3.4:80-90'",
        "1.2.3.4:80-90",
    ),
    ("timeout server abc", "unexpected character 'a' in 'timeout server'", "abc"),
    (
        "timeout connect 99999999999",
        "timer overflow in argument '99999999999' to 'timeout connect' (maximum value is 2147483647 ms or ~24.8 days)",
        "99999999999",
    ),
    (
        "option httpchk GET / HTTP/1.1\\r\\nHost:x",
        "'option httpchk' : hiding headers or body at the end of the version string is unsupported.Use 'http-check send' directive instead..",
        "HTTP/1.1\\r\\nHost:x",
    ),
    ("option foo", "unknown option 'foo'.", "foo"),
    ("retry-on 404 none", "'retry-on' 'none' keyword only usable alone", "none"),
    (
        "blance roundrobin",
        "unknown keyword 'blance' in 'backend' section; did you mean 'balance' maybe ?",
        "blance",
    ),
    (
        "reqadd X",
        "The 'reqadd' directive is not supported anymore since HAProxy 2.1. Use 'http-request add-header' instead.",
        "reqadd",
    ),
    ("stick", "'stick' expects 'on', 'match', or 'store'.", "stick"),
    ("stick on foo", "'stick': unknown fetch method 'foo'.", "foo"),
    ("stick on src table nope", "Proxy 'b': unable to find stick-table 'nope'.", "stick on src table nope"),
    ("stick on src", "Proxy 'b': unable to find stick-table 'b'.", "stick on src"),
    ("stick-table type foo", "stick-table: unknown type 'foo'.", "foo"),
    ("stick-table type ip", "stick-table: missing size.", "ip"),
    (
        "stick-table type ip size 1 store conn_rate",
        "stick-table: missing argument to store option 'conn_rate'.",
        "conn_rate",
    ),
    (
        "stick-table type ip size 1 store gpc0,gpc(2)",
        "stick-table: simultaneous usage of 'gpc' and 'gpc[0/1]' in a same table is not permitted as 'gpc' overrides 'gpc[0/1]'.",
        "gpc0,gpc(2)",
    ),
    (
        "server a 1.2.3.4:1 ssl verify optional",
        "'server b/a' : 'verify' : unknown verify method 'optional', only 'none' and 'required' are supported.",
        "optional",
    ),
    (
        "use-server nosuch if TRUE",
        "backend 'b' : unable to find server 'nosuch' referenced in a 'use-server' rule.",
        "nosuch",
    ),
    ("bind :80", "'bind' ignored because backend 'b' has no frontend capability.", "bind :80"),
];

#[test]
fn complaints_have_the_words_of_the_oracle_and_point_at_the_word() {
    for (line, says, under) in TABLE {
        let d = first(&backend(line));
        assert_eq!(d.text, *says, "{line}");
        let span = d.span.expect("a place");
        let text = format!(" {line}");
        let shown = text.get(span.start as usize..span.end as usize);
        assert_eq!((span.line, shown), (4, Some(*under)), "{line}");
    }
}

#[test]
fn all_errors_of_a_file_are_reported_in_one_run() {
    let outcome = run("global\n nbthread 0\nfrontend f\n maxcon 5\n bind nowhere\nbackend b\n balance foo\n");
    assert_eq!(outcome.diagnostics.count(Level::Alert), 4);
    assert!(outcome.program.is_none());
}

#[test]
fn a_name_that_is_nearly_right_gets_a_suggestion() {
    let d = first(
        "frontend f\n timeout client 1s\n bind :1\n default_backend wbe\nbackend web\n timeout server 1s\n",
    );
    assert_eq!(d.text, "Proxy 'f': unable to find required default_backend: 'wbe'.");
    assert_eq!(d.help.as_deref(), Some("did you mean 'web' maybe ?"));
}

#[test]
fn two_proxies_of_one_number_are_refused() {
    let d = first("backend x\n id 5\nbackend y\n id 5\n");
    assert_eq!(d.text, "backend y reuses same custom id as backend x (declared at t.cfg:1).");
}

#[test]
fn rules_of_defaults_are_not_for_everybody() {
    let tcp = "defaults d\n tcp-request inspect-delay 5s\n tcp-request content accept\n";
    for (text, says) in [
        (
            format!("{tcp}defaults from d\n"),
            "a defaults section cannot inherit from a defaults section defining TCP/HTTP rules (defaults section at t.cfg:1).",
        ),
        (
            format!("{tcp}listen l from d\n bind :1\n"),
            "a listen section cannot inherit from a defaults section defining TCP/HTTP rules.",
        ),
        (
            format!("{tcp}frontend f from d\n bind :1\nbackend b from d\n"),
            "frontends and backends cannot inherit from the same defaults section if it defines TCP/HTTP rules (defaults section at t.cfg:1).",
        ),
        (
            "defaults d\n tcp-request connection accept\nbackend b from d\n".into(),
            "a backend section cannot inherit from a defaults section defining 'tcp-request connection' or 'tcp-request session' rules (defaults section at t.cfg:1).",
        ),
    ] {
        assert_eq!(first(&text).text, says);
    }
}

#[test]
fn a_missing_timeout_is_worth_a_warning() {
    let outcome = run("listen x\n bind :1\n server s 127.0.0.1:1\n");
    let d = outcome.diagnostics.iter().next().expect("a warning");
    assert!(d.text.starts_with("missing timeouts for proxy 'x'."), "{}", d.text);
    assert!(outcome.program.is_some());
}

/// As often as HAProxy says it: for each two of them.
#[test]
fn equal_cookies_are_told_of() {
    let servers = " server a 127.0.0.1:80\n server b 127.0.0.1:80\n server c 127.0.0.1:81\n server-template d 2 127.0.0.1:80\n";
    let text = format!("backend b\n mode http\n dynamic-cookie-key k\n cookie x insert dynamic\n{servers}");
    let outcome = run(&text);
    let told = outcome.diagnostics.iter().filter(|d| d.text.starts_with("We generated two equal cookies"));
    assert_eq!(told.count(), 6);
}

/// What is not negotiated is no matter of ALPN.
#[test]
fn small_buffers_are_refused_where_http2_is_negotiated() {
    for (word, refused) in [("proto h2", false), ("alpn h2,http/1.1", true)] {
        let text =
            format!("global\n tune.bufsize 8192\nfrontend f\n mode http\n bind 127.0.0.1:8080 {word}\n");
        assert_eq!(run(&text).program.is_none(), refused, "{word}");
    }
}

/// Words of ours that HAProxy does not know.
#[test]
fn words_of_caches_that_are_ours() {
    for (line, text) in [
        ("byte-ranges maybe", "'byte-ranges' expects \"on\" or \"off\"."),
        ("rfc9111", "'rfc9111' expects \"on\" or \"off\"."),
        ("wait-for-fetch soon", "'wait-for-fetch' expects a time."),
        ("wait-for-fetch 0", "'wait-for-fetch' expects a time."),
        ("stale-if-error 5s", "'stale-if-error' expects a number of seconds."),
        ("stale-while-revalidate -1", "'stale-while-revalidate' expects a number of seconds."),
    ] {
        let outcome = run(&format!("cache c\n total-max-size 4\n {line}\n"));
        assert!(outcome.diagnostics.iter().any(|d| d.text == text), "{line}: {:?}", outcome.diagnostics);
    }
}

/// `tests/config` holds wrong configurations and what the oracle says of them.
#[test]
fn the_cases_of_the_oracle() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/config");
    let has_actions = !Registry::standard().all_actions().is_empty();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("tests/config").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a case");
        let is_rule =
            ["http-request", "http-response", "redirect", "tcp-request"].iter().any(|k| text.contains(k));
        if !has_actions && is_rule {
            continue;
        }
        // Files beside the configuration are for extensions.
        if text.contains("\n#! file ") {
            continue;
        }
        let name = entry.file_name().into_string().expect("a name");
        if KNOWN.contains(&&*name) {
            continue;
        }
        let (heads, body): (Vec<&str>, Vec<&str>) =
            text.split_inclusive('\n').partition(|l| l.starts_with("#!"));
        let outcome = run(&body.concat());
        let render = syntax::Render { carets: false, ..syntax::Render::default() };
        let said =
            render.text(&outcome.diagnostics, &super::sources(&body.concat())).replace("t.cfg", "FILE");
        for wanted in heads.iter().filter_map(|h| h.strip_prefix("#! error ")) {
            assert!(said.contains(wanted.trim_end()), "{name}: wanted {wanted}got {said}");
        }
        assert!(outcome.program.is_none() || !heads.iter().any(|h| h.trim_end() == "#! exit 1"), "{name}");
        count += 1;
    }
    assert!(count > 50, "only {count} cases found");
}

/// Cases whose words come from another crate and differ: regular expressions, the order of the list of
/// actions; those of a filter and of scripts, which other crates bring, and what helps with a name.
const KNOWN: &[&str] = &[
    "cache-behind-compression.case",
    "compression-before-cache.case",
    "frontend-acl-regex.case",
    "frontend-deny-status.case",
    "frontend-replace-regex.case",
    "frontend-rule-missing.case",
    "frontend-rule-unknown.case",
    "frontend-tcp-connection.case",
    "lua-all-files.case",
    "mirror-near.case",
];
