//! A response in words, as `openssl ocsp -resp_text` has them: scripts read `show ssl ocsp-response`.
//!
//! The certificates that it carries are shown as PEM only.

use std::fmt::Write as _;

use super::{INTEGER, OCTETS, OID, Refused, Response, SEQUENCE, Status};
use crate::x509::{Attribute, Der, attributes};

/// Digits in upper case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

/// A number without the zero in front that keeps it positive.
fn number(bytes: &[u8]) -> String {
    match bytes {
        [0, rest @ ..] if !rest.is_empty() => hex(rest),
        bytes => hex(bytes),
    }
}

/// The parts of a certificate's id, each line behind `indent`.
pub fn id_text(id: &[u8], indent: &str, algorithm: bool) -> Option<String> {
    let mut parts = Der(Der(id).expect(SEQUENCE)?.content);
    let oid = Der(parts.expect(SEQUENCE)?.content).expect(OID)?.content;
    let mut out = String::new();
    if algorithm {
        let name = if oid == super::SHA1 { "sha1" } else { "unknown" };
        let _ = writeln!(out, "{indent}Hash Algorithm: {name}");
    }
    let _ = writeln!(out, "{indent}Issuer Name Hash: {}", hex(parts.expect(OCTETS)?.content));
    let _ = writeln!(out, "{indent}Issuer Key Hash: {}", hex(parts.expect(OCTETS)?.content));
    let _ = writeln!(out, "{indent}Serial Number: {}", number(parts.expect(INTEGER)?.content));
    Some(out)
}

/// `20210610085504Z` as `Jun 10 08:55:04 2021 GMT`.
fn date(time: &[u8]) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = std::str::from_utf8(time).unwrap_or_default();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or("??");
    let month = part(4, 6).parse::<usize>().ok().and_then(|m| MONTHS.get(m.checked_sub(1)?));
    let day = part(6, 8).trim_start_matches('0');
    let month = month.unwrap_or(&"???");
    format!("{month} {day:>2} {}:{}:{} {} GMT", part(8, 10), part(10, 12), part(12, 14), part(0, 4))
}

fn attribute(a: &Attribute<'_>) -> String {
    let name = match a.oid {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1] => "emailAddress",
        _ => "?",
    };
    format!("{name} = {}", String::from_utf8_lossy(a.value))
}

fn signature_name(algorithm: &[u8]) -> &'static str {
    match Der(algorithm).expect(OID).map(|e| e.content) {
        Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last]) => match last {
            5 => "sha1WithRSAEncryption",
            10 => "rsassaPss",
            11 => "sha256WithRSAEncryption",
            12 => "sha384WithRSAEncryption",
            13 => "sha512WithRSAEncryption",
            _ => "unknown",
        },
        Some([0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, last]) => match last {
            2 => "ecdsa-with-SHA256",
            3 => "ecdsa-with-SHA384",
            4 => "ecdsa-with-SHA512",
            _ => "unknown",
        },
        Some([0x2b, 0x65, 0x70]) => "ED25519",
        _ => "unknown",
    }
}

fn reason(number: u8) -> &'static str {
    match number {
        0 => "unspecified",
        1 => "keyCompromise",
        2 => "cACompromise",
        3 => "affiliationChanged",
        4 => "superseded",
        5 => "cessationOfOperation",
        6 => "certificateHold",
        8 => "removeFromCRL",
        9 => "privilegeWithdrawn",
        10 => "aACompromise",
        _ => "(UNKNOWN)",
    }
}

/// All of a response.
///
/// # Errors
/// When it can't be read.
pub fn text(bytes: &[u8]) -> Result<String, Refused> {
    let r = Response::parse(bytes)?;
    let mut out = String::from(
        "OCSP Response Data:\n    OCSP Response Status: successful (0x0)\n    Response Type: Basic OCSP Response\n    Version: 1 (0x0)\n",
    );
    let inner = Der(r.responder.content).element();
    let who = match (r.responder.tag, inner) {
        (0xa1, Some(name)) => attributes(name.whole).map(|a| attribute(&a)).collect::<Vec<_>>().join(", "),
        (_, Some(key)) => hex(key.content),
        _ => return Err(Refused::Broken),
    };
    let _ = writeln!(out, "    Responder Id: {who}\n    Produced At: {}", date(r.produced));
    out.push_str("    Responses:\n    Certificate ID:\n");
    out.push_str(&id_text(r.id, "      ", true).ok_or(Refused::Broken)?);
    match r.status {
        Status::Good => out.push_str("    Cert Status: good\n"),
        Status::Unknown => out.push_str("    Cert Status: unknown\n"),
        Status::Revoked(when, why) => {
            let _ = writeln!(out, "    Cert Status: revoked\n    Revocation Time: {}", date(when));
            if let Some(why) = why {
                let _ = writeln!(out, "    Revocation Reason: {} (0x{why:x})", reason(why));
            }
        }
    }
    let _ = writeln!(out, "    This Update: {}", date(r.this_update));
    if let Some(next) = r.next_update {
        let _ = writeln!(out, "    Next Update: {}", date(next));
    }
    // An empty line would end the answer of the runtime API.
    out.push_str(" \n");
    extensions(&mut out, r.extensions);
    let _ = writeln!(out, "    Signature Algorithm: {}\n    Signature Value:", signature_name(r.algorithm));
    for line in r.signature.chunks(18) {
        let pairs: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        let _ = writeln!(out, "        {}", pairs.join(":"));
    }
    r.shown().for_each(|c| crate::pem::put(&mut out, "CERTIFICATE", c));
    Ok(out)
}

fn extensions(out: &mut String, der: &[u8]) {
    const NONCE: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 2];
    let Some(list) = Der(der).expect(SEQUENCE) else { return };
    out.push_str("    Response Extensions:\n");
    let mut list = Der(list.content);
    while let Some(one) = list.expect(SEQUENCE) {
        let mut parts = Der(one.content);
        let Some(oid) = parts.expect(OID) else { return };
        let name = if oid.content == NONCE { "OCSP Nonce" } else { "Extension" };
        let Some(value) = std::iter::from_fn(|| parts.element()).find(|e| e.tag == OCTETS) else { return };
        let _ = writeln!(out, "        {name}: \n            {}", hex(value.content));
    }
}
