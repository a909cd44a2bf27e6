//! `filter` lines: bandwidth limits for the rules that turn them on, and what traces streams.

use std::sync::Arc;

use lang::act::bandwidth::{Bwlim, Scope};
use lang::places::Place;
use lang::{Expr, Fault, Names, Words};
use program::filter::Trace;

use super::rules::{Parse, Parsed};
use crate::draft::Draft;
use crate::units;

/// Filters of the frontend come before those of another proxy.
const BACKENDS: u32 = 1 << 16;

impl Parse<'_, '_, '_> {
    /// All filters of a proxy, before any of its rules.
    pub(super) fn filters(&mut self, p: &Draft, out: &mut Parsed) {
        let names: Vec<Box<str>> =
            p.filters.iter().filter_map(|at| Some(self.line(*at)?.words().get(1)?.text().into())).collect();
        self.check_sequences(p, &names);
        for (number, at) in p.filters.iter().enumerate() {
            let Some(line) = self.line(*at) else { continue };
            let kind = line.words().get(1).map_or("", |w| w.text()).to_owned();
            let order = [0, 1].map(|side| order(p, side, &kind, number));
            if kind == "trace" {
                out.traces.extend(self.run(line, 2, |w, _, _| trace(w, order)));
                continue;
            }
            let upload = kind == "bwlim-in";
            let filter = self.run(line, 2, |words, registry, names| {
                let parsed = limit(words, registry, names, p)
                    .map_err(|f| Fault { text: format!("'filter' : '{kind}' : {}", f.text), ..f })?;
                parsed.finish(names, p, upload, order[usize::from(!upload)])
            });
            let Some(filter) = filter else { continue };
            if self.known_filters().iter().any(|f| f.name == filter.name) {
                let text =
                    format!("'filter' : bwlim filter '{}' already declared for {}", filter.name, p.label());
                self.refuse(line, text);
                continue;
            }
            self.add_filter(Arc::new(filter));
        }
    }

    fn check_sequences(&mut self, p: &Draft, names: &[Box<str>]) {
        for (side, list) in ["request", "response"].into_iter().zip(&p.sequences) {
            for name in list.iter().flatten().filter(|n| !names.contains(n)) {
                let whole = list.iter().flatten().map(|n| &**n).collect::<Vec<_>>().join(",");
                let text = format!(
                    "error while postparsing {side} filter-sequence '{whole}' : invalid filter name: '{name}' is not defined on the proxy"
                );
                self.refuse_section(p, text);
            }
        }
    }
}

/// Where a filter comes in one direction.
fn order(p: &Draft, side: usize, kind: &str, number: usize) -> Option<u32> {
    let number = u32::try_from(number).unwrap_or(BACKENDS - 1);
    let base = if p.kind.is_front() { 0 } else { BACKENDS };
    let place = match &p.sequences[side] {
        None => 0,
        // Several of one name keep the order in which they stand.
        Some(list) => u32::try_from(list.iter().position(|n| **n == *kind)?).unwrap_or(255).min(255),
    };
    Some(base + (place << 8) + number.min(255))
}

/// `filter trace` behind its name.
fn trace(words: &mut Words<'_>, order: [Option<u32>; 2]) -> Result<Trace, Fault> {
    let mut made =
        Trace { name: "TRACE".into(), order, quiet: false, random: false, most: 0, hexdump: false };
    while let Some(word) = words.take() {
        let word = String::from_utf8_lossy(word).into_owned();
        match word.as_str() {
            "name" => made.name = words.expect("'filter' : 'trace' : 'name' option without value")?.into(),
            "quiet" => made.quiet = true,
            "random-parsing" => {}
            "random-forwarding" => made.random = true,
            "hexdump" => made.hexdump = true,
            "max-fwd" => {
                let value = words.expect("'filter' : 'trace' : 'max-fwd' option without value")?;
                made.most = usize::try_from(units::lenient(value)).unwrap_or(0);
            }
            other => return Err(Fault::new(format!("'filter trace' : unknown keyword '{other}'"))),
        }
    }
    Ok(made)
}

/// A bandwidth limit as written.
struct Limit {
    name: Box<str>,
    min_size: u64,
    limit: u64,
    period: Option<u32>,
    key: Option<Expr>,
    table: Option<String>,
}

fn limit(
    words: &mut Words<'_>,
    registry: &lang::Registry,
    names: &mut dyn Names,
    p: &Draft,
) -> Result<Limit, Fault> {
    let name = words.expect("a name is expected as first argument ")?.into();
    let mut made = Limit { name, min_size: 0, limit: 0, period: None, key: None, table: None };
    let (mut own, mut shared) = (false, false);
    // Like HAProxy, what is not known ends the list.
    while let Some(word) = words.peek_str().map(str::to_owned) {
        own |= matches!(word.as_str(), "default-limit" | "default-period");
        shared |= matches!(word.as_str(), "limit" | "key" | "table");
        if own && shared {
            return Err(Fault::new("cannot mix per-stream and shared parameter"));
        }
        match word.as_str() {
            "default-limit" | "limit" | "min-size" => {
                words.take();
                let bytes = size(words, &word)?;
                *(if word == "min-size" { &mut made.min_size } else { &mut made.limit }) = bytes;
            }
            "default-period" => {
                words.take();
                let text = value(words, &word)?;
                let ms = units::millis(&text).map_err(|_| bad(&word, &text))?;
                made.period = u32::try_from(ms).ok().filter(|ms| *ms > 0);
            }
            "key" => {
                words.take();
                let place = if p.kind.is_front() { Place::FrontHttpReq } else { Place::BackHttpReq };
                made.key = Some(Expr::parse(words, place, registry, names)?);
            }
            "table" => {
                words.take();
                made.table = Some(value(words, &word)?);
            }
            _ => break,
        }
    }
    let missing = |what: &str| Err(Fault::new(format!("<{what}> option is missing")));
    match (shared, made.key.is_some()) {
        (true, false) => return missing("key"),
        (true, true) if made.limit == 0 => return missing("limit"),
        (false, _) if made.period.is_none() => return missing("default-period"),
        (false, _) if made.limit == 0 => return missing("default-limit"),
        _ => {}
    }
    Ok(made)
}

impl Limit {
    /// With its table, which must keep the rate that it needs.
    fn finish(
        self,
        names: &mut dyn Names,
        p: &Draft,
        upload: bool,
        order: Option<u32>,
    ) -> Result<Bwlim, Fault> {
        let scope = match (self.key, self.period) {
            (Some(key), _) => {
                let called = self.table.as_deref().unwrap_or(&p.name).to_owned();
                let table = lang::stick::table(names, Some(&called)).map_err(|_| {
                    let name = &self.name;
                    Fault::new(format!("unable to find table '{called}' referenced by bwlim filter '{name}'"))
                })?;
                let data = Bwlim::data(upload);
                if !table.layout().has(data) {
                    return Err(Fault::new(format!(
                        "stick-table '{called}' uses a data type incompatible with bwlim filter '{}'. It must be '{}'",
                        self.name,
                        data.name()
                    )));
                }
                if !key.out().casts_to(lang::stick::key::wants(table.kind())) {
                    return Err(Fault::new(format!(
                        "stick-table '{called}' uses a type incompatible with the 'key' parameter of bwlim filter '{}'",
                        self.name
                    )));
                }
                Scope::Key(key, table)
            }
            (None, period) => Scope::Stream(period.unwrap_or(1000)),
        };
        Ok(Bwlim { name: self.name, order, upload, min_size: self.min_size, limit: self.limit, scope })
    }
}

fn value(words: &mut Words<'_>, option: &str) -> Result<String, Fault> {
    Ok(words.expect(&format!("the value is missing for '{option}' option"))?.to_owned())
}

fn bad(option: &str, text: &str) -> Fault {
    let odd = text.chars().find(|c| !c.is_ascii_digit()).map(String::from).unwrap_or_default();
    Fault::new(format!("invalid value for option '{option}' (unexpected character '{odd}')"))
}

fn size(words: &mut Words<'_>, option: &str) -> Result<u64, Fault> {
    let text = value(words, option)?;
    units::size(&text).map_err(|_| bad(option, &text))
}
