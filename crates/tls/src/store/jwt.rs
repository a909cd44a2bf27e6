//! Certificates that rules verify and decrypt tokens with (manual, `jwt` in section 12.7, `jwt_verify_cert`,
//! `jwt_decrypt_cert`).
//!
//! Rules name certificates by text that may come from a variable, so they look them up in a table of their
//! own that is replaced as a whole: a request takes no lock.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use super::certs::Beside;
use super::{Inner, Store};
use crate::files::Sources;
use x509::{Certificate, Der};

/// What a certificate gives rules about tokens.
#[derive(Debug)]
pub struct JwtKey {
    /// Public key with its algorithm, as DER.
    pub public: Box<[u8]>,
    /// Private key, if there is one.
    pub private: Option<Arc<rustls_pki_types::PrivateKeyDer<'static>>>,
    /// `jwt on`.
    pub allowed: bool,
    /// What whoever decrypts made of the private key, once.
    pub prepared: OnceLock<Option<Arc<dyn Any + Send + Sync>>>,
}

impl JwtKey {
    /// The private key as PKCS #8.
    pub fn pkcs8(&self) -> Option<Vec<u8>> {
        crate::files::pkcs8(self.private.as_deref()?)
    }

    /// The object identifier of the curve and the number of the private key, if it is one on a curve.
    pub fn on_curve(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let whole = self.pkcs8()?;
        let mut outer = Der(Der(&whole).element()?.content);
        outer.element()?;
        let mut algorithm = Der(outer.element()?.content);
        algorithm.element().filter(|e| e.content == [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1])?;
        let curve = algorithm.element()?.content.to_vec();
        let mut key = Der(Der(outer.element()?.content).element()?.content);
        key.element()?;
        Some((curve, key.element()?.content.to_vec()))
    }
}

impl Store {
    /// The certificate of this name, if it is in the store and no bundle.
    pub fn jwt_key(&self, name: &str) -> Option<Arc<JwtKey>> {
        self.keys.load().get(name).cloned()
    }

    /// A rule names a certificate: it is loaded if it was not yet, and may then be used for tokens.
    ///
    /// # Errors
    /// It can't be had.
    pub fn want_jwt(&self, name: &str) -> Result<(), String> {
        let inner = &mut *self.lock();
        if !inner.certs.contains_key(name) {
            let sources = Sources { jwt: Some(true), ..Sources::plain(name) };
            inner.one(&sources, Beside::Told)?;
        }
        self.publish_jwt(inner);
        Ok(())
    }

    /// `add ssl jwt`, `del ssl jwt`; whether there is such a certificate.
    pub fn set_jwt(&self, name: &str, allowed: bool) -> bool {
        let inner = &mut *self.lock();
        let Some(cert) = inner.certs.get_mut(name) else { return false };
        cert.jwt = allowed;
        self.publish_jwt(inner);
        true
    }

    /// Names of the certificates that tokens may use; `None` where there are no certificates at all.
    pub fn jwt_names(&self) -> Option<Vec<Box<str>>> {
        let certs = &self.lock().certs;
        let names = || certs.iter().filter(|(_, c)| c.jwt).map(|(name, _)| name.clone()).collect();
        (!certs.is_empty()).then(names)
    }

    /// Lets rules see the certificates as they are now.
    pub(super) fn publish_jwt(&self, inner: &Inner) {
        if !inner.sealed {
            return;
        }
        let key = |name: &str, cert: &super::certs::Cert| {
            let leaf = cert.parts.leaf.as_ref().and_then(|l| Certificate::parse(l))?;
            let key = JwtKey {
                public: leaf.spki.into(),
                private: cert.parts.key.clone(),
                allowed: cert.jwt,
                prepared: OnceLock::new(),
            };
            Some((Box::from(name), Arc::new(key)))
        };
        self.keys.store(Arc::new(inner.certs.iter().filter_map(|(name, cert)| key(name, cert)).collect()));
    }
}
