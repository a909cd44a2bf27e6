//! From the PCRE that configurations hold to the syntax of the `regex` crate.
//!
//! Both agree on nearly everything; this pass rewrites what they don't: bytes outside ASCII,
//! `[` and doubled operators inside a class, `\Q...\E`, `\h`, `\R`, `\e`, `\cX`, a lone `{`,
//! and `$`, which in PCRE also matches before a final newline.

/// The same expression in the syntax of `regex`.
pub(crate) fn translate(pattern: &[u8]) -> String {
    let mut t = Translator { rest: pattern, out: String::with_capacity(pattern.len() + 8) };
    while let Some(c) = t.next() {
        match c {
            b'\\' => t.escape(false),
            b'[' => t.class(),
            b'{' if !t.at_repetition() => t.out.push_str("\\{"),
            b'}' if !t.closes_brace() => t.out.push_str("\\}"),
            c => t.literal(c),
        }
    }
    t.out
}

struct Translator<'a> {
    rest: &'a [u8],
    out: String,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn literal(&mut self, c: u8) {
        if c.is_ascii() && c != 0 {
            self.out.push(char::from(c));
        } else {
            self.out.push_str(&format!("\\x{c:02x}"));
        }
    }

    fn quoted(&mut self, c: u8) {
        if c.is_ascii_punctuation() && c != b'<' && c != b'>' {
            self.out.push('\\');
        }
        self.literal(c);
    }

    /// `{n}`, `{n,}`, `{n,m}` or `{,m}` follows the brace.
    fn at_repetition(&self) -> bool {
        let Some(end) = self.rest.iter().position(|c| *c == b'}') else { return false };
        let body = &self.rest[..end];
        body.first().is_some_and(u8::is_ascii_digit)
            && body.iter().all(|c| c.is_ascii_digit() || *c == b',')
            && body.iter().filter(|c| **c == b',').count() <= 1
    }

    /// Whether the brace just read ends a repetition that was copied.
    fn closes_brace(&self) -> bool {
        let body = self.out.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
        body.len() < self.out.len() && body.ends_with('{') && !body.ends_with("\\{")
    }

    fn escape(&mut self, in_class: bool) {
        match self.next() {
            None => self.out.push_str("\\\\"),
            Some(b'Q') => self.quotation(),
            Some(b'E') => {}
            Some(b'h') if in_class => self.out.push_str(" \\t"),
            Some(b'h') => self.out.push_str("[ \\t]"),
            Some(b'H') => self.out.push_str("[^ \\t]"),
            Some(b'R') if !in_class => self.out.push_str("(?:\\r\\n|[\\n\\x0b\\x0c\\r])"),
            Some(b'N') if !in_class => self.out.push_str("[^\\n]"),
            Some(b'e') => self.out.push_str("\\x1b"),
            Some(b'Z') if !in_class => self.out.push_str("\\n?\\z"),
            Some(b'b') if in_class => self.out.push_str("\\x08"),
            Some(b'c') => {
                let c = self.next().unwrap_or(b'@').to_ascii_uppercase() ^ 0x40;
                self.out.push_str(&format!("\\x{c:02x}"));
            }
            Some(b'<') => self.out.push('<'),
            Some(b'>') if !in_class => self.out.push('>'),
            Some(c) if !c.is_ascii() => self.literal(c),
            Some(c) if c.is_ascii_punctuation() => self.quoted(c),
            Some(b' ') => self.out.push_str("\\x20"),
            Some(c) => {
                self.out.push('\\');
                self.literal(c);
            }
        }
    }

    /// The rest of `\Q...\E`.
    fn quotation(&mut self) {
        while let Some(c) = self.next() {
            if c == b'\\' && self.peek() == Some(b'E') {
                self.next();
                return;
            }
            self.quoted(c);
        }
    }

    /// The rest of `[...]`.
    fn class(&mut self) {
        self.out.push('[');
        if self.peek() == Some(b'^') {
            self.next();
            self.out.push('^');
        }
        if self.peek() == Some(b']') {
            self.next();
            self.out.push_str("\\]");
        }
        while let Some(c) = self.next() {
            match c {
                b']' => {
                    self.out.push(']');
                    return;
                }
                b'\\' => self.escape(true),
                b'[' => self.inner_bracket(),
                b'&' | b'~' => self.quoted(c),
                b'-' if self.peek() == Some(b'-') => self.out.push_str("\\-"),
                c => self.literal(c),
            }
        }
    }

    /// `[:alpha:]` is a named class, any other `[` inside brackets stands for itself.
    fn inner_bracket(&mut self) {
        let named =
            self.rest.first() == Some(&b':')
                && self.rest.windows(2).position(|w| w == b":]").is_some_and(|end| {
                    self.rest[1..end].iter().all(|c| c.is_ascii_alphabetic() || *c == b'^')
                });
        if !named {
            self.out.push_str("\\[");
            return;
        }
        self.out.push('[');
        while let Some(c) = self.next() {
            self.literal(c);
            if c == b']' {
                return;
            }
        }
    }
}
