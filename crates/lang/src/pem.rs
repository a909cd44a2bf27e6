//! Keys out of PEM files (RFC 7468) and the little DER that it takes to find a key in a certificate (RFC 5280).

/// The content of the first block with one of these labels.
fn block(text: &[u8], labels: &[&str]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    labels.iter().find_map(|label| {
        let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
        let (inside, _) = rest.split_once(&format!("-----END {label}-----"))?;
        let digits: Vec<u8> = inside.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
        let mut out = Vec::new();
        crate::codec::base64_decode(&digits, false, &mut |c| out.push(c))?;
        Some(out)
    })
}

/// A public key: SPKI or, for RSA, PKCS #1.
pub(crate) fn public_key(text: &[u8]) -> Option<Vec<u8>> {
    block(text, &["PUBLIC KEY", "RSA PUBLIC KEY"])
}

/// The SPKI of the first certificate.
pub(crate) fn certificate_key(text: &[u8]) -> Option<Vec<u8>> {
    let der = block(text, &["CERTIFICATE"])?;
    let (certificate, _) = element(&der, SEQUENCE)?;
    let (mut body, _) = element(certificate.inside, SEQUENCE)?;
    let mut rest = body.inside;
    if let Some((_, behind)) = element(rest, VERSION) {
        rest = behind;
    }
    // Serial number, signature algorithm, issuer, validity, subject; then the key.
    for tag in [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE] {
        rest = element(rest, tag)?.1;
    }
    body = element(rest, SEQUENCE)?.0;
    Some(body.whole.to_vec())
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;

/// One element of DER.
struct Element<'d> {
    whole: &'d [u8],
    inside: &'d [u8],
}

/// The first element, which must have this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(Element<'_>, &[u8])> {
    let (&first, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let extra = if short & 0x80 == 0 { 0 } else { usize::from(short & 0x7f) };
    if first != tag || extra > 4 {
        return None;
    }
    let (digits, rest) = rest.split_at_checked(extra)?;
    let long = digits.iter().fold(0usize, |n, c| n << 8 | usize::from(*c));
    let length = if extra == 0 { usize::from(short) } else { long };
    let inside = rest.get(..length)?;
    let whole = der.get(..2 + extra + length)?;
    Some((Element { whole, inside }, rest.get(length..)?))
}
