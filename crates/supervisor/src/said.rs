//! What clients of the master's socket say: lines, their commands and payloads, and how a connection answers.
//! Nothing here waits for anything, so that any bytes can be played to it.

use base::foreign;

use super::machine::{Event, Reload};
use super::route;

/// Bytes that came and are no line yet.
#[derive(Debug, Default)]
pub struct Input(Vec<u8>);

impl Input {
    /// Begins with what was read before.
    pub fn new(bytes: Vec<u8>) -> Input {
        Input(bytes)
    }

    /// More has come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next line of commands, without its end, which no backslash stands before; of one that is longer
    /// than `most`, so much that this can be seen.
    pub fn next(&mut self, most: usize) -> Option<Vec<u8>> {
        self.up_to(admin::cli::line::end(&self.0), most)
    }

    /// The next line of a payload, where backslashes mean nothing.
    pub fn next_of_payload(&mut self, most: usize) -> Option<Vec<u8>> {
        self.up_to(self.0.iter().position(|b| *b == b'\n'), most)
    }

    fn up_to(&mut self, end: Option<usize>, most: usize) -> Option<Vec<u8>> {
        if let Some(end) = end {
            let mut line: Vec<u8> = self.0.drain(..=end).collect();
            line.pop();
            return Some(line);
        }
        (self.0.len() > most).then(|| std::mem::take(&mut self.0))
    }

    /// All that is no line yet.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// A line of commands.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'t> {
    /// Its commands, each with its prefix.
    pub commands: Vec<&'t str>,
    /// The line that ends the payload behind it, if it announces one. It belongs to the last command.
    pub payload_end: Option<String>,
}

/// Takes a line apart.
pub fn line(text: &str) -> Line<'_> {
    let payload_end = admin::cli::line::parse(&foreign::bytes(text)).payload_end;
    let commands =
        if route::takes_all(text) { vec![text.trim_end_matches('\r')] } else { route::commands(text) };
    Line { commands, payload_end }
}

/// A payload on its way.
#[derive(Debug)]
pub struct Payload {
    end: String,
    text: Vec<u8>,
    most: usize,
}

/// What becomes of a payload with one line more.
#[derive(Debug, PartialEq, Eq)]
pub enum Gathered {
    /// There is more to come.
    More,
    /// All is there.
    Whole(String),
    /// It is longer than it may be.
    TooBig,
}

impl Payload {
    /// One that ends with the line `end` and has `most` bytes at most.
    pub fn new(end: &str, most: usize) -> Payload {
        Payload { end: end.to_owned(), text: Vec::new(), most }
    }

    /// Takes a line in.
    pub fn take(&mut self, line: &[u8]) -> Gathered {
        if self.text.len() + line.len() >= self.most {
            return Gathered::TooBig;
        }
        if *line == *foreign::bytes(&self.end) {
            return Gathered::Whole(foreign::text(&self.text).into_owned());
        }
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        Gathered::More
    }
}

/// How a connection answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// It shows where the next command goes.
    pub shown: bool,
    /// With the time since the start.
    pub timed: bool,
}

impl Prompt {
    /// `prompt`: without arguments it is switched on or off. `false`: the words are not understood. The
    /// connection is interactive all along.
    pub fn change<'w>(&mut self, words: impl Iterator<Item = &'w str>) -> bool {
        let mut words = words.peekable();
        if words.peek().is_none() {
            self.shown = !self.shown;
        }
        for word in words {
            match word {
                "i" => self.shown = false,
                "p" => self.shown = true,
                "timed" => (self.shown, self.timed) = (true, !self.timed),
                "-" => {}
                _ => return false,
            }
        }
        true
    }
}

/// What the master itself is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// A reload.
    Reload(Event),
    /// A reload in place with words that it does not take.
    InPlaceWords,
    /// Its processes; whether all of them.
    Processes {
        /// With those that are about to end.
        debug: bool,
    },
    /// The same with a word that it does not take.
    ProcessWords,
    /// What was said at the last start.
    StartupLogs,
    /// A command that it has in common with workers.
    Other,
}

impl Own {
    /// Whether more than `user` is needed.
    pub fn is_privileged(&self) -> bool {
        !matches!(self, Own::Other | Own::InPlaceWords)
    }
}

/// Reads the words of a command for the master.
pub fn own(words: &[String]) -> Own {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match (word(0), word(1), word(2)) {
        ("reload", "in-place", _) if words.len() == 2 => Own::Reload(Event::InPlace { check: false }),
        ("reload", "in-place", "check") if words.len() == 3 => Own::Reload(Event::InPlace { check: true }),
        ("reload", "in-place", _) => Own::InPlaceWords,
        ("reload", ..) => Own::Reload(Event::Reload(Reload::Soft)),
        ("hard-reload", ..) => Own::Reload(Event::Reload(Reload::Hard)),
        ("show", "proc", _) if words.len() == 2 => Own::Processes { debug: false },
        ("show", "proc", "debug") => Own::Processes { debug: true },
        ("show", "proc", _) => Own::ProcessWords,
        ("show", "startup-logs", _) => Own::StartupLogs,
        _ => Own::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_however_they_are_cut() {
        let text = b"@1 show info\n\nset x <<E\r\nab\nE\nrest";
        for step in 1..text.len() {
            let (mut input, mut lines) = (Input::default(), Vec::new());
            for piece in text.chunks(step) {
                input.push(piece);
                while let Some(line) = input.next(16) {
                    lines.push(line);
                }
            }
            assert_eq!(lines.join(&b'\n'), b"@1 show info\n\nset x <<E\r\nab\nE");
            assert_eq!(input.rest(), b"rest");
        }
        assert_eq!(Input::new(vec![b'x'; 17]).next(16), Some(vec![b'x'; 17]));
        assert_eq!(Input::new(vec![b'x'; 16]).next(16), None);
        let escaped = || Input::new(b"a\\\nb\n".to_vec());
        assert_eq!(escaped().next(16), Some(b"a\\\nb".to_vec()));
        assert_eq!(escaped().next_of_payload(16), Some(b"a\\".to_vec()));
    }

    #[test]
    fn a_payload_belongs_to_a_line_and_has_an_end() {
        let Line { commands, payload_end } = line("@1 show info;@1 set x <<E");
        assert_eq!((commands, payload_end.as_deref()), (vec!["@1 show info", "@1 set x <<E"], Some("E")));
        assert_eq!(line("@@1 a;b\r").commands, ["@@1 a;b"]);
        let mut payload = Payload::new("E", 8);
        assert_eq!(payload.take(b"ab"), Gathered::More);
        assert_eq!(payload.take(b"12345"), Gathered::TooBig);
        assert_eq!(payload.take(b"E"), Gathered::Whole("ab\n".to_owned()));
    }

    #[test]
    fn prompts_change_as_the_oracle_changes_them() {
        let mut prompt = Prompt::default();
        for (words, understood, shown, timed) in [
            ("", true, true, false),
            ("", true, false, false),
            ("timed", true, true, true),
            ("i", true, false, true),
            ("timed p", true, true, false),
            ("help", false, true, false),
            ("i -", true, false, false),
        ] {
            assert_eq!(prompt.change(words.split_ascii_whitespace()), understood, "{words:?}");
            assert_eq!(prompt, Prompt { shown, timed }, "{words:?}");
        }
    }
}
