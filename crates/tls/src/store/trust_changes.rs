//! Changes at run time of CA files and revocation lists, one transaction at a time for each kind (management
//! manual, `set ssl ca-file`, `set ssl crl-file` and their kin).
//!
//! As with [certificates](super::transactions), a commit builds all that depends on the file before it
//! publishes anything.

use std::collections::HashMap;
use std::sync::Arc;

use super::transactions::{Built, aborted};
use super::trusts::{Authorities, Key, TrustFile};
use super::{Inner, Store, Trouble};
use crate::files;
use crate::verify::Trust;
use crate::words::Verify;

/// Which of the two kinds of files that say whom to believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ca-file`.
    Ca,
    /// `crl-file`.
    Crl,
}

impl Kind {
    fn word(self) -> &'static str {
        if self == Kind::Ca { "CA" } else { "CRL" }
    }
}

impl Store {
    /// `new ssl ca-file`, `new ssl crl-file`.
    ///
    /// # Errors
    /// There is one.
    pub fn new_file(&self, kind: Kind, name: &str) -> Result<String, String> {
        let inner = &mut *self.lock();
        if inner.files.contains_key(name) {
            return Err(format!("{} file '{name}' already exists!", kind.word()));
        }
        let holds = Authorities::default();
        let loaded = super::before::stamp_of_file(&holds);
        let empty = TrustFile { is_crl: kind == Kind::Crl, holds, loaded };
        inner.files.insert(name.into(), empty);
        Ok(format!("New {} file created '{name}'!", kind.word()))
    }

    /// `set ssl ca-file`, `set ssl crl-file`; with `more` `add ssl ca-file`.
    ///
    /// # Errors
    /// What is wrong with the name or the payload.
    pub fn set_file(&self, kind: Kind, name: &str, payload: &str, more: bool) -> Result<String, String> {
        let inner = &mut *self.lock();
        let failed = |why: String| format!("{why}\nCan't update {name}!");
        let word = kind.word();
        let begun = match inner.changing(kind) {
            Some((other, holds)) if **other == *name => Some(holds.clone()),
            Some((other, _)) => {
                return Err(failed(format!(
                    "The ongoing transaction is about '{other}' but you are trying to set '{name}'"
                )));
            }
            None => None,
        };
        let updated = begun.is_some();
        let Some(file) = inner.files.get(name) else {
            return Err(failed(format!(
                "Can't replace a {word} file which is not referenced by the configuration!"
            )));
        };
        let mut holds = match more {
            true => begun.unwrap_or_else(|| file.holds.clone()),
            false => Authorities::default(),
        };
        let found = files::pem(payload.as_bytes()).map_err(|_| failed("Invalid payload".into()))?;
        let empty = if kind == Kind::Ca { found.certificates.is_empty() } else { found.crls.is_empty() };
        if empty {
            return Err(failed("Invalid payload".into()));
        }
        for certificate in found.certificates {
            if !holds.certificates.contains(&certificate) {
                holds.certificates.push(certificate);
            }
        }
        holds.lists.extend(found.crls);
        *inner.changing(kind) = Some((name.into(), holds));
        Ok(format!("transaction {} for {word} {name}!", if updated { "updated" } else { "created" }))
    }

    /// `commit ssl ca-file`, `commit ssl crl-file`: the number of dots.
    ///
    /// # Errors
    /// Why nothing changed.
    pub fn commit_file(&self, kind: Kind, name: &str) -> Result<usize, String> {
        let inner = &mut *self.lock();
        let failed = |why: String| format!("{why}\nCan't commit {name}!");
        let holds = match inner.changing(kind) {
            Some((other, holds)) if **other == *name => holds.clone(),
            Some((other, _)) => {
                return Err(failed(format!(
                    "The ongoing transaction is about '{other}' but you are trying to set '{name}'"
                )));
            }
            None => return Err(failed("No ongoing transaction! !".into())),
        };
        let ((rows, servers), trusts) =
            inner.with_file(name, &holds).map_err(|e| failed(inner.told(&e, None)))?;
        let dots = inner.file_uses(name);
        if let Some(file) = inner.files.get_mut(name) {
            file.holds = holds;
        }
        *inner.changing(kind) = None;
        inner.trusts.retain(|key, _| !key.iter().any(|p| p.as_deref() == Some(name)));
        inner.trusts.extend(trusts);
        inner.publish(rows, servers);
        Ok(dots)
    }

    /// `abort ssl ca-file`, `abort ssl crl-file`.
    ///
    /// # Errors
    /// There is no such transaction.
    pub fn abort_file(&self, kind: Kind, name: &str) -> Result<String, String> {
        let mut inner = self.lock();
        let changing = inner.changing(kind);
        aborted(changing.as_ref().map(|(n, _)| &**n), name)?;
        *changing = None;
        Ok(format!("Transaction aborted for certificate '{name}'!"))
    }

    /// `del ssl ca-file`, `del ssl crl-file`.
    ///
    /// # Errors
    /// There is none, or it is used.
    pub fn delete_file(&self, kind: Kind, name: &str) -> Result<String, String> {
        let inner = &mut *self.lock();
        let word = kind.word();
        let failed = |why: &str| Err(format!("Can't remove the {word} file: {word} file '{name}' {why}!"));
        if !inner.files.contains_key(name) {
            return failed("doesn't exist");
        }
        let listed = inner
            .lists
            .values()
            .flat_map(|l| &l.entries)
            .any(|e| e.words.as_ref().is_some_and(|w| inner.names_file(w, name)));
        if listed || inner.file_uses(name) > 0 {
            return failed("in use, can't be deleted");
        }
        inner.files.remove(name);
        Ok(format!("{word} file '{name}' deleted!"))
    }
}

impl Inner {
    fn changing(&mut self, kind: Kind) -> &mut Option<(Box<str>, Authorities)> {
        if kind == Kind::Ca { &mut self.changing_ca } else { &mut self.changing_crl }
    }

    /// The same for all that believe what a file says.
    fn with_file(
        &self,
        name: &str,
        holds: &Authorities,
    ) -> Result<(Built, HashMap<Key, Arc<Trust>>), Trouble> {
        let mut trusts: HashMap<Key, Arc<Trust>> = HashMap::new();
        let mut trust = |key: Key| -> Result<Arc<Trust>, Trouble> {
            if let Some(made) = trusts.get(&key) {
                return Ok(made.clone());
            }
            let made = Arc::new(self.make_trust(&key, Some((name, holds)))?);
            trusts.insert(key, made.clone());
            Ok(made)
        };
        let mut rows = Vec::new();
        for (b, bind) in self.binds.iter().enumerate() {
            for (r, row) in bind.rows.iter().enumerate() {
                let verifies = matches!(row.words.verify, Some(Verify::Optional | Verify::Required));
                if !verifies || !self.names_file(&row.words, name) {
                    continue;
                }
                let trust = trust(self.trust_key(&row.words))?;
                let (identity, sessions) = (row.entry.identity.clone(), row.sessions.renewed());
                let (entry, _) = self.entry(&bind.spec, &row.words, identity, Some(trust), &sessions)?;
                rows.push((b, r, entry, sessions));
            }
        }
        let mut servers = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            if server.spec.verify == Verify::None || !self.names_file(&server.spec.words, name) {
                continue;
            }
            let trust = trust(self.trust_key(&server.spec.words))?;
            let identity = server.spec.crt.as_deref().map(|c| self.identity(c)).transpose()?;
            let rules = self.server_rules(&server.spec, identity, Some(trust));
            servers.push((at, crate::Connector::prepare(&rules).map_err(Trouble::Unusable)?));
        }
        Ok(((rows, servers), trusts))
    }
}
