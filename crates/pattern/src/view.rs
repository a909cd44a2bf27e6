//! Looking up: what the way of a request sees of a set.

use std::borrow::Cow;
use std::sync::Arc;

use arc_swap::Guard;

use crate::changed::NewValue;
use crate::error::PatternError;
use crate::index;
use crate::kind::{Flags, Kind};
use crate::layers::Layers;
use crate::live::LiveSet;
use crate::segment::Segment;
use crate::value::Value;

/// One way of looking up in a [`LiveSet`].
#[derive(Clone, Debug)]
pub struct View {
    pub(crate) set: Arc<LiveSet>,
    pub(crate) slot: usize,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
}

/// What a look-up found; it stays valid whatever changes meanwhile.
pub struct Hit {
    layers: Guard<Arc<Layers>>,
    layer: usize,
    entry: u32,
    slot: usize,
    value: Option<NewValue>,
}

impl View {
    /// Whether `value` matches. The way of a request: one or two atomic loads, no lock.
    pub fn contains(&self, value: Value<'_>) -> bool {
        match index::without_patterns(self.kind, value) {
            Some(answer) => answer,
            None => !self.set.is_empty() && self.set.published.load().contains(self.slot, value),
        }
    }

    /// The entry that `value` finds: the first, or for addresses and case-sensitive prefixes
    /// the longest. Nothing for `found` and `bool`, which look at no entry.
    pub fn find(&self, value: Value<'_>) -> Option<Hit> {
        if self.set.is_empty() {
            return None;
        }
        let layers = self.set.published.load();
        let (layer, entry) = layers.find(self.slot, value)?;
        let value = layers.0.get(layer).and_then(|s| s.new_value(entry));
        Some(Hit { layers, layer, entry, slot: self.slot, value })
    }

    /// The set looked up.
    pub fn set(&self) -> &Arc<LiveSet> {
        &self.set
    }

    /// How patterns are compared.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The flags patterns are read with.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// Reads a pattern as an addition to this view would, keeping nothing.
    pub fn check(&self, pattern: &[u8]) -> Result<(), PatternError> {
        index::check(self.kind, self.flags, pattern)
    }

    /// The word of `get acl` for the index: HAProxy keeps exact strings, prefixes and
    /// addresses in a `tree`, all else in a `list`.
    pub fn index_name(&self) -> &'static str {
        match self.kind {
            Kind::Ip => "tree",
            Kind::Str | Kind::Beg if !self.flags.ignore_case => "tree",
            _ => "list",
        }
    }
}

impl Hit {
    fn segment(&self) -> Option<&Arc<Segment>> {
        self.layers.0.get(self.layer)
    }

    /// The pattern as written.
    pub fn pattern(&self) -> Cow<'_, [u8]> {
        self.segment().map_or(Cow::Borrowed(&[]), |s| s.pattern(self.entry))
    }

    /// The value, in a map.
    pub fn value(&self) -> Option<&[u8]> {
        match &self.value {
            Some(value) => Some(value),
            None => self.segment()?.entries.value(self.entry),
        }
    }

    /// The reference that [`Which::Ref`] takes.
    pub fn id(&self) -> u64 {
        self.segment().map_or(0, |s| s.ids.id(self.entry))
    }

    /// The compiled expression of a `reg` view.
    pub fn regex(&self) -> Option<&crate::Regex> {
        self.segment()?.indexes.get(self.slot)?.regex(self.entry)
    }
}
