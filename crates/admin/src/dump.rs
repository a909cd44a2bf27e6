//! The list of commands that `-dKcli` prints.

use crate::cli::table::{self, ALWAYS};

/// A heading, then a line for each command: its words, and the processes that know it.
pub fn commands() -> String {
    let line = |c: &crate::cli::table::Command| {
        let mode = if c.experimental { "[EXPERIM] " } else { "" };
        format!("{} [WORKER] {mode}\n", c.words.join(" "))
    };
    let mut lines: Vec<String> = table::commands().iter().copied().chain(ALWAYS).map(line).collect();
    lines.sort();
    "# List of registered CLI keywords:\n".to_owned() + &lines.concat()
}
