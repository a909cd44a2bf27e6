//! Looking for what an `expect` rule names (manual, `tcp-check expect`, `http-check expect`). Formats are
//! evaluated before, so that this is a pure function of what was received.

use pattern::Regex;
use program::check::{Expect, HeaderPattern, Pattern};
use wire::head::{Head, split_values};

/// What a look at the data came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The rule is satisfied.
    Satisfied,
    /// It is not, and more data can't change that.
    Violated,
    /// More data is needed.
    Later,
}

/// Something received.
pub struct Received<'r> {
    /// The bytes: all of a TCP answer, the body of an HTTP answer.
    pub data: &'r [u8],
    /// No more will come.
    pub over: bool,
}

/// Whether a rule looks at the head of an HTTP answer only.
pub fn wants_head(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Status(_) | Pattern::StatusRegex(_) | Pattern::Header { .. })
}

/// Looks for bytes. `needle` is the text of those patterns that have one.
pub fn in_data(expect: &Expect, needle: &[u8], received: &Received<'_>) -> Look {
    let Received { data, over } = *received;
    let least = expect.min_recv.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    if !over && least.is_some_and(|n| data.len() < n) {
        return Look::Later;
    }
    let found = match &expect.what {
        Pattern::Regex(regex) => regex.is_match(data),
        Pattern::BinaryRegex(regex) => regex.is_match(&hex(data)),
        Pattern::Anything => !data.is_empty(),
        _ => contains(data, needle),
    };
    conclude(expect, found, over || least.is_some())
}

fn conclude(expect: &Expect, found: bool, conclusive: bool) -> Look {
    match (found, conclusive) {
        (false, false) => Look::Later,
        _ if found != expect.negated => Look::Satisfied,
        _ => Look::Violated,
    }
}

/// Looks at the head of an HTTP answer; `text` evaluates a format.
pub fn in_head(expect: &Expect, head: &Head, text: &dyn Fn(&lang::LogFormat) -> Vec<u8>) -> Look {
    let status = head.status();
    let found = match &expect.what {
        Pattern::Status(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&status)),
        Pattern::StatusRegex(regex) => regex.is_match(status.to_string().as_bytes()),
        Pattern::Header { name, value, full } => {
            let name = Test::of(name, text, true);
            let value = value.as_ref().map(|v| Test::of(v, text, false));
            head.fields().any(|(_, n, v)| {
                name.holds(n)
                    && match &value {
                        None => true,
                        Some(test) if *full => test.holds(v),
                        Some(test) => split_values(v).any(|part| test.holds(part)),
                    }
            })
        }
        _ => false,
    };
    conclude(expect, found, true)
}

/// A comparison of names or values, its format evaluated.
enum Test<'p> {
    Str(Vec<u8>),
    Beg(Vec<u8>),
    End(Vec<u8>),
    Sub(Vec<u8>),
    Reg(&'p Regex),
}

impl<'p> Test<'p> {
    /// `lower`: for names, which stand in lower case in a head.
    fn of(pattern: &'p HeaderPattern, text: &dyn Fn(&lang::LogFormat) -> Vec<u8>, lower: bool) -> Test<'p> {
        let text = |f: &lang::LogFormat| if lower { text(f).to_ascii_lowercase() } else { text(f) };
        match pattern {
            HeaderPattern::Str(f) => Test::Str(text(f)),
            HeaderPattern::Beg(f) => Test::Beg(text(f)),
            HeaderPattern::End(f) => Test::End(text(f)),
            HeaderPattern::Sub(f) => Test::Sub(text(f)),
            HeaderPattern::Reg(r) => Test::Reg(r),
        }
    }

    fn holds(&self, bytes: &[u8]) -> bool {
        match self {
            Test::Str(t) => bytes == t.as_slice(),
            Test::Beg(t) => bytes.starts_with(t),
            Test::End(t) => bytes.ends_with(t),
            Test::Sub(t) => contains(bytes, t),
            Test::Reg(r) => r.is_match(bytes),
        }
    }
}

/// Whether `data` has `needle` somewhere in it.
fn contains(data: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || data.windows(needle.len()).any(|w| w == needle)
}

/// Bytes as upper-case hexadecimal digits.
pub fn hex(data: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    data.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).collect()
}

/// The bytes that hexadecimal digits stand for; `None` when they are not such digits in pairs.
pub fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    pairs.map(|p| Some(digit(*p.first()?)? << 4 | digit(*p.last()?)?)).collect()
}

/// The words that messages use for a pattern that was missed or met.
pub fn name(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Text(t) => format!("'{}'", String::from_utf8_lossy(t)),
        Pattern::Regex(_) => "(regex)".to_owned(),
        Pattern::Format(_) => "(log-format string)".to_owned(),
        Pattern::Binary(_) => "(binary)".to_owned(),
        Pattern::BinaryRegex(_) => "(binary regex)".to_owned(),
        Pattern::BinaryFormat(_) => "(log-format binary)".to_owned(),
        Pattern::Status(_) | Pattern::StatusRegex(_) => "(status)".to_owned(),
        Pattern::Header { .. } => "(header)".to_owned(),
        Pattern::Anything | Pattern::Protocol(_) => "(custom function)".to_owned(),
    }
}

/// The words that messages use for a rule that waited in vain.
pub fn describe(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Text(t) => format!("expect string '{}'", String::from_utf8_lossy(t)),
        Pattern::Binary(b) => format!("expect binary '{}'", String::from_utf8_lossy(&hex(b))),
        other => format!("expect {}", name(other).trim_matches(['(', ')'])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(negated: bool, min_recv: Option<u32>, what: Pattern) -> Expect {
        Expect { negated, min_recv, ..Expect::of(what) }
    }

    fn text(t: &str) -> Pattern {
        Pattern::Text(t.as_bytes().into())
    }

    fn look(rule: &Expect, data: &str, over: bool) -> Look {
        let needle = match &rule.what {
            Pattern::Text(t) => t.to_vec(),
            _ => Vec::new(),
        };
        in_data(rule, &needle, &Received { data: data.as_bytes(), over })
    }

    #[test]
    fn a_rule_waits_until_data_decides() {
        use Look::*;
        let table = [
            (rule(false, None, text("hello")), "he", false, Later),
            (rule(false, None, text("hello")), "say hello", false, Satisfied),
            (rule(false, None, text("hello")), "bye", true, Violated),
            (rule(true, None, text("bye")), "bye now", false, Violated),
            (rule(true, None, text("err")), "fine", false, Later),
            (rule(true, None, text("err")), "fine", true, Satisfied),
            (rule(true, Some(4), text("err")), "fine", false, Satisfied),
            (rule(false, Some(50), text("bye")), "bye", false, Later),
            (rule(false, Some(50), text("bye")), "bye", true, Satisfied),
            (rule(false, Some(0), text("bye")), "by", false, Violated),
        ];
        for (rule, data, over, expected) in table {
            assert_eq!(look(&rule, data, over), expected, "{data} {over} {}", rule.negated);
        }
    }

    #[test]
    fn regexes_see_bytes_or_their_digits() {
        let regex = |t: &str| Regex::new(t.as_bytes(), false).unwrap();
        assert_eq!(look(&rule(true, None, Pattern::Regex(regex("^b.e"))), "bye", false), Look::Violated);
        let binary = rule(false, None, Pattern::BinaryRegex(regex("^0A..30")));
        assert_eq!(look(&binary, "\nx0", false), Look::Satisfied);
    }

    #[test]
    fn digits_go_there_and_back() {
        assert_eq!(unhex(&hex(b"\x00\xffz")), Some(b"\x00\xffz".to_vec()));
        assert_eq!((unhex(b"zz"), unhex(b"123")), (None, None));
        assert_eq!(describe(&Pattern::Binary((*b"ABC").into())), "expect binary '414243'");
    }

    #[test]
    fn headers_are_tested_by_part_or_as_a_whole() {
        let mut head = Head::response();
        head.append(b"x-test", b"true, next value").unwrap();
        let format = |t: &str| {
            std::sync::Arc::new(lang::LogFormat {
                items: Box::new([lang::logfmt::Item::Text(t.as_bytes().into())]),
                encoding: Default::default(),
                bin: false,
                text: t.into(),
            })
        };
        let eval = |f: &lang::LogFormat| f.constant().unwrap_or_default().to_vec();
        let header = |name, value, full| {
            let r = rule(false, None, Pattern::Header { name, value, full });
            in_head(&r, &head, &eval) == Look::Satisfied
        };
        use HeaderPattern::*;
        assert!(header(Str(format("X-Test")), None, false));
        assert!(header(Beg(format("x-")), Some(Str(format("true"))), false));
        assert!(!header(Beg(format("x-")), Some(Str(format("true"))), true));
        assert!(header(End(format("-test")), Some(Sub(format("next"))), true));
        assert!(header(Sub(format("-t")), Some(Str(format("true, next value"))), true));
        assert!(!header(Str(format("y")), None, false));
    }
}
