//! Certificates made while clients wait (manual, `generate-certificates`, `ca-sign-file`).
//!
//! A client that asks for a name without a certificate gets one that the authority of the bind line signs for
//! it, with the key of the line's default certificate. Signing is dear, so what was made is kept, the least
//! recently used going first.

use base::outside;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{Digest, SHA256, SHA384, SHA512, digest};
use aws_lc_rs::rand::{SystemRandom, fill};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::files::{self, Identity, pem};
use crate::locked::{self, Phrases};
use crate::ocsp::sha1;
use crate::server::Entry;
use crate::staple::{Always, Staple};
use x509::{Certificate, Der, encode};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const BITS: u8 = 0x03;
const UTF8: u8 = 0x0c;
const TIME: u8 = 0x18;
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
pub(crate) const DAY: u64 = 86_400;
/// Longest common name (RFC 5280, appendix A).
const LONGEST_CN: usize = 64;

/// How an authority signs.
pub(crate) enum Signer {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair, usize),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn new(key: &PrivateKeyDer<'_>) -> Option<Signer> {
        let rsa = match key {
            PrivateKeyDer::Pkcs8(k) => RsaKeyPair::from_pkcs8(k.secret_pkcs8_der()).ok(),
            PrivateKeyDer::Pkcs1(k) => RsaKeyPair::from_der(k.secret_pkcs1_der()).ok(),
            _ => None,
        };
        if let Some(rsa) = rsa {
            return Some(Signer::Rsa(rsa));
        }
        let curves = [
            (&ECDSA_P256_SHA256_ASN1_SIGNING, 32),
            (&ECDSA_P384_SHA384_ASN1_SIGNING, 48),
            (&ECDSA_P521_SHA512_ASN1_SIGNING, 64),
        ];
        for (curve, len) in curves {
            let pair = match key {
                PrivateKeyDer::Pkcs8(k) => EcdsaKeyPair::from_pkcs8(curve, k.secret_pkcs8_der()).ok(),
                PrivateKeyDer::Sec1(k) => EcdsaKeyPair::from_private_key_der(curve, k.secret_sec1_der()).ok(),
                _ => None,
            };
            if let Some(pair) = pair {
                return Some(Signer::Ecdsa(pair, len));
            }
        }
        match key {
            PrivateKeyDer::Pkcs8(k) => {
                Some(Signer::Ed25519(Ed25519KeyPair::from_pkcs8_maybe_unchecked(k.secret_pkcs8_der()).ok()?))
            }
            _ => None,
        }
    }

    /// The algorithm's identifier, as DER.
    pub(crate) fn algorithm(&self) -> Vec<u8> {
        let (oid, null): (&[u8], &[u8]) = match self {
            Signer::Rsa(_) => (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], &[5, 0]),
            Signer::Ecdsa(..) => (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], &[]),
            Signer::Ed25519(_) => (&[0x2b, 0x65, 0x70], &[]),
        };
        encode(SEQUENCE, &[&encode(OID, oid), null].concat())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        match self {
            Signer::Rsa(pair) => {
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut out).ok()?;
                Some(out)
            }
            Signer::Ecdsa(pair, len) => {
                // SHA-256 whatever the curve, as HAProxy signs. ECDSA takes a hash as a number: zeros in
                // front of it change nothing, and it is as long as the library wants it for the curve.
                let mut hash = vec![0; len - 32];
                hash.extend_from_slice(digest(&SHA256, message).as_ref());
                let of_curve = match len {
                    32 => &SHA256,
                    48 => &SHA384,
                    _ => &SHA512,
                };
                let hash = Digest::import_less_safe(&hash, of_curve).ok()?;
                Some(pair.sign_digest(&hash).ok()?.as_ref().to_vec())
            }
            Signer::Ed25519(pair) => Some(pair.sign(message).as_ref().to_vec()),
        }
    }
}

/// Who signs certificates for a bind line.
pub struct Authority {
    certificate: CertificateDer<'static>,
    signer: Signer,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// From a file with a certificate, and its key there or beside it, which `phrases` may open.
    ///
    /// # Errors
    /// What is missing, in HAProxy's words.
    pub fn from_file(path: &str, phrases: &Phrases) -> Result<Authority, String> {
        let text = outside::read(path)
            .map_err(|_| format!("Chain loading failed: cannot open the file '{path}'."))?;
        let mut found = pem(&locked::open(&text, path, phrases).text)
            .map_err(|e| format!("Chain loading failed: {e}."))?;
        if found.key.is_none() {
            let name = format!("{path}.key");
            let beside = outside::read(&name).ok();
            found.key = beside.and_then(|text| files::key(&text, &name, phrases).ok()?);
        }
        let missing = || format!("Chain loading failed: No Private Key found in '{path}.key'.");
        let key = found.key.ok_or_else(missing)?;
        let certificate = found.certificates.into_iter().next();
        let certificate = certificate.ok_or("Chain loading failed: no certificate in it.")?;
        if Certificate::parse(&certificate).is_none() {
            return Err("Chain loading failed: its certificate can't be read.".into());
        }
        let signer = Signer::new(&key).ok_or("Chain loading failed: its key can't be used.")?;
        if !files::belongs(&certificate, &key) {
            return Err(format!(
                "Chain loading failed: inconsistencies between private key and certificate loaded '{path}'."
            ));
        }
        Ok(Authority { certificate, signer })
    }

    /// A certificate for a name and a key, as DER.
    fn certify(&self, name: &str, spki: &[u8], now: u64) -> Option<Vec<u8>> {
        let issuer = Certificate::parse(&self.certificate)?;
        let mut serial = [0; 16];
        fill(&mut serial).ok()?;
        serial[0] = serial[0] & 0x3f | 0x40;
        let mut subject = Der(issuer.subject).expect(SEQUENCE)?.content.to_vec();
        if name.len() <= LONGEST_CN {
            subject.extend(name_of(name));
        }
        let algorithm = self.signer.algorithm();
        let dates = [date(now.saturating_sub(DAY)), date(now + 365 * DAY)].concat();
        let signed = encode(
            SEQUENCE,
            &[
                encode(0xa0, &encode(INTEGER, &[2])),
                encode(INTEGER, &serial),
                algorithm.clone(),
                issuer.subject.to_vec(),
                encode(SEQUENCE, &dates),
                encode(SEQUENCE, &subject),
                spki.to_vec(),
                encode(0xa3, &encode(SEQUENCE, &extensions(name, spki, &issuer)?)),
            ]
            .concat(),
        );
        let signature = [&[0][..], &self.signer.sign(&signed)?].concat();
        Some(encode(SEQUENCE, &[signed, algorithm, encode(BITS, &signature)].concat()))
    }
}

/// Basic constraints, ids of both keys, usage, and the name.
fn extensions(name: &str, spki: &[u8], issuer: &Certificate<'_>) -> Option<Vec<u8>> {
    let one =
        |oid: &[u8], value: &[u8]| encode(SEQUENCE, &[encode(OID, oid), encode(OCTETS, value)].concat());
    let mut parts = Der(Der(spki).expect(SEQUENCE)?.content);
    parts.expect(SEQUENCE)?;
    let own = sha1(parts.expect(BITS)?.content.get(1..)?);
    let theirs = match issuer.extension(&[0x55, 0x1d, 0x0e]).and_then(|e| Der(e).expect(OCTETS)) {
        Some(id) => id.content.to_vec(),
        None => sha1(issuer.key()?.1),
    };
    Some(
        [
            one(&[0x55, 0x1d, 0x13], &encode(SEQUENCE, &[])),
            one(&[0x55, 0x1d, 0x0e], &encode(OCTETS, &own)),
            one(&[0x55, 0x1d, 0x23], &encode(SEQUENCE, &encode(0x80, &theirs))),
            // Digital signature, non repudiation, key encipherment.
            one(&[0x55, 0x1d, 0x0f], &encode(BITS, &[5, 0xe0])),
            one(&[0x55, 0x1d, 0x11], &encode(SEQUENCE, &encode(0x82, name.as_bytes()))),
        ]
        .concat(),
    )
}

/// A common name, as part of a subject.
pub(crate) fn name_of(name: &str) -> Vec<u8> {
    let pair = [encode(OID, COMMON_NAME), encode(UTF8, name.as_bytes())].concat();
    encode(SET, &encode(SEQUENCE, &pair))
}

/// `YYYYMMDDhhmmssZ`.
pub(crate) fn date(seconds: u64) -> Vec<u8> {
    let days = i64::try_from(seconds / DAY).unwrap_or(0) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * from_march + 2) / 5 + 1, (from_march + 2) % 12 + 1);
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
    encode(TIME, format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}Z").as_bytes())
}

/// Entries by name, and names by when they were used last.
#[derive(Debug, Default)]
struct Cache {
    entries: HashMap<Box<str>, (u64, Arc<Entry>)>,
    ages: BTreeMap<u64, Box<str>>,
    clock: u64,
}

impl Cache {
    fn get(&mut self, name: &str) -> Option<Arc<Entry>> {
        self.clock += 1;
        let (used, entry) = self.entries.get_mut(name)?;
        let key = self.ages.remove(used)?;
        *used = self.clock;
        self.ages.insert(self.clock, key);
        Some(entry.clone())
    }

    fn put(&mut self, name: &str, entry: Arc<Entry>, most: usize) {
        if most == 0 {
            return;
        }
        while self.entries.len() >= most {
            let Some((_, oldest)) = self.ages.pop_first() else { break };
            self.entries.remove(&oldest);
        }
        self.clock += 1;
        if let Some((used, _)) = self.entries.insert(name.into(), (self.clock, entry)) {
            self.ages.remove(&used);
        }
        self.ages.insert(self.clock, name.into());
    }
}

/// What makes certificates for a bind line.
#[derive(Debug)]
pub struct Forge {
    authority: Arc<Authority>,
    most: usize,
    cache: Mutex<Cache>,
}

impl Forge {
    /// With room for `most` certificates (`tune.ssl.ssl-ctx-cache-size`).
    pub fn new(authority: Arc<Authority>, most: usize) -> Forge {
        Forge { authority, most, cache: Mutex::default() }
    }

    /// The entry for a name: as `base`, with a certificate for the name.
    pub fn entry(&self, name: &[u8], base: &Entry) -> Option<Arc<Entry>> {
        let name = std::str::from_utf8(name).ok().filter(|n| is_host(n))?.to_ascii_lowercase();
        if let Some(known) = self.cache().get(&name) {
            return Some(known);
        }
        let made = Arc::new(self.make(&name, base)?);
        self.cache().put(&name, made.clone(), self.most);
        Some(made)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, name: &str, base: &Entry) -> Option<Entry> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        let spki = Certificate::parse(&base.identity.leaf)?.spki;
        let leaf = self.authority.certify(name, spki, now)?;
        let chain = vec![leaf.clone().into(), self.authority.certificate.clone()];
        let key = Arc::new(CertifiedKey::new(chain, base.key.key.clone()));
        let mut config = (*base.config).clone();
        let staple = Arc::new(Staple::default());
        config.cert_resolver = Arc::new(Always::new(key.clone(), staple.clone()));
        let identity = Identity { leaf: leaf.into(), key: key.clone(), staple, ..(*base.identity).clone() };
        Some(Entry::new(Arc::new(identity), (config, key), base.clients.clone(), base.ktls))
    }
}

/// Whether a certificate may be made for it: letters, digits, dots and hyphens.
fn is_host(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
    (1..=253).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509::seconds;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for at in [0, 951_782_400, 951_868_799, 1_709_164_800, 1_795_284_000, 4_107_542_399] {
            let written = date(at);
            assert_eq!(seconds(&written[2..]), Some(at as i64), "{at}");
        }
    }

    #[test]
    fn what_the_authority_signs_is_believed_by_who_believes_it() {
        use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
        let kinds = [
            &rcgen::PKCS_ECDSA_P256_SHA256,
            &rcgen::PKCS_ECDSA_P384_SHA384,
            &rcgen::PKCS_ECDSA_P521_SHA512,
            &rcgen::PKCS_ED25519,
        ];
        for kind in kinds {
            let key = KeyPair::generate_for(kind).unwrap();
            let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let certificate = params.self_signed(&key).unwrap().der().clone();
            let signer = Signer::new(&PrivateKeyDer::Pkcs8(key.serialize_der().into())).unwrap();
            let authority = Authority { certificate: certificate.clone(), signer };
            let leaf_key = KeyPair::generate().unwrap();
            let template = CertificateParams::new(vec!["x".into()]).unwrap().self_signed(&leaf_key).unwrap();
            let spki = Certificate::parse(template.der()).unwrap().spki;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let leaf = authority.certify("some.example", spki, now.as_secs()).unwrap();
            let leaf = CertificateDer::from(leaf);
            let cert = webpki::EndEntityCert::try_from(&leaf).unwrap();
            let name = rustls_pki_types::ServerName::try_from("some.example").unwrap();
            cert.verify_is_valid_for_subject_name(&name).unwrap();
            let anchor = webpki::anchor_from_trusted_cert(&certificate).unwrap();
            cert.verify_for_usage(
                webpki::ALL_VERIFICATION_ALGS,
                &[anchor],
                &[],
                rustls_pki_types::UnixTime::since_unix_epoch(now),
                webpki::KeyUsage::server_auth(),
                None,
                None,
            )
            .unwrap();
        }
    }

    #[test]
    fn names_that_are_no_hosts_get_nothing() {
        for bad in ["", "a b", "a\0", "é", "*.x"] {
            assert!(!is_host(bad), "{bad:?}");
        }
        assert!(is_host("a-b.example"));
    }
}
