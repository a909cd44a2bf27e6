//! Certificate lists: files, folders, and those of `ssl-f-use`, and their changes at run time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::binds::{BindSpec, Row, Show};
use super::certs::Beside;
use super::{Inner, Label, Store, Trouble};
use crate::files::Sources;
use crate::words::Words;

/// One line of a list.
#[derive(Clone, Debug, Default)]
pub struct ListLine {
    /// Number in the file, from 1.
    pub number: u32,
    /// The certificate, and what is said of its files.
    pub sources: Sources,
    /// Settings between brackets, if there are any.
    pub words: Option<Words>,
    /// The brackets as they are shown, empty without.
    pub shown: Box<str>,
    /// Names for which the certificate is shown.
    pub filters: Vec<Box<str>>,
}

/// An entry of a list.
#[derive(Clone, Debug)]
pub(super) struct ListEntry {
    pub id: u64,
    pub line: u32,
    pub cert: Box<str>,
    pub words: Option<Arc<Words>>,
    pub shown: Box<str>,
    pub filters: Vec<Box<str>>,
}

/// A change of a list at run time.
#[derive(Clone, Debug)]
pub(super) enum ListChange {
    /// A line was added under a number, with this certificate.
    Added { line: Box<ListLine>, number: u32, cert: Box<str> },
    /// An entry that was read was taken out: how it was named.
    Removed(Box<str>),
}

/// What tells the content of a list from another.
fn stamp(entries: &[ListEntry]) -> u64 {
    let mut hash = DefaultHasher::new();
    for entry in entries {
        (entry.line, &entry.cert, &entry.shown, &entry.filters).hash(&mut hash);
    }
    hash.finish()
}

/// A list.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    pub entries: Vec<ListEntry>,
    /// Number of the last line.
    pub last: u32,
    /// It stands for the files of a folder, each of which is there once.
    pub is_folder: bool,
    /// What it was like when it was read.
    pub read: u64,
    /// What was changed of it at run time since.
    pub changes: Vec<ListChange>,
}

/// Why a line was not added: the certificate, once that was found, and what is wrong.
pub type NotAdded = (Option<Box<str>>, String);

/// How lists are found by a name that was typed.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'n>(pub &'n str);

impl Lookup<'_> {
    /// The name without slashes at its end.
    pub(super) fn name(&self) -> &str {
        let bare = self.0.trim_end_matches('/');
        if bare.is_empty() { self.0 } else { bare }
    }
}

impl Store {
    /// Whether there is a list of this name.
    pub fn has_list(&self, name: &str) -> bool {
        self.lock().lists.contains_key(name)
    }

    /// Takes in a list that was read, with all its certificates. `last` is the number of its last line.
    ///
    /// # Errors
    /// What is wrong with a certificate.
    pub fn list(&self, name: &str, lines: Vec<ListLine>, last: u32) -> Result<(), String> {
        let inner = &mut *self.lock();
        let mut list = List { last, ..List::default() };
        for line in lines {
            let path = inner.full(&line.sources.certificate);
            let place = format!(
                "\n'crt-list' : '{path}' in crt-list '{name}' line {}, is already defined with incompatible parameters:",
                line.number
            );
            let found = inner.named(&line.sources, &place, Beside::Untold).map_err(|e| {
                match e.starts_with('\n') {
                    true => e,
                    false => format!("'crt-list' : {e}"),
                }
            })?;
            for (n, cert) in found.into_iter().enumerate() {
                // HAProxy numbers the further certificates of a bundle like this.
                let number = if n == 0 { line.number } else { line.number + 3 };
                list.entries.push(inner.list_entry(cert, number, &line));
            }
        }
        list.read = stamp(&list.entries);
        inner.lists.insert(name.into(), list);
        Ok(())
    }

    /// `add ssl crt-list`: an entry at the end of a list, in use at once on all `bind` lines that show the
    /// list. Tells the name of the certificate, and how many lines there are.
    ///
    /// # Errors
    /// The name of the certificate once that is known, and what is wrong.
    pub fn add_to_list(&self, list: Lookup<'_>, line: &ListLine) -> Result<(Box<str>, usize), NotAdded> {
        let inner = &mut *self.lock();
        let name = list.name();
        let early = |why: String| (None, format!("Can't edit the crt-list: {why}"));
        if !inner.lists.contains_key(name) {
            return Err(early(format!("crt-list '{name}' does not exist!")));
        }
        if let Some(words) = &line.words {
            let key = inner.trust_key(words);
            inner.read_trust(&key).map_err(|e| early(inner.told(&e, None)))?;
        }
        let cert = inner.full(&line.sources.certificate);
        match inner.certs.get(&cert) {
            None => return Err(early(format!("certificate '{cert}' does not exist!"))),
            Some(c) if c.parts.leaf.is_none() => {
                return Err(early(format!("certificate '{cert}' is empty!")));
            }
            Some(_) => {}
        }
        let in_folder = inner.lists.get(name).filter(|l| l.is_folder);
        if in_folder.is_some_and(|l| l.entries.iter().any(|e| e.cert == cert)) {
            return Err(early("file already exists in this directory!".into()));
        }
        if inner.uses(&cert) > 0 {
            let place = format!("'{cert}' is already instantiated with incompatible parameters:");
            inner.agree(&cert, &line.sources, &place).map_err(early)?;
        }
        let number = inner.lists.get(name).map_or(0, |l| l.last) + 1;
        let entry = inner.list_entry(cert.clone(), number, line);
        let rows = inner.rows_for(name, &entry).map_err(|e| (Some(cert.clone()), e))?;
        let dots = rows.len();
        for (at, row) in rows {
            if let Some(bind) = inner.binds.get_mut(at) {
                bind.rows.push(row);
                bind.publish();
            }
        }
        if let Some(list) = inner.lists.get_mut(name) {
            (list.last, _) = (number, list.entries.push(entry));
            let line = Box::new(line.clone());
            list.changes.push(ListChange::Added { line, number, cert: cert.clone() });
        }
        inner.describe(&cert, &line.sources);
        Ok((cert, dots))
    }

    /// `del ssl crt-list`: takes an entry out. `which` is a certificate, perhaps with the number of its line.
    ///
    /// # Errors
    /// What is in the way, as the runtime API says it.
    pub fn remove_from_list(&self, list: Lookup<'_>, which: &str) -> Result<String, String> {
        let inner = &mut *self.lock();
        let name = list.name();
        let refused = |why: String| format!("Can't delete the entry: {why}");
        if !inner.lists.contains_key(name) {
            return Err(refused(format!("crt-list '{name}' does not exist!")));
        }
        let (cert, line) = numbered(which)
            .ok_or_else(|| refused(format!("wrong line number after colons in '{which}'!")))?;
        if !inner.certs.contains_key(cert) {
            return Err(refused(format!("certificate '{cert}' does not exist!")));
        }
        let id = inner.one_entry(name, cert, line).map_err(refused)?;
        let defaults = inner.default_of(name, id);
        if !defaults.is_empty() {
            let places: String = defaults.iter().map(|p| format!("\t- {p}\n")).collect();
            return Err(refused(format!(
                "certificate '{cert}' cannot be deleted, it is used as default certificate by the following frontends:\n{places}"
            )));
        }
        let is_it = |row: &Row| row.from.as_ref().is_some_and(|(l, n)| **l == *name && *n == id);
        for bind in inner.binds.iter_mut().filter(|b| b.rows.iter().any(is_it)) {
            bind.rows.retain(|row| !is_it(row));
            bind.publish();
        }
        if let Some(list) = inner.lists.get_mut(name) {
            let number = list.entries.iter().find(|e| e.id == id).map(|e| e.line);
            list.entries.retain(|e| e.id != id);
            let own = |c: &ListChange| matches!(c, ListChange::Added { number: n, .. } if Some(*n) == number);
            match list.changes.iter().position(own) {
                Some(at) => drop(list.changes.remove(at)),
                None => list.changes.push(ListChange::Removed(which.into())),
            }
        }
        Ok(format!("Entry '{cert}' deleted in crtlist '{name}'!"))
    }
}

/// A certificate and the number behind its colon.
fn numbered(which: &str) -> Option<(&str, Option<u32>)> {
    match which.rsplit_once(':') {
        None => Some((which, None)),
        Some((cert, digits)) => Some((cert, Some(digits.parse().ok()?))),
    }
}

impl Inner {
    pub(super) fn list_entry(&mut self, cert: Box<str>, line: u32, from: &ListLine) -> ListEntry {
        self.numbers += 1;
        ListEntry {
            id: self.numbers,
            line,
            cert,
            words: from.words.clone().map(Arc::new),
            shown: from.shown.clone(),
            filters: from.filters.clone(),
        }
    }

    /// A list of certificates without settings: a folder.
    pub(super) fn make_list(&mut self, name: &str, certs: Vec<Box<str>>) {
        let plain = ListLine::default();
        let entries: Vec<ListEntry> = certs.into_iter().map(|c| self.list_entry(c, 0, &plain)).collect();
        let read = stamp(&entries);
        self.lists.insert(name.into(), List { entries, read, is_folder: true, ..List::default() });
    }

    /// The rows that a new entry means, by index of the `bind` line.
    fn rows_for(&mut self, list: &str, entry: &ListEntry) -> Result<Vec<(usize, Row)>, String> {
        let mut out = Vec::new();
        for at in 0..self.binds.len() {
            let Some(bind) = self.binds.get(at).filter(|b| self.shows_list(&b.spec, list)) else { continue };
            let spec = bind.spec.clone();
            let draft = self.of_entry(&spec, list, entry);
            let (row, _) = self.row(&spec, draft).map_err(|e| self.told(&e, Some(&spec.label)))?;
            out.push((at, row));
        }
        Ok(out)
    }

    /// The one entry of a list that is meant.
    fn one_entry(&self, list: &str, cert: &str, line: Option<u32>) -> Result<u64, String> {
        let all = self.lists.get(list).map(|l| l.entries.as_slice()).unwrap_or_default();
        let found: Vec<&ListEntry> = all.iter().filter(|e| *e.cert == *cert).collect();
        let numbers = || found.iter().map(|e| e.line.to_string()).collect::<Vec<_>>().join(", ");
        match (found.as_slice(), line) {
            ([], _) => Err(format!("certificate '{cert}' can't be found in crt-list '{list}'!")),
            ([only], None) => Ok(only.id),
            (_, None) => Err(format!(
                "found the certificate '{cert}' in several entries, please specify a line number preceded by colons ({})!",
                numbers()
            )),
            (several, Some(line)) => {
                several.iter().find(|e| e.line == line).map(|e| e.id).ok_or_else(|| {
                    format!(
                        "found a certificate '{cert}' but the line number is incorrect, please specify a correct line number preceded by colons ({})!",
                        numbers()
                    )
                })
            }
        }
    }

    /// The `bind` lines whose default an entry is.
    fn default_of(&self, list: &str, id: u64) -> Vec<&str> {
        let mut out = Vec::new();
        for bind in &self.binds {
            let at =
                bind.rows.iter().position(|r| r.from.as_ref().is_some_and(|(l, n)| **l == *list && *n == id));
            if at.is_some_and(|at| at == 0 && !bind.acceptor.is_strict()) {
                out.push(&*bind.spec.label.place);
            }
        }
        out
    }

    /// What the runtime API says of trouble with a `bind` line.
    pub(super) fn told(&self, trouble: &Trouble, label: Option<&Label>) -> String {
        let line = label.map_or_else(String::new, |l| format!("Proxy '{}'", l.frontend));
        let bind = label.map_or("", |l| &l.bind);
        match trouble {
            Trouble::File(text) => format!("{text}."),
            Trouble::Authority(word, path, _) => format!("'{word}' : unable to load {path}"),
            Trouble::Nobody => format!("{line}: verify is enabled but no CA file specified for {bind}."),
            Trouble::Unusable(why) if crate::suites::is_whole(why) => format!("{line}: {why} for {bind}."),
            Trouble::Unusable(why) => format!("{line}: unable to use TLS for {bind}: {why}."),
        }
    }
}

impl Inner {
    /// Whether a `bind` line shows a list of this name, or a folder.
    fn shows_list(&self, spec: &BindSpec, name: &str) -> bool {
        spec.shows.iter().any(|show| match show {
            Show::List(list) => **list == *name,
            Show::Certificate(sources, _) => *self.full(&sources.certificate) == *name,
        })
    }
}
