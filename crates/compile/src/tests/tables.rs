//! The tables police themselves: no keyword twice, none without a line of documentation, and each example
//! compiles.

use std::collections::HashSet;

use super::{complaints, run};
use crate::keyword::{Keyword, Places};
use crate::{bind, dump, global, proxy, server};

fn police<T>(tables: &[&'static [Keyword<T>]]) {
    let mut seen = HashSet::new();
    for entry in tables.iter().flat_map(|t| t.iter()) {
        assert!(seen.insert(entry.name), "{} is there twice", entry.name);
        assert!(entry.doc.ends_with('.'), "{} needs a sentence", entry.name);
        let starts = entry.example.is_empty() || entry.example.split(' ').next() == Some(entry.name);
        assert!(starts, "the example of {} shows another keyword", entry.name);
    }
}

#[test]
fn keywords_are_unique_and_documented() {
    police(global::TABLES);
    police(proxy::TABLES);
    let mut seen = HashSet::new();
    assert!(bind::all().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
    seen.clear();
    assert!(server::keywords::all().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
    seen.clear();
    assert!(proxy::option::SWITCHES.iter().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
    assert!(proxy::option::OTHERS.iter().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
    seen.clear();
    assert!(proxy::timeout::TIMEOUTS.iter().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
}

#[test]
fn every_example_of_global_compiles() {
    for entry in global::TABLES.iter().flat_map(|t| t.iter()).filter(|k| !k.example.is_empty()) {
        let outcome = run(&format!("global\n {}\n", entry.example));
        assert_eq!(complaints(&outcome), Vec::<String>::new(), "{}", entry.example);
        assert!(outcome.program.is_some());
    }
}

#[test]
fn every_example_of_a_proxy_compiles() {
    let head = " mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n bind 127.0.0.1:1\n log 127.0.0.1 local0\n";
    for entry in proxy::TABLES.iter().flat_map(|t| t.iter()).filter(|k| !k.example.is_empty()) {
        if lang::Registry::standard().all_actions().is_empty() && RULES.contains(&entry.name) {
            continue;
        }
        let front = entry.places.has(Places::FRONTEND) && !entry.places.has(Places::BACKEND);
        let word = if front { "frontend" } else { "listen" };
        let outcome = run(&format!("{word} p\n{head} {}\n", entry.example));
        // What a second line of a kind changes is worth a warning, and no error.
        assert!(!outcome.diagnostics.has_errors(), "{}: {:?}", entry.example, complaints(&outcome));
    }
}

/// Whether anything is wrong but that the machine has no such network namespace.
fn is_refused(outcome: &crate::Outcome) -> bool {
    let alerts = outcome.diagnostics.iter().filter(|d| d.level == syntax::Level::Alert);
    alerts.filter(|d| !d.text.contains("Cannot open namespace")).count() > 0
}

#[test]
fn every_option_and_timeout_compiles() {
    let heads = [
        (
            Places::BACKEND,
            "backend p\n mode http\n timeout server 1s\n timeout connect 1s\n external-check command /bin/true\n",
        ),
        (Places::FRONTEND, "frontend p\n mode http\n timeout client 1s\n bind 127.0.0.1:1\n"),
    ];
    let switches = proxy::option::SWITCHES.iter().map(|k| (k.places, format!("option {}", k.name)));
    let others = proxy::option::OTHERS.iter().map(|k| (k.places, k.example.to_owned()));
    let timeouts = proxy::timeout::TIMEOUTS.iter().map(|k| {
        let places = if k.front == Some(true) { Places::FRONT } else { Places::BACK };
        (places, format!("timeout {} 1s", k.name))
    });
    for (places, line) in switches.chain(others).chain(timeouts) {
        let (_, head) = heads.iter().find(|(place, _)| places.has(*place)).expect("a section takes it");
        let outcome = run(&format!("global\n external-check\n insecure-fork-wanted\n{head} {line}\n"));
        assert!(!outcome.diagnostics.has_errors(), "{line}: {:?}", complaints(&outcome));
    }
}

/// Examples name files that the tests of TLS have.
fn with_files(example: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tls/src/locked/fixtures");
    let list = std::env::temp_dir().join(format!("harrier-words-{}.txt", std::process::id()));
    std::fs::write(&list, format!("{folder}/whole.pem\n")).expect("a list of certificates");
    example
        .replace("/etc/harrier/site.pem", &format!("{folder}/whole.pem"))
        .replace(
            "/etc/harrier/ca.pem",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../worlds/tests/worlds/fixtures/root.pem"),
        )
        .replace("/etc/harrier/list.txt", &list.display().to_string())
}

#[test]
fn every_example_of_bind_and_server_lines_compiles() {
    let mut wrong = Vec::new();
    let mut look = |config: String, line: String| {
        let outcome = run(&config);
        if is_refused(&outcome) {
            wrong.push(format!("{line}: {:?}", complaints(&outcome)));
        }
    };
    let times = "timeout client 1s\n timeout server 1s\n timeout connect 1s";
    let words = |example: &str| with_files(example);
    for keyword in bind::all().filter(|k| !k.example.is_empty()) {
        assert!(keyword.example.split(' ').any(|word| word == keyword.name), "{}", keyword.name);
        let own = if keyword.tls { "ssl crt /etc/harrier/site.pem" } else { "" };
        let address = match keyword.name {
            "v4v6" | "v6only" => "[::1]:1",
            "gid" | "group" | "uid" | "user" | "mode" | "level" | "severity-output" | "expose-fd" => "/tmp/x",
            _ => "127.0.0.1:1",
        };
        let line = words(&format!("bind {address} {own} {}", keyword.example));
        look(format!("frontend p\n mode http\n {times}\n {line}\n"), line);
    }
    for keyword in server::keywords::all().filter(|k| !k.example.is_empty()) {
        let there = |word: &str| word.split('(').next() == Some(keyword.name);
        assert!(keyword.example.split(' ').any(there), "{}", keyword.name);
        let line = words(&format!("server s2 127.0.0.1:1 {}", keyword.example));
        let before = "server s1 127.0.0.1:2 check";
        look(format!("backend p\n mode http\n {times}\n {before}\n {line}\n"), line);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_part_and_word_of_a_section_compiles() {
    let head = " mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n stick-table type ip size 1k\n";
    for entry in crate::reference::entries() {
        assert!(entry.doc.ends_with('.'), "{}", entry.name);
        let named = entry.example.starts_with(entry.name.split('(').next().unwrap_or_default());
        let lines = match entry.class {
            "proxy" if entry.name.contains(' ') => match entry.places.split(',').next() {
                Some("defaults" | "all proxies and defaults" | "listen") => format!("backend p\n{head}"),
                _ => format!("listen p\n{head} bind 127.0.0.1:1\n"),
            },
            "section" => match entry.places {
                "userlist" => "userlist x\n user ann\n user bob\n".to_owned(),
                "traces" => "traces\n".to_owned(),
                "cache" => "cache x\n total-max-size 2\n".to_owned(),
                "fcgi-app" => "fcgi-app x\n docroot /x\n".to_owned(),
                place => format!("{place} x\n"),
            },
            _ => continue,
        };
        if entry.example.is_empty() {
            continue;
        }
        assert!(named, "the example of {} shows another word", entry.name);
        let outcome = run(&format!("{lines} {}\n", entry.example));
        assert!(!is_refused(&outcome), "{}: {:?}", entry.example, complaints(&outcome));
    }
}

/// Their examples need actions, which `lang` brings.
const RULES: &[&str] = &["http-request", "http-response", "http-after-response", "redirect"];

/// The words of a class in HAProxy's dump, seen on the oracle, for classes that need no rule.
#[test]
fn the_dump_is_that_of_the_oracle() {
    let ours = dump::keywords("cfg", &lang::Registry::standard()).expect("a class");
    for line in [
        "\tbind <addr> accept-netscaler-cip +1",
        "\tbind <addr> ssl alpn +1",
        "\tserver <name> <addr> source +-1",
        "\tserver <name> <addr> agent-check",
        "\toption abortonclose [ FE BE ]",
        "\toption transparent [ ]",
        "\ttune.bufsize",
    ] {
        assert!(ours.lines().any(|l| l == line), "{line:?} is missing");
    }
    assert!(!ours.contains("\tmaxconn\n"), "a built-in keyword is not listed");
}

#[test]
fn what_the_dump_leaves_out_or_in_exists() {
    let ours: HashSet<_> = crate::reference::entries().iter().map(|e| e.name).collect();
    for name in dump::BUILT_IN.iter().chain(dump::LISTED) {
        assert!(ours.contains(name), "{name} is no keyword");
    }
}
