//! No setting is read from a configuration, kept and forgotten: each public field of `program` has a reader
//! above `compile`, or stands below with the reason why it needs none.
//!
//! The search is one of text: a field counts as read where its name stands behind a dot, or in a pattern, and
//! `program` itself reads what it hands out by a method.

use std::collections::BTreeSet;

use crate::{read, root, rust_files};

/// Fields that only `program` or `compile` read, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "dynamic_key",
        "read by `compile`: the key of `dynamic-cookie-key` lives in the model, where commands change it",
    ),
    ("except", "read by `AddressHeader::that_applies` in `program`"),
    ("if_none", "read by `AddressHeader::that_applies` in `program`"),
    ("healthchecks", "read by `compile` for servers that are added at run time"),
    ("unfit", "read by `compile` for backends that are added at run time"),
];

/// The names of the public fields of a file's structs.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("    pub ")?.split_once(": ")?;
        name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_').then_some(name)
    })
}

/// Names that stand behind a dot, or between braces or commas as in a pattern.
fn names_read(text: &str, found: &mut BTreeSet<String>) {
    let bytes = text.as_bytes();
    let part = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let mut at = 0;
    while at < bytes.len() {
        if !part(at) || at > 0 && part(at - 1) {
            at += 1;
            continue;
        }
        let end = (at..).find(|end| !part(*end)).unwrap_or(bytes.len());
        let before = text[..at].trim_end().chars().next_back();
        let after = text[end..].trim_start().chars().next();
        let pattern = matches!(before, Some('{' | ',')) && matches!(after, Some('}' | ','));
        if before == Some('.') || pattern {
            found.insert(text[at..end].to_owned());
        }
        at = end;
    }
}

#[test]
fn what_is_configured_is_read() {
    let is_test = |path: &std::path::Path| {
        let path = path.display().to_string();
        path.contains("/tests") || path.ends_with("tests.rs") || path.contains("/worlds/")
    };
    let mut seen = BTreeSet::new();
    for path in rust_files(&root().join("crates")) {
        let shown = path.display().to_string();
        if !is_test(&path) && !["/crates/program/", "/crates/compile/"].iter().any(|own| shown.contains(own))
        {
            names_read(&read(&path), &mut seen);
        }
    }
    let mut unread = BTreeSet::new();
    for path in rust_files(&root().join("crates/program/src")).iter().filter(|path| !is_test(path)) {
        let text = read(path);
        unread.extend(fields(&text).filter(|name| !seen.contains(*name)).map(str::to_owned));
        // What a method of the same file hands out is read.
        unread.retain(|name| !text.contains(&format!("self.{name}")));
    }
    let excepted: BTreeSet<String> = EXCEPTIONS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let missing: Vec<_> = unread.difference(&excepted).collect();
    assert!(missing.is_empty(), "read by nobody above `compile`: {missing:?}");
    let stale: Vec<_> = excepted.difference(&unread).collect();
    assert!(stale.is_empty(), "read now, take them out of the exceptions: {stale:?}");
}
