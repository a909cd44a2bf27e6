//! What the registries say of their entries: `harrier help KEYWORD`, and the whole as `docs/reference.md`.
//!
//! Both come from the tables that the program itself works with, so they can't speak of what does not exist. After a
//! change of a table: `harrier help --markdown > docs/reference.md`; a test compares.

use std::fmt::Write;

use lang::Registry;
use lang::registry::{ActionDef, ConvDef, FetchDef, Sets, TagDef};

/// All rule sets in the order of the manual's table.
const SETS: [Sets; 8] = [
    Sets::QUIC,
    Sets::TCP_CONN,
    Sets::TCP_SESS,
    Sets::TCP_REQ,
    Sets::TCP_RES,
    Sets::HTTP_REQ,
    Sets::HTTP_RES,
    Sets::HTTP_AFTER,
];

/// One entry in words.
struct Entry {
    kind: &'static str,
    /// The name with arguments and types.
    title: String,
    doc: &'static str,
    /// Where it may stand, or where its data comes from.
    place: String,
    example: String,
}

fn call(name: &str, args: &str) -> String {
    if args.is_empty() { name.to_owned() } else { format!("{name}({args})") }
}

fn fetch(d: &FetchDef) -> Entry {
    Entry {
        kind: "sample fetch",
        title: format!("{}: {}", call(d.name, d.args), d.out.word()),
        doc: d.doc,
        place: format!("needs {}", d.places.source()),
        example: d.example.to_owned(),
    }
}

fn converter(d: &ConvDef) -> Entry {
    Entry {
        kind: "converter",
        title: format!("{}: {} => {}", call(d.name, d.args), d.from.word(), d.out.word()),
        doc: d.doc,
        place: String::new(),
        example: d.example.to_owned(),
    }
}

fn action(d: &ActionDef) -> Entry {
    let sets: Vec<&str> = SETS.into_iter().filter(|s| d.sets.has(*s)).map(|s| s.words()).collect();
    Entry {
        kind: "action",
        title: d.name.trim_end_matches('*').to_owned(),
        doc: d.doc,
        place: format!("in {}", sets.join(", ")),
        example: d.example.to_owned(),
    }
}

fn tag(d: &TagDef) -> Entry {
    Entry {
        kind: "log tag",
        title: format!("%{}", d.name),
        doc: d.doc,
        place: String::new(),
        example: String::new(),
    }
}

/// What is known of a word; nothing if it names nothing.
pub fn about(word: &str, registry: &Registry) -> String {
    let mut entries = Vec::new();
    entries.extend(registry.fetch(word).map(|(d, _)| fetch(d)));
    entries.extend(registry.converter(word).map(|(d, _)| converter(d)));
    let actions = registry.all_actions().iter().filter(|d| d.name.trim_end_matches('*') == word);
    entries.extend(actions.map(|d| action(d)));
    entries.extend(registry.tag(word.trim_start_matches('%')).map(tag));
    let mut out = String::new();
    if let Some(acl) = registry.acl(word) {
        // Writing into a String can't fail.
        let _ = writeln!(
            out,
            "{} (ACL keyword)\n    The same as {} -m {}.",
            acl.name,
            acl.fetch,
            acl.kind.name()
        );
    }
    for e in entries {
        let _ = writeln!(out, "{} ({})\n    {}", e.title, e.kind, e.doc);
        for (label, text) in [("Place", &e.place), ("Example", &e.example)] {
            if !text.is_empty() {
                let _ = writeln!(out, "    {label}: {text}");
            }
        }
    }
    out
}

/// The reference manual, in Markdown.
pub fn manual(registry: &Registry) -> String {
    let mut out = String::from(
        "# Reference of the rule language\n\nMade by `harrier help --markdown` from the tables that the program works \
         with; not to be edited. `harrier help KEYWORD` prints one entry.\n",
    );
    section(&mut out, "Sample fetches", registry.all_fetches().into_iter().map(fetch));
    section(&mut out, "Converters", registry.all_converters().into_iter().map(converter));
    let mut actions = registry.all_actions().to_vec();
    actions.sort_by_key(|d| d.name);
    section(&mut out, "Actions", actions.into_iter().map(action));
    section(&mut out, "Log tags", registry.all_tags().into_iter().map(tag));
    out.push_str("\n## ACL keywords\n\nNames that stand for a fetch with a match method.\n\n");
    for acl in registry.all_acls() {
        let _ = writeln!(out, "- `{}`: `{} -m {}`", acl.name, acl.fetch, acl.kind.name());
    }
    out
}

fn section(out: &mut String, title: &str, entries: impl Iterator<Item = Entry>) {
    let _ = write!(out, "\n## {title}\n\n");
    for e in entries {
        let _ = write!(out, "- `{}` {}", e.title, e.doc);
        if !e.place.is_empty() {
            let _ = write!(out, " ({})", e.place);
        }
        if !e.example.is_empty() && e.example != e.title.split(':').next().unwrap_or_default() {
            let _ = write!(out, " Example: `{}`", e.example);
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_in_docs_is_up_to_date() {
        let kept = include_str!("../../../docs/reference.md");
        let made = manual(&Registry::standard());
        let odd = kept.lines().zip(made.lines()).find(|(a, b)| a != b);
        assert!(kept == made, "run `harrier help --markdown > docs/reference.md`; first difference: {odd:?}");
    }

    #[test]
    fn a_keyword_is_explained_with_arguments_place_and_example() {
        let text = about("field", &Registry::standard());
        assert!(text.starts_with("field(integer,string[,integer]): str => str (converter)\n"), "{text}");
        assert!(text.contains("Example: "), "{text}");
        let text = about("path_beg", &Registry::standard());
        assert_eq!(text, "path_beg (ACL keyword)\n    The same as path -m beg.\n");
        assert!(about("return", &Registry::standard()).contains("in http-request"));
        assert_eq!(about("nothing-like-it", &Registry::standard()), "");
    }
}
