//! Changes of certificates at run time, one transaction at a time (management manual, `set ssl cert` and its
//! kin).
//!
//! A commit builds everything that depends on the new content, and publishes it only when nothing failed.

use std::sync::Arc;

use super::certs::{Cert, drop_foreign_response};
use super::trusts::Key;
use super::{Inner, Store, Trouble};
use crate::client::Prepared;
use crate::files::{self, Identity, Parts};
use crate::server::Entry;
use crate::sessions::Sessions;
use crate::verify::Trust;
use crate::words::Verify;

/// Parts of a certificate that have names of their own.
const ENDS: [&str; 4] = [".key", ".issuer", ".ocsp", ".sctl"];

/// What takes the place of a row's entry.
pub(super) type Fresh = (usize, usize, Arc<Entry>, Sessions);
/// All that depends on something, built anew: entries of `bind` lines, and rules of servers by their index.
pub(super) type Built = (Vec<Fresh>, Vec<(usize, Prepared)>);

impl Store {
    /// `new ssl cert`.
    ///
    /// # Errors
    /// There is one.
    pub fn new_cert(&self, name: &str) -> Result<String, String> {
        let inner = &mut *self.lock();
        if inner.certs.contains_key(name) {
            return Err(format!("Certificate '{name}' already exists!"));
        }
        inner.certs.insert(name.into(), Cert::default());
        Ok(format!("New empty certificate store '{name}'!"))
    }

    /// `set ssl cert`: begins a transaction, or goes on with it.
    ///
    /// # Errors
    /// What is wrong with the name or the payload.
    pub fn set_cert(&self, typed: &str, payload: &str) -> Result<String, String> {
        let inner = &mut *self.lock();
        let failed = |why: String| format!("{why}\nCan't update {typed}!");
        let (name, end) = inner.part_of(typed);
        let begun = match &inner.changing_cert {
            Some((other, parts)) if *other == name => Some(parts.clone()),
            Some((other, _)) => {
                let text =
                    format!("The ongoing transaction is about '{other}' but you are trying to set '{name}'");
                return Err(failed(text));
            }
            None => None,
        };
        let updated = begun.is_some();
        let mut parts = match (begun, inner.certs.get(&name)) {
            (Some(parts), _) => parts,
            (None, Some(cert)) => inner.as_loaded(cert),
            (None, None) => {
                let text = "Can't replace a certificate which is not referenced by the configuration!";
                return Err(failed(text.into()));
            }
        };
        replace(&mut parts, &name, end, payload).map_err(failed)?;
        inner.changing_cert = Some((name.clone(), parts));
        Ok(format!("Transaction {} for certificate {name}!", if updated { "updated" } else { "created" }))
    }

    /// `commit ssl cert`: how many things were built anew, and what of it can't be used.
    ///
    /// # Errors
    /// Why nothing changed.
    pub fn commit_cert(&self, name: &str) -> Result<(usize, Option<String>), String> {
        let inner = &mut *self.lock();
        let failed = |why: String| format!("{why}\nCan't commit {name}!");
        let mut parts = match &inner.changing_cert {
            Some((other, parts)) if **other == *name => parts.clone(),
            Some((other, _)) => {
                return Err(failed(format!(
                    "The ongoing transaction is about '{other}' but you are trying to set '{name}'"
                )));
            }
            None => return Err(failed("No ongoing transaction! !".into())),
        };
        let completed = inner.complete(&mut parts);
        let warning = drop_foreign_response(name, &mut parts);
        let identity = match (&parts.leaf, &parts.key) {
            (Some(_), Some(_)) => match Identity::new(name, &parts) {
                Ok(identity) => Some(Arc::new(identity)),
                Err(why) if why.starts_with("unable to load SSL certificate into") => {
                    inner.changing_cert = None;
                    return Err(format!("Committing {name}\n{why}.\nFailed!"));
                }
                Err(why) => return Err(failed(format!("{why}."))),
            },
            (None, _) => return Err(failed("The transaction must contain at least a certificate!".into())),
            (_, None) if inner.uses(name) > 0 => {
                inner.changing_cert = None;
                return Err(format!(
                    "Committing {name}\nunable to load SSL private key into SSL Context '{name}': passed a null parameter.\nFailed!"
                ));
            }
            _ => None,
        };
        let (rows, servers) = match &identity {
            Some(identity) => {
                inner.with_identity(name, identity).map_err(|e| failed(inner.told(&e, None)))?
            }
            None => Default::default(),
        };
        if let Some(cert) = inner.certs.get_mut(name) {
            (cert.parts, cert.completed, cert.identity) = (parts, completed, identity);
        }
        inner.changing_cert = None;
        let dots = inner.publish(rows, servers);
        self.publish_jwt(inner);
        Ok((dots, warning))
    }

    /// `abort ssl cert`.
    ///
    /// # Errors
    /// There is no such transaction.
    pub fn abort_cert(&self, name: &str) -> Result<String, String> {
        let mut inner = self.lock();
        aborted(inner.changing_cert.as_ref().map(|(n, _)| &**n), name)?;
        inner.changing_cert = None;
        Ok(format!("Transaction aborted for certificate '{name}'!"))
    }

    /// `del ssl cert`.
    ///
    /// # Errors
    /// There is none, or it is used.
    pub fn delete_cert(&self, name: &str) -> Result<String, String> {
        let inner = &mut *self.lock();
        let failed = |why: &str| Err(format!("Can't remove the certificate: certificate '{name}' {why}!"));
        let Some(cert) = inner.certs.get(name) else { return failed("doesn't exist") };
        let listed = inner.lists.values().any(|l| l.entries.iter().any(|e| *e.cert == *name));
        if cert.jwt || listed || inner.uses(name) > 0 {
            return failed("in use, can't be deleted");
        }
        inner.certs.remove(name);
        Ok(format!("Certificate '{name}' deleted!"))
    }
}

/// Whether a transaction can be given up.
pub(super) fn aborted(going_on: Option<&str>, name: &str) -> Result<(), String> {
    match going_on {
        None => Err("No ongoing transaction!".into()),
        Some(other) if other != name => Err(format!(
            "The ongoing transaction is about '{other}' but you are trying to abort a transaction for '{name}'"
        )),
        Some(_) => Ok(()),
    }
}

/// Puts a payload in the place of a part.
fn replace(parts: &mut Parts, name: &str, end: &str, payload: &str) -> Result<(), String> {
    let invalid = || "Can't load the payload".to_owned();
    match end {
        ".key" => {
            let key = files::pem(payload.as_bytes()).ok().and_then(|p| p.key);
            let told = || {
                let why = "error:1E08010C:DECODER routines::unsupported";
                format!("unable to load private key from file '{name}' ({why}).\n{}", invalid())
            };
            parts.key = Some(Arc::new(key.ok_or_else(told)?));
        }
        ".issuer" => {
            let found = files::pem(payload.as_bytes()).ok().and_then(|p| p.certificates.into_iter().next());
            let told = || format!("'{name}' cannot be read or parsed'.\n{}", invalid());
            parts.issuer = Some(found.ok_or_else(told)?);
        }
        ".ocsp" => {
            parts.ocsp = Some(base::base64::decode_lines(payload.as_bytes()).ok_or_else(invalid)?.into())
        }
        ".sctl" => {
            let list = base::base64::decode_lines(payload.as_bytes())
                .filter(|l| files::is_timestamps(l))
                .ok_or_else(invalid)?;
            parts.sctl = Some(list.into());
        }
        _ => {
            let found = files::pem(payload.as_bytes()).map_err(|e| e.to_string());
            let before = parts.leaf.clone();
            found
                .and_then(|p| parts.take_pem(p))
                .map_err(|e| format!("unable to load certificate from file '{name}': {e}.\n{}", invalid()))?;
            // A response is about one certificate, and is not told of another.
            if before.is_some() && parts.leaf != before {
                parts.ocsp = None;
            }
        }
    }
    Ok(())
}

impl Inner {
    /// Which part of which certificate a name means.
    fn part_of(&self, typed: &str) -> (Box<str>, &'static str) {
        let known = |name: &str| {
            let changing = self.changing_cert.as_ref().is_some_and(|(n, _)| **n == *name);
            changing || self.certs.contains_key(name)
        };
        for end in ENDS {
            let Some(stem) = typed.strip_suffix(end) else { continue };
            let replaced = format!("{stem}.crt");
            if self.ground.extra.replaces && known(&replaced) {
                return (replaced.into(), end);
            }
            if known(stem) {
                return (stem.into(), end);
            }
        }
        (typed.into(), "")
    }

    /// The parts of a certificate without what completed its chain.
    fn as_loaded(&self, cert: &Cert) -> Parts {
        let mut parts = cert.parts.clone();
        if cert.completed.is_some() {
            parts.chain.clear();
        }
        parts
    }

    /// What takes the place of all entries and connectors of a certificate.
    fn with_identity(&self, name: &str, identity: &Arc<Identity>) -> Result<Built, Trouble> {
        let mut rows = Vec::new();
        for (b, bind) in self.binds.iter().enumerate() {
            for (r, row) in bind.rows.iter().enumerate().filter(|(_, row)| *row.cert == *name) {
                let trust = self.known_trust(&self.trust_key(&row.words), row.words.verify)?;
                let sessions = row.sessions.renewed();
                let (entry, _) = self.entry(&bind.spec, &row.words, identity.clone(), trust, &sessions)?;
                rows.push((b, r, entry, sessions));
            }
        }
        let mut servers = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            if server.spec.crt.as_deref() == Some(name) {
                let trust =
                    self.known_trust(&self.trust_key(&server.spec.words), Some(server.spec.verify))?;
                let rules = self.server_rules(&server.spec, Some(identity.clone()), trust);
                servers.push((at, crate::Connector::prepare(&rules).map_err(Trouble::Unusable)?));
            }
        }
        Ok((rows, servers))
    }

    fn known_trust(&self, key: &Key, verify: Option<Verify>) -> Result<Option<Arc<Trust>>, Trouble> {
        match verify {
            None | Some(Verify::None) => Ok(None),
            Some(_) => match self.trusts.get(key) {
                Some(trust) => Ok(Some(trust.clone())),
                None => Ok(Some(Arc::new(self.make_trust(key, None)?))),
            },
        }
    }

    /// Lets handshakes find what was made; how much that was.
    pub(super) fn publish(&mut self, rows: Vec<Fresh>, servers: Vec<(usize, Prepared)>) -> usize {
        let dots = rows.len() + servers.len();
        let mut touched: Vec<usize> = rows.iter().map(|(b, ..)| *b).collect();
        touched.dedup();
        for (b, r, entry, sessions) in rows {
            if let Some(row) = self.binds.get_mut(b).and_then(|bind| bind.rows.get_mut(r)) {
                (row.entry, row.sessions) = (entry, sessions);
            }
        }
        for bind in touched.into_iter().filter_map(|b| self.binds.get(b)) {
            bind.publish();
        }
        for (at, prepared) in servers {
            if let Some(server) = self.servers.get(at) {
                server.connector.publish(prepared);
            }
        }
        dots
    }
}
