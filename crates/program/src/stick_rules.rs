//! Persistence by stick tables: the `stick` keyword.

use std::sync::Arc;

use lang::{Condition, Expr};

/// One rule: the key is made of a sample, if the condition holds.
pub struct StickRule {
    /// Makes the key.
    pub expr: Expr,
    /// Where it is looked up or stored.
    pub table: Arc<stick::Table>,
    /// When it applies.
    pub condition: Option<Condition>,
    /// `stick match`, `stick on`: an entry decides which server serves.
    pub matches: bool,
    /// `stick store-request`, `stick on`: the server is stored.
    pub stores: bool,
}

/// The rules of a backend.
#[derive(Default)]
pub struct StickRules {
    /// On requests, in order.
    pub request: Vec<StickRule>,
    /// On responses, in order.
    pub response: Vec<StickRule>,
}

impl StickRules {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }
}
