//! Messages of syslog: RFC 3164, RFC 5424, and RFC 6587 where they come over a stream.
//!
//! Whatever comes is a message. What has the form of neither RFC is text of which at most the priority is
//! known. Everything is borrowed from the bytes that came.

/// Which RFC a message follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Neither: only the text, and perhaps the priority, are known.
    #[default]
    Plain,
    /// RFC 3164.
    Rfc3164,
    /// RFC 5424.
    Rfc5424,
}

/// A message. What is not there, or is told as `-`, is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'m> {
    /// Form.
    pub form: Form,
    /// Facility and level in one number, if they are told.
    pub priority: Option<u16>,
    /// When, as written.
    pub date: &'m [u8],
    /// Host.
    pub host: &'m [u8],
    /// Application.
    pub tag: &'m [u8],
    /// Process.
    pub process: &'m [u8],
    /// Kind of message (RFC 5424).
    pub kind: &'m [u8],
    /// Structured data (RFC 5424).
    pub structured: &'m [u8],
    /// The text.
    pub text: &'m [u8],
}

/// The length of a date of RFC 3164: `Oct 11 22:14:15`.
const DATE: usize = 15;

/// The months as RFC 3164 has them.
pub const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

impl<'m> Message<'m> {
    /// Reads a message; line feeds, carriage returns and zeros at its end are not part of it.
    pub fn parse(bytes: &'m [u8]) -> Message<'m> {
        let bytes = trim_end(bytes);
        let (priority, rest) = match priority(bytes) {
            Some((priority, rest)) => (Some(priority), rest),
            None => return Message { text: bytes, ..Message::default() },
        };
        let parsed = rfc5424(rest).or_else(|| rfc3164(rest));
        Message { priority, ..parsed.unwrap_or(Message { text: rest, ..Message::default() }) }
    }

    /// A message that nobody has looked into.
    pub fn unread(bytes: &'m [u8]) -> Message<'m> {
        Message { text: trim_end(bytes), ..Message::default() }
    }

    /// The month of a date of RFC 3164, from 0.
    pub fn month(&self) -> Option<usize> {
        let name = self.date.get(..3)?;
        MONTHS.iter().position(|month| month.as_slice() == name)
    }
}

fn trim_end(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., b'\n' | b'\r' | 0] = bytes {
        bytes = rest;
    }
    bytes
}

/// `<34>` and what follows. HAProxy counts with the last three digits of longer ones.
fn priority(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let rest = bytes.strip_prefix(b"<")?;
    let end = rest.iter().position(|c| !c.is_ascii_digit())?;
    let (digits, rest) = rest.split_at_checked(end)?;
    let rest = rest.strip_prefix(b">")?;
    let number = digits.iter().fold(0, |n: u16, d| (n % 100) * 10 + u16::from(d.wrapping_sub(b'0')));
    Some((number, rest))
}

/// The word up to the next blank, which is not empty, and what follows that blank.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', bytes).filter(|end| *end > 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// A word that may be told as `-`.
fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (word, rest) = word(bytes)?;
    Some((if word == b"-" { &[] } else { word }, rest))
}

fn rfc5424(bytes: &[u8]) -> Option<Message<'_>> {
    let (date, rest) = field(bytes.strip_prefix(b"1 ")?)?;
    if !date.is_empty() && !is_timestamp(date) {
        return None;
    }
    let (host, rest) = field(rest)?;
    let (tag, rest) = field(rest)?;
    let (process, rest) = field(rest)?;
    let (kind, rest) = field(rest)?;
    let (structured, rest) = match rest.strip_prefix(b"-") {
        Some(rest) => (&[][..], rest),
        None => rest.split_at_checked(elements(rest)?)?,
    };
    let text = rest.strip_prefix(b" ")?;
    Some(Message { form: Form::Rfc5424, priority: None, date, host, tag, process, kind, structured, text })
}

/// `2003-10-11T22:14:15.003Z`: the shape, not the sense.
fn is_timestamp(date: &[u8]) -> bool {
    let shaped = |bytes: &[u8], shape: &[u8]| {
        bytes.len() == shape.len()
            && bytes.iter().zip(shape).all(|(b, s)| if *s == b'0' { b.is_ascii_digit() } else { b == s })
    };
    let Some((second, mut rest)) = date.split_at_checked(19) else { return false };
    if !shaped(second, b"0000-00-00T00:00:00") {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
        rest = fraction.get(digits..).unwrap_or_default();
        if digits == 0 {
            return false;
        }
    }
    rest == b"Z" || shaped(rest, b"+00:00") || shaped(rest, b"-00:00")
}

/// The length of the elements `[id name="value"]` that bytes begin with, one at least.
fn elements(bytes: &[u8]) -> Option<usize> {
    let (mut quoted, mut escaped, mut open) = (false, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' if open => quoted = !quoted,
            // It has to be escaped in a value.
            b']' if quoted => return None,
            b']' if open => open = false,
            b'[' if !open => open = true,
            _ if open => {}
            _ => return Some(at).filter(|at| *at > 0),
        }
    }
    None
}

fn rfc3164(bytes: &[u8]) -> Option<Message<'_>> {
    let (date, rest) = bytes.split_at_checked(DATE)?;
    let blank = |at: usize| date.get(at) == Some(&b' ');
    let month = date.get(..3)?;
    if !MONTHS.iter().any(|m| m.as_slice() == month) || !blank(3) || !blank(6) {
        return None;
    }
    let (host, rest) = word(rest.strip_prefix(b" ")?)?;
    let (tag, process, text) = tag(rest).unwrap_or((&[], &[], rest));
    let form = Form::Rfc3164;
    Some(Message { form, priority: None, date, host, tag, process, kind: &[], structured: &[], text })
}

/// `su[123]: text`: the tag, the process, and the text.
fn tag(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (first, text) = word(bytes)?;
    let name = first.strip_suffix(b":").filter(|name| !name.is_empty())?;
    let Some(open) = memchr::memchr(b'[', name).filter(|open| *open > 0) else {
        return Some((name, &[], text));
    };
    let process = name.get(open + 1..)?.strip_suffix(b"]").unwrap_or_default();
    Some((name.get(..open)?, process, text))
}

/// How messages are told apart on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Each message says by its first byte: a digit begins its length, a `<` one that ends in a line feed.
    #[default]
    Either,
    /// All end in a line feed (`option assume-rfc6587-ntf`).
    LineFeed,
}

/// A stream that is none of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Senseless;

/// The most digits of a length.
const DIGITS: usize = 10;

impl Framing {
    /// The first message of a stream, and how many bytes it takes; `None`: it is not there as a whole yet.
    /// The message may be empty.
    ///
    /// # Errors
    /// No message begins like this.
    pub fn next(self, bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Senseless> {
        match (self, bytes.first()) {
            (_, None) => Ok(None),
            (Framing::Either, Some(b'1'..=b'9')) => counted(bytes),
            (Framing::LineFeed, _) | (_, Some(b'<')) => {
                Ok(memchr::memchr(b'\n', bytes).and_then(|end| Some((bytes.get(..end)?, end + 1))))
            }
            _ => Err(Senseless),
        }
    }
}

fn counted(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Senseless> {
    let digits = bytes.iter().take_while(|c| c.is_ascii_digit()).count();
    let length = bytes.get(..digits).filter(|d| d.len() <= DIGITS).and_then(|d| std::str::from_utf8(d).ok());
    let length: usize = length.and_then(|d| d.parse().ok()).ok_or(Senseless)?;
    match bytes.get(digits) {
        None => Ok(None),
        Some(b' ') => {
            let end = (digits + 1).checked_add(length).ok_or(Senseless)?;
            Ok(bytes.get(digits + 1..end).map(|message| (message, end)))
        }
        Some(_) => Err(Senseless),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_rfc_5424() {
        let bytes = b"<165>1 2003-10-11T22:14:15.003Z web evntslog 4321 ID47 [x@1 a=\"\\]\"][y] An event\n";
        let message = Message::parse(bytes);
        assert_eq!(message.form, Form::Rfc5424);
        assert_eq!(message.priority, Some(165));
        assert_eq!(message.structured, b"[x@1 a=\"\\]\"][y]");
        assert_eq!((message.host, message.kind, message.text), (&b"web"[..], &b"ID47"[..], &b"An event"[..]));
        let nothing = Message::parse(b"<13>1 - - - - - - x");
        assert_eq!(
            nothing,
            Message { form: Form::Rfc5424, priority: Some(13), text: b"x", ..Message::default() }
        );
    }

    #[test]
    fn what_has_no_form_is_text_as_observed_on_haproxy() {
        for bytes in [
            &b"<13>1 x h a p m - x"[..],
            b"<13>1 2003-10-11T22:14:15 h a p m - x",
            b"<13>1 2003-10-11T22:14:15Z h  p m - x",
            b"<13>1 2003-10-11T22:14:15Z h a p m [x]msg",
            b"<13>10 2003-10-11T22:14:15Z h a p m - x",
            b"<13>Oct 11 22:14:15  h t: m",
            b"<13>oct 11 22:14:15 h t: m",
            b"<13>Oct 11 22:14:15 h",
            b"<13>Oct 11 22:14:15.123 h t: m",
        ] {
            let message = Message::parse(bytes);
            assert_eq!((message.form, message.text), (Form::Plain, &bytes[4..]));
        }
        assert_eq!(Message::parse(b"<1x>a").text, b"<1x>a");
    }

    #[test]
    fn the_tag_of_rfc_3164_ends_in_a_colon() {
        let tags = |rest: &str| {
            let bytes = format!("<13>Oct 11 22:14:15 h {rest}");
            let m = Message::parse(bytes.as_bytes());
            [m.tag, m.process, m.text].map(|b| String::from_utf8_lossy(b).into_owned())
        };
        assert_eq!(tags("su[12]: m"), ["su", "12", "m"]);
        assert_eq!(tags("su: m"), ["su", "", "m"]);
        assert_eq!(tags("su[12: m"), ["su", "", "m"]);
        for text in ["su[12] m", "su:m", "t:", "message", " t: m"] {
            assert_eq!(tags(text), ["", "", text]);
        }
    }

    #[test]
    fn priorities_keep_their_last_three_digits() {
        let priority = |text: &str| Message::parse(text.as_bytes()).priority;
        let seen = ["<>x", "<0013>x", "<1234>x", "<12345>x"].map(priority);
        assert_eq!(seen, [Some(0), Some(13), Some(234), Some(345)]);
    }

    #[test]
    fn a_stream_is_cut_by_lengths_or_line_feeds() {
        let either = Framing::Either;
        assert_eq!(either.next(b"3 abc4 "), Ok(Some((&b"abc"[..], 5))));
        assert_eq!(either.next(b"<1>x\n<"), Ok(Some((&b"<1>x"[..], 5))));
        assert_eq!([either.next(b"<1>x"), either.next(b"30 a"), either.next(b"3")], [Ok(None); 3]);
        for bytes in [&b"\n"[..], b"0 a", b"3x", b"text", b"12345678901 a"] {
            assert_eq!(either.next(bytes), Err(Senseless));
        }
        assert_eq!(Framing::LineFeed.next(b"3 a\nb"), Ok(Some((&b"3 a"[..], 4))));
    }
}
