//! Signature schemes by their names in configurations (manual, `sigalgs`, `client-sigalgs`).
//!
//! A list says what one side may sign with and what it takes from the other. rustls knows no such list: who
//! shows a certificate is held to it by a wrapped key, who verifies one by the schemes that the verifier
//! names and accepts.

use std::sync::Arc;

use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::SubjectPublicKeyInfoDer;

/// Names of TLS 1.3 and, after it, of OpenSSL's form with a plus sign; in lower case.
const SCHEMES: &[(&str, &[&str], SignatureScheme)] = &[
    ("ecdsa_secp256r1_sha256", &["ecdsa+sha256"], SignatureScheme::ECDSA_NISTP256_SHA256),
    ("ecdsa_secp384r1_sha384", &["ecdsa+sha384"], SignatureScheme::ECDSA_NISTP384_SHA384),
    ("ecdsa_secp521r1_sha512", &["ecdsa+sha512"], SignatureScheme::ECDSA_NISTP521_SHA512),
    ("ed25519", &[], SignatureScheme::ED25519),
    ("rsa_pss_rsae_sha256", &["rsa-pss+sha256", "pss+sha256"], SignatureScheme::RSA_PSS_SHA256),
    ("rsa_pss_rsae_sha384", &["rsa-pss+sha384", "pss+sha384"], SignatureScheme::RSA_PSS_SHA384),
    ("rsa_pss_rsae_sha512", &["rsa-pss+sha512", "pss+sha512"], SignatureScheme::RSA_PSS_SHA512),
    ("rsa_pkcs1_sha256", &["rsa+sha256"], SignatureScheme::RSA_PKCS1_SHA256),
    ("rsa_pkcs1_sha384", &["rsa+sha384"], SignatureScheme::RSA_PKCS1_SHA384),
    ("rsa_pkcs1_sha512", &["rsa+sha512"], SignatureScheme::RSA_PKCS1_SHA512),
];

/// Names that OpenSSL knows and rustls has nothing for.
const FOREIGN: &[&str] = &[
    "ed448",
    "rsa_pss_pss_sha256",
    "rsa_pss_pss_sha384",
    "rsa_pss_pss_sha512",
    "rsa_pkcs1_sha1",
    "rsa_pkcs1_sha224",
    "ecdsa_sha1",
    "ecdsa_sha224",
    "rsa+sha1",
    "rsa+sha224",
    "ecdsa+sha1",
    "ecdsa+sha224",
    "dsa+sha1",
    "dsa+sha224",
    "dsa+sha256",
    "dsa+sha384",
    "dsa+sha512",
];

/// The schemes of a list in its order; the words of which rustls has none are added to `ignored`.
///
/// # Errors
/// A word that names no scheme at all, or when nothing usable is left.
pub(crate) fn named(list: &str, ignored: &mut Vec<String>) -> Result<Arc<[SignatureScheme]>, String> {
    let mut out = Vec::new();
    for word in list.split(':').filter(|w| !w.is_empty()) {
        let plain = word.trim_start_matches('?').to_ascii_lowercase();
        match SCHEMES.iter().find(|(name, others, _)| *name == plain || others.contains(&&*plain)) {
            Some((.., scheme)) if !out.contains(scheme) => out.push(*scheme),
            Some(_) => {}
            None if word.starts_with('?') || FOREIGN.contains(&&*plain) => ignored.push(word.to_owned()),
            None => return Err(format!("unable to set SSL Signature Algorithm list to '{list}'")),
        }
    }
    match out.is_empty() {
        true => Err(format!("no usable signature algorithm is left of '{list}'")),
        false => Ok(out.into()),
    }
}

/// Those of `have` that `wanted` names, in its order; all without it.
pub(crate) fn common(have: Vec<SignatureScheme>, wanted: Option<&[SignatureScheme]>) -> Vec<SignatureScheme> {
    match wanted {
        None => have,
        Some(wanted) => wanted.iter().copied().filter(|s| have.contains(s)).collect(),
    }
}

/// A key that signs with some schemes only.
#[derive(Debug)]
struct Limited {
    key: Arc<dyn SigningKey>,
    schemes: Arc<[SignatureScheme]>,
}

impl SigningKey for Limited {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        // One after the other: the key has an order of its own.
        let mut mine = self.schemes.iter().filter(|s| offered.contains(s));
        mine.find_map(|s| self.key.choose_scheme(&[*s]))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

/// A certificate whose key signs with these schemes only.
pub(crate) fn limited(
    key: &Arc<CertifiedKey>,
    schemes: Option<&Arc<[SignatureScheme]>>,
) -> Arc<CertifiedKey> {
    let Some(schemes) = schemes else { return key.clone() };
    let limited = Limited { key: key.key.clone(), schemes: schemes.clone() };
    let mut out = (**key).clone();
    out.key = Arc::new(limited);
    Arc::new(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_names_are_understood_and_strangers_refused() {
        let mut ignored = Vec::new();
        let list = named("RSA-PSS+SHA256:ecdsa_secp384r1_sha384:DSA+SHA256:?odd", &mut ignored).unwrap();
        assert_eq!(*list, [SignatureScheme::RSA_PSS_SHA256, SignatureScheme::ECDSA_NISTP384_SHA384]);
        assert_eq!(ignored, ["DSA+SHA256", "?odd"]);
        assert!(named("odd", &mut ignored).is_err());
        assert!(named("ed448", &mut ignored).is_err(), "nothing is left");
    }
}
