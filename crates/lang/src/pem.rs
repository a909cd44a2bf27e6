//! Public keys out of PEM files (RFC 7468).

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
