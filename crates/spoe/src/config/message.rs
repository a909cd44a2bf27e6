//! `spoe-message` (SPOE.txt, section 2.3).

use std::collections::HashMap;
use std::sync::Arc;

use lang::places::Place;
use lang::{Acl, Condition, Expr, Fault, Names, Registry, Words};
use syntax::Line;

use super::{Wrong, odd, wrong};
use crate::event::Event;
use crate::scoped::Scoped;

/// The section while it is read.
pub struct Draft {
    /// Its name.
    pub name: String,
    /// Its line.
    pub line: usize,
    /// `args`: names and expressions.
    pub args: Vec<(Box<[u8]>, Expr)>,
    /// `event`: the last one counts.
    pub event: Option<Event>,
    /// Its condition.
    pub condition: Option<Condition>,
    /// Its ACLs as conditions see them.
    acls: HashMap<Box<str>, Arc<Acl>>,
}

impl Draft {
    /// Nothing is said yet.
    pub fn new(name: String, line: usize) -> Draft {
        Draft { name, line, args: Vec::new(), event: None, condition: None, acls: HashMap::new() }
    }

    /// One of its lines. Others than these are passed over, as HAProxy does it.
    pub fn line(&mut self, line: &Line, registry: &Registry, names: &mut dyn Names) -> Result<(), Wrong> {
        let words: Vec<&[u8]> = line.args().iter().map(|word| word.bytes()).collect();
        match line.keyword().text() {
            "acl" => self.acl(&words, registry, names),
            "args" => words.iter().try_for_each(|word| self.arg(word, registry, names)),
            "event" => self.event(&words, registry, names),
            _ => Ok(()),
        }
    }

    fn scoped<'n>(&self, registry: &'n Registry, names: &'n mut dyn Names) -> Scoped<'n> {
        Scoped { names, registry, acls: self.acls.clone() }
    }

    fn acl(&mut self, words: &[&[u8]], registry: &Registry, names: &mut dyn Names) -> Result<(), Wrong> {
        let mut scoped = self.scoped(registry, names);
        let parsed = Acl::parse_line(&mut Words::new(words), registry, &mut scoped).map_err(plain)?;
        drop(scoped);
        let name = parsed.name;
        let mut tests = match self.acls.remove(&name).map(Arc::try_unwrap) {
            None => Vec::new(),
            Some(Ok(before)) => before.tests.into_vec(),
            Some(Err(_)) => {
                return wrong(format!("acl '{name}' is used by a condition further up already."));
            }
        };
        tests.push(parsed.test);
        let acl = Acl { name: name.clone(), tests: tests.into() };
        self.acls.insert(name, Arc::new(acl));
        Ok(())
    }

    /// `[name=]sample`
    fn arg(&mut self, word: &[u8], registry: &Registry, names: &mut dyn Names) -> Result<(), Wrong> {
        let (name, expr) = match word.iter().position(|byte| *byte == b'=') {
            // What stands behind a parenthesis belongs to the sample.
            Some(at) if !word.iter().take(at).any(|byte| *byte == b'(' || *byte == b',') => {
                (word.get(..at).unwrap_or_default(), word.get(at + 1..).unwrap_or_default())
            }
            _ => (&[][..], word),
        };
        if expr.is_empty() {
            return wrong("'args': missing fetch method.");
        }
        let list = [expr];
        let mut scoped = self.scoped(registry, names);
        let parsed = Expr::parse_anywhere(&mut Words::new(&list), registry, &mut scoped);
        let parsed = parsed.map_err(|fault| Wrong::Parsing(format!("'args': {}.", trimmed(&fault))))?;
        self.args.push((name.into(), parsed));
        Ok(())
    }

    fn event(&mut self, words: &[&[u8]], registry: &Registry, names: &mut dyn Names) -> Result<(), Wrong> {
        let Some(name) = words.first().map(|name| String::from_utf8_lossy(name).into_owned()) else {
            return wrong("missing event name.");
        };
        let Some(event) = Event::from_name(&name) else { return wrong(format!("unknown event '{name}'.")) };
        let rest = words.get(1..).unwrap_or_default();
        match rest.first() {
            None | Some(&(b"if" | b"unless")) => {}
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                return odd(format!(
                    "'event {name}' expects either 'if' or 'unless' followed by a condition but found '{other}'."
                ));
            }
        }
        let mut scoped = self.scoped(registry, names);
        let parsed = Condition::parse(&mut Words::new(rest), Place::FrontHttpReq, registry, &mut scoped);
        let condition = parsed.map_err(|fault| {
            let why = trimmed(&fault);
            Wrong::Parsing(format!("error detected while parsing an 'event {name}' condition : {why}."))
        })?;
        (self.event, self.condition) = (Some(event), condition);
        Ok(())
    }
}

fn trimmed(fault: &Fault) -> &str {
    fault.text.trim_end_matches('.')
}

fn plain(fault: Fault) -> Wrong {
    Wrong::Parsing(format!("{}.", trimmed(&fault)))
}
