//! What stays of the store of a configuration when another takes its place in the same process.
//!
//! Files are read again. What was made of one at run time (`commit ssl cert`, an OCSP response that came)
//! stays as long as the file is what it was when it was read; sessions of `bind` lines that are such as
//! before may still be resumed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::binds::BindSpec;
use super::servers::ServerSpec;
use super::trusts::{Authorities, Key};
use super::{Ground, Inner, Store};
use crate::files::Parts;
use crate::sessions::Sessions;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// What was made of certificates, and what their files were like.
    certs: HashMap<Box<str>, (u64, Parts)>,
    /// The same of files of authorities and revocations.
    files: HashMap<Box<str>, (u64, Authorities)>,
    /// Sessions, by what their lines say.
    sessions: Vec<(String, Sessions)>,
}

/// What tells the content of a certificate's files from another.
pub(super) fn stamp_of_cert(parts: &Parts) -> u64 {
    let mut hash = DefaultHasher::new();
    let certificates = parts.leaf.iter().chain(&parts.chain).chain(&parts.issuer);
    certificates.for_each(|der| der.as_ref().hash(&mut hash));
    parts.key.as_ref().map(|key| key.secret_der()).hash(&mut hash);
    (&parts.ocsp, &parts.sctl).hash(&mut hash);
    hash.finish()
}

/// What tells the content of a file of authorities or revocations from another.
pub(super) fn stamp_of_file(holds: &Authorities) -> u64 {
    let mut hash = DefaultHasher::new();
    holds.certificates.iter().for_each(|der| der.as_ref().hash(&mut hash));
    holds.lists.hash(&mut hash);
    hash.finish()
}

/// All that makes the sessions of a line resumable under it.
fn nature(spec: &BindSpec) -> String {
    format!("{} {:?} {:?} {}", spec.label.frontend, spec.words, spec.shows, spec.sessions.nature())
}

impl Store {
    /// An empty store that takes the place of another.
    pub fn after(ground: Ground, before: &Store) -> Store {
        let store = Store::new(ground);
        let known = before.lock();
        let certs =
            known.certs.iter().filter(|(_, cert)| cert.kept != 0 && cert.kept != stamp_of_cert(&cert.parts));
        let files = known.files.iter().filter(|(_, file)| file.loaded != stamp_of_file(&file.holds));
        store.lock().before = Before {
            certs: certs.map(|(name, cert)| (name.clone(), (cert.loaded, cert.parts.clone()))).collect(),
            files: files.map(|(name, file)| (name.clone(), (file.loaded, file.holds.clone()))).collect(),
            sessions: known
                .binds
                .iter()
                .map(|bind| (nature(&bind.spec), bind.spec.sessions.clone()))
                .collect(),
        };
        drop(known);
        *store.calendar_as_it_is() = before.calendar_as_it_is().clone();
        store
    }
}

impl Inner {
    /// What was made of a certificate at run time, if its files are what they were: `loaded`.
    pub(super) fn made_of_cert(&self, name: &str, loaded: u64) -> Option<Parts> {
        self.before.certs.get(name).filter(|(was, _)| *was == loaded).map(|(_, parts)| parts.clone())
    }

    /// What was made of a file of authorities at run time.
    pub(super) fn made_of_file(&self, name: &str, loaded: u64) -> Option<Authorities> {
        self.before.files.get(name).filter(|(was, _)| *was == loaded).map(|(_, holds)| holds.clone())
    }

    /// What tells connections to a server of these settings and files from others.
    pub(super) fn nature_of(&self, spec: &ServerSpec, key: &Key) -> u64 {
        let mut hash = DefaultHasher::new();
        format!("{spec:?}").hash(&mut hash);
        for path in key.iter().flatten() {
            self.files.get(path).map(|file| stamp_of_file(&file.holds)).hash(&mut hash);
        }
        let cert = spec.crt.as_ref().and_then(|name| self.certs.get(name));
        cert.map(|cert| stamp_of_cert(&cert.parts)).hash(&mut hash);
        hash.finish()
    }

    /// Gives a line the sessions that it had.
    pub(super) fn resume(&mut self, spec: &mut BindSpec) {
        let nature = nature(spec);
        if let Some(at) = self.before.sessions.iter().position(|(was, _)| *was == nature) {
            spec.sessions = self.before.sessions.swap_remove(at).1;
        }
    }

    /// The store is complete.
    pub(super) fn forget_before(&mut self) {
        self.before = Before::default();
    }
}

impl Sessions {
    /// What they are made with: keys that were given are the same ones or others.
    fn nature(&self) -> String {
        format!("{:?} {:?}", self.limits, self.keys.as_ref().map(|keys| Arc::as_ptr(keys).addr()))
    }
}
