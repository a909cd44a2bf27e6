//! Two ways to read one stream of HTTP/1: to the letter, and as old or careless software does.
//!
//! Neither shares code with the parsers under test. The strict reader refuses whatever RFC 9112 does not
//! define. The loose ones never refuse if they can make anything of it, and differ among themselves where
//! such software does.

/// How a stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the letter.
    Strict,
    /// Line feeds end lines, `chunked` anywhere wins over a length, of several lengths the last counts.
    Loose,
    /// A length wins over `chunked`, of several the first counts; lines that begin with a blank are fields of
    /// their own.
    Lengths,
    /// A carriage return alone ends a line, too.
    Returns,
}

pub const WAYS: [Way; 4] = [Way::Strict, Way::Loose, Way::Lengths, Way::Returns];

/// A message as somebody understood it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The method, or the status of a response.
    pub what: String,
    pub target: String,
    pub authority: String,
    pub body: Vec<u8>,
    /// The marks that the proxy left in it.
    pub marks: Vec<String>,
    pub whole: bool,
}

/// What a stream says so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    pub list: Vec<Reading>,
    /// Bytes of whole messages.
    pub used: usize,
    /// Why reading stopped, if not because the input ended.
    pub refused: Option<&'static str>,
}

/// What ends a reading early.
enum Stop {
    More,
    No(&'static str),
}

type Step<T> = Result<T, Stop>;

/// The field of the proxy's mark.
pub const MARK: &str = "x-mark";

/// Reads requests.
pub fn requests(way: Way, bytes: &[u8]) -> Readings {
    read(way, bytes, false, |reading, head| framing(way, reading, head))
}

/// Reads the responses to requests of these methods; `ended`: nothing more comes.
pub fn responses(way: Way, bytes: &[u8], methods: &[&str], ended: bool) -> Readings {
    let mut final_ones = 0;
    read(way, bytes, true, |reading, head| {
        let status = reading.what.parse::<u16>().unwrap_or(0);
        let method = methods.get(final_ones).copied().unwrap_or("");
        if status < 200 {
            return if status == 101 { Ok(Framing::Close(ended)) } else { Ok(Framing::Length(0)) };
        }
        final_ones += 1;
        if method.is_empty() {
            return Err(Stop::No("a response to nothing"));
        }
        if method == "HEAD" || matches!(status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        let declared = head.iter().any(|(n, _)| n == "content-length" || n == "transfer-encoding");
        if declared { framing(way, reading, head) } else { Ok(Framing::Close(ended)) }
    })
}

enum Framing {
    Length(usize),
    Chunked,
    Close(bool),
}

type Fields = Vec<(String, String)>;

fn read(
    way: Way,
    bytes: &[u8],
    response: bool,
    mut framing: impl FnMut(&Reading, &Fields) -> Step<Framing>,
) -> Readings {
    let mut out = Readings::default();
    while out.used < bytes.len() {
        let mut cursor = Cursor { way, rest: &bytes[out.used..] };
        let mut reading = Reading::default();
        match message(&mut cursor, &mut reading, response, &mut framing) {
            Ok(()) => {
                reading.whole = true;
                out.used = bytes.len() - cursor.rest.len();
                if !reading.what.is_empty() {
                    out.list.push(reading);
                }
            }
            Err(stop) => {
                if let Stop::No(why) = stop {
                    out.refused = Some(why);
                }
                if !reading.what.is_empty() {
                    out.list.push(reading);
                }
                break;
            }
        }
    }
    out
}

fn message(
    cursor: &mut Cursor<'_>,
    reading: &mut Reading,
    response: bool,
    framing: &mut impl FnMut(&Reading, &Fields) -> Step<Framing>,
) -> Step<()> {
    let way = cursor.way;
    let line = cursor.line()?;
    if line.is_empty() {
        return if way == Way::Strict { Err(Stop::No("an empty line")) } else { Ok(()) };
    }
    let mut fresh = Reading::default();
    if response {
        status_line(way, line, &mut fresh)?
    } else {
        request_line(way, line, &mut fresh)?
    }
    let fields = fields(cursor)?;
    if !response {
        authority(way, &mut fresh, &fields)?;
    }
    fresh.marks = fields.iter().filter(|(n, _)| n == MARK).map(|(_, v)| v.clone()).collect();
    *reading = fresh;
    match framing(reading, &fields)? {
        Framing::Length(length) => cursor.take(length, &mut reading.body),
        Framing::Chunked => chunks(cursor, &mut reading.body),
        Framing::Close(ended) => {
            let all = cursor.rest.len();
            cursor.take(all, &mut reading.body)?;
            if ended { Ok(()) } else { Err(Stop::More) }
        }
    }
}

struct Cursor<'b> {
    way: Way,
    rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    /// The next line, without its end.
    fn line(&mut self) -> Step<&'b [u8]> {
        let ends = |byte: &u8| *byte == b'\n' || (self.way == Way::Returns && *byte == b'\r');
        let at = self.rest.iter().position(ends).ok_or(Stop::More)?;
        let mut line = &self.rest[..at];
        let mut next = at + 1;
        if self.rest[at] == b'\r' && self.rest.get(next) == Some(&b'\n') {
            next += 1;
        }
        self.rest = &self.rest[next..];
        if self.way == Way::Strict {
            line = line.strip_suffix(b"\r").ok_or(Stop::No("a bare line feed"))?;
            if line.iter().any(|b| matches!(b, b'\r' | 0)) {
                return Err(Stop::No("a carriage return or NUL in a line"));
            }
        } else {
            while let Some(shorter) = line.strip_suffix(b"\r") {
                line = shorter;
            }
        }
        Ok(line)
    }

    fn take(&mut self, length: usize, into: &mut Vec<u8>) -> Step<()> {
        let n = length.min(self.rest.len());
        into.extend_from_slice(&self.rest[..n]);
        self.rest = &self.rest[n..];
        if n < length { Err(Stop::More) } else { Ok(()) }
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

fn is_token(bytes: &[u8]) -> bool {
    let fits = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !bytes.is_empty() && bytes.iter().all(fits)
}

fn request_line(way: Way, line: &[u8], reading: &mut Reading) -> Step<()> {
    if way == Way::Strict {
        let words: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        let [method, target, version] = words[..] else { return Err(Stop::No("not three words")) };
        // Raw bytes beyond ASCII are no blanks to anybody.
        let visible = !target.is_empty() && target.iter().all(|b| b.is_ascii_graphic() || *b >= 128);
        if !is_token(method) || !visible || !(version == b"HTTP/1.1" || version == b"HTTP/1.0") {
            return Err(Stop::No("a bad request line"));
        }
        (reading.what, reading.target) = (text(method), String::from_utf8_lossy(target).into_owned());
        return Ok(());
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(Stop::No("no request line"));
    };
    (reading.what, reading.target) = (text(method), String::from_utf8_lossy(target).into_owned());
    Ok(())
}

fn status_line(way: Way, line: &[u8], reading: &mut Reading) -> Step<()> {
    let words: Vec<&[u8]> = line.splitn(3, |b| *b == b' ').collect();
    let status = words.get(1).copied().unwrap_or_default();
    let sound = status.len() == 3 && status.iter().all(u8::is_ascii_digit) && status[0] != b'0';
    // The version is passed on as it came.
    let version = matches!(words[0], b"HTTP/1.1" | b"HTTP/1.0");
    if way == Way::Strict && !(sound && words.len() == 3 && version) {
        return Err(Stop::No("a bad status line"));
    }
    if !line.starts_with(b"HTTP/") {
        return Err(Stop::No("no status line"));
    }
    reading.what = text(status);
    Ok(())
}

fn fields(cursor: &mut Cursor<'_>) -> Step<Fields> {
    let way = cursor.way;
    let mut fields: Fields = Vec::new();
    loop {
        let line = cursor.line()?;
        if line.is_empty() {
            return Ok(fields);
        }
        if matches!(line[0], b' ' | b'\t') {
            match (way, fields.last_mut()) {
                (Way::Strict, _) => return Err(Stop::No("a folded line")),
                (Way::Lengths, _) => {}
                (_, Some((_, value))) => {
                    value.push_str(text(line).trim());
                    continue;
                }
                (_, None) => {}
            }
        }
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            if way == Way::Strict {
                return Err(Stop::No("a line without colon"));
            }
            continue;
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        // RFC 9110 section 5.5: other control characters may be kept.
        if way == Way::Strict && !is_token(name) {
            return Err(Stop::No("a bad field"));
        }
        let value = value.split(|b| *b == 0).next().unwrap_or_default();
        fields.push((text(name).trim().to_ascii_lowercase(), text(value).trim().to_owned()));
    }
}

/// Who is asked: the host of an absolute target by the letter, Host for those who look at nothing else.
fn authority(way: Way, reading: &mut Reading, fields: &Fields) -> Step<()> {
    let hosts: Vec<&String> = fields.iter().filter(|(n, _)| n == "host").map(|(_, v)| v).collect();
    if way == Way::Strict && hosts.len() > 1 {
        return Err(Stop::No("several hosts"));
    }
    let host = if way == Way::Lengths { hosts.first() } else { hosts.last() };
    if reading.what == "CONNECT" {
        reading.authority = reading.target.to_ascii_lowercase();
        return Ok(());
    }
    reading.authority = host.map(|h| h.to_ascii_lowercase()).unwrap_or_default();
    if let Some((_, rest)) = reading.target.split_once("://").filter(|_| !reading.target.starts_with('/')) {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let named = rest[..end].to_ascii_lowercase();
        let named = named.rsplit('@').next().unwrap_or_default().to_owned();
        if way == Way::Strict || host.is_none() {
            reading.authority = named;
        }
        reading.target = rest[end..].to_owned();
    }
    Ok(())
}

fn framing(way: Way, reading: &Reading, fields: &Fields) -> Step<Framing> {
    let of =
        |name: &str| fields.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>();
    let (codings, lengths) = (of("transfer-encoding"), of("content-length"));
    if way == Way::Strict {
        return match (&codings[..], &lengths[..]) {
            ([], []) => Ok(Framing::Length(0)),
            _ if reading.what == "CONNECT" => Err(Stop::No("CONNECT with a body")),
            ([coding], []) if coding.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
            ([], [length]) if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => {
                length.parse().map(Framing::Length).map_err(|_| Stop::No("a length too great"))
            }
            _ => Err(Stop::No("no framing but many")),
        };
    }
    let chunked = codings.iter().any(|c| c.to_ascii_lowercase().contains("chunked"));
    let length = if way == Way::Lengths { lengths.first() } else { lengths.last() };
    match length {
        Some(length) if !chunked || way == Way::Lengths => Ok(Framing::Length(leading_number(length))),
        _ if chunked => Ok(Framing::Chunked),
        _ => Ok(Framing::Length(0)),
    }
}

/// As `atoi` reads it.
fn leading_number(text: &str) -> usize {
    let digits = text.trim().trim_start_matches('+');
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

fn chunks(cursor: &mut Cursor<'_>, body: &mut Vec<u8>) -> Step<()> {
    loop {
        let line = cursor.line()?;
        let size = chunk_size(cursor.way, line)?;
        if size == 0 {
            fields(cursor)?;
            return Ok(());
        }
        cursor.take(size, body)?;
        match (cursor.way, cursor.rest) {
            (_, [b'\r', b'\n', ..]) => cursor.rest = &cursor.rest[2..],
            (_, [] | [b'\r']) => return Err(Stop::More),
            (Way::Strict, _) => return Err(Stop::No("a chunk without end")),
            (_, [b'\n', ..]) => cursor.rest = &cursor.rest[1..],
            _ => {}
        }
    }
}

fn chunk_size(way: Way, line: &[u8]) -> Step<usize> {
    let line = text(line);
    if way == Way::Strict {
        let (size, extension) = line.split_once(';').unwrap_or((&line, ""));
        let sound = !size.is_empty() && size.len() < 16 && size.bytes().all(|b| b.is_ascii_hexdigit());
        if !sound || extension.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
            return Err(Stop::No("a bad chunk size"));
        }
        return usize::from_str_radix(size, 16).map_err(|_| Stop::No("a chunk size too great"));
    }
    // As `strtol` reads it, which drops what is too much for it.
    let digits = line.trim_start().trim_start_matches("0x").trim_start_matches("0X");
    let size = digits
        .chars()
        .map_while(|c| c.to_digit(16))
        .fold(0u64, |size, digit| size.wrapping_shl(4) | u64::from(digit));
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}
