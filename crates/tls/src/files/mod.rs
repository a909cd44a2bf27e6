//! Certificates and keys from files (manual, section 5.1, `crt`; section 12.7).
//!
//! A file holds a certificate with its chain and often its key, in any order. `sources` says which files
//! belong together.

mod sources;

use base::outside;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::staple::Staple;
use x509::{Certificate, Der, encode};

pub use sources::{Extra, Sources, key, load};

/// Kind of a key, for the choice between certificates of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RSA.
    Rsa,
    /// ECDSA.
    Ecdsa,
    /// Anything else.
    Other,
}

/// A certificate with its key, ready to be shown.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Name of the file.
    pub name: Box<str>,
    /// The certificate itself, as DER.
    pub leaf: Arc<[u8]>,
    /// What rustls needs.
    pub key: Arc<CertifiedKey>,
    /// Kind of its key.
    pub kind: Kind,
    /// Its OCSP response.
    pub staple: Arc<Staple>,
}

impl Identity {
    /// Out of what was loaded. Messages end without a full stop.
    ///
    /// # Errors
    /// What is missing, or does not belong together.
    pub fn new(name: &str, parts: &Parts) -> Result<Identity, String> {
        let Some(leaf) = &parts.leaf else {
            return Err(format!("unable to load certificate from file '{name}'"));
        };
        let Some(key) = &parts.key else { return Err(format!("No Private Key found in '{name}.key'")) };
        let signer = any_supported_type(key).map_err(|_| unusable(name, leaf))?;
        if !fits(leaf, &*signer) {
            return Err(format!("inconsistencies between private key and certificate loaded '{name}'"));
        }
        // The others go out as the file has them, whoever issued whom, unless roots are left out.
        let others = if parts.skip_root { path(leaf, &parts.chain) } else { parts.chain.clone() };
        let chain = std::iter::once(leaf.clone()).chain(others).collect();
        let kind = match signer.algorithm() {
            rustls::SignatureAlgorithm::RSA => Kind::Rsa,
            rustls::SignatureAlgorithm::ECDSA => Kind::Ecdsa,
            _ => Kind::Other,
        };
        let key = CertifiedKey::new(chain, signer);
        let staple = Arc::new(Staple::new(parts.ocsp.as_ref()));
        let leaf = key.cert.first().map(|c| &**c).unwrap_or_default().into();
        Ok(Identity { name: name.into(), leaf, key: Arc::new(key), kind, staple })
    }

    /// The names that it is for: DNS names and common names, in lower case.
    pub fn names(&self) -> Vec<String> {
        let Some(cert) = Certificate::parse(&self.leaf) else { return Vec::new() };
        let names = cert.dns_names().chain(cert.common_names());
        let mut out: Vec<String> = Vec::new();
        for name in names.filter_map(|n| Some(std::str::from_utf8(n).ok()?.to_ascii_lowercase())) {
            if !out.contains(&name) {
                out.push(name);
            }
        }
        out
    }
}

/// The way from a certificate up to the root of its chain, without the root: what a client needs that knows
/// the root (`ssl-skip-self-issued-ca`). What does not belong to it is left out, too, as by OpenSSL.
fn path(leaf: &CertificateDer<'_>, chain: &[CertificateDer<'static>]) -> Vec<CertificateDer<'static>> {
    let known: Vec<_> = chain.iter().filter_map(|der| Some((der, Certificate::parse(der)?))).collect();
    let mut out = Vec::new();
    let mut next = Certificate::parse(leaf).filter(|c| !c.is_self_issued()).map(|c| c.issuer);
    // A circle ends where all have been taken.
    while let Some(issuer) = next.take().filter(|_| out.len() < known.len()) {
        let Some((der, found)) = known.iter().find(|(_, c)| c.subject == issuer) else { break };
        if !found.is_self_issued() {
            out.push((*der).clone());
            next = Some(found.issuer);
        }
    }
    out
}

/// Why a key can't be used: RSA keys that are too short, or a kind that is not here.
fn unusable(name: &str, leaf: &CertificateDer<'_>) -> String {
    const SHORTEST: u32 = 2048;
    let kind = Certificate::parse(leaf).map(|c| crate::text::key(&c)).unwrap_or_default();
    match kind.strip_prefix("RSA").and_then(|bits| bits.parse::<u32>().ok()) {
        Some(bits) if bits < SHORTEST => {
            format!("unable to load SSL certificate into SSL Context '{name}': ee key too small")
        }
        _ => format!("unable to load private key from file '{name}'"),
    }
}

/// What a certificate is made of, as it was loaded.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The certificate itself: the first of its file.
    pub leaf: Option<CertificateDer<'static>>,
    /// The others of the file in order.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: Option<Arc<PrivateKeyDer<'static>>>,
    /// OCSP response, as DER.
    pub ocsp: Option<Arc<[u8]>>,
    /// Issuer, for OCSP.
    pub issuer: Option<CertificateDer<'static>>,
    /// List of signed certificate timestamps.
    pub sctl: Option<Arc<[u8]>>,
    /// Roots are not sent (`ssl-skip-self-issued-ca`).
    pub skip_root: bool,
}

impl Parts {
    /// Takes the certificates and the key of a PEM file, in the place of those at hand.
    ///
    /// # Errors
    /// It holds no certificate.
    pub fn take_pem(&mut self, found: Pem) -> Result<(), String> {
        let mut all = found.certificates.into_iter();
        let leaf = all.next().ok_or("no start line")?;
        if Certificate::parse(&leaf).is_none() {
            return Err("wrong tag".into());
        }
        (self.leaf, self.chain) = (Some(leaf), all.collect());
        self.key = found.key.map(Arc::new);
        Ok(())
    }
}

/// What a PEM file holds.
#[derive(Debug, Default)]
pub struct Pem {
    /// Certificates in order.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The first private key.
    pub key: Option<PrivateKeyDer<'static>>,
    /// Revocation lists.
    pub crls: Vec<Vec<u8>>,
}

/// Reads the sections of PEM text; others than certificates, keys and revocation lists are left out.
///
/// # Errors
/// When a section is broken.
pub fn pem(text: &[u8]) -> Result<Pem, String> {
    let mut out = Pem::default();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text) {
        let (kind, der) = section.map_err(|e| format!("{e}"))?;
        match kind {
            SectionKind::Certificate => out.certificates.push(der.into()),
            SectionKind::PrivateKey if out.key.is_none() => {
                out.key = Some(PrivateKeyDer::Pkcs8(der.into()));
            }
            SectionKind::RsaPrivateKey if out.key.is_none() => {
                out.key = Some(PrivateKeyDer::Pkcs1(der.into()));
            }
            SectionKind::EcPrivateKey if out.key.is_none() => {
                out.key = Some(PrivateKeyDer::Sec1(der.into()));
            }
            SectionKind::Crl => out.crls.push(der),
            _ => {}
        }
    }
    Ok(out)
}

/// What the system says, as C programs say it.
pub fn told(e: &std::io::Error) -> String {
    e.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}

/// Whether a certificate is for a key, as far as the key tells.
fn fits(leaf: &CertificateDer<'_>, signer: &dyn SigningKey) -> bool {
    let own = signer.public_key();
    Certificate::parse(leaf).is_some_and(|c| own.as_ref().is_none_or(|own| c.spki == own.as_ref()))
}

/// A list of signed certificate timestamps: its length, then items behind theirs (RFC 6962, section 3.3).
pub(crate) fn is_timestamps(bytes: &[u8]) -> bool {
    let mut whole = crate::hello::Cursor(bytes);
    let Some(inside) = whole.vector(2).filter(|i| !i.is_empty() && whole.0.is_empty()) else { return false };
    let mut items = crate::hello::Cursor(inside);
    while !items.0.is_empty() {
        if items.vector(2).is_none_or(<[u8]>::is_empty) {
            return false;
        }
    }
    true
}

/// Whether a private key is that of a certificate, as far as the key tells.
pub(crate) fn belongs(leaf: &CertificateDer<'_>, key: &PrivateKeyDer<'_>) -> bool {
    any_supported_type(key).map_or(true, |signer| fits(leaf, &*signer))
}

/// The certificates of a file or of the files of a folder, as trust anchors.
///
/// # Errors
/// What can't be read.
pub fn authorities(path: &str) -> Result<Pem, String> {
    let mut out = Pem::default();
    let files = if path == "@system-ca" { system() } else { list(path)? };
    for file in files {
        let text = outside::read(&file).map_err(|e| e.to_string())?;
        let found = pem(&text)?;
        out.certificates.extend(found.certificates);
        out.crls.extend(found.crls);
    }
    Ok(out)
}

/// Why what was read from a single file makes nobody trusted and revokes nothing.
pub fn no_authorities(path: &str, found: &Pem) -> Option<&'static str> {
    if path == "@system-ca" || outside::is_folder(path) {
        return None;
    }
    if found.certificates.is_empty() && found.crls.is_empty() {
        return Some("no certificate or crl found");
    }
    found.certificates.iter().any(|c| Certificate::parse(c).is_none()).then_some("wrong tag")
}

fn system() -> Vec<String> {
    let places =
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
    places.iter().filter(|p| outside::exists(p)).take(1).map(|p| (*p).to_owned()).collect()
}

fn list(path: &str) -> Result<Vec<String>, String> {
    if !outside::is_folder(path) {
        return Ok(vec![path.to_owned()]);
    }
    folder(path, |name| [".pem", ".crt", ".cer", ".crl"].iter().any(|end| name.ends_with(end)))
}

/// The files of a folder that `wanted` likes, by name; those that begin with a dot are left out.
///
/// # Errors
/// When the folder can't be read.
pub fn folder(path: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let mut names = outside::names(path).map_err(|e| e.to_string())?;
    names.retain(|n| !n.starts_with('.') && wanted(n));
    names.sort();
    Ok(names.into_iter().map(|n| format!("{path}/{n}")).filter(|p| outside::is_file(p)).collect())
}

/// A private key as PKCS #8 (RFC 5958), whatever form it came in.
pub fn pkcs8(key: &PrivateKeyDer<'_>) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0];
    const EC: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
    let wrapped = |algorithm: &[u8], inner: &[u8]| {
        encode(0x30, &[&[2, 1, 0], algorithm, &encode(4, inner)[..]].concat())
    };
    Some(match key {
        PrivateKeyDer::Pkcs8(der) => der.secret_pkcs8_der().to_vec(),
        PrivateKeyDer::Pkcs1(der) => wrapped(RSA, der.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(der) => {
            // What names the curve moves out of the key (RFC 5915, section 3).
            let mut parts = Der(Der(der.secret_sec1_der()).element()?.content);
            let (mut inner, mut curve) = (Vec::new(), None);
            while let Some(part) = parts.element() {
                match part.tag {
                    0xa0 => curve = Some(part.content),
                    _ => inner.extend_from_slice(part.whole),
                }
            }
            wrapped(&encode(0x30, &[EC, curve?].concat()), &encode(0x30, &inner))
        }
        _ => return None,
    })
}
