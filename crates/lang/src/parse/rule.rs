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
        if let Some(fault) = elsewhere(&name, at.set, words, names) {
            return Err(fault.at(first));
        }
        let Some(parsed) = reg.parse_action(&name, words, at, names) else {
            return Err(unknown(&name, at.set, reg, names.owner()).at(first));
        };
        let tcp = Sets::TCP.has(at.set);
        let action = parsed.map_err(|f| {
            // HAProxy names the rule in these sets only for the actions that it knows by itself.
            if tcp && (name.starts_with("track-sc") || name == "capture") {
                return f.within(format_args!("'{set} {name}'")).at(first);
            } else if tcp {
                return f.at(first);
            }
            if f.text.contains("' action is experimental") {
                return f.at(first);
            }
            let outer = match names.owner() {
                owner if owner.is_empty() => format!("error detected while parsing '{set} {name}' rule"),
                owner => format!("error detected in {owner} while parsing '{set} {name}' rule"),
            };
            f.within(outer).at(first)
        })?;
        if words.peek().is_some_and(|w| w != b"if" && w != b"unless") {
            let found = words.peek().map(printable).unwrap_or_default();
            let text = if tcp {
                format!("'{set} {name}' only accepts 'if' or 'unless', in {} (got '{found}')", names.owner())
            } else {
                format!(
                    "'{set} {name}' expects either 'if' or 'unless' followed by a condition but found '{found}'"
                )
            };
            return Err(Fault::new(text).at(words.position()));
        }
        let text = words.since(first).iter().map(|w| printable(w)).collect::<Vec<_>>().join(" ").into();
        let keyword = words.peek().map(printable).unwrap_or_default();
        let condition = Condition::parse(words, at.place, reg, names).map_err(|f| {
            if tcp {
                let owner = names.owner();
                f.within(format_args!(
                    "'{set} {name}' : error detected in {owner} while parsing '{keyword}' condition"
                ))
            } else if name == "redirect" {
                let owner = names.owner();
                let text = format!(
                    "error detected in {owner} while parsing '{set} redirect' rule : error in condition: {}",
                    f.text
                );
                Fault { text, ..f }
            } else {
                f.within(format_args!("error detected while parsing an '{set} {name}' condition"))
            }
        })?;
        Ok(Rule { action, condition, number, text })
    }
}

/// Actions that HAProxy knows in all rules on TCP requests and refuses in some of them.
fn elsewhere(name: &str, set: Sets, words: &Words<'_>, names: &dyn Names) -> Option<Fault> {
    let (full, owner) = (set.words(), names.owner());
    let next = words.peek().map(printable).unwrap_or_default();
    match (name, set) {
        ("expect-proxy" | "expect-netscaler-cip", Sets::TCP_SESS | Sets::TCP_REQ) => {
            Some(Fault::new(match &*next {
                "layer4" => format!("'{name} layer4' is not allowed in '{full}' rules in {owner}"),
                other => format!("'{full} {name}' only supports 'layer4' in {owner} (got '{other}')"),
            }))
        }
        ("capture", Sets::TCP_CONN | Sets::TCP_SESS) => {
            Some(Fault::new(format!("'capture {next}' is not allowed in '{full}' rules in {owner}")))
        }
        _ => None,
    }
}

/// The actions that HAProxy lists first in all sets on TCP, but the first three only where requests are
/// looked at.
const TCP_FIRST: [&str; 6] =
    ["accept", "reject", "capture", "expect-proxy", "expect-netscaler-cip", "'track-sc0' ... 'track-sc2'"];

fn unknown(name: &str, set: Sets, reg: &Registry, owner: String) -> Fault {
    let mut known: Vec<String> = Vec::new();
    let tcp = Sets::TCP.has(set);
    if set == Sets::TCP_RES {
        known.extend(["'accept'", "'close'", "'reject'"].map(String::from));
    } else if tcp {
        known.extend(TCP_FIRST.map(|w| if w.starts_with('\'') { w.into() } else { format!("'{w}'") }));
    }
    for name in reg.action_names(set) {
        if tcp && (name.starts_with("track-sc") || known.iter().any(|k| k.trim_matches('\'') == name)) {
            continue;
        }
        let word = match name.strip_suffix('*') {
            Some(prefix) => format!("{}(*)", prefix.trim_end_matches('(')),
            None => name.to_owned(),
        };
        known.push(format!("'{word}'"));
    }
    let missing = if name.is_empty() { " (missing argument)" } else { "" };
    let help = did_you_mean(name, reg.action_names(set));
    let (set, known) = (set.words(), known.join(", "));
    let text = if tcp {
        format!("'{set}' expects {known} in {owner} (got '{name}')")
    } else {
        format!("'{set}' expects {known}, but got '{name}'{missing}")
    };
    Fault { help, ..Fault::new(text) }
}
