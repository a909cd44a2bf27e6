//! What bodies are made of: each byte is a function of the request's id, the direction and the place, so a
//! receiver finds the first wrong byte (one of another body, one twice, one left out) without having seen the
//! sender. A body also carries its length and a hash in `x-body`.

/// A small random number generator (SplitMix64): a seed replays all choices.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(mix(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The direction of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
}

/// The bytes of one body, made or checked from the first to the last.
pub struct Content {
    seed: u64,
    at: u64,
    hash: u64,
    /// The bytes of the word at hand that were checked, and how many they are.
    open: u64,
}

const PRIME: u64 = 0x9fb2_1c65_1e98_df25;

impl Content {
    pub fn new(id: u64, way: Way) -> Content {
        let seed = mix(id.wrapping_mul(2).wrapping_add((way == Way::Down) as u64));
        Content { seed, at: 0, hash: PRIME, open: 0 }
    }

    /// How many bytes were made or checked.
    pub fn at(&self) -> u64 {
        self.at
    }

    fn word(&self, place: u64) -> [u8; 8] {
        mix(self.seed.wrapping_add((place / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15))).to_le_bytes()
    }

    /// How many bytes up to the next border of a word.
    fn odd(&self, of: usize) -> usize {
        ((8 - self.at % 8) % 8).min(of as u64) as usize
    }

    fn fill_odd(&mut self, out: &mut [u8]) {
        let from = (self.at % 8) as usize;
        let word = self.word(self.at);
        out.copy_from_slice(&word[from..from + out.len()]);
        self.at += out.len() as u64;
    }

    /// Makes the next bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let odd = self.odd(out.len());
        let (odd, even) = out.split_at_mut(odd);
        self.fill_odd(odd);
        let (words, rest) = even.as_chunks_mut::<8>();
        for word in words {
            *word = self.word(self.at);
            self.at += 8;
        }
        self.fill_odd(rest);
    }

    fn check_odd(&mut self, bytes: &[u8]) -> Result<(), u64> {
        for byte in bytes {
            let in_word = (self.at % 8) as usize;
            if self.word(self.at)[in_word] != *byte {
                return Err(self.at);
            }
            self.open |= u64::from(*byte) << (8 * in_word);
            self.at += 1;
            if self.at.is_multiple_of(8) {
                self.hash = fold(self.hash, std::mem::take(&mut self.open));
            }
        }
        Ok(())
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// Where the first wrong byte stands.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), u64> {
        let (odd, even) = bytes.split_at(self.odd(bytes.len()));
        self.check_odd(odd)?;
        let (words, rest) = even.as_chunks::<8>();
        for word in words {
            if *word != self.word(self.at) {
                return self.check_odd(word);
            }
            self.hash = fold(self.hash, u64::from_le_bytes(*word));
            self.at += 8;
        }
        self.check_odd(rest)
    }

    /// The hash of what was checked.
    pub fn hash(&self) -> u64 {
        fold(self.hash, self.open)
    }
}

fn fold(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(PRIME).rotate_left(29)
}

/// What `x-body` says of a body: its length and its hash.
pub fn label(id: u64, way: Way, len: u64) -> String {
    let made = Content::new(id, way);
    let mut hash = PRIME;
    for word in 0..len / 8 {
        hash = fold(hash, u64::from_le_bytes(made.word(word * 8)));
    }
    let last = u64::from_le_bytes(made.word(len)) & ((1 << (8 * (len % 8))) - 1);
    format!("{len}:{:016x}", fold(hash, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_is_found_where_it_stands() {
        let mut bytes = vec![0u8; 1000];
        Content::new(7, Way::Up).fill(&mut bytes);
        let mut check = Content::new(7, Way::Up);
        assert_eq!(check.check(&bytes[..333]), Ok(()));
        assert_eq!(check.check(&bytes[333..]), Ok(()));
        assert_eq!(label(7, Way::Up, 1000), format!("1000:{:016x}", check.hash()));
        bytes[777] ^= 1;
        assert_eq!(Content::new(7, Way::Up).check(&bytes), Err(777));
        assert!(Content::new(8, Way::Up).check(&bytes).is_err());
        assert!(Content::new(7, Way::Down).check(&bytes).is_err());
    }

    #[test]
    fn a_byte_twice_or_left_out_is_found() {
        let mut bytes = vec![0u8; 100];
        Content::new(9, Way::Down).fill(&mut bytes);
        let twice = [&bytes[..50], &bytes[49..]].concat();
        assert!(Content::new(9, Way::Down).check(&twice).is_err());
        let out = [&bytes[..50], &bytes[51..]].concat();
        assert!(Content::new(9, Way::Down).check(&out).is_err());
    }
}
