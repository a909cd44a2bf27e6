//! `-dK` and `help`: what the registries hold.

use lang::Registry;

/// The lists of `-dK<classes>`.
pub fn dump(classes: &str, registry: &Registry) -> String {
    let all = classes.split(',').any(|c| c == "all");
    let wants = |class: &str| all || classes.split(',').any(|c| c == class);
    let mut out = String::new();
    for (class, title) in CLASSES {
        if wants(class) {
            out.push_str(&format!("# List of registered {title}:\n"));
            out.push_str(&lines(class, registry));
        }
    }
    out
}

/// The classes, and how the dump titles them.
const CLASSES: &[(&str, &str)] = &[("cfg", "configuration keywords")];

fn lines(class: &str, _registry: &Registry) -> String {
    let _ = class;
    String::new()
}

/// What is known of a word.
pub fn explain(word: &str, registry: &Registry) -> String {
    let mut out = String::new();
    let mut say = |kind: &str, name: &str, doc: &str, example: &str| {
        out.push_str(&format!("{name} ({kind})\n    {doc}\n    Example: {example}\n"));
    };
    if let Some((d, _)) = registry.fetch(word) {
        say("sample fetch", d.name, d.doc, d.example);
    }
    if let Some((d, _)) = registry.converter(word) {
        say("converter", d.name, d.doc, d.example);
    }
    for d in registry.all_actions().iter().filter(|d| d.name.trim_end_matches('*') == word) {
        say("action", d.name, d.doc, d.example);
    }
    if let Some(d) = registry.tag(word.trim_start_matches('%')) {
        say("log tag", d.name, d.doc, &format!("%{}", d.name));
    }
    out
}
