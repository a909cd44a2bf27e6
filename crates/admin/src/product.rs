//! What this program says it is. Tools that watch HAProxy compare the name and the first numbers of the
//! version.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

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

static WARNINGS: AtomicU32 = AtomicU32::new(0);

/// So many more warnings were given.
pub fn warned(times: u32) {
    WARNINGS.fetch_add(times, Relaxed);
}

/// Warnings so far, of the configuration and of the process (`TotalWarnings` of `show info`).
pub fn warnings() -> u32 {
    WARNINGS.load(Relaxed)
}

/// Keeps what was said while the process started or read its configuration again, for `show startup-logs`.
/// Each line ends with its end.
pub fn set_startup_logs(lines: String) {
    *STARTUP_LOGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = lines;
}

/// What was said while the process started.
pub fn startup_logs() -> String {
    STARTUP_LOGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}
