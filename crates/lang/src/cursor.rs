//! Reading a peer's bytes from front to back: every step says whether they were there.

/// What is left to read.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next `n` bytes.
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    /// A big-endian number of `n` bytes, at most four.
    pub(crate) fn number(&mut self, n: usize) -> Option<u32> {
        Some(self.take(n)?.iter().fold(0, |all, c| all << 8 | u32::from(*c)))
    }

    /// Bytes behind their length in `n` bytes.
    pub(crate) fn vector(&mut self, n: usize) -> Option<&'a [u8]> {
        let length = self.number(n)?;
        self.take(length as usize)
    }
}
