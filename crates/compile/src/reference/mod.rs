//! All keywords with their documentation, for the reference manual and for help.

mod parts;
mod sections;

use crate::keyword::{Keyword, Places};
use crate::{bind, global, proxy, server};

/// One keyword as the manual shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it belongs: `global`, `proxy`, `option`, `timeout`, `bind`, `server`, `section` (one that is no
    /// proxy), `later` (one that is not built yet).
    pub class: &'static str,
    /// The word.
    pub name: &'static str,
    /// In which sections it may stand; nothing where the class says it.
    pub places: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// A line that compiles; empty where none can stand alone.
    pub example: &'static str,
    /// What holds where the word does not stand; empty where there is nothing to say, or the sentence says
    /// it.
    pub default: &'static str,
    /// It is read and has no effect; `doc` says why.
    pub idle: bool,
}

/// Whether a section that is no proxy has this word.
pub(crate) fn is_word(section: &str, name: &str) -> bool {
    sections::WORDS.iter().any(|entry| entry.places == section && entry.name == name)
}

/// All keywords, by class and in the order of their tables.
pub fn entries() -> Vec<Entry> {
    let mut out = Vec::new();
    of_tables(&mut out, "global", global::TABLES);
    of_tables(&mut out, "proxy", proxy::TABLES);
    let entry = |class, places: Places, name, doc| Entry {
        class,
        name,
        places: words_of(places),
        doc,
        example: "",
        default: "",
        idle: false,
    };
    let nowhere = Places(0);
    out.extend(proxy::option::OTHERS.iter().map(|k| Entry {
        example: k.example,
        idle: k.idle,
        ..entry("option", k.places, k.name, k.doc)
    }));
    out.extend(proxy::timeout::TIMEOUTS.iter().map(|k| {
        let places = match k.front {
            Some(true) => Places::FRONT,
            Some(false) => Places::BACK,
            None => Places::ALL,
        };
        Entry { default: k.default, ..entry("timeout", places, k.name, k.doc) }
    }));
    out.extend(proxy::option::SWITCHES.iter().map(|k| entry("option", k.places, k.name, k.doc)));
    out.extend(bind::all().map(|k| Entry {
        example: k.example,
        default: k.default,
        idle: k.idle,
        ..entry("bind", nowhere, k.name, k.doc)
    }));
    out.extend(parts::PARTS);
    out.extend(sections::WORDS);
    let mut of_servers: Vec<_> = server::keywords::all().collect();
    of_servers.sort_unstable_by_key(|k| k.name);
    out.extend(of_servers.into_iter().map(|k| Entry {
        example: k.example,
        default: k.default,
        idle: k.idle,
        ..entry("server", nowhere, k.name, k.doc)
    }));
    out
}

fn of_tables<T>(out: &mut Vec<Entry>, class: &'static str, tables: &[&'static [Keyword<T>]]) {
    let all = tables.iter().flat_map(|t| t.iter());
    let proxies = class == "proxy";
    out.extend(all.map(|k| Entry {
        class,
        name: k.name,
        places: words_of(if proxies { k.places } else { Places(0) }),
        doc: k.doc,
        example: k.example,
        default: k.default,
        idle: k.idle,
    }));
}

/// A set of sections in words.
fn words_of(places: Places) -> &'static str {
    const SETS: &[(Places, &str)] = &[
        (Places::RULES, "all proxies, of defaults only named ones"),
        (Places::ALL, "all proxies and defaults"),
        (Places::FRONT, "defaults, frontend, listen"),
        (Places::BACK, "defaults, listen, backend"),
        (Places::PROXIES, "frontend, listen, backend"),
        (Places::FRONT_ONLY, "frontend, listen"),
        (Places::BACK_ONLY, "listen, backend"),
        (Places::DEFAULTS, "defaults"),
    ];
    SETS.iter().find(|(set, _)| *set == places).map_or("", |(_, words)| words)
}
