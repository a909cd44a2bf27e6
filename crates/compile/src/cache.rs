//! `cache` sections (manual, section 6.2.1; some words are ours, docs/differences.md).

use std::sync::Arc;
use std::time::Duration;

use cache::{BLOCK, Hints, Settings};
use model::World;
use model::cached::Cache;
use syntax::{Diagnostic, Diagnostics, Section, Span, Style, Word};

use crate::draft::LineRef;
use crate::statement::{Statement, Step, tight};
use crate::{reference, units};

/// Longest name.
const LONGEST: usize = 32;
/// Blocks of a megabyte.
const MEGABYTE: usize = (1 << 20) / BLOCK;
/// Most megabytes.
const MOST: u64 = 4095;
/// Of all blocks those of hints, in hundredths, where nothing is said.
const RATIO: u8 = 25;

/// A section.
pub(crate) struct CacheDraft {
    span: Span,
    settings: Settings,
    /// `max-object-size`, unless it goes without saying.
    max_object: Option<u64>,
}

/// What the first line of a section says.
pub(crate) fn header(section: &Section, known: &[CacheDraft], notes: &mut Diagnostics) -> Option<CacheDraft> {
    let (name, span) = (section.name(), section.header.span());
    if name.is_empty() {
        notes.alert(span, "'cache' expects a <name> argument");
        return None;
    }
    if let Some(extra) = section.header.args().get(1) {
        notes.alert(extra.span(), format!("'cache' cannot handle unexpected argument '{extra}'."));
        return None;
    }
    let name = cut(name, span, notes);
    if known.iter().any(|draft| *draft.settings.name == *name) {
        notes.push(tight(Diagnostic::alert(span, format!("Duplicate cache name '{name}'."))));
        return None;
    }
    let settings = Settings {
        name: name.into(),
        blocks: 0,
        max_object: 0,
        max_age: 60,
        max_secondary: 10,
        vary: false,
        hints: Hints::Off,
        ranges: false,
        wait: None,
        stale_meanwhile: 0,
        stale_on_error: 0,
        standard: false,
    };
    Some(CacheDraft { span, settings, max_object: None })
}

/// As much of a name as counts.
fn cut<'n>(name: &'n str, span: Span, notes: &mut Diagnostics) -> &'n str {
    if name.len() <= LONGEST {
        return name;
    }
    let end = (0..=LONGEST).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    let name = name.get(..end).unwrap_or_default();
    let text = format!("cache name is limited to {LONGEST} characters, truncate to '{name}'.");
    notes.push(tight(Diagnostic::warning(span, text)));
    name
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, draft: &mut CacheDraft) -> Step {
    if s.keyword() == "early-hints" {
        return early_hints(s, draft);
    }
    if !reference::is_word("cache", s.keyword()) {
        return Err(s.fail(format!("unknown keyword '{}' in 'cache' section", s.keyword())));
    }
    s.at_most_one()?;
    let word = s.next().map_or("", Word::text);
    let settings = &mut draft.settings;
    match s.keyword() {
        "total-max-size" => {
            // Whatever is wrong with it, something was said.
            settings.blocks = MEGABYTE;
            let megabytes = number(s, word)?;
            if megabytes > MOST {
                let text = format!("\"total-max-size\" ({word}) must not be greater than {MOST}");
                return Err(stop(s, text));
            }
            settings.blocks = usize::try_from(megabytes).unwrap_or(usize::MAX) * MEGABYTE;
        }
        "max-age" if word.is_empty() => warn(s, "'max-age' expects an age parameter in seconds."),
        // As HAProxy reads it, a negative number is a large one.
        "max-age" => settings.max_age = units::whole(word) as u32,
        "max-object-size" => {
            if word.is_empty() {
                warn(s, "'max-object-size' expects a maximum file size parameter in bytes.");
            }
            draft.max_object = Some(number(s, word)?);
        }
        "max-secondary-entries" => {
            if word.is_empty() {
                warn(s, "'max-secondary-entries' expects a strictly positive number.");
            }
            let number = number(s, word)?;
            if number == 0 {
                return Err(wrong(s, word));
            }
            settings.max_secondary = usize::try_from(number).unwrap_or(usize::MAX);
        }
        "process-vary" if matches!(word, "on" | "off") => settings.vary = word == "on",
        "process-vary" => {
            let text = "'process-vary' expects \"on\" or \"off\" (enable or disable vary processing).";
            (0..1 + usize::from(word.is_empty())).for_each(|_| warn(s, text));
        }
        _ => ours(s, word, settings)?,
    }
    Ok(())
}

/// What HAProxy does not know.
fn ours(s: &Statement<'_>, word: &str, settings: &mut Settings) -> Step {
    match s.keyword() {
        "stale-while-revalidate" | "stale-if-error" => {
            let seconds = word
                .parse()
                .map_err(|_| s.fail(format!("'{}' expects a number of seconds.", s.keyword())))?;
            match s.keyword() {
                "stale-if-error" => settings.stale_on_error = seconds,
                _ => settings.stale_meanwhile = seconds,
            }
        }
        "wait-for-fetch" => {
            let millis = units::millis(word).ok().filter(|millis| *millis > 0);
            let millis = millis.ok_or_else(|| s.fail("'wait-for-fetch' expects a time."))?;
            settings.wait = Some(Duration::from_millis(millis));
        }
        "rfc9111" if matches!(word, "on" | "off") => {
            // What has a word of its own goes with it unless a later line says otherwise.
            settings.standard = word == "on";
            (settings.vary, settings.ranges) = (settings.standard, settings.standard);
        }
        "rfc9111" => return Err(s.fail("'rfc9111' expects \"on\" or \"off\".")),
        "byte-ranges" if matches!(word, "on" | "off") => settings.ranges = word == "on",
        _ => return Err(s.fail("'byte-ranges' expects \"on\" or \"off\".")),
    }
    Ok(())
}

fn warn(s: &mut Statement<'_>, text: &str) {
    let warning = tight(Diagnostic::warning(s.line.span(), text));
    s.notes.push(warning);
}

/// HAProxy warns of it, and stops all the same.
fn stop(s: &Statement<'_>, text: String) -> Diagnostic {
    Diagnostic { fatal: true, ..tight(Diagnostic::warning(s.eaten().span(), text)) }
}

fn wrong(s: &Statement<'_>, word: &str) -> Diagnostic {
    stop(s, format!("{} wrong value '{word}'", s.keyword()))
}

/// A whole number; one that is negative or does not fit is the largest.
fn number(s: &Statement<'_>, word: &str) -> Step<u64> {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong(s, word));
    }
    Ok(word.parse().unwrap_or(u64::MAX))
}

/// `early-hints <on|off|only> [ratio <number>]`.
fn early_hints(s: &mut Statement<'_>, draft: &mut CacheDraft) -> Step {
    if let Some(extra) = s.line.args().get(3) {
        let text = format!("'early-hints' cannot handle unexpected argument '{extra}'.");
        return Err(s.fail_at(extra.span(), text));
    }
    let word = s.next().map_or("", Word::text);
    if !matches!(word, "on" | "off" | "only") {
        warn(
            s,
            "'early-hints' expects \"on\", \"off\" or \"only\" (enable or disable HTTP 103 Early Hints support, or store only hints).",
        );
        return Ok(());
    }
    let ratio = match s.next().map(Word::text) {
        None => RATIO,
        Some("ratio") => {
            const EXPECTS: &str = "'early-hints ratio' expects an integer argument between 1 and 99";
            let number = s.next().map(Word::text);
            let ratio = number.and_then(|n| n.parse().ok()).filter(|n| (1..=99).contains(n));
            let got = number.map_or_else(|| ".".to_owned(), |n| format!(", got '{n}'."));
            ratio.ok_or_else(|| tight(s.fail(format!("{EXPECTS}{got}"))))?
        }
        Some(other) => {
            let text = format!("'early-hints' unexpected argument '{other}', expected 'ratio'.");
            return Err(tight(s.fail(text)));
        }
    };
    draft.settings.hints = match word {
        "on" => Hints::On { ratio },
        "only" => Hints::Only,
        _ => Hints::Off,
    };
    Ok(())
}

/// The caches of all sections: those that exist already, where nothing else is said of them.
pub(crate) fn finish(drafts: Vec<CacheDraft>, world: &World, notes: &mut Diagnostics) -> Vec<Arc<Cache>> {
    let mut caches = Vec::new();
    for CacheDraft { span, mut settings, max_object } in drafts {
        let refuse = |text| Diagnostic::alert(span, text).styled(Style::Plain);
        if settings.blocks == 0 {
            notes.push(refuse(format!("Size not specified for cache '{}'", settings.name)));
            continue;
        }
        let size = settings.blocks * BLOCK;
        let most =
            max_object.filter(|most| *most > 0).map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        settings.max_object = most.unwrap_or(size / 256);
        if settings.max_object > size / 2 {
            notes.push(refuse(format!(
                "\"max-object-size\" is limited to an half of \"total-max-size\" => {}",
                size / 2
            )));
            continue;
        }
        caches.push(world.cache(settings));
    }
    caches
}

/// The caches that a proxy uses, each once, in the order in which they are named.
#[derive(Default)]
pub(crate) struct UsedCaches {
    list: Vec<UsedCache>,
}

/// One of them.
struct UsedCache {
    name: Box<str>,
    /// The number of its `filter` line among those of the proxy, and whether `filter-sequence` lets it see
    /// responses.
    line: Option<(usize, bool)>,
    /// The rules that name it. Without a line of its own it stands where the first of them does.
    rules: Vec<LineRef>,
}

impl UsedCaches {
    /// A rule names it.
    pub fn mention(&mut self, name: &str, at: LineRef) {
        match self.list.iter_mut().find(|used| *used.name == *name) {
            Some(used) => used.rules.push(at),
            None => self.list.push(UsedCache { name: name.into(), line: None, rules: vec![at] }),
        }
    }

    /// A `filter` line names it; false if one did already.
    pub fn declare(&mut self, name: &str, number: usize, keeps: bool) -> bool {
        let new = !self.list.iter().any(|used| *used.name == *name);
        if new {
            self.list.push(UsedCache { name: name.into(), line: Some((number, keeps)), rules: Vec::new() });
        }
        new
    }

    /// Whether there is one.
    pub fn any(&self) -> bool {
        !self.list.is_empty()
    }

    /// Whether its filter sees responses.
    pub fn keep(&self, name: &str) -> bool {
        let used = self.list.iter().find(|used| *used.name == *name);
        used.and_then(|used| used.line).is_none_or(|(_, keeps)| keeps)
    }

    /// What is wrong with them where `known` are the caches, `kinds` the filters that lines ask for, and
    /// `before` tells how many of these stand before a rule.
    pub fn faults(
        &self,
        known: &[Arc<Cache>],
        kinds: &[String],
        before: impl Fn(&LineRef) -> usize,
    ) -> Vec<String> {
        let packs = |kind: &String| kind.starts_with("comp");
        let packer = kinds.iter().position(packs);
        let others = kinds.iter().any(|kind| !packs(kind) && !["cache", "fcgi-app"].contains(&&**kind));
        let place = |used: &UsedCache| match used.line {
            Some((line, _)) => line,
            None => used.rules.iter().map(&before).min().unwrap_or(0),
        };
        let behind = |used: &UsedCache| packer.is_some_and(|at| at < place(used));
        let mut faults = Vec::new();
        // Said of the two halves only, not of the filter that does both.
        let half = packer.and_then(|at| kinds.get(at)).is_some_and(|kind| kind != "compression");
        if half && self.list.iter().any(behind) {
            faults.push("unable to enable the compression filter before any cache filter.".to_owned());
        }
        for used in &self.list {
            let name = &used.name;
            if !known.iter().any(|cache| cache.settings().name == *name) {
                faults.push(format!("unable to find the cache '{name}' referenced by the filter 'cache'."));
            } else if used.line.is_none() && others {
                faults.push(format!("require an explicit filter declaration to use the cache '{name}'."));
            } else if behind(used) {
                faults.push(format!("unable to enable the compression filter before the cache '{name}'."));
            }
        }
        faults
    }
}
