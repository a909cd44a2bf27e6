//! The program as a process: its command line, how it starts and stops, its rights, its logs.
//!
//! Each test starts the program as a user would and looks at what it says and does. Nothing sleeps to wait
//! for it: that it serves is told by the word it sends to its service manager, everything else is
//! read until it comes or a generous time is over. What needs root is skipped with a line that says so where
//! the tests do not run as root.

mod command_line;
mod logs;
mod rights;
mod running;
mod starting;
mod stopping;
