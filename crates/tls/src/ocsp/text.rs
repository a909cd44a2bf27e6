//! A response in words, as `openssl ocsp -resp_text` has them: scripts read `show ssl ocsp-response`.

use std::fmt::Write as _;

use super::{INTEGER, OCTETS, OID, Refused, Response, SEQUENCE, Status};
use crate::print;
use crate::text::{date, hex, number};
use x509::oid;
use x509::{Attribute, Der, attributes};

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

/// `CN = name`, with quotes where a sign means something in such a list (RFC 2253, section 2.4, in OpenSSL's
/// way).
fn attribute(a: &Attribute<'_>) -> String {
    let mut value = String::new();
    for byte in a.value {
        let _ = match byte {
            b'"' | b'\\' => write!(value, "\\{}", char::from(*byte)),
            b' '..=b'~' => write!(value, "{}", char::from(*byte)),
            other => write!(value, "\\{other:02X}"),
        };
    }
    let special = a.value.iter().any(|b| b",+\"\\<>;".contains(b));
    let quote = special || a.value.starts_with(b"#") || a.value.starts_with(b" ") || a.value.ends_with(b" ");
    let quote = if quote { "\"" } else { "" };
    format!("{} = {quote}{value}{quote}", oid::attribute(a.oid))
}

fn signature_name(algorithm: &[u8]) -> String {
    Der(algorithm).expect(OID).map_or_else(|| "unknown".into(), |e| oid::long(e.content))
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
    print::octets(&mut out, r.signature, 8, 18);
    for certificate in r.shown() {
        print::certificate(&mut out, certificate);
        crate::pem::put(&mut out, "CERTIFICATE", certificate);
    }
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
