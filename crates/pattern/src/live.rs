//! Sets that change while traffic looks them up: the ACL and map files and the inline
//! patterns of a configuration, as the runtime API sees them (management manual, `show map`
//! and the commands around it).
//!
//! Readers take the published state by one atomic load and never wait. Writers go through a
//! lock of their own, build a new state that shares nearly everything with the old one, and
//! publish it by a pointer swap. A state is a list of segments: additions make small ones,
//! neighbours of like size are merged as they come, and [`LiveSet::maintenance`] merges the
//! rest while both readers and writers go on. Deletions and new values are noted in place
//! beside a segment, so they cost the same in a set of ten and of ten million entries.
//!
//! One set may be looked up in several ways (`-m str -f hosts` here, `map_beg(hosts)`
//! there): each way is a [`View`] with its own index over the same entries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use arc_swap::{ArcSwap, Guard};

use crate::changed::NewValue;
use crate::entries::Entries;
use crate::error::{ChangeError, LoadError, PatternError};
use crate::index::{self, Reading};
use crate::kind::{Flags, Kind};
use crate::layers::Layers;
use crate::merge::{self, Event, Plan};
use crate::segment::{Ids, Segment};
use crate::value::Value;

/// Whether entries have values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Patterns only.
    Acl,
    /// A value with each pattern.
    Map,
}

/// Which entries a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// All whose pattern is written so.
    Key(&'a [u8]),
    /// The one with this reference (the first column of `show map`).
    Ref(u64),
}

/// The numbers that `show map` reports of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version that is matched against.
    pub current: u32,
    /// The last version prepared.
    pub next: u32,
    /// Entries of all versions.
    pub entries: usize,
}

/// A set of patterns that can be changed at run time.
#[derive(Debug)]
pub struct LiveSet {
    name: String,
    shape: Shape,
    me: Weak<LiveSet>,
    path: OnceLock<PathBuf>,
    published: ArcSwap<Layers>,
    /// Segments of the published state: an empty set answers without looking at it.
    segments: AtomicUsize,
    writer: Mutex<Writer>,
    /// A merge was asked for and hasn't begun.
    asked: AtomicBool,
}

#[derive(Debug, Default)]
struct Writer {
    current: u32,
    next: u32,
    views: Vec<(Kind, Flags)>,
    prepared: BTreeMap<u32, Layers>,
    next_id: u64,
    merging: Option<Merging>,
    /// Raised at every change: see [`LiveSet::watch`].
    watched: Vec<Arc<AtomicBool>>,
}

/// A merge that goes on beside the writers.
#[derive(Debug, Default)]
struct Merging {
    segments: Vec<Arc<Segment>>,
    events: Vec<Event>,
}

/// One way of looking up in a [`LiveSet`].
#[derive(Clone, Debug)]
pub struct View {
    set: Arc<LiveSet>,
    slot: usize,
    kind: Kind,
    flags: Flags,
}

/// What a look-up found; it stays valid whatever changes meanwhile.
pub struct Hit {
    layers: Guard<Arc<Layers>>,
    layer: usize,
    entry: u32,
    slot: usize,
    value: Option<NewValue>,
}

/// An entry as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its reference, which [`Which::Ref`] takes.
    pub id: u64,
    /// The pattern as written.
    pub pattern: Cow<'a, [u8]>,
    /// Its value, in a map.
    pub value: Option<Cow<'a, [u8]>>,
}

/// A walk over the entries of one version; it may pause as long as its reader likes. Entries added meanwhile are left
/// out, deleted ones too.
#[derive(Clone, Debug)]
pub struct Listing {
    layers: Arc<Layers>,
    layer: usize,
    place: u32,
}

/// References look like the addresses that HAProxy shows; to tools they are opaque.
const FIRST_ID: u64 = 0x1000;

impl LiveSet {
    /// An empty set. `name` is that of its file without prefix, or of its virtual file with
    /// it; empty for the inline patterns of an ACL.
    pub fn new(name: impl Into<String>, shape: Shape) -> Arc<LiveSet> {
        Arc::new_cyclic(|me| LiveSet {
            name: name.into(),
            shape,
            me: me.clone(),
            path: OnceLock::new(),
            published: ArcSwap::default(),
            segments: AtomicUsize::new(0),
            writer: Mutex::new(Writer { next_id: FIRST_ID, ..Writer::default() }),
            asked: AtomicBool::new(false),
        })
    }

    /// The set of a file, read for `kind` (more views may follow).
    pub fn load(
        name: impl Into<String>,
        path: &Path,
        shape: Shape,
        kind: Kind,
        flags: Flags,
    ) -> Result<Arc<LiveSet>, LoadError> {
        let set = LiveSet::new(name, shape);
        set.view(kind, flags)?;
        let _ = set.path.set(path.to_owned());
        // Maps never ask a resolver.
        crate::load::load(&set, path, kind, shape == Shape::Acl && !flags.no_names)?;
        Ok(set)
    }

    /// The first value of the file that `ok` doesn't like, with its line; 0 if there is no file.
    pub fn bad_value(&self, ok: impl Fn(&[u8]) -> bool) -> Option<(u32, Vec<u8>)> {
        let layers = self.published.load();
        let mut wrong = layers.0.iter().flat_map(|s| s.entries.distinct_values()).filter(|(_, v)| !ok(v));
        let (place, value) = wrong.next()?;
        let line = self.path.get().map_or(0, |path| crate::load::line_of(path, self.shape, place));
        Some((line, value.to_vec()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a map.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The view for `kind` and `flags`, made if there is none yet. Its entries are read
    /// again by the new kind; `PatternError::line` is then the line of the entry at fault, or its
    /// number if there is no file.
    pub fn view(self: &Arc<LiveSet>, kind: Kind, flags: Flags) -> Result<View, PatternError> {
        let names = self.shape == Shape::Acl && !flags.no_names;
        let flags = Flags { no_names: false, ..flags };
        let mut writer = self.writer();
        let known = writer.views.iter().position(|v| *v == (kind, flags));
        let slot = match known {
            Some(slot) => slot,
            None => self.open_view(&mut writer, kind, flags, names)?,
        };
        Ok(View { set: self.clone(), slot, kind, flags })
    }

    fn open_view(
        &self,
        writer: &mut Writer,
        kind: Kind,
        flags: Flags,
        names: bool,
    ) -> Result<usize, PatternError> {
        let reading = Reading { names, ..Reading::default() };
        let more = |layers: &Layers| -> Result<Layers, PatternError> {
            let grown = layers.0.iter().map(|segment| {
                let segment = segment.with_view(kind, flags, reading).map_err(|(n, mut e)| {
                    e.line = match self.path.get() {
                        Some(path) => crate::load::line_of(path, self.shape, segment.entries.place(n)),
                        None => n.saturating_add(1),
                    };
                    e
                })?;
                Ok(Arc::new(segment))
            });
            Ok(Layers(grown.collect::<Result<_, PatternError>>()?))
        };
        let published = more(&self.published.load())?;
        let prepared = writer.prepared.iter().map(|(v, l)| Ok((*v, more(l)?)));
        writer.prepared = prepared.collect::<Result<_, PatternError>>()?;
        self.publish(published);
        writer.views.push((kind, flags));
        // What is being merged lacks the new view.
        writer.merging = None;
        Ok(writer.views.len() - 1)
    }

    /// Adds an entry to the current version, or to a prepared one.
    pub fn add(&self, version: Option<u32>, pattern: &[u8], value: Option<&[u8]>) -> Result<(), ChangeError> {
        let mut entries = Entries::default();
        entries.push(pattern, value).ok_or(ChangeError::Full)?;
        self.add_entries(version, entries, false).map_err(|e| e.1)
    }

    /// Adds the patterns that stand in a configuration line, which may be host names unless `flags` forbid
    /// them; an error carries the number of the pattern at fault.
    pub fn fill<'p>(
        &self,
        patterns: impl IntoIterator<Item = &'p [u8]>,
        flags: Flags,
    ) -> Result<(), (u32, ChangeError)> {
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
        if entries.has_values() != (self.shape == Shape::Map) {
            return Err((0, ChangeError::Value));
        }
        let mut writer = self.writer();
        let at = writer.resolve(version).map_err(|e| (0, e))?;
        let reading = Reading { names, singly: count < 64, ..Reading::default() };
        let segment = Segment::build(entries, &writer.views, Ids::from(writer.next_id), reading)
            .map_err(|(n, e)| (n, e.into()))?;
        writer.next_id += u64::from(count);
        let views = writer.views.clone();
        self.update(&mut writer, at, |layers| merge::push(layers, segment, &views));
        Ok(())
    }

    /// Deletes entries of the current version; says how many.
    pub fn del(&self, which: Which<'_>) -> Result<usize, ChangeError> {
        self.alter(which, None)
    }

    /// Gives entries of the current version another value; says how many.
    pub fn set(&self, which: Which<'_>, value: &[u8]) -> Result<usize, ChangeError> {
        if self.shape != Shape::Map {
            return Err(ChangeError::Value);
        }
        self.alter(which, Some(Arc::new(value.into())))
    }

    /// Changes happen in place: nothing is published.
    fn alter(&self, which: Which<'_>, value: Option<NewValue>) -> Result<usize, ChangeError> {
        let mut writer = self.writer();
        let layers = self.published.load_full();
        writer.raise();
        let mut count = 0;
        for segment in &layers.0 {
            let entries = match which {
                Which::Key(key) => segment.written(key),
                Which::Ref(id) => segment.with_id(id).into_iter().collect(),
            };
            count += entries.len();
            for n in entries {
                writer.note(segment, n, value.as_ref());
                match &value {
                    Some(value) => segment.changed.set(n, value.clone()),
                    None => {
                        segment.dead.kill(n);
                    }
                }
            }
        }
        self.ask_for_merge(&layers);
        if count == 0 { Err(ChangeError::NotFound) } else { Ok(count) }
    }

    /// Takes all entries out of the current version, or of a prepared one.
    pub fn clear(&self, version: Option<u32>) -> Result<(), ChangeError> {
        let mut writer = self.writer();
        let at = writer.resolve(version)?;
        self.update(&mut writer, at, |layers| layers.0.clear());
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
        writer.prepared.retain(|v, _| {
            v.wrapping_sub(current) != 0 && v.wrapping_sub(current) <= next.wrapping_sub(current)
        });
        Ok(())
    }

    /// Whether the current version has no entries. Cheap.
    pub fn is_empty(&self) -> bool {
        self.segments.load(Ordering::Acquire) == 0
    }

    /// The numbers that `show map` reports.
    pub fn versions(&self) -> Versions {
        let writer = self.writer();
        let prepared: usize = writer.prepared.values().map(Layers::len).sum();
        let entries = self.published.load().len() + prepared;
        Versions { current: writer.current, next: writer.next, entries }
    }

    /// The entries of the current version, or of another; nothing if there is no such one.
    pub fn entries(&self, version: Option<u32>) -> Listing {
        let writer = self.writer();
        let layers = match version {
            Some(v) if v != writer.current => Arc::new(writer.prepared.get(&v).cloned().unwrap_or_default()),
            _ => self.published.load_full(),
        };
        Listing { layers, layer: 0, place: 0 }
    }

    /// Merges what run-time changes left scattered. The thread of [`crate::merge_in_background`] calls it when there is
    /// something to do; readers and writers go on. Says whether there was work.
    pub fn maintenance(&self) -> bool {
        self.asked.store(false, Ordering::Release);
        let mut writer = self.writer();
        let layers = self.published.load_full();
        let Some(range) = merge::worthwhile(&layers).filter(|_| writer.merging.is_none()) else {
            return false;
        };
        let segments = layers.0.get(range).unwrap_or_default().to_vec();
        let count = segments.iter().map(|s| u64::from(s.len())).sum::<u64>();
        let fresh = writer.next_id;
        writer.next_id += count;
        writer.merging = Some(Merging { segments: segments.clone(), events: Vec::new() });
        let views = writer.views.clone();
        drop(writer);
        let one = merge::merged(&segments, Plan { views: &views, hasty: false, fresh });
        let mut writer = self.writer();
        let Some(merging) = writer.merging.take() else { return true };
        if let Ok(one) = one {
            merging.events.iter().for_each(|e| e.replay(&one));
            self.replace(&segments, one);
        }
        true
    }

    /// Puts the merged segment where those stand that it was made of, if they still do.
    fn replace(&self, segments: &[Arc<Segment>], one: Segment) {
        let mut layers = Layers::clone(&self.published.load());
        let Some(first) = segments.first() else { return };
        let Some(at) = layers.0.iter().position(|s| Arc::ptr_eq(s, first)) else { return };
        let there = layers.0.get(at..at + segments.len()).unwrap_or_default();
        if there.len() == segments.len() && there.iter().zip(segments).all(|(a, b)| Arc::ptr_eq(a, b)) {
            let one = (one.live_count() > 0).then(|| Arc::new(one));
            layers.0.splice(at..at + segments.len(), one);
            self.publish(layers);
        }
    }

    /// Raises `flag` at every change from now on: whoever made an index of their own of the entries learns that it
    /// is out of date.
    pub fn watch(&self, flag: Arc<AtomicBool>) {
        let mut writer = self.writer();
        if !writer.watched.iter().any(|w| Arc::ptr_eq(w, &flag)) {
            writer.watched.push(flag);
        }
    }

    fn ask_for_merge(&self, layers: &Layers) {
        if merge::worthwhile(layers).is_some() && !self.asked.swap(true, Ordering::AcqRel) {
            merge::ask(&self.me);
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, layers: Layers) {
        let segments = layers.0.len();
        self.published.store(Arc::new(layers));
        self.segments.store(segments, Ordering::Release);
    }

    fn update(&self, writer: &mut Writer, at: Option<u32>, change: impl FnOnce(&mut Layers)) {
        writer.raise();
        match at {
            Some(version) => change(writer.prepared.entry(version).or_default()),
            None => {
                let mut layers = Layers::clone(&self.published.load());
                change(&mut layers);
                self.ask_for_merge(&layers);
                self.publish(layers);
            }
        }
    }
}

impl Writer {
    fn raise(&self) {
        self.watched.iter().for_each(|w| w.store(true, Ordering::Relaxed));
    }

    /// Keeps in mind what has to be done again to a segment that is being merged.
    fn note(&mut self, segment: &Arc<Segment>, n: u32, value: Option<&NewValue>) {
        let Some(merging) = &mut self.merging else { return };
        if merging.segments.iter().any(|s| Arc::ptr_eq(s, segment)) {
            let pattern = segment.pattern(n).into_owned().into();
            merging.events.push(Event { id: segment.ids.id(n), pattern, value: value.cloned() });
        }
    }

    /// The prepared version meant, or nothing for the current one.
    fn resolve(&self, version: Option<u32>) -> Result<Option<u32>, ChangeError> {
        match version {
            None => Ok(None),
            Some(v) if v == self.current => Ok(None),
            Some(v) if v.wrapping_sub(self.current) <= self.next.wrapping_sub(self.current) => Ok(Some(v)),
            Some(_) => Err(ChangeError::Version),
        }
    }
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

impl Listing {
    /// The next entry.
    pub fn advance(&mut self) -> Option<Entry<'_>> {
        loop {
            let segment = self.layers.0.get(self.layer)?;
            if self.place < segment.len() {
                let n = segment.entries.at(self.place);
                self.place += 1;
                if segment.dead.spares(n) {
                    return self.entry(n);
                }
                continue;
            }
            self.layer += 1;
            self.place = 0;
        }
    }

    fn entry(&self, n: u32) -> Option<Entry<'_>> {
        let segment = self.layers.0.get(self.layer)?;
        let value = match segment.new_value(n) {
            Some(new) => Some(Cow::Owned(new.to_vec())),
            None => segment.entries.value(n).map(Cow::Borrowed),
        };
        Some(Entry { id: segment.ids.id(n), pattern: segment.pattern(n), value })
    }
}
