//! What rules name and nobody has: told of a proxy when all its lines are read, in HAProxy's order, and of
//! `defaults` sections before all proxies.
//!
//! Rules of a `defaults` section are understood there first, as the section's own: what is wrong with them is
//! told once, whoever inherits them. Those who do understand them anew, with their own names at hand, and
//! leave out the lines of which was told.

use lang::Missing;
use syntax::{Diagnostics, Span};

use super::Assembly;
use crate::draft::{Draft, ErrorDraft, LineRef};
use crate::notes::{refusal, remark};

impl Assembly<'_> {
    /// The rules of a `defaults` section as its own. What comes of them serves no other purpose than to find
    /// faults.
    pub(super) fn defaults(&mut self, p: &Draft, notes: &mut Diagnostics) {
        self.rules(usize::MAX, p, notes);
        self.checks_of_defaults(p, notes);
        drop(self.frontend_list(p, notes));
        for error in &p.errors {
            match error {
                ErrorDraft::Reply(at) => drop(self.http_error(usize::MAX, p, *at, notes)),
                ErrorDraft::Section(name, statuses) => {
                    self.error_section(p, name, statuses, &mut Default::default(), notes)
                }
                ErrorDraft::Message(..) => {}
            }
        }
        let fatal = self.memory.missing.iter().filter(|(_, missing)| !matches!(missing, Missing::Remark(_)));
        let lines: Vec<LineRef> = fatal.map(|(at, _)| *at).collect();
        self.memory.told.extend(lines);
        self.missing_rules(p, notes);
        self.missing_arguments(&p.name, p.span, notes);
    }

    /// Whether a line was inherited by this section and its faults are known.
    pub(super) fn is_told(&self, p: &Draft, at: LineRef) -> bool {
        at.section != p.section && self.memory.told.contains(&at)
    }

    /// What is missed by actions, filters and `stick` rules. Arguments come later.
    pub(super) fn missing_rules(&mut self, p: &Draft, notes: &mut Diagnostics) {
        let all = std::mem::take(&mut self.memory.missing);
        for (at, missing) in all {
            let span = self.ground.line(at).map_or(p.span, |line| line.span());
            match missing {
                Missing::Rule(text) => {
                    let text = text.replace(lang::names::PLACE, &self.ground.place(span));
                    notes.push(refusal(span, format!("Proxy '{}': {text}.", p.name)));
                }
                Missing::Remark(text) => notes.push(remark(span, format!("Proxy '{}': {text}.", p.name))),
                Missing::Refusal(text) => notes.push(refusal(span, text)),
                Missing::Whole(text) => notes.push(remark(p.span, text)),
                argument => self.memory.missing.push((at, argument)),
            }
        }
    }

    /// What arguments name, all in one message.
    pub(super) fn missing_arguments(&mut self, proxy: &str, span: Span, notes: &mut Diagnostics) {
        let all = std::mem::take(&mut self.memory.missing);
        let lines: Vec<String> =
            all.into_iter().filter_map(|(at, missing)| self.argument(proxy, at, missing)).collect();
        match &*lines {
            [] => {}
            [one] => notes.push(refusal(span, one.clone())),
            several => {
                let text =
                    format!("multiple argument resolution errors:\n        {}", several.join("\n        "));
                notes.push(refusal(span, text));
            }
        }
    }

    fn argument(&self, proxy: &str, at: LineRef, missing: Missing) -> Option<String> {
        let Missing::Argument { text, behind, acl } = missing else { return None };
        let line = self.ground.line(at);
        let place = line.map_or_else(|| "(null):0".to_owned(), |line| self.ground.place(line.span()));
        let kind = line.map(|line| (line.keyword().text(), line.words().get(1).map_or("", |w| w.text())));
        let context = match kind.filter(|_| !acl) {
            Some((keyword, second)) => format!(" in {}", context(keyword, second)),
            None => String::new(),
        };
        Some(format!("parsing [{place}]: {text}{context} in proxy '{proxy}'{behind}."))
    }
}

/// How a kind of line is called where a sample expression stands in it.
fn context(keyword: &str, second: &str) -> String {
    match (keyword, second) {
        ("http-request", "redirect") | ("redirect", _) => "redirect format string".into(),
        ("http-request", _) => "http-request expression".into(),
        ("http-response" | "http-after-response", _) => "http-response response".into(),
        ("tcp-request" | "tcp-response", set) => format!("{keyword} {set} expression"),
        ("server" | "default-server" | "server-template", _) => "server directive".into(),
        ("use_backend", _) => "use_backend expression".into(),
        ("use-server" | "balance", _) => "use-server or balance expression".into(),
        ("http-check" | "tcp-check" | "option", _) => "tcp-check expression".into(),
        ("http-error", _) => "http-error directive".into(),
        ("stick", _) => "stick rule".into(),
        ("log-format-sd", _) => "log-format-sd string".into(),
        ("unique-id-format", _) => "unique-id-format string".into(),
        (_, _) => "log-format string".into(),
    }
}
