//! What the tables say of their entries: `harrier help WORD`, and the whole as `docs/reference.md`.
//!
//! Both come from the tables that the program itself works with, so they can't speak of what does not exist.
//! After a change of a table: `harrier help --markdown > docs/reference.md`; a test compares.

pub mod flags;
mod others;

use std::fmt::Write;

use lang::Registry;
use lang::entry::{ConvDef, FetchDef};
use lang::logfmt::TagDef;
use lang::registry::{ActionDef, Sets};
use program::listener::Level;

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
    /// What it is, in the singular.
    kind: &'static str,
    /// The word or words that it is asked for by.
    name: String,
    /// The name with arguments and types.
    title: String,
    doc: String,
    /// Where it may stand, or where its data comes from.
    place: String,
    example: String,
    /// What holds where it does not stand.
    default: String,
}

impl Entry {
    /// An entry of which there is no more to say than what it is.
    fn plain(kind: &'static str, name: &str, title: String, doc: &str) -> Entry {
        Entry {
            kind,
            name: name.to_owned(),
            title,
            doc: doc.to_owned(),
            place: String::new(),
            example: String::new(),
            default: String::new(),
        }
    }
}

fn call(name: &str, args: &str) -> String {
    if args.is_empty() { name.to_owned() } else { format!("{name}({args})") }
}

fn fetch(d: &FetchDef) -> Entry {
    let title = format!("{}: {}", call(d.name, d.args), d.out.word());
    Entry {
        place: format!("needs {}", d.places.source()),
        example: d.example.to_owned(),
        ..Entry::plain("sample fetch", d.name, title, d.doc)
    }
}

fn converter(d: &ConvDef) -> Entry {
    let title = format!("{}: {} => {}", call(d.name, d.args), d.from.word(), d.out.word());
    Entry { example: d.example.to_owned(), ..Entry::plain("converter", d.name, title, d.doc) }
}

fn action(d: &ActionDef) -> Entry {
    let sets: Vec<&str> = SETS.into_iter().filter(|s| d.sets.has(*s)).map(|s| s.words()).collect();
    let name = d.name.trim_end_matches('*');
    Entry {
        place: format!("in {}", sets.join(", ")),
        example: d.example.to_owned(),
        ..Entry::plain("action", name, name.to_owned(), d.doc)
    }
}

fn tag(d: &TagDef) -> Entry {
    Entry::plain("log tag", d.name, format!("%{}", d.name), d.doc)
}

/// A keyword of the configuration.
fn keyword(e: compile::reference::Entry) -> Entry {
    let (kind, before) = match e.class {
        "global" => ("keyword of global", ""),
        "option" => ("option of a proxy", "option "),
        "timeout" => ("timeout of a proxy", "timeout "),
        "section" => ("word of other sections", ""),
        "later" => ("word of sections that are not built yet", ""),
        "bind" => ("word of bind lines", ""),
        "server" => ("word of server lines", ""),
        _ => ("keyword of proxies", ""),
    };
    let title = format!("{before}{}", e.name);
    let idle = if e.idle { "no effect" } else { "" };
    Entry {
        place: [e.places, idle].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", "),
        example: e.example.to_owned(),
        ..Entry::plain(kind, &title.clone(), title, e.doc)
    }
}

/// A command of the runtime API.
fn command(c: &admin::cli::table::Command) -> Entry {
    let name = c.words.join(" ");
    let title = format!("{name} {}", c.arguments).trim_end().to_owned();
    let level = match c.level {
        Level::User => "user",
        Level::Operator => "operator",
        Level::Admin => "admin",
    };
    let mode = if c.experimental { ", in experimental mode" } else { "" };
    Entry { place: format!("level {level}{mode}"), ..Entry::plain("runtime command", &name, title, c.about) }
}

fn statistics() -> Vec<Entry> {
    let column = |(at, c): (usize, &admin::stats::table::Column)| Entry {
        place: format!("column {at}"),
        ..Entry::plain("figure of 'show stat'", c.name, c.name.to_owned(), c.about)
    };
    admin::stats::table::columns().map(column).collect()
}

fn facts() -> Vec<Entry> {
    let fact =
        |(name, about): (&str, &str)| Entry::plain("figure of 'show info'", name, name.to_owned(), about);
    admin::info::figures().map(fact).collect()
}

fn table_types() -> Vec<Entry> {
    let of =
        |t: &stick::data::Entry| Entry::plain("data type of stick tables", t.name, t.name.to_owned(), t.doc);
    stick::data::TYPES.iter().map(of).collect()
}

fn predefined() -> Vec<Entry> {
    let acl = |(name, line): (&str, &str)| {
        Entry::plain("predefined ACL", name, name.to_owned(), &format!("The same as 'acl {name} {line}'."))
    };
    lang::parse::predefined_lines().map(acl).collect()
}

fn command_line() -> Vec<Entry> {
    let flag = |f: &flags::Flag| {
        let title = format!("{} {}", f.name, f.takes).trim_end().to_owned();
        Entry::plain("word of the command line", f.name, title, f.doc)
    };
    flags::FLAGS.iter().map(flag).collect()
}

fn others() -> Vec<Entry> {
    let other = |(kind, name, doc): &(&'static str, &str, &str)| Entry {
        place: (*kind).to_owned(),
        ..Entry::plain(kind, name, (*name).to_owned(), doc)
    };
    others::OTHERS.iter().map(other).collect()
}

fn acl_keywords(registry: &Registry) -> Vec<Entry> {
    let acl = |d: &lang::entry::AclDef| {
        let doc = format!("The same as {} -m {}.", d.fetch, d.kind.name());
        Entry::plain("ACL keyword", d.name, d.name.to_owned(), &doc)
    };
    registry.all_acls().into_iter().map(acl).collect()
}

/// All entries, by chapter of the reference.
fn chapters(registry: &Registry) -> Vec<(&'static str, Vec<Entry>)> {
    let class = |wanted: &[&str]| -> Vec<Entry> {
        let all = compile::reference::entries().into_iter();
        let mut chapter: Vec<Entry> = all.filter(|e| wanted.contains(&e.class)).map(keyword).collect();
        chapter.sort_by(|a, b| a.name.cmp(&b.name));
        chapter
    };
    let mut actions = registry.all_actions().to_vec();
    actions.sort_by_key(|d| d.name);
    let commands = admin::cli::table::commands().iter().copied().chain(admin::cli::table::ALWAYS);
    vec![
        ("Sample fetches", registry.all_fetches().into_iter().map(fetch).collect()),
        ("Converters", registry.all_converters().into_iter().map(converter).collect()),
        ("Actions", actions.into_iter().map(action).collect()),
        ("Log tags", registry.all_tags().into_iter().map(tag).collect()),
        ("ACL keywords", acl_keywords(registry)),
        ("Predefined ACLs", predefined()),
        ("Data types of stick tables", table_types()),
        ("Keywords of global", class(&["global"])),
        ("Keywords of proxies", class(&["proxy", "option", "timeout"])),
        ("Words of other sections", class(&["section", "later"])),
        ("Words of bind lines", class(&["bind"])),
        ("Words of server lines", class(&["server"])),
        ("The command line", command_line()),
        ("Runtime commands", commands.filter(|c| !c.about.is_empty()).map(command).collect()),
        ("Figures of `show stat`", statistics()),
        ("Figures of `show info`", facts()),
        ("Other names", others()),
    ]
}

/// All that the tables say.
pub struct Reference<'r> {
    registry: &'r Registry,
    chapters: Vec<(&'static str, Vec<Entry>)>,
}

impl<'r> Reference<'r> {
    /// Gathers it.
    pub fn new(registry: &'r Registry) -> Reference<'r> {
        Reference { registry, chapters: chapters(registry) }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.chapters.iter().flat_map(|(_, entries)| entries)
    }

    /// What is known of a word or of several; nothing if they name nothing.
    pub fn about(&self, words: &str) -> String {
        // Some names stand for a family that has one entry.
        let fetch = self.registry.fetch(words).map_or(words, |(d, _)| d.name);
        let converter = self.registry.converter(words).map_or(words, |(d, _)| d.name);
        let bare = words.trim_start_matches('%');
        let is_it = |e: &&Entry| match e.kind {
            "sample fetch" => e.name == fetch,
            "converter" => e.name == converter,
            "log tag" => e.name == bare,
            "option of a proxy" => e.name == words || e.name.strip_prefix("option ") == Some(words),
            _ => e.name == words,
        };
        let mut out = String::new();
        for e in self.entries().filter(is_it) {
            // Writing into a String can't fail.
            let _ = writeln!(out, "{} ({})\n    {}", e.title, e.kind, sentence(&e.doc));
            for (label, text) in [("Place", &e.place), ("Default", &e.default), ("Example", &e.example)] {
                if !text.is_empty() {
                    let _ = writeln!(out, "    {label}: {text}");
                }
            }
        }
        out
    }

    /// What the words may have been meant to be.
    pub fn meant(&self, words: &str) -> Option<&str> {
        syntax::nearest(words, self.entries().map(|e| e.name.as_str()))
    }

    /// `harrier help` without a word: what may be asked for.
    pub fn overview(&self) -> String {
        let mut out = String::from("harrier help WORD explains one of these:\n");
        for (title, entries) in &self.chapters {
            let some: Vec<&str> = entries.iter().take(3).map(|e| e.name.as_str()).collect();
            let title = title.replace('`', "'");
            let _ = writeln!(out, "  {title:<28} {:>4}   {}, ...", entries.len(), some.join(", "));
        }
        out.push_str("harrier help --markdown prints them all.\n");
        out
    }

    /// The reference manual, in Markdown.
    pub fn manual(&self) -> String {
        let mut out = String::from(
            "# Reference\n\nMade by `harrier help --markdown` from the tables that the program works with; not to be \
             edited. `harrier help WORD` prints one entry.\n",
        );
        for (title, entries) in &self.chapters {
            section(&mut out, title, entries);
        }
        out
    }
}

/// Text that begins with a capital and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

fn section(out: &mut String, title: &str, entries: &[Entry]) {
    let _ = write!(out, "\n## {title}\n\n");
    for e in entries {
        let _ = write!(out, "- `{}` {}", e.title, sentence(&e.doc));
        if !e.place.is_empty() {
            let _ = write!(out, " ({})", e.place);
        }
        if !e.default.is_empty() {
            let _ = write!(out, " Default: {}.", e.default);
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
        let kept = include_str!("../../../../docs/reference.md");
        let made = Reference::new(&crate::extensions::registry()).manual();
        let odd = kept.lines().zip(made.lines()).find(|(a, b)| a != b);
        assert!(kept == made, "run `harrier help --markdown > docs/reference.md`; first difference: {odd:?}");
    }

    #[test]
    fn a_keyword_is_explained_with_arguments_place_and_example() {
        let registry = crate::extensions::registry();
        let reference = Reference::new(&registry);
        let text = reference.about("field");
        assert!(text.starts_with("field(integer,string[,integer]): str => str (converter)\n"), "{text}");
        assert!(text.contains("Example: "), "{text}");
        let text = reference.about("path_beg");
        assert_eq!(text, "path_beg (ACL keyword)\n    The same as path -m beg.\n");
        assert!(reference.about("return").contains("in http-request"));
        assert_eq!(reference.about("nothing-like-it"), "");
    }

    #[test]
    fn every_kind_of_word_is_explained() {
        let registry = crate::extensions::registry();
        let reference = Reference::new(&registry);
        for (words, kind) in [
            ("maxconn", "(keyword of global)"),
            ("maxconn", "(word of server lines)"),
            ("forwardfor", "option forwardfor (option of a proxy)"),
            ("option forwardfor", "option forwardfor (option of a proxy)"),
            ("show stat", "(runtime command)"),
            ("-sf", "(word of the command line)"),
            ("gpc0", "(data type of stick tables)"),
            ("METH_GET", "(predefined ACL)"),
            ("scur", "(figure of 'show stat')"),
            ("Uptime_sec", "(figure of 'show info')"),
            ("%ST", "(log tag)"),
        ] {
            let text = reference.about(words);
            assert!(text.contains(kind), "{words}: {text}");
        }
        assert_eq!(reference.meant("maxcon"), Some("maxconn"));
        assert!(reference.overview().lines().count() > 10);
    }

    /// The names of HAProxy 3.5, one a line (`names.txt`).
    #[test]
    fn every_name_of_haproxy_is_known() {
        let registry = crate::extensions::registry();
        let reference = Reference::new(&registry);
        let names = include_str!("names.txt").lines();
        let unknown: Vec<&str> = names.filter(|name| reference.about(name).is_empty()).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }

    #[test]
    fn what_is_said_of_the_command_line_is_taken_there() {
        for flag in flags::FLAGS {
            let apart = flag.takes.starts_with('<') && !matches!(flag.name, "-dK" | "-dA");
            let words = [flag.name].into_iter().chain(apart.then_some("1")).map(str::to_owned);
            assert!(crate::args::parse(words).is_ok(), "{}", flag.name);
            assert!(flag.doc.ends_with('.'), "{}", flag.name);
        }
    }
}
