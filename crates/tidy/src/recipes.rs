//! The recipes of CONTRIBUTING.md are whole: what was added by one of them is named in the places of its row
//! and nowhere else in their crates. Whoever reads the figure or field stands in other crates.

use std::collections::BTreeSet;

use crate::{read, root, rust_files, text};

/// A recipe: how its row begins, what was added by it, and the most places that it may have.
struct Recipe {
    row: &'static str,
    samples: &'static [&'static str],
    most: usize,
}

const RECIPES: &[Recipe] = &[
    Recipe {
        row: "a keyword of `server` lines",
        samples: &[
            "max_reuse",
            "pool_low_conn",
            "pool_purge_delay",
            "strict_maxconn",
            "up_kills_backups",
            "down_kills",
            "error_limit",
            "non_stick",
        ],
        most: 2,
    },
    Recipe {
        row: "a statistic",
        samples: &[
            "intercepted",
            "failed_rewrites",
            "upgraded",
            "other_requests",
            "internal_errors",
            "denied_sess",
            "denied_conn",
        ],
        most: 2,
    },
];

/// The paths that the row of a recipe names.
fn places(row: &str) -> BTreeSet<String> {
    let text = read(&root().join("CONTRIBUTING.md"));
    let start = format!("| {row} |");
    let line = text.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("CONTRIBUTING.md has no row for {row}"));
    let words = line[start.len()..].split('`').skip(1).step_by(2);
    words.filter(|word| word.starts_with("crates/")).map(str::to_owned).collect()
}

/// The files of a crate that name something outside of tests.
fn naming(folder: &str, name: &str) -> Vec<String> {
    let is_name =
        |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let mut found = Vec::new();
    for file in rust_files(&root().join(folder)) {
        let path = file.strip_prefix(root()).expect("a file of the repository").display().to_string();
        if !path.contains("/tests") && is_name(&text::without_tests(&text::bare(&read(&file)))) {
            found.push(path);
        }
    }
    found
}

#[test]
fn recipes_name_all_places() {
    for recipe in RECIPES {
        let places = places(recipe.row);
        assert!((1..=recipe.most).contains(&places.len()), "{}: {places:?}", recipe.row);
        let folders: BTreeSet<String> =
            places.iter().map(|place| place.split('/').take(3).collect::<Vec<_>>().join("/")).collect();
        for sample in recipe.samples {
            let named: Vec<String> = folders.iter().flat_map(|folder| naming(folder, sample)).collect();
            let of = |place: &str| named.iter().filter(|file| file.starts_with(place)).count();
            for place in &places {
                assert_eq!(of(place), 1, "{}: {sample} in {place}", recipe.row);
            }
            assert_eq!(named.len(), places.len(), "{}: {sample} is named in {named:?}", recipe.row);
        }
    }
}
