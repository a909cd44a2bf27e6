//! The list of commands that `-dKcli` prints.

use crate::cli::table::{ALWAYS, COMMANDS};

/// One line for each command: its words, then the processes that know it.
pub fn commands() -> String {
    let mut lines: Vec<String> =
        COMMANDS.iter().map(|c| format!("{} [WORKER] \n", c.words.join(" "))).collect();
    lines.extend(ALWAYS.iter().map(|c| format!("{} [MASTER] [WORKER] \n", c.words.join(" "))));
    lines.sort();
    lines.concat()
}
