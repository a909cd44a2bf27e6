//! What this program says it is. Tools that watch HAProxy compare the name and the first numbers of the version.

/// `Name` in `show info`.
pub const NAME: &str = "HAProxy";

/// `Version`: the language it speaks, then its own.
pub const VERSION: &str = concat!("3.5-harrier-", env!("CARGO_PKG_VERSION"));

/// Date of the version.
pub const RELEASE_DATE: &str = "2026/11/21";
