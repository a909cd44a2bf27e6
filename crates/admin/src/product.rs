//! What this program says it is. Tools that watch HAProxy compare the name and the first numbers of the
//! version.

/// `Name` in `show info`.
pub const NAME: &str = "HAProxy";

/// The version of HAProxy whose language it speaks.
pub const COMPATIBLE: &str = "3.5.0";

/// The branch of that version.
pub const BRANCH: &str = "3.5";

/// Its own version.
pub const OURS: &str = env!("CARGO_PKG_VERSION");

/// `Version` in `show info`, and wherever HAProxy's version stands: the language it speaks, then its own.
pub const VERSION: &str = concat!("3.5.0-harrier-", env!("CARGO_PKG_VERSION"));

/// Date of the version.
pub const RELEASE_DATE: &str = "2026/11/21";

static STARTUP_LOGS: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Keeps what was said while the process started, for `show startup-logs`. Once; each line ends with its end.
pub fn set_startup_logs(lines: String) {
    let _ = STARTUP_LOGS.set(lines);
}

/// What was said while the process started.
pub fn startup_logs() -> String {
    STARTUP_LOGS.get().cloned().unwrap_or_default()
}
