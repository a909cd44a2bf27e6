//! `filter` lines: bandwidth limits for the rules that turn them on, and what traces streams.

use std::sync::Arc;

use lang::bandwidth::{Bwlim, Scope};
use lang::filter::Maker;
use lang::places::Place;
use lang::registry::FilterPlace;
use lang::{Expr, Fault, Names, Words};
use program::filter::Trace;
use syntax::Diagnostics;

use super::rules::{Parse, Parsed};
use crate::draft::{Draft, LineRef};
use crate::names::Resolver;
use crate::notes::refusal;
use crate::proxy::filter::known;
use crate::units;

/// Filters of the frontend come before those of another proxy.
const BACKENDS: u32 = 1 << 16;

impl Parse<'_, '_, '_> {
    /// All filters of a proxy, before any of its rules.
    pub(super) fn filters(&mut self, p: &Draft, out: &mut Parsed) {
        let kinds = self.kinds(p);
        let base = if p.kind.is_front() { 0 } else { BACKENDS };
        self.unwritten_application(p, &kinds, base, out);
        self.unwritten(p, &kinds, out);
        for (number, at) in p.filters.iter().enumerate() {
            let Some(line) = self.line(*at) else { continue };
            let kind = line.words().get(1).map_or("", |w| w.text()).to_owned();
            let order = [0, 1].map(|side| order(p, side, &kind, number));
            if kind == "trace" {
                out.traces.extend(self.run(line, 2, |w, _, _| trace(w, order)));
                continue;
            }
            if kind == "fcgi-app" {
                self.application(*at, p, order, out);
                continue;
            }
            if kind == "cache" {
                self.run(line, 2, |words, _, names| cache(words, names, &p.name, number, order[1].is_some()));
                continue;
            }
            if !matches!(kind.as_str(), "bwlim-in" | "bwlim-out") {
                if let Some(text) = doubled(&kinds, number, &p.name) {
                    self.refuse(line, text);
                    continue;
                }
                let maker =
                    self.run(line, 2, |words, registry, names| named(&kind, words, p, registry, names));
                out.filters.extend(maker.map(|maker| program::filter::Line { order, maker }));
                continue;
            }
            let upload = kind == "bwlim-in";
            let filter = self.run(line, 2, |words, registry, names| {
                let parsed = limit(words, registry, names, p).map_err(|fault| match fault {
                    Wrong::Filter(f) => Fault { text: format!("'filter' : '{kind}' : {}", f.text), ..f },
                    Wrong::Key(f) => Fault { text: format!("'filter' : {}", f.text), ..f },
                })?;
                if let Some(extra) = words.peek_str() {
                    return Err(Fault::new(format!("'filter {kind}' : unknown keyword '{extra}'")));
                }
                Ok(parsed.finish(names, p, upload, order[usize::from(!upload)]))
            });
            let Some((filter, late)) = filter else { continue };
            out.late.extend(late);
            if self.known_filters().iter().any(|f| f.name == filter.name) {
                let text = format!(
                    "'filter' : bwlim filter '{}' already declared for proxy '{}'",
                    filter.name, p.name
                );
                self.refuse(line, text);
                continue;
            }
            self.add_filter(Arc::new(filter));
        }
    }
}

impl Parse<'_, '_, '_> {
    /// The kinds of filters that lines ask for, in their order.
    fn kinds(&mut self, p: &Draft) -> Vec<String> {
        let mut kind = |at: &LineRef| {
            let word = self.line(*at).and_then(|line| line.words().get(1));
            word.map_or("", |word| word.text()).to_owned()
        };
        p.filters.iter().map(&mut kind).collect()
    }

    /// Caches that lines or rules name must exist, and stand before what compresses.
    pub(super) fn caches(&mut self, p: &Draft) {
        if p.kind.is_defaults() {
            return;
        }
        let kinds = self.kinds(p);
        // Rules of `defaults` stand before all lines of a proxy.
        let before = |rule: &LineRef| {
            let lines = p.filters.iter().filter(|line| rule.section == p.section && line.line < rule.line);
            lines.count()
        };
        for fault in self.names.caches.faults(&self.names.memory.caches, &kinds, before) {
            self.late_refusal(p, format!("config: {} '{}': {fault}", p.kind.noun(), p.name));
        }
    }

    /// Filters that need no line: compression, where no other filter is that it would have to stand before or
    /// behind.
    fn unwritten(&mut self, p: &Draft, kinds: &[String], out: &mut Parsed) {
        let asked = p.compression.is_some() && p.mode == program::Mode::Http && !p.kind.is_defaults();
        if !asked || kinds.iter().any(|kind| COMPRESSION.contains(&&**kind)) {
            return;
        }
        if kinds.iter().any(|kind| !["cache", "fcgi-app"].contains(&&**kind)) {
            let text = format!(
                "config: {} '{}': require an explicit filter declaration to use HTTP compression",
                p.kind.noun(),
                p.name
            );
            self.late_refusal(p, text);
            return;
        }
        let base = if p.kind.is_front() { 0 } else { BACKENDS };
        // Behind all others: what a cache stores is not compressed.
        let order = [Some(base + LAST), Some(base + LAST)];
        let made = self.bare(|words, registry, names| named("compression", words, p, registry, names));
        out.filters.extend(made.map(|maker| program::filter::Line { order, maker }));
    }
}

/// The filters that compress.
const COMPRESSION: [&str; 3] = ["comp-req", "comp-res", "compression"];

/// A place behind those of all lines of a proxy.
const LAST: u32 = BACKENDS - 1;

/// What is said of a filter of compression that stands beside another for the same direction.
fn doubled(kinds: &[String], number: usize, proxy: &str) -> Option<String> {
    let kind = kinds.get(number)?;
    let rivals: &[&str] = match kind.as_str() {
        "comp-req" => &["comp-req", "compression"],
        "comp-res" => &["comp-res", "compression"],
        "compression" => &COMPRESSION,
        _ => return None,
    };
    let before = kinds.iter().take(number);
    before
        .into_iter()
        .any(|other| rivals.contains(&&**other))
        .then(|| format!("'filter' : {proxy}: Proxy supports only one {kind} filter\n"))
}

/// `filter cache` behind its name.
fn cache(
    words: &mut Words<'_>,
    names: &mut Resolver<'_>,
    proxy: &str,
    number: usize,
    keeps: bool,
) -> Result<(), Fault> {
    let name = words.expect("'filter' : cache : expects a <name> argument")?;
    if let Some(extra) = words.peek_str() {
        return Err(Fault::new(format!("'filter cache' : unknown keyword '{extra}'.")));
    }
    if !names.caches.declare(name, number, keeps) {
        let text = format!("'filter' : {proxy}: multiple explicit declarations of the cache filter '{name}'");
        return Err(Fault::new(text));
    }
    Ok(())
}

/// A filter of the registry, behind its name.
fn named(
    kind: &str,
    words: &mut Words<'_>,
    p: &Draft,
    registry: &lang::Registry,
    names: &mut dyn Names,
) -> Result<Arc<dyn Maker>, Fault> {
    let place = FilterPlace {
        proxy: &p.name,
        front: p.kind.is_front(),
        back: p.kind.is_back(),
        http: p.mode == program::Mode::Http,
        compression: p.compression.as_ref(),
    };
    if let Some(made) = registry.parse_filter(kind, words, &place, names) {
        return made;
    }
    let list: Vec<String> =
        known(registry).into_iter().map(|(known, tag)| format!("    [{tag}] {known}")).collect();
    let text = format!("'filter' : unknown keyword '{kind}'. Registered keywords :\n{}", list.join("\n"));
    Err(Fault::new(text))
}

/// Orders of filters may only name those of the proxy.
pub(super) fn check_sequences(p: &Draft, ground: &super::Ground<'_>, notes: &mut Diagnostics) {
    let filters: Vec<&str> =
        p.filters.iter().filter_map(|at| Some(ground.line(*at)?.words().get(1)?.text())).collect();
    for (side, list) in ["request", "response"].into_iter().zip(&p.sequences) {
        for name in list.iter().flatten().filter(|n| !filters.contains(&&***n)) {
            let whole = list.iter().flatten().map(|n| &**n).collect::<Vec<_>>().join(",");
            let text = format!(
                "{}: error while postparsing {side} filter-sequence '{whole}' : invalid filter name: '{name}' is not defined on the proxy",
                p.name
            );
            notes.push(refusal(p.span, text).settling());
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

/// What is wrong with a bandwidth limit: the filter, or the expression of its key, which HAProxy tells
/// without its name.
enum Wrong {
    Filter(Fault),
    Key(Fault),
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Wrong {
        Wrong::Filter(fault)
    }
}

fn limit(
    words: &mut Words<'_>,
    registry: &lang::Registry,
    names: &mut dyn Names,
    p: &Draft,
) -> Result<Limit, Wrong> {
    let name = words.expect("a name is expected as first argument ")?.into();
    let mut made = Limit { name, min_size: 0, limit: 0, period: None, key: None, table: None };
    let (mut own, mut shared) = (false, false);
    // Like HAProxy, what is not known ends the list.
    while let Some(word) = words.peek_str().map(str::to_owned) {
        own |= matches!(word.as_str(), "default-limit" | "default-period");
        shared |= matches!(word.as_str(), "limit" | "key" | "table");
        if own && shared {
            return Err(Fault::new("cannot mix per-stream and shared parameter").into());
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
                made.key = Some(Expr::parse(words, place, registry, names).map_err(Wrong::Key)?);
            }
            "table" => {
                words.take();
                let missing = "the table name is missing for 'table' option";
                made.table = Some(words.expect(missing)?.to_owned());
            }
            _ => break,
        }
    }
    let missing = |what: &str| Err(Fault::new(format!("<{what}> option is missing")).into());
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
    /// With its table, which must keep the rate that it needs; if it doesn't, what is said of that when all
    /// lines are read.
    fn finish(
        self,
        names: &mut dyn Names,
        p: &Draft,
        upload: bool,
        order: Option<u32>,
    ) -> (Bwlim, Option<String>) {
        let (name, min_size, limit) = (self.name, self.min_size, self.limit);
        let (scope, late) = match (self.key, self.period) {
            (Some(key), _) => {
                let called = self.table.as_deref().unwrap_or(&p.name);
                match lang::names::table(names, Some(called)) {
                    Err(fault) => {
                        (Scope::Stream(1000), Some(format!("{} by bwlim filter '{name}'", fault.text)))
                    }
                    Ok(table) => {
                        let late = unfit(&table, &key, upload).map(|(what, more)| {
                            format!("stick-table '{called}' uses a {what} type incompatible with bwlim filter '{name}'{more}")
                        });
                        (Scope::Key(key, table), late)
                    }
                }
            }
            (None, period) => (Scope::Stream(period.unwrap_or(1000)), None),
        };
        (Bwlim { name, order, upload, min_size, limit, scope }, late)
    }
}

/// Which type of a table does not fit, and more about it.
fn unfit(table: &stick::Table, key: &Expr, upload: bool) -> Option<(&'static str, String)> {
    let data = Bwlim::data(upload);
    if !table.layout().has(data) {
        return Some(("data", format!(". It must be '{}'", data.name())));
    }
    let fits = key.out().casts_to(lang::stick::key::wants(table.kind()));
    (!fits).then(|| ("key", String::new()))
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
