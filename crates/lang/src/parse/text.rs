//! A cursor over the bytes of one word.

/// Where reading stands in a word.
#[derive(Clone, Copy)]
pub(super) struct Text<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Text<'t> {
    pub(super) fn new(bytes: &'t [u8], at: usize) -> Text<'t> {
        Text { bytes, at: at.min(bytes.len()) }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'t [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn bump(&mut self) -> Option<u8> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    pub(super) fn take_if(&mut self, c: u8) -> bool {
        let same = self.peek() == Some(c);
        self.at += usize::from(same);
        same
    }

    /// Takes as many bytes as satisfy `wanted`.
    pub(super) fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'t [u8] {
        let from = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.since(from)
    }

    pub(super) fn since(&self, from: usize) -> &'t [u8] {
        self.bytes.get(from..self.at).unwrap_or_default()
    }

    /// A keyword: letters, digits and `_ - . + :`.
    pub(super) fn keyword(&mut self) -> String {
        printable(
            self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b'+' | b':')),
        )
    }

    /// One argument up to a comma or a closing parenthesis outside quotes, its quotes resolved.
    /// `None` when a quote is not closed.
    pub(super) fn argument(&mut self) -> Option<Vec<u8>> {
        let (mut out, mut quote) = (Vec::new(), None);
        while let Some(c) = self.peek() {
            match (quote, c) {
                (None, b',' | b')') => break,
                (None, b'"' | b'\'') => quote = Some(c),
                (Some(q), _) if q == c => quote = None,
                (None | Some(b'"'), b'\\') => {
                    self.at += 1;
                    escape(self.peek(), &mut out);
                }
                _ => out.push(c),
            }
            self.at = (self.at + 1).min(self.bytes.len());
        }
        quote.is_none().then_some(out)
    }
}

/// What a backslash makes of the character behind it; others keep their backslash.
fn escape(next: Option<u8>, out: &mut Vec<u8>) {
    match next {
        Some(b'n') => out.push(b'\n'),
        Some(b'r') => out.push(b'\r'),
        Some(b't') => out.push(b'\t'),
        Some(c @ (b' ' | b'"' | b'\'' | b'\\')) => out.push(c),
        Some(c) => out.extend([b'\\', c]),
        None => out.push(b'\\'),
    }
}

/// Bytes for a message.
pub(crate) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
