//! Stories of requests, as the report tells them.

use std::sync::Arc;

use model::World;
use program::Program;

use crate::{Ask, Change, Report, Style, explain};

const CONFIG: &str = "\
global
    nbthread 1
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
frontend web
    bind 127.0.0.1:8080
    option forwardfor
    acl api path_beg /api/ /v1/
    acl inside src 10.0.0.0/8
    http-request del-header x-internal unless inside
    http-request set-var(txn.kind) str(api) if api
    http-request set-header x-kind %[var(txn.kind)] if api
    http-request deny deny_status 429 if { hdr(x-bad) -m found }
    http-request redirect location /new code 301 if { path /old }
    http-request set-path /rewritten if { path /from }
    use_backend api if api
    use_backend %[req.hdr(x-where)] if { req.hdr(x-where) -m found }
    default_backend site
frontend second
    bind 127.0.0.1:8081
    default_backend site
backend api
    balance leastconn
    use-server two if { hdr(x-pin) 2 }
    server one 127.0.0.1:1
    server two 127.0.0.1:2
backend site
    http-request set-header x-site yes
    server only 127.0.0.1:3
";

fn program(text: &str) -> Program {
    named("t.cfg", text)
}

fn named(file: &str, text: &str) -> Program {
    let source = syntax::Source::new(file, text.into());
    let grammar = syntax::Grammar { sections: syntax::SECTION_WORDS, facts: &syntax::PlainBuild };
    let reading = syntax::read(vec![source], syntax::Environment::new(), grammar);
    let options = compile::Options { fd_limit: 20_000, processors: 1, ..Default::default() };
    let world = Arc::new(World::new(1));
    let outcome = compile::compile(reading, &lang::Registry::standard(), world, &options);
    let mut program = outcome.program.expect("the configuration is right");
    program.adopt();
    program
}

fn ask(words: &[&str]) -> Ask {
    let words = ["-f", "t.cfg"].iter().chain(words).map(|w| (*w).to_owned());
    Ask::parse(words).expect("the words are right")
}

fn report(words: &[&str]) -> Report {
    explain(&program(CONFIG), &ask(words)).expect("the request is right")
}

/// The rules that applied, with what they did.
fn applied(report: &Report) -> Vec<String> {
    let rows = report.sections.iter().flat_map(|s| &s.rows).filter(|r| r.applies);
    rows.map(|r| format!("{} | {}", r.rule, r.effects.join(", "))).collect()
}

#[test]
fn the_rules_that_apply_are_told_with_what_they_do() {
    let r = report(&["GET http://a.example:8080/api/x", "-H", "X-Internal: 1"]);
    let rules = applied(&r);
    assert!(rules[0].ends_with("| - x-internal: 1"), "{rules:?}");
    assert!(rules[1].ends_with("| txn.kind = api"), "{rules:?}");
    assert!(rules[2].ends_with("| + x-kind: api"), "{rules:?}");
    assert_eq!(rules[3], "use_backend api | ");
    assert_eq!(r.outcome, "goes to backend api: leastconn chooses among 2 servers (one, two)");
    let added: Vec<_> = r.headers.iter().filter(|h| h.0 == Change::Added).map(|h| h.1.as_str()).collect();
    assert_eq!(added, ["x-kind", "x-forwarded-for"]);
    assert!(r.headers.contains(&(Change::Removed, "x-internal".into(), "1".into())));
}

#[test]
fn a_condition_shows_the_values_that_decided_it() {
    let r = report(&["GET http://a.example:8080/", "--src", "10.1.2.3", "-H", "X-Internal: 1"]);
    let row = &r.sections[0].rows[0];
    assert!(!row.applies && row.condition.as_deref() == Some("unless inside"));
    assert_eq!((row.seen[0].acl.as_str(), row.seen[0].holds), ("inside", true));
    assert_eq!(row.seen[0].samples[0].values, ["10.1.2.3"]);
    assert_eq!(row.place, Some(("t.cfg".into(), 13)));
}

#[test]
fn a_monitor_answers_before_any_rule() {
    let text = CONFIG.replace(
        "    option forwardfor\n",
        "    acl near src 10.0.0.0/8\n    monitor-uri /alive\n    monitor fail if near\n",
    );
    let end = |words: &[&str]| explain(&program(&text), &ask(words)).expect("the request is right").outcome;
    assert_eq!(end(&["GET http://a:8080/alive", "-H", "X-Bad: 1"]), "monitor-uri /alive: answers 200");
    assert_eq!(end(&["GET http://a:8080/alive", "--src", "10.1.2.3"]), "monitor-uri /alive: answers 503");
    assert_eq!(end(&["GET http://a:8080/"]), "goes to server site/only");
}

#[test]
fn answers_and_choices_end_the_story() {
    let end = |words: &[&str]| report(words).outcome;
    assert_eq!(end(&["GET http://a:8080/", "-H", "X-Bad: 1"]), "denied: answers 429");
    assert!(end(&["GET http://a:8080/old"]).starts_with("answers 301, location: /new"));
    assert_eq!(end(&["GET http://a:8080/"]), "goes to server site/only");
    assert_eq!(end(&["GET http://a:8080/v1/", "-H", "X-Pin: 2"]), "goes to server api/two");
    let r = report(&["GET http://a:8080/from"]);
    assert_eq!(r.rewritten.as_deref(), Some("GET /rewritten HTTP/1.1"));
    let r = report(&["GET http://a:8080/", "-H", "X-Where: nowhere"]);
    assert!(applied(&r).iter().any(|l| l.contains("there is no such backend")), "{:?}", applied(&r));
    assert_eq!(r.outcome, "goes to server site/only");
}

#[test]
fn a_question_that_fits_no_frontend_says_which_there_are() {
    let why = |words: &[&str]| explain(&program(CONFIG), &ask(words)).unwrap_err();
    assert_eq!(
        why(&["GET http://a:9/"]),
        "no frontend listens there: choose one with --frontend (web, second)"
    );
    assert_eq!(why(&["/", "--frontend", "x"]), "no frontend is called 'x'");
    assert!(why(&["GET http://a:8080/", "-H", "Host: b c"]).contains("refused with 400"));
    assert_eq!(report(&["/", "--frontend", "second"]).outcome, "goes to server site/only");
}

#[test]
fn long_runs_of_rules_that_do_not_apply_are_counted() {
    let rules: String =
        (0..500).map(|i| format!("    use_backend site if {{ hdr(host) -i h{i} }}\n")).collect();
    let config = CONFIG.replace("    use_backend api if api\n", &rules);
    let report =
        explain(&program(&config), &ask(&["GET http://a:8080/", "-H", "Host: h400"])).expect("right");
    let short = report.text(Style::default());
    assert!(short.contains("405 rules that don't apply (--all shows them)"), "{short}");
    assert!(short.contains("use_backend site if { hdr(host) -i h400 }"), "{short}");
    assert!(short.lines().count() < 60);
    assert!(report.text(Style { all: true, colours: false }).lines().count() > 800);
    assert!(!short.contains('\x1b') && report.text(Style { colours: true, all: false }).contains('\x1b'));
}

#[test]
fn json_is_whole_and_escaped() {
    let json = report(&["GET http://a:8080/api/x", "-H", "X-A: \"q\\"]).json();
    assert!(json.contains(r#""value":"\"q\\","change":"kept""#), "{json}");
    assert!(json.contains(r#""rule":"use_backend api","condition":"if api","applies":true"#), "{json}");
    let (open, close) = (json.matches('{').count(), json.matches('}').count());
    assert_eq!(open, close);
}

/// The examples of the repository, each with a question and what people read.
const EXAMPLES: [(&str, &str, &[&str], &str); 3] = [
    (
        "api-gateway.cfg",
        include_str!("../../../examples/api-gateway.cfg"),
        &["GET http://api.example.com:8080/v1/users?x=1", "--src", "192.0.2.7"],
        include_str!("golden/api-gateway.txt"),
    ),
    (
        "web-site.cfg",
        include_str!("../../../examples/web-site.cfg"),
        &["GET http://www.example.org:8080/cart", "-H", "Cookie: SRV=app2", "--src", "192.0.2.7"],
        include_str!("golden/web-site.txt"),
    ),
    (
        "quickstart.cfg",
        include_str!("../../../examples/quickstart.cfg"),
        &["http://localhost:8404/"],
        include_str!("golden/quickstart.txt"),
    ),
];

#[test]
fn the_example_configurations_are_explained() {
    for (file, text, words, golden) in EXAMPLES {
        let report = explain(&named(file, text), &ask(words)).expect("the request is right");
        assert_eq!(report.text(Style::default()), golden, "{file}");
    }
}
