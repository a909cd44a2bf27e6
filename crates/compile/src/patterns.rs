//! The sets of patterns that a configuration makes, and the catalog in which the runtime API finds them.
//!
//! HAProxy numbers sets in the order of the configuration, whereas rules are parsed proxy by proxy here. So
//! each mention of a set is noted with its line, and the numbers are given when all rules are known. A line
//! of a `defaults` section is parsed for each proxy that inherits it, but its patterns exist once.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use lang::Fault;
use pattern::{Catalog, Face, Listed, LiveSet, LoadError, Shape, View, bare_name};
use syntax::Tree;

use crate::draft::LineRef;
use crate::notes::os_text;

/// Numbers that HAProxy gives to the patterns of its own client, before it reads the formats of logs.
const OF_ITS_CLIENT: u32 = 4;

/// Sets and where they are mentioned.
#[derive(Default)]
pub(crate) struct Patterns {
    /// Those of the configuration that runs.
    before: Catalog,
    /// Its inline sets, by their keys.
    inlines: HashMap<Box<str>, Arc<LiveSet>>,
    /// The lines that may have inline patterns, in words that say which line it is.
    texts: HashMap<LineRef, String>,
    files: HashMap<String, Arc<LiveSet>>,
    mentions: Vec<Mention>,
    /// Inline sets of lines of `defaults`.
    inherited: HashMap<(LineRef, u32), Arc<LiveSet>>,
    /// Mentions in lines of `defaults`.
    known: HashSet<(LineRef, u32)>,
    /// What `-u` took.
    numbers: HashSet<u32>,
    /// Sets that actions ask for.
    asked: Vec<(String, Arc<OnceLock<Arc<LiveSet>>>)>,
}

/// One place that uses a set.
struct Mention {
    set: Arc<LiveSet>,
    at: LineRef,
    /// See [`Spot::nth`].
    nth: u32,
    /// See [`Spot::chosen`].
    chosen: bool,
    usage: Usage,
    number: Option<u32>,
    /// See [`Listed::key`].
    key: Box<str>,
}

enum Usage {
    /// Patterns of an ACL line, with its criterion.
    Inline(String),
    /// A file, as it is referred to.
    File { reference: String, acl: bool, map: bool },
}

/// A place in the configuration where patterns are mentioned.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub at: LineRef,
    /// Which mention of its line it is, whoever made the set: 1 for the first.
    pub nth: u32,
    /// The line stands in `defaults`, and is read once for each section that inherits it.
    pub inherited: bool,
    /// It is the name of a backend or a server, which HAProxy reads when all lines are read.
    pub chosen: bool,
}

/// What the catalog has to know of a line.
pub(crate) struct Where<'g> {
    pub file: &'g str,
    pub line: u32,
    pub keyword: &'g str,
}

impl Patterns {
    /// No sets yet; those of `before` whose files did not change stay as they are, with what was changed of
    /// them at run time.
    pub fn after(before: Option<&Catalog>, tree: &Tree) -> Patterns {
        let before = before.cloned().unwrap_or_default();
        let listed = before.iter().filter(|(_, listed)| !listed.key.is_empty());
        let inlines = listed.map(|(_, listed)| (listed.key.clone(), listed.set.clone())).collect();
        Patterns { before, inlines, texts: texts(tree), ..Patterns::default() }
    }

    /// What an inline set is known by in another configuration: its line, which mention of the line it is,
    /// and what it is compared with. Nothing changes of a set that is known as long as nothing of its line
    /// does.
    fn key(&self, criterion: &str, spot: Spot) -> Box<str> {
        let text = self.texts.get(&spot.at);
        text.map(|text| format!("{text}|{}|{criterion}", spot.nth).into()).unwrap_or_default()
    }

    /// The set of a file in the configuration that runs, if it may stay.
    fn kept(&self, name: &str, shape: Shape, absent: bool) -> Option<Arc<LiveSet>> {
        let set = &self.before.named(name)?.set;
        let same = set.shape() == shape && if absent { !set.has_file() } else { set.is_up_to_date() };
        same.then(|| set.clone())
    }

    /// A file as one use sees it, loaded at its first mention.
    pub fn file(&mut self, reference: &str, face: Face, map: bool, spot: Spot) -> Result<Arc<View>, Fault> {
        let shape = if map { Shape::Map } else { Shape::Acl };
        let name = bare_name(reference);
        let set = match self.files.get(name) {
            Some(set) if set.shape() != shape => {
                let (one, other) = if map { ("one", "two") } else { ("two", "one") };
                return Err(Fault::new(format!(
                    "The file \"{name}\" is already used as {one} column file and cannot be used by as {other} column file."
                )));
            }
            Some(set) => set.clone(),
            None => {
                let optional = reference.starts_with("opt@");
                let absent = name.starts_with("virt@") || optional && !base::outside::exists(name);
                let set = match self.kept(name, shape, absent) {
                    Some(kept) => kept,
                    None if absent => LiveSet::new(name, shape),
                    None => LiveSet::load(name, Path::new(name), shape, face.kind, face.flags)
                        .map_err(|e| fault(name, &e))?,
                };
                self.files.insert(name.to_owned(), set.clone());
                set
            }
        };
        let wrong = |e| fault(name, &LoadError::Pattern(e));
        let view = set.view(face.kind, face.flags).map_err(wrong)?;
        set.face(face).map_err(wrong)?;
        if !spot.inherited || self.known.insert((spot.at, spot.nth)) {
            let usage = Usage::File { reference: reference.to_owned(), acl: face.acl, map };
            let key = Box::default();
            let Spot { at, nth, chosen, .. } = spot;
            self.mentions.push(Mention { set, at, nth, chosen, usage, number: None, key });
        }
        Ok(Arc::new(view))
    }

    /// The set of an ACL's own patterns.
    pub fn inline(
        &mut self,
        criterion: &str,
        number: Option<u32>,
        spot: Spot,
    ) -> Result<Arc<LiveSet>, Fault> {
        let key = spot.inherited.then_some((spot.at, spot.nth));
        if let Some(set) = key.and_then(|key| self.inherited.get(&key)) {
            return Ok(set.clone());
        }
        if number.is_some_and(|n| !self.numbers.insert(n)) {
            return Err(Fault::new("the id is already used"));
        }
        let name = self.key(criterion, spot);
        let kept = if name.is_empty() { None } else { self.inlines.remove(&name) };
        let set = kept.unwrap_or_else(|| LiveSet::new("", Shape::Acl));
        if let Some(key) = key {
            self.inherited.insert(key, set.clone());
        }
        let usage = Usage::Inline(criterion.to_owned());
        self.mentions.push(Mention {
            set: set.clone(),
            at: spot.at,
            nth: spot.nth,
            chosen: spot.chosen,
            usage,
            number,
            key: name,
        });
        Ok(set)
    }

    /// How many mentions there are so far.
    pub fn mentions(&self) -> usize {
        self.mentions.len()
    }

    /// A set that was mentioned is mentioned again: what counts is the first line, and lines are not read in
    /// their order.
    pub fn mention_earlier(&mut self, mention: usize, spot: Spot) {
        if let Some(mention) = self.mentions.get_mut(mention) {
            (mention.at, mention.nth) = (mention.at, mention.nth).min((spot.at, spot.nth));
        }
    }

    /// The set that an action changes, once all are known.
    pub fn asked(&mut self, reference: &str) -> Arc<OnceLock<Arc<LiveSet>>> {
        let cell = Arc::default();
        self.asked.push((bare_name(reference).to_owned(), Arc::clone(&cell)));
        cell
    }

    /// All sets by number, in the order of their first mention.
    pub fn catalog<'g>(self, place: impl Fn(LineRef) -> Option<Where<'g>>) -> Catalog {
        for (name, cell) in &self.asked {
            if let Some(set) = self.files.get(name) {
                let _ = cell.set(set.clone());
            }
        }
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut found: HashMap<*const LiveSet, usize> = HashMap::new();
        let mut mentions: Vec<_> = self.mentions.iter().map(|m| (m, place(m.at))).collect();
        // What is read late is read proxy by proxy.
        mentions.sort_by_key(|(m, place)| {
            let turn = m.turn(place);
            ((turn > 0).then_some(m.at.section), turn, m.at, m.nth)
        });
        for (mention, place) in mentions {
            let at = *found.entry(Arc::as_ptr(&mention.set)).or_insert_with(|| {
                groups.push(Group { first: mention, late: mention.turn(&place) > 0, places: Vec::new() });
                groups.len() - 1
            });
            if let Some(group) = groups.get_mut(at) {
                group.places.push((mention, place));
            }
        }
        let (mut catalog, mut least) = (Catalog::new(), 0);
        let (wanted, rest): (Vec<_>, Vec<_>) = groups.iter().partition(|g| g.first.number.is_some());
        let early = rest.iter().take_while(|g| !g.late).count();
        // Neither numbers nor names can be taken: both were looked at when the sets were made.
        for group in wanted {
            let _ = catalog.insert(group.listed(), group.first.number, least);
        }
        for (n, group) in rest.into_iter().enumerate() {
            if n == early {
                least += OF_ITS_CLIENT;
            }
            if let Ok(id) = catalog.insert(group.listed(), None, least) {
                least = id.saturating_add(1);
            }
        }
        catalog
    }
}

/// The mentions of one set.
struct Group<'m> {
    late: bool,
    first: &'m Mention,
    places: Vec<(&'m Mention, Option<Where<'m>>)>,
}

impl Mention {
    /// Zero, or the turn in which HAProxy reads the line when all others are read.
    fn turn(&self, place: &Option<Where<'_>>) -> u8 {
        match place.as_ref().map(|p| p.keyword) {
            Some("log-format" | "log-format-sd" | "error-log-format" | "unique-id-format") => 2,
            Some("balance") => 3,
            _ => u8::from(self.chosen),
        }
    }
}

impl Group<'_> {
    fn listed(&self) -> Listed {
        let (mut about, mut in_acls, mut in_maps) = (String::new(), false, false);
        for (mention, place) in &self.places {
            let (file, line) = place.as_ref().map_or(("", 0), |p| (p.file, p.line));
            match &mention.usage {
                Usage::Inline(criterion) => {
                    in_acls = true;
                    about = format!("acl '{criterion}' file '{file}' line {line}.");
                }
                Usage::File { reference, acl, map } => {
                    if about.is_empty() {
                        about = format!("pattern loaded from file '{reference}' used");
                    } else {
                        about.pop();
                        about.push(',');
                    }
                    let word = if *map { "map" } else { "acl" };
                    about.push_str(&format!(" by {word} at file '{file}' line {line}."));
                    in_acls |= *acl;
                    in_maps |= *map;
                }
            }
        }
        let key = self.first.key.clone();
        Listed { set: self.first.set.clone(), about: about.into(), key, in_acls, in_maps }
    }
}

/// The lines that may have patterns of their own: `acl`, and conditions in braces. Each is told by its
/// section and its words; of several that are alike in a section the first, the second and so on.
fn texts(tree: &Tree) -> HashMap<LineRef, String> {
    let (mut out, mut alike) = (HashMap::new(), HashMap::new());
    for (section, number) in tree.sections.iter().zip(0u32..) {
        let head = format!("{} {}", section.word(), section.name());
        for (line, at) in section.lines.iter().zip(0u32..) {
            let has = |brace: &str| line.words().iter().any(|word| word.text() == brace);
            if line.keyword() != "acl" && !has("{") {
                continue;
            }
            let words: Vec<&str> = line.words().iter().map(|word| word.text()).collect();
            let text = format!("{head}|{}", words.join(" "));
            let count: &mut u32 = alike.entry(text.clone()).or_default();
            *count += 1;
            out.insert(LineRef { section: number, line: at }, format!("{text}|{count}"));
        }
    }
    out
}

fn fault(name: &str, error: &LoadError) -> Fault {
    match error {
        LoadError::Io(e) => Fault::new(format!("failed to open pattern file <{name}>")).help(os_text(e)),
        LoadError::Pattern(e) if e.line > 0 => Fault::new(format!("{e} at line {} of file '{name}'", e.line)),
        LoadError::Pattern(e) => Fault::new(format!("{e} in file '{name}'")),
    }
}
