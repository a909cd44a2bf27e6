//! Integers with a prefix (RFC 7541 section 5.1).

use super::Error;

/// Reads an integer whose prefix is the low `prefix` bits of the first byte. Returns it and what follows.
#[inline]
pub fn read(input: &[u8], prefix: u32) -> Result<(u32, &[u8]), Error> {
    let (&first, rest) = input.split_first().ok_or(Error::Truncated)?;
    let mask = (1u32 << prefix) - 1;
    let value = u32::from(first) & mask;
    if value < mask { Ok((value, rest)) } else { long(rest, mask) }
}

/// Goes on with the bytes behind a full prefix: four at most, which is enough for all that fits into a block.
fn long(input: &[u8], prefix: u32) -> Result<(u32, &[u8]), Error> {
    let (mut value, mut rest) = (prefix, input);
    for shift in [0, 7, 14, 21] {
        let (&byte, tail) = rest.split_first().ok_or(Error::Truncated)?;
        value += u32::from(byte & 127) << shift;
        rest = tail;
        if byte < 128 {
            return Ok((value, rest));
        }
    }
    Err(Error::Integer)
}

/// Writes `value` with a prefix of `prefix` bits, below the bits set in `first`.
#[inline]
pub fn write(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        out.push(first | value as u8);
        return;
    }
    out.push(first | mask as u8);
    let mut left = value - mask;
    while left >= 128 {
        out.push(left as u8 | 128);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_appendix_c1() {
        assert_eq!(read(&[0b1110_1010], 5), Ok((10, &[][..])));
        assert_eq!(read(&[0b1111_1111, 0b1001_1010, 0b0000_1010, 7], 5), Ok((1337, &[7][..])));
        assert_eq!(read(&[42], 8), Ok((42, &[][..])));
    }

    #[test]
    fn what_is_written_reads_back() {
        for prefix in 4..=7 {
            for value in (0..400).chain([1337, 16_383, 16_384, 1 << 20, 1 << 27]) {
                let mut out = Vec::new();
                write(&mut out, 0, prefix, value);
                assert_eq!(read(&out, prefix), Ok((value as u32, &[][..])), "{value} in {prefix}");
            }
        }
    }

    #[test]
    fn endless_and_cut_integers_are_refused() {
        assert_eq!(read(&[255, 128, 128, 128, 128, 0], 7), Err(Error::Integer));
        assert_eq!(read(&[255, 255, 255, 255, 255, 255, 255, 1], 7), Err(Error::Integer));
        assert_eq!(read(&[255, 128], 7), Err(Error::Truncated));
        assert_eq!(read(&[], 7), Err(Error::Truncated));
    }
}
