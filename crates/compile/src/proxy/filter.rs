//! `filter` and `filter-sequence`: kept as positions until tables and expressions are known.

use crate::draft::{Draft, Kind};
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step};

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry(
        "filter",
        Places::ALL,
        filter,
        "Something that sees the data on its way.",
        "filter bwlim-out limit default-limit 1m default-period 1s",
    ),
    entry(
        "filter-sequence",
        Places::ALL,
        sequence,
        "The order of the filters of one direction; those left out don't work.",
        "",
    ),
];

/// The filters by name, with the tag that `-dKflt` shows.
pub(crate) const FILTERS: &[(&str, &str)] = &[
    ("bwlim-in", "BWLIM"),
    ("bwlim-out", "BWLIM"),
    ("cache", "CACHE"),
    ("comp-req", "COMP"),
    ("comp-res", "COMP"),
    ("compression", "COMP"),
    ("fcgi-app", "FCGI"),
    ("spoe", "SPOE"),
    ("trace", "TRACE"),
];

/// Filters that are built.
pub(crate) const BUILT: &[&str] = &["bwlim-in", "bwlim-out", "trace"];

fn not_in_defaults(s: &Statement<'_>, p: &Draft) -> Step {
    match p.kind {
        Kind::Defaults { .. } => {
            Err(s.fail(format!("{} is not allowed in a 'default' section.", s.keyword())))
        }
        _ => Ok(()),
    }
}

fn filter(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    not_in_defaults(s, p)?;
    let name = s.word(format!("missing argument for 'filter' in {}.", p.label()))?.text().to_owned();
    if !FILTERS.iter().any(|(known, _)| *known == name) {
        let built = FILTERS.iter().filter(|(known, _)| BUILT.contains(known));
        let list: Vec<String> = built.map(|(known, tag)| format!("    [{tag}] {known}")).collect();
        let text = format!("'filter' : unknown keyword '{name}'. Registered keywords :\n{}", list.join("\n"));
        return Err(s.fail(text));
    }
    if !BUILT.contains(&&*name) {
        return Err(s.fail(format!("'filter {name}' is not supported yet by Harrier (planned)")));
    }
    p.filters.push(s.at);
    Ok(())
}

fn sequence(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    not_in_defaults(s, p)?;
    let side = s.word(format!("missing argument for 'filter-sequence' in {}.", p.label()))?.text().to_owned();
    let at = match side.as_str() {
        "request" => 0,
        "response" => 1,
        _ => {
            let text =
                format!("expected either 'request' or 'response' for 'filter-sequence' in {}.", p.label());
            return Err(s.fail(text));
        }
    };
    let list = s.word(format!("missing filter list for 'filter-sequence' in {}.", p.label()))?;
    p.sequences[at] = Some(list.text().split(',').map(Into::into).collect());
    Ok(())
}
