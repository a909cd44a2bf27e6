//! The errors of a chain in the order in which OpenSSL finds them, each with its depth.
//!
//! webpki stops at the first error that it meets, in an order of its own. Rules, logs and `crt-ignore-err`
//! name what OpenSSL reports: first what is missing of the chain, then extensions from the leaf up, then
//! revocation, then signatures and dates from the root down. Issuers are looked up among the trusted first
//! and by names and key identifiers, as there.

use rustls_pki_types::{CertificateDer, UnixTime};

use crate::verify::code;
use x509::{Certificate, Der};

/// A chain has no more certificates than this, which is what webpki follows, and some.
const LONGEST: usize = 12;

/// One error: OpenSSL's number, and how far above the leaf it is.
pub(crate) type Fault = (u8, u8);

/// Whether a certificate (the first) has a signature of another one (the second).
pub(crate) type Signed<'s> = &'s dyn Fn(&Certificate<'_>, &Certificate<'_>) -> bool;

/// For what a certificate is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Client,
    Server,
}

/// A chain as far as it could be put together, leaf first.
pub(crate) struct Chain<'a> {
    certificates: Vec<Certificate<'a>>,
    trusted: bool,
    /// Whether the last of them is one of the trusted, be the chain complete or not.
    reaches_trust: bool,
}

mod bits {
    pub const SIGN: u8 = 0x80;
    pub const ENCIPHER: u8 = 0x20;
    pub const AGREE: u8 = 0x08;
    pub const CERT_SIGN: u8 = 0x04;
}

impl<'a> Chain<'a> {
    /// Puts a chain together of what was shown and what is trusted.
    pub fn new(
        leaf: Certificate<'a>,
        above: &'a [CertificateDer<'_>],
        trusted: &'a [CertificateDer<'static>],
        now: i64,
    ) -> Chain<'a> {
        let read = |list: &'a [CertificateDer<'_>]| -> Vec<Certificate<'a>> {
            list.iter().filter_map(|c| Certificate::parse(c)).collect()
        };
        let (above, trusted) = (read(above), read(trusted));
        let known = |c: &Certificate<'_>| trusted.iter().any(|t| t.signed == c.signed);
        let mut chain = Chain {
            certificates: vec![leaf],
            trusted: known(&leaf) && signs_itself(&leaf),
            reaches_trust: false,
        };
        while chain.certificates.len() < LONGEST && !chain.trusted {
            let Some(last) = chain.certificates.last().filter(|c| !signs_itself(c)) else { break };
            let Some(next) = issuer(last, &trusted, now).or_else(|| issuer(last, &above, now)) else { break };
            chain.reaches_trust = known(&next);
            chain.trusted = chain.reaches_trust && signs_itself(&next);
            chain.certificates.push(next);
        }
        chain
    }

    /// The subject of the last of them.
    pub fn root(&self) -> Option<&'a [u8]> {
        self.certificates.last().map(|c| c.subject)
    }

    /// What is missing of the chain.
    pub fn missing(&self) -> Option<Fault> {
        let depth = self.certificates.len() - 1;
        let number = match self.certificates.last()? {
            _ if self.trusted => return None,
            _ if self.certificates.len() >= LONGEST => code::TOO_LONG,
            last if signs_itself(last) && depth == 0 => code::SELF_SIGNED,
            last if signs_itself(last) => code::SELF_SIGNED_IN_CHAIN,
            _ if self.reaches_trust => code::NO_ISSUER_ABOVE,
            _ => code::NO_ISSUER,
        };
        Some((number, at(depth)))
    }

    /// Each certificate below the root with its depth, and its issuer if the chain has it. A leaf that is its
    /// own issuer stands for itself.
    pub fn with_issuers(&self) -> impl Iterator<Item = (u8, &Certificate<'a>, Option<&Certificate<'a>>)> {
        let all = self.certificates.iter().enumerate();
        let below_root = all.filter(|(depth, cert)| *depth == 0 || !signs_itself(cert));
        below_root.map(|(depth, cert)| {
            let issuer = if signs_itself(cert) { Some(cert) } else { self.certificates.get(depth + 1) };
            (at(depth), cert, issuer)
        })
    }

    /// When the last of them becomes valid.
    pub fn begins(&self) -> Option<UnixTime> {
        let latest = self.certificates.iter().filter_map(|c| c.times()).map(|(from, _)| from).max()?;
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(latest).ok()?)))
    }

    /// What extensions forbid, from the leaf up.
    pub fn extensions(&self, purpose: Purpose) -> Vec<Fault> {
        let mut out = Vec::new();
        // Authorities below this one that are not issued by themselves.
        let mut below = 0;
        for (depth, cert) in self.certificates.iter().enumerate() {
            let authority = depth > 0;
            if authority && !is_authority(cert) {
                out.push((code::INVALID_CA, at(depth)));
            }
            if !serves(cert, purpose, authority) {
                out.push((code::INVALID_PURPOSE, at(depth)));
            }
            if depth > 1 && constraints(cert).and_then(|(_, most)| most).is_some_and(|most| below > most) {
                out.push((code::PATH_LENGTH, at(depth)));
            }
            below += u64::from(authority && !cert.is_self_issued());
        }
        out
    }

    /// Signatures and dates, from the root down; signatures only where nobody else has checked them.
    pub fn inside(&self, now: i64, signed: Option<Signed<'_>>) -> Vec<Fault> {
        let mut out = Vec::new();
        let top = self.certificates.len() - 1;
        let rooted = self.certificates.last().is_some_and(signs_itself);
        if !rooted && top == 0 {
            out.push((code::NO_LEAF_SIGNATURE, 0));
        }
        for (depth, cert) in self.certificates.iter().enumerate().rev() {
            if depth == top && !rooted && top > 0 {
                // Its issuer is not there, so nothing is known of it.
                continue;
            }
            if let Some(issuer) = self.certificates.get(depth + 1) {
                if key_usage(issuer).is_some_and(|u| u & bits::CERT_SIGN == 0) {
                    out.push((code::NO_CERT_SIGN, at(depth + 1)));
                }
                if signed.is_some_and(|signed| !signed(cert, issuer)) {
                    out.push((code::BAD_SIGNATURE, at(depth)));
                }
            }
            match dates(cert, now) {
                code::OK => {}
                number => out.push((number, at(depth))),
            }
        }
        out
    }
}

fn at(depth: usize) -> u8 {
    u8::try_from(depth).unwrap_or(u8::MAX)
}

/// Whether a certificate is good at a time.
pub(crate) fn dates(cert: &Certificate<'_>, now: i64) -> u8 {
    match cert.times() {
        Some((from, _)) if now < from => code::NOT_YET_VALID,
        Some((_, to)) if now > to => code::EXPIRED,
        Some(_) => code::OK,
        None => code::UNSPECIFIED,
    }
}

/// Of the certificates that may be the issuer of one, the first that is good now, or else the first.
fn issuer<'a>(of: &Certificate<'_>, among: &[Certificate<'a>], now: i64) -> Option<Certificate<'a>> {
    let fits = |c: &&Certificate<'a>| c.subject == of.issuer && names_key(of, c);
    let good = |c: &&Certificate<'a>| fits(c) && dates(c, now) == code::OK;
    among.iter().find(good).or_else(|| among.iter().find(fits)).copied()
}

/// Whether a certificate is issued by itself, by its names and key identifiers.
fn signs_itself(cert: &Certificate<'_>) -> bool {
    cert.is_self_issued() && names_key(cert, cert)
}

/// Whether the identifier of the issuer's key in a certificate, where there is one, is this issuer's.
fn names_key(cert: &Certificate<'_>, issuer: &Certificate<'_>) -> bool {
    const AUTHORITY_KEY: [u8; 3] = [0x55, 0x1d, 0x23];
    const SUBJECT_KEY: [u8; 3] = [0x55, 0x1d, 0x0e];
    let wanted = cert
        .extension(&AUTHORITY_KEY)
        .and_then(|v| Der(Der(v).expect(0x30)?.content).expect(0x80))
        .map(|e| e.content);
    let own = issuer.extension(&SUBJECT_KEY).and_then(|v| Der(v).expect(0x04)).map(|e| e.content);
    match (wanted, own) {
        (Some(wanted), Some(own)) => wanted == own,
        _ => true,
    }
}

/// `basicConstraints`: whether it is an authority, and how many of them may be below it.
fn constraints(cert: &Certificate<'_>) -> Option<(bool, Option<u64>)> {
    let mut inside = Der(Der(cert.extension(&[0x55, 0x1d, 0x13])?).expect(0x30)?.content);
    let authority = inside.expect(0x01).is_some_and(|e| e.content != [0]);
    let most = inside.expect(0x02).filter(|e| e.content.len() <= 8);
    Some((authority, most.map(|e| e.content.iter().fold(0, |all, b| all << 8 | u64::from(*b)))))
}

/// The first byte of `keyUsage`.
fn key_usage(cert: &Certificate<'_>) -> Option<u8> {
    let bits = Der(cert.extension(&[0x55, 0x1d, 0x0f])?).expect(0x03)?.content;
    Some(bits.get(1).copied().unwrap_or(0))
}

/// Whether a certificate may be above another one. Those without `basicConstraints` may where they are of
/// version 1 and their own issuer, or where their key may sign certificates.
fn is_authority(cert: &Certificate<'_>) -> bool {
    match (key_usage(cert), constraints(cert)) {
        (Some(usage), _) if usage & bits::CERT_SIGN == 0 => false,
        (_, Some((authority, _))) => authority,
        (usage, None) => usage.is_some() || (cert.version == 1 && signs_itself(cert)),
    }
}

/// Whether key usages allow a purpose.
fn serves(cert: &Certificate<'_>, purpose: Purpose, authority: bool) -> bool {
    const EXTENDED: [u8; 3] = [0x55, 0x1d, 0x25];
    const SERVER: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 3, 1];
    const CLIENT: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 3, 2];
    let wanted = if purpose == Purpose::Client { CLIENT } else { SERVER };
    if let Some(list) = cert.extension(&EXTENDED).and_then(|v| Der(v).expect(0x30)) {
        let mut list = Der(list.content);
        let mut found = false;
        while let Some(e) = list.element() {
            found |= e.content == wanted;
        }
        if !found {
            return false;
        }
    }
    let allowed = match purpose {
        Purpose::Client => bits::SIGN | bits::AGREE,
        Purpose::Server => bits::SIGN | bits::AGREE | bits::ENCIPHER,
    };
    if authority { is_authority(cert) } else { key_usage(cert).is_none_or(|u| u & allowed != 0) }
}
