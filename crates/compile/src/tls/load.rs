//! From the words of a `bind` line to its certificates and rules.

use std::sync::Arc;

use program::Mode;
use syntax::{Diagnostic, Diagnostics, Span};
use tls::files::{Identity, Sources};
use tls::forge::{Authority, Forge};
use tls::server::{self, Acceptor, Rules};
use tls::sessions::Sessions;
use tls::tickets::Keys;
use tls::verify::Trust;

use super::store::under;
use super::{CertDraft, Source, Verify, Words, list};
use crate::assemble::{Assembly, refusal, remark};
use crate::bind::BindDraft;
use crate::draft::Draft;

/// What messages call a line.
struct Label {
    /// `'bind :443' in section 'frontend'`.
    line: String,
    /// `Proxy 'name'`.
    proxy: String,
    /// `bind ':443' at [file:line]`.
    bind: String,
    span: Span,
}

/// A `bind` line on its way to its certificates.
struct Loading<'l, 'g> {
    house: &'l mut Assembly<'g>,
    p: &'l Draft,
    label: Label,
    notes: &'l mut Diagnostics,
    acceptor: Acceptor,
}

impl Assembly<'_> {
    /// TLS of a `bind` line, if it has any.
    pub(crate) fn acceptor(
        &mut self,
        draft: &BindDraft,
        p: &Draft,
        notes: &mut Diagnostics,
    ) -> Option<Arc<Acceptor>> {
        if !draft.tls.on {
            return None;
        }
        let label = Label {
            line: format!("'bind {}' in section '{}'", draft.text, p.kind.word()),
            proxy: format!("Proxy '{}'", p.name),
            bind: format!("bind '{}' at [{}]", draft.text, self.ground.place(draft.span)),
            span: draft.span,
        };
        let words = draft.tls.words.or(&self.tls.bind_at(draft.span));
        let keys = match self.ticket_keys(draft, notes) {
            Ok(keys) => keys,
            Err(()) => return None,
        };
        let sessions = Sessions::new(self.tls.sessions(), keys);
        let strict = words.strict_sni.unwrap_or(false);
        let mut acceptor = Acceptor::new(strict, self.tls.captures);
        if draft.tls.generate {
            acceptor.set_forge(self.forge(draft, p, notes)?);
        }
        let mut loading = Loading { house: self, p, label, notes, acceptor };
        for cert in &draft.tls.certs {
            if let Err(text) = loading.certificate(cert, &words, &sessions) {
                if !text.is_empty() {
                    let text = format!("{} : {text}.", loading.label.line);
                    loading.notes.push(Diagnostic::alert(cert.span, text));
                }
                return None;
            }
        }
        let Loading { label, notes, acceptor, .. } = loading;
        if acceptor.is_empty() && !strict {
            let text =
                format!("{}: no SSL certificate specified for {} (use 'crt').", label.proxy, label.bind);
            notes.push(refusal(draft.span, text));
            return None;
        }
        Some(Arc::new(acceptor))
    }

    /// What makes certificates for names that have none.
    fn forge(&mut self, draft: &BindDraft, p: &Draft, notes: &mut Diagnostics) -> Option<Forge> {
        let (proxy, at) = (&p.name, self.ground.place(draft.span));
        let Some(path) = &draft.tls.sign else {
            let text = format!(
                "Proxy '{proxy}': cannot enable certificate generation, no CA certificate File configured at [{at}]."
            );
            notes.push(refusal(draft.span, text));
            return None;
        };
        let path = under(self.tls.ca_base.as_deref(), path);
        match Authority::from_file(&path) {
            Ok(authority) => Some(Forge::new(Arc::new(authority), self.tls.forged)),
            Err(why) => {
                let text =
                    format!("Proxy '{proxy}': Failed to read CA certificate file '{path}' at [{at}]. {why}");
                notes.push(refusal(draft.span, text));
                None
            }
        }
    }

    /// The keys of `tls-ticket-keys`, those of one file being one set however often it is named.
    fn ticket_keys(&mut self, draft: &BindDraft, notes: &mut Diagnostics) -> Result<Option<Arc<Keys>>, ()> {
        let Some(path) = &draft.tls.ticket_keys else { return Ok(None) };
        if let Some(known) = self.ticket_keys.iter().find(|k| k.file == *path) {
            return Ok(Some(known.clone()));
        }
        let keys = Arc::new(Keys::from_file(path).map_err(|why| {
            let text = format!("'bind {}' in section 'frontend' : {why}", draft.text);
            notes.push(Diagnostic::alert(draft.span, text));
        })?);
        self.ticket_keys.insert(0, keys.clone());
        Ok(Some(keys))
    }

    /// Names once what has no effect on a line.
    pub(crate) fn say_ignored(&mut self, words: &[String], whose: &str, span: Span, notes: &mut Diagnostics) {
        if words.is_empty() {
            return;
        }
        let text = format!("{whose} : not available in Harrier's TLS and left out: {}.", words.join(" "));
        if self.said.insert(text.clone()) {
            notes.push(remark(span, text));
        }
    }
}

impl Loading<'_, '_> {
    /// What one `crt`, `default-crt` or `crt-list` brings. An empty error has been told already.
    fn certificate(&mut self, cert: &CertDraft, words: &Words, sessions: &Sessions) -> Result<(), String> {
        if cert.source == Source::List {
            return self.list(&cert.path, words, sessions);
        }
        let sources = Sources { certificate: cert.path.clone(), ..Sources::default() };
        let line = Line { words, filters: &[], default: cert.source == Source::Default };
        self.file(&sources, &line, sessions)
    }

    fn list(&mut self, path: &str, words: &Words, sessions: &Sessions) -> Result<(), String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("'crt-list' : cannot open file '{path}' : {}", told(&e)))?;
        let lines = list::read(&text)
            .map_err(|(number, why)| format!("'crt-list' : parsing [{path}:{number}]: {why}"))?;
        for line in lines {
            let words = line.words.or(words);
            let own = Line { words: &words, filters: &line.filters, default: false };
            // Rules about clients that a line sets for itself have sessions of their own.
            let apart =
                line.words.verify.is_some() || line.words.ca_file.is_some() || line.words.crl_file.is_some();
            let fresh = apart.then(|| Sessions::new(self.house.tls.sessions(), None));
            let sessions = fresh.as_ref().unwrap_or(sessions);
            self.file(&line.sources, &own, sessions).map_err(|why| match why.is_empty() {
                true => why,
                false => format!("'crt-list' : parsing [{path}:{}]: {why}", line.number),
            })?;
        }
        Ok(())
    }

    fn file(&mut self, sources: &Sources, line: &Line<'_>, sessions: &Sessions) -> Result<(), String> {
        let found = self.house.store.named(sources, &self.house.tls)?;
        if found.is_empty() {
            return Ok(());
        }
        let rules = self.rules(line.words)?;
        for identity in found {
            self.add(identity, &rules, line, sessions)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        identity: Arc<Identity>,
        rules: &Rules,
        line: &Line<'_>,
        sessions: &Sessions,
    ) -> Result<(), String> {
        let label = &self.label;
        match server::entry(identity, rules, sessions) {
            Ok((entry, ignored)) => {
                self.acceptor.add(entry, line.filters, line.default);
                self.house.say_ignored(&ignored, &label.bind, label.span, self.notes);
                Ok(())
            }
            Err(why) => {
                let text = format!("{}: unable to use TLS for {}: {why}.", label.proxy, label.bind);
                self.notes.push(refusal(label.span, text));
                Err(String::new())
            }
        }
    }

    fn rules(&mut self, words: &Words) -> Result<Rules, String> {
        let required = words.verify == Some(Verify::Required);
        let clients = match words.verify {
            Some(Verify::Optional | Verify::Required) => {
                let Some(ca) = words.ca_verify_file.as_deref().or(words.ca_file.as_deref()) else {
                    let Label { proxy, bind, span, .. } = &self.label;
                    let text = format!("{proxy}: verify is enabled but no CA file specified for {bind}.");
                    self.notes.push(refusal(*span, text));
                    return Err(String::new());
                };
                Some(self.trust(ca, words.crl_file.as_deref())?)
            }
            _ => {
                // Files that can't be read are told of whether they are needed or not.
                if let Some(ca) = words.ca_file.as_deref() {
                    self.trust(ca, None)?;
                }
                None
            }
        };
        Ok(Rules {
            policy: words.policy.clone(),
            alpn: protocols(words, self.p),
            clients,
            required,
            ignored: [words.crt_ignore.unwrap_or_default(), words.ca_ignore.unwrap_or_default()],
            no_ca_names: words.no_ca_names,
            no_tickets: words.no_tickets.unwrap_or(false),
            client_order: words.client_order,
            early_data: words.early_data,
            keylog: self.house.tls.keylog,
        })
    }

    fn trust(&mut self, ca: &str, crl: Option<&str>) -> Result<Arc<Trust>, String> {
        let base = self.house.tls.ca_base.as_deref();
        let ca = under(base, ca);
        let crl = crl.map(|c| under(base, c));
        let (label, notes) = (&self.label, &mut *self.notes);
        self.house.store.trust(&ca, crl.as_deref()).map_err(|(word, file, why)| {
            let why = why.split(" (os error").next().unwrap_or_default();
            notes.push(
                Diagnostic::plain(
                    syntax::Level::Alert,
                    format!("config : Couldn't open the ca-file '{file}' ({why})."),
                )
                .styled(syntax::Style::Bare),
            );
            let text = format!("{} : '{word}' : unable to load {file}", label.line);
            notes.push(Diagnostic::alert(label.span, text));
            String::new()
        })
    }
}

/// What ALPN offers: what was asked for, else what a listener in HTTP mode speaks.
fn protocols(words: &Words, p: &Draft) -> Vec<Vec<u8>> {
    let unasked: &[&[u8]] = if p.mode == Mode::Http { &[b"h2", b"http/1.1"] } else { &[] };
    words.alpn.clone().unwrap_or_else(|| unasked.iter().map(|name| name.to_vec()).collect())
}

/// How a certificate is to be shown.
struct Line<'l> {
    words: &'l Words,
    filters: &'l [Box<str>],
    default: bool,
}

/// Why whom to believe can't be read.
pub(crate) fn told_trust((word, file, why): &(&'static str, String, String)) -> String {
    let why = why.split(" (os error").next().unwrap_or_default();
    format!("Couldn't open the ca-file '{file}' ({why}) of '{word}'.")
}

/// What the system says, as C programs say it.
pub(crate) fn told(e: &std::io::Error) -> String {
    e.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}
