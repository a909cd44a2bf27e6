//! `harrier explain`: the words, the configuration, the report.

use std::io::IsTerminal;
use std::process::ExitCode;

use explain::{Ask, Style, USAGE};

use crate::args::Args;
use crate::{config, say};

/// Explains what the words behind `explain` describe. Exit code 1: the configuration or the request is wrong.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let ask = match Ask::parse(words) {
        Ok(ask) => ask,
        Err(wrong) if wrong.0.is_empty() => {
            say::output(USAGE);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            say::error(&format!("harrier explain: {}\n\n{USAGE}\n", wrong.0));
            return ExitCode::from(1);
        }
    };
    let args = Args { files: ask.files.iter().map(Into::into).collect(), ..Args::default() };
    let loaded = match config::load(&args) {
        Ok(loaded) => loaded,
        Err(unusable) => return unusable.code(),
    };
    match explain::explain(&loaded.program, &ask) {
        Ok(report) => {
            let style = Style { colours: std::io::stdout().is_terminal(), all: ask.all };
            say::output(&if ask.json { report.json() } else { report.text(style) });
            ExitCode::SUCCESS
        }
        Err(why) => {
            say::error(&format!("harrier explain: {why}\n"));
            ExitCode::from(1)
        }
    }
}
