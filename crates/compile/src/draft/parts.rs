//! Settings of a proxy that take several words.

use std::time::Duration;

use stick::Settings;
use syntax::Span;

use super::place::{LineRef, Named};

/// A stick table as declared.
#[derive(Clone, Debug)]
pub(crate) struct TableDraft {
    /// Its name is filled in already.
    pub settings: Settings,
    /// Where it was declared.
    pub span: Span,
    /// How complaints name its owner.
    pub owner: String,
}

/// What a proxy says of mail.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlertDraft {
    pub mailers: Option<Named>,
    pub from: Option<Box<str>>,
    pub to: Option<Box<str>>,
    pub hostname: Option<Box<str>>,
    /// As a syslog level.
    pub level: Option<u8>,
    /// Anything was said at all.
    pub any: bool,
}

/// `stats`: the statistics page while it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageDraft {
    /// It comes from a `defaults` section.
    pub in_defaults: bool,
    pub uri: Option<Box<str>>,
    pub realm: Option<Box<str>>,
    pub users: Vec<(Box<str>, Box<str>)>,
    pub rules: Vec<LineRef>,
    pub admin: Vec<LineRef>,
    pub refresh: Option<Duration>,
    pub scope: Vec<Box<str>>,
    /// `.` is the proxy itself.
    pub show_version: bool,
    pub description: Option<Option<Box<str>>>,
    pub legends: bool,
    pub node: Option<Option<Box<str>>>,
    pub modules: bool,
}
