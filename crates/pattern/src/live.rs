//! Sets that change while traffic looks them up: the ACL and map files and the inline
//! patterns of a configuration, as the runtime API sees them (management manual, `show map`
//! and the commands around it).
//!
//! Readers take the published state by one atomic load and never wait. Writers go through a
//! lock of their own, build a new state that shares nearly everything with the old one, and
//! publish it by a pointer swap. A state is a list of segments: additions make small ones,
//! neighbours of like size are merged as they come, and [`LiveSet::maintenance`] merges the
//! rest while both readers and writers go on. Deletions and new values are small tables
//! beside a segment.
//!
//! One set may be looked up in several ways (`-m str -f hosts` here, `map_beg(hosts)`
//! there): each way is a [`View`] with its own index over the same entries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};

use crate::entries::Entries;
use crate::error::{ChangeError, LoadError, PatternError};
use crate::index;
use crate::kind::{Flags, Kind};
use crate::layers::{Layer, Layers};
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
    published: ArcSwap<Layers>,
    writer: Mutex<Writer>,
}

#[derive(Debug, Default)]
struct Writer {
    current: u32,
    next: u32,
    views: Vec<(Kind, Flags)>,
    prepared: BTreeMap<u32, Layers>,
    next_id: u64,
    /// Raised at every change: see [`LiveSet::watch`].
    watched: Vec<Arc<AtomicBool>>,
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

/// A walk over the entries of one version as they were when it began; it may pause as long
/// as its reader likes.
#[derive(Clone, Debug)]
pub struct Listing {
    layers: Arc<Layers>,
    layer: usize,
    entry: u32,
}

impl LiveSet {
    /// An empty set. `name` is that of its file without prefix, or of its virtual file with
    /// it; empty for the inline patterns of an ACL.
    pub fn new(name: impl Into<String>, shape: Shape) -> Arc<LiveSet> {
        Arc::new(LiveSet {
            name: name.into(),
            shape,
            published: ArcSwap::default(),
            writer: Mutex::new(Writer { next_id: 1, ..Writer::default() }),
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
        crate::load::load(&set, path)?;
        Ok(set)
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
    /// again by the new kind; `PatternError::line` is then the number of the entry at fault.
    pub fn view(self: &Arc<LiveSet>, kind: Kind, flags: Flags) -> Result<View, PatternError> {
        let mut writer = self.writer();
        let known = writer.views.iter().position(|v| *v == (kind, flags));
        let slot = match known {
            Some(slot) => slot,
            None => self.open_view(&mut writer, kind, flags)?,
        };
        Ok(View { set: self.clone(), slot, kind, flags })
    }

    fn open_view(&self, writer: &mut Writer, kind: Kind, flags: Flags) -> Result<usize, PatternError> {
        let more = |layers: &Layers| -> Result<Layers, PatternError> {
            let grown = layers.0.iter().map(|layer| {
                let segment = layer.segment.with_view(kind, flags).map_err(|(n, mut e)| {
                    e.line = n.saturating_add(1);
                    e
                })?;
                Ok(Layer { segment: Arc::new(segment), ..layer.clone() })
            });
            Ok(Layers(grown.collect::<Result<_, PatternError>>()?))
        };
        let published = more(&self.published.load())?;
        let prepared = writer.prepared.iter().map(|(v, l)| Ok((*v, more(l)?)));
        writer.prepared = prepared.collect::<Result<_, PatternError>>()?;
        self.published.store(Arc::new(published));
        writer.views.push((kind, flags));
        Ok(writer.views.len() - 1)
    }

    /// Adds an entry to the current version, or to a prepared one.
    pub fn add(&self, version: Option<u32>, pattern: &[u8], value: Option<&[u8]>) -> Result<(), ChangeError> {
        let mut entries = Entries::default();
        entries.push(pattern, value).ok_or(ChangeError::Full)?;
        self.add_entries(version, entries).map_err(|e| e.1)
    }

    /// Adds many entries at once; an error carries the number of the entry at fault, and
    /// then none was added.
    pub(crate) fn add_entries(
        &self,
        version: Option<u32>,
        mut entries: Entries,
    ) -> Result<(), (u32, ChangeError)> {
        entries.seal();
        let count = entries.len() as u64;
        if count > 0 && entries.value(0).is_some() != (self.shape == Shape::Map) {
            return Err((0, ChangeError::Value));
        }
        let mut writer = self.writer();
        let at = writer.resolve(version).map_err(|e| (0, e))?;
        let segment = Segment::build(Arc::new(entries), &writer.views, Ids::from(writer.next_id))
            .map_err(|(n, e)| (n, e.into()))?;
        writer.next_id += count;
        self.update(&mut writer, at, |layers| {
            layers.0.push(Layer::new(segment));
        });
        Ok(())
    }

    /// Deletes entries of the current version; says how many.
    pub fn del(&self, which: Which<'_>) -> Result<usize, ChangeError> {
        self.alter(which, |layer, entries| layer.kill(entries))
    }

    /// Gives entries of the current version another value; says how many.
    pub fn set(&self, which: Which<'_>, value: &[u8]) -> Result<usize, ChangeError> {
        if self.shape != Shape::Map {
            return Err(ChangeError::Value);
        }
        let value: Arc<[u8]> = value.into();
        self.alter(which, |layer, entries| layer.change(entries, &value))
    }

    fn alter(&self, which: Which<'_>, change: impl Fn(&mut Layer, &[u32])) -> Result<usize, ChangeError> {
        let mut writer = self.writer();
        let mut count = 0;
        self.update(&mut writer, None, |layers| {
            for layer in &mut layers.0 {
                let entries = match which {
                    Which::Key(key) => layer.written(key),
                    Which::Ref(id) => layer.with_id(id).into_iter().collect(),
                };
                count += entries.len();
                change(layer, &entries);
            }
        });
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
        self.published.store(Arc::new(layers));
        writer.current = version;
        let (current, next) = (writer.current, writer.next);
        writer.prepared.retain(|v, _| {
            v.wrapping_sub(current) != 0 && v.wrapping_sub(current) <= next.wrapping_sub(current)
        });
        Ok(())
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
        Listing { layers, layer: 0, entry: 0 }
    }

    /// Merges what run-time changes left scattered. Call it now and then from a thread that
    /// may work for a while; readers and writers go on. Says whether there was work.
    pub fn maintenance(&self) -> bool {
        false
    }

    /// Raises `flag` at every change from now on: whoever made an index of their own of the entries learns that it
    /// is out of date.
    pub fn watch(&self, flag: Arc<AtomicBool>) {
        let mut writer = self.writer();
        if !writer.watched.iter().any(|w| Arc::ptr_eq(w, &flag)) {
            writer.watched.push(flag);
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, writer: &mut Writer, at: Option<u32>, change: impl FnOnce(&mut Layers)) {
        writer.raise();
        match at {
            Some(version) => change(writer.prepared.entry(version).or_default()),
            None => {
                let mut layers = Layers::clone(&self.published.load());
                change(&mut layers);
                self.published.store(Arc::new(layers));
            }
        }
    }
}

impl Writer {
    fn raise(&self) {
        self.watched.iter().for_each(|w| w.store(true, Ordering::Relaxed));
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
    /// Whether `value` matches. The way of a request: one atomic load, no lock.
    pub fn contains(&self, value: Value<'_>) -> bool {
        match index::without_patterns(self.kind, value) {
            Some(answer) => answer,
            None => self.set.published.load().contains(self.slot, value),
        }
    }

    /// The entry that `value` finds: the first, or for addresses and case-sensitive prefixes
    /// the longest. Nothing for `found` and `bool`, which look at no entry.
    pub fn find(&self, value: Value<'_>) -> Option<Hit> {
        let layers = self.set.published.load();
        let (layer, entry) = layers.find(self.slot, value)?;
        Some(Hit { layers, layer, entry, slot: self.slot })
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
    fn layer(&self) -> Option<&Layer> {
        self.layers.0.get(self.layer)
    }

    /// The pattern as written.
    pub fn pattern(&self) -> Cow<'_, [u8]> {
        self.layer().map_or(Cow::Borrowed(&[]), |l| l.pattern(self.entry))
    }

    /// The value, in a map.
    pub fn value(&self) -> Option<&[u8]> {
        self.layer()?.value(self.entry)
    }

    /// The reference that [`Which::Ref`] takes.
    pub fn id(&self) -> u64 {
        self.layer().map_or(0, |l| l.segment.ids.id(self.entry))
    }

    /// The compiled expression of a `reg` view.
    pub fn regex(&self) -> Option<&crate::Regex> {
        self.layer()?.segment.indexes.get(self.slot)?.regex(self.entry)
    }
}

impl Listing {
    /// The next entry.
    pub fn advance(&mut self) -> Option<Entry<'_>> {
        loop {
            let layer = self.layers.0.get(self.layer)?;
            if self.entry < layer.segment.len() {
                let entry = self.entry;
                self.entry += 1;
                if layer.dead.contains(&entry) {
                    continue;
                }
                return self.entry(entry);
            }
            self.layer += 1;
            self.entry = 0;
        }
    }

    fn entry(&self, entry: u32) -> Option<Entry<'_>> {
        let layer = self.layers.0.get(self.layer)?;
        Some(Entry {
            id: layer.segment.ids.id(entry),
            pattern: layer.pattern(entry),
            value: layer.value(entry).map(Cow::Borrowed),
        })
    }
}
