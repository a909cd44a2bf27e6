//! Byte classes of HTTP/1, one bit each, looked up in one table.

/// A byte of a token (RFC 9110 section 5.6.2).
pub const TOKEN: u8 = 1;
/// An upper-case letter.
pub const UPPER: u8 = 2;
/// A byte that a target may have: 33 to 126 but `#`, as the manual says.
pub const TARGET: u8 = 4;
/// A byte that a host may have: those of RFC 3986's reg-name, brackets and colon apart.
pub const HOST: u8 = 8;

/// A byte of the word that names a version: an upper-case letter, a digit, slash or dot.
pub const VERSION: u8 = 16;

/// The class bits of each byte.
pub const CLASS: [u8; 256] = classes();

#[inline]
pub fn class(byte: u8) -> u8 {
    CLASS[byte as usize]
}

/// Whether these bytes may be the name of a field (RFC 9110 section 5.1).
pub fn is_field_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| class(*byte) & TOKEN != 0)
}

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let alnum = byte.is_ascii_alphanumeric();
        if alnum || contains(b"!#$%&'*+-.^_`|~", byte) {
            table[at] |= TOKEN;
        }
        if byte.is_ascii_uppercase() {
            table[at] |= UPPER;
        }
        if byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'/' || byte == b'.' {
            table[at] |= VERSION;
        }
        if byte > 32 && byte < 127 && byte != b'#' {
            table[at] |= TARGET;
        }
        if byte > 32 && byte < 127 && !contains(b",@/?#\\[]", byte) {
            table[at] |= HOST;
        }
        at += 1;
    }
    table
}

const fn contains(set: &[u8], byte: u8) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}
