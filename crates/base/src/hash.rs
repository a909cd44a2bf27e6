//! The hash functions of the configuration language, bit for bit.
//!
//! Two programs that balance the same keys over the same servers must choose alike, and rules store hashes in
//! maps and tables that outlive the process. So these functions are part of the interface: none may ever
//! change its result. Everything works on unsigned 32-bit integers modulo 2^32 unless its name says 64.
//!
//! Keys are short (an address, a path, a cookie), so the CRCs use one 256-entry table each instead of wide
//! slicing, whose tables would cost more cache than they save time.

use std::net::IpAddr;

/// Which function turns the bytes of a key into a number: the `<function>` of `hash-type`
/// (configuration manual, `hash-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Function {
    /// The hash of the sdbm database library; the default.
    #[default]
    Sdbm,
    /// Bernstein's function, times 33 from 5381.
    Djb2,
    /// Two rotating words; insensitive to patterns in the input.
    Wt6,
    /// CRC-32 as in Ethernet and gzip.
    Crc32,
    /// No hash: the key is read as a decimal number.
    None,
}

impl Function {
    /// The function with this name in a configuration, if there is one.
    pub fn by_name(name: &str) -> Option<Function> {
        match name {
            "sdbm" => Some(Function::Sdbm),
            "djb2" => Some(Function::Djb2),
            "wt6" => Some(Function::Wt6),
            "crc32" => Some(Function::Crc32),
            "none" => Some(Function::None),
            _ => None,
        }
    }

    /// Hashes `key`, without avalanche.
    pub fn hash(self, key: &[u8]) -> u32 {
        match self {
            Function::Sdbm => sdbm(key),
            Function::Djb2 => djb2(key),
            Function::Wt6 => wt6(key),
            Function::Crc32 => crc32(key),
            Function::None => decimal(key),
        }
    }
}

/// sdbm, from 0: `h = c + (h << 6) + (h << 16) - h`.
pub fn sdbm(key: &[u8]) -> u32 {
    key.iter().fold(0, |h: u32, &c| u32::from(c).wrapping_add(h << 6).wrapping_add(h << 16).wrapping_sub(h))
}

/// djb2, from 5381: `h = 33 h + c`.
pub fn djb2(key: &[u8]) -> u32 {
    key.iter().fold(5381, |h: u32, &c| h.wrapping_mul(33).wrapping_add(u32::from(c)))
}

/// wt6: two words that swap places at each byte, rotated by amounts that depend on what was read so far.
pub fn wt6(key: &[u8]) -> u32 {
    let (mut h0, mut h1) = (0xa53c_965a_u32, 0x5ca6_953a_u32);
    let (mut r0, mut r1) = (6, 18);
    for &c in key {
        let t = u32::from(c);
        let a = !(h0 ^ t);
        let b = !h1.wrapping_add(t);
        (h0, h1) = (b.rotate_left(r0), a.rotate_left(r1));
        let u = ((h0 >> 16) ^ h1) & 0xffff;
        (r0, r1) = (u & 0x1f, u >> 11);
    }
    h0 ^ h1
}

/// CRC-32 (reflected polynomial edb88320, complemented before and after), as in gzip.
pub fn crc32(key: &[u8]) -> u32 {
    crc(&CRC32, key)
}

/// CRC-32C (Castagnoli, reflected polynomial 82f63b78, complemented before and after), as in iSCSI.
pub fn crc32c(key: &[u8]) -> u32 {
    crc(&CRC32C, key)
}

/// XXH32 of `key`.
pub fn xxh32(key: &[u8], seed: u32) -> u32 {
    twox_hash::XxHash32::oneshot(seed, key)
}

/// XXH64 of `key`.
pub fn xxh64(key: &[u8], seed: u64) -> u64 {
    twox_hash::XxHash64::oneshot(seed, key)
}

/// XXH3, 64 bits, of `key`.
pub fn xxh3(key: &[u8], seed: u64) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, key)
}

/// The `avalanche` modifier of `hash-type`: Bob Jenkins's six-step integer mix, then a multiplication.
pub fn avalanche(a: u32) -> u32 {
    let a = a.wrapping_add(0x7ed5_5d16).wrapping_add(a << 12);
    let a = a ^ 0xc761_c23c ^ (a >> 19);
    let a = a.wrapping_add(0x1656_67b1).wrapping_add(a << 5);
    let a = a.wrapping_add(0xd3a2_646c) ^ (a << 9);
    let a = a.wrapping_add(0xfd70_46c5).wrapping_add(a << 3);
    let a = a ^ 0xb55a_4f09 ^ (a >> 16);
    a.wrapping_mul(3_221_225_473)
}

/// The key of `balance source`: the address as big-endian 32-bit words, xored together.
pub fn address(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(v4) => v4.to_bits(),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            (bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32
        }
    }
}

/// The key as a decimal number: a sign and leading digits, stopping at the first other byte; modulo 2^32.
pub fn decimal(key: &[u8]) -> u32 {
    let unsigned = key.strip_prefix(b"-");
    let digits = unsigned.unwrap_or(key).iter().take_while(|c| c.is_ascii_digit());
    let number = digits.fold(0, |n: u32, &c| n.wrapping_mul(10).wrapping_add(u32::from(c - b'0')));
    if unsigned.is_some() { number.wrapping_neg() } else { number }
}

static CRC32: [u32; 256] = crc_table(0xedb8_8320);
static CRC32C: [u32; 256] = crc_table(0x82f6_3b78);

fn crc(table: &[u32; 256], key: &[u8]) -> u32 {
    !key.iter().fold(!0, |crc: u32, &c| table[usize::from(crc as u8 ^ c)] ^ (crc >> 8))
}

const fn crc_table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ polynomial } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_their_published_check_values() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(djb2(b""), 5381);
        assert_eq!(djb2(b"a"), 177_670);
        assert_eq!(sdbm(b"a"), 97);
        assert_eq!(sdbm(b"ab"), 97 * 65_599 + 98);
        assert_eq!(xxh32(b"", 0), 0x02cc_5d05);
        assert_eq!(xxh64(b"", 0), 0xef46_db37_51d8_e999);
        assert_eq!(xxh3(b"", 0), 0x2d06_8005_38d3_94c2);
    }

    #[test]
    fn an_address_folds_into_one_word() {
        assert_eq!(address("127.0.0.1".parse().unwrap()), 0x7f00_0001);
        assert_eq!(address("2001:db8::1".parse().unwrap()), 0x2001_0db8 ^ 1);
        assert_eq!(
            address("1:2:3:4:5:6:7:8".parse().unwrap()),
            0x0001_0002 ^ 0x0003_0004 ^ 0x0005_0006 ^ 0x0007_0008
        );
    }

    #[test]
    fn a_decimal_key_stops_at_the_first_other_byte() {
        assert_eq!(decimal(b"1234x9"), 1234);
        assert_eq!(decimal(b"x"), 0);
        assert_eq!(decimal(b"4294967297"), 1);
        assert_eq!(decimal(b"-5"), u32::MAX - 4);
    }

    #[test]
    fn names_find_their_functions() {
        for (name, function) in [
            ("sdbm", Function::Sdbm),
            ("djb2", Function::Djb2),
            ("wt6", Function::Wt6),
            ("crc32", Function::Crc32),
            ("none", Function::None),
        ] {
            assert_eq!(Function::by_name(name), Some(function));
        }
        assert_eq!(Function::by_name("md5"), None);
    }
}
