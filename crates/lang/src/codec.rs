//! Codings of bytes that several entries share: hexadecimal, base64, percent.

/// Decodes base64 (RFC 4648 section 4, or 5 with `url`), with or without padding. `None` when it is none.
pub fn base64_decode(text: &[u8], url: bool, put: &mut dyn FnMut(u8)) -> Option<()> {
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
pub fn base64_encode(bytes: &[u8], url: bool, put: &mut dyn FnMut(u8)) {
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

/// Appends a number as SPOE writes it: below 240 in one byte, above in groups of seven bits behind four.
pub(crate) fn put_length(n: usize, put: &mut dyn FnMut(u8)) {
    if n < 240 {
        return put(n as u8);
    }
    put(n as u8 | 240);
    let mut rest = (n - 240) >> 4;
    while rest >= 128 {
        put(rest as u8 | 128);
        rest = (rest - 128) >> 7;
    }
    put(rest as u8);
}

/// The number at the start, as SPOE writes it, and what follows. `None` when it is cut off or too large.
pub(crate) fn length_of(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, mut rest) = bytes.split_first()?;
    let mut n = u64::from(first);
    if first < 240 {
        return Some((n, rest));
    }
    let mut shift = 4;
    loop {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        n = n.checked_add(u64::from(byte).checked_shl(shift)?)?;
        shift += 7;
        if byte < 128 {
            return Some((n, rest));
        }
        if shift > 53 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{length_of, put_length};

    #[test]
    fn lengths_read_as_written() {
        for n in [0, 1, 239, 240, 241, 255, 256, 2287, 2288, 100_000, 0xffff_ffff] {
            let mut bytes = Vec::new();
            put_length(n, &mut |b| bytes.push(b));
            bytes.push(7);
            assert_eq!(length_of(&bytes), Some((n as u64, &[7u8][..])), "{n}");
        }
        assert_eq!(length_of(&[240]), None);
        assert_eq!(length_of(&[255; 20]), None);
    }
}
