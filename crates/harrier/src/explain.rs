//! `harrier explain`: the words, the configuration, the report.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use explain::{Ask, Style, USAGE};

use crate::args::Args;
use crate::config;

/// Explains what the words behind `explain` describe. Exit code 1: the configuration or the request is wrong.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let ask = match Ask::parse(words) {
        Ok(ask) => ask,
        Err(wrong) if wrong.0.is_empty() => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("harrier explain: {}\n\n{USAGE}", wrong.0);
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
            let stdout = std::io::stdout();
            let style = Style { colours: stdout.is_terminal(), all: ask.all };
            let text = if ask.json { report.json() } else { report.text(style) };
            // A reader that left early (`| head`) is no fault.
            let _ = stdout.lock().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("harrier explain: {why}");
            ExitCode::from(1)
        }
    }
}
