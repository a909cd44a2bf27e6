//! What this program says it is. Tools that watch HAProxy compare the name and the first numbers of the
//! version.

/// `Name` in `show info`.
pub const NAME: &str = "HAProxy";

pub use base::product::{COMPATIBLE, VERSION};

/// The branch of that version.
pub const BRANCH: &str = "3.5";

/// Its own version.
pub const OURS: &str = env!("CARGO_PKG_VERSION");

/// Date of the version.
pub const RELEASE_DATE: &str = "2026/11/21";

static STARTUP_LOGS: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());

/// Keeps what was said while the process started or read its configuration again, for `show startup-logs`.
/// Each line ends with its end.
pub fn set_startup_logs(lines: String) {
    *STARTUP_LOGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = lines;
}

/// What was said while the process started.
pub fn startup_logs() -> String {
    STARTUP_LOGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}
