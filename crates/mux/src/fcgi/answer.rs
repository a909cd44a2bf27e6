//! The head of a response as scripts write it (RFC 3875 section 6): fields, of which `Status` and `Location`
//! make a status line.

use wire::head::{Head, Kind, Known};
use wire::http1::{Limits, Parsed, is_field_name, parse_response};

/// The line that a script does not write.
const LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// What comes is no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A head is whole.
pub(super) struct Whole {
    /// Bytes that it counts for, as HAProxy counts them: with what the script said of the status, without
    /// what was made of that.
    pub counted: usize,
    /// What came behind it.
    pub rest: Vec<u8>,
}

/// The head of a response while it comes.
pub(super) struct Awaited {
    gathered: Vec<u8>,
    /// Most bytes that it may have.
    most: usize,
}

impl Awaited {
    /// Nothing came so far; no more than `most` bytes may come.
    pub fn new(most: usize) -> Awaited {
        Awaited { gathered: Vec::new(), most }
    }

    /// Whether nothing came.
    pub fn is_empty(&self) -> bool {
        self.gathered.is_empty()
    }

    /// Takes more; when the head is whole it is in `head`. An error: it is none, or too long.
    pub fn take(&mut self, bytes: &[u8], head: &mut Head) -> Result<Option<Whole>, Malformed> {
        if self.gathered.is_empty() {
            self.gathered.extend_from_slice(LINE);
        }
        self.gathered.extend_from_slice(bytes);
        match self.parse(head)? {
            Parsed::Complete { consumed } => {
                let mut gathered = std::mem::take(&mut self.gathered);
                let counted = finish(head)?;
                Ok(Some(Whole { counted, rest: gathered.split_off(consumed.min(gathered.len())) }))
            }
            Parsed::Partial if self.gathered.len() > self.most => Err(Malformed),
            Parsed::Partial => Ok(None),
        }
    }

    /// Reads what came. Fields whose names are none are passed over, as HAProxy does: scripts write what they
    /// like.
    fn parse(&mut self, head: &mut Head) -> Result<Parsed, Malformed> {
        head.clear_as(Kind::Response);
        if let Ok(parsed) = parse_response(&self.gathered, head, &Limits::NONE, false) {
            return Ok(parsed);
        }
        self.gathered = without_unnamed(&self.gathered);
        head.clear_as(Kind::Response);
        parse_response(&self.gathered, head, &Limits::NONE, false).map_err(|_| Malformed)
    }
}

/// A head without the lines that begin with something else than a name of a field, and what follows it.
fn without_unnamed(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, behind) = rest.split_at(end + 1);
        if line.trim_ascii().is_empty() {
            break;
        }
        let name = line.iter().position(|byte| *byte == b':').and_then(|colon| line.get(..colon));
        if kept.is_empty() || name.is_none_or(|name| name.is_empty() || is_field_name(name)) {
            kept.extend_from_slice(line);
        }
        rest = behind;
    }
    kept.extend_from_slice(rest);
    kept
}

/// Makes a head of HTTP of it; says what it counts for.
fn finish(head: &mut Head) -> Result<usize, Malformed> {
    head.remove_all(Known::Connection);
    let mut counted = head.counted_len().saturating_sub(head.reason().len());
    // One that says nothing says that all is well.
    if let Some(said) = head.last("status").filter(|said| !said.trim_ascii().is_empty()) {
        let said = said.to_vec();
        let blank = said.iter().position(u8::is_ascii_whitespace);
        let (digits, reason) = said.split_at(blank.unwrap_or(said.len()));
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 3);
        let status: u16 = digits.and_then(|digits| digits.parse().ok()).ok_or(Malformed)?;
        // Nothing that a script says comes before its response.
        if status < 200 {
            return Err(Malformed);
        }
        let reason = reason.trim_ascii();
        counted += reason.len();
        head.set_status(status, Some(reason).filter(|reason| !reason.is_empty())).map_err(|_| Malformed)?;
    } else if head.has("location") {
        head.set_status(302, None).map_err(|_| Malformed)?;
        counted += head.reason().len();
    } else {
        counted += head.reason().len();
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<(u16, String, String)>, Malformed> {
        let mut head = Head::response();
        let whole = Awaited::new(200).take(text.as_bytes(), &mut head)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(whole.map(|whole| (head.status(), text(head.reason()), text(&whole.rest))))
    }

    #[test]
    fn fields_make_the_status() {
        for (head, status, reason) in [
            ("A: b\r\n", 200, "OK"),
            ("A: b\n", 200, "OK"),
            ("Status: 404 Gone fishing\r\n", 404, "Gone fishing"),
            ("Status: 404\r\n", 404, "Not Found"),
            ("status: 200 A\r\nStatus: 503 B\r\n", 503, "B"),
            ("Location: /x\r\n", 302, "Found"),
            ("Status:\r\n", 200, "OK"),
            ("Status: 200\tFine\r\n", 200, "Fine"),
            ("A b: c\r\nA : b\r\nStatus: 404 D\r\n", 404, "D"),
            ("Location: /x\r\nStatus: 201 Made\r\n", 201, "Made"),
        ] {
            let end = if head.ends_with("\r\n") { "\r\n" } else { "\n" };
            let read = read(&format!("{head}{end}body")).unwrap().unwrap();
            assert_eq!(read, (status, reason.to_owned(), "body".to_owned()), "{head}");
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for text in [
            "Status: abc\r\n\r\n",
            "Status: 99 x\r\n\r\n",
            "Status: 100 x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
        ] {
            assert_eq!(read(text), Err(Malformed), "{text}");
        }
        assert_eq!(read("A: b\r\n"), Ok(None));
        assert_eq!(read(&format!("A: {}", "x".repeat(300))), Err(Malformed));
    }
}
