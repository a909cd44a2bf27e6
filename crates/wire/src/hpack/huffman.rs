//! The Huffman code of RFC 7541 appendix B.
//!
//! The code is canonical: among codes of one length the symbols stand in order, and longer codes follow
//! shorter ones. So the lengths say everything, and the tables are computed from them at compile time. Codes
//! of up to ten bits, which is nearly all of real text, are found by one look-up; longer ones by comparing
//! with the first of each length.

use super::Error;

/// The length in bits of the code of each byte. The end-of-string symbol has 30 bits, all of them ones.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26,
];

const EOS_BITS: usize = 30;
/// Bits of the first look-up.
const FAST: u32 = 10;

struct Code {
    /// By the next ten bits: symbol and length, or 0 where the code is longer.
    fast: [u16; 1 << FAST],
    /// The bytes in the order of their codes.
    sorted: [u8; 256],
    /// For each length, the first code that is longer, left-aligned in 32 bits, and the place in `sorted` of
    /// what would be code 0 of that length.
    limits: [(u32, i32); EOS_BITS + 1],
}

static CODE: Code = build();

const fn build() -> Code {
    let mut code = Code { fast: [0; 1 << FAST], sorted: [0; 256], limits: [(0, 0); EOS_BITS + 1] };
    let (mut next, mut place, mut len) = (0u32, 0usize, 1usize);
    while len <= EOS_BITS {
        next <<= 1;
        code.limits[len].1 = place as i32 - next as i32;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == len {
                code.sorted[place] = symbol as u8;
                if len as u32 <= FAST {
                    let from = (next << (FAST - len as u32)) as usize;
                    let mut at = from;
                    while at < from + (1 << (FAST - len as u32)) {
                        code.fast[at] = (symbol as u16) << 4 | len as u16;
                        at += 1;
                    }
                }
                place += 1;
                next += 1;
            }
            symbol += 1;
        }
        code.limits[len].0 = ((next as u64) << (32 - len)) as u32;
        len += 1;
    }
    assert!(place == 256 && next == (1 << EOS_BITS) - 1, "one code is left, that of the end of the string");
    code
}

/// Appends to `out` what `input` stands for.
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    out.reserve(input.len() * 8 / 5 + 1);
    let (mut rest, mut bits, mut have) = (input, 0u64, 0u32);
    loop {
        if have < 32 {
            if let Some((word, tail)) = rest.split_first_chunk::<4>() {
                bits |= u64::from(u32::from_be_bytes(*word)) << (32 - have);
                (have, rest) = (have + 32, tail);
            } else if let Some((&byte, tail)) = rest.split_first() {
                bits |= u64::from(byte) << (56 - have);
                (have, rest) = (have + 8, tail);
                continue;
            }
        }
        let entry = CODE.fast.get((bits >> (64 - FAST)) as usize).copied().unwrap_or(0);
        let (symbol, len) =
            if entry != 0 { ((entry >> 4) as u8, u32::from(entry & 15)) } else { long((bits >> 32) as u32)? };
        if len > have {
            break;
        }
        out.push(symbol);
        bits <<= len;
        have -= len;
    }
    // What is left has to be the beginning of the end-of-string symbol, and less than a byte of it.
    let ones = (1u64 << have) - 1;
    if have < 8 && bits >> 1 >> (63 - have) == ones { Ok(()) } else { Err(Error::Huffman) }
}

/// A code of more than [`FAST`] bits. Zeros behind the end of the input never make one that is not there.
#[cold]
fn long(bits: u32) -> Result<(u8, u32), Error> {
    for (len, &(limit, offset)) in CODE.limits.iter().enumerate().skip(FAST as usize + 1) {
        if bits < limit {
            let place = (bits >> (32 - len)) as i32 + offset;
            let symbol = CODE.sorted.get(place as usize).ok_or(Error::Huffman)?;
            return Ok((*symbol, len as u32));
        }
    }
    Err(Error::Huffman)
}

/// Appends the code of `text`, as peers may send it.
#[cfg(test)]
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut have) = (0u64, 0u32);
    for &byte in text {
        let place = CODE.sorted.iter().position(|symbol| *symbol == byte).expect("all bytes are there");
        let len = u32::from(LENGTHS[usize::from(byte)]);
        let code = (place as i32 - CODE.limits[len as usize].1) as u64;
        bits = bits << len | code;
        have += len;
        while have >= 8 {
            have -= 8;
            out.push((bits >> have) as u8);
        }
    }
    if have > 0 {
        out.push((bits << (8 - have)) as u8 | (255 >> have));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    #[test]
    fn bad_ends_are_refused() {
        // `0` is 00000, so 00000111 is one `0` and padding.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), Err(Error::Huffman), "padding with a zero");
        assert_eq!(decoded(&[0b0000_0111, 255]), Err(Error::Huffman), "a byte of padding too many");
        assert_eq!(decoded(&[255]), Err(Error::Huffman), "nothing but padding");
        assert_eq!(decoded(&[255, 255, 255, 255]), Err(Error::Huffman), "the end-of-string symbol");
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    #[test]
    fn each_byte_reads_back() {
        for byte in 0..=255 {
            let mut out = Vec::new();
            encode(&[byte, b'a', byte], &mut out);
            assert_eq!(decoded(&out), Ok(vec![byte, b'a', byte]));
        }
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            encode(&text, &mut out);
            prop_assert_eq!(decoded(&out), Ok(text));
        }
    }
}
