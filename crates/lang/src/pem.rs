//! Public keys out of PEM files (RFC 7468).

/// The content of the first block with one of these labels.
fn block(text: &[u8], labels: &[&str]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    labels.iter().find_map(|label| {
        let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
        let (inside, _) = rest.split_once(&format!("-----END {label}-----"))?;
        base::base64::decode_lines(inside.as_bytes())
    })
}

/// A public key: SPKI or, for RSA, PKCS #1.
pub(crate) fn public_key(text: &[u8]) -> Option<Vec<u8>> {
    block(text, &["PUBLIC KEY", "RSA PUBLIC KEY"])
}
