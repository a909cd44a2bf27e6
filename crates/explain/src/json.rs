//! The report for programs: one JSON object.

use std::fmt::Write;

use crate::report::{Change, Report, Row, Section};
use crate::seen::{Sample, Seen};

impl Report {
    /// As JSON, with a line feed at its end.
    pub fn json(&self) -> String {
        let mut out = String::new();
        object(&mut out, |o| {
            o.text("request", &self.request);
            o.text("source", &self.addresses.0);
            o.text("destination", &self.addresses.1);
            o.list("proxies", &self.sections, section);
            o.text("outcome", &self.outcome);
            o.bare("forwarded", self.forwarded);
            if let Some(line) = &self.rewritten {
                o.text("rewritten", line);
            }
            o.list("headers", &self.headers, |out, (change, name, value)| {
                object(out, |o| {
                    o.text("name", name);
                    o.text("value", value);
                    o.text(
                        "change",
                        match change {
                            Change::Kept => "kept",
                            Change::Added => "added",
                            Change::Removed => "removed",
                        },
                    );
                });
            });
        });
        out.push('\n');
        out
    }
}

fn section(out: &mut String, section: &Section) {
    object(out, |o| {
        o.text("proxy", &section.title);
        o.list("rules", &section.rows, row);
    });
}

fn row(out: &mut String, row: &Row) {
    object(out, |o| {
        if let Some((file, line)) = &row.place {
            o.text("file", file);
            o.bare("line", line);
        }
        o.text("rule", &row.rule);
        if let Some(condition) = &row.condition {
            o.text("condition", condition);
        }
        o.bare("applies", row.applies);
        o.list("factors", &row.seen, factor);
        o.list("effects", &row.effects, |out, e| string(out, e));
    });
}

fn factor(out: &mut String, seen: &Seen) {
    object(out, |o| {
        o.text("acl", &seen.acl);
        o.bare("holds", seen.holds);
        o.list("samples", &seen.samples, sample);
    });
}

fn sample(out: &mut String, sample: &Sample) {
    object(out, |o| {
        o.text("expression", &sample.expression);
        o.text("method", sample.method);
        o.list("values", &sample.values, |out, v| string(out, v));
        o.bare("matches", sample.matches);
    });
}

/// Members of an object being written.
struct Members<'o> {
    out: &'o mut String,
    first: bool,
}

fn object(out: &mut String, members: impl FnOnce(&mut Members<'_>)) {
    out.push('{');
    members(&mut Members { out, first: true });
    out.push('}');
}

impl Members<'_> {
    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        string(self.out, name);
        self.out.push(':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        string(self.out, value);
    }

    fn bare(&mut self, name: &str, value: impl std::fmt::Display) {
        self.name(name);
        let _ = write!(self.out, "{value}");
    }

    fn list<T>(&mut self, name: &str, items: &[T], item: impl Fn(&mut String, &T)) {
        self.name(name);
        self.out.push('[');
        for (i, one) in items.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            item(self.out, one);
        }
        self.out.push(']');
    }
}

fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
