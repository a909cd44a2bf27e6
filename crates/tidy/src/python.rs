//! The tests' own Python: no function or class of a module is defined twice. The second takes the place of
//! the first without a word, as happened when two branches were merged that both added a rule.

use crate::{files, read, root};
use std::collections::HashSet;

#[test]
fn no_name_is_defined_twice() {
    let mut wrong = Vec::new();
    for folder in ["tests", "bench"] {
        for path in files(&root().join(folder), "py") {
            for name in defined_again(&read(&path)) {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "defined twice:\n{}", wrong.join("\n"));
}

/// Names of functions and classes of a module that it defines more than once.
fn defined_again(source: &str) -> Vec<&str> {
    let mut seen = HashSet::new();
    source
        .lines()
        .filter_map(|line| line.strip_prefix("def ").or_else(|| line.strip_prefix("class ")))
        .filter_map(|line| line.split(['(', ':']).next())
        .filter(|name| !seen.insert(*name))
        .collect()
}

#[test]
fn a_second_definition_is_found() {
    assert_eq!(defined_again("def a():\n    def b():\nclass b:\ndef a(x):\n"), ["a"]);
}
