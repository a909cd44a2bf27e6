//! CA files and revocation lists: one namespace, as in HAProxy.

use std::sync::Arc;

use rustls_pki_types::CertificateDer;

use super::before::stamp_of_file;
use super::{Inner, Store, Trouble, under};
use crate::files;
use crate::verify::Trust;
use crate::words::{Verify, Words};

/// What a file of this kind holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorities {
    pub certificates: Vec<CertificateDer<'static>>,
    pub lists: Vec<Vec<u8>>,
}

/// A CA file or a revocation list.
#[derive(Clone, Debug)]
pub(super) struct TrustFile {
    pub is_crl: bool,
    pub holds: Authorities,
    /// What the file was like when it was read.
    pub loaded: u64,
}

/// `ca-file`, `ca-verify-file`, `crl-file`.
pub(super) type Key = [Option<Box<str>>; 3];

impl Store {
    /// Reads a file of authorities that nobody uses yet.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read_authorities(&self, path: &str) -> Result<(), Trouble> {
        self.lock().read_trust(&[Some(path.into()), None, None])
    }
}

impl Inner {
    /// The names of the files that some settings mean.
    pub(super) fn trust_key(&self, words: &Words) -> Key {
        let base = self.ground.ca_base.as_deref();
        let full = |path: &Option<Box<str>>| path.as_deref().map(|p| under(base, p));
        [full(&words.ca_file), full(&words.ca_verify_file), full(&words.crl_file)]
    }

    /// Reads the files of a key that were not read yet.
    pub(super) fn read_trust(&mut self, key: &Key) -> Result<(), Trouble> {
        for (word, path) in ["ca-file", "ca-verify-file", "crl-file"].into_iter().zip(key) {
            let Some(path) = path else { continue };
            if self.files.contains_key(path) {
                continue;
            }
            let told = |why: String| Trouble::Authority(word, path.to_string(), why);
            if self.sealed {
                return Err(told(String::new()));
            }
            let found = files::authorities(path)
                .map_err(|e| told(e.split(" (os error").next().unwrap_or_default().to_owned()))?;
            if let Some(why) = files::no_authorities(path, &found) {
                return Err(told(why.to_owned()));
            }
            let holds = Authorities { certificates: found.certificates, lists: found.crls };
            let loaded = stamp_of_file(&holds);
            let holds = self.made_of_file(path, loaded).unwrap_or(holds);
            self.files.insert(path.clone(), TrustFile { is_crl: word == "crl-file", holds, loaded });
        }
        Ok(())
    }

    /// Whom these files say to believe; `None`: they name nobody.
    pub(super) fn trust(&mut self, key: &Key) -> Result<Option<Arc<Trust>>, Trouble> {
        self.read_trust(key)?;
        if key[0].is_none() && key[1].is_none() {
            return Ok(None);
        }
        if let Some(known) = self.trusts.get(key) {
            return Ok(Some(known.clone()));
        }
        let made = Arc::new(self.make_trust(key, None)?);
        self.trusts.insert(key.clone(), made.clone());
        Ok(Some(made))
    }

    /// Whom a key says to believe when a file is replaced by another content.
    pub(super) fn make_trust(
        &self,
        key: &Key,
        instead: Option<(&str, &Authorities)>,
    ) -> Result<Trust, Trouble> {
        let holds = |path: &Option<Box<str>>| -> Authorities {
            let Some(path) = path else { return Authorities::default() };
            match instead {
                Some((name, other)) if *name == **path => other.clone(),
                _ => self.files.get(path).map(|f| f.holds.clone()).unwrap_or_default(),
            }
        };
        let [told, silent, crl] = [holds(&key[0]), holds(&key[1]), holds(&key[2])];
        Trust::new(&told.certificates, &silent.certificates, &crl.lists).map_err(|why| {
            Trouble::Authority("crl-file", key[2].as_deref().unwrap_or_default().to_owned(), why)
        })
    }

    /// Whether settings name this file.
    pub(super) fn names_file(&self, words: &Words, name: &str) -> bool {
        self.trust_key(words).iter().any(|p| p.as_deref() == Some(name))
    }

    /// Where a file is used: entries of bind lines and servers, as far as these verify their peers.
    pub(super) fn file_uses(&self, name: &str) -> usize {
        let rows = self.binds.iter().flat_map(|b| &b.rows).map(|r| (&*r.words, r.words.verify));
        let servers = self.servers.iter().map(|s| (&s.spec.words, Some(s.spec.verify)));
        let verifies = |verify| matches!(verify, Some(Verify::Optional | Verify::Required));
        rows.chain(servers)
            .filter(|(words, verify)| verifies(*verify) && self.names_file(words, name))
            .count()
    }
}
