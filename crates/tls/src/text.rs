//! Certificates and revocation lists in words, as the runtime API shows them (management manual, `show ssl
//! cert`, `show ssl ca-file`, `show ssl crl-file`). Scripts compare the lines, so they are OpenSSL's and
//! HAProxy's to the letter.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use aws_lc_rs::digest;

use x509::oid;
use x509::{Certificate, Der, attributes};

/// Bytes as digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02X}");
        out
    })
}

/// A number of any length, as DER has it.
pub fn number(content: &[u8]) -> String {
    match content {
        [0, rest @ ..] if !rest.is_empty() => hex(rest),
        all => hex(all),
    }
}

/// A distinguished name: `/C=FR/CN=x`.
pub fn name(dn: &[u8]) -> String {
    attributes(dn).fold(String::new(), |mut out, a| {
        let _ = write!(out, "/{}={}", oid::attribute(a.oid), value(a.tag, a.value));
        out
    })
}

/// A value; what is no printable ASCII is told in digits, as OpenSSL does.
pub(crate) fn value(tag: u8, bytes: &[u8]) -> String {
    const BMP_STRING: u8 = 0x1e;
    let narrow: Vec<u8> = match tag {
        BMP_STRING if bytes.chunks_exact(2).all(|p| p[0] == 0) => {
            bytes.chunks_exact(2).map(|p| p[1]).collect()
        }
        _ => bytes.to_vec(),
    };
    narrow.iter().fold(String::new(), |mut out, c| {
        match c {
            b' '..=b'~' => out.push(char::from(*c)),
            c => {
                let _ = write!(out, "\\x{c:02X}");
            }
        }
        out
    })
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` as `Sep 20 16:26:00 2023 GMT`.
pub fn date(time: &[u8]) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = String::from_utf8_lossy(time);
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let (year, rest) = match digits.len() {
        12 => {
            let century = if &digits[..2] < "50" { "20" } else { "19" };
            (format!("{century}{}", &digits[..2]), &digits[2..])
        }
        14 => (digits[..4].to_owned(), &digits[4..]),
        _ => return "Bad time value".into(),
    };
    let pair = |n: usize| rest.get(n * 2..n * 2 + 2).and_then(|p| p.parse::<usize>().ok()).unwrap_or(0);
    let Some(month) = pair(0).checked_sub(1).and_then(|m| MONTHS.get(m)) else {
        return "Bad time value".into();
    };
    format!("{month} {:2} {:02}:{:02}:{:02} {year} GMT", pair(1), pair(2), pair(3), pair(4))
}

/// Kind and size of a key: `RSA2048`, `EC384`.
pub fn key(cert: &Certificate<'_>) -> String {
    let Some((algorithm, parameters)) = cert.key_algorithm() else { return String::new() };
    match oid::algorithm(algorithm) {
        Some("rsaEncryption" | "RSASSA-PSS") => format!("RSA{}", modulus_bits(cert).unwrap_or(0)),
        Some("id-ecPublicKey") => {
            let curve = Der(parameters).element().map(|e| e.content).unwrap_or_default();
            let bits = match curve {
                [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => 256,
                [0x2b, 0x81, 4, 0, 0x22] => 384,
                [0x2b, 0x81, 4, 0, 0x23] => 521,
                [0x2b, 0x81, 4, 0, 0x0a] => 256,
                [0x2b, 0x81, 4, 0, 0x21] => 224,
                _ => 0,
            };
            format!("EC{bits}")
        }
        Some(other) => other.to_owned(),
        None => oid::dotted(algorithm),
    }
}

fn modulus_bits(cert: &Certificate<'_>) -> Option<usize> {
    let (_, bits) = cert.key()?;
    let mut numbers = Der(Der(bits).element()?.content);
    let modulus = numbers.element()?.content;
    let start = modulus.iter().position(|b| *b != 0)?;
    let significant = modulus.get(start..)?;
    Some(significant.len() * 8 - significant.first()?.leading_zeros() as usize)
}

/// `DNS:name, IP Address:127.0.0.1`.
fn alternatives(cert: &Certificate<'_>) -> String {
    let value = cert.extension(&[0x55, 0x1d, 0x11]).and_then(|v| Der(v).element());
    general_names(value.map(|v| v.content).unwrap_or_default()).join(", ")
}

/// Names of all kinds (RFC 5280, section 4.2.1.6), one by one.
pub(crate) fn general_names(list: &[u8]) -> Vec<String> {
    let mut list = Der(list);
    let mut out = Vec::new();
    while let Some(e) = list.element() {
        // A line feed would end the answer of the runtime API.
        let plain = || String::from_utf8_lossy(e.content).replace(char::is_control, ".");
        out.push(match e.tag {
            0x81 => format!("email:{}", plain()),
            0x82 => format!("DNS:{}", plain()),
            0x86 => format!("URI:{}", plain()),
            0x87 => format!("IP Address:{}", address(e.content)),
            0x88 => format!("Registered ID:{}", oid::dotted(e.content)),
            0xa4 => format!("DirName:{}", name(e.content)),
            _ => "othername:<unsupported>".into(),
        });
    }
    out
}

fn address(bytes: &[u8]) -> String {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Ipv4Addr::from(four).to_string();
    }
    match <[u8; 16]>::try_from(bytes) {
        Ok(all) => {
            let parts = Ipv6Addr::from(all).segments().map(|s| format!("{s:X}"));
            parts.join(":")
        }
        Err(_) => "<invalid>".into(),
    }
}

/// SHA-1 of something.
pub fn sha1(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

/// The lines about a certificate.
pub fn certificate(der: &[u8]) -> String {
    let Some(cert) = Certificate::parse(der) else { return String::new() };
    format!(
        "Serial: {}\nnotBefore: {}\nnotAfter: {}\nSubject Alternative Name: {}\nAlgorithm: {}\n\
         SHA1 FingerPrint: {}\nSubject: {}\nIssuer: {}\n",
        number(cert.serial),
        date(cert.validity[0]),
        date(cert.validity[1]),
        alternatives(&cert),
        key(&cert),
        hex(sha1(der).as_ref()),
        name(cert.subject),
        name(cert.issuer),
    )
}

/// The lines about a revocation list (RFC 5280, section 5.1).
pub fn revocations(der: &[u8]) -> Option<String> {
    const SEQUENCE: u8 = 0x30;
    let mut outer = Der(Der(der).expect(SEQUENCE)?.content);
    let mut list = Der(outer.expect(SEQUENCE)?.content);
    let version = list.expect(0x02).and_then(|v| v.content.last().copied()).unwrap_or(0);
    let algorithm = Der(list.expect(SEQUENCE)?.content).element()?.content;
    let issuer = list.expect(SEQUENCE)?.whole;
    let last = list.element()?.content;
    let is_date = |tag: u8| matches!(tag, 0x17 | 0x18);
    let mut ahead = list;
    let next = ahead.element().filter(|e| is_date(e.tag)).map(|e| e.content);
    if next.is_some() {
        list = ahead;
    }
    let mut out = format!(
        "Version {}\nSignature Algorithm: {}\nIssuer: {}\nLast Update: {}\nNext Update: {}\n",
        u32::from(version) + 1,
        oid::long(algorithm),
        name(issuer),
        date(last),
        next.map_or_else(|| "NONE".into(), date),
    );
    let mut revoked = Der(list.expect(SEQUENCE).map(|e| e.content).unwrap_or_default());
    if revoked.0.is_empty() {
        out.push_str("No Revoked Certificates.\n");
        return Some(out);
    }
    out.push_str("Revoked Certificates:\n");
    while let Some(entry) = revoked.element() {
        let mut entry = Der(entry.content);
        let serial = entry.element()?.content;
        let date = date(entry.element()?.content);
        let _ = writeln!(out, "    Serial Number: {}\n        Revocation Date: {date}", number(serial));
    }
    Some(out)
}
