//! The words that extensions add to the rule language: one line for each table.

use lang::Registry;

/// All words.
pub fn registry() -> Registry {
    Registry::standard()
}
