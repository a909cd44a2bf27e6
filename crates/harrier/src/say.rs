//! Lines on standard error, in the shape that tools match: `[LEVEL] (pid) : text`. Where a terminal listens, the level
//! has a colour.

use std::io::{self, IsTerminal};

/// Something that keeps the process from starting.
pub fn alert(text: &str) {
    line("[ALERT]", "31", text);
}

/// Something that was asked for and does not happen.
pub fn warning(text: &str) {
    line("[WARNING]", "33", text);
}

/// Something worth knowing.
pub fn notice(text: &str) {
    line("[NOTICE]", "34", text);
}

fn line(level: &str, colour: &str, text: &str) {
    let padding = " ".repeat(11 - level.len());
    let level = if colours() { format!("\x1b[1;{colour}m{level}\x1b[0m") } else { level.to_owned() };
    eprintln!("{level}{padding}({}) : {text}", std::process::id());
}

/// A whole line without colours.
pub fn plain(level: &str, text: &str) -> String {
    format!("{level:<10} ({}) : {text}\n", std::process::id())
}

/// Whether colours help: somebody looks at standard error, and did not ask for none (`NO_COLOR`).
pub fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// What the system says, without Rust's number behind it.
pub fn reason(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
