//! Finding the end of a chunked body (RFC 9112 section 7.1) in its place: what is sound is passed on with the
//! framing that it came in. Trailers are the exception: they are rare and must be put in order, for which
//! there is no room in place, so they are gathered aside and passed on when they are whole.

use super::trailers;
use crate::head::{Head, trim};

/// Most digits of a size, zeros in front counted in: more are read in several ways, and nobody needs them.
const DIGITS_MAX: u32 = 16;
/// The largest chunk: what is longer is no body but an attempt to have somebody count beyond the end of a
/// number.
const SIZE_MAX: u64 = (1 << 52) - 1;
/// Longest chunk line with its extensions.
const LINE_MAX: u32 = 4096;
/// Longest trailer section.
const TRAILER_MAX: u32 = 16384;

/// The bytes are no chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a size; whether there was one.
    Size(bool),
    /// In blanks behind a size.
    Blank,
    /// In an extension.
    Extension,
    /// After the CR of a size line.
    SizeLf,
    /// In a chunk.
    Data,
    /// After a chunk.
    DataCr,
    /// After a chunk's CR.
    DataLf,
    /// Behind the last chunk.
    Trailers,
    /// At the start of a trailer line, or after the CR there: the next LF ends the body.
    LineStart,
    /// In a trailer line.
    Line,
    /// After the CR of an empty line where there are no trailers.
    EndLf,
    /// Behind the body.
    End,
    /// Something was malformed: nothing behind it is read as anything.
    Broken,
}

/// Follows a chunked body through its pieces.
#[derive(Clone, Debug)]
pub struct Scanner {
    state: State,
    left: u64,
    line: u32,
    /// Bad names and NULs in trailers are let pass.
    relax: bool,
    /// Trailers as they came, and once they are whole as they are passed on.
    trailers: Vec<u8>,
    /// Bytes of data in the chunks so far.
    content: u64,
    /// Bytes of the names and values of the trailers.
    trailing: u64,
}

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner::new(false)
    }
}

/// What became of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Bytes looked at.
    pub used: usize,
    /// Bytes that remain of them, at the start of the slice: chunk extensions are left out, as HAProxy does.
    pub kept: usize,
    /// The body ends with them.
    pub end: bool,
}

/// Bytes that belong together, see [`Scanner::advance`].
struct Piece {
    len: usize,
    /// They are passed on.
    keep: bool,
    /// The body ends with them.
    end: bool,
}

impl Scanner {
    /// At the start of a body; `relax` is that of the head.
    pub fn new(relax: bool) -> Scanner {
        Scanner {
            state: State::Size(false),
            left: 0,
            line: 0,
            relax,
            trailers: Vec::new(),
            content: 0,
            trailing: 0,
        }
    }

    /// The trailers of a body that has ended, with the empty line, to be passed on behind what
    /// [`Scanner::strip`] kept; empty if all was kept in place.
    pub fn take_trailers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.trailers)
    }

    /// Follows the body through `bytes`, moving what is to be passed on to their start:
    /// extensions are left out, and trailers wait for [`Scanner::take_trailers`].
    ///
    /// # Errors
    /// They are no chunked body.
    pub fn strip(&mut self, bytes: &mut [u8]) -> Result<Scanned, Malformed> {
        // Of what comes along with something malformed only the rest of the chunk at hand counts.
        let counts = self.content + self.chunk_left().min(bytes.len() as u64);
        let stripped = self.strip_all(bytes);
        if stripped.is_err() {
            self.content = self.content.min(counts);
        }
        stripped
    }

    fn strip_all(&mut self, bytes: &mut [u8]) -> Result<Scanned, Malformed> {
        let (mut at, mut kept) = (0, 0);
        while at < bytes.len() {
            let piece = self.piece(bytes.get(at..).unwrap_or_default())?;
            if piece.keep {
                if kept != at {
                    bytes.copy_within(at..at + piece.len, kept);
                }
                kept += piece.len;
            }
            at += piece.len;
            if piece.end {
                return Ok(Scanned { used: at, kept, end: true });
            }
        }
        Ok(Scanned { used: at, kept, end: false })
    }

    /// Bytes of data in the chunks so far, without their framing.
    pub fn content(&self) -> u64 {
        self.content
    }

    /// Bytes of the names and values of the trailers, once the body has ended.
    pub fn trailing(&self) -> u64 {
        self.trailing
    }

    /// Bytes of data that the chunk which is being read has yet to bring.
    pub fn chunk_left(&self) -> u64 {
        if self.state == State::Data { self.left } else { 0 }
    }

    /// So many bytes of this chunk's data, no more than [`Scanner::chunk_left`], went another way.
    pub fn skip(&mut self, bytes: u64) {
        if self.state == State::Data {
            self.content += bytes.min(self.left);
            self.left = self.left.saturating_sub(bytes);
            if self.left == 0 {
                self.state = State::DataCr;
            }
        }
    }

    /// Follows the framing at the start of `bytes` up to the data of a chunk ([`Scanner::chunk_left`]), to
    /// the end of the body, or as far as they go: how many bytes that were, and whether the body ends with
    /// them.
    ///
    /// # Errors
    /// They are no chunked body.
    pub fn frame(&mut self, bytes: &[u8]) -> Result<(usize, bool), Malformed> {
        let mut at = 0;
        while self.state != State::Data && at < bytes.len() {
            let piece = self.piece(bytes.get(at..).unwrap_or_default())?;
            at += piece.len;
            if piece.end {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// How many of the bytes belong to the body, and whether it ends with them; nothing is changed.
    ///
    /// # Errors
    /// They are no chunked body.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<(usize, bool), Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            let piece = self.piece(bytes.get(at..).unwrap_or_default())?;
            at += piece.len;
            if piece.end {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// As [`Scanner::advance`], and nothing can be read behind an error: who asks again is told the same.
    #[inline]
    fn piece(&mut self, rest: &[u8]) -> Result<Piece, Malformed> {
        let piece = self.advance(rest);
        if piece.is_err() {
            self.state = State::Broken;
        }
        piece
    }

    /// Takes the next piece of `rest`, which is not empty: the data of a chunk as far as it is there, or one
    /// byte.
    #[inline]
    fn advance(&mut self, rest: &[u8]) -> Result<Piece, Malformed> {
        if self.state == State::Data {
            let len = self.left.min(rest.len() as u64);
            self.left -= len;
            self.content += len;
            if self.left == 0 {
                self.state = State::DataCr;
            }
            return Ok(Piece { len: len as usize, keep: true, end: false });
        }
        let byte = rest.first().copied().ok_or(Malformed)?;
        if matches!(self.state, State::LineStart | State::Line)
            || self.state == State::Trailers && byte != b'\r'
        {
            return self.gather(byte);
        }
        self.state = self.step(byte)?;
        let keep = !matches!(self.state, State::Blank | State::Extension);
        Ok(Piece { len: 1, keep, end: self.state == State::End })
    }

    /// Puts a byte of trailers aside; the last one makes them ready to be passed on.
    fn gather(&mut self, byte: u8) -> Result<Piece, Malformed> {
        self.count(TRAILER_MAX)?;
        self.trailers.push(byte);
        self.state = match (self.state, byte) {
            (State::Trailers | State::LineStart, b'\n') => State::End,
            (State::LineStart, b'\r') => State::LineStart,
            (_, b'\n') => State::LineStart,
            _ => State::Line,
        };
        let end = self.state == State::End;
        if end {
            self.trailers = trailers::ordered(&self.trailers, self.relax)?;
            self.trailing = trailers::counted(&self.trailers);
        }
        Ok(Piece { len: 1, keep: false, end })
    }

    /// Follows the body through `bytes` and hands the data of its chunks to `take`; whether the body ends
    /// with them.
    ///
    /// # Errors
    /// They are no chunked body; what came before the fault was handed on.
    pub fn data(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<bool, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            let data = self.state == State::Data;
            let rest = bytes.get(at..).unwrap_or_default();
            let piece = self.piece(rest)?;
            if data {
                take(rest.get(..piece.len).unwrap_or_default());
            }
            if piece.end {
                return Ok(true);
            }
            at += piece.len;
        }
        Ok(false)
    }

    fn step(&mut self, byte: u8) -> Result<State, Malformed> {
        Ok(match (self.state, byte) {
            (State::Size(_), b) if b.is_ascii_hexdigit() => {
                let digit = (b as char).to_digit(16).ok_or(Malformed)?;
                self.count(DIGITS_MAX)?;
                self.left = self.left << 4 | u64::from(digit);
                if self.left > SIZE_MAX {
                    return Err(Malformed);
                }
                State::Size(true)
            }
            (State::Size(true) | State::Blank | State::Extension, b'\r') => State::SizeLf,
            (State::Size(true) | State::Blank, b';') => State::Extension,
            (State::Size(true) | State::Blank, b' ' | b'\t') => {
                self.count(LINE_MAX)?;
                State::Blank
            }
            (State::Extension, b) if (b >= b' ' && b != 127) || b == b'\t' => {
                self.count(LINE_MAX)?;
                State::Extension
            }
            (State::SizeLf, b'\n') => {
                self.line = 0;
                if self.left == 0 { State::Trailers } else { State::Data }
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size(false),
            (State::Trailers, b'\r') => State::EndLf,
            (State::EndLf, b'\n') => State::End,
            _ => return Err(Malformed),
        })
    }

    fn count(&mut self, max: u32) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > max { Err(Malformed) } else { Ok(()) }
    }
}

/// Adds the lines of a trailer section to a head. What does not fit is left out.
pub fn split_trailers(bytes: &[u8], head: &mut Head) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.strip_suffix(b"\r").unwrap_or(line).split_at(colon);
        let _ = head.append(name, trim(value.get(1..).unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Result<(usize, bool), Malformed> {
        Scanner::default().scan(bytes)
    }

    #[test]
    fn nothing_is_read_behind_what_is_malformed() {
        // Asked again about the same bytes, a scanner that forgot would find a body that ends in them.
        let bytes = b"1\r\nx\r\n0\r\n\r\nGET /x HTTP/1.1\r\n";
        let mut scanner = Scanner::default();
        assert_eq!(scanner.scan(b"1C\r\n"), Ok((4, false)));
        assert_eq!(scanner.scan(bytes), Ok((28, false)));
        assert_eq!(scanner.strip(&mut b"xx".to_vec()), Err(Malformed));
        for _ in 0..3 {
            assert_eq!(scanner.strip(&mut bytes.to_vec()), Err(Malformed));
            assert_eq!(scanner.scan(b"\r\n0\r\n\r\n"), Err(Malformed));
        }
    }

    #[test]
    fn of_what_comes_with_something_malformed_only_the_rest_of_a_chunk_counts() {
        for (before, with, content) in
            [("", "3\r\nabcd", 0), ("3\r\nabc\r\n", "3\r\nabc\r\nz", 3), ("3\r\nab", "c\r\n3\r\nabcd", 3)]
        {
            let mut scanner = Scanner::default();
            scanner.strip(&mut before.as_bytes().to_vec()).unwrap();
            assert_eq!(scanner.strip(&mut with.as_bytes().to_vec()), Err(Malformed));
            assert_eq!(scanner.content(), content, "{before} {with}");
        }
    }

    #[test]
    fn the_end_is_found_wherever_the_pieces_are_cut() {
        let body = b"4\r\nWiki\r\n5;a=b\r\npedia\r\n0\r\nX: y\r\n\r\nGET /";
        let end = body.len() - 5;
        assert_eq!(whole(body), Ok((end, true)));
        for cut in 1..end {
            let mut s = Scanner::default();
            assert_eq!(s.scan(&body[..cut]), Ok((cut, false)), "cut at {cut}");
            assert_eq!(s.scan(&body[cut..]), Ok((end - cut, true)), "cut at {cut}");
        }
    }

    #[test]
    fn only_blanks_around_the_value_of_a_trailer_go() {
        let mut head = Head::response();
        split_trailers(b"x-a: \t\x0cone\x0b \r\nx-b:\r\nx-c:two\n", &mut head);
        let lines: Vec<_> = head.fields().map(|(_, name, value)| (name, value)).collect();
        assert_eq!(lines, [(&b"x-a"[..], &b"\x0cone\x0b"[..]), (b"x-b", b""), (b"x-c", b"two")]);
    }

    #[test]
    fn extensions_are_left_out_wherever_the_pieces_are_cut() {
        let body = b"4\r\nWiki\r\n5;a=b\r\npedia\r\n0;c\r\nX-A: Yes\r\n\r\n";
        let want = b"4\r\nWiki\r\n5\r\npedia\r\n0\r\nx-a: Yes\r\n\r\n";
        for cut in 0..body.len() {
            let mut scanner = Scanner::default();
            let mut out = Vec::new();
            for piece in [&body[..cut], &body[cut..]] {
                let mut piece = piece.to_vec();
                let done = scanner.strip(&mut piece).unwrap();
                assert_eq!(done.used, piece.len());
                out.extend_from_slice(&piece[..done.kept]);
            }
            out.extend_from_slice(&scanner.take_trailers());
            assert_eq!(out, want, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_strict_is_refused() {
        for bad in [
            &b"x\r\n"[..],
            b"\r\n",
            b"4\nWiki\r\n",
            b"4\r\nWikiX",
            b"4\r\nWiki\rX",
            b"fffffffffffffffff\r\n",
            b"0\r\nX: y\r\r\n\n",
            b"-1\r\n",
            b"4;\n",
            b"4 x\r\n",
            b"0\r\nx y: 1\r\n\r\n",
            b"4;a\x01\r\n",
        ] {
            assert_eq!(whole(bad), Err(Malformed), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
