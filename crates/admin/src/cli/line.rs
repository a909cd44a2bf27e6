//! The language of the runtime API: lines of commands (management manual, 9.3).
//!
//! A line holds commands separated by `;`, a command holds words separated by blanks, and a backslash takes
//! the meaning from the character behind it. When the last word of a line starts with `<<`, what follows is
//! payload, up to a line that is the rest of that word (by default an empty one). All functions here are
//! total: the bytes come from a peer.

use base::foreign;

/// The most bytes that the mark of a payload's end may have; a word with more is a word like others.
const MAX_MARK: usize = 64;

/// The most words that a command may have.
pub const MAX_WORDS: usize = 64;

/// A line taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Its commands; an empty list of words is an empty command, which is answered with an empty line.
    pub commands: Vec<Vec<String>>,
    /// The line that ends the payload, if the line announces one.
    pub payload_end: Option<String>,
}

/// Where the first line of what has come ends: at a line feed that no backslash stands before.
pub fn end(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    bytes.iter().position(|b| {
        let ends = *b == b'\n' && !escaped;
        escaped = *b == b'\\' && !escaped;
        ends
    })
}

/// Takes a line apart. Words hold bytes that are not UTF-8 as [`foreign`] does.
pub fn parse(line: &[u8]) -> Line {
    let text = foreign::text(line);
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next().unwrap_or('\\');
                word.get_or_insert_default().push(escaped);
            }
            ' ' | '\t' => end_word(&mut commands, &mut word),
            ';' | '\r' => {
                end_word(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut commands, &mut word);
    let payload_end = take_payload_mark(&mut commands);
    Line { commands, payload_end }
}

fn end_word(commands: &mut [Vec<String>], word: &mut Option<String>) {
    if let (Some(word), Some(command)) = (word.take(), commands.last_mut()) {
        command.push(word);
    }
}

fn take_payload_mark(commands: &mut [Vec<String>]) -> Option<String> {
    let command = commands.last_mut()?;
    let end = command.last()?.strip_prefix("<<").filter(|end| end.len() <= MAX_MARK)?.to_owned();
    command.pop();
    Some(end)
}

/// Entry for fuzzing: takes arbitrary bytes apart and checks what must always hold.
pub fn fuzz(data: &[u8]) {
    for line in data.split(|b| *b == b'\n') {
        let parsed = parse(line);
        assert!(!parsed.commands.is_empty());
        let letters: usize = parsed.commands.iter().flatten().map(|w| w.chars().count()).sum();
        assert!(letters <= foreign::text(line).chars().count());
        for word in parsed.commands.iter().flatten() {
            // A backslash between two bytes may have made one character of them.
            let bytes = foreign::bytes(word);
            assert_eq!(foreign::bytes(&foreign::text(&bytes)), bytes);
        }
        for command in parsed.commands.iter().filter(|c| !c.is_empty()) {
            let _ = super::table::find(command, super::call::Scope::Worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        parse(line.as_bytes()).commands
    }

    #[test]
    fn lines_come_apart_as_the_oracle_takes_them() {
        let table: &[(&str, &[&[&str]])] = &[
            ("show version", &[&["show", "version"]]),
            ("  show \t version  ", &[&["show", "version"]]),
            ("", &[&[]]),
            ("a;b c", &[&["a"], &["b", "c"]]),
            ("a;", &[&["a"], &[]]),
            (";a", &[&[], &["a"]]),
            ("a;;b", &[&["a"], &[], &["b"]]),
            ("echo a\\;b", &[&["echo", "a;b"]]),
            ("echo a\\\\;echo b", &[&["echo", "a\\"], &["echo", "b"]]),
            ("echo a\\ b\\n", &[&["echo", "a bn"]]),
            ("echo \"a b\"", &[&["echo", "\"a", "b\""]]),
            ("echo \\", &[&["echo", "\\"]]),
            ("a\r", &[&["a"], &[]]),
            ("echo a\\\nb", &[&["echo", "a\nb"]]),
        ];
        for (line, wanted) in table {
            assert_eq!(words(line), *wanted, "{line:?}");
        }
    }

    #[test]
    fn a_payload_is_announced_by_the_last_word_alone() {
        let end = |line: &str| parse(line.as_bytes()).payload_end;
        assert_eq!(end("set x <<"), Some(String::new()));
        assert_eq!(end("set x <<EOF"), Some("EOF".into()));
        assert_eq!(end("echo x<<"), None);
        assert_eq!(end("set << x"), None);
        assert_eq!(end("set x \\<<"), Some(String::new()));
        assert_eq!(words("set x <<EOF"), [["set", "x"]]);
        assert_eq!(end(&format!("set x <<{}", "e".repeat(64))), Some("e".repeat(64)));
        assert_eq!(end(&format!("set x <<{}", "e".repeat(65))), None);
    }

    #[test]
    fn a_backslash_takes_the_meaning_from_the_end_of_a_line() {
        assert_eq!(super::end(b"echo a\nb"), Some(6));
        assert_eq!(super::end(b"echo a\\\nb\n"), Some(9));
        assert_eq!(super::end(b"echo a\\\\\nb\n"), Some(8));
        assert_eq!(super::end(b"echo a\\\n"), None);
    }

    #[test]
    fn hostile_lines_hold_the_invariants() {
        const LETTERS: &[u8] = b"show set;\\<< \n\r\t\xff\xc3a";
        for seed in 0..2000u32 {
            let mut x = seed.wrapping_mul(2_654_435_761).max(1);
            let data: Vec<u8> = (0..seed % 97)
                .map(|_| {
                    x ^= x << 13;
                    x ^= x >> 17;
                    x ^= x << 5;
                    LETTERS[x as usize % LETTERS.len()]
                })
                .collect();
            fuzz(&data);
        }
    }
}
