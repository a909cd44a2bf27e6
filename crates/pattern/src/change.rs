//! Changes at run time, and the entries that a configuration brings.
//!
//! Additions build a segment and publish a new list of segments; deletions and new values are noted in place.
//! Either way a change takes the writer's lock and no reader waits.

use std::sync::{Arc, PoisonError};

use crate::changed::NewValue;
use crate::entries::Entries;
use crate::error::ChangeError;
use crate::heard::Change;
use crate::index::Reading;
use crate::kind::Flags;
use crate::layers::Layers;
use crate::live::{LiveSet, Shape};
use crate::merge;
use crate::segment::{Ids, Segment};

/// Which entries a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// Those whose pattern is written so.
    Key(&'a [u8]),
    /// The one with this reference (the first column of `show map`).
    Ref(u64),
}

impl LiveSet {
    /// Adds an entry to the current version, or to a prepared one. An entry of a map without
    /// a value gets the empty one; what an entry of an ACL is given is kept and shown.
    ///
    /// # Errors
    /// A pattern or a value that the configuration's uses of the set can't read; a version never prepared or
    /// gone.
    pub fn add(&self, version: Option<u32>, pattern: &[u8], value: Option<&[u8]>) -> Result<(), ChangeError> {
        self.add_all(version, [(pattern, value.unwrap_or_default())])
    }

    /// As [`LiveSet::add`], for many entries at once. Those before the first that is refused are kept.
    ///
    /// # Errors
    /// As [`LiveSet::add`].
    pub fn add_all<'e>(
        &self,
        version: Option<u32>,
        list: impl IntoIterator<Item = (&'e [u8], &'e [u8]), IntoIter: Clone>,
    ) -> Result<(), ChangeError> {
        let list = list.into_iter();
        let of = |count: usize| {
            let mut entries = Entries::default();
            for (pattern, value) in list.clone().take(count) {
                let worth = self.shape == Shape::Map || !value.is_empty();
                entries.push(pattern, worth.then_some(value))?;
            }
            Some(entries)
        };
        let all = of(usize::MAX).ok_or(ChangeError::Full)?;
        let Err((wrong, error)) = self.add_entries(version, all, false) else { return Ok(()) };
        if wrong > 0
            && let Some(some) = of(wrong as usize)
        {
            self.add_entries(version, some, false).map_err(|e| e.1)?;
        }
        Err(error)
    }

    /// Adds the patterns that stand in a configuration line, which may be host names unless `flags` forbid
    /// them; an error carries the number of the pattern at fault.
    pub fn fill<'p>(
        &self,
        patterns: impl IntoIterator<Item = &'p [u8]>,
        flags: Flags,
    ) -> Result<(), (u32, ChangeError)> {
        let _ = self.stamp.set(0);
        let mut entries = Entries::default();
        for pattern in patterns {
            entries.push(pattern, None).ok_or((entries.len(), ChangeError::Full))?;
        }
        self.add_entries(None, entries, !flags.no_names)
    }

    /// Adds many entries at once; an error carries the place of the entry at fault, and
    /// then none was added.
    pub(crate) fn add_entries(
        &self,
        version: Option<u32>,
        mut entries: Entries,
        names: bool,
    ) -> Result<(), (u32, ChangeError)> {
        entries.seal();
        let count = entries.len();
        if count == 0 {
            return Ok(());
        }
        if self.shape == Shape::Map && !entries.has_values() {
            return Err((0, ChangeError::Value));
        }
        let mut writer = self.writer();
        if writer.is_choosy()
            && let Some((n, value)) = entries.distinct_values().into_iter().find(|(_, v)| !writer.reads(v))
        {
            return Err((n, ChangeError::Unread(value.to_vec())));
        }
        let at = writer.resolve(version).map_err(|e| (0, e))?;
        let reading = Reading { names, singly: count < 64, ..Reading::default() };
        let segment = Segment::build(entries, &writer.views, Ids::from(writer.next_id), reading)
            .map_err(|(n, e)| (n, e.into()))?;
        writer.next_id += u64::from(count);
        let views = writer.views.clone();
        self.update(&mut writer, at, |layers| merge::push(layers, segment, &views));
        if at.is_none() {
            (0..count).for_each(|_| writer.heard.tell(Change::Add));
        }
        Ok(())
    }

    /// Deletes an entry of the current version: of several that are written alike the first, as HAProxy does.
    ///
    /// # Errors
    /// [`ChangeError::NotFound`].
    pub fn del(&self, which: Which<'_>) -> Result<(), ChangeError> {
        self.alter(None, which, None, false)
    }

    /// Deletes all entries of the current version, or of a prepared one, that are written so.
    ///
    /// # Errors
    /// No such entry, or no such version.
    pub fn del_all(&self, version: Option<u32>, key: &[u8]) -> Result<(), ChangeError> {
        self.alter(version, Which::Key(key), None, true)
    }

    /// Gives entries of the current version another value. What is written alike gets it alike.
    ///
    /// # Errors
    /// No such entry; a value that the configuration's uses of the map can't read.
    pub fn set(&self, which: Which<'_>, value: &[u8]) -> Result<(), ChangeError> {
        self.alter(None, which, Some(Arc::new(value.into())), true)
    }

    /// The same in a prepared version, if one is named.
    ///
    /// # Errors
    /// As [`LiveSet::set`]; no such version.
    pub fn set_in(&self, version: Option<u32>, key: &[u8], value: &[u8]) -> Result<(), ChangeError> {
        self.alter(version, Which::Key(key), Some(Arc::new(value.into())), true)
    }

    /// Adds an entry to the current version unless there is one that is written so; with a value, those there
    /// are get it. Several threads that put the same key at once add it once.
    ///
    /// # Errors
    /// As [`LiveSet::add`].
    pub fn put(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), ChangeError> {
        let _one_at_a_time = self.putting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match value {
            Some(value) => self.set(Which::Key(key), value),
            None if self.holds(key) => Ok(()),
            None => Err(ChangeError::NotFound),
        };
        match known {
            Err(ChangeError::NotFound) => self.add(None, key, value),
            done => done,
        }
    }

    fn holds(&self, key: &[u8]) -> bool {
        self.published.load().0.iter().any(|segment| !segment.written(key).is_empty())
    }

    /// Changes happen in place: nothing is published. Without a value entries are deleted: the first, or
    /// `all`.
    fn alter(
        &self,
        version: Option<u32>,
        which: Which<'_>,
        value: Option<NewValue>,
        all: bool,
    ) -> Result<(), ChangeError> {
        let mut writer = self.writer();
        let at = writer.resolve(version)?;
        let layers = match at {
            Some(at) => Arc::new(writer.prepared.get(&at).cloned().unwrap_or_default()),
            None => self.published.load_full(),
        };
        let mut chosen = Vec::new();
        for segment in &layers.0 {
            let mut entries = match which {
                Which::Key(key) => segment.written(key),
                Which::Ref(id) => segment.with_id(id).into_iter().collect(),
            };
            if !all {
                entries.sort_unstable_by_key(|n| segment.entries.place(*n));
                entries.truncate(1);
            }
            chosen.extend(entries.into_iter().map(|n| (segment, n)));
            if !all && !chosen.is_empty() {
                break;
            }
        }
        if chosen.is_empty() {
            return Err(ChangeError::NotFound);
        }
        if let Some(value) = &value
            && !writer.reads(value)
        {
            return Err(ChangeError::Unread(value.to_vec()));
        }
        if at.is_none() {
            writer.raise();
        }
        for (segment, n) in chosen {
            writer.note(segment, n, value.as_ref());
            match &value {
                Some(value) => segment.changed.set(n, value.clone()),
                None => {
                    segment.dead.kill(n);
                }
            }
        }
        if at.is_none() {
            self.ask_for_merge(&layers);
            writer.heard.tell(if value.is_some() { Change::Set } else { Change::Del });
        }
        Ok(())
    }

    /// Takes all entries out of the current version, or of a prepared one.
    pub fn clear(&self, version: Option<u32>) -> Result<(), ChangeError> {
        let mut writer = self.writer();
        let at = writer.resolve(version)?;
        self.update(&mut writer, at, |layers| {
            let old = std::mem::take(layers);
            merge::let_go(&old, layers);
        });
        if at.is_none() {
            writer.heard.tell(Change::Clear);
        }
        Ok(())
    }

    /// Starts a new version and says its number.
    pub fn prepare(&self) -> u32 {
        let mut writer = self.writer();
        writer.next = writer.next.wrapping_add(1);
        writer.next
    }

    /// Makes a prepared version the current one, at once for all readers; those before it
    /// are gone.
    pub fn commit(&self, version: u32) -> Result<(), ChangeError> {
        let mut writer = self.writer();
        let Some(at) = writer.resolve(Some(version))? else { return Err(ChangeError::Version) };
        let layers = writer.prepared.remove(&at).unwrap_or_default();
        writer.raise();
        self.publish(layers);
        writer.current = version;
        let (current, next) = (writer.current, writer.next);
        writer.prepared.retain(|v, layers| {
            let ahead = v.wrapping_sub(current);
            let stays = ahead != 0 && ahead <= next.wrapping_sub(current);
            if !stays {
                merge::let_go(layers, &Layers::default());
            }
            stays
        });
        writer.heard.tell(Change::Commit);
        Ok(())
    }
}
