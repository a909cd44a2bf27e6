//! Codings of bytes that several entries share: hexadecimal, base64, percent, passwords.

/// Decodes base64 (RFC 4648 section 4, or 5 with `url`), with or without padding. `None` when it is none.
pub(crate) fn base64_decode(text: &[u8], url: bool, put: &mut dyn FnMut(u8)) -> Option<()> {
    let end = text.iter().rposition(|c| *c != b'=').map_or(0, |at| at + 1);
    let padding = text.len() - end;
    if padding > 2 || (!url && !text.len().is_multiple_of(4)) || end % 4 == 1 {
        return None;
    }
    let mut bits = 0u32;
    for (i, c) in text[..end].iter().enumerate() {
        bits = bits << 6 | u32::from(sextet(*c, url)?);
        match i % 4 {
            1 => put((bits >> 4) as u8),
            2 => put((bits >> 2) as u8),
            3 => put(bits as u8),
            _ => {}
        }
    }
    Some(())
}

fn sextet(c: u8, url: bool) -> Option<u8> {
    Some(match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' if !url => 62,
        b'/' if !url => 63,
        b'-' if url => 62,
        b'_' if url => 63,
        _ => return None,
    })
}

/// Encodes base64; with `url` in the alphabet of section 5 and without padding.
pub(crate) fn base64_encode(bytes: &[u8], url: bool, put: &mut dyn FnMut(u8)) {
    let tail = if url { b"-_" } else { b"+/" };
    let digit = |n: u32| match (n & 63) as u8 {
        n @ 0..=25 => b'A' + n,
        n @ 26..=51 => b'a' + n - 26,
        n @ 52..=61 => b'0' + n - 52,
        62 => tail[0],
        _ => tail[1],
    };
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, c| w << 8 | u32::from(*c)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                put(digit(word >> (18 - 6 * i)));
            } else if !url {
                put(b'=');
            }
        }
    }
}

/// The value of a hexadecimal digit.
pub(crate) fn hex_digit(c: u8) -> Option<u8> {
    char::from(c).to_digit(16).map(|d| d as u8)
}

/// Whether a password has this hash of crypt(3): SHA-256 (`$5$`) or SHA-512 (`$6$`). Others never match;
/// [`crypt_is_known`] tells when the configuration is read.
pub(crate) fn crypt_matches(hash: &str, given: &[u8]) -> bool {
    let Ok(given) = std::str::from_utf8(given) else { return false };
    match hash.get(..3) {
        Some("$5$") => sha_crypt::sha256_check(given, hash).is_ok(),
        Some("$6$") => sha_crypt::sha512_check(given, hash).is_ok(),
        _ => false,
    }
}

/// Whether [`crypt_matches`] can check a hash of this form.
pub fn crypt_is_known(hash: &str) -> bool {
    hash.starts_with("$5$") || hash.starts_with("$6$")
}
