//! Certificates and keys from files (manual, section 5.1, `crt`; section 12.7).
//!
//! A file holds a certificate with its chain and often its key, in any order; what is missing stands beside it under the
//! same name with `.key`, `.issuer`, `.ocsp` or `.sctl` behind it.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::x509::Certificate;

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
}

impl Identity {
    /// The names that it is for: DNS names and common names, in lower case.
    pub fn names(&self) -> Vec<String> {
        let Some(cert) = Certificate::parse(&self.leaf) else { return Vec::new() };
        let names = cert.dns_names().chain(cert.common_names());
        let mut out: Vec<String> =
            names.filter_map(|n| Some(std::str::from_utf8(n).ok()?.to_ascii_lowercase())).collect();
        out.dedup();
        out
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

/// What to load, when more than one file makes an identity.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The certificate.
    pub certificate: Box<str>,
    /// Another file with the key.
    pub key: Option<Box<str>>,
    /// Another file with the issuer.
    pub issuer: Option<Box<str>>,
    /// An OCSP response.
    pub ocsp: Option<Box<str>>,
}

/// Loads a certificate with its key. Messages end without a full stop.
///
/// # Errors
/// What is wrong with the files, in HAProxy's words.
pub fn identity(sources: &Sources) -> Result<Identity, String> {
    let path = &*sources.certificate;
    let text = std::fs::read(path)
        .map_err(|_| format!("unable to stat SSL certificate from file '{path}' : {}", why(path)))?;
    let beside = |end: &str| std::fs::read(format!("{path}{end}")).ok();
    let mut found = pem(&text).map_err(|e| format!("unable to load certificate from file '{path}': {e}"))?;
    if let Some(other) = &sources.key {
        let text =
            std::fs::read(&**other).map_err(|_| format!("unable to load private key from file '{other}'"))?;
        found.key = pem(&text)?.key;
    }
    if found.key.is_none() {
        found.key = beside(".key").and_then(|t| pem(&t).ok()?.key);
    }
    if found.certificates.is_empty() {
        return Err(format!("unable to load certificate from file '{path}'"));
    }
    let Some(key) = found.key else {
        return Err(format!("No Private Key found in '{path}' or '{path}.key'"));
    };
    let signer =
        any_supported_type(&key).map_err(|_| format!("unable to load private key from file '{path}'"))?;
    let chain = ordered(found.certificates, &*signer)
        .ok_or_else(|| format!("inconsistencies between private key and certificate loaded '{path}'"))?;
    let kind = match signer.algorithm() {
        rustls::SignatureAlgorithm::RSA => Kind::Rsa,
        rustls::SignatureAlgorithm::ECDSA => Kind::Ecdsa,
        _ => Kind::Other,
    };
    let mut key = CertifiedKey::new(chain, signer);
    let ocsp = sources.ocsp.as_deref().map(|p| std::fs::read(p).ok()).unwrap_or_else(|| beside(".ocsp"));
    key.ocsp = ocsp.filter(|o| !o.is_empty());
    let leaf = key.cert.first().map(|c| &**c).unwrap_or_default().into();
    Ok(Identity { name: path.into(), leaf, key: Arc::new(key), kind })
}

fn why(path: &str) -> String {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => "No such file or directory".into(),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => "Permission denied".into(),
        _ => "cannot read".into(),
    }
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
