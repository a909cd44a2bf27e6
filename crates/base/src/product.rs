//! What this program says it is where peers hear of it.

/// The version of HAProxy whose language it speaks.
pub const COMPATIBLE: &str = "3.5.0";

/// What stands wherever HAProxy's version does: the language it speaks, then its own version.
pub const VERSION: &str = concat!("3.5.0-harrier-", env!("CARGO_PKG_VERSION"));

/// The same behind the name, as applications are told it.
pub const SOFTWARE: &str = concat!("HAProxy 3.5.0-harrier-", env!("CARGO_PKG_VERSION"));
