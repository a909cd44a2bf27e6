//! Certificates that stand in for missing ones (manual, section 12.7.1, `generate-dummy`).
//!
//! A configuration can then be tried before anybody made a certificate. It is signed by itself, says
//! `CN=expired` and is out of date from the beginning, as HAProxy's are, so that nobody takes it for a real
//! one.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair,
};
use rustls_pki_types::PrivateKeyDer;

use crate::files::Parts;
use crate::forge::{DAY, Signer, date, name_of};
use x509::encode;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;

/// What `load` says of the certificate to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// `generate-dummy on`.
    pub on: bool,
    /// `keytype`.
    pub kind: Option<Box<str>>,
    /// `bits`.
    pub bits: Option<i64>,
    /// `curves`.
    pub curves: Option<Box<str>>,
}

/// The key to make.
enum Make {
    Rsa(KeySize),
    Ecdsa(&'static EcdsaSigningAlgorithm),
}

impl Recipe {
    /// Makes the certificate and its key; `None`: none is wanted. Messages end without a full stop.
    ///
    /// # Errors
    /// What is wrong with the words.
    pub fn make(&self) -> Result<Option<Parts>, String> {
        if !self.on {
            return match (&self.kind, self.bits, &self.curves) {
                (None, None, None) => Ok(None),
                _ => {
                    Err("keyword 'keytype', 'bits' and 'curves' require 'generate-dummy' set to 'on'".into())
                }
            };
        }
        let made = match self.chosen()? {
            Make::Rsa(size) => rsa_key(size),
            Make::Ecdsa(curve) => ecdsa_key(curve),
        };
        let made = made.and_then(|(key, spki)| self_signed(key, &spki));
        made.map(Some).ok_or_else(|| "unable to generate a private key and its certificate".into())
    }

    fn chosen(&self) -> Result<Make, String> {
        match self.kind.as_deref() {
            None | Some("RSA") => Ok(Make::Rsa(match self.bits {
                None | Some(2048) => KeySize::Rsa2048,
                Some(3072) => KeySize::Rsa3072,
                Some(4096) => KeySize::Rsa4096,
                Some(8192) => KeySize::Rsa8192,
                Some(n) => return Err(format!("'bits' can be 2048, 3072, 4096 or 8192, not {n}")),
            })),
            Some("ECDSA") => Ok(Make::Ecdsa(match self.curves.as_deref() {
                None | Some("P-384" | "secp384r1") => &ECDSA_P384_SHA384_ASN1_SIGNING,
                Some("P-256" | "prime256v1" | "secp256r1") => &ECDSA_P256_SHA256_ASN1_SIGNING,
                Some("P-521" | "secp521r1") => &ECDSA_P521_SHA512_ASN1_SIGNING,
                Some(other) => return Err(format!("unsupported curves '{other}'")),
            })),
            Some(_) => Err("keyword 'keytype' requires either 'RSA' or 'ECDSA'".into()),
        }
    }
}

/// A key as PKCS #8, and its public half with its algorithm.
type Pair = (PrivateKeyDer<'static>, Vec<u8>);

fn rsa_key(size: KeySize) -> Option<Pair> {
    let pair = rsa::KeyPair::generate(size).ok()?;
    let key = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).ok()?;
    let public = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key()).ok()?;
    Some((PrivateKeyDer::Pkcs8(key.as_ref().to_vec().into()), public.as_ref().to_vec()))
}

fn ecdsa_key(curve: &'static EcdsaSigningAlgorithm) -> Option<Pair> {
    let pair = EcdsaKeyPair::generate(curve).ok()?;
    let key = pair.to_pkcs8v1().ok()?;
    let public = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key()).ok()?;
    Some((PrivateKeyDer::Pkcs8(key.as_ref().to_vec().into()), public.as_ref().to_vec()))
}

/// A certificate that was valid yesterday.
fn self_signed(key: PrivateKeyDer<'static>, spki: &[u8]) -> Option<Parts> {
    let signer = Signer::new(&key)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let name = encode(SEQUENCE, &name_of("expired"));
    let algorithm = signer.algorithm();
    let dates = [date(now.saturating_sub(2 * DAY)), date(now.saturating_sub(DAY))].concat();
    let signed = [
        encode(0xa0, &encode(INTEGER, &[2])),
        encode(INTEGER, &[0]),
        algorithm.clone(),
        name.clone(),
        encode(SEQUENCE, &dates),
        name,
        spki.to_vec(),
    ];
    let signed = encode(SEQUENCE, &signed.concat());
    let signature = [&[0][..], &signer.sign(&signed)?].concat();
    let leaf = encode(SEQUENCE, &[signed, algorithm, encode(BITS, &signature)].concat());
    Some(Parts { leaf: Some(leaf.into()), key: Some(Arc::new(key)), ..Parts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Identity, Kind};
    use rustls_pki_types::UnixTime;
    use std::time::Duration;

    fn made(kind: Option<&str>, bits: Option<i64>, curves: Option<&str>) -> Result<Option<Parts>, String> {
        Recipe { on: true, kind: kind.map(Into::into), bits, curves: curves.map(Into::into) }.make()
    }

    #[test]
    fn what_is_made_can_be_shown_and_verifies_with_its_own_key() {
        let kinds = [
            (made(None, None, None), Kind::Rsa),
            (made(Some("ECDSA"), None, None), Kind::Ecdsa),
            (made(Some("ECDSA"), None, Some("P-256")), Kind::Ecdsa),
            (made(Some("ECDSA"), None, Some("secp521r1")), Kind::Ecdsa),
        ];
        for (parts, kind) in kinds {
            let identity = Identity::new("x", &parts.unwrap().unwrap()).unwrap();
            assert_eq!(identity.kind, kind);
            assert_eq!(identity.names(), ["expired"]);
            let der = identity.key.cert[0].clone();
            let anchor = webpki::anchor_from_trusted_cert(&der).unwrap();
            let leaf = webpki::EndEntityCert::try_from(&der).unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let verdict = |hours: u64| {
                let at = UnixTime::since_unix_epoch(now - Duration::from_secs(3600 * hours));
                let (all, anchors) = (webpki::ALL_VERIFICATION_ALGS, [anchor.clone()]);
                let usage = webpki::KeyUsage::server_auth();
                leaf.verify_for_usage(all, &anchors, &[], at, usage, None, None).map(|_| ())
            };
            assert_eq!(verdict(36), Ok(()));
            assert!(matches!(verdict(0), Err(webpki::Error::CertExpired { .. })));
        }
    }

    #[test]
    fn words_that_fit_nothing_are_refused() {
        assert_eq!(Recipe::default().make().unwrap().map(|_| ()), None);
        let off = Recipe { bits: Some(2048), ..Recipe::default() };
        assert!(off.make().unwrap_err().contains("require 'generate-dummy'"));
        assert!(made(Some("DSA"), None, None).unwrap_err().contains("'keytype'"));
        assert!(made(Some("ECDSA"), None, Some("P-256:P-384")).unwrap_err().contains("'P-256:P-384'"));
        assert!(made(None, Some(1000), None).unwrap_err().contains("1000"));
    }
}
