//! SMTP as a client speaks it (RFC 5321): the replies of a server, and the text of a mail on its way.

/// Most bytes of a reply, all its lines together.
const LONGEST: usize = 16 << 10;
/// Where lines of a mail are broken at the latest: 998 are allowed.
const WIDTH: usize = 900;

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The number.
    pub code: u16,
    /// The last line, number included.
    pub line: &'a [u8],
    /// Bytes that it took.
    pub length: usize,
}

/// What came is no reply, or one without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads the reply at the beginning of what has come; `None`: its end has not come yet.
///
/// # Errors
/// It is none.
pub fn reply(input: &[u8]) -> Result<Option<Reply<'_>>, Malformed> {
    let mut at = 0;
    let mut first = None;
    while let Some(rest) = input.get(at..)
        && let Some(end) = rest.iter().position(|c| *c == b'\n')
    {
        let line = rest.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        at += end + 1;
        let (code, more) = number(line).ok_or(Malformed)?;
        if *first.get_or_insert(code) != code || at > LONGEST {
            return Err(Malformed);
        }
        if !more {
            return Ok(Some(Reply { code, line, length: at }));
        }
    }
    // A line that can't become one any more needs no end.
    let begun = input.get(at..).unwrap_or_default();
    let digits = begun.iter().take(3).all(u8::is_ascii_digit);
    if digits && input.len() <= LONGEST { Ok(None) } else { Err(Malformed) }
}

/// The number of a line, and whether another one follows.
fn number(line: &[u8]) -> Option<(u16, bool)> {
    let (digits, rest) = line.split_at_checked(3)?;
    let code =
        digits.iter().try_fold(0, |code, c| c.is_ascii_digit().then(|| code * 10 + u16::from(c - b'0')));
    match rest.first() {
        None | Some(b' ') => Some((code?, false)),
        Some(b'-') => Some((code?, true)),
        Some(_) => None,
    }
}

/// The text of a mail as it follows `DATA`, with the dot that ends it. What would end a line or the mail
/// before its time can't.
pub fn mail(headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut out = String::new();
    for (name, value) in headers {
        line(&mut out, &format!("{name}: {}", plain(value)));
    }
    out.push_str("\r\n");
    for text in body.lines() {
        // A dot may come to stand at the beginning when what a line may not hold is taken away.
        let text = plain(text);
        let dot = if text.starts_with('.') { "." } else { "" };
        line(&mut out, &format!("{dot}{text}"));
    }
    out.push_str(".\r\n");
    out.into_bytes()
}

/// A text without what a line may not hold.
pub fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A line, on several where it is long: each further one begins with a blank, so it goes on in a header, and
/// begins with no dot.
fn line(out: &mut String, mut text: &str) {
    while text.len() > WIDTH {
        let within = text.char_indices().take_while(|(at, _)| *at <= WIDTH);
        let (mut cut, mut blank) = (0, 0);
        for (at, c) in within {
            cut = at;
            if c == ' ' {
                blank = at;
            }
        }
        let cut = if blank > WIDTH / 2 { blank } else { cut };
        let (head, rest) = text.split_at(cut);
        out.push_str(head);
        out.push_str("\r\n ");
        text = rest.trim_start_matches(' ');
    }
    out.push_str(text);
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_end_with_a_line_that_says_so() {
        let whole = b"250-mx.example\r\n250-SIZE 100\r\n250 HELP\r\n220 next";
        for cut in 0..41 {
            assert_eq!(reply(&whole[..cut]), if cut < 40 { Ok(None) } else { reply(whole) }, "{cut}");
        }
        assert_eq!(reply(whole), Ok(Some(Reply { code: 250, line: b"250 HELP", length: 40 })));
        assert_eq!(reply(b"354\n"), Ok(Some(Reply { code: 354, line: b"354", length: 4 })));
        for bad in [&b"hello\r\n"[..], b"25", b"250x\r\n", b"250-a\r\n251 b\r\n", b"\r\n", b"99999 x\r\n"] {
            let expected = if bad == b"25" { Ok(None) } else { Err(Malformed) };
            assert_eq!(reply(bad), expected, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_reply_without_end_is_none() {
        let line = "250-".to_owned() + &"x".repeat(LONGEST);
        assert_eq!(reply(line.as_bytes()), Err(Malformed));
        assert_eq!(reply("250-x\r\n".repeat(LONGEST).as_bytes()), Err(Malformed));
    }

    #[test]
    fn no_text_ends_a_mail_before_its_time() {
        let sent = mail(&[("To", "a\r\nBcc: b"), ("Subject", "x")], ".\r\n..y\nz");
        assert_eq!(sent, b"To: aBcc: b\r\nSubject: x\r\n\r\n..\r\n...y\r\nz\r\n.\r\n");
        assert_eq!(mail(&[], "\u{19}."), b"\r\n..\r\n.\r\n");
    }

    #[test]
    fn long_lines_are_broken_at_blanks() {
        for word in ["word ", "wörd.", "."] {
            let sent = mail(&[("Subject", &word.repeat(2000))], &word.repeat(2000));
            let sent = String::from_utf8(sent).unwrap();
            assert!(sent.split("\r\n").all(|line| line.len() < 998), "{word}");
            assert_eq!(sent.matches("\r\n.\r\n").count(), 1, "{word}");
        }
    }
}
