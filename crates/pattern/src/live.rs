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

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use arc_swap::ArcSwap;

use crate::error::{LoadError, PatternError};
use crate::heard::Told;
use crate::index::Reading;
use crate::kind::{Flags, Kind};
use crate::layers::Layers;
use crate::listing::Listing;
use crate::merge;
use crate::usage::{Face, Output};
use crate::view::View;
use crate::writer::Writer;

/// Whether entries have values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Patterns only.
    Acl,
    /// A value with each pattern.
    Map,
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
    pub(crate) name: Box<str>,
    pub(crate) shape: Shape,
    pub(crate) me: Weak<LiveSet>,
    pub(crate) path: OnceLock<Box<Path>>,
    /// What its file was like when it was read; anything for a set without one that was filled.
    pub(crate) stamp: OnceLock<u64>,
    pub(crate) published: ArcSwap<Layers>,
    /// Segments of the published state: an empty set answers without looking at it.
    pub(crate) segments: AtomicUsize,
    pub(crate) writer: Mutex<Writer>,
    /// Held while one looks whether an entry is there and adds it if not.
    pub(crate) putting: Mutex<()>,
    /// A merge was asked for and hasn't begun.
    pub(crate) asked: AtomicBool,
}

/// References look like the addresses that HAProxy shows; to tools they are opaque.
const FIRST_ID: u64 = 0x1000;

impl LiveSet {
    /// An empty set. `name` is that of its file without prefix, or of its virtual file with
    /// it; empty for the inline patterns of an ACL.
    pub fn new(name: impl Into<Box<str>>, shape: Shape) -> Arc<LiveSet> {
        Arc::new_cyclic(|me| LiveSet {
            name: name.into(),
            shape,
            me: me.clone(),
            path: OnceLock::new(),
            stamp: OnceLock::new(),
            published: ArcSwap::default(),
            segments: AtomicUsize::new(0),
            writer: Mutex::new(Writer { next_id: FIRST_ID, ..Writer::default() }),
            putting: Mutex::new(()),
            asked: AtomicBool::new(false),
        })
    }

    /// The set of a file, read for `kind` (more views may follow).
    pub fn load(
        name: impl Into<Box<str>>,
        path: &Path,
        shape: Shape,
        kind: Kind,
        flags: Flags,
    ) -> Result<Arc<LiveSet>, LoadError> {
        let set = LiveSet::new(name, shape);
        set.view(kind, flags)?;
        let _ = set.path.set(path.into());
        // Maps never ask a resolver.
        let stamp = crate::load::load(&set, path, kind, shape == Shape::Acl && !flags.no_names)?;
        let _ = set.stamp.set(stamp);
        Ok(set)
    }

    /// Whether the patterns of a configuration were entered ([`LiveSet::fill`]), or those of a file. All may
    /// have been deleted since.
    pub fn is_filled(&self) -> bool {
        self.stamp.get().is_some()
    }

    /// Whether it was read from a file.
    pub fn has_file(&self) -> bool {
        self.path.get().is_some()
    }

    /// Whether its file is still what it was when it was read. The set may have been changed since.
    pub fn is_up_to_date(&self) -> bool {
        let known = self.path.get().zip(self.stamp.get());
        known.is_some_and(|(path, stamp)| crate::load::stamp(path).is_ok_and(|now| now == *stamp))
    }

    /// Notes how the configuration uses the set, so that run-time changes are checked by it and `get map`
    /// tells of it.
    ///
    /// # Errors
    /// A value of the file that can't be read so, with its line (0 if there is no file).
    pub fn face(&self, face: Face) -> Result<(), PatternError> {
        let layers = self.published.load();
        let wrong = |(_, v): &(u32, &[u8])| !face.output.reads(v);
        let mut values = layers.0.iter().flat_map(|s| s.entries.distinct_values());
        if face.output != Output::Text
            && let Some((place, value)) = values.find(wrong)
        {
            let text = format!("unable to parse '{}'", String::from_utf8_lossy(value));
            let line = self.path.get().map_or(0, |path| crate::load::line_of(path, self.shape, place));
            return Err(PatternError { line, ..PatternError::new(value, text) });
        }
        let mut writer = self.writer();
        if !writer.faces.contains(&face) {
            // Nearly every set is used in one way.
            writer.faces.reserve_exact(1);
            writer.faces.push(face);
        }
        Ok(())
    }

    /// How the configuration uses the set.
    pub fn faces(&self) -> Vec<Face> {
        self.writer().faces.clone()
    }

    /// The same as HAProxy counts and asks them: the kinds that look for a string within another share their
    /// patterns there, and the one that is named first speaks for all.
    pub fn stores(&self) -> Vec<Face> {
        let mut all: Vec<Face> = Vec::new();
        let within = |face: &Face| match face.kind {
            Kind::Dir | Kind::Dom | Kind::End => Face { kind: Kind::Sub, ..*face },
            _ => *face,
        };
        for face in self.faces() {
            if !all.iter().any(|known| within(known) == within(&face)) {
                all.push(face);
            }
        }
        all
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
        writer.views.reserve_exact(1);
        writer.views.push((kind, flags));
        // What is being merged lacks the new view.
        writer.merging = None;
        Ok(writer.views.len() - 1)
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
        Listing::of(layers)
    }

    /// Raises `flag` at every change from now on: whoever made an index of their own of the entries learns
    /// that it is out of date.
    pub fn watch(&self, flag: Arc<AtomicBool>) {
        let mut writer = self.writer();
        if !writer.watched.iter().any(|w| Arc::ptr_eq(w, &flag)) {
            writer.watched.reserve_exact(1);
            writer.watched.push(flag);
        }
    }

    /// Tells of each change from now on; gives the number by which that ends.
    pub fn hear(&self, told: Told) -> u64 {
        self.writer().heard.begin(told)
    }

    /// Tells that one no more.
    pub fn unhear(&self, number: u64) {
        self.writer().heard.end(number);
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn publish(&self, mut layers: Layers) {
        layers.0.shrink_to_fit();
        let segments = layers.0.len();
        let layers = Arc::new(layers);
        let old = self.published.swap(layers.clone());
        self.segments.store(segments, Ordering::Release);
        merge::let_go(&old, &layers);
    }

    pub(crate) fn update(&self, writer: &mut Writer, at: Option<u32>, change: impl FnOnce(&mut Layers)) {
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
