//! `known.txt`: what is larger than it may be, with the size that it has. A size that is not the one in the
//! list is an error in both directions, so that the list tells the truth and only shrinks.
//!
//! `TIDY_WRITE=1 cargo test -p tidy` takes lines down, and out, that are smaller now; it never adds to one.

use crate::{read, root};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// The tests of this crate run beside each other and share the one file.
static FILE: Mutex<()> = Mutex::new(());

fn path() -> PathBuf {
    root().join("crates/tidy/src/known.txt")
}

/// Of a line of `known.txt`: the kind, the size, the name.
fn entry(line: &str) -> Option<(&str, usize, &str)> {
    let (kind, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    Some((kind, size.parse().ok()?, name))
}

/// Compares what was found of a `kind` (name and size, only what breaks the rule) with `known.txt`.
pub fn compare(kind: &str, found: &BTreeMap<String, usize>) {
    let _one_at_a_time = FILE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if std::env::var_os("TIDY_WRITE").is_some() {
        take_down(kind, found);
    }
    let text = read(&path());
    let known: BTreeMap<&str, usize> = text
        .lines()
        .filter_map(entry)
        .filter(|(of, ..)| *of == kind)
        .map(|(_, size, name)| (name, size))
        .collect();
    let mut wrong = Vec::new();
    for (name, size) in found {
        match known.get(name.as_str()) {
            Some(listed) if listed == size => {}
            Some(listed) if listed > size => {
                wrong.push(format!("{name}: {size} now, known.txt has {listed}"))
            }
            Some(listed) => wrong.push(format!("{name}: {size}, it was {listed}")),
            None => wrong.push(format!("{name}: {size}, which is too large")),
        }
    }
    for name in known.keys().filter(|name| !found.contains_key(**name)) {
        wrong.push(format!("{name}: is as it should be, its line in known.txt can go"));
    }
    assert!(wrong.is_empty(), "{kind}:\n  {}\n(TIDY_WRITE=1 takes known.txt down)", wrong.join("\n  "));
}

/// Writes the smaller sizes into the list, and leaves out what is as it should be.
fn take_down(kind: &str, found: &BTreeMap<String, usize>) {
    let text = read(&path());
    let mut kept = String::new();
    for line in text.lines() {
        match entry(line) {
            Some((of, size, name)) if of == kind => {
                if let Some(now) = found.get(name) {
                    kept.push_str(&format!("{kind} {} {name}\n", size.min(*now)));
                }
            }
            _ => kept.extend([line, "\n"]),
        }
    }
    std::fs::write(path(), kept).expect("known.txt can be written");
}
