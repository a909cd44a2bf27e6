//! Which files make a certificate: those that a configuration names, or those that stand beside it under the
//! same name with `.key`, `.issuer`, `.ocsp` or `.sctl` behind it (manual, section 3.1,
//! `ssl-load-extra-files`; section 12.7.1).

use base::outside;
use std::sync::Arc;

use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::{Parts, is_timestamps, pem, told};
use crate::dummy::Recipe;
use crate::locked::{self, Closed, Phrases};
use x509::Certificate;

/// Where the parts of a certificate come from, and what else was said of it (`load`, lists, `ssl-f-use`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// `crt`.
    pub certificate: Box<str>,
    /// `key`.
    pub key: Option<Box<str>>,
    /// `issuer`.
    pub issuer: Option<Box<str>>,
    /// `ocsp`.
    pub ocsp: Option<Box<str>>,
    /// `sctl`.
    pub sctl: Option<Box<str>>,
    /// `ocsp-update`.
    pub ocsp_update: Option<bool>,
    /// `jwt`.
    pub jwt: Option<bool>,
    /// `alias`.
    pub alias: Option<Box<str>>,
    /// `generate-dummy` and what goes with it.
    pub dummy: Recipe,
}

impl Sources {
    /// Nothing but a certificate.
    pub fn plain(certificate: &str) -> Sources {
        Sources { certificate: certificate.into(), ..Sources::default() }
    }

    /// Whether files are named one by one: nothing is then looked for beside the certificate.
    pub fn is_explicit(&self) -> bool {
        let files = [&self.key, &self.issuer, &self.ocsp, &self.sctl, &self.alias];
        files.iter().any(|f| f.is_some())
    }

    /// Whether anything is said of it at all.
    pub fn has_words(&self) -> bool {
        self.is_explicit() || self.ocsp_update.is_some() || self.jwt.is_some()
    }
}

/// What is looked for beside a certificate (`ssl-load-extra-files`, `ssl-load-extra-del-ext`).
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    /// `bundle`.
    pub bundle: bool,
    /// `sctl`.
    pub sctl: bool,
    /// `ocsp`.
    pub ocsp: bool,
    /// `issuer`.
    pub issuer: bool,
    /// `key`.
    pub key: bool,
    /// `.crt` makes room for the other extension.
    pub replaces: bool,
}

impl Default for Extra {
    fn default() -> Extra {
        Extra { bundle: true, sctl: true, ocsp: true, issuer: true, key: true, replaces: false }
    }
}

impl Extra {
    /// The name of a file beside a certificate.
    pub fn beside(&self, certificate: &str, end: &str) -> String {
        let stem = certificate.strip_suffix(".crt").filter(|_| self.replaces).unwrap_or(certificate);
        format!("{stem}{end}")
    }
}

/// Loads what `sources` names, and unless it names files one by one what stands beside the certificate. The
/// sources that come back say where everything was found. Messages end without a full stop.
///
/// # Errors
/// What is wrong with the files, in HAProxy's words.
pub fn load(sources: &Sources, extra: &Extra, phrases: &Phrases) -> Result<(Parts, Sources), String> {
    let path = &*sources.certificate;
    let spoilt = |why| format!("{why}.\n '{path}' cannot be read or parsed");
    if let Some(mut made) = sources.dummy.make().map_err(spoilt)? {
        let pair = made.key.clone();
        named(&mut made, sources, phrases)?;
        made.key = pair;
        return Ok((made, sources.clone()));
    }
    let text = outside::read(path)
        .map_err(|e| format!("unable to stat SSL certificate from file '{path}' : {}", told(&e)))?;
    let mut parts = Parts::default();
    let opened = locked::open(&text, path, phrases);
    let found =
        pem(&opened.text).map_err(|e| format!("unable to load certificate from file '{path}': {e}"))?;
    parts.take_pem(found).map_err(|e| format!("unable to load certificate from file '{path}': {e}"))?;
    let mut at = sources.clone();
    if sources.is_explicit() {
        named(&mut parts, sources, phrases)?;
    } else {
        nearby(&mut parts, &mut at, extra, phrases)?;
    }
    Ok((parts, at))
}

/// The key of a file that has nothing else to give; `None`: there is none in it.
///
/// # Errors
/// Why it stays closed.
pub fn key(text: &[u8], path: &str, phrases: &Phrases) -> Result<Option<PrivateKeyDer<'static>>, Closed> {
    let opened = locked::open(text, path, phrases);
    match opened.closed {
        Some(why) => Err(why),
        None => Ok(pem(&opened.text).ok().and_then(|p| p.key)),
    }
}

/// What OpenSSL says of a file without a key.
const NO_KEY: &str = "error:1E08010C:DECODER routines::unsupported";

fn no_key(path: &str) -> String {
    format!("unable to load private key from file '{path}' ({NO_KEY}).\n")
}

fn stays_closed(path: &str, why: Closed) -> String {
    format!("unable to load private key from file '{path}' ({}).\n", why.words())
}

/// Whether the issuer at hand has the name of the certificate's.
fn issued(parts: &Parts) -> bool {
    let name = |c: &Option<CertificateDer<'static>>, of: fn(Certificate<'_>) -> Vec<u8>| {
        c.as_ref().and_then(|c| Certificate::parse(c)).map(of)
    };
    name(&parts.leaf, |c| c.issuer.to_vec()) == name(&parts.issuer, |c| c.subject.to_vec())
}

/// The files that are named.
fn named(parts: &mut Parts, sources: &Sources, phrases: &Phrases) -> Result<(), String> {
    let bad = |path: &str| format!(" '{path}' cannot be read or parsed");
    let read = |path: &str| outside::read(path).map_err(|_| bad(path));
    if let Some(path) = &sources.key {
        let key = key(&read(path)?, path, phrases).map_err(|why| stays_closed(path, why) + &bad(path))?;
        parts.key = Some(Arc::new(key.ok_or_else(|| format!("\n{}{}", no_key(path), bad(path)))?));
    }
    if let Some(path) = &sources.ocsp {
        let told = |_| format!("Error opening OCSP response file '{path}' cannot be read or parsed");
        parts.ocsp = Some(read(path).map_err(told)?.into());
    }
    if let Some(path) = &sources.sctl {
        let list = read(path)?;
        if !is_timestamps(&list) {
            return Err(bad(path));
        }
        parts.sctl = Some(list.into());
    }
    if let Some(path) = &sources.issuer {
        let found = pem(&read(path)?).ok().and_then(|p| p.certificates.into_iter().next());
        parts.issuer = Some(found.ok_or_else(|| bad(path))?);
    }
    Ok(())
}

/// What stands beside the certificate under its name.
fn nearby(parts: &mut Parts, at: &mut Sources, extra: &Extra, phrases: &Phrases) -> Result<(), String> {
    let beside = |end: &str| extra.beside(&at.certificate, end);
    let (key, ocsp) = (beside(".key"), beside(".ocsp"));
    let (sctl, issuer) = (beside(".sctl"), beside(".issuer"));
    let read = |path: &str| outside::read(path).ok();
    at.key = Some(at.certificate.clone());
    if parts.key.is_none() && extra.key {
        let present =
            |why| format!("\n{} '{key}' is present but cannot be read or parsed'.", stays_closed(&key, why));
        let found = read(&key).map(|text| self::key(&text, &key, phrases)).transpose().map_err(present)?;
        if let Some(None) = found {
            return Err(format!("\n{} '{key}' is present but cannot be read or parsed'.", no_key(&key)));
        }
        parts.key = found.flatten().map(Arc::new);
        at.key = Some(key.into());
    }
    if extra.ocsp {
        parts.ocsp = read(&ocsp).filter(|o| !o.is_empty()).map(Into::into);
        at.ocsp = Some(ocsp.into());
    }
    if extra.issuer
        && let Some(found) = read(&issuer).and_then(|t| pem(&t).ok()?.certificates.into_iter().next())
    {
        parts.issuer = Some(found);
        // Without a response nobody looks at the issuer, be it what it may.
        let matters = parts.ocsp.is_some();
        if matters && !issued(parts) {
            return Err(format!(" '{issuer}' is not an issuer'"));
        }
        at.issuer = matters.then(|| issuer.into());
    }
    if extra.sctl {
        let list = read(&sctl);
        if list.as_deref().is_some_and(|list| !is_timestamps(list)) {
            return Err(format!(" '{sctl}' is present but cannot be read or parsed'"));
        }
        parts.sctl = list.map(Into::into);
        at.sctl = Some(sctl.into());
    }
    Ok(())
}
