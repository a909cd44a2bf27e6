//! TLS of `server` lines.

use std::sync::Arc;

use program::server::ServerTls;
use syntax::{Diagnostic, Diagnostics, Level, Style};
use tls::Connector;
use tls::store::ServerSpec;

use super::load::{say_closed, told_trouble};
use super::{Verify, Words};
use crate::assemble::Assembly;
use crate::draft::{Deferred, Draft};
use crate::server::ServerDraft;

/// TLS on a `server` line.
#[derive(Clone, Debug)]
pub(crate) struct ServerTlsDraft {
    /// `ssl`.
    pub on: bool,
    /// `no-ssl` was said last.
    pub refused: bool,
    /// `ssl` was said, even if `no-ssl` followed: it may be switched on later.
    pub able: bool,
    pub words: Words,
    pub crt: Option<Box<str>>,
    pub host: Option<Box<str>>,
    pub sni: Option<Deferred>,
    pub auto: bool,
    pub no_reuse: bool,
    /// `check-ssl`.
    pub check: bool,
    pub check_sni: Option<Box<str>>,
    /// `check-sni-auto`.
    pub check_auto: bool,
    pub check_alpn: Option<Vec<Vec<u8>>>,
}

impl Default for ServerTlsDraft {
    fn default() -> ServerTlsDraft {
        ServerTlsDraft {
            on: false,
            refused: false,
            able: false,
            words: Words::default(),
            crt: None,
            host: None,
            sni: None,
            auto: true,
            no_reuse: false,
            check: false,
            check_sni: None,
            check_auto: true,
            check_alpn: None,
        }
    }
}

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
        let mut own = Diagnostics::new();
        let place = lang::places::Place::ServerConnect;
        let sni = draft.sni.as_ref().and_then(|d| self.expression(index, d, p, place, &mut own));
        for d in own {
            let at = self.ground.place(server.span);
            let text = format!(
                "config : [{at}] : 'server {}/{}' : error detected while parsing sni or pool-conn-name expressions : {}",
                p.name, server.name, d.text
            );
            notes.push(Diagnostic { text, ..d }.styled(Style::Bare));
        }
        let words = self.server_words(server.span).0;
        let words = draft.words.or(&words);
        let (alpn, early) = (words.alpn.clone().unwrap_or_default().into(), words.early_data);
        Some(ServerTls { connector, alpn, sni, early, auto: draft.auto && p.mode == program::Mode::Http })
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
        if !draft.able && !(server.check && (draft.check || in_checks)) {
            return None;
        }
        let (words, verify) = self.server_words(server.span);
        let words = draft.words.or(&words);
        let verify = words.verify.unwrap_or(verify);
        let (crt, host) = (draft.crt.clone(), draft.host.clone());
        let built = self.store.server(ServerSpec { words, verify, crt, host, no_reuse: draft.no_reuse });
        say_closed(&self.store, server.span, notes);
        match built {
            Ok((connector, ignored)) => {
                let whose = format!("'server {}/{}'", p.name, server.name);
                self.say_ignored(&ignored, &whose, server.span, notes);
                Some(connector)
            }
            Err(why) => {
                let nobody = if self.store.is_sealed() {
                    "verify is enabled but no CA file specified."
                } else {
                    NO_AUTHORITY
                };
                let text = told_trouble(&why).unwrap_or_else(|| nobody.into());
                self.refuse_server(server, p, &text, notes);
                None
            }
        }
    }

    fn refuse_server(&self, server: &ServerDraft, p: &Draft, text: &str, notes: &mut Diagnostics) {
        let at = self.ground.place(server.span);
        let text = format!("[{at}] : 'server {}/{}' : {text}", p.name, server.name);
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
