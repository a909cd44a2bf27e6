//! Files and functions are small enough to see whole, comments keep their width.

use crate::{known, read, root, rust_files, text};
use std::collections::BTreeMap;

const LINES_OF_A_FILE: usize = 600;
const LINES_OF_A_FUNCTION: usize = 80;
const COLUMNS_OF_A_COMMENT: usize = 110;

/// All Rust files of the crates, by their path in the repository.
fn sources() -> Vec<(String, String)> {
    let root = root();
    let name =
        |path: &std::path::Path| path.strip_prefix(&root).expect("a path inside").display().to_string();
    rust_files(&root.join("crates")).iter().map(|path| (name(path), read(path))).collect()
}

#[test]
fn files_are_small() {
    let found = sources()
        .into_iter()
        .map(|(name, source)| (name, source.lines().count()))
        .filter(|(_, lines)| *lines > LINES_OF_A_FILE)
        .collect();
    known::compare("file", &found);
}

#[test]
fn functions_are_small() {
    let mut found = BTreeMap::new();
    for (name, source) in sources() {
        let bare = text::bare(&source);
        let lines: Vec<&str> = bare.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(function) = function_name(line) else { continue };
            let indent = line.len() - line.trim_start().len();
            let end = lines[at..].iter().position(|line| {
                line.len() - line.trim_start().len() == indent && line.trim_end().ends_with(['}', ';'])
            });
            let size = end.map_or(0, |end| end + 1);
            if size > LINES_OF_A_FUNCTION {
                found.insert(format!("{name} {function}"), size);
            }
        }
    }
    known::compare("function", &found);
}

/// The name of the function whose first line this is.
fn function_name(line: &str) -> Option<&str> {
    let words = line.trim_start();
    let (before, behind) = words.split_once("fn ")?;
    let qualified = before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || matches!(word, "const" | "async" | "unsafe" | "extern")
            || word.ends_with(')')
    });
    let name = behind.split(['(', '<']).next()?;
    (qualified && !name.is_empty()).then_some(name)
}

#[test]
fn comments_keep_their_width() {
    let mut wrong = Vec::new();
    for (name, source) in sources() {
        for (number, line) in source.lines().enumerate() {
            let comment =
                line.trim_start().starts_with("//") && !line.contains("://") && !line.contains("//! |");
            if comment && line.chars().count() > COLUMNS_OF_A_COMMENT {
                wrong.push(format!("{name}:{}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "comments wider than {COLUMNS_OF_A_COMMENT} columns:\n{}", wrong.join("\n"));
}
