//! OCSP: what an authority says of a certificate (RFC 6960; manual, `crt`, `ocsp-update`).
//!
//! A certificate is known by its id: hashes of its issuer's name and key, and its number. Whoever has the
//! same id shares one response. Responses are read with the total cursor of [`x509`]; signatures
//! are checked where a response came over the network, not where an administrator gave it.

mod text;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use x509::{Certificate, Der, Element, encode as der, seconds};

#[cfg(test)]
use crate::text::hex;
pub use text::{id_text, text};

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const NULL: u8 = 0x05;
const INTEGER: u8 = 0x02;
const ENUMERATED: u8 = 0x0a;
const OCTETS: u8 = 0x04;
const BITS: u8 = 0x03;
const TIME: u8 = 0x18;
const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
const RESPONDER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1];
const ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
const USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
/// Longest response that is looked at.
const LONGEST: usize = 65_536;
/// A clock may be so far off, in seconds.
const SKEW: i64 = 300;

/// SHA-1, which ids are made of.
pub(crate) fn sha1(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec()
}

/// The id of a certificate, as DER: its parts hashed with SHA-1, as everybody does.
pub fn id(leaf: &[u8], issuer: &[u8]) -> Option<Vec<u8>> {
    let (leaf, issuer) = (Certificate::parse(leaf)?, Certificate::parse(issuer)?);
    let (_, key) = issuer.key()?;
    let algorithm = der(SEQUENCE, &[der(OID, SHA1), der(NULL, &[])].concat());
    let (name, key) = (der(OCTETS, &sha1(leaf.issuer)), der(OCTETS, &sha1(key)));
    Some(der(SEQUENCE, &[algorithm, name, key, der(INTEGER, leaf.serial)].concat()))
}

/// A request for one certificate.
pub fn request(id: &[u8]) -> Vec<u8> {
    let one = der(SEQUENCE, id);
    der(SEQUENCE, &der(SEQUENCE, &der(SEQUENCE, &one)))
}

/// Where a certificate says that its responder is: the first address.
pub fn responder(leaf: &[u8]) -> Option<String> {
    let leaf = Certificate::parse(leaf)?;
    let mut list = Der(Der(leaf.extension(ACCESS)?).expect(SEQUENCE)?.content);
    while let Some(access) = list.expect(SEQUENCE) {
        let mut parts = Der(access.content);
        if parts.expect(OID)?.content == RESPONDER
            && let Some(uri) = parts.element().filter(|e| e.tag == 0x86)
        {
            return String::from_utf8(uri.content.to_vec()).ok();
        }
    }
    None
}

/// What is known of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status<'a> {
    /// Not revoked.
    Good,
    /// Revoked: when, and why if that is said.
    Revoked(&'a [u8], Option<u8>),
    /// The responder does not know it.
    Unknown,
}

/// Why a response is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It can't be read.
    Broken,
    /// The responder did not want to answer.
    Unsuccessful,
    /// It is about none or about several certificates.
    Several,
    /// About another certificate.
    Foreign,
    /// Its time has not come.
    TooEarly,
    /// Its time is over, or it has no end.
    TooLate,
    /// Its signature is not the issuer's.
    Unsigned,
}

impl Refused {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Refused::Broken => "Unable to parse OCSP response",
            Refused::Unsuccessful => "OCSP response status not successful",
            Refused::Several => "OCSP response ignored because contains multiple single responses",
            Refused::Foreign => {
                "OCSP single response: Certificate ID does not match any certificate or issuer"
            }
            Refused::TooEarly => "OCSP single response: not yet valid",
            Refused::TooLate => "OCSP single response: no longer valid",
            Refused::Unsigned => "OCSP response: verification failed",
        }
    }
}

/// A response about one certificate.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The part that is signed.
    signed: &'a [u8],
    /// Name or hash of the key of who signed.
    responder: Element<'a>,
    produced: &'a [u8],
    /// The certificate's id, as DER.
    pub id: &'a [u8],
    /// What is known of it.
    pub status: Status<'a>,
    this_update: &'a [u8],
    next_update: Option<&'a [u8]>,
    extensions: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    certificates: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads one.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(bytes: &'a [u8]) -> Result<Response<'a>, Refused> {
        if bytes.len() > LONGEST {
            return Err(Refused::Broken);
        }
        let outer = Der(bytes).expect(SEQUENCE).ok_or(Refused::Broken)?;
        let mut outer = Der(outer.content);
        let status = outer.expect(ENUMERATED).ok_or(Refused::Broken)?;
        if status.content != [0] {
            return Err(Refused::Unsuccessful);
        }
        Response::basic(outer)
    }

    fn basic(mut outer: Der<'a>) -> Result<Response<'a>, Refused> {
        let inner = || -> Option<(Element<'a>, Der<'a>)> {
            let mut bytes = Der(Der(outer.expect(0xa0)?.content).expect(SEQUENCE)?.content);
            if bytes.expect(OID)?.content != BASIC {
                return None;
            }
            let mut basic = Der(Der(bytes.expect(OCTETS)?.content).expect(SEQUENCE)?.content);
            Some((basic.expect(SEQUENCE)?, basic))
        };
        let (signed, rest) = { inner }().ok_or(Refused::Broken)?;
        let mut data = Der(signed.content);
        data.expect(0xa0);
        let responder = data.element().filter(|e| matches!(e.tag, 0xa1 | 0xa2)).ok_or(Refused::Broken)?;
        let produced = data.expect(TIME).ok_or(Refused::Broken)?.content;
        let mut list = Der(data.expect(SEQUENCE).ok_or(Refused::Broken)?.content);
        let (Some(single), None) = (list.expect(SEQUENCE), list.element()) else {
            return Err(Refused::Several);
        };
        let extensions = data.expect(0xa1).map(|e| e.content).unwrap_or_default();
        let whole = Response::single(Der(single.content), rest).ok_or(Refused::Broken)?;
        Ok(Response { signed: signed.whole, responder, produced, extensions, ..whole })
    }

    fn single(mut single: Der<'a>, mut rest: Der<'a>) -> Option<Response<'a>> {
        let id = single.expect(SEQUENCE)?.whole;
        let status = single.element()?;
        let status = match status.tag {
            0x80 => Status::Good,
            0xa1 => {
                let mut parts = Der(status.content);
                let when = parts.expect(TIME)?.content;
                let why = parts.expect(0xa0).and_then(|e| Der(e.content).expect(ENUMERATED));
                Status::Revoked(when, why.and_then(|e| e.content.first().copied()))
            }
            0x82 => Status::Unknown,
            _ => return None,
        };
        let this_update = single.expect(TIME)?.content;
        let next_update = single.expect(0xa0).and_then(|e| Some(Der(e.content).expect(TIME)?.content));
        let algorithm = rest.expect(SEQUENCE)?.content;
        let (_, signature) = rest.expect(BITS)?.content.split_first()?;
        let certificates = rest.expect(0xa0).and_then(|e| Der(e.content).expect(SEQUENCE));
        Some(Response {
            signed: &[],
            responder: Element { tag: 0, content: &[], whole: &[] },
            produced: &[],
            id,
            status,
            this_update,
            next_update,
            extensions: &[],
            algorithm,
            signature,
            certificates: certificates.map(|c| c.content).unwrap_or_default(),
        })
    }

    /// Whether it may be told to clients now, in seconds since 1970; returns until when.
    ///
    /// # Errors
    /// Why it may not.
    pub fn valid_until(&self, now: i64) -> Result<i64, Refused> {
        let begin = seconds(self.this_update).ok_or(Refused::Broken)?;
        if begin > now + SKEW {
            return Err(Refused::TooEarly);
        }
        let end = self.next_update.and_then(seconds).ok_or(Refused::TooLate)?;
        if end <= now { Err(Refused::TooLate) } else { Ok(end) }
    }

    fn shown(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut list = Der(self.certificates);
        std::iter::from_fn(move || list.expect(SEQUENCE).map(|c| c.whole))
    }

    /// Whether the issuer signed it, itself or by one to whom it gave that right (RFC 6960 section 4.2.2.2).
    pub fn is_signed_by(&self, issuer: &[u8], now: i64) -> bool {
        let Some(issuer) = Certificate::parse(issuer) else { return false };
        let signed = |cert: &Certificate<'_>| verifies(cert, self.algorithm, self.signed, self.signature);
        let delegated = |cert: &Certificate<'_>| {
            let usage = cert.extension(USAGE).and_then(|e| Der(e).expect(SEQUENCE));
            let mut usage = Der(usage.map(|e| e.content).unwrap_or_default());
            let may = std::iter::from_fn(|| usage.expect(OID)).any(|oid| oid.content == SIGNING);
            let timely = cert.times().is_some_and(|(from, to)| (from..=to).contains(&now));
            may && timely
                && cert.issuer == issuer.subject
                && verifies(&issuer, cert.signature_algorithm_id, cert.signed, cert.signature)
        };
        signed(&issuer) || self.shown().filter_map(Certificate::parse).any(|c| signed(&c) && delegated(&c))
    }
}

/// Whether the key of a certificate made a signature.
fn verifies(cert: &Certificate<'_>, algorithm: &[u8], signed: &[u8], signature: &[u8]) -> bool {
    let Some((of_key, key)) = cert.key() else { return false };
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.signature_verification_algorithms.all.iter().any(|a| {
        a.signature_alg_id().as_ref() == algorithm
            && a.public_key_alg_id().as_ref() == of_key
            && a.verify_signature(key, signed, signature).is_ok()
    })
}

#[cfg(test)]
mod tests;
