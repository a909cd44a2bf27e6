//! Rules: an action, its words, and a condition.

use super::did_you_mean;
use super::text::printable;
use crate::cond::Condition;
use crate::names::Names;
use crate::registry::{ActionPlace, Registry, Sets};
use crate::rules::Rule;
use crate::words::{Fault, Words};

impl Sets {
    /// The words that open a rule of this set.
    pub fn words(self) -> &'static str {
        match self {
            Sets::QUIC => "quic-initial",
            Sets::TCP_CONN => "tcp-request connection",
            Sets::TCP_SESS => "tcp-request session",
            Sets::TCP_REQ => "tcp-request content",
            Sets::TCP_RES => "tcp-response content",
            Sets::HTTP_REQ => "http-request",
            Sets::HTTP_RES => "http-response",
            Sets::HTTP_AFTER => "http-after-response",
            _ => "rule",
        }
    }
}

impl Rule {
    /// Reads the words after `http-request` (or another rule set's name): an action, its arguments, a
    /// condition. `number` is the rule's number in the program.
    ///
    /// # Errors
    /// In HAProxy's words: an action that is unknown or not of this set, arguments it refuses, a wrong
    /// condition, words too many.
    pub fn parse(
        words: &mut Words<'_>,
        at: &ActionPlace,
        number: u32,
        reg: &Registry,
        names: &mut dyn Names,
    ) -> Result<Rule, Fault> {
        let set = at.set.words();
        let first = words.position();
        let name = words.take().map(printable).unwrap_or_default();
        let Some(def) = reg.action(&name, at.set) else { return Err(unknown(&name, at.set, reg).at(first)) };
        let action = (def.parse)(words, at, reg, names).map_err(|f| {
            let outer = match names.owner() {
                owner if owner.is_empty() => format!("error detected while parsing '{set} {name}' rule"),
                owner => format!("error detected in {owner} while parsing '{set} {name}' rule"),
            };
            f.within(outer).at(first)
        })?;
        if words.peek().is_some_and(|w| w != b"if" && w != b"unless") {
            let found = words.peek().map(printable).unwrap_or_default();
            let text = format!(
                "'{set} {name}' expects either 'if' or 'unless' followed by a condition but found '{found}'"
            );
            return Err(Fault::new(text).at(words.position()));
        }
        let text = words.since(first).iter().map(|w| printable(w)).collect::<Vec<_>>().join(" ").into();
        let condition = Condition::parse(words, at.place, reg, names).map_err(|f| {
            f.within(format_args!("error detected while parsing an '{set} {name}' condition"))
        })?;
        Ok(Rule { action, condition, number, text })
    }
}

fn unknown(name: &str, set: Sets, reg: &Registry) -> Fault {
    let mut known: Vec<String> = Vec::new();
    for def in reg.all_actions().iter().filter(|d| d.sets.has(set)) {
        let word = match def.name.strip_suffix('*') {
            Some(prefix) => format!("{}(*)", prefix.trim_end_matches('(')),
            None => def.name.to_owned(),
        };
        known.push(format!("'{word}'"));
    }
    let missing = if name.is_empty() { " (missing argument)" } else { "" };
    let text = format!("'{}' expects {}, but got '{name}'{missing}", set.words(), known.join(", "));
    let help = did_you_mean(name, reg.all_actions().iter().filter(|d| d.sets.has(set)).map(|d| d.name));
    Fault { help, ..Fault::new(text) }
}
