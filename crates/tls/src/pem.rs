//! PEM as it is written (RFC 7468).

use std::fmt::Write as _;

/// Appends some DER under its label.
pub(crate) fn put(out: &mut String, label: &str, der: &[u8]) {
    let _ = writeln!(out, "-----BEGIN {label}-----");
    let digits = base::base64::encode(der);
    let mut rest = &*digits;
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        let _ = writeln!(out, "{line}");
        rest = tail;
    }
    let _ = writeln!(out, "-----END {label}-----");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::pem;

    #[test]
    fn what_is_written_is_read() {
        for length in [0, 1, 47, 48, 49, 96, 1000] {
            let der = vec![7; length];
            let mut text = String::new();
            put(&mut text, "CERTIFICATE", &der);
            assert!(text.lines().all(|line| line.len() <= 64));
            assert_eq!(&*pem(text.as_bytes()).unwrap().certificates[0], &*der);
        }
    }
}
