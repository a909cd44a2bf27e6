//! Certificates and keys from files (manual, section 5.1, `crt`; section 12.7).
//!
//! A file holds a certificate with its chain and often its key, in any order. `sources` says which files belong together.

mod sources;

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::staple::Staple;
use crate::x509::{Certificate, Der, encode};

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
        let signer =
            any_supported_type(key).map_err(|_| format!("unable to load private key from file '{name}'"))?;
        let all = std::iter::once(leaf).chain(&parts.chain).cloned().collect();
        let chain = ordered(all, &*signer)
            .ok_or_else(|| format!("inconsistencies between private key and certificate loaded '{name}'"))?;
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
}

impl Parts {
    /// Takes the certificates and the key of a PEM file, in the place of those at hand.
    ///
    /// # Errors
    /// It holds no certificate.
    pub fn take_pem(&mut self, found: Pem) -> Result<(), String> {
        let mut all = found.certificates.into_iter();
        let leaf = all.next().ok_or("no start line")?;
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

/// The chain with the certificate of the key in front, each followed by its issuer as far as those are there.
fn ordered(
    mut all: Vec<CertificateDer<'static>>,
    signer: &dyn SigningKey,
) -> Option<Vec<CertificateDer<'static>>> {
    let own = signer.public_key();
    let fits = |der: &CertificateDer<'_>| {
        let cert = Certificate::parse(der);
        cert.is_some_and(|c| own.as_ref().is_none_or(|own| c.spki == own.as_ref()))
    };
    let at = all.iter().position(fits)?;
    let mut chain = vec![all.remove(at)];
    while let Some(last) = chain.last().and_then(|c| Certificate::parse(c)) {
        if last.is_self_issued() {
            break;
        }
        let issuer = all.iter().position(|c| Certificate::parse(c).is_some_and(|c| c.subject == last.issuer));
        let Some(at) = issuer else { break };
        chain.push(all.remove(at));
    }
    Some(chain)
}

/// The certificates of a file or of the files of a folder, as trust anchors.
///
/// # Errors
/// What can't be read.
pub fn authorities(path: &str) -> Result<Pem, String> {
    let mut out = Pem::default();
    let files = if path == "@system-ca" { system() } else { list(path)? };
    for file in files {
        let text = std::fs::read(&file).map_err(|e| e.to_string())?;
        let found = pem(&text)?;
        out.certificates.extend(found.certificates);
        out.crls.extend(found.crls);
    }
    Ok(out)
}

fn system() -> Vec<String> {
    let places =
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
    places.iter().filter(|p| Path::new(p).exists()).take(1).map(|p| (*p).to_owned()).collect()
}

fn list(path: &str) -> Result<Vec<String>, String> {
    if !Path::new(path).is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    folder(path, |name| [".pem", ".crt", ".cer", ".crl"].iter().any(|end| name.ends_with(end)))
}

/// The files of a folder that `wanted` likes, by name; those that begin with a dot are left out.
///
/// # Errors
/// When the folder can't be read.
pub fn folder(path: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(path).map_err(|e| e.to_string())?;
    let mut names: Vec<_> = entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|n| !n.starts_with('.'))
        .collect();
    names.retain(|n| wanted(n));
    names.sort();
    Ok(names.into_iter().map(|n| format!("{path}/{n}")).filter(|p| Path::new(p).is_file()).collect())
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
