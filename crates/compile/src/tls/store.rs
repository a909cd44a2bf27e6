//! Files of certificates, each read once (manual, sections 5.1 and 12.7).

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tls::files::{self, Identity, Sources};
use tls::verify::Trust;

use super::TlsGlobal;

/// The authorities of a file, and the revocation list that goes with them.
type TrustFiles = (Box<str>, Option<Box<str>>);

/// What was read so far.
#[derive(Default)]
pub(crate) struct Store {
    identities: HashMap<Box<str>, Arc<Identity>>,
    trusts: HashMap<TrustFiles, Arc<Trust>>,
}

/// A path under its base, unless it stands for itself.
pub(crate) fn under(base: Option<&str>, path: &str) -> Box<str> {
    match base {
        Some(base) if !path.starts_with(['/', '@']) => format!("{base}/{path}").into(),
        _ => path.into(),
    }
}

impl Store {
    /// The identities that a word names: a file, a bundle of files, or the files of a folder.
    pub fn named(&mut self, sources: &Sources, global: &TlsGlobal) -> Result<Vec<Arc<Identity>>, String> {
        let path = under(global.crt_base.as_deref(), &sources.certificate);
        if let Some(known) = self.identities.get(&path) {
            return Ok(vec![known.clone()]);
        }
        let sources = Sources {
            certificate: path.clone(),
            key: sources.key.as_deref().map(|k| under(global.key_base.as_deref(), k)),
            ..sources.clone()
        };
        if Path::new(&*path).is_dir() {
            let reserved = [".key", ".issuer", ".ocsp", ".sctl"];
            let list = files::folder(&path, |name| !reserved.iter().any(|end| name.ends_with(end)))
                .map_err(|e| format!("unable to scan directory '{path}' : {e}"))?;
            return list
                .into_iter()
                .map(|p| self.one(Sources { certificate: p.into(), ..Sources::default() }))
                .collect();
        }
        if !Path::new(&*path).exists() {
            let bundle = [".rsa", ".ecdsa", ".dsa"].map(|end| format!("{path}{end}"));
            let there: Vec<_> = bundle.into_iter().filter(|p| Path::new(p).exists()).collect();
            if !there.is_empty() {
                let of = |p: String| Sources { certificate: p.into(), ..sources.clone() };
                return there.into_iter().map(|p| self.one(of(p))).collect();
            }
        }
        Ok(vec![self.one(sources)?])
    }

    fn one(&mut self, sources: Sources) -> Result<Arc<Identity>, String> {
        if let Some(known) = self.identities.get(&sources.certificate) {
            return Ok(known.clone());
        }
        let made = Arc::new(files::identity(&sources)?);
        self.identities.insert(sources.certificate, made.clone());
        Ok(made)
    }

    /// Whom a `ca-file` and a `crl-file` say to believe.
    ///
    /// # Errors
    /// The word at fault, its file, and why it can't be read.
    pub fn trust(
        &mut self,
        ca: &str,
        crl: Option<&str>,
    ) -> Result<Arc<Trust>, (&'static str, String, String)> {
        let key = (Box::from(ca), crl.map(Box::from));
        if let Some(known) = self.trusts.get(&key) {
            return Ok(known.clone());
        }
        let found = files::authorities(ca).map_err(|e| ("ca-file", ca.to_owned(), e))?;
        let lists = match crl {
            Some(path) => files::authorities(path).map_err(|e| ("crl-file", path.to_owned(), e))?.crls,
            None => Vec::new(),
        };
        let trust = Trust::new(found, lists).map_err(|e| ("crl-file", crl.unwrap_or(ca).to_owned(), e))?;
        let trust = Arc::new(trust);
        self.trusts.insert(key, trust.clone());
        Ok(trust)
    }
}
