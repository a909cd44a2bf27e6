//! Why an expression is none, in the words of PCRE2, which tools and people know from HAProxy: the message
//! and the number of bytes read when it was noticed.
//!
//! It is asked only about what no engine here compiles, and looks for the commonest slips in one pass. What
//! it doesn't know is told in the words of the engine.

/// A message and its offset.
pub(crate) type Fault = (&'static str, usize);

const NO_ITEM: &str = "quantifier does not follow a repeatable item";

/// What is wrong with `pattern`, if it is one of the common faults.
pub(crate) fn find(pattern: &[u8]) -> Option<Fault> {
    let mut reader = Reader { pattern, at: 0, open: 0, groups: 0, largest: None };
    if let Err(fault) = reader.run() {
        return Some(fault);
    }
    if reader.open > 0 {
        return Some(("missing closing parenthesis", pattern.len()));
    }
    let (number, at) = reader.largest?;
    (number > reader.groups).then_some(("reference to non-existent subpattern", at))
}

struct Reader<'p> {
    pattern: &'p [u8],
    at: usize,
    open: usize,
    groups: usize,
    /// The highest group referred to, and where PCRE2 places the fault.
    largest: Option<(usize, usize)>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.pattern.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    fn run(&mut self) -> Result<(), Fault> {
        // Whether a quantifier may follow: after an item, and not after another quantifier.
        let mut item = false;
        while let Some(c) = self.next() {
            let start = self.at - 1;
            match c {
                b'*' | b'+' | b'?' if !item => return Err((NO_ITEM, start)),
                b'*' | b'+' | b'?' => item = self.modifier(),
                b'{' if self.repetition(item)? => item = self.modifier(),
                b'(' => {
                    self.group()?;
                    item = false;
                }
                b')' if self.open == 0 => return Err(("unmatched closing parenthesis", start)),
                b')' => {
                    self.open -= 1;
                    item = true;
                }
                b'[' => {
                    self.class()?;
                    item = true;
                }
                b'\\' => {
                    self.escape()?;
                    item = true;
                }
                b'|' => item = false,
                _ => item = true,
            }
        }
        Ok(())
    }

    /// Takes `?` or `+` behind a quantifier; no further quantifier may follow.
    fn modifier(&mut self) -> bool {
        if matches!(self.peek(0), Some(b'?' | b'+')) {
            self.at += 1;
        }
        false
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut n = 0usize;
        while let Some(c) = self.peek(0).filter(u8::is_ascii_digit) {
            n = n.saturating_mul(10).saturating_add(usize::from(c - b'0'));
            self.at += 1;
        }
        (self.at > start).then_some(n)
    }

    /// The rest of `{n,m}`; without that form a brace is a letter, and nothing is taken.
    fn repetition(&mut self, item: bool) -> Result<bool, Fault> {
        const BIG: usize = 65535;
        let start = self.at;
        let Some(least) = self.number() else { return Ok(false) };
        let first = self.at;
        let mut most = Some(least);
        if self.peek(0) == Some(b',') {
            self.at += 1;
            most = self.number();
        }
        if self.peek(0) != Some(b'}') {
            self.at = start;
            return Ok(false);
        }
        if least > BIG {
            return Err(("number too big in {} quantifier", first));
        }
        if most.is_some_and(|m| m > BIG) {
            return Err(("number too big in {} quantifier", self.at));
        }
        if most.is_some_and(|m| m < least) {
            return Err(("numbers out of order in {} quantifier", self.at));
        }
        self.at += 1;
        if item { Ok(true) } else { Err((NO_ITEM, start - 1)) }
    }

    /// What follows an opening parenthesis.
    fn group(&mut self) -> Result<(), Fault> {
        self.open += 1;
        if self.peek(0) != Some(b'?') {
            if self.peek(0) != Some(b'*') {
                self.groups += 1;
            }
            return Ok(());
        }
        match self.peek(1) {
            None => self.at += 1,
            Some(b'#') => {
                let end = self.pattern.iter().skip(self.at).position(|c| *c == b')');
                let missing = ("missing ) after (?# comment", self.pattern.len());
                self.at += end.ok_or(missing)? + 1;
                self.open -= 1;
            }
            Some(b'<' | b'P' | b'\'') => self.named(),
            Some(b':' | b'=' | b'!' | b'>' | b'|' | b'(' | b'&' | b'R' | b'+' | b'C' | b'0'..=b'9') => {
                self.at += 2
            }
            Some(_) => self.options()?,
        }
        Ok(())
    }

    /// `(?<name>`, `(?P<name>`, `(?'name'`, and assertions that look behind.
    fn named(&mut self) {
        let behind = matches!((self.peek(1), self.peek(2)), (Some(b'<'), Some(b'=' | b'!')));
        let reference = matches!((self.peek(1), self.peek(2)), (Some(b'P'), Some(b'=' | b'>')));
        if !behind && !reference {
            self.groups += 1;
        }
        self.at += 2;
        while self
            .peek(0)
            .is_some_and(|c| matches!(c, b'<' | b'=' | b'!' | b'_') || c.is_ascii_alphanumeric())
        {
            self.at += 1;
        }
        if matches!(self.peek(0), Some(b'>' | b'\'')) {
            self.at += 1;
        }
    }

    /// `(?i-s)` and `(?i:`.
    fn options(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match self.next() {
                Some(
                    b'i' | b'm' | b's' | b'x' | b'n' | b'J' | b'U' | b'a' | b'D' | b'S' | b'W' | b'P' | b'T'
                    | b'r' | b'-' | b'^',
                ) => {}
                Some(b':') | None => return Ok(()),
                Some(b')') => {
                    self.open -= 1;
                    return Ok(());
                }
                Some(_) => return Err(("unrecognized character after (? or (?-", self.at - 1)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        match self.next() {
            None => return Err(("\\ at end of pattern", self.at)),
            Some(b'c') if self.next().is_none() => return Err(("\\c at end of pattern", self.at)),
            Some(b'Q') => {
                let rest = self.pattern.get(self.at..).unwrap_or_default();
                let end = rest.windows(2).position(|w| w == b"\\E");
                self.at += end.map_or(rest.len(), |n| n + 2);
            }
            Some(b'1'..=b'9') => {
                let start = self.at - 1;
                self.at = start;
                let n = self.number().unwrap_or(0);
                // Two digits and more may be a character in octal.
                if n < 10 && self.largest.is_none_or(|(most, _)| n > most) {
                    self.largest = Some((n, start));
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// The rest of a class in brackets.
    fn class(&mut self) -> Result<(), Fault> {
        let missing = ("missing terminating ] for character class", self.pattern.len());
        if self.peek(0) == Some(b'^') {
            self.at += 1;
        }
        let mut first = true;
        // The character that a range may begin with; `None` after a range or a named class.
        let mut low: Option<u8> = None;
        loop {
            let c = self.next().ok_or(missing)?;
            match c {
                b']' if !first => return Ok(()),
                b'[' if self.peek(0) == Some(b':') && self.is_named() => {
                    self.named_class()?;
                    low = None;
                }
                b'-' if low.is_some() && self.peek(0).is_some_and(|c| c != b']') => {
                    let high = self.next().ok_or(missing)?;
                    if high == b'\\' {
                        self.escape()?;
                    } else if low.is_some_and(|l| l > high) {
                        return Err(("range out of order in character class", self.at - 1));
                    }
                    low = None;
                }
                b'\\' => {
                    self.escape()?;
                    low = None;
                }
                c => low = Some(c),
            }
            first = false;
        }
    }

    fn is_named(&self) -> bool {
        let rest = self.pattern.get(self.at + 1..).unwrap_or_default();
        let end = rest.iter().position(|c| !c.is_ascii_alphabetic() && *c != b'^').unwrap_or(rest.len());
        rest.get(end..).is_some_and(|r| r.starts_with(b":]"))
    }

    /// `[:name:]`.
    fn named_class(&mut self) -> Result<(), Fault> {
        const NAMES: [&[u8]; 14] = [
            b"alpha", b"lower", b"upper", b"alnum", b"ascii", b"blank", b"cntrl", b"digit", b"graph",
            b"print", b"punct", b"space", b"word", b"xdigit",
        ];
        let start = self.at - 1;
        self.at += 1;
        let from = self.at;
        while self.peek(0).is_some_and(|c| c != b':') {
            self.at += 1;
        }
        let name = self.pattern.get(from..self.at).unwrap_or_default();
        let name = name.strip_prefix(b"^").unwrap_or(name);
        self.at += 2;
        if NAMES.contains(&name) { Ok(()) } else { Err(("unknown POSIX class name", start + 2)) }
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn faults_are_told_as_pcre2_tells_them() {
        for (pattern, text, offset) in [
            ("(", "missing closing parenthesis", 1),
            ("ab(cd", "missing closing parenthesis", 5),
            ("(?=", "missing closing parenthesis", 3),
            ("a)", "unmatched closing parenthesis", 1),
            ("*a", "quantifier does not follow a repeatable item", 0),
            ("a**", "quantifier does not follow a repeatable item", 2),
            ("a|*", "quantifier does not follow a repeatable item", 2),
            ("a{2,1}", "numbers out of order in {} quantifier", 5),
            ("a{99999}", "number too big in {} quantifier", 7),
            ("[b-a]", "range out of order in character class", 3),
            ("[a", "missing terminating ] for character class", 2),
            ("[z-", "missing terminating ] for character class", 3),
            ("[[:foo:]]", "unknown POSIX class name", 3),
            ("a\\", "\\ at end of pattern", 2),
            ("\\c", "\\c at end of pattern", 2),
            ("(?z)", "unrecognized character after (? or (?-", 2),
            ("\\1", "reference to non-existent subpattern", 1),
        ] {
            assert_eq!(find(pattern.as_bytes()), Some((text, offset)), "{pattern}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_is_right() {
        for pattern in [
            "^/(a|b)*?[^]a-z[:digit:]-]+\\d{2,}(?:x)(?i)y(?<n>z)\\1$",
            "a{,3}{b}",
            "[]]",
            "(?#note)x",
            "\\Q(\\E",
            "(?!a)b",
            "[\\]a]",
            "x++",
        ] {
            assert_eq!(find(pattern.as_bytes()), None, "{pattern}");
        }
    }
}
