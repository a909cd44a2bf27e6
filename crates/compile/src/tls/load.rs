//! From the words of a `bind` line to its certificates and rules.

use std::sync::Arc;

use program::Mode;
use syntax::{Diagnostic, Diagnostics, Level, Span, Style};
use tls::files::{Sources, told};
use tls::forge::{Authority, Forge};
use tls::locked::Phrases;
use tls::server::Acceptor;
use tls::sessions::Sessions;
use tls::store::{BindSpec, Ground, Label, Show, Store, Trouble};
use tls::tickets::Keys;

use super::{Source, TlsGlobal, Verify, list, stores};
use crate::assemble::{Assembly, refusal, remark};
use crate::bind::BindDraft;
use crate::draft::Draft;
use crate::global::GlobalDraft;

/// An empty store under the settings of `global`. Early data may fill a buffer, as HAProxy has it.
pub(crate) fn store(global: &TlsGlobal, tune: &program::global::Tune, experimental: bool) -> Store {
    let buffer = tune.bufsize - tune.maxrewrite.min(tune.bufsize / 2);
    Store::new(Ground {
        crt_base: global.crt_base.clone(),
        key_base: global.key_base.clone(),
        ca_base: global.ca_base.clone(),
        extra: global.extra,
        issuers: global.issuers.clone(),
        ocsp_update: global.ocsp_update,
        phrases: Arc::new(Phrases::new(&global.phrase_command)),
        early_data: u32::try_from(buffer).unwrap_or(u32::MAX),
        keylog: global.keylog,
        experimental,
        server_words: global.server.clone(),
        server_verify: global.server_verify,
    })
}

impl Assembly<'_> {
    /// The list of a frontend's `ssl-f-use` lines, if it has any.
    pub(crate) fn frontend_list(&mut self, p: &Draft, notes: &mut Diagnostics) -> Option<Box<str>> {
        let (_, span) = p.certificates.first()?;
        let lines = stores::list_of(&self.store, &p.certificates, notes)?;
        let name = format!("@{}", p.name);
        if let Err(why) = self.store.list(&name, lines, 0) {
            let why = why.trim_start_matches("'crt-list' : ");
            notes.alert(*span, format!("'ssl-f-use' : {why}."));
            return None;
        }
        Some(name.into())
    }

    /// TLS of a `bind` line, if it has any. `own` is the list of its frontend.
    pub(crate) fn acceptor(
        &mut self,
        draft: &BindDraft,
        p: &Draft,
        own: Option<&str>,
        notes: &mut Diagnostics,
    ) -> Option<Arc<Acceptor>> {
        if !draft.tls.on {
            return None;
        }
        let line = format!("'bind {}' in section '{}'", draft.text, p.kind.word());
        let place = self.ground.place(draft.span);
        let label = Label {
            frontend: p.name.clone(),
            bind: format!("bind '{}' at [{place}]", draft.text).into(),
            place: place.into(),
        };
        let words = draft.tls.words.or(&self.tls.bind_at(draft.span));
        let keys = match self.ticket_keys(draft, notes) {
            Ok(keys) => keys,
            Err(()) => return None,
        };
        let sessions = Sessions::new(self.tls.sessions(), keys);
        let strict = words.strict_sni.unwrap_or(false);
        let forge = match draft.tls.generate {
            true => Some(self.forge(draft, p, notes)?),
            false => None,
        };
        let mut shows = Vec::new();
        let mut spans = Vec::new();
        for cert in &draft.tls.certs {
            spans.push(cert.span);
            shows.push(match cert.source {
                Source::List => {
                    if let Err(text) = self.read_list(&cert.path) {
                        tell(notes, cert.span, &line, &text);
                        return None;
                    }
                    Show::List(cert.path.clone())
                }
                source => {
                    let sources = Sources::plain(&cert.path);
                    self.store.meet(&sources);
                    Show::Certificate(sources, source == Source::Default)
                }
            });
        }
        shows.extend(own.map(|name| Show::List(name.into())));
        let spec = BindSpec {
            label: label.clone(),
            words: Arc::new(words),
            shows,
            http: p.mode == Mode::Http,
            sessions,
            captures: self.tls.captures,
        };
        let built = self.store.bind(spec, forge);
        say_closed(&self.store, draft.span, notes);
        match built {
            Err((at, trouble)) => {
                let span = spans.get(at).copied().unwrap_or(draft.span);
                refuse(notes, span, &line, &label, trouble);
                None
            }
            Ok((acceptor, _)) if acceptor.is_empty() && !strict => {
                let text = format!(
                    "Proxy '{}': no SSL certificate specified for {} (use 'crt').",
                    p.name, label.bind
                );
                notes.push(refusal(draft.span, text));
                None
            }
            Ok((acceptor, ignored)) => {
                self.say_ignored(&ignored, &label.bind, draft.span, notes);
                Some(acceptor)
            }
        }
    }

    /// Reads a certificate list, unless that was done before.
    fn read_list(&mut self, path: &str) -> Result<(), String> {
        if self.store.has_list(path) {
            return Ok(());
        }
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("'crt-list' : cannot open file '{path}' : {}", told(&e)))?;
        let (lines, last) =
            list::read(&self.store, path, &text).map_err(|why| format!("'crt-list' : {why}"))?;
        self.store.list(path, lines, last).map_err(|e| if e.starts_with('\n') { e } else { format!("{e}.") })
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
        let path = self.store.under_ca_base(path);
        let phrases = self.store.phrases();
        if let Some(phrase) = &draft.tls.sign_pass {
            phrases.learn(phrase);
        }
        let authority = Authority::from_file(&path, &phrases);
        say_closed(&self.store, draft.span, notes);
        match authority {
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

/// Reads whom the HTTP client believes, for the runtime API to show and change (`httpclient.ssl.ca-file`). Nothing else needs
/// it as long as nobody is asked over TLS.
pub(crate) fn client_authorities(global: &GlobalDraft, store: &Store, notes: &mut Diagnostics) {
    if global.cli.is_empty() || store.is_sealed() || global.tls.client_verify == Verify::None {
        return;
    }
    let named = global.tls.client_authorities.as_deref();
    let read = store.read_authorities(named.unwrap_or("@system-ca"));
    if let (Err(Trouble::Authority(_, file, why)), Some(_)) = (read, named) {
        let text = format!("Couldn't open the ca-file '{file}' ({why}).");
        notes.push(Diagnostic::plain(Level::Alert, text).styled(Style::Bare).tolerated());
    }
}

/// Tells why keys stayed closed; what that leads to is told by who needs them.
pub(crate) fn say_closed(store: &Store, span: Span, notes: &mut Diagnostics) {
    for text in store.phrases().complaints() {
        notes.push(Diagnostic::alert(span, text).styled(Style::Plain).tolerated());
    }
}

/// Tells what is wrong with a file; further lines stand below, indented.
fn tell(notes: &mut Diagnostics, span: Span, line: &str, text: &str) {
    if let Some(rest) = text.strip_prefix('\n') {
        let lines: Vec<String> = rest.lines().map(|l| format!("  {l}")).collect();
        notes.push(Diagnostic::alert(span, format!("{line} : \n{}", lines.join("\n"))));
        return;
    }
    notes.push(Diagnostic::alert(span, format!("{line} : {text}")));
}

/// Tells why a `bind` line can't be used.
fn refuse(notes: &mut Diagnostics, span: Span, line: &str, label: &Label, trouble: Trouble) {
    match trouble {
        Trouble::File(text) if text.starts_with('\n') => tell(notes, span, line, &text),
        Trouble::File(text) => tell(notes, span, line, &format!("{text}.")),
        Trouble::Authority(word, file, why) => {
            let text = format!("config : Couldn't open the ca-file '{file}' ({why}).");
            notes.push(Diagnostic::plain(Level::Alert, text).styled(Style::Bare));
            notes.push(Diagnostic::alert(span, format!("{line} : '{word}' : unable to load {file}")));
        }
        Trouble::Nobody => {
            let (proxy, bind) = (&label.frontend, &label.bind);
            let text = format!("Proxy '{proxy}': verify is enabled but no CA file specified for {bind}.");
            notes.push(refusal(span, text));
        }
        Trouble::Unusable(why) => {
            let text = format!("Proxy '{}': unable to use TLS for {}: {why}.", label.frontend, label.bind);
            notes.push(refusal(span, text));
        }
    }
}

/// Why whom to believe can't be read.
pub(crate) fn told_trouble(trouble: &Trouble) -> Option<String> {
    match trouble {
        Trouble::File(text) => Some(format!("{text}.")),
        Trouble::Authority(word, file, why) if why.is_empty() => {
            Some(format!("'{word}' : unable to load {file}."))
        }
        Trouble::Authority(word, file, why) => {
            Some(format!("Couldn't open the ca-file '{file}' ({why}) of '{word}'."))
        }
        Trouble::Nobody => None,
        Trouble::Unusable(why) => Some(format!("unable to use TLS: {why}.")),
    }
}
