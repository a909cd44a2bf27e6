//! Revocation lists (RFC 5280, section 5; manual, `crl-file`).
//!
//! webpki reads lists of version 2 only, and OpenSSL's users have others. As OpenSSL does when a `crl-file`
//! is given, every certificate of the [chain](crate::chain) below the root needs a list of its issuer that is
//! signed by it and in force.

use std::collections::HashSet;

use crate::chain::{Chain, Fault};
use crate::verify::code;
use x509::{Certificate, Der, seconds};

/// One list.
#[derive(Debug)]
struct List {
    issuer: Box<[u8]>,
    signed: Box<[u8]>,
    /// Identifier of the signature's algorithm, without the tag of the sequence.
    algorithm: Box<[u8]>,
    signature: Box<[u8]>,
    from: i64,
    to: Option<i64>,
    numbers: HashSet<Box<[u8]>>,
}

/// Lists of revoked certificates.
#[derive(Debug, Default)]
pub(crate) struct Revocations(Vec<List>);

/// Whether an issuer signed something: what is signed, the algorithm's identifier, the signature.
pub(crate) type Signed<'s> = &'s dyn Fn(&Certificate<'_>, &[u8], &[u8], &[u8]) -> bool;

impl Revocations {
    /// Reads lists.
    ///
    /// # Errors
    /// One is none.
    pub fn new(lists: &[Vec<u8>]) -> Result<Revocations, String> {
        let read = |der: &Vec<u8>| List::read(der).ok_or("it is no revocation list");
        Ok(Revocations(lists.iter().map(read).collect::<Result<_, _>>()?))
    }

    /// The first certificate of a chain, from the leaf up, of which no list in force says that it is good:
    /// OpenSSL's number of the reason, and the certificate's place above the leaf.
    pub fn check(&self, chain: &Chain<'_>, now: i64, signed: Signed<'_>) -> Option<Fault> {
        if self.0.is_empty() {
            return None;
        }
        chain.with_issuers().find_map(|(depth, cert, issuer)| match self.one(cert, issuer, now, signed) {
            code::OK => None,
            number => Some((number, depth)),
        })
    }

    fn one(
        &self,
        cert: &Certificate<'_>,
        issuer: Option<&Certificate<'_>>,
        now: i64,
        signed: Signed<'_>,
    ) -> u8 {
        let Some(list) = self.0.iter().find(|l| *l.issuer == *cert.issuer) else { return code::NO_CRL };
        let by = |c: &Certificate<'_>| signed(c, &list.signed, &list.algorithm, &list.signature);
        if !issuer.is_some_and(by) {
            return code::CRL_SIGNATURE;
        }
        match list.to {
            _ if now < list.from => code::CRL_EARLY,
            Some(to) if now > to => code::CRL_EXPIRED,
            _ if list.numbers.contains(cert.serial) => code::REVOKED,
            _ => code::OK,
        }
    }
}

impl List {
    fn read(der: &[u8]) -> Option<List> {
        const SEQUENCE: u8 = 0x30;
        let mut outer = Der(Der(der).expect(SEQUENCE)?.content);
        let whole = outer.expect(SEQUENCE)?;
        let algorithm = outer.expect(SEQUENCE)?.content;
        let (_, signature) = outer.expect(0x03)?.content.split_first()?;
        let mut list = Der(whole.content);
        let _version = list.expect(0x02);
        list.expect(SEQUENCE)?;
        let issuer = list.expect(SEQUENCE)?.whole;
        let from = seconds(list.element()?.content)?;
        let mut ahead = list;
        let to = ahead.element().filter(|e| matches!(e.tag, 0x17 | 0x18));
        let to = match to {
            Some(time) => {
                list = ahead;
                Some(seconds(time.content)?)
            }
            None => None,
        };
        let mut revoked = Der(list.expect(SEQUENCE).map(|e| e.content).unwrap_or_default());
        let mut numbers = HashSet::new();
        while let Some(entry) = revoked.element() {
            numbers.insert(Der(entry.content).expect(0x02)?.content.into());
        }
        Some(List {
            issuer: issuer.into(),
            signed: whole.whole.into(),
            algorithm: algorithm.into(),
            signature: signature.into(),
            from,
            to,
            numbers,
        })
    }
}
