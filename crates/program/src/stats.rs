//! The statistics page of a proxy (`stats ...`).

use std::sync::Arc;
use std::time::Duration;

/// Settings of one page.
#[derive(Clone, Default)]
pub struct Page {
    /// `stats uri`.
    pub uri: Box<str>,
    /// `stats realm`.
    pub realm: Option<Box<str>>,
    /// `stats auth`: user and password.
    pub users: Vec<(Box<str>, Box<str>)>,
    /// `stats http-request`.
    pub rules: lang::RuleSet,
    /// `stats admin`: each allows changes if its condition holds (`None`: always).
    pub admin: Vec<Arc<Option<lang::Condition>>>,
    /// `stats refresh`.
    pub refresh: Option<Duration>,
    /// `stats scope`: proxies shown; `.` is already replaced. Empty: all.
    pub scope: Vec<Box<str>>,
    /// `stats show-version`.
    pub show_version: bool,
    /// `stats show-desc`.
    pub description: Option<Box<str>>,
    /// `stats show-legends`.
    pub legends: bool,
    /// `stats show-node`.
    pub node: Option<Box<str>>,
    /// `stats show-modules`.
    pub modules: bool,
}
