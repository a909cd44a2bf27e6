//! Lines on standard error, in the shape that tools match: `[LEVEL] (pid) : text`. Where a terminal listens,
//! the level has a colour. All that the program prints goes through here.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// Set while nothing shall be said: `-q`, or `quiet` in the configuration.
static HUSHED: AtomicBool = AtomicBool::new(false);

/// Whether alerts, warnings and notices are kept to ourselves from now on.
pub fn hush(on: bool) {
    HUSHED.store(on, Relaxed);
}

/// Whether [`hush`] was asked for.
pub fn hushed() -> bool {
    HUSHED.load(Relaxed)
}

/// What was said since [`remember`], without colours; `None` while nobody wants to know.
static REMEMBERED: Mutex<Option<String>> = Mutex::new(None);

/// The most text that is remembered.
const MOST: usize = 1 << 20;

/// From now on what is said on standard error is also kept, for a master to tell.
pub fn remember() {
    *REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
}

/// What was said since [`remember`]; nothing more is kept.
pub fn remembered() -> String {
    REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
}

fn keep(text: &str) {
    let mut kept = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kept) = kept.as_mut().filter(|kept| kept.len() + text.len() <= MOST) else { return };
    // Without the words that set a colour: ESC [ ... m.
    let mut pieces = text.split("\x1b[");
    kept.push_str(pieces.next().unwrap_or_default());
    pieces.for_each(|piece| kept.push_str(piece.split_once('m').map_or(piece, |(_, rest)| rest)));
}

/// Something that keeps the process from starting.
pub fn alert(text: &str) {
    line("[ALERT]", "31", text);
}

/// Something that was asked for and does not happen.
pub fn warning(text: &str) {
    admin::product::warned(1);
    line("[WARNING]", "33", text);
}

/// Something worth knowing.
pub fn notice(text: &str) {
    line("[NOTICE]", "34", text);
}

fn line(level: &str, colour: &str, text: &str) {
    if hushed() {
        return;
    }
    let padding = " ".repeat(11 - level.len());
    let level = if colours() { format!("\x1b[1;{colour}m{level}\x1b[0m") } else { level.to_owned() };
    error(&format!("{level}{padding}({}) : {text}\n", std::process::id()));
}

/// Writes an answer to standard output. A reader that left early (`| head`) or a full disk changes neither
/// what the process does nor its exit code; `print!` would abort.
pub fn output(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Writes to standard error as it is, under the same rule as [`output`].
pub fn error(text: &str) {
    keep(text);
    let _ = io::stderr().lock().write_all(text.as_bytes());
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
