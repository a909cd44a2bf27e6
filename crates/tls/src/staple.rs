//! The OCSP response that goes with a certificate, which may change while the certificate is in use.
//!
//! rustls takes a response out of the key that it is shown, so a key is made for each response, once;
//! handshakes take what is at hand. A response whose time is over is not told to anybody.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::ocsp;

/// A response and until when it holds, in seconds since 1970.
#[derive(Debug)]
struct Response {
    bytes: Arc<[u8]>,
    until: i64,
}

/// The place of a response; whoever shows the certificate shares it.
#[derive(Debug, Default)]
pub struct Staple(ArcSwapOption<Response>);

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
}

impl Staple {
    /// With a response, if there is one.
    pub fn new(bytes: Option<&Arc<[u8]>>) -> Staple {
        let staple = Staple::default();
        if let Some(bytes) = bytes.filter(|b| !b.is_empty()) {
            staple.set(bytes.clone());
        }
        staple
    }

    /// From now on this one is told, as long as it holds.
    pub fn set(&self, bytes: Arc<[u8]>) {
        let until = ocsp::Response::parse(&bytes).and_then(|r| r.valid_until(now())).unwrap_or(0);
        self.0.store(Some(Arc::new(Response { bytes, until })));
    }

    /// Whether there is a response, and if so whether it holds.
    pub fn holds(&self) -> Option<bool> {
        self.0.load().as_ref().map(|r| r.until > now())
    }
}

/// A key with its response.
#[derive(Debug)]
struct Built {
    response: Arc<Response>,
    key: Arc<CertifiedKey>,
}

/// One certificate, whatever is asked for: the choice was made before.
#[derive(Debug)]
pub(crate) struct Always {
    key: Arc<CertifiedKey>,
    staple: Arc<Staple>,
    built: ArcSwapOption<Built>,
}

impl Always {
    pub fn new(key: Arc<CertifiedKey>, staple: Arc<Staple>) -> Always {
        Always { key, staple, built: ArcSwapOption::empty() }
    }

    fn stapled(&self, response: &Arc<Response>) -> Arc<CertifiedKey> {
        if let Some(built) = &*self.built.load()
            && Arc::ptr_eq(&built.response, response)
        {
            return built.key.clone();
        }
        let mut key = (*self.key).clone();
        key.ocsp = Some(response.bytes.to_vec());
        let key = Arc::new(key);
        self.built.store(Some(Arc::new(Built { response: response.clone(), key: key.clone() })));
        key
    }
}

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let response = self.staple.0.load();
        let response = response.as_ref().filter(|r| r.until > now());
        Some(response.map_or_else(|| self.key.clone(), |r| self.stapled(r)))
    }
}
