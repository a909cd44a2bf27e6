//! The report for people: aligned, coloured on a terminal, plain in a pipe.

use std::fmt::Write;

use crate::report::{Change, Report, Row};
use crate::seen::{Sample, Seen};

/// Rules in a row that don't apply and are shown all the same.
const QUIET: usize = 12;

/// How it is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// With colours.
    pub colours: bool,
    /// All rules, also in long runs of those that don't apply.
    pub all: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn verdict(self, applies: bool) -> String {
        if applies { self.paint("32", "yes") } else { self.paint("33", "no ") }
    }
}

impl Report {
    /// As text.
    pub fn text(&self, style: Style) -> String {
        let mut out = format!("{}\n", style.bold(&self.request));
        line(&mut out, format_args!("from {} to {}", self.addresses.0, self.addresses.1));
        for section in &self.sections {
            line(&mut out, format_args!("\n{}", style.bold(&section.title)));
            let places: Vec<String> = section.rows.iter().map(place).collect();
            let width = places.iter().map(String::len).max().unwrap_or(0);
            let mut quiet = 0;
            for (i, (row, place)) in section.rows.iter().zip(&places).enumerate() {
                let run = section.rows[i..].iter().take_while(|r| !r.applies).count() + quiet;
                if !row.applies && run > QUIET && !style.all {
                    quiet += 1;
                    if section.rows.get(i + 1).is_none_or(|r| r.applies) {
                        let text = format!("{quiet} rules that don't apply (--all shows them)");
                        line(&mut out, format_args!("  {:width$}  {}", "", style.dim(&text)));
                    }
                    continue;
                }
                quiet = 0;
                rule(&mut out, row, place, width, style);
            }
        }
        line(&mut out, format_args!("\n{}", style.bold(&self.outcome)));
        self.fields(&mut out, style);
        out
    }

    fn fields(&self, out: &mut String, style: Style) {
        if !self.forwarded || self.headers.is_empty() {
            return;
        }
        line(out, format_args!("\nthe request then"));
        line(out, format_args!("    {}", self.rewritten.as_ref().unwrap_or(&self.request)));
        for (change, name, value) in &self.headers {
            let text = format!("{name}: {value}");
            let text = match change {
                Change::Kept => format!("    {text}"),
                Change::Added => style.paint("32", &format!("  + {text}")),
                Change::Removed => style.paint("31", &format!("  - {text}")),
            };
            line(out, format_args!("{text}"));
        }
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a String can't fail.
    let _ = writeln!(out, "{text}");
}

fn place(row: &Row) -> String {
    row.place.as_ref().map_or_else(String::new, |(file, line)| {
        let file = file.rsplit('/').next().unwrap_or(file);
        format!("{file}:{line}")
    })
}

fn rule(out: &mut String, row: &Row, place: &str, width: usize, style: Style) {
    let condition = row.condition.as_ref().map_or_else(String::new, |c| format!(" {c}"));
    let verdict = if row.condition.is_some() { style.verdict(row.applies) } else { "   ".into() };
    line(
        out,
        format_args!("  {}  {verdict}  {}{condition}", style.dim(&format!("{place:width$}")), row.rule),
    );
    let indent = format!("  {:width$}       ", "");
    for seen in &row.seen {
        line(out, format_args!("{indent}{}", style.dim(&factor(seen))));
    }
    for effect in &row.effects {
        line(out, format_args!("{indent}{effect}"));
    }
}

/// `bad_ua: no, req.hdr(user-agent) is "curl/8"`.
fn factor(seen: &Seen) -> String {
    let holds = if seen.holds { "holds" } else { "does not hold" };
    let samples: Vec<String> = seen.samples.iter().map(sample).collect();
    let named = !seen.acl.trim_start_matches('!').is_empty()
        && !seen.samples.iter().any(|s| seen.acl.contains(&s.expression));
    match (named, samples.is_empty()) {
        (true, true) => format!("{} {holds}", seen.acl),
        (true, false) => format!("{} {holds}: {}", seen.acl, samples.join("; ")),
        _ => format!("{holds}: {}", samples.join("; ")),
    }
}

fn sample(sample: &Sample) -> String {
    let Sample { expression, method, values, .. } = sample;
    match values.as_slice() {
        [] => format!("{expression} is not there"),
        [one] => format!("{expression} is {one:?} ({method})"),
        many => {
            let list: Vec<String> = many.iter().map(|v| format!("{v:?}")).collect();
            format!("{expression} has {} ({method})", list.join(", "))
        }
    }
}
