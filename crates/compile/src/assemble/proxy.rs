//! One proxy, finished.

use std::sync::Arc;

use lang::logfmt::Waits;
use lang::places::Place;
use program::Mode;
use program::log::Logging;
use program::options::{Forwarded, ForwardedValue, Options, RestrictNames};
use program::persist::Cookie;
use program::proxy::{Balance, Proxy, Switch, SwitchTo};
use program::server::Settings;
use program::stats::Page;
use syntax::{Diagnostic, Diagnostics, Style};

use super::logs::fitting;
use super::rules::Parsed;
use super::{Assembly, checks};
use crate::draft::{BalanceDraft, Draft, FormatDraft, Kind, Named};
use crate::notes::{refusal, remark};

impl Assembly<'_> {
    /// Finishes a proxy. What is said of it comes in HAProxy's order.
    pub(super) fn proxy(&mut self, index: usize, p: &Draft, all: &[Draft], notes: &mut Diagnostics) -> Proxy {
        self.memory.waits = Waits::default();
        self.memory.looks_at_http = false;
        checks::http_cookie(p, notes);
        let balance = self.balance(index, p, notes);
        self.first_look(p, notes);
        let default_backend = self.default_backend(index, p, all, notes);
        let parsed = self.parsed(index, p, all, notes);
        // What is said of how it all fits together follows what its arguments miss.
        let mut late = Diagnostics::new();
        checks::timeouts(p, &mut late);
        self.unused_rules(p, "tcp-check", &mut late);
        checks::state_file(p, self.state_file_set, &mut late);
        let proxy = self.fitted(index, p, all, (balance, default_backend, parsed), &mut late);
        self.missing_arguments(&p.name, p.span, notes);
        notes.extend(late);
        proxy
    }

    /// What shows before rules are read.
    fn first_look(&mut self, p: &Draft, notes: &mut Diagnostics) {
        if let FormatDraft::Known(style, span) = &p.format {
            fitting(*style, *span, p, self, notes);
        }
        checks::unbound(p, notes);
        self.unused_rules(p, "http-check", notes);
        checks::external(p, self.external_check.is_some(), self.fork_wanted, notes);
        crate::mailers::check(&self.mailers, p, notes);
        checks::external_idle(p, notes);
        checks::external_path(p, notes);
    }

    /// Its rules.
    fn parsed(&mut self, index: usize, p: &Draft, all: &[Draft], notes: &mut Diagnostics) -> Parsed {
        let mut of_rules = Diagnostics::new();
        let parsed = self.rules(index, p, &mut of_rules);
        for to in targets(&parsed.switching).flatten().filter_map(|to| all.get(to as usize)) {
            self.compatible(p, to, "in a 'use_backend' rule", p.span, notes);
        }
        notes.extend(of_rules);
        self.missing_rules(p, notes);
        for (_, lost) in self.lost_peers.iter().filter(|(table, _)| *table == p.name) {
            notes.push(lost.clone());
        }
        parsed
    }

    /// Connections of a TCP frontend turn to HTTP when they come to a backend of that mode. Says what does
    /// not fit those that can't.
    fn turning(
        &mut self,
        index: usize,
        p: &Draft,
        all: &[Draft],
        (default_backend, parsed): (Option<u32>, &Parsed),
        notes: &mut Diagnostics,
    ) {
        let speaks_http = |to: u32| all.get(to as usize).is_some_and(|to: &Draft| to.mode == Mode::Http);
        let may = |to: Option<u32>| to.is_none_or(speaks_http);
        if default_backend.is_some_and(speaks_http) || targets(&parsed.switching).any(may) {
            self.turning.push(index);
            return;
        }
        checks::http_only(p, &parsed.ignored, notes);
        checks::http_switches(p, notes);
    }

    /// The format of unique ids, and what log lines wait for.
    fn unique_id(
        &mut self,
        index: usize,
        p: &Draft,
        log: &mut program::log::Logging,
        notes: &mut Diagnostics,
    ) -> Option<Arc<lang::LogFormat>> {
        let unique = p.unique_id_format.as_ref().and_then(|d| self.log_format(index, d, p, notes));
        self.waits(p, log, unique.as_deref());
        unique
    }

    /// The proxy with all its parts, and what is said of how they fit together.
    fn fitted(
        &mut self,
        index: usize,
        p: &Draft,
        all: &[Draft],
        (balance, default_backend, parsed): (Balance, Option<u32>, Parsed),
        notes: &mut Diagnostics,
    ) -> Proxy {
        let (mut log, check) = (self.logging(index, p, notes), self.ruleset(index, p, notes));
        let servers = self.servers(index, p, all, &check, notes);
        let errors = self.errors(index, p, notes);
        self.turning(index, p, all, (default_backend, &parsed), notes);
        self.idle(p, &parsed, notes);
        let unique = self.unique_id(index, p, &mut log, notes);
        let (stats, binds) = (self.page(p, &parsed), self.binds(index, p, notes));
        let proxy = Proxy {
            added: None,
            name: p.name.clone(),
            state: self.declared[index].state.clone(),
            is_frontend: p.kind.is_front(),
            is_backend: p.kind.is_back(),
            mode: p.mode,
            disabled: p.disabled,
            description: p.description.clone(),
            mail: crate::mailers::mail(&self.mailers, p, self.ground.options.mail_by_script),
            timeouts: p.timeouts,
            options: options(p, parsed.application.is_some()),
            fcgi: self.application(p, &parsed, notes),
            compression: p.compression.clone().filter(|_| p.mode == Mode::Http),
            rules: parsed.rules,
            binds,
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
            forwarded: self.forwarded(index, p, notes).map(Arc::new),
            errors,
            stats,
            servers: servers.into(),
            balance,
            hash: p.hash,
            hash_balance_factor: p.hash_balance_factor,
            preserve_affinity: p.preserve_affinity,
            cookie: cookie(p),
            rdp_cookie: p.rdp_cookie.clone(),
            filters: parsed.filters,
            traces: parsed.traces,
            filtered: parsed.filtered,
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
        said_late(p, parsed.late, notes);
        proxy
    }

    /// What a log line waits for: what rules and formats name.
    fn waits(&mut self, p: &Draft, log: &mut Logging, unique: Option<&lang::LogFormat>) {
        let mut waits = std::mem::take(&mut self.memory.waits);
        waits.some |= p.captures();
        let formats = [&log.format, &log.structured, &log.error_format].map(|format| format.as_deref());
        for format in formats.into_iter().chain([unique]).flatten() {
            waits.some = true;
            format.items.iter().for_each(|item| waits.keep(item));
        }
        log.waits = waits;
        log.looks_at_http = self.memory.looks_at_http;
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

    /// A frontend that speaks HTTP can't send to a backend that doesn't.
    fn compatible(&self, p: &Draft, to: &Draft, how: &str, span: syntax::Span, notes: &mut Diagnostics) {
        let closed = matches!(to.mode, Mode::Log | Mode::Spop);
        if !closed && (p.mode != Mode::Http || to.mode != Mode::Tcp) {
            return;
        }
        let (at, there) = (self.ground.place(p.span), self.ground.place(to.span));
        let (word, other) = (p.kind.noun(), to.kind.noun());
        let text = format!(
            "{} {word} '{}' ({at}) tries to use incompatible {} {other} '{}' ({there}) {how} (see 'mode').",
            p.mode.word(),
            p.name,
            to.mode.word(),
            to.name
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
                .map(|d| d.or_else(|| self.description.clone()).unwrap_or_default()),
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
        let spreads = matches!(
            p.balance,
            BalanceDraft::RoundRobin
                | BalanceDraft::Random(_)
                | BalanceDraft::Sticky
                | BalanceDraft::LogHash(_)
        );
        if p.mode == Mode::Log && !spreads {
            let text = format!(
                "in {}: \"balance\" only supports 'roundrobin', 'random', 'sticky' and 'log-hash'.",
                p.label()
            );
            notes.push(refusal(p.span, text));
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
            BalanceDraft::LogHash(deferred) => self.log_hash(index, deferred, p, notes),
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

/// The backends that connections are switched to; `None`: a name that is computed.
fn targets(switching: &[Switch]) -> impl Iterator<Item = Option<u32>> {
    switching.iter().map(|switch| match switch.to {
        SwitchTo::Backend(to) => Some(to),
        SwitchTo::Format(_) => None,
    })
}

/// Options with what the mode, and an application of FastCGI, say of those that were not named.
fn options(p: &Draft, filtered: bool) -> Options {
    let mut options = p.options.clone();
    let fcgi = filtered || p.fcgi_app.is_some();
    // Applications are told the length of a body, which one in chunks has only when it is there.
    options.http_buffer_request |= fcgi;
    if fcgi && !p.restricted {
        options.restrict_names = RestrictNames::Delete;
    }
    options.abortonclose = p.abortonclose.unwrap_or(p.mode == Mode::Http);
    options.connection = p.connection.unwrap_or_default();
    options.client_keepalive = p.keepalive.0.then_some(p.figures.0);
    options.server_keepalive = p.keepalive.1.then_some(p.figures.1);
    options
}

/// The persistence cookie with its key, if it has one.
fn cookie(p: &Draft) -> Option<Cookie> {
    let mut cookie = p.cookie.clone()?;
    if let Some(key) = &mut cookie.dynamic_key {
        *key = p.dynamic_key.clone().unwrap_or_default();
    }
    Some(cookie)
}

/// What is wrong with filters of a proxy is said when all its lines are read.
fn said_late(p: &Draft, late: Vec<String>, notes: &mut Diagnostics) {
    let late = late.into_iter().map(|text| format!("Proxy {} : {text}", p.name));
    late.for_each(|text| notes.push(refusal(p.span, text)));
}
