//! Certificates by name: how they come in, and what may be said of them twice.

use base::outside;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::before::stamp_of_cert;
use super::show::issuer;
use super::{Inner, Store, under};
use crate::dummy::Recipe;
use crate::files::{self, Identity, Parts, Sources};
use crate::ocsp;
use x509::Certificate;

/// How a certificate came into the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// `load` of a `crt-store`.
    Declared,
    /// With words about it: in a list, `ssl-f-use`.
    Listed,
    /// By its name alone, or made at run time.
    #[default]
    Plain,
}

/// A certificate of the store. One that was made at run time begins empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Cert {
    pub parts: Parts,
    /// Where it came from, as shown; nothing of what came over the runtime API.
    pub sources: Sources,
    pub origin: Origin,
    /// Its files were named one by one.
    pub explicit: bool,
    /// `ocsp-update`, if given.
    pub ocsp_update: Option<bool>,
    /// `jwt on`.
    pub jwt: bool,
    /// The file that completed its chain.
    pub completed: Option<Box<str>>,
    /// Ready to be shown, if it has a key.
    pub identity: Option<Arc<Identity>>,
    /// A `bind` line or a server showed it at some time; only then it matters what OCSP says of it.
    pub was_used: bool,
    /// What its files were like when they were read.
    pub loaded: u64,
    /// What was made of them then; 0: it was made at run time.
    pub kept: u64,
}

/// Whether the files that are looked for beside a certificate are told with it: of one that a line of a list
/// names (`crt-list`, `ssl-f-use`) HAProxy tells those alone that the line names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Told,
    Untold,
}

/// The ends of names that make a bundle.
const BUNDLE: [&str; 3] = [".rsa", ".ecdsa", ".dsa"];

impl Store {
    /// Loads what a `bind` line names, so that what lists further on in the line say of it is held against
    /// that. What goes wrong is told when the line is [built](Store::bind).
    pub fn meet(&self, sources: &Sources) {
        let inner = &mut *self.lock();
        if !outside::is_folder(&*inner.full(&sources.certificate)) {
            let _ = inner.named(sources, "", Beside::Told);
        }
    }

    /// Whether there is a certificate of this name.
    pub fn has_cert(&self, name: &str) -> bool {
        self.lock().certs.contains_key(name)
    }

    /// `load` in the `crt-store` of this name (empty: none).
    ///
    /// # Errors
    /// What is wrong, in HAProxy's words.
    pub fn declare(&self, store: &str, bases: [Option<&str>; 2], sources: &Sources) -> Result<(), String> {
        let inner = &mut *self.lock();
        let own = |base: Option<&str>, global: &Option<Box<str>>, path: &str| {
            under(base.or(global.as_deref()), path)
        };
        let path = own(bases[0], &inner.ground.crt_base, &sources.certificate);
        let name: Box<str> = match &sources.alias {
            Some(alias) => format!("@{store}/{alias}").into(),
            None if store.is_empty() => path.clone(),
            None if sources.certificate.starts_with('/') => format!("@{store}{}", sources.certificate).into(),
            None => format!("@{store}/{}", sources.certificate).into(),
        };
        if inner.certs.contains_key(&name) {
            return Err(format!("store '{name}' was already defined."));
        }
        let full = Sources {
            certificate: path.clone(),
            key: sources.key.as_deref().map(|k| own(bases[1], &inner.ground.key_base, k)),
            alias: Some(name.clone()),
            ..sources.clone()
        };
        let plain = sources.dummy == Recipe::default();
        if plain && outside::read(&*path).is_err() {
            return Err(format!(
                "cannot open the file '{path}'.\n '{}' cannot be read or parsed.",
                sources.certificate
            ));
        }
        let (parts, _) =
            files::load(&full, &inner.ground.extra, &inner.ground.phrases).map_err(|e| format!("{e}."))?;
        let shown = Sources { alias: None, ..sources.clone() };
        inner.keep(&name, parts, shown, Origin::Declared, sources.is_explicit());
        Ok(())
    }
}

/// Takes out an OCSP response that is not about the certificate, or not in force; why.
pub(super) fn drop_foreign_response(name: &str, parts: &mut Parts) -> Option<String> {
    let bytes = parts.ocsp.clone().filter(|o| !o.is_empty())?;
    let id = parts.leaf.as_ref().zip(issuer(parts)).and_then(|(leaf, issuer)| ocsp::id(leaf, issuer));
    let Some(id) = id else {
        parts.ocsp = None;
        return Some(format!(
            "'{name}.ocsp' is present and activates OCSP but it is impossible to compute the OCSP certificate ID (maybe the issuer could not be found)."
        ));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let why = match ocsp::Response::parse(&bytes) {
        Ok(response) if response.id != id => {
            "OCSP single response: Certificate ID does not match certificate and issuer"
        }
        Ok(response) => response.valid_until(i64::try_from(now).unwrap_or(i64::MAX)).err()?.words(),
        Err(why) => why.words(),
    };
    parts.ocsp = None;
    Some(format!("Loading: {why}. Content will be ignored."))
}

/// What stands before the complaint that a certificate was described otherwise before.
pub(super) fn clash(path: &str) -> String {
    format!("Can't load '{path}', is already defined with incompatible parameters:")
}

impl Inner {
    /// Puts what was loaded under a name.
    fn keep(&mut self, name: &str, mut parts: Parts, sources: Sources, origin: Origin, explicit: bool) {
        let loaded = stamp_of_cert(&parts);
        let mut completed = self.complete(&mut parts);
        self.warnings.extend(drop_foreign_response(name, &mut parts));
        let kept = stamp_of_cert(&parts);
        if let Some(made) = self.made_of_cert(name, loaded) {
            parts = made;
            completed = self.complete(&mut parts);
        }
        let identity = Identity::new(name, &parts).ok().map(Arc::new);
        let (ocsp_update, jwt) = (sources.ocsp_update, sources.jwt == Some(true));
        let cert = Cert {
            parts,
            sources,
            origin,
            explicit,
            ocsp_update,
            jwt,
            completed,
            identity,
            loaded,
            kept,
            was_used: false,
        };
        self.certs.insert(name.into(), cert);
    }

    /// Completes the chain of a certificate that came without one; the file that did it. Also says whether a
    /// root is sent.
    pub(super) fn complete(&self, parts: &mut Parts) -> Option<Box<str>> {
        parts.skip_root = self.ground.skip_root;
        let leaf = parts.leaf.as_ref().filter(|_| parts.chain.is_empty())?;
        let issuer = Certificate::parse(leaf).filter(|c| !c.is_self_issued())?.issuer;
        let fits = |chain: &[_]| {
            let first =
                chain.first().and_then(|c: &rustls_pki_types::CertificateDer<'_>| Certificate::parse(c));
            first.is_some_and(|c| c.subject == issuer)
        };
        let (name, chain) = self.ground.issuers.iter().find(|(_, chain)| fits(chain))?;
        let (name, chain) = (name.clone(), chain.clone());
        parts.chain = chain;
        Some(name)
    }

    /// The full name of a certificate.
    pub(super) fn full(&self, name: &str) -> Box<str> {
        under(self.ground.crt_base.as_deref(), name)
    }

    /// Names of the certificates that a word means: one, or those of a bundle; loaded, if they were not yet.
    /// `place` is what stands before the complaint that something else was said of it before.
    pub(super) fn named(
        &mut self,
        sources: &Sources,
        place: &str,
        beside: Beside,
    ) -> Result<Vec<Box<str>>, String> {
        let path = self.full(&sources.certificate);
        let sources = Sources { certificate: path.clone(), ..sources.clone() };
        if self.certs.contains_key(&path) {
            self.agree(&path, &sources, place)?;
            return Ok(vec![path]);
        }
        if self.sealed || path.starts_with('@') || outside::exists(&*path) {
            return self.one(&sources, beside).map(|()| vec![path]);
        }
        let bundle = BUNDLE.iter().map(|end| format!("{path}{end}"));
        let there: Vec<String> = bundle
            .filter(|p| self.ground.extra.bundle && (self.certs.contains_key(&**p) || outside::exists(p)))
            .collect();
        if there.is_empty() {
            return self.one(&sources, beside).map(|()| vec![path]);
        }
        let mut names = Vec::new();
        for path in there {
            let of = Sources { certificate: path.into(), ..sources.clone() };
            // Those of a bundle are told whoever names it.
            names.extend(self.named(&of, place, Beside::Told)?);
        }
        // An ECDSA certificate is offered first.
        names.sort();
        Ok(names)
    }

    /// Loads a certificate.
    pub(super) fn one(&mut self, sources: &Sources, beside: Beside) -> Result<(), String> {
        let path = &*sources.certificate;
        if self.sealed || path.starts_with('@') {
            return Err(format!(
                "unable to stat SSL certificate from file '{path}' : No such file or directory"
            ));
        }
        let (parts, at) = files::load(sources, &self.ground.extra, &self.ground.phrases)?;
        let origin = if sources.has_words() { Origin::Listed } else { Origin::Plain };
        let at = if beside == Beside::Told { at } else { sources.clone() };
        self.keep(path, parts, at, origin, sources.is_explicit());
        Ok(())
    }

    /// Why a certificate can't be shown, if it can't.
    pub(super) fn identity(&self, name: &str) -> Result<Arc<Identity>, String> {
        let none = || format!("unable to load certificate from file '{name}'");
        let cert = self.certs.get(name).ok_or_else(none)?;
        if let Some(identity) = &cert.identity {
            return Ok(identity.clone());
        }
        if cert.parts.key.is_none() && cert.parts.leaf.is_some() {
            let end = if self.ground.extra.key { ".key" } else { "" };
            let looked = self.ground.extra.beside(name, end);
            return Err(format!("No Private Key found in '{looked}'"));
        }
        Identity::new(name, &cert.parts).map(Arc::new)
    }

    /// Whether what is said of a certificate now agrees with what was said of it before. `place` begins the
    /// complaint.
    pub(super) fn agree(&self, name: &str, now: &Sources, place: &str) -> Result<(), String> {
        let Some(cert) = self.certs.get(name) else { return Ok(()) };
        let (before, after) = (cert.origin, now.has_words());
        let mut out = match (before, after) {
            (Origin::Declared, false) | (Origin::Plain, false) => return Ok(()),
            (Origin::Listed, false) => {
                "Can't use the certificate previously defined with keywords without these keywords:\n"
                    .to_owned()
            }
            (Origin::Plain, true) => {
                "Can't use the certificate previously defined without any keyword with these keywords:\n"
                    .to_owned()
            }
            (Origin::Declared | Origin::Listed, true) => String::new(),
        };
        let always = !out.is_empty();
        let differences = self.differences(cert, now);
        if differences.is_empty() && !always {
            return Ok(());
        }
        out.push_str(&differences);
        Err(format!("{place}\n {}", out.trim_end()))
    }

    fn differences(&self, cert: &Cert, now: &Sources) -> String {
        let mut out = String::new();
        let was = &cert.sources;
        if cert.explicit || now.is_explicit() {
            let pairs = [
                ("key", &was.key, &now.key),
                ("ocsp", &was.ocsp, &now.ocsp),
                ("issuer", &was.issuer, &now.issuer),
                ("sctl", &was.sctl, &now.sctl),
            ];
            for (word, was, now) in pairs.iter().filter(|(_, was, now)| was != now) {
                let shown = |path: &Option<Box<str>>| path.as_deref().unwrap_or("(null)").to_owned();
                let (was, now) = (shown(was), shown(now));
                let _ = writeln!(out, "- different parameter '{word}' : previously '{was}' vs '{now}'");
            }
        }
        let mode = self.ground.ocsp_update;
        if cert.ocsp_update.unwrap_or(mode) != now.ocsp_update.unwrap_or(mode) {
            let word = |on: bool| if on { "on" } else { "off" };
            let shown = |given: Option<bool>| match given {
                Some(on) => format!("'{}'", word(on)),
                None => format!("'default' (ocsp-update.mode {})", word(mode)),
            };
            let (was, now) = (shown(cert.ocsp_update), shown(now.ocsp_update));
            let _ = writeln!(out, "- different parameter 'ocsp-update' : previously {was} vs {now}");
        }
        out
    }

    /// Takes over what a line says of a certificate that nobody used before; what it doesn't mention stays.
    pub(super) fn describe(&mut self, name: &str, now: &Sources) {
        if let Some(cert) = self.certs.get_mut(name).filter(|_| now.has_words()) {
            cert.ocsp_update = now.ocsp_update.or(cert.ocsp_update);
            cert.origin = if cert.origin == Origin::Plain { Origin::Listed } else { cert.origin };
        }
    }

    /// Notes that a certificate is shown by somebody.
    pub(super) fn note_use(&mut self, name: &str) {
        if let Some(cert) = self.certs.get_mut(name) {
            cert.was_used = true;
        }
    }

    /// Where a certificate is used: entries of bind lines and servers.
    pub(super) fn uses(&self, name: &str) -> usize {
        let rows = self.binds.iter().flat_map(|b| &b.rows).filter(|r| *r.cert == *name).count();
        rows + self.servers.iter().filter(|s| s.spec.crt.as_deref() == Some(name)).count()
    }
}
