//! Floor 1: certificates as far as rules and choices need them (RFC 5280, X.690).
//!
//! Paths and signatures are webpki's business. This is the rest: names, dates, numbers, taken from the DER as
//! they stand, also from certificates that webpki does not read (version 1). A total cursor: what does not
//! fit is no certificate.
#![forbid(unsafe_code)]

pub mod oid;

/// Tags.
mod tag {
    pub const INTEGER: u8 = 0x02;
    pub const BIT_STRING: u8 = 0x03;
    pub const OCTET_STRING: u8 = 0x04;
    pub const OID: u8 = 0x06;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
    pub const VERSION: u8 = 0xa0;
    pub const EXTENSIONS: u8 = 0xa3;
    pub const DNS_NAME: u8 = 0x82;
    pub const IP_ADDRESS: u8 = 0x87;
}

/// A cursor over DER.
#[derive(Clone, Copy, Debug)]
pub struct Der<'a>(pub &'a [u8]);

/// One element.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// Its tag.
    pub tag: u8,
    /// Its content.
    pub content: &'a [u8],
    /// Content with tag and length.
    pub whole: &'a [u8],
}

impl<'a> Der<'a> {
    /// The next element, if one is there.
    pub fn element(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk::<2>()?;
        let mut header = 2;
        let len = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x83 => {
                let (digits, tail) = rest.split_at_checked(usize::from(first & 0x7f))?;
                rest = tail;
                header += digits.len();
                digits.iter().fold(0, |all, c| all << 8 | usize::from(*c))
            }
            _ => return None,
        };
        let content = rest.get(..len)?;
        let (whole, tail) = self.0.split_at_checked(header + len)?;
        self.0 = tail;
        Some(Element { tag, content, whole })
    }

    /// The next element, which has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.element().filter(|e| e.tag == tag)?;
        *self = ahead;
        Some(element)
    }
}

/// An element: tag, length (up to 65535) and content.
pub fn encode(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let mut out = vec![tag];
    match len {
        0..=0x7f => out.push(len as u8),
        0x80..=0xff => out.extend([0x81, len as u8]),
        _ => out.extend([0x82, (len >> 8) as u8, len as u8]),
    }
    out.extend_from_slice(content);
    out
}

/// What a certificate says.
#[derive(Clone, Copy, Debug)]
pub struct Certificate<'a> {
    /// The part that is signed.
    pub signed: &'a [u8],
    /// 1 or 3, as people count.
    pub version: u8,
    /// Serial number, big-endian.
    pub serial: &'a [u8],
    /// Issuer, as DER.
    pub issuer: &'a [u8],
    /// Subject, as DER.
    pub subject: &'a [u8],
    /// Beginning and end of validity, as written.
    pub validity: [&'a [u8]; 2],
    /// Public key with its algorithm, as DER.
    pub spki: &'a [u8],
    /// Identifier of the signature's algorithm: the content of its OID.
    pub signature_algorithm: &'a [u8],
    /// The same with its parameters, without the tag of the sequence.
    pub signature_algorithm_id: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
    /// Extensions, as DER.
    pub extensions: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads a certificate.
    pub fn parse(der: &'a [u8]) -> Option<Certificate<'a>> {
        let mut outer = Der(Der(der).expect(tag::SEQUENCE)?.content);
        let signed = outer.expect(tag::SEQUENCE)?;
        let algorithm = outer.expect(tag::SEQUENCE)?.content;
        let (_, signature) = outer.expect(tag::BIT_STRING)?.content.split_first()?;
        let mut c = Der(signed.content);
        let version =
            c.expect(tag::VERSION).and_then(|v| Der(v.content).expect(tag::INTEGER)?.content.last().copied());
        let serial = c.expect(tag::INTEGER)?.content;
        c.expect(tag::SEQUENCE)?;
        let issuer = c.expect(tag::SEQUENCE)?.whole;
        let mut dates = Der(c.expect(tag::SEQUENCE)?.content);
        let validity = [dates.element()?.content, dates.element()?.content];
        let subject = c.expect(tag::SEQUENCE)?.whole;
        let spki = c.expect(tag::SEQUENCE)?.whole;
        let mut extensions = &[][..];
        while let Some(e) = c.element() {
            if e.tag == tag::EXTENSIONS {
                extensions = Der(e.content).expect(tag::SEQUENCE)?.content;
            }
        }
        Some(Certificate {
            signed: signed.whole,
            version: version.unwrap_or(0).saturating_add(1),
            serial,
            issuer,
            subject,
            validity,
            spki,
            signature_algorithm: Der(algorithm).expect(tag::OID)?.content,
            signature_algorithm_id: algorithm,
            signature,
            extensions,
        })
    }

    /// The value of an extension, by the content of its OID.
    pub fn extension(&self, oid: &[u8]) -> Option<&'a [u8]> {
        let mut list = Der(self.extensions);
        while let Some(e) = list.element() {
            let mut parts = Der(e.content);
            if parts.expect(tag::OID)?.content == oid {
                while let Some(part) = parts.element() {
                    if part.tag == tag::OCTET_STRING {
                        return Some(part.content);
                    }
                }
            }
        }
        None
    }

    /// Names of hosts in `subjectAltName`.
    pub fn dns_names(&self) -> impl Iterator<Item = &'a [u8]> {
        self.alternative(tag::DNS_NAME)
    }

    /// Addresses in `subjectAltName`, four or sixteen bytes each.
    pub fn addresses(&self) -> impl Iterator<Item = &'a [u8]> {
        self.alternative(tag::IP_ADDRESS)
    }

    fn alternative(&self, wanted: u8) -> impl Iterator<Item = &'a [u8]> {
        let value = self.extension(&[0x55, 0x1d, 0x11]).and_then(|v| Der(v).expect(tag::SEQUENCE));
        let mut list = Der(value.map(|v| v.content).unwrap_or_default());
        std::iter::from_fn(move || {
            loop {
                let e = list.element()?;
                if e.tag == wanted {
                    return Some(e.content);
                }
            }
        })
    }

    /// Common names of the subject.
    pub fn common_names(&self) -> impl Iterator<Item = &'a [u8]> {
        attributes(self.subject).filter(|a| a.oid == [0x55, 4, 3]).map(|a| a.value)
    }

    /// Whether subject and issuer are the same.
    pub fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// Beginning and end of validity, in seconds since 1970.
    pub fn times(&self) -> Option<(i64, i64)> {
        Some((seconds(self.validity[0])?, seconds(self.validity[1])?))
    }

    /// Algorithm of the key: the content of its OID, and its parameters as DER.
    pub fn key_algorithm(&self) -> Option<(&'a [u8], &'a [u8])> {
        let mut spki = Der(Der(self.spki).expect(tag::SEQUENCE)?.content);
        let mut algorithm = Der(spki.expect(tag::SEQUENCE)?.content);
        Some((algorithm.expect(tag::OID)?.content, algorithm.0))
    }

    /// Algorithm of the key as it stands, without the tag of the sequence, and the bits of the key.
    pub fn key(&self) -> Option<(&'a [u8], &'a [u8])> {
        let mut spki = Der(Der(self.spki).expect(tag::SEQUENCE)?.content);
        let algorithm = spki.expect(tag::SEQUENCE)?.content;
        let (_, bits) = spki.expect(tag::BIT_STRING)?.content.split_first()?;
        Some((algorithm, bits))
    }
}

/// One attribute of a distinguished name.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    /// The content of its OID.
    pub oid: &'a [u8],
    /// The tag of its value.
    pub tag: u8,
    /// Its value as it stands.
    pub value: &'a [u8],
}

/// The attributes of a distinguished name in order.
pub fn attributes(name: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let mut sets = Der(Der(name).expect(tag::SEQUENCE).map(|n| n.content).unwrap_or_default());
    let mut set = Der(&[]);
    std::iter::from_fn(move || {
        loop {
            if let Some(pair) = set.expect(tag::SEQUENCE) {
                let mut pair = Der(pair.content);
                let oid = pair.expect(tag::OID)?.content;
                let value = pair.element()?;
                return Some(Attribute { oid, tag: value.tag, value: value.content });
            }
            set = Der(sets.expect(tag::SET)?.content);
        }
    })
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` as seconds since 1970.
pub fn seconds(time: &[u8]) -> Option<i64> {
    let digits = time.strip_suffix(b"Z")?;
    let mut pairs =
        digits.chunks_exact(2).map(|p| Some(i64::from(digit(p[0])?) * 10 + i64::from(digit(p[1])?)));
    let mut next = || pairs.next().flatten();
    let year = match digits.len() {
        12 => match next()? {
            y @ 50.. => 1900 + y,
            y => 2000 + y,
        },
        14 => next()? * 100 + next()?,
        _ => return None,
    };
    let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970 of the civil calendar, counted from March.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (m * 153 + 2) / 5 + day
        - 1
        - 719_468;
    Some(days * 86400 + hour * 3600 + minute * 60 + second)
}

fn digit(c: u8) -> Option<u8> {
    c.is_ascii_digit().then(|| c - b'0')
}
