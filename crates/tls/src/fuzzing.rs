//! The entries for fuzzers: handshakes, and any bytes as a ClientHello and as a certificate. No panic is the
//! least of it: what is read of a hello may not depend on where its records were cut, and nothing may be read
//! that was not there.

mod meeting;

pub use meeting::handshake;

use crate::hello::{self, Hello};
use x509::Certificate;

/// Any bytes.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn tls(data: &[u8]) {
    if let Ok(Some(message)) = hello::collect(data) {
        greet(&message);
        // The same message, a byte a record.
        let mut pieces = Vec::new();
        let whole = [
            &[1, (message.len() >> 16) as u8, (message.len() >> 8) as u8, message.len() as u8],
            &message[..],
        ];
        whole.concat().iter().for_each(|byte| pieces.extend_from_slice(&[22, 3, 1, 0, 1, *byte]));
        assert_eq!(hello::collect(&pieces).ok().flatten().as_deref(), Some(&message[..]));
    }
    greet(data);
    certificate(data);
}

fn greet(message: &[u8]) {
    let Some(hello) = Hello::parse(message) else { return };
    let inside = |part: &[u8]| part.is_empty() || message.as_ptr_range().contains(&part.as_ptr());
    assert!(inside(hello.random) && inside(hello.session_id) && inside(hello.ciphers));
    assert!(hello.server_name().is_none_or(inside));
    let _ = (hello.offers_tls13(), hello.verifies_ecdsa(), hello.verifies_rsa());
    let _ = hello.offers_any(&[b"h2".to_vec()]);
}

fn certificate(der: &[u8]) {
    let Some(certificate) = Certificate::parse(der) else { return };
    let inside = |part: &[u8]| part.is_empty() || der.as_ptr_range().contains(&part.as_ptr());
    assert!(certificate.dns_names().all(inside) && certificate.addresses().all(inside));
    assert!(certificate.common_names().all(inside));
    let _ =
        (certificate.is_self_issued(), certificate.times(), certificate.key_algorithm(), certificate.key());
    x509::attributes(der).take(100).for_each(drop);
    let mut told = String::new();
    crate::print::certificate(&mut told, der);
    assert!(told.lines().all(|line| !line.is_empty()), "an empty line ends the answer of a command");
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_near_a_hello_and_a_certificate_are_read_or_refused() {
        // A hello with a server name and a protocol, then every byte of it changed and every length of it.
        let extensions = b"\0\0\0\x06\0\x04\0\0\x01a\0\x10\0\x05\0\x03\x02h2";
        let mut body =
            [&b"\x03\x03"[..], &[7; 32], b"\0\0\x02\x13\x01\x01\0", &[0, extensions.len() as u8], extensions]
                .concat();
        let hello = super::Hello::parse(&body).expect("a hello");
        assert_eq!(hello.server_name(), Some(&b"a"[..]));
        assert!(hello.offers_any(&[b"h2".to_vec()]) && !hello.offers_any(&[b"x".to_vec()]));
        for at in 0..body.len() {
            super::tls(&body[..at]);
            for bit in 0..8 {
                body[at] ^= 1 << bit;
                super::tls(&body);
                body[at] ^= 1 << bit;
            }
        }
    }
}
