//! Modules inside a crate stand on floors, too: no circle of them beyond a parent and its children.

use crate::graph::{Graph, circles};
use crate::{known, read, root, rust_files, text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of a crate that are files of their own: name (`h2::front`, the root is empty) and file.
fn modules(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for file in rust_files(folder) {
        let inside = file.strip_prefix(folder).expect("a file of this folder").with_extension("");
        let mut words: Vec<String> =
            inside.components().map(|word| word.as_os_str().to_string_lossy().into_owned()).collect();
        if words.iter().any(|word| word == "tests" || word == "fuzzing") {
            continue;
        }
        if words.last().is_some_and(|word| word == "mod")
            || words.len() == 1 && (words[0] == "lib" || words[0] == "main")
        {
            words.pop();
        }
        found.insert(words.join("::"), file);
    }
    found
}

/// What each module of a crate names. A name that the root of the crate only passes on leads to where it is
/// from.
fn imports(folder: &Path) -> Graph {
    let modules = modules(folder);
    let sources: BTreeMap<&String, String> =
        modules.iter().map(|(name, file)| (name, text::without_tests(&text::bare(&read(file))))).collect();
    let passed_on = passed_on(&modules, sources.get(&String::new()).map_or("", String::as_str));
    let mut graph = Graph::new();
    for (name, source) in &sources {
        let below = if name.is_empty() { String::new() } else { format!("{name}::") };
        let children: Vec<&str> = modules
            .keys()
            .filter_map(|other| other.strip_prefix(&below))
            .filter(|rest| !rest.contains("::"))
            .collect();
        let named = graph.entry((*name).clone()).or_default();
        for path in text::paths(source, &children) {
            let Some(mut target) = absolute(name, &path, &children) else { continue };
            if let [only] = target.as_slice()
                && let Some(origin) = passed_on.get(only)
            {
                target = origin.clone();
            }
            while !target.is_empty() && !modules.contains_key(&target.join("::")) {
                target.pop();
            }
            let target = target.join("::");
            if !target.is_empty() && target != **name {
                named.insert(target);
            }
        }
    }
    graph.remove("");
    graph
}

/// The names that the root of a crate has from its modules, and the path of each.
fn passed_on(modules: &BTreeMap<String, PathBuf>, root: &str) -> BTreeMap<String, Vec<String>> {
    let tops: Vec<&str> = modules.keys().filter(|name| !name.contains("::")).map(String::as_str).collect();
    text::paths(root, &tops)
        .into_iter()
        .filter_map(|path| Some((path.last()?.clone(), absolute("", &path, &tops)?)))
        .collect()
}

/// A path as it is from the root of the crate; `None` if it leads out of the crate.
fn absolute(module: &str, path: &[String], children: &[&str]) -> Option<Vec<String>> {
    let mut base: Vec<String> =
        module.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let (first, rest) = path.split_first()?;
    let rest = match first.as_str() {
        "crate" => {
            base.clear();
            rest
        }
        "self" => rest,
        "super" => {
            let up = path.iter().take_while(|word| *word == "super").count();
            base.truncate(base.len().saturating_sub(up));
            &path[up..]
        }
        other if children.contains(&other) => path,
        _ => return None,
    };
    base.extend(rest.iter().cloned());
    Some(base)
}

/// Of a circle: the modules that are not a parent and its children. Empty if the circle is a family.
fn is_family(circle: &BTreeSet<String>) -> bool {
    let parent = circle.iter().min_by_key(|name| name.len()).expect("a circle has modules");
    circle.iter().all(|name| name == parent || name.starts_with(&format!("{parent}::")))
}

#[test]
fn no_circle_of_modules() {
    let mut found = BTreeMap::new();
    for folder in std::fs::read_dir(root().join("crates")).expect("the crates").flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let graph = imports(&folder.path().join("src"));
        let mut list = circles(&graph);
        list.retain(|circle| !is_family(circle));
        let files: usize = list.iter().map(BTreeSet::len).sum();
        if files > 0 {
            for circle in &list {
                let names: Vec<&str> = circle.iter().map(String::as_str).collect();
                println!("{name}: a circle of {}: {}", names.len(), names.join(" "));
                if std::env::var_os("TIDY_EDGES").is_some() {
                    for from in circle {
                        let to: Vec<&str> = graph[from].intersection(circle).map(String::as_str).collect();
                        println!("    {from} -> {}", to.join(" "));
                    }
                }
            }
            found.insert(name, files);
        }
    }
    known::compare("circle", &found);
}
