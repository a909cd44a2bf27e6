//! A table as it was configured.

use crate::key::KeyKind;
use crate::layout::Layout;

/// How servers are named in a table (`srvkey`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SrvKey {
    /// By name.
    #[default]
    Name,
    /// By address and port.
    Addr,
}

/// A table as it was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name: that of its proxy, or `section/name`.
    pub name: Box<str>,
    /// Kind of keys.
    pub kind: KeyKind,
    /// The most entries.
    pub size: u32,
    /// How long an unused entry stays, ms; 0: until it has to make room.
    pub expire: u64,
    /// New keys are refused when it is full.
    pub nopurge: bool,
    /// Only peers write it.
    pub recv_only: bool,
    /// The table that learns from peers in its place.
    pub write_to: Option<Box<str>>,
    /// How servers are named.
    pub srvkey: SrvKey,
    /// Bytes that count as one in rates of bytes, at least 1.
    pub brates_factor: u32,
    /// The section of peers that it is shared with.
    pub peers: Option<Box<str>>,
    /// What is stored.
    pub layout: Layout,
}
