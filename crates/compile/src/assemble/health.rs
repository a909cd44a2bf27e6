//! Health checks: from `option httpchk`, `http-check` and `tcp-check` lines to the steps that are run.
//!
//! An HTTP check without `http-check send` sends what `option httpchk` says; one without `http-check expect`
//! expects a status of 200 to 399. The first `send` completes itself from `option httpchk`. Rules of a
//! section that inherits its `option httpchk` stand alone: what they don't send is not sent.

use std::sync::Arc;

use lang::logfmt::{Encoding, Item};
use lang::places::Place;
use lang::{Expr, LogFormat, Words};
use program::check::{Expect, External, Pattern, Ruleset, Step};
use syntax::{Diagnostics, Level};

use super::Assembly;
use crate::check::{Answer, Canned, Sought};
use crate::draft::{CheckKind, Draft, LineRef};
use crate::healthcheck::HealthDraft;
use crate::notes::remark;

mod reader;

use reader::Reader;

/// The statuses of a healthy server unless said otherwise.
const HEALTHY: (u16, u16) = (200, 399);

impl Assembly<'_> {
    /// The check that servers of a proxy run.
    pub(super) fn ruleset(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Arc<Ruleset> {
        // Rules of the other kind are ignored, but not their errors.
        let http = self.steps(index, p, &p.http_checks, notes);
        let tcp = self.steps(index, p, &p.tcp_checks, notes);
        let section = p.http_checks.first().map_or(p.check_section, |at| at.section);
        let mut set = Ruleset {
            disable_on_404: p.disable_on_404.contains(&section),
            send_state: p.send_state.contains(&section),
            http: matches!(p.check, CheckKind::Http { .. }),
            ..Ruleset::default()
        };
        match &p.check {
            CheckKind::Connect => {}
            CheckKind::Canned(steps) => {
                set.canned = true;
                set.steps = self.canned(index, p, steps);
            }
            CheckKind::External => set.external = self.external(p),
            CheckKind::Tcp => {
                set.tcp = true;
                set.steps = tcp;
            }
            CheckKind::Http { method, uri, version, host } => {
                let host = host.as_deref().and_then(|h| self.check_format(index, p, h, notes));
                let mut first = Request { method, uri: uri.as_deref(), version, host };
                // As HAProxy counts: neither the first `connect` nor the request of `option httpchk` beside
                // other rules.
                let sends = http.iter().any(|s| matches!(s, Step::SendHttp { .. }));
                set.uncounted = http.iter().find(talks).is_some_and(|s| matches!(s, Step::Connect { .. }))
                    || !sends && !http.is_empty();
                set.steps = complete(http, Some(&mut first).filter(|_| section == p.check_section));
            }
        }
        Arc::new(set)
    }

    /// The checks of `healthcheck` sections. Rules see no proxy of their own: the one that uses them is known
    /// when they run.
    pub(super) fn healthchecks(&mut self, drafts: &[HealthDraft], notes: &mut Diagnostics) {
        for health in drafts {
            let rules = self.ruleset(usize::MAX, &health.draft, notes);
            self.missing_arguments(&health.draft.name, health.draft.span, notes);
            self.healthchecks.push((health.draft.name.clone(), rules));
        }
    }

    /// Rules of a kind of check that is not chosen do nothing.
    pub(super) fn unused_rules(&self, p: &Draft, family: &str, notes: &mut Diagnostics) {
        if p.kind.is_defaults() {
            return;
        }
        let own = |rules: &[LineRef]| rules.first().is_some_and(|at| at.section == p.section);
        let http = matches!(p.check, CheckKind::Http { .. });
        let tcp = matches!(p.check, CheckKind::Tcp);
        let families =
            [("http-check", "httpchk", http, &p.http_checks), ("tcp-check", "tcp-check", tcp, &p.tcp_checks)];
        for (word, option, chosen, rules) in families {
            if word == family && !chosen && own(rules) {
                let text = format!(
                    "{} uses {word} rules without 'option {option}', so the rules are ignored.",
                    p.label()
                );
                notes.push(remark(p.span, text));
            }
        }
    }

    /// The rules of checks of a `defaults` section, looked at where they stand.
    pub(super) fn checks_of_defaults(&mut self, p: &Draft, notes: &mut Diagnostics) {
        self.steps(usize::MAX, p, &p.http_checks, notes);
        self.steps(usize::MAX, p, &p.tcp_checks, notes);
    }

    fn steps(&mut self, index: usize, p: &Draft, rules: &[LineRef], notes: &mut Diagnostics) -> Vec<Step> {
        let mut out = Vec::new();
        let http = matches!(p.check, CheckKind::Http { .. });
        for at in rules {
            let Some(line) = self.ground.line(*at).filter(|_| !self.is_told(p, *at)) else { continue };
            let before = notes.count(Level::Alert);
            let registry = self.ground.registry;
            let mut reader = Reader { line, at: 1, registry, names: self.resolver(index, p, *at) };
            match reader.step() {
                Ok(Some(Step::Connect { .. })) if late(&out) => notes.push(reader.fail(FIRST)),
                Ok(Some(step)) => match missing(&out, &step).filter(|_| http) {
                    Some((kind, lacking)) => notes.push(reader.fail(format!(
                        "unable to add http-check {kind} rule at step {} (missing {lacking} rule).",
                        out.len() + 1
                    ))),
                    None => out.push(step),
                },
                Ok(None) => {}
                Err(diagnostic) => notes.push(diagnostic),
            }
            if p.kind.is_defaults() && notes.count(Level::Alert) > before {
                self.memory.told.insert(*at);
            }
        }
        out
    }
}

/// The steps of an HTTP check follow each other as `connect`, `send`, one or several `expect`: the kind of a
/// step that is out of turn, and of the one that is missing in front of it.
fn missing(steps: &[Step], next: &Step) -> Option<(&'static str, &'static str)> {
    let last = steps.iter().rev().find(talks);
    match (last, next) {
        (Some(Step::Connect { .. } | Step::SendHttp { .. }), Step::Connect { .. }) => {
            Some(("connect", "expect"))
        }
        (Some(Step::SendHttp { .. } | Step::Expect(_)), Step::SendHttp { .. }) => Some(("send", "connect")),
        (Some(Step::Connect { .. }), Step::Expect(_)) => Some(("expect", "send")),
        _ => None,
    }
}

/// Whether a step has to do with the connection.
fn talks(step: &&Step) -> bool {
    matches!(step, Step::Connect { .. } | Step::SendHttp { .. } | Step::Send { .. } | Step::Expect(_))
}

/// What is said of a rule set that connects, but not first.
const FIRST: &str = "first step MUST also be a 'connect', optionally preceded by a 'set-var', an 'unset-var' or a 'comment', when there is a 'connect' step in the tcp-check ruleset";

/// Whether there are steps that talk, and none of them is the first to connect.
fn late(steps: &[Step]) -> bool {
    steps.iter().find(talks).is_some_and(|s| !matches!(s, Step::Connect { .. }))
}

/// The request of `option httpchk`.
struct Request<'p> {
    method: &'p [u8],
    uri: Option<&'p [u8]>,
    version: &'p [u8],
    host: Option<LogFormat>,
}

impl Request<'_> {
    fn step(&mut self) -> Step {
        Step::SendHttp {
            method: self.method.into(),
            uri: Arc::new(text(self.uri.unwrap_or(b"/"))),
            version: self.version_or_default().into(),
            headers: self.host().into_iter().collect(),
            body: None,
            comment: None,
        }
    }

    fn host(&mut self) -> Option<(Box<[u8]>, LogFormat)> {
        self.host.take().map(|value| ((*b"host").into(), value))
    }

    fn version_or_default(&self) -> &[u8] {
        if self.version.is_empty() { b"HTTP/1.0" } else { self.version }
    }
}

/// Adds what `http-check` lines left out; `first` is the request of `option httpchk`, if it belongs to them.
fn complete(mut steps: Vec<Step>, first: Option<&mut Request<'_>>) -> Vec<Step> {
    if let Some(first) = first {
        // Who says how to connect names the host, too.
        let connects = steps.iter().any(|s| matches!(s, Step::Connect { .. }));
        match steps.iter_mut().find(|s| matches!(s, Step::SendHttp { .. })) {
            Some(Step::SendHttp { method, uri, version, headers, .. }) => {
                let named = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"host"));
                if !named
                    && !connects
                    && let Some(host) = first.host()
                {
                    headers.insert(0, host);
                }
                fill(method, first.method);
                if uri.constant() == Some(b"") {
                    *uri = Arc::new(text(first.uri.unwrap_or(b"/")));
                }
                fill(version, first.version_or_default());
            }
            _ => {
                let at = usize::from(matches!(steps.first(), Some(Step::Connect { .. })));
                steps.insert(at, first.step());
            }
        }
    }
    let mut sends = false;
    for step in &mut steps {
        if let Step::SendHttp { method, uri, version, .. } = step {
            sends = true;
            fill(method, b"OPTIONS");
            fill(version, b"HTTP/1.0");
            if uri.constant() == Some(b"") {
                *uri = Arc::new(text(b"/"));
            }
        }
    }
    if sends && !steps.iter().any(|s| matches!(s, Step::Expect(_))) {
        steps.push(Step::Expect(Expect::of(Pattern::Status(vec![HEALTHY]))));
    }
    steps
}

fn fill(field: &mut Box<[u8]>, default: &[u8]) {
    if field.is_empty() {
        *field = default.into();
    }
}

/// A format that is nothing but these bytes.
fn text(bytes: &[u8]) -> LogFormat {
    let items: Box<[Item]> =
        if bytes.is_empty() { Box::default() } else { Box::new([Item::Text(bytes.into())]) };
    LogFormat { items, encoding: Encoding::Text, bin: false, text: String::from_utf8_lossy(bytes).into() }
}

impl Assembly<'_> {
    /// The steps of a ready-made check. Their texts are ours, so what can't be parsed is left out in silence;
    /// a test sees to it that there is no such thing.
    fn canned(&mut self, index: usize, p: &Draft, steps: &[Canned]) -> Vec<Step> {
        let registry = self.ground.registry;
        let line = LineRef { section: u32::MAX, line: u32::MAX };
        let mut names = self.resolver(index, p, line);
        let mut format = |f: &str| {
            let parsed = LogFormat::parse(f.as_bytes(), Place::Check, registry, &mut names);
            parsed.ok().map(Arc::new)
        };
        let mut out = Vec::new();
        for step in steps {
            let step = match step {
                Canned::Connect { linger } => Some(Step::Connect {
                    port: None,
                    addr: None,
                    send_proxy: false,
                    via_socks4: false,
                    default: true,
                    ssl: false,
                    sni: None,
                    alpn: None,
                    proto: None,
                    linger: *linger,
                    comment: None,
                }),
                Canned::Send(bytes) => {
                    Some(Step::Send { data: Arc::new(text(bytes)), hex: false, comment: None })
                }
                Canned::SendHex(digits) => {
                    format(digits).map(|data| Step::Send { data, hex: true, comment: None })
                }
                Canned::Expect(answer) => sought(&answer.what).map(|what| {
                    let mut said = |f: &str| if f.is_empty() { None } else { format(f) };
                    let (on_success, on_error) = (said(answer.on_success), said(answer.on_error));
                    Step::Expect(Expect {
                        negated: answer.negated,
                        min_recv: answer.least,
                        ok_status: Some(answer.ok),
                        error_status: Some(answer.error),
                        timeout_status: answer.timeout,
                        on_success,
                        on_error,
                        ..Expect::of(what)
                    })
                }),
            };
            out.extend(step);
        }
        for (step, answer) in out.iter_mut().filter_map(as_expect).zip(steps.iter().filter_map(as_answer)) {
            if !answer.code.is_empty() {
                let words = [answer.code.as_bytes()];
                step.status_code =
                    Expr::parse(&mut Words::new(&words), Place::Check, registry, &mut names).ok();
            }
        }
        out
    }

    /// A format of a check that does not stand in a line of its own.
    fn check_format(
        &mut self,
        index: usize,
        p: &Draft,
        text: &[u8],
        notes: &mut Diagnostics,
    ) -> Option<LogFormat> {
        let registry = self.ground.registry;
        let line = LineRef { section: u32::MAX, line: u32::MAX };
        let parsed = LogFormat::parse(text, Place::Check, registry, &mut self.resolver(index, p, line));
        parsed.map_err(|f| notes.alert(p.span, f.text)).ok()
    }

    /// `external-check` with its companions; what is missing was said.
    fn external(&self, p: &Draft) -> Option<External> {
        let command = p.external_command.clone()?;
        let preserve_env = self.external_check.is_some_and(|preserve| preserve);
        Some(External { command, path: p.external_path.clone(), preserve_env })
    }
}

fn as_expect(step: &mut Step) -> Option<&mut Expect> {
    match step {
        Step::Expect(expect) => Some(expect),
        _ => None,
    }
}

fn as_answer(step: &Canned) -> Option<&Answer> {
    match step {
        Canned::Expect(answer) => Some(answer),
        _ => None,
    }
}

fn sought(what: &Sought) -> Option<Pattern> {
    let regex = |re: &str| pattern::Regex::new(re.as_bytes(), false).ok();
    Some(match what {
        Sought::Text(bytes) => Pattern::Text((*bytes).into()),
        Sought::Regex(re) => Pattern::Regex(regex(re)?),
        Sought::BinaryRegex(re) => Pattern::BinaryRegex(regex(re)?),
        Sought::Protocol(protocol) => Pattern::Protocol(*protocol),
    })
}
