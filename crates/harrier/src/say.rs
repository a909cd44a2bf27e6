//! Lines on standard error, in the shape that tools match: `[LEVEL] (pid) : text`.

use std::io;

/// Something that keeps the process from starting.
pub fn alert(text: &str) {
    line("ALERT", text);
}

/// Something that was asked for and does not happen.
pub fn warning(text: &str) {
    line("WARNING", text);
}

/// Something worth knowing.
pub fn notice(text: &str) {
    line("NOTICE", text);
}

fn line(level: &str, text: &str) {
    eprintln!("{:<10} ({}) : {text}", format!("[{level}]"), std::process::id());
}

/// What the system says, without Rust's number behind it.
pub fn reason(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
