//! The words that extensions add to the rule language: one line for each table.

use lang::Registry;

/// All words.
pub fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry.add_filters(compress::FILTERS);
    registry.add_filters(spoe::FILTERS);
    registry.add_actions(spoe::ACTIONS);
    registry
}
