//! OCSP responses of the certificates: told, changed and asked for (management manual, `ssl ocsp-response`).
//!
//! Certificates of one id share what is said of them, so a new response goes to all of them at once, and
//! running lines tell it from the next handshake on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::certs::Cert;
use super::show::issuer;
use super::{Inner, Store};
use crate::ocsp::{self, Refused, Response};

/// A certificate of which a response is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its id, as DER.
    pub id: Vec<u8>,
    /// The first name that it was loaded by.
    pub name: Box<str>,
    /// The response at hand.
    pub response: Option<Arc<[u8]>>,
    /// `ocsp-update on`.
    pub updates: bool,
}

/// What is needed to ask for a response.
#[derive(Clone, Debug)]
pub struct Question {
    /// The certificate's id, as DER.
    pub id: Vec<u8>,
    /// Where to ask.
    pub uri: String,
}

impl Inner {
    /// The id of a certificate that has a response or wants one.
    pub(super) fn id(&self, cert: &Cert) -> Option<Vec<u8>> {
        if !cert.was_used || (cert.parts.ocsp.is_none() && !self.updates(cert)) {
            return None;
        }
        ocsp::id(cert.parts.leaf.as_ref()?, issuer(&cert.parts)?)
    }

    /// Whether there may be a certificate whose response is asked for, which costs little to find out.
    fn asks(&self) -> bool {
        self.ground.ocsp_update || self.certs.values().any(|cert| cert.ocsp_update == Some(true))
    }

    /// Whether the response of a certificate is asked for: somebody wants it, and the certificate tells where
    /// to ask.
    fn updates(&self, cert: &Cert) -> bool {
        cert.ocsp_update.unwrap_or(self.ground.ocsp_update)
            && cert.parts.leaf.as_ref().is_some_and(|leaf| ocsp::responder(leaf).is_some())
    }
}

impl Store {
    /// All of which a response is kept, by id.
    pub fn responses(&self) -> Vec<Known> {
        let inner = self.lock();
        let mut all: BTreeMap<Vec<u8>, Known> = BTreeMap::new();
        for (name, cert) in &inner.certs {
            let Some(id) = inner.id(cert) else { continue };
            let known = all.entry(id.clone()).or_insert_with(|| Known {
                id,
                name: name.clone(),
                response: None,
                updates: false,
            });
            known.updates |= inner.updates(cert);
            known.response = known.response.take().or_else(|| cert.parts.ocsp.clone());
        }
        all.into_values().collect()
    }

    /// Those of which responses are asked for.
    pub(super) fn wanted(&self) -> Vec<Known> {
        if !self.lock().asks() {
            return Vec::new();
        }
        self.responses().into_iter().filter(|known| known.updates).collect()
    }

    /// Takes a response for the certificates that it is about. `check` also looks at its signature, for
    /// responses that came over the network.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn set_response(&self, bytes: &[u8], now: i64, check: bool) -> Result<(), Refused> {
        let response = Response::parse(bytes)?;
        let inner = &mut *self.lock();
        let about = |cert: &Cert| inner.id(cert).as_deref() == Some(response.id);
        let found = inner.certs.iter().filter(|(_, cert)| about(cert));
        let names: Vec<Box<str>> = found.map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            return Err(Refused::Foreign);
        }
        response.valid_until(now)?;
        let bytes: Arc<[u8]> = bytes.into();
        for name in names {
            let Some(cert) = inner.certs.get_mut(&name) else { continue };
            let signed = issuer(&cert.parts).is_some_and(|i| response.is_signed_by(i, now));
            if check && !signed {
                return Err(Refused::Unsigned);
            }
            cert.parts.ocsp = Some(bytes.clone());
            if let Some(identity) = &cert.identity {
                identity.staple.set(bytes.clone());
            }
        }
        Ok(())
    }

    /// How to ask for the response of a certificate; `None`: no response of it is kept, or it names no
    /// responder.
    pub fn question(&self, name: &str) -> Option<Question> {
        let inner = self.lock();
        let cert = inner.certs.get(name)?;
        let uri = ocsp::responder(cert.parts.leaf.as_ref()?)?;
        Some(Question { id: inner.id(cert)?, uri })
    }
}
