//! The list of commands that `-dKcli` prints.

use crate::cli::table::{self, Processes};

/// What a worker answers to without being a command of the table: another process asks for the listening
/// sockets ([`crate::cli`]).
const HAND_OVER: &str = "_getsocks [WORKER] \n";

/// A heading, then a line for each command: its words, the processes that know it, the mode that it wants.
pub fn commands() -> String {
    let line = |c: &table::Command| {
        let processes = match c.processes() {
            Processes::Worker => "[WORKER] ",
            Processes::Master => "[MASTER] ",
            Processes::Both => "[MASTER] [WORKER] ",
        };
        let mode = match (c.expert, c.experimental) {
            (true, _) => "[EXPERT] ",
            (_, true) => "[EXPERIM] ",
            _ => "",
        };
        format!("{} {processes}{mode}\n", c.words.join(" "))
    };
    let mut lines: Vec<String> = table::everything().map(line).chain([HAND_OVER.to_owned()]).collect();
    lines.sort();
    "# List of registered CLI keywords:\n".to_owned() + &lines.concat()
}
