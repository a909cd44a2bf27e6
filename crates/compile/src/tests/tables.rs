//! The tables police themselves: no keyword twice, none without a line of documentation, and each example compiles.

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
    assert!(bind::keywords::all().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
    seen.clear();
    assert!(server::keywords::all().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
    seen.clear();
    assert!(proxy::option::SWITCHES.iter().all(|k| seen.insert(k.name) && k.doc.ends_with('.')));
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
