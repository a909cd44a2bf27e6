//! From the words of a `bind` line to its certificates and rules.

use base::outside;
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

use super::Assembly;
use crate::draft::{BindDraft, Draft, Source};
use crate::global::draft::{GlobalDraft, TlsGlobal};
use crate::notes::{refusal, remark};
use crate::tls::{list, say_closed, stores};

/// Whether the frames that a peer of HTTP/2 may send unasked don't fit a buffer (RFC 9113 section 6.5.2).
pub(crate) fn is_small(tune: &program::global::Tune) -> bool {
    tune.bufsize.next_multiple_of(16) < 16384
}

/// An empty store under the settings of `global`. Early data may fill a buffer, as HAProxy has it. What was
/// made at run time of files that did not change stays as it is in the one of a configuration `before`.
pub(crate) fn store(
    global: &TlsGlobal,
    tune: &program::global::Tune,
    experimental: bool,
    before: Option<&Store>,
) -> Store {
    let buffer = tune.bufsize - tune.maxrewrite.min(tune.bufsize / 2);
    let ground = Ground {
        crt_base: global.crt_base.clone(),
        key_base: global.key_base.clone(),
        ca_base: global.ca_base.clone(),
        extra: global.extra,
        issuers: global.issuers.clone(),
        skip_root: global.skip_root,
        ocsp_update: global.ocsp_update,
        phrases: Arc::new(Phrases::new(&global.phrase_command)),
        early_data: u32::try_from(buffer).unwrap_or(u32::MAX),
        small_buffers: is_small(tune),
        keylog: global.keylog,
        experimental,
        server_words: global.server.clone(),
        server_verify: global.server_verify,
    };
    match before {
        Some(before) => Store::after(ground, before),
        None => Store::new(ground),
    }
}

impl Assembly<'_> {
    /// The files of a line without `ssl`: nobody uses them, but they have to be there, as for HAProxy.
    fn unused_files(&mut self, draft: &BindDraft, p: &Draft, notes: &mut Diagnostics) {
        let (tls, span) = (&draft.tls, draft.span);
        let line = line_of(draft, p);
        for cert in &tls.certs {
            let found = match cert.source {
                Source::List => self.read_list(&cert.path, cert.span, notes),
                _ => match outside::kind(&*cert.path) {
                    Ok(_) => Ok(()),
                    Err(e) => Err(format!(
                        "unable to stat SSL certificate from file '{}' : {}.",
                        cert.path,
                        crate::notes::os_text(&e)
                    )),
                },
            };
            if let Err(text) = found {
                return tell(notes, cert.span, &line, &text);
            }
        }
        let words = &tls.words;
        let files = [
            ("ca-file", &words.ca_file),
            ("ca-verify-file", &words.ca_verify_file),
            ("crl-file", &words.crl_file),
        ];
        for (word, file) in files.into_iter().filter_map(|(word, file)| Some((word, file.as_deref()?))) {
            let lost = !file.starts_with('@') && outside::read(file).is_err();
            if lost {
                let text = format!("Couldn't open the ca-file '{file}' (No such file or directory).");
                notes.push(Diagnostic::alert(span, text).styled(Style::Plain));
                return notes.alert(span, format!("{line} : '{word}' : unable to load {file}"));
            }
        }
        drop(self.ticket_keys(draft, notes));
    }

    /// The list of a frontend's `ssl-f-use` lines, if it has any.
    pub(crate) fn frontend_list(&mut self, p: &Draft, notes: &mut Diagnostics) -> Option<Box<str>> {
        let (_, span) = p.certificates.first()?;
        let front = p.kind.is_front();
        let mut found = Diagnostics::new();
        let lines = stores::list_of(&self.store, &p.certificates, front, &mut found);
        // Whoever inherits a line says nothing of it that was said before.
        for note in found {
            if self.said.insert(format!("{:?} {}", note.span, note.text)) {
                notes.push(note);
            }
        }
        let lines = lines.filter(|_| front)?;
        // What the section's own `bind` lines name was met before, as in HAProxy, with all files beside it.
        let own = p.binds.iter().filter(|bind| bind.tls.on).flat_map(|bind| &bind.tls.certs);
        for cert in own.filter(|cert| !matches!(cert.source, Source::List)) {
            self.store.meet(&Sources::plain(&cert.path));
        }
        let name = format!("@{}", p.name);
        if let Err(why) = self.store.list(&name, lines, 0) {
            let why = why.trim_start_matches("'crt-list' : ");
            let prefix = if why.starts_with("unable to stat") { "" } else { "'ssl-f-use' : " };
            if self.said.insert(format!("{span:?} {why}")) {
                notes.alert(*span, format!("{prefix}{why}."));
            }
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
            self.unused_files(draft, p, notes);
            return None;
        }
        let line = line_of(draft, p);
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
        let forge_is_missing = forge.is_none();
        in_vain(draft, &words, p, &label.bind, notes);
        let mut shows = self.shows(draft, &line, notes)?;
        shows.extend(own.map(|name| Show::List(name.into())));
        let spec = BindSpec {
            label: label.clone(),
            words: Arc::new(words),
            shows,
            http: p.mode == Mode::Http,
            sessions,
            captures: self.tls.captures.unwrap_or(0),
        };
        let built = self.store.bind(spec, forge);
        say_closed(&self.store, draft.span, notes);
        match built {
            Err((at, trouble)) => {
                let span = draft.tls.certs.get(at).map_or(draft.span, |cert| cert.span);
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
                if acceptor.is_empty() && forge_is_missing {
                    let text = format!(
                        "Proxy '{}': no SSL certificate specified for {}, ssl connections will fail (use 'crt').",
                        p.name, label.bind
                    );
                    notes.push(remark(draft.span, text));
                }
                self.say_ignored(&ignored, &label.bind, draft.span, notes);
                Some(acceptor)
            }
        }
    }

    /// What a line shows to clients.
    fn shows(&mut self, draft: &BindDraft, line: &str, notes: &mut Diagnostics) -> Option<Vec<Show>> {
        let mut shows = Vec::new();
        for cert in &draft.tls.certs {
            shows.push(match cert.source {
                Source::List => {
                    if let Err(text) = self.read_list(&cert.path, cert.span, notes) {
                        tell(notes, cert.span, line, &text);
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
        Some(shows)
    }

    /// Reads a certificate list, unless that was done before.
    fn read_list(&mut self, path: &str, span: Span, notes: &mut Diagnostics) -> Result<(), String> {
        if self.store.has_list(path) {
            return Ok(());
        }
        let text = outside::read_to_string(path)
            .map_err(|e| format!("'crt-list' : cannot open file '{path}' : {}", told(&e)))?;
        let (lines, last) =
            list::read(&self.store, path, &text).map_err(|why| format!("'crt-list' : {why}"))?;
        for line in lines.iter().filter(|line| excludes_from_nothing(&line.filters)) {
            let text = format!(
                "crt-list: negative filters on crt-list line \"{}\" without a positive wildcard filter won't do anything!",
                line.sources.certificate
            );
            notes.push(Diagnostic::warning(span, text).styled(Style::Reading));
        }
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
        let before = self.ground.before.map_or(&[][..], |before| &before.ticket_keys);
        let keys = before.iter().find(|known| known.is_as(&keys)).cloned().unwrap_or(keys);
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
            notes.push(Diagnostic { level: Level::Notice, ..remark(span, text) });
        }
    }
}

/// Reads whom calls of the process's own believe, for the runtime API to show and change
/// (`httpclient.ssl.ca-file`), and for those calls.
pub(crate) fn client_authorities(global: &GlobalDraft, store: &Store, notes: &mut Diagnostics) {
    let named = global.tls.client_authorities.as_deref();
    let wanted = named.is_some() || !global.cli.is_empty() || store.asks_over_tls();
    let Some(path) = global.tls.client_file().filter(|_| wanted && !store.is_sealed()) else { return };
    if let (Err(Trouble::Authority(_, _, why)), Some(file)) = (store.read_authorities(&path), named) {
        let text = format!("Couldn't open the ca-file '{file}' ({why}).");
        notes.push(Diagnostic::plain(Level::Alert, text).styled(Style::Bare).tolerated());
    }
}

/// What messages call the lines of the runtime API.
const RUNTIME: &str = "'stats socket'";

/// What messages call a line; those of the runtime API bear another word.
fn line_of(draft: &BindDraft, p: &Draft) -> String {
    match &*p.name {
        super::cli::PROXY => RUNTIME.into(),
        _ => format!("'bind {}' in section '{}'", draft.text, p.kind.word()),
    }
}

/// Warns of words of a `bind` line that others leave without effect.
fn in_vain(draft: &BindDraft, words: &tls::words::Words, p: &Draft, line: &str, notes: &mut Diagnostics) {
    let fallback = draft.tls.certs.iter().any(|cert| cert.source == Source::Default);
    let mut warn = |text| notes.push(remark(draft.span, format!("Proxy '{}': {text}", p.name)));
    if fallback && words.strict_sni == Some(true) {
        warn(format!(
            "both 'default-crt' and 'strict-sni' keywords are used in {line}, certificates won't be used as fallback (use 'crt' instead)."
        ));
    }
    if words.policy.excludes_in_vain() {
        warn(format!(
            "no-sslv3/no-tlsv1x are ignored for {line}. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix."
        ));
    }
}

/// Whether names are excluded and no wildcard is there that would have meant them.
fn excludes_from_nothing(filters: &[Box<str>]) -> bool {
    filters.iter().any(|f| f.starts_with('!')) && !filters.iter().any(|f| f.starts_with('*'))
}

/// Tells what is wrong with a file; further lines stand below, indented.
fn tell(notes: &mut Diagnostics, span: Span, line: &str, text: &str) {
    if let Some(rest) = text.strip_prefix('\n') {
        let lines: Vec<String> = rest.lines().map(|l| format!("  {l}")).collect();
        notes.push(Diagnostic::alert(span, format!("{line} : \n{}", lines.join("\n"))));
        return;
    }
    notes.push(Diagnostic::alert(span, format!("{line} : {}", quoted(line, text))));
}

/// What is wrong with a line, in quotes where HAProxy has them.
fn quoted(line: &str, text: &str) -> String {
    if line == RUNTIME { format!("'{text}'") } else { text.to_owned() }
}

/// Tells why a `bind` line can't be used.
fn refuse(notes: &mut Diagnostics, span: Span, line: &str, label: &Label, trouble: Trouble) {
    match trouble {
        Trouble::File(text) if text.starts_with('\n') => tell(notes, span, line, &text),
        Trouble::File(text) => tell(notes, span, line, &format!("{text}.")),
        Trouble::Authority(word, file, why) => {
            let text = format!("Couldn't open the ca-file '{file}' ({why}).");
            notes.push(Diagnostic::alert(span, text).styled(Style::Plain));
            let text = quoted(line, &format!("'{word}' : unable to load {file}"));
            notes.push(Diagnostic::alert(span, format!("{line} : {text}")));
        }
        Trouble::Nobody => {
            let (proxy, bind) = (&label.frontend, &label.bind);
            let text = format!("Proxy '{proxy}': verify is enabled but no CA file specified for {bind}.");
            notes.push(refusal(span, text));
        }
        Trouble::Unusable(why) => {
            let (proxy, bind) = (&label.frontend, &label.bind);
            let text = match tls::suites::is_whole(&why) {
                true => format!("Proxy '{proxy}': {why} for {bind}."),
                false => format!("Proxy '{proxy}': unable to use TLS for {bind}: {why}."),
            };
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
