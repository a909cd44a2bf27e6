//! Expressions and formats outside of rules: parsed with the names of their proxy.

use std::collections::HashMap;
use std::sync::Arc;

use lang::places::Place;
use lang::{Expr, LogFormat, Words};
use syntax::{Diagnostic, Diagnostics, Style};

use super::{Assembly, complaint};
use crate::draft::{Deferred, Draft, LineRef};
use crate::names::Resolver;
use crate::notes::remark;

impl Assembly<'_> {
    /// Names as a proxy sees them, its ACLs left out.
    pub(super) fn resolver(&mut self, index: usize, p: &Draft, line: LineRef) -> Resolver<'_> {
        Resolver {
            memory: &mut self.memory,
            registry: self.ground.registry,
            declared: &self.declared,
            here: Some(index).filter(|_| !p.kind.is_defaults()),
            owner: p.label(),
            http: p.mode == program::Mode::Http,
            section: p.section,
            defaults: p.kind.is_defaults().then_some(p.heirs),
            line,
            acls: HashMap::new(),
            predefined: HashMap::new(),
            req_captures: p.req_captures.clone(),
            res_captures: p.res_captures.clone(),
            filters: Vec::new(),
            caches: Default::default(),
            warnings: Vec::new(),
            asides: Vec::new(),
            shelf: Vec::new(),
            mentions: (line, 0),
            chosen: false,
        }
    }

    /// An expression of one or several words.
    pub(crate) fn expression(
        &mut self,
        index: usize,
        deferred: &Deferred,
        p: &Draft,
        place: Place,
        notes: &mut Diagnostics,
    ) -> Option<Arc<Expr>> {
        let line = self.ground.line(deferred.at)?;
        let list: Vec<&[u8]> = line.words().iter().skip(deferred.word).map(|w| w.bytes()).collect();
        let registry = self.ground.registry;
        let mut names = self.resolver(index, p, deferred.at);
        match Expr::parse(&mut Words::new(&list), place, registry, &mut names) {
            Ok(expr) => Some(Arc::new(expr)),
            Err(fault) => {
                notes.push(complaint(fault, line, deferred.word));
                None
            }
        }
    }

    /// A format whose blanks are text; a word that isn't there is an empty one.
    pub(super) fn value_format(
        &mut self,
        index: usize,
        deferred: &Deferred,
        p: &Draft,
        place: Place,
        notes: &mut Diagnostics,
    ) -> Option<Arc<LogFormat>> {
        let line = self.ground.line(deferred.at)?;
        let text = self.ground.deferred(deferred).map_or(&b""[..], |w| w.bytes());
        let registry = self.ground.registry;
        let mut names = self.resolver(index, p, deferred.at);
        match LogFormat::parse(text, place, registry, &mut names) {
            Ok(format) => Some(Arc::new(format)),
            Err(fault) => {
                notes.push(complaint(fault, line, deferred.word));
                None
            }
        }
    }

    /// A log line as written in the configuration.
    pub(super) fn log_format(
        &mut self,
        index: usize,
        deferred: &Deferred,
        p: &Draft,
        notes: &mut Diagnostics,
    ) -> Option<Arc<LogFormat>> {
        let word = self.ground.deferred(deferred)?;
        let keyword = self.ground.line(deferred.at)?.keyword().text();
        // A unique id is made while the request is there, in checks even without one; lines are made at the
        // end.
        let (place, keyword) = match keyword {
            "unique-id-format" if p.kind.is_back() => (Place::BackHttpReq, "unique-id"),
            "unique-id-format" => (Place::FrontHttpReq, "unique-id"),
            _ => (Place::Log, keyword),
        };
        match self.log_text(index, word.bytes(), p, deferred.at, place, notes) {
            Ok(format) => Some(format),
            Err(fault) => {
                let at = self.ground.place(word.span());
                let text = format!(
                    "Parsing [{at}]: failed to parse {keyword} : {}.",
                    fault.text.trim_end_matches('.')
                );
                let diagnostic = Diagnostic::alert(word.span(), text).styled(Style::Bare);
                notes.push(Diagnostic { help: fault.help, ..diagnostic });
                None
            }
        }
    }

    /// A log line from text.
    pub(super) fn log_text(
        &mut self,
        index: usize,
        text: &[u8],
        p: &Draft,
        at: LineRef,
        place: Place,
        notes: &mut Diagnostics,
    ) -> Result<Arc<LogFormat>, lang::Fault> {
        let registry = self.ground.registry;
        let mut names = self.resolver(index, p, at);
        let format = LogFormat::parse_log(text, place, registry, &mut names)?;
        for text in std::mem::take(&mut names.warnings) {
            notes.push(remark(p.span, text));
        }
        Ok(Arc::new(format))
    }
}
