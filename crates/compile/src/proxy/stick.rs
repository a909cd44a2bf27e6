//! `stick-table` and `stick`.

use crate::draft::Draft;
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step};
use crate::table;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry("stick", Places::BACK_ONLY, rule, "Clients are sent where they were before.", ""),
    entry(
        "stick-table",
        Places::ALL,
        declare,
        "A table of counters by key.",
        "stick-table type ip size 1m expire 10m store gpc0,conn_rate(10s)",
    ),
];

fn declare(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if p.kind.is_defaults() {
        return Err(s.fail("'stick-table' is not supported in 'defaults' section."));
    }
    if let Some(first) = &p.table {
        let at = format!("{}:{}", s.around.sources.name(first.span.file), first.span.line);
        let name = &p.name;
        let text = format!(
            "stick-table name '{name}' conflicts with table declared in {} '{name}' at {at}.",
            p.kind.noun()
        );
        return Err(s.fail_at(s.line.span(), text));
    }
    p.table = Some(table::read(s, &p.name, format!("Proxy '{}'", p.name), true)?);
    Ok(())
}

fn rule(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let kind = s.next().map_or("", syntax::Word::text);
    if !matches!(kind, "on" | "match" | "store-request" | "store-response") {
        return Err(s.fail("'stick' expects 'on', 'match', or 'store'."));
    }
    p.stick.push(s.at);
    Ok(())
}
