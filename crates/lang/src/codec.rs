//! Codings of bytes that several entries share: hexadecimal, percent.

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

/// Compares in a time that depends on the lengths alone.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (x, y)| all | (x ^ y)) == 0
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
