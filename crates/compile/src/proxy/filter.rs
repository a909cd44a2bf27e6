//! `filter` and `filter-sequence`: kept as positions until tables and expressions are known.

use crate::draft::{Draft, Kind, Named};
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
    entry("use-fcgi-app", Places::ALL, application, "The application of FastCGI behind the servers.", ""),
];

fn application(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if !p.kind.is_back() {
        return Err(s.fail("'use-fcgi-app' only available in backend or listen section"));
    }
    let word = s.word("'use-fcgi-app' expects <name> as argument")?;
    let named = Named { name: word.text().into(), span: word.span() };
    s.args.eat_rest();
    if p.fcgi_app.as_ref().is_some_and(|before| before.name != named.name) {
        return Err(s.fail("'use-fcgi-app' : only one fcgi-app supported per backend"));
    }
    p.fcgi_app = Some(named);
    Ok(())
}

/// The filters that are no entries of the registry, with the tag that `-dKflt` shows.
const BUILT_IN: &[(&str, &str)] = &[
    ("bwlim-in", "BWLIM"),
    ("bwlim-out", "BWLIM"),
    ("cache", "CACHE"),
    ("fcgi-app", "FCGI"),
    ("trace", "TRACE"),
];

/// All filters by name, with their tags, in the order in which they are listed.
pub(crate) fn known(registry: &lang::Registry) -> Vec<(&str, &str)> {
    let mut all: Vec<_> = BUILT_IN.iter().copied().chain(registry.filter_names()).collect();
    all.sort_unstable();
    all
}

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
    s.word(format!("missing argument for 'filter' in {}.", p.label()))?;
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
