//! All keywords with their documentation, for the reference manual and for help.

use crate::keyword::Keyword;
use crate::{bind, global, proxy, server};

/// One keyword as the manual shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it belongs: `global`, `proxy`, `option`, `bind`, `server`.
    pub class: &'static str,
    /// The word.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// A line that compiles; empty where none can stand alone.
    pub example: &'static str,
}

/// All keywords, by class and in the order of their tables.
pub fn entries() -> Vec<Entry> {
    let mut out = Vec::new();
    of_tables(&mut out, "global", global::TABLES);
    of_tables(&mut out, "proxy", proxy::TABLES);
    let entry = |class, name, doc| Entry { class, name, doc, example: "" };
    out.extend(proxy::option::SWITCHES.iter().map(|k| entry("option", k.name, k.doc)));
    out.extend(bind::keywords::all().map(|k| entry("bind", k.name, k.doc)));
    let mut of_servers: Vec<_> = server::keywords::all().collect();
    of_servers.sort_unstable_by_key(|k| k.name);
    out.extend(of_servers.into_iter().map(|k| entry("server", k.name, k.doc)));
    out
}

fn of_tables<T>(out: &mut Vec<Entry>, class: &'static str, tables: &[&'static [Keyword<T>]]) {
    let all = tables.iter().flat_map(|t| t.iter());
    out.extend(all.map(|k| Entry { class, name: k.name, doc: k.doc, example: k.example }));
}
