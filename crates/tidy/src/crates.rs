//! A crate depends only on crates of lower floors, and the table in ARCHITECTURE.md says which floor each
//! has.

use crate::{read, root};
use std::collections::BTreeMap;

/// The table of floors: rows of `| floor | `crate`, ... | what |`.
fn floors() -> BTreeMap<String, u32> {
    let mut floors = BTreeMap::new();
    for line in read(&root().join("ARCHITECTURE.md")).lines() {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let Some(floor) = cells.next().and_then(|cell| cell.parse().ok()) else { continue };
        for name in cells.next().unwrap_or_default().split(',') {
            floors.insert(name.trim().trim_matches('`').to_owned(), floor);
        }
    }
    floors
}

/// The crates of the workspace that a manifest names under `[dependencies]`.
fn dependencies(manifest: &str, floors: &BTreeMap<String, u32>) -> Vec<String> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| floors.contains_key(*name))
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_stand_on_lower_floors() {
    let floors = floors();
    let mut wrong = Vec::new();
    for folder in std::fs::read_dir(root().join("crates")).expect("the crates").flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        if name == "worlds" || name == "tidy" {
            continue;
        }
        let Some(floor) = floors.get(&name) else {
            wrong.push(format!("{name} has no floor in ARCHITECTURE.md"));
            continue;
        };
        for below in dependencies(&read(&folder.path().join("Cargo.toml")), &floors) {
            if floors[&below] >= *floor {
                wrong.push(format!("{name} (floor {floor}) depends on {below} (floor {})", floors[&below]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
