//! Health checks: from `option httpchk`, `http-check` and `tcp-check` lines to the steps that are run.
//!
//! An HTTP check without `http-check send` sends what `option httpchk` says; one without `http-check expect` expects a
//! status of 200 to 399. The first `send` completes itself from `option httpchk`.

use std::sync::Arc;

use lang::logfmt::{Encoding, Item};
use lang::places::Place;
use lang::{Expr, LogFormat, Names, Words};
use model::check::CheckStatus;
use model::vars::VarRef;
use program::check::{Expect, External, HeaderPattern, Pattern, PortFrom, Ruleset, Step};
use syntax::{Diagnostic, Diagnostics, Line, Word};

use super::{Assembly, remark};
use crate::check::{Answer, Canned, Sought};
use crate::draft::{CheckKind, Draft};
use crate::healthcheck::HealthDraft;
use crate::names::Resolver;
use crate::statement::LineRef;

/// The statuses of a healthy server unless said otherwise.
const HEALTHY: (u16, u16) = (200, 399);

impl Assembly<'_> {
    /// The check that servers of a proxy run.
    pub(super) fn ruleset(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Arc<Ruleset> {
        // Rules of the other kind are ignored, but not their errors.
        let http = self.steps(index, p, "http-check", notes);
        let tcp = self.steps(index, p, "tcp-check", notes);
        let mut set = Ruleset {
            disable_on_404: p.disable_on_404,
            send_state: p.send_state,
            http: matches!(p.check, CheckKind::Http { .. }),
            ..Ruleset::default()
        };
        match &p.check {
            CheckKind::Connect => {}
            CheckKind::Canned(steps) => {
                set.canned = true;
                set.steps = self.canned(index, p, steps);
            }
            CheckKind::External => set.external = self.external(p, notes),
            CheckKind::Tcp => {
                set.tcp = true;
                set.steps = tcp;
            }
            CheckKind::Http { method, uri, version, host } => {
                let host = host.as_deref().and_then(|h| self.check_format(index, p, h, notes));
                let mut first = Request { method, uri: uri.as_deref(), version, host };
                set.steps = complete(http, &mut first);
            }
        }
        self.unused_rules(p, notes);
        Arc::new(set)
    }

    /// The checks of `healthcheck` sections. Rules see no proxy of their own: the one that uses them is known when they
    /// run.
    pub(super) fn healthchecks(&mut self, drafts: &[HealthDraft], notes: &mut Diagnostics) {
        for health in drafts {
            let rules = self.ruleset(usize::MAX, &health.draft, notes);
            self.healthchecks.push((health.draft.name.clone(), rules));
        }
    }

    /// Rules of a kind of check that is not chosen do nothing.
    fn unused_rules(&self, p: &Draft, notes: &mut Diagnostics) {
        if p.kind.is_defaults() {
            return;
        }
        let has = |word: &str| {
            let lines = p.check_rules.iter().filter(|at| at.section == p.section);
            lines.filter_map(|at| self.ground.line(*at)).any(|l| l.keyword() == word)
        };
        let http = matches!(p.check, CheckKind::Http { .. });
        let tcp = matches!(p.check, CheckKind::Tcp);
        for (word, option, chosen) in [("http-check", "httpchk", http), ("tcp-check", "tcp-check", tcp)] {
            if !chosen && has(word) {
                let text = format!(
                    "{} uses {word} rules without 'option {option}', so the rules are ignored.",
                    p.label()
                );
                notes.push(remark(p.span, text));
            }
        }
    }

    fn steps(&mut self, index: usize, p: &Draft, keyword: &str, notes: &mut Diagnostics) -> Vec<Step> {
        let mut out = Vec::new();
        for at in &p.check_rules {
            let Some(line) = self.ground.line(*at).filter(|l| l.keyword() == keyword) else { continue };
            let registry = self.ground.registry;
            let mut reader = Reader { line, at: 1, registry, names: self.resolver(index, p, *at) };
            match reader.step() {
                Ok(Some(Step::Connect { .. })) if late(&out) => notes.push(reader.fail(FIRST)),
                Ok(Some(step)) => out.push(step),
                Ok(None) => {}
                Err(diagnostic) => notes.push(diagnostic),
            }
        }
        out
    }
}

/// What is said of a rule set that connects, but not first.
const FIRST: &str = "first step MUST also be a 'connect', optionally preceded by a 'set-var', an 'unset-var' or a 'comment', when there is a 'connect' step in the tcp-check ruleset";

/// Whether there are steps that talk, and none of them is the first to connect.
fn late(steps: &[Step]) -> bool {
    let talks = |s: &&Step| {
        matches!(s, Step::Connect { .. } | Step::SendHttp { .. } | Step::Send { .. } | Step::Expect(_))
    };
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

/// Adds what `http-check` lines left out.
fn complete(mut steps: Vec<Step>, first: &mut Request<'_>) -> Vec<Step> {
    let has_connect = steps.iter().any(|s| matches!(s, Step::Connect { .. }));
    match steps.iter_mut().find(|s| matches!(s, Step::SendHttp { .. })) {
        None => {
            let at = usize::from(matches!(steps.first(), Some(Step::Connect { .. })));
            steps.insert(at, first.step());
        }
        Some(Step::SendHttp { method, uri, version, headers, .. }) => {
            let own = !has_connect;
            let named = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"host"));
            if own
                && !named
                && let Some(host) = first.host()
            {
                headers.insert(0, host);
            }
            if method.is_empty() {
                *method = if own { first.method.into() } else { (*b"GET").into() };
            }
            if uri.constant() == Some(b"") {
                *uri = Arc::new(text(first.uri.filter(|_| own).unwrap_or(b"/")));
            }
            if version.is_empty() {
                *version = first.version_or_default().into();
            }
        }
        Some(_) => {}
    }
    for step in &mut steps {
        if let Step::SendHttp { method, uri, version, .. } = step {
            fill(method, b"GET");
            fill(version, b"HTTP/1.0");
            if uri.constant() == Some(b"") {
                *uri = Arc::new(text(b"/"));
            }
        }
    }
    if !steps.iter().any(|s| matches!(s, Step::Expect(_))) {
        steps.push(Step::Expect(expect(Pattern::Status(vec![HEALTHY]))));
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

fn expect(what: Pattern) -> Expect {
    Expect {
        negated: false,
        min_recv: None,
        what,
        ok_status: None,
        error_status: None,
        timeout_status: None,
        on_success: None,
        on_error: None,
        status_code: None,
        comment: None,
    }
}

impl Assembly<'_> {
    /// The steps of a ready-made check. Their texts are ours, so what can't be parsed is left out in silence; a test
    /// sees to it that there is no such thing.
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
                        ..expect(what)
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

    /// `external-check` with its companions.
    fn external(&self, p: &Draft, notes: &mut Diagnostics) -> Option<External> {
        let mut fail = |text: &str| {
            notes.push(super::refusal(p.span, format!("Proxy '{}' : {text}", p.name)));
        };
        if self.external_check.is_none() {
            fail("'option external-check' unable to find required 'global.external-check'.");
        }
        let Some(command) = p.external_command.clone() else {
            fail("'option external-check' unable to find required 'external-check command'.");
            return None;
        };
        if !command.starts_with('/') && p.external_path.is_none() {
            let text = format!(
                "Proxy '{}': 'external-check command' does not have a leading '/' and 'external-check path' is not set.",
                p.name
            );
            notes.push(super::refusal(p.span, text));
        }
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

/// Reads one `http-check` or `tcp-check` line.
struct Reader<'g, 'r> {
    line: &'g Line,
    /// Index of the next word.
    at: usize,
    registry: &'g lang::Registry,
    names: Resolver<'r>,
}

type Read<T> = Result<T, Diagnostic>;

impl<'g> Reader<'g, '_> {
    fn next(&mut self) -> Option<&'g Word> {
        let word = self.line.words().get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn label(&self) -> String {
        let second = self.line.words().get(1).map_or("", |w| w.text());
        format!("'{} {second}'", self.line.keyword())
    }

    fn fail(&self, text: impl std::fmt::Display) -> Diagnostic {
        let word = self.line.words().get(self.at.saturating_sub(1)).unwrap_or(self.line.keyword());
        Diagnostic::alert(word.span(), format!("{} : {text}.", self.label()))
    }

    fn value(&mut self, name: &str, what: &str) -> Read<&'g Word> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.fail(format!("'{name}' expects {what} as argument"))),
        }
    }

    fn format(&mut self, word: &Word) -> Read<Arc<LogFormat>> {
        let parsed = LogFormat::parse(word.bytes(), Place::Check, self.registry, &mut self.names);
        parsed.map(Arc::new).map_err(|f| self.fail(f.text))
    }

    fn regex(&self, word: &Word) -> Read<pattern::Regex> {
        pattern::Regex::new(word.bytes(), false).map_err(|e| self.fail(e))
    }

    fn step(&mut self) -> Read<Option<Step>> {
        let name = self.next().map_or("", |w| w.text());
        let http = self.line.keyword() == "http-check";
        let (name, arg) = name.split_once('(').map_or((name, ""), |(n, a)| (n, a.trim_end_matches(')')));
        Ok(Some(match name {
            "connect" => self.connect()?,
            "send" if http => self.send_http()?,
            "send" => self.send(false, false)?,
            "send-lf" => self.send(true, false)?,
            "send-binary" => self.send(false, true)?,
            "send-binary-lf" => self.send(true, true)?,
            "expect" => Step::Expect(self.expect(http)?),
            "set-var" => self.set_var(arg)?,
            "unset-var" => Step::UnsetVar(self.variable(arg)?),
            "set-var-fmt" => {
                let var = self.variable(arg)?;
                let word = self.value("set-var-fmt", "a format")?;
                Step::SetVarFormat(var, self.format(word)?)
            }
            "comment" => Step::Comment(self.comment()?),
            _ => return Ok(None),
        }))
    }

    fn variable(&mut self, name: &str) -> Read<VarRef> {
        self.names.variable(name).map_err(|f| self.fail(f.text))
    }

    fn set_var(&mut self, name: &str) -> Read<Step> {
        let var = self.variable(name)?;
        let list: Vec<&[u8]> = self.line.words().iter().skip(self.at).map(Word::bytes).collect();
        let expr = Expr::parse(&mut Words::new(&list), Place::Check, self.registry, &mut self.names);
        Ok(Step::SetVar(var, expr.map_err(|f| self.fail(f.text))?))
    }

    fn comment(&mut self) -> Read<Box<str>> {
        Ok(self.value("comment", "a string")?.text().into())
    }

    fn connect(&mut self) -> Read<Step> {
        let (mut port, mut addr, mut comment) = (None, None, None);
        let (mut send_proxy, mut linger, mut default, mut via_socks4) = (false, false, false, false);
        let (mut ssl, mut sni, mut alpn, mut proto) = (false, None, None, None);
        while let Some(word) = self.next() {
            match word.text() {
                "default" => default = true,
                "port" => port = Some(self.port()?),
                "addr" => {
                    let word = self.value("addr", "an address")?;
                    let accept = syntax::addr::Accept::SERVER;
                    let found = syntax::addr::parse(word.text(), accept, &self.names.memory.environment)
                        .map_err(|why| self.fail(why))?;
                    let ip = crate::resolve::ip(&found.host).ok_or_else(|| self.fail("invalid address"))?;
                    let own = match found.ports {
                        syntax::addr::Ports::One(port) => port,
                        _ => 0,
                    };
                    addr = Some(std::net::SocketAddr::new(ip, own));
                }
                "send-proxy" => send_proxy = true,
                "linger" => linger = true,
                "comment" => comment = Some(self.comment()?),
                "proto" => proto = Some(self.value("proto", "a MUX protocol")?.text() == "h2"),
                "ssl" => ssl = true,
                "sni" => sni = Some(self.value("sni", "a SNI")?.text().into()),
                "alpn" => {
                    let word = self.value("alpn", "a comma-delimited list of protocols")?;
                    alpn = Some(word.text().split(',').map(|p| p.as_bytes().to_vec()).collect());
                }
                "via-socks4" => via_socks4 = true,
                other => {
                    return Err(self.fail(format!("expects 'comment', 'port', 'addr', 'send-proxy', 'ssl', 'sni', 'alpn' or 'via-socks4', 'linger', 'default' but got '{other}' as argument.")));
                }
            }
        }
        Ok(Step::Connect {
            port,
            addr,
            send_proxy,
            default,
            ssl,
            sni,
            alpn,
            proto,
            via_socks4,
            linger,
            comment,
        })
    }

    /// A number, or an expression that gives one.
    fn port(&mut self) -> Read<PortFrom> {
        let word = self.value("port", "a port number")?;
        let digits = word.bytes().iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == word.bytes().len() {
            let port = word.text().parse().ok().filter(|p| *p > 0);
            return port.map(PortFrom::Fixed).ok_or_else(|| {
                self.fail(format!(
                    "expects a valid TCP port (from range 1 to 65535) or a sample expression, got {word}."
                ))
            });
        }
        let list = [word.bytes()];
        let expr = Expr::parse(&mut Words::new(&list), Place::Check, self.registry, &mut self.names);
        expr.map(PortFrom::Expr)
            .map_err(|f| self.fail(format!("error detected while parsing port expression : {}", f.text)))
    }

    fn send(&mut self, format: bool, hex: bool) -> Read<Step> {
        let word = match self.next() {
            Some(word) => word,
            None => return Err(self.fail("'string' expects a send as argument")),
        };
        let data = match (format, hex) {
            (true, _) => self.format(word)?,
            (false, false) => Arc::new(text(word.bytes())),
            (false, true) => Arc::new(text(&self.digits(word)?)),
        };
        let mut comment = None;
        while let Some(word) = self.next() {
            match word.text() {
                "comment" => comment = Some(self.comment()?),
                other => return Err(self.fail(format!("expects 'comment' but got '{other}' as argument"))),
            }
        }
        // Plain hexadecimal digits have become bytes already.
        Ok(Step::Send { data, hex: hex && format, comment })
    }

    fn digits(&self, word: &Word) -> Read<Vec<u8>> {
        let text = word.bytes();
        let odd = || {
            self.fail(format!("'{word}' invalid binary string (an even number of hex digit is expected).\n"))
        };
        if !text.len().is_multiple_of(2) {
            return Err(odd());
        }
        let pairs = text.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        pairs.collect::<Option<Vec<u8>>>().ok_or_else(odd)
    }

    fn send_http(&mut self) -> Read<Step> {
        let (mut method, mut version): (Box<[u8]>, Box<[u8]>) = (Box::default(), Box::default());
        let (mut uri, mut body, mut comment) = (Arc::new(text(b"")), None, None);
        let mut headers = Vec::new();
        while let Some(word) = self.next() {
            match word.text() {
                "meth" => method = self.value("meth", "a string")?.bytes().into(),
                "uri" => uri = Arc::new(text(self.value("uri", "a string")?.bytes())),
                "uri-lf" => {
                    let word = self.value("uri-lf", "a string")?;
                    uri = self.format(word)?;
                }
                "ver" => version = self.value("ver", "a string")?.bytes().into(),
                "hdr" => {
                    let name = self.value("hdr", "<name> and <value>")?.bytes();
                    let value = self.value("hdr", "<name> and <value>")?;
                    let value = LogFormat::parse(value.bytes(), Place::Check, self.registry, &mut self.names);
                    let value = value.map_err(|f| self.fail(f.text))?;
                    if !name.eq_ignore_ascii_case(b"content-length")
                        && !name.eq_ignore_ascii_case(b"transfer-encoding")
                    {
                        headers.push((name.into(), value));
                    }
                }
                "body" => body = Some(Arc::new(text(self.value("body", "a string")?.bytes()))),
                "body-lf" => {
                    let word = self.value("body-lf", "a string")?;
                    body = Some(self.format(word)?);
                }
                "comment" => comment = Some(self.comment()?),
                other => {
                    return Err(self.fail(format!("expects 'comment', 'meth', 'uri', 'uri-lf', 'ver', 'hdr', 'body' or 'body-lf' but got '{other}' as argument.")));
                }
            }
        }
        Ok(Step::SendHttp { method, uri, version, headers, body, comment })
    }

    fn expect(&mut self, http: bool) -> Read<Expect> {
        if self.line.words().get(self.at).is_none() {
            return Err(self.fail("expects at least a matching pattern as arguments"));
        }
        let mut out = expect(Pattern::Status(vec![HEALTHY]));
        let mut found = false;
        while let Some(word) = self.next() {
            match word.text() {
                "min-recv" => {
                    let n = self.value("min-recv", "an integer")?;
                    let n: i32 =
                        n.text().parse().ok().filter(|n| *n >= -1).ok_or_else(|| {
                            self.fail("'min-recv' expects -1 or an integer from 0 to INT_MAX")
                        })?;
                    out.min_recv = u32::try_from(n).ok();
                }
                "comment" => out.comment = Some(self.comment()?),
                "ok-status" => out.ok_status = Some(self.status("ok-status")?),
                "error-status" => out.error_status = Some(self.status("error-status")?),
                "tout-status" => out.timeout_status = Some(self.status("tout-status")?),
                "on-success" => {
                    let word = self.value("on-success", "a string")?;
                    out.on_success = Some(self.format(word)?);
                }
                "on-error" => {
                    let word = self.value("on-error", "a string")?;
                    out.on_error = Some(self.format(word)?);
                }
                "status-code" => {
                    let word = self.value("status-code", "an expression")?;
                    let list = [word.bytes()];
                    let expr =
                        Expr::parse(&mut Words::new(&list), Place::Check, self.registry, &mut self.names);
                    let expr = expr.map_err(|f| {
                        self.fail(format!("error detected while parsing status-code expression : {}", f.text))
                    });
                    out.status_code = Some(expr?);
                }
                "!" => out.negated = true,
                name if !found => {
                    let (negated, name) = name.strip_prefix('!').map_or((false, name), |n| (true, n));
                    out.negated |= negated;
                    out.what = self.pattern(name, http)?;
                    found = true;
                }
                _ => return Err(self.fail("only one pattern expected")),
            }
        }
        if !found {
            return Err(self.fail("expects at least a matching pattern as arguments"));
        }
        Ok(out)
    }

    fn status(&mut self, name: &str) -> Read<CheckStatus> {
        use CheckStatus::*;
        let word = self.value(name, "a string")?;
        let (known, list): (&[CheckStatus], _) = match name {
            "ok-status" => (&[L4Ok, L6Ok, L7Ok, L7OkCond], "'L4OK', 'L6OK', 'L7OK' or 'L7OKC'"),
            "error-status" => (&[L4Con, L6Rsp, L7Rsp, L7Sts], "'L4CON', 'L6RSP', 'L7RSP' or 'L7STS'"),
            _ => (&[L4Timeout, L6Timeout, L7Timeout], "'L4TOUT', 'L6TOUT' or 'L7TOUT'"),
        };
        let found = known.iter().copied().find(|s| s.code() == word.text());
        found.ok_or_else(|| self.fail(format!("'{name}' only supports {list} status (got '{word}').")))
    }

    fn pattern(&mut self, name: &str, http: bool) -> Read<Pattern> {
        let pattern = |r: &mut Self| r.value(name, "a <pattern>");
        Ok(match name {
            "status" if http => {
                let word = pattern(self)?;
                Pattern::Status(self.codes(word)?)
            }
            "rstatus" if http => {
                let word = pattern(self)?;
                Pattern::StatusRegex(self.regex(word)?)
            }
            "string" => Pattern::Text(pattern(self)?.bytes().into()),
            "rstring" => {
                let word = pattern(self)?;
                Pattern::Regex(self.regex(word)?)
            }
            "string-lf" => {
                let word = pattern(self)?;
                Pattern::Format(self.format(word)?)
            }
            "binary" if !http => {
                let word = pattern(self)?;
                Pattern::Binary(self.digits(word)?.into())
            }
            "rbinary" if !http => {
                let word = pattern(self)?;
                Pattern::BinaryRegex(self.regex(word)?)
            }
            "binary-lf" if !http => {
                let word = pattern(self)?;
                Pattern::BinaryFormat(self.format(word)?)
            }
            "hdr" | "fhdr" if http => self.header(name == "fhdr")?,
            other if http => {
                return Err(self.fail(format!("'only supports min-recv, [!]string', '[!]rstring', '[!]string-lf', '[!]status', '[!]rstatus', [!]hdr, [!]fhdr or comment but got '{other}' as argument.")));
            }
            other => {
                return Err(self.fail(format!("'only supports min-recv, '[!]binary', '[!]string', '[!]rstring', '[!]string-lf''[!]rbinary', '[!]binary-lf' or comment but got '{other}' as argument.")));
            }
        })
    }

    fn codes(&self, word: &Word) -> Read<Vec<(u16, u16)>> {
        let list = word.text();
        if let Some(odd) = list.chars().find(|c| !c.is_ascii_digit() && !matches!(c, ',' | '-')) {
            return Err(self.fail(format!("invalid character '{odd}' in the list of status codes")));
        }
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some((low.parse().ok()?, high.parse().ok()?)).filter(|(l, h): &(u16, u16)| l <= h)
        };
        let all = list.split(',').map(range).collect::<Option<Vec<_>>>();
        all.ok_or_else(|| self.fail(format!("invalid range of status codes '{list}'")))
    }

    /// `hdr name|name-lf [-m how] pattern [value|value-lf [-m how] pattern]`.
    fn header(&mut self, full: bool) -> Read<Pattern> {
        let word = self.next().map_or("", Word::text);
        if !matches!(word, "name" | "name-lf") {
            let text = "'hdr' expects at the name keyword as first argument followed by a pattern";
            return Err(self.fail(text));
        }
        let name = self.header_pattern(word == "name-lf", true)?;
        let next = self.line.words().get(self.at).map_or("", Word::text);
        let value = match next {
            "value" | "value-lf" => {
                self.next();
                Some(self.header_pattern(next == "value-lf", false)?)
            }
            _ => None,
        };
        Ok(Pattern::Header { name, value, full })
    }

    /// `name`: names of fields are compared without regard to case.
    fn header_pattern(&mut self, format: bool, name: bool) -> Read<HeaderPattern> {
        let mut word = self.value("hdr", "a pattern")?;
        let mut how = "str";
        if word == "-m" {
            how = self.value("-m", "a matching method")?.text();
            word = self.value("hdr", "a pattern")?;
        }
        if how == "reg" {
            let regex = pattern::Regex::new(word.bytes(), name);
            return regex.map(HeaderPattern::Reg).map_err(|e| self.fail(e));
        }
        let text = if format { self.format(word)? } else { Arc::new(text(word.bytes())) };
        Ok(match how {
            "str" => HeaderPattern::Str(text),
            "beg" => HeaderPattern::Beg(text),
            "end" => HeaderPattern::End(text),
            "sub" => HeaderPattern::Sub(text),
            other => {
                return Err(self.fail(format!(
                    "'hdr' : '-m' only supports 'str', 'beg', 'end', 'sub' or 'reg' (got '{other}')"
                )));
            }
        })
    }
}
