//! `stick` lines, and the tables they need.

use std::collections::HashSet;

use lang::places::Place;
use lang::{Condition, Expr, Fault, Missing, Names, Registry, Words};
use program::stick_rules::StickRule;
use syntax::{Line, Word};

use super::Ground;
use super::rules::{Parse, Parsed};
use crate::draft::Draft;

/// Names of the tables that `stick` rules store servers in.
pub(super) fn stuck(proxies: &[Draft], ground: &Ground<'_>) -> HashSet<Box<str>> {
    let mut out = HashSet::new();
    for p in proxies {
        for line in p.stick.iter().filter_map(|at| ground.line(*at)) {
            out.insert(named(line).unwrap_or(&p.name).into());
        }
    }
    out
}

/// The table that a line names.
fn named(line: &Line) -> Option<&str> {
    let mut words = line.words().iter().map(Word::text).skip(3);
    match words.next() {
        Some("table") => words.next(),
        _ => None,
    }
}

impl Parse<'_, '_, '_> {
    /// Parses the `stick` lines of a proxy.
    pub(super) fn stick(&mut self, p: &Draft, out: &mut Parsed) {
        for at in &p.stick {
            let Some(line) = self.line(*at) else { continue };
            let kind = line.words().get(1).map_or("", Word::text).to_owned();
            let response = kind == "store-response";
            let rule = self.run(line, 2, |words, registry, names| one(words, registry, names, &kind));
            let Some(rule) = rule.flatten() else { continue };
            self.bytes_of_http(p, line, rule.condition.as_ref());
            if response {
                out.stick.response.push(rule);
            } else {
                out.stick.request.push(rule);
            }
        }
    }
}

fn one(
    words: &mut Words<'_>,
    registry: &Registry,
    names: &mut dyn Names,
    kind: &str,
) -> Result<Option<StickRule>, Fault> {
    let place = if kind == "store-response" { Place::StickStore } else { Place::ChooseServer };
    if words.is_empty() {
        return Err(Fault::new("'stick' expects a fetch method"));
    }
    let here = if kind == "store-response" { "for 'store-response'" } else { "during request" };
    let at = words.position();
    let placed = |expr: Expr| match expr.fetch.def.places.has(place) {
        true => Ok(expr),
        false => {
            let (name, source) = (expr.fetch.def.name, expr.fetch.def.places.source());
            let text = format!(
                "fetch method '{name}' extracts information from '{source}', none of which is available {here}"
            );
            Err(Fault::new(text).at(at))
        }
    };
    let expr = Expr::parse_anywhere(words, registry, names)
        .and_then(placed)
        .map_err(|f| Fault { text: format!("'stick': {}", f.text), ..f })?;
    let name = match words.peek() {
        Some(b"table") => {
            words.take();
            words.take().map(|w| String::from_utf8_lossy(w).into_owned()).or(Some(String::new()))
        }
        _ => None,
    };
    if let Some(odd) = words.peek().filter(|w| *w != b"if" && *w != b"unless") {
        let text = format!("'stick': unknown keyword '{}'", String::from_utf8_lossy(odd));
        return Err(Fault::new(text).at(words.position()));
    }
    let table = match &name {
        Some(name) if name.is_empty() => Err(Fault::new("unable to find table ''")),
        name => lang::names::table(names, name.as_deref()),
    };
    let table = match table {
        Ok(table) => {
            if !expr.out().casts_to(lang::stick::key::wants(table.kind())) {
                let name = &table.settings().name;
                names.miss(Missing::Rule(format!(
                    "type of fetch not usable with type of stick-table '{name}'"
                )));
            }
            Some(table)
        }
        Err(fault) => {
            let text = fault.text.trim_end_matches(" referenced").replace("find table", "find stick-table");
            names.miss(Missing::Rule(text));
            None
        }
    };
    let condition = Condition::parse(words, place, registry, names)
        .map_err(|f| f.within("'stick': error detected while parsing sticking condition"))?;
    let Some(table) = table else { return Ok(None) };
    Ok(Some(StickRule {
        expr,
        table,
        condition,
        matches: matches!(kind, "on" | "match"),
        stores: matches!(kind, "on" | "store-request" | "store-response"),
    }))
}
