//! Base64 (RFC 4648): keys, passwords, tokens and responses come in it.
//!
//! The two that take a `put` write wherever the caller wants to have it; the others make what most need.

/// Decodes section 4, or section 5 with `url`, with or without padding. `None` when it is none.
pub fn decode_to(text: &[u8], url: bool, put: &mut dyn FnMut(u8)) -> Option<()> {
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

/// Decodes section 4 with its padding. `None` when it is none.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    decode_to(text, false, &mut |c| out.push(c))?;
    Some(out)
}

/// Decodes section 4 written over several lines.
pub fn decode_lines(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.iter().copied().filter(|c| !c.is_ascii_whitespace()).collect();
    decode(&digits)
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

/// Encodes as in section 4; with `url` in the alphabet of section 5 and without padding.
pub fn encode_to(bytes: &[u8], url: bool, put: &mut dyn FnMut(u8)) {
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

/// Encodes as in section 4, with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    encode_to(bytes, false, &mut |c| out.push(char::from(c)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        assert_eq!(decode(b"AAEC/w==").as_deref(), Some(&[0, 1, 2, 255][..]));
        assert_eq!(decode_lines(b"AAEC\n/w==\n").as_deref(), Some(&[0, 1, 2, 255][..]));
        assert_eq!(encode(&[0, 1, 2, 255]), "AAEC/w==");
        for len in 0..70u8 {
            let bytes: Vec<u8> = (0..len).map(|b| b.wrapping_mul(37)).collect();
            assert_eq!(decode(encode(&bytes).as_bytes()), Some(bytes));
        }
        for bad in [&b"zzz"[..], b"AA*=", b"AAECA", b"A===", b"AA\n=="] {
            assert_eq!(decode(bad), None);
        }
    }

    #[test]
    fn the_alphabet_of_addresses_needs_no_padding() {
        let mut text = String::new();
        encode_to(&[0xfb, 0xff], true, &mut |c| text.push(char::from(c)));
        assert_eq!(text, "-_8");
        let mut bytes = Vec::new();
        assert!(decode_to(b"-_8", true, &mut |c| bytes.push(c)).is_some());
        assert_eq!(bytes, [0xfb, 0xff]);
        assert!(decode_to(b"+/8", true, &mut |_| {}).is_none());
    }
}
