//! A whole certificate in words, as `openssl x509 -text` has it: responses of OCSP that carry certificates
//! are shown with them (management manual, `show ssl ocsp-response`).
//!
//! Extensions that certificates of responders have are told; of others the bytes are shown, as OpenSSL does
//! with what it does not know. No line is empty, for that would end the answer of the runtime API.

use std::fmt::Write as _;

use crate::text::{date, general_names, value};
use x509::oid;
use x509::{Certificate, Der, attributes};

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// Appends the lines of a certificate; nothing if it can't be read.
pub(crate) fn certificate(out: &mut String, der: &[u8]) {
    let Some(cert) = Certificate::parse(der) else { return };
    let algorithm = oid::long(cert.signature_algorithm);
    let version = cert.version;
    let _ = writeln!(
        out,
        "Certificate:\n    Data:\n        Version: {version} (0x{:x})",
        version.saturating_sub(1)
    );
    serial(out, cert.serial);
    let _ =
        writeln!(out, "        Signature Algorithm: {algorithm}\n        Issuer: {}", listed(cert.issuer));
    let [from, until] = cert.validity.map(date);
    let _ =
        writeln!(out, "        Validity\n            Not Before: {from}\n            Not After : {until}");
    let _ = writeln!(out, "        Subject: {}\n        Subject Public Key Info:", listed(cert.subject));
    let _ = key(out, &cert);
    extensions(out, cert.extensions);
    let _ = writeln!(out, "    Signature Algorithm: {algorithm}\n    Signature Value:");
    octets(out, cert.signature, 8, 18);
}

/// Appends bytes as lines of so many, each but the last with a colon at its end.
pub(crate) fn octets(out: &mut String, bytes: &[u8], indent: usize, width: usize) {
    let lines = bytes.chunks(width).count();
    for (number, line) in (1..).zip(bytes.chunks(width)) {
        let end = if number < lines { ":" } else { "" };
        let _ = writeln!(out, "{:indent$}{}{end}", "", colons(line));
    }
}

fn colons(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

/// `C=FR, CN=x`.
fn listed(dn: &[u8]) -> String {
    let parts = attributes(dn).map(|a| format!("{}={}", oid::attribute(a.oid), value(a.tag, a.value)));
    parts.collect::<Vec<_>>().join(", ")
}

fn magnitude(content: &[u8]) -> &[u8] {
    match content {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    }
}

/// A number that fits into a machine's; negative ones are none here.
fn small(content: &[u8]) -> Option<u64> {
    let bytes = magnitude(content);
    let number = bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    (bytes.len() <= 8 && number <= i64::MAX as u64 && content.first()? & 0x80 == 0).then_some(number)
}

fn serial(out: &mut String, content: &[u8]) {
    let _ = match small(content) {
        Some(number) => writeln!(out, "        Serial Number: {number} (0x{number:x})"),
        None => writeln!(out, "        Serial Number:\n            {}", colons(magnitude(content))),
    };
}

fn key(out: &mut String, cert: &Certificate<'_>) -> Option<()> {
    let (algorithm, parameters) = cert.key_algorithm()?;
    let (_, bits) = cert.key()?;
    let _ = writeln!(out, "            Public Key Algorithm: {}", oid::long(algorithm));
    match oid::algorithm(algorithm) {
        Some("rsaEncryption" | "RSASSA-PSS") => rsa(out, bits),
        Some("id-ecPublicKey") => {
            let curve = Der(parameters).expect(OID)?.content;
            let (name, nist, size) = named_curve(curve);
            let _ = writeln!(out, "                Public-Key: ({size} bit)\n                pub:");
            octets(out, bits, 20, 15);
            let _ = writeln!(out, "                ASN1 OID: {name}");
            if let Some(nist) = nist {
                let _ = writeln!(out, "                NIST CURVE: {nist}");
            }
            Some(())
        }
        other => {
            let _ = writeln!(
                out,
                "                {} Public-Key:\n                pub:",
                other.unwrap_or("Other")
            );
            octets(out, bits, 20, 15);
            Some(())
        }
    }
}

fn named_curve(curve: &[u8]) -> (String, Option<&'static str>, usize) {
    let (name, nist, size) = match curve {
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => ("prime256v1", Some("P-256"), 256),
        [0x2b, 0x81, 4, 0, 0x21] => ("secp224r1", Some("P-224"), 224),
        [0x2b, 0x81, 4, 0, 0x22] => ("secp384r1", Some("P-384"), 384),
        [0x2b, 0x81, 4, 0, 0x23] => ("secp521r1", Some("P-521"), 521),
        [0x2b, 0x81, 4, 0, 0x0a] => ("secp256k1", None, 256),
        other => return (oid::dotted(other), None, 0),
    };
    (name.to_owned(), nist, size)
}

fn rsa(out: &mut String, bits: &[u8]) -> Option<()> {
    let mut numbers = Der(Der(bits).expect(SEQUENCE)?.content);
    let (modulus, exponent) = (numbers.expect(INTEGER)?.content, numbers.expect(INTEGER)?.content);
    let significant = magnitude(modulus);
    let size = significant.len() * 8 - significant.first()?.leading_zeros() as usize;
    let _ = writeln!(out, "                Public-Key: ({size} bit)\n                Modulus:");
    octets(out, modulus, 20, 15);
    if let Some(number) = small(exponent) {
        let _ = writeln!(out, "                Exponent: {number} (0x{number:x})");
    }
    Some(())
}

fn extensions(out: &mut String, der: &[u8]) {
    if der.is_empty() {
        return;
    }
    out.push_str("        X509v3 extensions:\n");
    let mut list = Der(der);
    while let Some(one) = list.expect(SEQUENCE) {
        let mut parts = Der(one.content);
        let Some(oid) = parts.expect(OID).map(|e| e.content) else { return };
        let critical = parts.expect(BOOLEAN).is_some_and(|e| e.content != [0]);
        let Some(content) = parts.expect(OCTETS).map(|e| e.content) else { return };
        let known = EXTENSIONS.iter().find(|(known, ..)| *known == oid);
        let name = known.map_or_else(|| oid::dotted(oid), |(_, name, _)| (*name).to_owned());
        let _ = writeln!(out, "            {name}: {}", if critical { "critical" } else { "" });
        let told = known.and_then(|(.., told)| told(content)).unwrap_or_else(|| vec![raw(content)]);
        for line in told {
            let _ = match line.is_empty() {
                true => writeln!(out, " "),
                false => writeln!(out, "                {line}"),
            };
        }
    }
}

/// The lines of an extension; `None`: it can't be read.
type Told = fn(&[u8]) -> Option<Vec<String>>;

/// Extensions by the content of their OID, with their names.
const EXTENSIONS: &[(&[u8], &str, Told)] = &[
    (&[0x55, 0x1d, 0x0e], "X509v3 Subject Key Identifier", |v| {
        Some(vec![upper(Der(v).expect(OCTETS)?.content)])
    }),
    (&[0x55, 0x1d, 0x0f], "X509v3 Key Usage", usage),
    (&[0x55, 0x1d, 0x11], "X509v3 Subject Alternative Name", names),
    (&[0x55, 0x1d, 0x12], "X509v3 Issuer Alternative Name", names),
    (&[0x55, 0x1d, 0x13], "X509v3 Basic Constraints", constraints),
    (&[0x55, 0x1d, 0x1f], "X509v3 CRL Distribution Points", distribution),
    (&[0x55, 0x1d, 0x20], "X509v3 Certificate Policies", policies),
    (&[0x55, 0x1d, 0x23], "X509v3 Authority Key Identifier", authority),
    (&[0x55, 0x1d, 0x25], "X509v3 Extended Key Usage", purposes),
    (&[0x2b, 6, 1, 5, 5, 7, 1, 1], "Authority Information Access", access),
    (&[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 1, 13], "Netscape Comment", |v| {
        Some(vec![raw(Der(v).element()?.content)])
    }),
    (&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 5], "OCSP No Check", |_| Some(vec![String::new()])),
];

fn upper(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(":")
}

/// Bytes as text, a dot for each that is none.
fn raw(bytes: &[u8]) -> String {
    bytes.iter().map(|b| if matches!(b, b' '..=b'~') { char::from(*b) } else { '.' }).collect()
}

fn names(v: &[u8]) -> Option<Vec<String>> {
    Some(vec![general_names(Der(v).expect(SEQUENCE)?.content).join(", ")])
}

fn usage(v: &[u8]) -> Option<Vec<String>> {
    const NAMES: [&str; 9] = [
        "Digital Signature",
        "Non Repudiation",
        "Key Encipherment",
        "Data Encipherment",
        "Key Agreement",
        "Certificate Sign",
        "CRL Sign",
        "Encipher Only",
        "Decipher Only",
    ];
    let (_, bits) = Der(v).expect(BITS)?.content.split_first()?;
    let is_set = |at: usize| bits.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
    let set = NAMES.iter().enumerate().filter(|(at, _)| is_set(*at)).map(|(_, name)| *name);
    Some(vec![set.collect::<Vec<_>>().join(", ")])
}

fn constraints(v: &[u8]) -> Option<Vec<String>> {
    let mut parts = Der(Der(v).expect(SEQUENCE)?.content);
    let authority = parts.expect(BOOLEAN).is_some_and(|e| e.content != [0]);
    let mut line = format!("CA:{}", if authority { "TRUE" } else { "FALSE" });
    if let Some(length) = parts.expect(INTEGER).and_then(|e| small(e.content)) {
        let _ = write!(line, ", pathlen:{length}");
    }
    Some(vec![line])
}

fn purposes(v: &[u8]) -> Option<Vec<String>> {
    let mut list = Der(Der(v).expect(SEQUENCE)?.content);
    let mut out = Vec::new();
    while let Some(purpose) = list.expect(OID) {
        out.push(match purpose.content {
            [0x2b, 6, 1, 5, 5, 7, 3, 1] => "TLS Web Server Authentication".to_owned(),
            [0x2b, 6, 1, 5, 5, 7, 3, 2] => "TLS Web Client Authentication".to_owned(),
            [0x2b, 6, 1, 5, 5, 7, 3, 3] => "Code Signing".to_owned(),
            [0x2b, 6, 1, 5, 5, 7, 3, 4] => "E-mail Protection".to_owned(),
            [0x2b, 6, 1, 5, 5, 7, 3, 8] => "Time Stamping".to_owned(),
            [0x2b, 6, 1, 5, 5, 7, 3, 9] => "OCSP Signing".to_owned(),
            [0x55, 0x1d, 0x25, 0] => "Any Extended Key Usage".to_owned(),
            other => oid::dotted(other),
        });
    }
    Some(vec![out.join(", ")])
}

fn authority(v: &[u8]) -> Option<Vec<String>> {
    let mut parts = Der(Der(v).expect(SEQUENCE)?.content);
    let key = parts.expect(0x80).map(|e| upper(e.content));
    let (issuer, serial) = (parts.expect(0xa1), parts.expect(0x82));
    let alone = issuer.is_none() && serial.is_none();
    let mut out: Vec<String> =
        key.map(|k| if alone { k } else { format!("keyid:{k}") }).into_iter().collect();
    out.extend(issuer.map(|e| general_names(e.content)).unwrap_or_default());
    out.extend(serial.map(|e| format!("serial:{}", upper(magnitude(e.content)))));
    Some(out)
}

fn access(v: &[u8]) -> Option<Vec<String>> {
    let mut list = Der(Der(v).expect(SEQUENCE)?.content);
    let mut out = Vec::new();
    while let Some(one) = list.expect(SEQUENCE) {
        let mut parts = Der(one.content);
        let method = match parts.expect(OID)?.content {
            [0x2b, 6, 1, 5, 5, 7, 0x30, 1] => "OCSP".to_owned(),
            [0x2b, 6, 1, 5, 5, 7, 0x30, 2] => "CA Issuers".to_owned(),
            other => oid::dotted(other),
        };
        out.push(format!("{method} - {}", general_names(parts.0).concat()));
    }
    Some(out)
}

fn distribution(v: &[u8]) -> Option<Vec<String>> {
    let mut list = Der(Der(v).expect(SEQUENCE)?.content);
    let mut out = Vec::new();
    while let Some(point) = list.expect(SEQUENCE) {
        let Some(place) = Der(point.content).expect(0xa0) else { continue };
        let Some(full) = Der(place.content).expect(0xa0) else { continue };
        out.push("Full Name:".to_owned());
        out.extend(general_names(full.content).into_iter().map(|name| format!("  {name}")));
    }
    Some(out)
}

fn policies(v: &[u8]) -> Option<Vec<String>> {
    const CPS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 2, 1];
    let mut list = Der(Der(v).expect(SEQUENCE)?.content);
    let mut out = Vec::new();
    while let Some(policy) = list.expect(SEQUENCE) {
        let mut parts = Der(policy.content);
        out.push(match parts.expect(OID)?.content {
            [0x55, 0x1d, 0x20, 0] => "Policy: X509v3 Any Policy".to_owned(),
            other => format!("Policy: {}", oid::dotted(other)),
        });
        let mut qualifiers = Der(parts.expect(SEQUENCE).map(|e| e.content).unwrap_or_default());
        while let Some(one) = qualifiers.expect(SEQUENCE) {
            let mut one = Der(one.content);
            if one.expect(OID)?.content == CPS {
                out.push(format!("  CPS: {}", raw(one.element()?.content)));
            }
        }
    }
    Some(out)
}
