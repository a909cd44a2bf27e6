//! TLS of `server` lines.

use std::sync::Arc;

use program::server::ServerTls;
use syntax::{Diagnostic, Diagnostics, Level, Style};
use tls::Connector;
use tls::store::{ServerSpec, Trouble};
use tls::words::{Verify, Words};

use super::Assembly;
use super::bind_tls::told_trouble;
use crate::draft::{Draft, ServerDraft};
use crate::tls::say_closed;

const NO_AUTHORITY: &str = "verify is enabled by default but no CA file specified. If you're running on a LAN where you're certain to trust the server's certificate, please set an explicit 'verify none' statement on the 'server' line, or use 'ssl-server-verify none' in the global section to disable server-side verifications by default.";

impl Assembly<'_> {
    /// TLS of a server's traffic.
    pub(crate) fn server_tls(
        &mut self,
        index: usize,
        server: &ServerDraft,
        p: &Draft,
        connector: Option<&Arc<Connector>>,
        notes: &mut Diagnostics,
    ) -> Option<ServerTls> {
        let draft = &server.tls;
        let connector = connector.filter(|_| draft.able)?.clone();
        let sni = draft.sni.as_ref().and_then(|d| self.name_expression(index, d, server, p, notes));
        let words = self.server_words(server.span).0;
        let words = draft.words.or(&words);
        let (alpn, early) = (words.alpn.clone().unwrap_or_default().into(), words.early_data);
        let auto = draft.auto && p.mode == program::Mode::Http;
        Some(ServerTls { connector, alpn, npn: draft.npn, sni, early, auto })
    }

    /// The expression of a name that connections to a server have.
    pub(crate) fn name_expression(
        &mut self,
        index: usize,
        deferred: &crate::draft::Deferred,
        server: &ServerDraft,
        p: &Draft,
        notes: &mut Diagnostics,
    ) -> Option<Arc<lang::Expr>> {
        let mut own = Diagnostics::new();
        let place = lang::places::Place::ServerConnect;
        let found = self.expression(index, deferred, p, place, &mut own);
        for d in own.into_iter().filter(|_| !server.is_copy) {
            let text = format!(
                "{} : error detected while parsing sni or pool-conn-name expressions : {}",
                server.label(p),
                d.text
            );
            notes.push(Diagnostic { text, ..d }.styled(Style::Bracket));
        }
        found
    }

    /// How a server is spoken to, if anything speaks TLS to it.
    pub(crate) fn connector(
        &mut self,
        server: &ServerDraft,
        p: &Draft,
        in_checks: bool,
        notes: &mut Diagnostics,
    ) -> Option<Arc<Connector>> {
        let draft = &server.tls;
        let spoken_to = draft.able || draft.check == Some(true) || server.check && in_checks;
        if !spoken_to {
            if let Err(why) = self.store.read_for_server(&draft.words) {
                self.refuse_for(server, p, &why, notes);
            }
            return None;
        }
        let (words, verify) = self.server_words(server.span);
        let words = draft.words.or(&words);
        let verify = words.verify.unwrap_or(verify);
        if words.policy.excludes_in_vain() {
            let at = self.ground.place(server.span);
            let text = format!(
                "[{at}] : {} : no-sslv3/no-tlsv1x are ignored for this server. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix.",
                server.label(p)
            );
            notes.push(Diagnostic::new(Level::Warning, server.span, text).styled(Style::Bare));
        }
        if let Some(version) = words.policy.hole() {
            let at = self.ground.place(server.span);
            let (label, name) = (p.label(), &server.name);
            let text = format!(
                "[{at}] : {} : {label}: SSL/TLS versions range not contiguous for server '{name}'. Hole find for {version}. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix.",
                server.label(p)
            );
            notes.push(Diagnostic::new(Level::Warning, server.span, text).styled(Style::Bare));
        }
        let (crt, host) = (draft.crt.clone(), draft.host.clone());
        let only_old = words.policy.leaves_old_versions();
        let built = self.store.server(ServerSpec { words, verify, crt, host, no_reuse: draft.no_reuse });
        say_closed(&self.store, server.span, notes);
        match built {
            Ok((connector, ignored)) => {
                let whose = server.label(p);
                self.say_ignored(&ignored, &whose, server.span, notes);
                Some(connector)
            }
            Err(_) if only_old => {
                let text = "no version is left: TLS before 1.2 is not available.";
                self.refuse_server(server, p, text, notes);
                None
            }
            Err(why) => {
                self.refuse_for(server, p, &why, notes);
                None
            }
        }
    }

    /// Tells why TLS towards a server can't be used.
    fn refuse_for(&self, server: &ServerDraft, p: &Draft, why: &Trouble, notes: &mut Diagnostics) {
        let text = match why {
            Trouble::Nobody => NO_AUTHORITY.into(),
            Trouble::Authority(word, file, why) if !why.is_empty() => {
                if server.is_copy {
                    return;
                }
                let label = server.label(p);
                let text = format!("{label} : Couldn't open the ca-file '{file}' ({why}).");
                notes.push(Diagnostic::alert(server.span, text).styled(Style::Bracket));
                let text = format!("'{word}' : unable to load {file}.");
                notes.push(Diagnostic::alert(server.span, text).styled(Style::Plain));
                return;
            }
            Trouble::Unusable(why) if why.starts_with("all SSL/TLS") => {
                format!("backend '{}': {why} for server '{}'.", p.name, server.name)
            }
            Trouble::Unusable(why) if why.contains(" cipher ") => format!("{why}."),
            Trouble::Unusable(why) if why.starts_with("unable to set") => {
                format!("Proxy '{}': {why} for server '{}'.", p.name, server.name)
            }
            why => told_trouble(why).unwrap_or_default(),
        };
        self.refuse_server(server, p, &text, notes);
    }

    fn refuse_server(&self, server: &ServerDraft, p: &Draft, text: &str, notes: &mut Diagnostics) {
        let at = self.ground.place(server.span);
        let text = format!("[{at}] : {} : {text}", server.label(p));
        notes.push(Diagnostic::new(Level::Alert, server.span, text).styled(Style::Bare));
    }

    /// Settings of all servers: those of the running configuration for a server that is added to it.
    fn server_words(&self, at: syntax::Span) -> (Words, Verify) {
        match self.store.is_sealed() {
            true => self.store.server_defaults(),
            false => (self.tls.server_at(at), self.tls.server_verify),
        }
    }
}
