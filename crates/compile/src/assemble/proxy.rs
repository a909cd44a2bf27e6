//! One proxy, finished.

use std::collections::BTreeMap;
use std::sync::Arc;

use lang::logfmt::Waits;
use lang::places::Place;
use program::log::{Logging, Style as LogStyle};
use program::options::{Forwarded, ForwardedValue};
use program::proxy::{Balance, ErrorAnswer, Errors, Proxy};
use program::server::Settings;
use program::stats::Page;
use program::{Bind, Mode};
use syntax::{Diagnostic, Diagnostics, Style};

use super::{Assembly, refusal, remark};
use crate::draft::{BalanceDraft, Draft, ErrorDraft, FormatDraft, Kind, Named};
use crate::mux::Fit;
use crate::{bind, logformats};

impl Assembly<'_> {
    /// Finishes a proxy.
    pub(super) fn proxy(
        &mut self,
        index: usize,
        p: &Draft,
        all: &[Draft],
        threads: u32,
        notes: &mut Diagnostics,
    ) -> Proxy {
        self.memory.waits = Waits::default();
        // What is said of a proxy comes in HAProxy's order.
        super::checks::http_cookie(p, notes);
        let balance = self.balance(index, p, notes);
        if let FormatDraft::Known(style, span) = &p.format {
            fitting(*style, *span, p, self, notes);
        }
        super::checks::unbound(p, notes);
        self.unused_rules(p, "http-check", notes);
        super::checks::external(p, self.external_check.is_some(), self.fork_wanted, notes);
        crate::mailers::check(&self.mailers, p, notes);
        super::checks::external_idle(p, notes);
        super::checks::external_path(p, notes);
        let default_backend = self.default_backend(index, p, all, notes);
        let mut of_rules = Diagnostics::new();
        let parsed = self.rules(index, p, &mut of_rules);
        for switch in &parsed.switching {
            if let program::proxy::SwitchTo::Backend(to) = switch.to
                && let Some(to) = all.get(to as usize)
            {
                self.compatible(p, to, "in a 'use_backend' rule", p.span, notes);
            }
        }
        notes.extend(of_rules);
        self.missing_rules(p, notes);
        for (_, lost) in self.lost_peers.iter().filter(|(table, _)| *table == p.name) {
            notes.push(lost.clone());
        }
        // What is said of how it all fits together follows what its arguments miss.
        let mut late = Diagnostics::new();
        super::checks::timeouts(p, &mut late);
        self.unused_rules(p, "tcp-check", &mut late);
        super::checks::state_file(p, self.state_file_set, &mut late);
        let mut log = self.logging(index, p, &mut late);
        let check = self.ruleset(index, p, &mut late);
        let servers = self.servers(index, p, all, &check, &mut late);
        let errors = self.errors(index, p, &mut late);
        // Connections of a TCP frontend turn to HTTP when they come to a backend of that mode.
        let speaks_http =
            |to: u32| all.get(to as usize).is_some_and(|to: &Draft| to.mode == program::Mode::Http);
        let turns = default_backend.is_some_and(speaks_http)
            || parsed.switching.iter().any(|switch| match switch.to {
                program::proxy::SwitchTo::Backend(to) => speaks_http(to),
                _ => true,
            });
        if turns {
            self.turning.push(index);
        } else {
            super::checks::http_only(p, &parsed.ignored, &mut late);
            super::checks::http_switches(p, &mut late);
        }
        super::checks::server_cookies(p, &mut late);
        let stats = self.page(p, &parsed);
        let unique = p.unique_id_format.as_ref().and_then(|d| self.log_format(index, d, p, &mut late));
        log.waits = std::mem::take(&mut self.memory.waits);
        log.waits.some |= p.captures();
        for format in [&log.format, &log.structured, &log.error_format, &unique].into_iter().flatten() {
            log.waits.some = true;
            format.items.iter().for_each(|item| log.waits.keep(item));
        }
        let mut options = p.options.clone();
        options.abortonclose = p.abortonclose.unwrap_or(p.mode == Mode::Http);
        options.connection = p.connection.unwrap_or_default();
        options.client_keepalive = p.keepalive.0.then_some(p.figures.0);
        options.server_keepalive = p.keepalive.1.then_some(p.figures.1);
        let mut cookie = p.cookie.clone();
        if let Some(c) = &mut cookie
            && c.dynamic_key.is_some()
        {
            c.dynamic_key = Some(p.dynamic_key.clone().unwrap_or_default());
        }
        let state = self.declared[index].state.clone();
        let dynamic = cookie.as_ref().is_some_and(|c| c.dynamic_key.is_some());
        state.back.dynamic_cookies.store(dynamic, std::sync::atomic::Ordering::Relaxed);
        *state.back.cookie_key.lock() = p.dynamic_key.clone().unwrap_or_default();
        state.back.all_backups.store(options.allbackups, std::sync::atomic::Ordering::Relaxed);
        if p.unpublished {
            state.back.unpublished.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        state.enabled.store(!p.disabled, std::sync::atomic::Ordering::Relaxed);
        let proxy = Proxy {
            name: p.name.clone(),
            state,
            is_frontend: p.kind.is_front(),
            is_backend: p.kind.is_back(),
            mode: p.mode,
            disabled: p.disabled,
            description: p.description.clone(),
            timeouts: p.timeouts,
            options,
            rules: parsed.rules,
            binds: self.binds(index, p, threads, &mut late),
            maxconn: p.maxconn.unwrap_or(0),
            backlog: p.backlog,
            rate_limit: p.rate_limit,
            switching: program::proxy::Switching::new(parsed.switching),
            default_backend,
            monitor_uri: p.monitor_uri.clone().filter(|_| p.kind.is_front()),
            monitor_fail: parsed.monitor_fail,
            log,
            req_captures: p.req_captures.iter().map(|s| s.capture.clone()).collect(),
            res_captures: p.res_captures.iter().map(|s| s.capture.clone()).collect(),
            capture_cookie: p.capture_cookie.clone(),
            unique_id_format: unique,
            unique_id_header: p.unique_id_header.clone(),
            forwardfor: p.forwardfor.clone(),
            originalto: p.originalto.clone(),
            forwarded: self.forwarded(index, p, &mut late).map(Arc::new),
            errors,
            stats,
            servers: servers.into(),
            balance,
            hash: p.hash,
            hash_balance_factor: p.hash_balance_factor,
            preserve_affinity: p.preserve_affinity,
            cookie,
            rdp_cookie: p.rdp_cookie.clone(),
            traces: parsed.traces,
            stick: parsed.stick,
            use_server: parsed.use_server,
            force_persist: parsed.force_persist,
            force_switch: parsed.force_switch,
            ignore_persist: parsed.ignore_persist,
            retries: p.retries,
            retry_on: p.retry_on.clone(),
            reuse: p.reuse.unwrap_or_default(),
            fullconn: p.fullconn.unwrap_or(0),
            source: p.source.clone(),
            dispatch: None,
            send_name_header: p.send_name_header.clone(),
            max_keep_alive_queue: p.max_keep_alive_queue,
            session_conns: p.session_conns,
            check,
            forced_id: p.forced_id,
            default_servers: self.default_servers(p),
        };
        for text in parsed.late {
            late.push(refusal(p.span, format!("Proxy {} : {text}", p.name)));
        }
        self.missing_arguments(&p.name, p.span, notes);
        notes.extend(late);
        proxy
    }

    /// What servers may be made from at run time.
    fn default_servers(&self, p: &Draft) -> Vec<(Option<Box<str>>, Settings)> {
        if self.purge_servers || !p.kind.is_back() {
            return Vec::new();
        }
        let plain = Some(&p.default_server).filter(|d| !d.words.is_empty());
        let plain = plain.map(|d| (None, d.words.as_slice().into()));
        let named = p.named_servers.iter().map(|d| (Some(d.name.clone()), d.words.as_slice().into()));
        plain.into_iter().chain(named).collect()
    }

    fn binds(&mut self, index: usize, p: &Draft, threads: u32, notes: &mut Diagnostics) -> Vec<Bind> {
        let mut ids = Vec::new();
        for draft in &p.binds {
            // The number given is that of the first address of its line.
            let rest = draft.addresses.iter().skip(1).map(|_| None);
            ids.extend(draft.addresses.first().map(|_| draft.id).into_iter().chain(rest));
        }
        super::identity::fill(ids.iter_mut(), 1);
        let mut ids = ids.into_iter();
        let mut out = Vec::new();
        let known = self.declared[index].state.front.listeners.read().clone();
        let mut list = Vec::new();
        let certificates = self.frontend_list(p, notes);
        for draft in &p.binds {
            let mut found = Diagnostics::new();
            let tls = self.acceptor(draft, p, certificates.as_deref(), &mut found);
            notes.extend(found.settling());
            self.bind_threads(draft, p, notes);
            self.frames_fit(draft, p, notes);
            if let Some(mux) = draft.proto.filter(|mux| mux.towards_clients(p.mode) != Fit::Spoken) {
                let place = self.ground.place(draft.span);
                let text = format!(
                    "{} : MUX protocol '{}' is not usable for 'bind {}' at [{place}].",
                    p.label(),
                    mux.name(),
                    draft.text
                );
                notes.push(refusal(draft.span, text));
            }
            for (position, address) in draft.addresses.iter().enumerate() {
                let id = ids.next().flatten().unwrap_or(0);
                let name = draft.name.clone().unwrap_or_else(|| format!("sock-{id}").into());
                let guid = draft.guid(position);
                let same = |l: &&Arc<model::proxy::Listener>| {
                    l.name == name && l.id == id && l.guid.as_deref() == guid.as_deref()
                };
                let found = known.iter().find(same).cloned();
                let state = found
                    .unwrap_or_else(|| Arc::new(bind::listener(&name, id, guid, self.ground.world.workers)));
                list.push(state.clone());
                let settings = Bind {
                    threads: bind::mask(&draft.threads, threads),
                    tls: tls.clone(),
                    ..draft.settings.clone()
                };
                out.push(self.sockets.apply(draft, address, Bind { state, ..settings }));
            }
        }
        *self.declared[index].state.front.listeners.write() = list;
        out
    }

    /// HTTP/2 needs buffers that its frames fit in.
    fn frames_fit(&self, draft: &bind::BindDraft, p: &Draft, notes: &mut Diagnostics) {
        let Some(size) = self.memory.small_buffers.filter(|_| p.mode == Mode::Http) else { return };
        if draft.tls.words.alpn.iter().flatten().any(|name| name == b"h2") {
            let (name, place) = (&p.name, self.ground.place(draft.span));
            let text = format!(
                "HTTP frontend '{name}' enables HTTP/2 via ALPN at [{place}], so global.tune.bufsize must be at least 16384 bytes ({size} now)."
            );
            notes.push(refusal(draft.span, text));
        }
    }

    /// Threads and groups that a `thread` word names must be there.
    fn bind_threads(&self, draft: &bind::BindDraft, p: &Draft, notes: &mut Diagnostics) {
        let workers = self.ground.world.workers as u32;
        let lost = draft.groups.iter().find(|group| **group > self.thread_groups);
        let (verb, what) = match lost {
            Some(group) => ("", format!("non-existing thread group {group}")),
            None if draft.threads.is_empty() || draft.threads.iter().any(|(from, _)| *from <= workers) => {
                return;
            }
            None => match draft.groups.first() {
                Some(group) => ("only ", format!("threads not belonging to group {group}")),
                None => ("only ", "non-existing threads".to_owned()),
            },
        };
        let (label, place) = (p.label(), self.ground.place(draft.span));
        let text = format!(
            "{label}: 'thread' directive {verb}references {what} in 'bind {}' at [{place}].",
            draft.text
        );
        notes.push(refusal(draft.span, text));
    }

    /// A frontend that speaks HTTP can't send to a backend that doesn't.
    fn compatible(&self, p: &Draft, to: &Draft, how: &str, span: syntax::Span, notes: &mut Diagnostics) {
        if p.mode != Mode::Http || to.mode != Mode::Tcp {
            return;
        }
        let (at, there) = (self.ground.place(p.span), self.ground.place(to.span));
        let (word, other) = (p.kind.noun(), to.kind.noun());
        let text = format!(
            "http {word} '{}' ({at}) tries to use incompatible tcp {other} '{}' ({there}) {how} (see 'mode').",
            p.name, to.name
        );
        notes.push(refusal(span, text));
    }

    fn default_backend(
        &self,
        index: usize,
        p: &Draft,
        all: &[Draft],
        notes: &mut Diagnostics,
    ) -> Option<u32> {
        let Some(Named { name, span }) = &p.default_backend else {
            let both = p.kind.is_front() && p.kind.is_back();
            return both.then(|| u32::try_from(index).ok())?;
        };
        let found = self.declared.iter().position(|d| d.is_back && d.name == *name);
        if found.is_none() {
            let near = syntax::nearest(name, self.declared.iter().filter(|d| d.is_back).map(|d| &*d.name));
            let text = format!("Proxy '{}': unable to find required default_backend: '{name}'.", p.name);
            notes.push(refusal(*span, text).meant(near));
        }
        if found == Some(index) {
            let text = format!("Proxy '{}': loop detected for default_backend: '{name}'.", p.name);
            notes.push(refusal(*span, text));
        }
        if let Some(to) = found.and_then(|i| all.get(i)) {
            self.compatible(p, to, "as its default backend", *span, notes);
            if p.kind == Kind::Listen && !p.servers.is_empty() {
                let text = format!(
                    "In proxy '{}', the 'default_backend' rule always has precedence over the servers, which will never be used.",
                    p.name
                );
                notes.push(remark(*span, text));
            }
        }
        found.filter(|_| p.kind.is_front()).and_then(|i| u32::try_from(i).ok())
    }

    fn logging(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Logging {
        let targets = self.log_targets(&p.log, &p.name, notes);
        let (style, mut format) = match &p.format {
            FormatDraft::None => (LogStyle::Default, None),
            // Backends write no lines.
            FormatDraft::Custom(_) if !p.kind.is_front() => (LogStyle::Custom, None),
            FormatDraft::Custom(deferred) => (LogStyle::Custom, self.log_format(index, deferred, p, notes)),
            FormatDraft::Known(style, span) => {
                // That it does not fit was said at the beginning.
                let style = fitting(*style, *span, p, self, &mut Diagnostics::new());
                let text = match style {
                    LogStyle::Tcp => logformats::TCP,
                    LogStyle::TcpClf => logformats::TCP_CLF,
                    LogStyle::Clf => logformats::HTTP_CLF,
                    LogStyle::Https => logformats::HTTPS,
                    _ => logformats::HTTP,
                };
                let at = crate::statement::LineRef { section: p.section, line: 0 };
                let parsed = self.log_text(index, text.as_bytes(), p, at, Place::Log, notes);
                let parsed = parsed.map_err(|fault| {
                    notes.push(refusal(
                        *span,
                        format!(
                            "Parsing [{}]: failed to parse log-format : {}",
                            self.ground.place(*span),
                            fault.text
                        ),
                    ))
                });
                (style, parsed.ok())
            }
        };
        if !p.kind.is_front() {
            format = None;
        }
        let formatted = style != LogStyle::Default || p.structured.is_some();
        if p.kind.is_front() && targets.is_empty() && formatted {
            notes.push(remark(
                p.span,
                format!("log format ignored for {} since it has no log address.", p.label()),
            ));
        }
        Logging {
            targets: targets.into(),
            format,
            structured: p
                .structured
                .as_ref()
                .filter(|_| p.kind.is_front())
                .and_then(|d| self.log_format(index, d, p, notes)),
            error_format: p
                .error_format
                .as_ref()
                .filter(|_| p.kind.is_front())
                .and_then(|d| self.log_format(index, d, p, notes)),
            style,
            steps: p.log_steps,
            own_steps: p.own_log_steps,
            waits: Waits::default(),
            tag: p.log_tag.clone(),
        }
    }

    fn page(&self, p: &Draft, parsed: &super::rules::Parsed) -> Option<Arc<Page>> {
        let draft = p.stats.as_ref()?;
        let scope = |name: &str| if name == "." { p.name.clone() } else { name.into() };
        let node = || self.node.clone().unwrap_or_else(crate::global::process::hostname);
        Some(Arc::new(Page {
            uri: draft.uri.clone().unwrap_or_else(|| "/haproxy?stats".into()),
            realm: draft.realm.clone(),
            users: draft.users.clone(),
            rules: parsed.stats_rules.clone(),
            admin: parsed.stats_admin.clone(),
            refresh: draft.refresh,
            scope: draft.scope.iter().map(|name| scope(name)).collect(),
            show_version: draft.show_version,
            description: draft
                .description
                .clone()
                .map(|d| d.or_else(|| p.description.clone()).unwrap_or_default()),
            legends: draft.legends,
            node: draft.node.clone().map(|n| n.unwrap_or_else(node)),
            modules: draft.modules,
        }))
    }

    fn balance(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Balance {
        if p.balance.needs_http() && p.mode != Mode::Http {
            let text = format!(
                "Layer 7 hash not possible for {} (needs 'mode http'). Falling back to round robin.",
                p.label()
            );
            notes.push(remark(p.span, text));
            return Balance::RoundRobin;
        }
        match &p.balance {
            BalanceDraft::RoundRobin => Balance::RoundRobin,
            BalanceDraft::StaticRr => Balance::StaticRr,
            BalanceDraft::LeastConn => Balance::LeastConn,
            BalanceDraft::First => Balance::First,
            BalanceDraft::Random(draws) => Balance::Random(*draws),
            BalanceDraft::Source => Balance::Source,
            BalanceDraft::Uri(params) => Balance::Uri(*params),
            BalanceDraft::UrlParam(name) => Balance::UrlParam(name.clone()),
            BalanceDraft::Header { name, domain_only } => {
                Balance::Header { name: name.clone(), domain_only: *domain_only }
            }
            BalanceDraft::RdpCookie(name) => Balance::RdpCookie(name.clone()),
            BalanceDraft::Sticky => Balance::Sticky,
            BalanceDraft::LogHash => {
                let text = format!(
                    "Unusable balance algorithm for {} (needs 'mode log'). Falling back to round robin.",
                    p.label()
                );
                notes.push(remark(p.span, text));
                Balance::RoundRobin
            }
            BalanceDraft::Hash(deferred) => {
                let mut own = Diagnostics::new();
                let expr = self.expression(index, deferred, p, Place::ChooseServer, &mut own);
                for d in own {
                    let word = self.ground.deferred(deferred).map_or("", |w| w.text());
                    let at = self.ground.place(p.span);
                    let text = format!(
                        "{} [{at}]: failed to parse 'balance hash' expression '{word}' in : {}",
                        p.label(),
                        d.text
                    );
                    notes.push(Diagnostic { text, ..d }.styled(Style::Bare));
                }
                expr.map_or(Balance::RoundRobin, Balance::Hash)
            }
        }
    }

    fn errors(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Errors {
        let mut by_status = BTreeMap::new();
        for error in &p.errors {
            match error {
                ErrorDraft::Message(status, message) => {
                    by_status.insert(*status, ErrorAnswer::Message(message.clone()));
                }
                ErrorDraft::Section(name, statuses) => {
                    self.error_section(p, name, statuses, &mut by_status, notes)
                }
                ErrorDraft::Reply(at) => match self.http_error(index, p, *at, notes) {
                    Some((status, Some(answer))) => drop(by_status.insert(status, answer)),
                    Some((status, None)) => drop(by_status.remove(&status)),
                    None => {}
                },
            }
        }
        Errors { by_status }
    }

    pub(super) fn error_section(
        &self,
        p: &Draft,
        name: &Named,
        statuses: &[u16],
        out: &mut BTreeMap<u16, ErrorAnswer>,
        notes: &mut Diagnostics,
    ) {
        let Some(section) = self.memory.http_errors.get(&name.name) else {
            let at = self.ground.place(name.span);
            let text = format!("proxy '{}': unknown http-errors section '{}' (at {at}).", p.name, name.name);
            return notes.push(refusal(name.span, text));
        };
        for (status, message) in section {
            if statuses.is_empty() || statuses.contains(status) {
                out.insert(*status, ErrorAnswer::Message(message.clone()));
            }
        }
        for status in statuses.iter().filter(|s| !section.contains_key(s)) {
            let at = self.ground.place(name.span);
            let text = format!(
                "config: proxy '{}' : status '{status}' not declared in http-errors section '{}' (at {at}).",
                p.name, name.name
            );
            notes.push(remark(name.span, text));
        }
    }

    fn forwarded(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Option<Forwarded> {
        let at = p.forwarded.as_ref()?.at;
        let line = self.ground.line(at).filter(|_| p.mode == Mode::Http)?;
        let words = line.args();
        let mut out = Forwarded {
            proto: words.len() == 1,
            host: None,
            by: None,
            by_port: None,
            for_: None,
            for_port: None,
        };
        if words.len() == 1 {
            out.for_ = Some(ForwardedValue::Auto);
        }
        let mut i = 1;
        while let Some(word) = words.get(i) {
            let name = word.text();
            let mut value = ForwardedValue::Auto;
            if let Some(plain) = name.strip_suffix("-expr") {
                let deferred = crate::draft::Deferred { at, word: i + 2 };
                let one = line.words().get(i + 2).map(|w| w.bytes());
                let Some(one) = one else {
                    notes.alert(
                        word.span(),
                        format!("'option forwarded {plain}-expr' expects an expression as argument."),
                    );
                    return None;
                };
                value = ForwardedValue::Expr(self.one_word(index, one, &deferred, p, notes)?);
                i += 1;
            }
            match name {
                "proto" => out.proto = true,
                "host" | "host-expr" => out.host = Some(value),
                "by" | "by-expr" => out.by = Some(value),
                "by_port" | "by_port-expr" => out.by_port = Some(value),
                "for" | "for-expr" => out.for_ = Some(value),
                "for_port" | "for_port-expr" => out.for_port = Some(value),
                _ => {
                    notes.alert(word.span(), "'option forwarded' only supports optional values: 'proto', 'host', 'host-expr', 'by', 'by-expr', 'by_port', 'by_port-expr', 'for', 'for-expr', 'for_port' and 'for_port-expr'.");
                    return None;
                }
            }
            i += 1;
        }
        Some(out)
    }

    /// An expression that is one word.
    fn one_word(
        &mut self,
        index: usize,
        word: &[u8],
        deferred: &crate::draft::Deferred,
        p: &Draft,
        notes: &mut Diagnostics,
    ) -> Option<lang::Expr> {
        let line = self.ground.line(deferred.at)?;
        let registry = self.ground.registry;
        let mut names = self.resolver(index, p, deferred.at);
        let list = [word];
        match lang::Expr::parse(&mut lang::Words::new(&list), Place::BackHttpReq, registry, &mut names) {
            Ok(expr) => Some(expr),
            Err(fault) => {
                notes.push(super::complaint(fault, line, deferred.word));
                None
            }
        }
    }
}

/// An HTTP line needs HTTP mode; otherwise the TCP one takes its place.
fn fitting(
    style: LogStyle,
    span: syntax::Span,
    p: &Draft,
    assembly: &Assembly<'_>,
    notes: &mut Diagnostics,
) -> LogStyle {
    let inherited = p.kind == crate::draft::Kind::Backend && !said_here(p, assembly);
    let (name, fallback, instead) = match style {
        LogStyle::Http => ("httplog", "tcplog", LogStyle::Tcp),
        LogStyle::Https => ("httpslog", "tcplog", LogStyle::Tcp),
        LogStyle::Clf => ("httplog clf", "tcplog clf", LogStyle::TcpClf),
        _ => return style,
    };
    if p.mode == Mode::Http || inherited {
        return style;
    }
    let at = assembly.ground.place(span);
    let text = format!(
        "parsing [{at}] : 'option {name}' not usable with {} (needs 'mode http'). Falling back to 'option {fallback}'.",
        p.label()
    );
    notes.push(Diagnostic::warning(span, text).styled(Style::Bare));
    instead
}

/// Whether the line that names the format stands in this very section.
fn said_here(p: &Draft, assembly: &Assembly<'_>) -> bool {
    let lines = assembly.ground.tree.sections.get(p.section as usize).map(|s| &s.lines);
    lines.into_iter().flatten().any(|l| {
        l.keyword() == "log-format"
            || l.keyword() == "option"
                && l.args().first().is_some_and(|w| w == "httplog" || w == "httpslog" || w == "tcplog")
    })
}
