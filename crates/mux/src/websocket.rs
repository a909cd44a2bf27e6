//! The keys of WebSockets, between a side that has none and one that can't do without.

/// A fresh key: HTTP/2 has none, HTTP/1 can't do without (RFC 8441 section 5, RFC 6455 section 4.1).
pub fn key() -> Vec<u8> {
    let mut bytes = [0; 16];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&rt::random().to_ne_bytes());
    second.copy_from_slice(&rt::random().to_ne_bytes());
    base::base64::encode(&bytes).into_bytes()
}

/// What a server of HTTP/1 would answer to a key (RFC 6455 section 4.2.2).
pub fn accept(key: &[u8]) -> Vec<u8> {
    use sha1::Digest;
    let mut digest = sha1::Sha1::new();
    digest.update(key);
    digest.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    base::base64::encode(&digest.finalize()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_the_rfc_shows() {
        // RFC 6455 section 1.3.
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
