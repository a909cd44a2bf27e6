//! Numbers of one to ten bytes, as the protocols of peers and of SPOE agents write them (`SPOE.txt`,
//! section 3.1).

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    if value < 0xf0 {
        return out.push(value as u8);
    }
    out.push(value as u8 | 0xf0);
    value = (value - 0xf0) >> 4;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value = (value - 0x80) >> 7;
    }
    out.push(value as u8);
}

/// What came of reading a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It, and its bytes.
    Number(u64, usize),
    /// It is not there yet.
    Short,
    /// It does not fit 64 bits.
    TooLarge,
}

/// Takes a number off the front.
pub fn take(data: &[u8]) -> Taken {
    let Some((first, rest)) = data.split_first() else { return Taken::Short };
    let mut value = u64::from(*first);
    if *first < 0xf0 {
        return Taken::Number(value, 1);
    }
    let mut shift = 4u32;
    for (byte, bytes) in rest.iter().zip(2..) {
        let part = u64::from(*byte);
        let shifted = part.checked_shl(shift).filter(|s| s >> shift == part);
        let Some(sum) = shifted.and_then(|s| value.checked_add(s)) else { return Taken::TooLarge };
        value = sum;
        if *byte < 0x80 {
            return Taken::Number(value, bytes);
        }
        shift += 7;
    }
    Taken::Short
}
