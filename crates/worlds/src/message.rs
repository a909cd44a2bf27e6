//! HTTP messages of the scripts: made from parts, and read by a parser that shares nothing with the one under
//! test.

use std::io;

/// How the bytes of a message came to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where its framing says.
    Complete,
    /// The peer closed before.
    Closed,
    /// The connection broke.
    Reset,
}

/// A message as far as it came.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The first line.
    pub line: String,
    /// The fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body, without its chunks.
    pub body: Vec<u8>,
    /// The fields behind the last chunk.
    pub trailers: Vec<(String, String)>,
    /// How it ended, if it did.
    pub end: Option<End>,
}

impl Message {
    /// The value of the first field of that name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| &**v)
    }

    /// The status of a response; 0 if there is none.
    pub fn status(&self) -> u16 {
        self.word(1).parse().unwrap_or(0)
    }

    /// The target of a request.
    pub fn target(&self) -> &str {
        self.word(1)
    }

    /// The method of a request.
    pub fn method(&self) -> &str {
        self.word(0)
    }

    fn word(&self, n: usize) -> &str {
        self.line.split(' ').nth(n).unwrap_or_default()
    }

    /// Whether it came whole.
    pub fn is_whole(&self) -> bool {
        self.end == Some(End::Complete)
    }

    /// Whether the sender says that it closes.
    pub fn closes(&self) -> bool {
        self.field("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
    }

    /// Checks the body against what [`label`] said of it where it was made. What came whole is exactly that
    /// body, and what broke off is no longer.
    ///
    /// # Panics
    /// If it is another one.
    pub(crate) fn check_label(&self) {
        let Some(label) = self.field("x-body") else { return };
        let length = label.split(':').next().and_then(|n| n.parse::<usize>().ok()).expect("a length");
        if self.is_whole() {
            assert_eq!(label_of(&self.body), label, "another body came as whole behind: {}", self.line);
            if let Some(name) = self.field("trailer") {
                let found = self.trailers.iter().find(|(n, _)| n == name).map(|(_, v)| &**v);
                assert_eq!(found, Some(label), "the trailers behind: {}", self.line);
            }
        } else {
            assert!(self.body.len() <= length, "more body than there is behind: {}", self.line);
        }
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.field(name).is_some_and(|v| v.eq_ignore_ascii_case(value))
    }
}

/// What bytes so far mean: where the message ends, or that more is needed.
pub(crate) enum Scan {
    /// More is needed.
    Partial(Option<Message>),
    /// The message, and how many bytes it takes.
    Whole(Message, usize),
}

/// Reads a message from the front of `bytes`. `bodiless` says that it can have no body, whatever its head
/// says.
pub(crate) fn scan(bytes: &[u8], bodiless: impl Fn(&Message) -> bool) -> io::Result<Scan> {
    let Some(length) = bytes.windows(4).position(|w| w == b"\r\n\r\n").map(|p| p + 4) else {
        return Ok(Scan::Partial(None));
    };
    let mut message = head(&bytes[..length])?;
    let rest = &bytes[length..];
    if bodiless(&message) {
        message.fields.retain(|(n, _)| n != "x-body");
        return Ok(whole(message, length));
    }
    if message.is("transfer-encoding", "chunked") {
        return Ok(match dechunk(rest, &mut message)? {
            Some(n) => whole(message, length + n),
            None => Scan::Partial(Some(message)),
        });
    }
    let declared = match message.field("content-length") {
        Some(text) => Some(text.parse::<usize>().map_err(|_| bad("content-length"))?),
        None if message.line.starts_with("HTTP/") => None,
        None => Some(0),
    };
    match declared {
        Some(n) if rest.len() >= n => {
            message.body.extend_from_slice(&rest[..n]);
            Ok(whole(message, length + n))
        }
        _ => {
            message.body.extend_from_slice(rest);
            Ok(Scan::Partial(Some(message)))
        }
    }
}

fn whole(mut message: Message, length: usize) -> Scan {
    message.end = Some(End::Complete);
    Scan::Whole(message, length)
}

/// Whether a response without length ends with the connection.
pub(crate) fn ends_with_connection(message: &Message) -> bool {
    message.line.starts_with("HTTP/")
        && message.field("content-length").is_none()
        && message.field("transfer-encoding").is_none()
}

fn head(bytes: &[u8]) -> io::Result<Message> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad("head is no text"))?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    Ok(Message { line, fields: fields(lines)?, ..Message::default() })
}

fn fields<'l>(lines: impl Iterator<Item = &'l str>) -> io::Result<Vec<(String, String)>> {
    let field = |line: &str| {
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a field without colon"))?;
        Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    lines.filter(|l| !l.is_empty()).map(field).collect()
}

/// Takes chunks apart, and the trailers behind them; how many bytes they take, once they are whole.
fn dechunk(bytes: &[u8], message: &mut Message) -> io::Result<Option<usize>> {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(eol) = rest.windows(2).position(|w| w == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..eol]).map_err(|_| bad("chunk size"))?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| bad("chunk size"))?;
        let data = &rest[eol + 2..];
        if size == 0 {
            // The line of the last chunk ends where the empty one may begin.
            let Some(end) = rest[eol..].windows(4).position(|w| w == b"\r\n\r\n") else { return Ok(None) };
            let trailers = std::str::from_utf8(&rest[eol..eol + end]).map_err(|_| bad("trailers"))?;
            message.trailers = fields(trailers.split("\r\n"))?;
            return Ok(Some(at + eol + end + 4));
        }
        message.body.extend_from_slice(&data[..size.min(data.len())]);
        if data.len() < size + 2 {
            return Ok(None);
        }
        if &data[size..size + 2] != b"\r\n" {
            return Err(bad("chunk end"));
        }
        at += eol + 2 + size + 2;
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// `n` bytes that only this `id` has, so that a byte of somebody else's body is noticed.
pub fn content(id: u64, n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| b'a' + ((id.wrapping_mul(31) ^ i ^ (i / 26)) % 26) as u8).collect()
}

/// The field that tells the length and the hash of a body, so that whoever reads the message to its end finds
/// any wrong, missing or additional byte.
pub fn label(body: &[u8]) -> String {
    format!("x-body: {}\r\n", label_of(body))
}

fn label_of(body: &[u8]) -> String {
    let fnv = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{}:{:016x}", body.len(), body.iter().fold(0xcbf2_9ce4_8422_2325, fnv))
}

/// A GET request.
pub fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: w\r\n\r\n").into_bytes()
}

/// A POST request with a length.
pub fn post(target: &str, body: &[u8]) -> Vec<u8> {
    let (length, label) = (body.len(), label(body));
    let head = format!("POST {target} HTTP/1.1\r\nhost: w\r\n{label}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A POST request in chunks with extensions, whose trailers tell its body once more.
pub fn post_chunked(target: &str, body: &[u8], size: usize) -> Vec<u8> {
    let label = label(body);
    let head = format!(
        "POST {target} HTTP/1.1\r\nhost: w\r\n{label}trailer: x-body\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut out = head.into_bytes();
    for piece in body.chunks(size) {
        out.extend_from_slice(format!("{:x};an=extension\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("0\r\n{label}\r\n").as_bytes());
    out
}

/// A response with a length.
pub fn response(status: u16, body: &[u8]) -> Vec<u8> {
    let (length, label) = (body.len(), label(body));
    let head = format!("HTTP/1.1 {status} Whatever\r\n{label}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// `body` in chunks of `size` bytes, the last one included.
pub fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(_: &Message) -> bool {
        false
    }

    #[test]
    fn a_message_is_whole_only_with_its_last_byte() {
        let chunks =
            [&b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..], &chunked(b"abcdef", 4)].concat();
        for bytes in [response(200, b"abcdef"), chunks] {
            for n in 0..bytes.len() {
                assert!(matches!(scan(&bytes[..n], never).unwrap(), Scan::Partial(_)), "{n}");
            }
            let next = [&bytes[..], b"more"].concat();
            let Scan::Whole(m, n) = scan(&next, never).unwrap() else { panic!("not whole") };
            assert_eq!((m.status(), &*m.body, n), (200, &b"abcdef"[..], bytes.len()));
        }
    }

    #[test]
    fn contents_of_two_ids_differ_early() {
        assert_ne!(content(1, 8), content(2, 8));
    }
}
