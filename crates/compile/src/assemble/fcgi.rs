//! Applications of FastCGI: their rules, and who uses them.

use std::sync::Arc;

use lang::fcgi::{App, Line, SetParam, param_name};
use lang::places::Place;
use lang::{Condition, LogFormat};
use program::fcgi::Application;
use syntax::{Diagnostics, Span};
use wire::head::Known;

use super::Assembly;
use super::rules::Parsed;
use crate::draft::{Draft, LineRef};
use crate::fcgi::{FcgiDraft, check_proxy};

impl Assembly<'_> {
    /// All applications. Rules see no proxy of their own: the one that uses them is known when they run.
    pub(super) fn applications(&mut self, drafts: &[FcgiDraft], notes: &mut Diagnostics) {
        for draft in drafts {
            draft.check(notes);
            let (pass, set) = self.application_rules(draft, notes);
            let name = draft.draft.name.clone();
            let errors = self.log_targets(&draft.errors, &format!("fcgi-app section '{name}'"), notes);
            let app = App {
                name,
                docroot: draft.docroot.as_deref().unwrap_or_default().trim_end_matches('/').as_bytes().into(),
                index: draft.index.as_deref().map(|index| index.as_bytes().into()),
                path_info: draft.path_info.clone(),
                pass,
                set,
                get_values: draft.get_values,
                keep_conn: draft.keep_conn,
                mpxs_conns: draft.mpxs_conns,
                most: draft.most(),
            };
            self.missing_arguments(&draft.draft.name, draft.draft.span, notes);
            self.memory.fcgi.push(Application { app: Arc::new(app), errors: errors.into() });
        }
    }

    /// The rules of an application in their order.
    fn application_rules(
        &mut self,
        draft: &FcgiDraft,
        notes: &mut Diagnostics,
    ) -> (Vec<(Known, Option<Condition>)>, Vec<SetParam>) {
        let place = Place::BackHttpReq;
        let mut parse = self.parse(usize::MAX, &draft.draft, notes);
        parse.acls(&draft.draft);
        let (mut pass, mut set) = (Vec::new(), Vec::new());
        for at in &draft.pass {
            let Some(line) = parse.line(*at) else { continue };
            let made = parse.run(line, 1, |words, registry, names| {
                let name = words.take().unwrap_or_default().to_ascii_lowercase();
                let within = format!("'{}'", String::from_utf8_lossy(&name));
                let condition = Condition::parse(words, place, registry, names);
                Ok((Known::of(&name), condition.map_err(|fault| fault.within(within))?))
            });
            pass.extend(made);
        }
        for at in &draft.set {
            let Some(line) = parse.line(*at) else { continue };
            let made = parse.run(line, 1, |words, registry, names| {
                let name = words.take().unwrap_or_default().to_vec();
                let value = LogFormat::parse(words.take().unwrap_or_default(), place, registry, names)?;
                let within = format!("'{}'", String::from_utf8_lossy(&name));
                let condition = Condition::parse(words, place, registry, names);
                let condition = condition.map_err(|fault| fault.within(within))?;
                Ok(SetParam { name: param_name(&name), value, condition })
            });
            set.extend(made);
        }
        (pass, set)
    }

    /// The application that a backend speaks to, by `use-fcgi-app` or by a filter.
    pub(super) fn application(
        &self,
        p: &Draft,
        parsed: &Parsed,
        notes: &mut Diagnostics,
    ) -> Option<Application> {
        let by_filter = parsed.application.as_ref().map(|(name, span)| (&**name, *span));
        let by_keyword = p.fcgi_app.as_ref().map(|named| (&*named.name, named.span));
        if let (Some(one), Some(other)) = (by_keyword, by_filter)
            && one.0 != other.0
        {
            let text = format!("proxy '{}' : only one fcgi-app supported per backend.", p.name);
            notes.push(crate::notes::refusal(other.1, text));
        }
        let wanted: Option<(&str, Span)> = by_keyword.or(by_filter);
        let found = wanted.and_then(|(name, _)| self.memory.application(name));
        check_proxy(p, wanted, found.is_some(), notes);
        found.cloned()
    }
}

impl super::rules::Parse<'_, '_, '_> {
    /// `filter fcgi-app <name>`: the application, and the filter that runs its rules.
    pub(super) fn application(&mut self, at: LineRef, p: &Draft, order: [Option<u32>; 2], out: &mut Parsed) {
        let Some(line) = self.line(at) else { return };
        let name = self.run(line, 2, |words, _, _| {
            let name = words.expect("'filter' : fcgi-app : expects a <name> argument")?.to_owned();
            match words.peek_str() {
                Some(extra) => {
                    Err(lang::Fault::new(format!("'filter fcgi-app' : unknown keyword '{extra}'.")))
                }
                None => Ok(name),
            }
        });
        let Some(name) = name else { return };
        if out.application.as_ref().is_some_and(|(before, _)| **before != *name) {
            let text = format!("proxy '{}' : only one fcgi-app supported per backend.", p.name);
            return self.refuse_late(line, text);
        }
        if out.application.replace((name.clone().into(), line.span())).is_some() {
            // It is there already.
            return;
        }
        self.run_application(&name, order, out);
    }

    /// The filter that needs no line: where no other filter is that it would have to stand before or behind.
    pub(super) fn unwritten_application(&mut self, p: &Draft, kinds: &[String], base: u32, out: &mut Parsed) {
        let Some(named) = &p.fcgi_app else { return };
        if kinds.iter().any(|kind| kind == "fcgi-app") {
            return;
        }
        let beside = ["cache", "compression", "comp-req", "comp-res"];
        if kinds.iter().any(|kind| !beside.contains(&&**kind)) {
            let text = format!(
                "config: {} '{}': require an explicit filter declaration to use the fcgi-app '{}'.",
                p.kind.noun(),
                p.name,
                named.name
            );
            return self.late_refusal(p, text);
        }
        let name = named.name.clone();
        self.run_application(&name, [Some(base), Some(base)], out);
    }

    fn run_application(&mut self, name: &str, order: [Option<u32>; 2], out: &mut Parsed) {
        if let Some(found) = self.application_of(name) {
            let maker = Arc::new(Line(found.app.clone()));
            out.filters.push(program::filter::Line { order, maker });
        }
    }
}
