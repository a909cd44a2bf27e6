//! The line between a master and a worker: a pair of Unix sockets.
//!
//! Towards the worker go connected sockets, over which it is spoken to as over any socket of its runtime API
//! (`sockpair@`). Towards the master the worker says, while it starts, what it had to complain about, what
//! its configuration says to the master, and that it serves: each a byte of kind, four bytes of length, and
//! text. The end of the line is the end of the process at the other end of it.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::machine::Settings;

/// The most text that a worker sends of what it said.
const MOST: usize = 1 << 20;

/// What a worker says while it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// What it had to complain about.
    Logs(String),
    /// What its configuration says to the master, and where the pid of the master shall stand.
    Settings(Settings, Option<String>),
    /// It serves.
    Ready,
    /// Somebody wants it to adopt its configuration in place, or only to know whether it could.
    Wanted {
        /// Whether it only shall be looked at.
        check: bool,
    },
}

/// The worker's end.
#[derive(Debug)]
pub struct WorkerEnd(UnixStream);

impl WorkerEnd {
    /// Takes the end of a pair.
    pub fn new(end: OwnedFd) -> WorkerEnd {
        WorkerEnd(end.into())
    }

    /// Says a word. If the master is gone that is noticed elsewhere.
    pub fn say(&self, word: &Word) {
        let _ = (&self.0).write_all(&encode(word));
    }

    /// The socket over which the master sends connections.
    pub fn into_socket(self) -> OwnedFd {
        self.0.into()
    }

    /// The same end once more.
    pub fn another(&self) -> std::io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }
}

fn encode(word: &Word) -> Vec<u8> {
    let (kind, text) = match word {
        Word::Logs(text) => (b'L', cut(text).to_owned()),
        Word::Settings(s, pidfile) => {
            let pidfile = pidfile.as_deref().unwrap_or_default();
            let bits = u8::from(s.survives_failure) | u8::from(s.in_place) << 1;
            (b'S', format!("{} {bits} {pidfile}", s.max_reloads))
        }
        Word::Ready => (b'R', String::new()),
        Word::Wanted { check } => (b'W', u8::from(*check).to_string()),
    };
    let mut out = vec![kind];
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

/// The first [`MOST`] bytes, whole characters.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// What came from a worker and is not yet a word.
#[derive(Debug, Default)]
pub struct Words(Vec<u8>);

impl Words {
    /// More has come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole word, as far as it has come; unknown ones are passed over.
    pub fn take(&mut self) -> Option<Word> {
        loop {
            let (kind, length, rest) = head(&self.0)?;
            if length > MOST {
                // Nobody says that; nothing after it can be understood.
                self.0.clear();
                return None;
            }
            let text = String::from_utf8_lossy(rest.get(..length)?).into_owned();
            self.0.drain(..(5 + length).min(self.0.len()));
            match kind {
                b'L' => return Some(Word::Logs(text)),
                b'R' => return Some(Word::Ready),
                b'W' => return Some(Word::Wanted { check: text == "1" }),
                b'S' => return settings(&text),
                _ => {}
            }
        }
    }
}

fn head(bytes: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    Some((*kind, u32::from_le_bytes(*length) as usize, rest))
}

fn settings(text: &str) -> Option<Word> {
    let mut words = text.splitn(3, ' ');
    let max_reloads = words.next()?.parse().ok()?;
    let bits: u8 = words.next()?.parse().ok()?;
    let (survives_failure, in_place) = (bits & 1 != 0, bits & 2 != 0);
    let pidfile = words.next().filter(|p| !p.is_empty()).map(str::to_owned);
    Some(Word::Settings(Settings { max_reloads, survives_failure, in_place }, pidfile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_as_they_were_said_however_they_are_cut() {
        let said = [
            Word::Logs("[ALERT] (1) : näh\n".into()),
            Word::Settings(
                Settings { max_reloads: 3, survives_failure: true, in_place: false },
                Some("/run/a b.pid".into()),
            ),
            Word::Settings(Settings { max_reloads: 50, survives_failure: false, in_place: true }, None),
            Word::Ready,
            Word::Wanted { check: true },
        ];
        let bytes: Vec<u8> = said.iter().flat_map(encode).collect();
        for step in 1..bytes.len() {
            let (mut words, mut heard) = (Words::default(), Vec::new());
            for piece in bytes.chunks(step) {
                words.push(piece);
                while let Some(word) = words.take() {
                    heard.push(word);
                }
            }
            assert_eq!(heard, said);
        }
    }

    #[test]
    fn nonsense_is_no_word() {
        let mut words = Words::default();
        words.push(b"L\xff\xff\xff\xffxxxx");
        assert_eq!(words.take(), None);
        words.push(b"?\x01\0\0\0xR\0\0\0\0");
        assert_eq!(words.take(), Some(Word::Ready));
        assert_eq!(cut("näh"), "näh");
    }
}
