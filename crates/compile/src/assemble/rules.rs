//! Rules of a proxy: ACLs first, then each rule line in order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lang::bandwidth::Bwlim;
use lang::places::Place;
use lang::registry::{ActionPlace, Form, Sets};
use lang::{Acl, Condition, Fault, LogFormat, Rule, RuleSet, Words};
use program::proxy::{Rules, Switch, SwitchTo, UseServer, UseServerTo};
use syntax::{Diagnostic, Diagnostics, Level, Line, Style};

use super::{Assembly, complaint};
use crate::draft::{Draft, LineRef};
use crate::names::Resolver;
use crate::notes::refusal;

/// What came of the lines that hold rules.
#[derive(Default)]
pub(super) struct Parsed {
    pub rules: Rules,
    pub switching: Vec<Switch>,
    pub use_server: Vec<UseServer>,
    pub monitor_fail: Vec<Condition>,
    pub force_persist: Vec<Condition>,
    pub force_switch: Vec<Condition>,
    pub ignore_persist: Vec<Condition>,
    pub filters: Vec<program::filter::Line>,
    pub traces: Vec<program::filter::Trace>,
    /// There is a filter, be it one that needs no line.
    pub filtered: bool,
    pub stats_rules: RuleSet,
    pub stick: program::stick_rules::StickRules,
    pub stats_admin: Vec<Arc<Option<Condition>>>,
    /// What is wrong with filters and is only said when all lines are read.
    pub late: Vec<String>,
    /// Sets of rules that are left out in TCP mode.
    pub ignored: Vec<&'static str>,
    /// What `filter fcgi-app` names, and where.
    pub application: Option<(Box<str>, syntax::Span)>,
}

/// One line being parsed: where faults and warnings go.
pub(super) struct Parse<'a, 'g, 'r> {
    pub(super) names: Resolver<'r>,
    notes: &'a mut Diagnostics,
    /// The section whose rules these are.
    section: u32,
    sources: &'g syntax::Sources,
    tree: &'g syntax::Tree,
    registry: &'g lang::Registry,
}

impl<'g> Parse<'_, 'g, '_> {
    pub(super) fn line(&mut self, at: LineRef) -> Option<&'g Line> {
        // Of an inherited line whose faults are known no more is said, nor made.
        if at.section != self.section && self.names.memory.told.contains(&at) {
            return None;
        }
        self.names.line = at;
        self.tree.sections.get(at.section as usize)?.lines.get(at.line as usize)
    }

    /// Runs a parser over the words of a line from `skip` on; its warnings and its fault become complaints.
    pub(super) fn run<T>(
        &mut self,
        line: &Line,
        skip: usize,
        parser: impl FnOnce(&mut Words<'_>, &lang::Registry, &mut Resolver<'_>) -> Result<T, Fault>,
    ) -> Option<T> {
        let list: Vec<&[u8]> = line.words().iter().skip(skip).map(|w| w.bytes()).collect();
        let result = parser(&mut Words::new(&list), self.registry, &mut self.names);
        let inherited = self.names.line.section != self.section;
        for text in std::mem::take(&mut self.names.warnings) {
            // What an inherited line deserves was said where it stands. Of when an instance calls itself
            // failed nothing is said.
            if !inherited && line.keyword() != "monitor" {
                self.notes.push(super::aside(text, line));
            }
        }
        for (fatal, text) in std::mem::take(&mut self.names.asides) {
            let level = if fatal { Level::Alert } else { Level::Warning };
            self.notes.push(Diagnostic::new(level, line.span(), text).styled(Style::Plain));
        }
        match result {
            Ok(value) => Some(value),
            Err(fault) => {
                if self.names.defaults.is_some() {
                    self.names.memory.told.insert(self.names.line);
                }
                // A rule that inherits along with a line of which was told may only miss what that would have
                // brought.
                let told = &self.names.memory.told;
                if !inherited || !told.iter().any(|at| at.section == self.names.line.section) {
                    self.notes.push(complaint(fault, line, skip));
                }
                None
            }
        }
    }

    /// Runs a parser that finds no words: of what no line asks for.
    pub(super) fn bare<T>(
        &mut self,
        parser: impl FnOnce(&mut Words<'_>, &lang::Registry, &mut Resolver<'_>) -> Result<T, Fault>,
    ) -> Option<T> {
        parser(&mut Words::new(&[]), self.registry, &mut self.names).ok()
    }

    /// Refuses a proxy when all lines are read.
    pub(super) fn late_refusal(&mut self, p: &Draft, text: String) {
        self.notes.push(refusal(p.span, text).settling());
    }

    /// The bandwidth limits of the proxy so far.
    pub(super) fn known_filters(&self) -> &[Arc<Bwlim>] {
        &self.names.filters
    }

    /// One more, for the rules behind.
    pub(super) fn add_filter(&mut self, filter: Arc<Bwlim>) {
        self.names.filters.push(filter);
    }

    /// An application of FastCGI by name.
    pub(super) fn application_of(&self, name: &str) -> Option<&program::fcgi::Application> {
        self.names.memory.application(name)
    }

    /// Refuses a line once all are read.
    pub(super) fn refuse_late(&mut self, line: &Line, text: String) {
        self.notes.push(refusal(line.span(), text));
    }

    /// Refuses a line.
    pub(super) fn refuse(&mut self, line: &Line, text: String) {
        self.notes.alert(line.span(), text);
    }

    /// The condition at the end of a line, its faults introduced by `what`.
    fn condition(&mut self, line: &Line, skip: usize, place: Place, what: &str) -> Option<Option<Condition>> {
        self.run(line, skip, |words, registry, names| {
            Condition::parse(words, place, registry, names).map_err(|f| match what {
                "" => f.within("'force-be-switch'"),
                _ => f.within(format_args!("error detected while parsing {what}")),
            })
        })
    }
}

impl Parse<'_, '_, '_> {
    /// Says of a condition that it looks at the bytes of a connection whose messages are taken apart.
    pub(super) fn bytes_of_http(&mut self, p: &Draft, line: &Line, condition: Option<&Condition>) {
        use lang::places::{EITHER_BUFFER, REQUEST_BUFFER, RESPONSE_BUFFER};
        let at = self.names.line;
        let tests = condition.iter().flat_map(|c| &c.any).flatten().flat_map(|term| &term.acl.tests);
        let bytes = |test: &lang::cond::Test| {
            [REQUEST_BUFFER, EITHER_BUFFER, RESPONSE_BUFFER].contains(&test.expr.fetch.def.places)
        };
        if p.mode == program::Mode::Http && at.section == self.section && tests.into_iter().any(bytes) {
            let place = format!("{}:{}", self.sources.name(line.span().file), line.span().line);
            let text = format!("L6 sample fetches ignored on HTTP proxies (declared at {place})");
            self.names.memory.missing.push((at, lang::Missing::Remark(text)));
        }
    }
}

impl<'g> Assembly<'g> {
    /// What parses the lines of a section with the names of a proxy.
    pub(super) fn parse<'a>(
        &'a mut self,
        index: usize,
        p: &Draft,
        notes: &'a mut Diagnostics,
    ) -> Parse<'a, 'g, 'a> {
        let (tree, registry, sources) = (self.ground.tree, self.ground.registry, self.ground.sources);
        let names = self.resolver(index, p, LineRef { section: 0, line: 0 });
        Parse { names, notes, section: p.section, sources, tree, registry }
    }

    /// Parses all rules of a proxy.
    pub(super) fn rules(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Parsed {
        let mut places = std::mem::take(&mut self.rule_places);
        let mut parse = self.parse(index, p, notes);
        parse.acls(p);
        let mut out = Parsed::default();
        parse.filters(p, &mut out);
        parse.choices(p, &mut places, &mut out);
        parse.stats(p, &mut places, &mut out);
        parse.stick(p, &mut out);
        parse.sets(p, &mut places, &mut out);
        parse.caches(p);
        let unwritten = p.compression.is_some() || p.fcgi_app.is_some() || parse.names.caches.any();
        out.filtered = unwritten || !p.filters.is_empty();
        self.rule_places = places;
        out
    }
}

/// Sets of rules that need HTTP mode, in the order in which they are missed without it.
const HTTP_SETS: [&str; 4] = ["http-request", "http-response", "http-after-response", "redirect"];

impl Parse<'_, '_, '_> {
    pub(super) fn acls(&mut self, p: &Draft) {
        for lines in self.acl_order(p) {
            let (mut first, mut tests) = (None, Vec::new());
            for at in lines {
                let Some(line) = self.line(at) else { continue };
                let Some(parsed) = self.run(line, 1, |w, reg, names| Acl::parse_line(w, reg, names)) else {
                    continue;
                };
                first.get_or_insert((at, parsed.name));
                tests.push(parsed.test);
            }
            if let Some((at, name)) = first {
                let acl = Acl { name: name.clone(), tests: tests.into() };
                self.names.acls.entry(at.section).or_default().insert(name, (at, Arc::new(acl)));
            }
        }
    }

    /// The `acl` lines by section and name: in the order of the file, but those that others ask for with
    /// `acl(name)` before these, with all of their lines.
    fn acl_order(&mut self, p: &Draft) -> Vec<Vec<LineRef>> {
        let mut names: Vec<(u32, &str)> = Vec::new();
        let mut lines: HashMap<(u32, &str), Vec<LineRef>> = HashMap::new();
        let mut wanted: HashMap<(u32, &str), Vec<&str>> = HashMap::new();
        for at in &p.acls {
            let Some(line) = self.line(*at) else { continue };
            let mut words = line.words().iter().skip(1).map(|w| w.text());
            let name = (at.section, words.next().unwrap_or_default());
            if !lines.contains_key(&name) {
                names.push(name);
            }
            lines.entry(name).or_default().push(*at);
            let inside = words.next().and_then(|w| w.strip_prefix("acl(")?.split(')').next());
            let asked = inside.into_iter().flat_map(|list| list.split(','));
            wanted.entry(name).or_default().extend(asked.map(|a| a.trim_start_matches('!')));
        }
        // Depth first; a name that is being looked at already stands in a circle, which the parser then
        // refuses.
        let mut order = Vec::new();
        let mut stack: Vec<_> = names.iter().rev().map(|n| (*n, false)).collect();
        let mut seen = HashSet::new();
        while let Some((name, done)) = stack.pop() {
            if done {
                order.extend(lines.remove(&name));
            } else if seen.insert(name) {
                stack.push((name, true));
                let asked = wanted.get(&name).into_iter().flatten().map(|a| (name.0, *a));
                stack.extend(asked.filter(|a| lines.contains_key(a)).map(|a| (a, false)));
            }
        }
        order
    }

    fn sets(&mut self, p: &Draft, places: &mut Vec<(u16, u32)>, out: &mut Parsed) {
        // And how many of each are inherited.
        let mut lists: [(Vec<Rule>, usize); 8] = Default::default();
        // Whether the section's last rule of a set was one that nothing follows.
        let mut ended = [false; 8];
        // What is missing is told set by set.
        let mut missing: [Vec<(LineRef, lang::Missing)>; 8] = Default::default();
        let before = std::mem::take(&mut self.names.memory.missing);
        for at in &p.rules {
            let Some(line) = self.line(*at) else { continue };
            let keyword = line.keyword().text();
            let tcp = p.mode != program::Mode::Http && !p.switches;
            let unused = HTTP_SETS.iter().find(|set| tcp && **set == keyword);
            let unused = unused.filter(|_| at.section == self.section);
            out.ignored.extend(unused.filter(|set| !out.ignored.contains(*set)));
            let own = at.section == self.section;
            let Some((slot, skip, set, place)) = where_it_stands(line, p, own) else {
                let word = line.words().get(1).map_or("", |w| w.text());
                self.notes.alert(line.span(), format!("unknown rule set '{} {word}'", line.keyword()));
                continue;
            };
            // HAProxy does not say so of `redirect` lines.
            let told = HTTP_SETS.contains(&keyword) && keyword != "redirect";
            if own && told && ended.get(slot).is_some_and(|ended| *ended) {
                let set = set.words();
                let text = format!(
                    "previous '{set}' action is final and has no condition attached, further entries are NOOP."
                );
                self.notes.push(crate::statement::tight(syntax::Diagnostic::warning(line.span(), text)));
            }
            let number = place_of(line, places);
            let short = line.keyword() == "redirect";
            let form = if short { Form::Line } else { Form::Rule };
            let action_place = ActionPlace { set, place, form };
            let some = self.names.memory.waits.some;
            let rule = self.run(line, skip, |w, reg, names| {
                let rule = Rule::parse(w, &action_place, number, reg, names);
                rule.map_err(|f| if short { of_redirect(f) } else { f })
            });
            // The formats of `redirect` alone are none of the proxy's to HAProxy.
            self.names.memory.waits.some &= !short || some;
            if slot != 7
                && let Some(rule) = &rule
            {
                self.bytes_of_http(p, line, rule.condition.as_ref());
            }
            if let Some(list) = missing.get_mut(slot) {
                list.append(&mut self.names.memory.missing);
                if let (2, Some(rule)) = (slot, &rule) {
                    let remark = self.tracking(p, line, rule);
                    self.names.memory.missing.clear();
                    list.extend(remark.map(|text| (*at, lang::Missing::Whole(text))));
                }
            }
            if let (Some(rule), Some(list)) = (rule, lists.get_mut(slot)) {
                // HAProxy does not count those that cut the connection off.
                let cuts =
                    matches!(line.words().get(skip).map_or("", |w| w.text()), "silent-drop" | "reject");
                ended[slot] = own && !cuts && rule.condition.is_none() && rule.action.is_final();
                list.0.push(rule);
                list.1 += usize::from(!own);
            }
        }
        self.names.memory.missing = before.into_iter().chain(missing.into_iter().flatten()).collect();
        out.ignored.sort_by_key(|set| HTTP_SETS.iter().position(|known| known == set));
        let [connection, session, content, response, request, answer, after, redirects] =
            lists.map(|(rules, inherited)| RuleSet::inheriting(rules, inherited));
        out.rules = Rules {
            tcp_connection: connection,
            tcp_session: session,
            tcp_content: content,
            tcp_response: response,
            http_request: request,
            redirect: redirects,
            http_response: answer,
            http_after_response: after,
        };
    }

    /// Warns of a rule that tracks from contents when it need not, or that tracks or captures before they can
    /// be there.
    fn tracking(&mut self, p: &Draft, line: &Line, rule: &Rule) -> Option<String> {
        let action = line.words().get(2).map_or("", |w| w.text());
        let (tracks, name) = match action {
            "capture" => (false, "capture"),
            _ => (true, "content track-sc*"),
        };
        if !p.kind.is_front() || tracks && !action.starts_with("track-sc") {
            return None;
        }
        // It parsed a moment ago as part of the rule.
        let key = self.run(line, 3, |words, reg, names| {
            let key = lang::Expr::parse(words, Place::FrontTcpContent, reg, names);
            names.warnings.clear();
            key
        });
        let key = key?;
        let tests = rule.condition.iter().flat_map(|c| &c.any).flatten().flat_map(|term| &term.acl.tests);
        // What the contents decide does not exist while a session begins.
        let reads = |expr: &lang::Expr| !expr.fetch.def.places.has(Place::FrontSess);
        let text = match reads(&key) {
            false if !tracks || tests.map(|test| &test.expr).any(reads) => return None,
            true if p.timeouts.inspect_request.is_none() => {
                "explicitly depending on request contents without any 'tcp-request inspect-delay' setting. This means \
                 that this rule will randomly find its contents. This can be fixed by setting the tcp-request \
                 inspect-delay."
            }
            false if p.mode == program::Mode::Http => {
                "not depending on request contents for an HTTP frontend should be executed at the session level, using \
                 a 'tcp-request session' rule (mandatory to track invalid HTTP requests)."
            }
            _ => return None,
        };
        Some(format!("{} : a 'tcp-request {name}' rule {text}", p.label()))
    }

    /// Lines that choose: backends, servers, persistence, monitoring.
    fn choices(&mut self, p: &Draft, places: &mut Vec<(u16, u32)>, out: &mut Parsed) {
        for at in &p.switching {
            let Some(line) = self.line(*at) else { continue };
            let condition = self.condition(line, 2, Place::SwitchBackend, "switching rule");
            self.bytes_of_http(p, line, condition.as_ref().and_then(Option::as_ref));
            if let (Some(to), Some(condition)) = (self.switch_to(p, line), condition) {
                out.switching.push(Switch { to, condition, number: place_of(line, places) });
            }
        }
        for at in &p.use_server {
            let Some(line) = self.line(*at) else { continue };
            let condition = self.condition(line, 2, Place::ChooseServer, "switching rule");
            self.bytes_of_http(p, line, condition.as_ref().and_then(Option::as_ref));
            if let (Some(to), Some(condition)) = (self.server_to(p, line), condition) {
                out.use_server.push(UseServer { to, condition, number: place_of(line, places) });
            }
        }
        let lists = [
            (&p.monitor_fail, &mut out.monitor_fail, 2, Place::FrontHttpReq, "a 'monitor fail' condition"),
            (&p.force_persist, &mut out.force_persist, 1, Place::BackTcpContent, "a 'force-persist' rule"),
            (&p.force_switch, &mut out.force_switch, 1, Place::FrontTcpContent, ""),
            (&p.ignore_persist, &mut out.ignore_persist, 1, Place::BackTcpContent, "a 'ignore-persist' rule"),
        ];
        for (lines, list, skip, place, what) in lists {
            for at in lines {
                let Some(line) = self.line(*at) else { continue };
                list.extend(self.condition(line, skip, place, what).flatten());
            }
        }
    }

    fn switch_to(&mut self, p: &Draft, line: &Line) -> Option<SwitchTo> {
        let word = line.words().get(1)?;
        let format = self.target(line, Place::SwitchBackend, ": failed to parse use_backend rule")?;
        let Some(name) = constant(&format) else { return Some(SwitchTo::Format(Arc::new(format))) };
        match lang::Names::backend_index(&self.names, &name) {
            Ok(index) => Some(SwitchTo::Backend(index)),
            Err(fault) => {
                let near = self.names.declared.iter().filter(|d| d.is_back).map(|d| &*d.name);
                let near = syntax::nearest(&name, near);
                self.notes
                    .push(refusal(word.span(), format!("Proxy '{}': {}.", p.name, fault.text)).meant(near));
                None
            }
        }
    }

    fn server_to(&mut self, p: &Draft, line: &Line) -> Option<UseServerTo> {
        let word = line.words().get(1)?;
        let format =
            self.target(line, Place::ChooseServer, "; use-server rule failed to parse log-format")?;
        let Some(name) = constant(&format) else { return Some(UseServerTo::Format(Arc::new(format))) };
        match p.servers.iter().position(|s| *s.name == *name) {
            Some(at) => Some(UseServerTo::Server(u32::try_from(at).ok()?)),
            None => {
                let text = format!(
                    "{} : unable to find server '{name}' referenced in a 'use-server' rule.",
                    p.label()
                );
                let near = syntax::nearest(&name, p.servers.iter().map(|s| &*s.name));
                self.notes.push(refusal(word.span(), text).meant(near));
                None
            }
        }
    }

    /// The second word as a format; `failed` is what HAProxy says of the line, its place in front, when it is
    /// none.
    fn target(&mut self, line: &Line, place: Place, failed: &str) -> Option<LogFormat> {
        let word = line.words().get(1)?;
        let some = self.names.memory.waits.some;
        self.names.chosen = true;
        let format = LogFormat::parse(word.bytes(), place, self.registry, &mut self.names);
        self.names.chosen = false;
        match format {
            Ok(format) => {
                // A name that is written out is no format.
                self.names.memory.waits.some &= some || format.constant().is_none();
                Some(format)
            }
            Err(fault) => {
                let span = line.span();
                let at = format!("{}:{}", self.sources.name(span.file), span.line);
                let text = format!("Parsing [{at}]{failed} '{word}' : {}.", fault.text);
                self.notes.push(refusal(word.span(), text));
                None
            }
        }
    }

    fn stats(&mut self, p: &Draft, places: &mut Vec<(u16, u32)>, out: &mut Parsed) {
        let Some(page) = &p.stats else { return };
        let mut rules = Vec::new();
        for at in &page.rules {
            let Some(line) = self.line(*at) else { continue };
            let number = place_of(line, places);
            let place = if p.kind.is_front() { Place::FrontHttpReq } else { Place::BackHttpReq };
            let at = ActionPlace { set: Sets::HTTP_REQ, place, form: Form::Statistics };
            rules.extend(self.run(line, 2, |w, reg, names| Rule::parse(w, &at, number, reg, names)));
        }
        out.stats_rules = RuleSet::new(rules);
        for at in &page.admin {
            let Some(line) = self.line(*at) else { continue };
            let condition = self.condition(line, 2, Place::FrontHttpReq, "a 'stats admin' rule");
            out.stats_admin.extend(condition.map(Arc::new));
        }
    }
}

/// A `redirect` line is parsed as the action it stands for, but named as it was written.
fn of_redirect(fault: Fault) -> Fault {
    let text = fault.text.replace("'http-request redirect' rule", "redirect rule");
    Fault { text, ..fault }
}

/// The number of a new rule: its place in the configuration.
fn place_of(line: &Line, places: &mut Vec<(u16, u32)>) -> u32 {
    let span = line.span();
    places.push((u16::try_from(span.file.0).unwrap_or(u16::MAX), span.line));
    u32::try_from(places.len() - 1).unwrap_or(u32::MAX)
}

/// The name, if a format is nothing but text.
fn constant(format: &LogFormat) -> Option<String> {
    format.constant().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Which list a rule line belongs to, how many words precede the action, and what may stand there. Inherited
/// lines (not `own`) are for frontends and backends.
fn where_it_stands(line: &Line, p: &Draft, own: bool) -> Option<(usize, usize, Sets, Place)> {
    // What a `listen` section knows as a frontend it knows as a backend, too.
    let front = own && p.kind.is_front() && !p.kind.is_back();
    let second = line.words().get(1).map_or("", |w| w.text());
    Some(match (line.keyword().text(), second) {
        ("tcp-request", "connection") => (0, 2, Sets::TCP_CONN, Place::FrontConn),
        ("tcp-request", "session") => (1, 2, Sets::TCP_SESS, Place::FrontSess),
        ("tcp-request", "content") if front => (2, 2, Sets::TCP_REQ, Place::FrontTcpContent),
        ("tcp-request", "content") => (2, 2, Sets::TCP_REQ, Place::BackTcpContent),
        ("tcp-response", "content") => (3, 2, Sets::TCP_RES, Place::BackTcpResponse),
        // A `redirect` line is `http-request redirect` in short.
        ("redirect", _) if front => (7, 0, Sets::HTTP_REQ, Place::FrontHttpReq),
        ("redirect", _) => (7, 0, Sets::HTTP_REQ, Place::BackHttpReq),
        ("http-request", _) if front => (4, 1, Sets::HTTP_REQ, Place::FrontHttpReq),
        ("http-request", _) => (4, 1, Sets::HTTP_REQ, Place::BackHttpReq),
        ("http-response", _) if front => (5, 1, Sets::HTTP_RES, Place::FrontHttpRes),
        ("http-response", _) => (5, 1, Sets::HTTP_RES, Place::BackHttpRes),
        ("http-after-response", _) if front => (6, 1, Sets::HTTP_AFTER, Place::FrontHttpRes),
        ("http-after-response", _) => (6, 1, Sets::HTTP_AFTER, Place::BackHttpRes),
        _ => return None,
    })
}
