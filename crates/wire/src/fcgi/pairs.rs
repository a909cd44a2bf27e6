//! Name-value pairs (section 3.4): two lengths of one or four bytes each, then both texts.

/// Reads pairs one after the other, and ends where there is no whole one.
#[derive(Clone, Debug)]
pub struct Pairs<'a>(&'a [u8]);

impl<'a> Pairs<'a> {
    /// Those in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Pairs<'a> {
        Pairs(bytes)
    }

    /// What is not read yet: behind the last pair, what is no pair.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = length(self.0)?;
        let (value, rest) = length(rest)?;
        let (name, rest) = rest.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        self.0 = rest;
        Some((name, value))
    }
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        return Some((usize::from(*first), rest));
    }
    let (long, rest) = bytes.split_first_chunk()?;
    Some((usize::try_from(u32::from_be_bytes(*long) & 0x7fff_ffff).ok()?, rest))
}

/// Appends a pair. Texts of 2 GiB and more don't fit one; nothing that long is ever at hand.
pub fn put_pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for text in [name, value] {
        match u8::try_from(text.len()) {
            Ok(short) if short < 0x80 => out.push(short),
            _ => {
                let long = u32::try_from(text.len()).unwrap_or(u32::MAX) | 0x8000_0000;
                out.extend_from_slice(&long.to_be_bytes());
            }
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}
