//! `harrier log --ring FILE`: the lines that a ring left in its file (`backing-file`).

use std::process::ExitCode;

use crate::say;

const USAGE: &str = "Usage: harrier log --ring FILE\n\
    Shows the lines of a ring that were kept in its backing file, the oldest first.\n";

/// Shows a file. Exit code 1: it can't be read, or is none of a ring.
pub fn run(mut words: impl Iterator<Item = String>) -> ExitCode {
    let (option, path) = (words.next(), words.next());
    let path = match (option.as_deref(), path, words.next()) {
        (Some("--ring"), Some(path), None) => path,
        (None | Some("-h" | "--help"), None, None) => {
            say::output(USAGE);
            return ExitCode::SUCCESS;
        }
        _ => {
            say::error(USAGE);
            return ExitCode::FAILURE;
        }
    };
    let file = match std::fs::read(&path) {
        Ok(file) => file,
        Err(e) => {
            say::error(&format!("harrier log: cannot read '{path}': {}\n", say::reason(&e)));
            return ExitCode::FAILURE;
        }
    };
    let Some(lines) = wire::ring_file::read(&file) else {
        say::error(&format!("harrier log: '{path}' is no file of a ring of Harrier\n"));
        return ExitCode::FAILURE;
    };
    let mut out = String::new();
    for (_, line) in lines {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    say::output(&out);
    ExitCode::SUCCESS
}
