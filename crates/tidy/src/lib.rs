//! The house is kept tidy: crates and modules stand on floors, files and functions stay small enough to see
//! whole, comments keep their width. What is not so yet stands in `known.txt` beside this file with its size,
//! and whoever makes it smaller takes the line down: the list only shrinks.

#![cfg(test)]
#![forbid(unsafe_code)]

mod crates;
mod graph;
mod known;
mod modules;
mod python;
mod recipes;
mod settings;
mod sizes;
mod text;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// All Rust files below a folder, by path.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder, "rs")
}

/// All files below a folder whose names end so, by path.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The text of a file of the sources.
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
