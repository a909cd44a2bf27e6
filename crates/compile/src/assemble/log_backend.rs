//! Backends of logs (`mode log`): where the lines for each server go.

use std::sync::Arc;

use balance::Method;
use lang::Expr;
use lang::places::Place;
use program::Mode;
use program::log::{Ring, RingServer, Sink};
use program::proxy::Balance;
use program::server::ServerTls;
use syntax::{Diagnostic, Diagnostics, Style};

use super::Assembly;
use crate::draft::{Deferred, Draft, ServerDraft};
use crate::notes::{refusal, remark};
use crate::ring;

impl Assembly<'_> {
    /// `balance log-hash`: the converters, behind a fetch that nobody asks.
    pub(super) fn log_hash(
        &mut self,
        index: usize,
        deferred: &Deferred,
        p: &Draft,
        notes: &mut Diagnostics,
    ) -> Balance {
        if p.mode != Mode::Log {
            let text = format!(
                "Unusable balance algorithm for {} (needs 'mode log'). Falling back to round robin.",
                p.label()
            );
            notes.push(remark(p.span, text));
            return Balance::RoundRobin;
        }
        let Some(word) = self.ground.deferred(deferred) else { return Balance::RoundRobin };
        let registry = self.ground.registry;
        let mut names = self.resolver(index, p, deferred.at);
        let list: [&[u8]; 2] = [b"str(message)", word.bytes()];
        let mut words = lang::Words::new(&list);
        let parsed = Expr::parse(&mut words, Place::Log, registry, &mut names);
        // What is left is none that anybody knows.
        let parsed = match words.take() {
            Some(_) => {
                let name = word.text().split(['(', ',']).next().unwrap_or_default();
                Err(lang::Fault::new(format!("unknown converter '{name}'")))
            }
            None => parsed,
        };
        let why = match parsed {
            Ok(_) if p.hash.method != Method::MapBased => {
                "unsupported hash method (from \"hash-type\").".to_owned()
            }
            Ok(expr) => return Balance::LogHash(expr.into()),
            Err(fault) => {
                let text = fault.text.trim_end_matches('.');
                format!("{text} (from converter list argument in \"balance log-hash\").")
            }
        };
        notes.push(refusal(word.span(), format!("log backend '{}': failed to initialize: {why}", p.name)));
        Balance::RoundRobin
    }

    /// Gives the servers of a backend of logs the sinks that take their lines.
    pub(super) fn log_servers(
        &mut self,
        index: usize,
        p: &Draft,
        servers: &mut [program::Server],
        notes: &mut Diagnostics,
    ) {
        if p.mode != Mode::Log || p.disabled {
            return;
        }
        let mixed = p.servers.iter().find(|s| p.servers.first().is_some_and(|f| f.datagrams != s.datagrams));
        if let Some(other) = mixed {
            let text = format!(
                "log backend '{}': failed to initialize: cannot mix server types within a log backend, '{}' srv's network type differs from previous server.",
                p.name, other.name
            );
            notes.push(refusal(other.span, text).settling());
            return;
        }
        for draft in p.servers.iter().filter(|s| s.send_proxy.version().is_some()) {
            let at = self.ground.place(draft.span);
            let text = format!("[{at}] : 'send-proxy*' server option is unsupported there, ignoring it");
            notes.push(Diagnostic::warning(draft.span, text).styled(Style::Bare));
        }
        let proxy = u32::try_from(index).unwrap_or(u32::MAX);
        for (at, (server, draft)) in (0u32..).zip(servers.iter_mut().zip(&p.servers)) {
            let sink = if draft.datagrams {
                Sink::Server(proxy, at)
            } else {
                let size = draft.log_bufsize.unwrap_or(self.bufsize);
                if size <= ring::OVERHEAD {
                    let (backend, name) = (&p.name, &draft.name);
                    let text = format!("unable to create a new sink buffer for server '{backend}/{name}'.");
                    notes.push(refusal(draft.span, text));
                    let text = format!(
                        "log backend '{backend}': failed to initialize: error when creating sink from '{name}' log server."
                    );
                    notes.push(refusal(draft.span, text));
                    return;
                }
                self.rings.push(self.server_ring(server, draft, p, size));
                Sink::Ring(self.rings.len() - 1)
            };
            server.log_sink = Some(self.sink(sink));
        }
    }

    /// The servers of rings.
    pub(super) fn ring_servers(&mut self, drafts: &[(usize, Draft)], notes: &mut Diagnostics) {
        for (index, p) in drafts {
            for draft in &p.servers {
                let connector = self.connector(draft, p, false, notes).filter(|_| draft.tls.on);
                let tls = connector.map(|connector| ServerTls {
                    connector,
                    alpn: draft.tls.words.alpn.clone().unwrap_or_default().into(),
                    sni: self.name_of_nobody(draft, p, notes),
                    early: false,
                    auto: false,
                    npn: false,
                });
                let server = RingServer {
                    name: draft.name.clone(),
                    target: super::server::target(draft, None, p, &self.ground, notes).target,
                    octet_count: draft.octet_count,
                    tls,
                    plain: draft.plain.clone(),
                    source: draft.source.clone(),
                    state: None,
                };
                if let Some(ring) = self.rings.get_mut(*index) {
                    ring.servers.push(server);
                }
            }
        }
    }

    /// `sni` of a server to which no client leads: of a ring, or a peer.
    pub(super) fn name_of_nobody(
        &mut self,
        draft: &ServerDraft,
        p: &Draft,
        notes: &mut Diagnostics,
    ) -> Option<Arc<Expr>> {
        let deferred = draft.tls.sni.as_ref()?;
        let word = self.ground.deferred(deferred)?;
        let registry = self.ground.registry;
        let list = [word.bytes()];
        let mut names = self.names_of_global();
        let parsed = Expr::parse(&mut lang::Words::new(&list), Place::ServerConnect, registry, &mut names);
        parsed
            .map_err(|fault| {
                let label = draft.label(p);
                let text = format!(
                    "{label} : error detected while parsing sni or pool-conn-name expressions : {}",
                    fault.text
                );
                notes.push(Diagnostic::alert(word.span(), text).styled(Style::Bracket));
            })
            .ok()
            .map(Arc::new)
    }

    /// The ring of lines that wait for a server over a stream.
    fn server_ring(&self, server: &program::Server, draft: &ServerDraft, p: &Draft, size: usize) -> Ring {
        let (file, line) = (self.ground.sources.name(p.span.file), p.span.line);
        let stream = RingServer {
            name: (*server.name).into(),
            target: (**server.state.target.load()).clone(),
            octet_count: draft.octet_count,
            tls: server.tls.clone().filter(|_| draft.tls.on),
            plain: server.plain.clone(),
            source: server.source.clone(),
            state: Some(server.state.clone()),
        };
        Ring {
            description: format!("created from log backend declared into '{file}' at line {line}").into(),
            size,
            maxlen: usize::MAX,
            servers: vec![stream],
            connect_timeout: p.timeouts.connect,
            server_timeout: p.timeouts.server,
            ..ring::new(&format!("{}/{}", p.name, &*server.name))
        }
    }
}

/// What has no meaning where lines of logs are all that comes.
pub(super) fn idle(p: &Draft, rules: bool, notes: &mut Diagnostics) {
    if p.mode != Mode::Log {
        return;
    }
    let label = p.label();
    let said = [
        (rules, "Cannot use tcp-request rules", "They"),
        (p.table.is_some(), "Cannot use stick table", "It"),
        (!p.use_server.is_empty(), "Cannot use \"use-server\" rules", "They"),
        (p.send_name_header.is_some(), "Cannot set \"http-send-name-header\"", "It"),
    ];
    for (_, what, it) in said.iter().filter(|(given, ..)| *given) {
        let text = format!("{what} with 'mode log' in {label}. {it} will be ignored.");
        notes.push(remark(p.span, text));
    }
}
