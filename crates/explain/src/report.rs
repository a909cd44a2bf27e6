//! What was found out. Text and JSON are two ways of writing it.

use crate::seen::Seen;

/// The whole story of one request.
#[derive(Debug, Default)]
pub struct Report {
    /// Request line.
    pub request: String,
    /// Client and destination.
    pub addresses: (String, String),
    /// Proxies passed, in order.
    pub sections: Vec<Section>,
    /// How it ends, in a sentence.
    pub outcome: String,
    /// It reaches a server.
    pub forwarded: bool,
    /// The fields at the end, and those that went.
    pub headers: Vec<(Change, String, String)>,
    /// Request line at the end, if a rule changed it.
    pub rewritten: Option<String>,
}

/// What became of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is as it came.
    Kept,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

/// What one proxy does.
#[derive(Debug)]
pub struct Section {
    /// `frontend web`.
    pub title: String,
    /// Its rules, in the order of evaluation.
    pub rows: Vec<Row>,
}

/// One rule.
#[derive(Debug)]
pub struct Row {
    /// File and line.
    pub place: Option<(String, u32)>,
    /// Keyword and action.
    pub rule: String,
    /// Its condition as written.
    pub condition: Option<String>,
    /// Whether it applied; without a condition it does.
    pub applies: bool,
    /// What was looked at.
    pub seen: Vec<Seen>,
    /// What came of it, one sentence each.
    pub effects: Vec<String>,
}
