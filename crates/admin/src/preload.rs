//! `stats-file`: figures that objects begin with, as `dump stats-file` wrote them (management guide, 9.5).
//!
//! A file has one part for frontends and listeners and one for backends and servers, each with a heading that
//! names its columns. Objects are known by their guid. What is not known (a column, a guid, a part) is passed
//! over without a word, so that a file of another version does what it can. Rates are of the last second, and
//! times of the last change are of another process: both begin anew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use engine::Shared;
use program::Program;

use crate::stats::row::{Filter, Given, Kind, Row, each};
use crate::stats::table::COLUMNS;

/// The most that is read of a file.
const MOST: u64 = 64 << 20;

/// What a file says of the objects of a program.
#[derive(Default)]
pub struct Preload {
    /// What is wrong with it.
    pub notes: Vec<String>,
    /// By whether an object is a frontend or a listener, and its guid.
    figures: HashMap<(bool, String), Figures>,
}

/// Reads the file that a program names.
pub fn read(program: &Program) -> Preload {
    let Some(path) = program.global.figures.first.as_deref() else { return Preload::default() };
    let name = path.display();
    let wrong = |note| Preload { notes: vec![note], ..Preload::default() };
    let Some(text) = contents(path) else {
        return wrong(format!("Can't load stats-file '{name}': cannot open file."));
    };
    parse(&text, &name.to_string(), program)
}

/// Reads what stands in a file of this name.
pub fn parse(text: &str, name: &str, program: &Program) -> Preload {
    let wrong = |note| Preload { notes: vec![note], ..Preload::default() };
    let kinds = kinds(program);
    let mut figures = HashMap::new();
    let (mut notes, mut part): (Vec<String>, Option<Part<'_>>) = (Vec::new(), None);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        if line.starts_with('#') {
            part = Part::new(line);
            if part.is_none() && number > 0 {
                notes.push(format!("Ignored stats-file header line '{}' in file '{name}'.", number + 1));
            }
        }
        if part.is_none() && number == 0 {
            return wrong(format!("Invalid stats-file format in file '{name}'."));
        }
        let Some(part) = part.as_ref().filter(|_| !line.starts_with('#')) else { continue };
        if !part.take(&kinds, line, &mut figures) {
            notes.push(format!("Ignored stats-file line {} in file '{name}'.", number + 1));
        }
    }
    Preload { notes, figures }
}

impl Preload {
    /// Has the objects of a program that does not run yet begin with it.
    pub fn begin(&self, shared: &Shared) {
        if self.figures.is_empty() {
            return;
        }
        each(shared, &Filter::default(), |mut row| {
            let front = row.is_front() || row.is_listener();
            if let Some(given) = row.guid().and_then(|guid| self.figures.get(&(front, guid.to_owned()))) {
                begin(&mut row, given);
            }
        });
    }
}

fn contents(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Figures of one object, by column.
type Figures = Vec<(String, u64)>;

/// What the guids of a program stand for.
fn kinds(program: &Program) -> HashMap<String, Kind> {
    let mut all = HashMap::new();
    for proxy in program.proxies.beginning() {
        let mut know = |guid: &Option<Box<str>>, kind| {
            all.extend(guid.iter().map(|g| (g.to_string(), kind)));
        };
        know(&proxy.state.guid, if proxy.is_frontend { Kind::Frontend } else { Kind::Backend });
        proxy.binds.iter().for_each(|bind| know(&bind.state.guid, Kind::Listener));
        proxy.servers.beginning().iter().for_each(|server| know(&server.state.guid, Kind::Server));
    }
    all
}

/// A part of a file: whether it is about frontends, and its columns behind the guid.
struct Part<'t> {
    front: bool,
    known: bool,
    columns: Vec<&'t str>,
}

impl<'t> Part<'t> {
    /// The part that a heading opens.
    fn new(line: &'t str) -> Option<Part<'t>> {
        let (kind, columns) = line.strip_prefix('#')?.split_once(' ')?;
        let columns = columns.strip_prefix("guid,")?.strip_suffix(',')?;
        let known = matches!(kind, "fe" | "be");
        Some(Part { front: kind == "fe", known, columns: columns.split(',').collect() })
    }

    /// Takes a line in; `false` if it is about an object that does not belong here.
    fn take(
        &self,
        kinds: &HashMap<String, Kind>,
        line: &str,
        figures: &mut HashMap<(bool, String), Figures>,
    ) -> bool {
        let mut values = line.split(',');
        let guid = values.next().unwrap_or_default();
        match (kinds.get(guid).filter(|_| self.known), self.front) {
            (None, _) => return true,
            (Some(Kind::Server), true) | (Some(Kind::Listener), false) => return false,
            _ => {}
        }
        let read =
            self.columns.iter().zip(values).filter_map(|(c, v)| Some(((*c).to_owned(), v.parse().ok()?)));
        figures.insert((self.front, guid.to_owned()), read.collect());
        true
    }
}

/// Columns that are no counter of their own: rates and ages, and what is told apart from others.
const APART: &[&str] = &[
    "rate",
    "req_rate",
    "conn_rate",
    "lastchg",
    "lastsess",
    "h1req",
    "h1sess",
    "h2sess",
    "chkfail",
    "chkdown",
];

/// Has the figures of an object begin where a file says.
fn begin(row: &mut Row<'_>, figures: &[(String, u64)]) {
    let value = |name: &str| figures.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    for (name, value) in figures.iter().filter(|(name, _)| !APART.contains(&&**name)) {
        give(row, name, *value);
    }
    // Requests are told by their versions, in HAProxy's files of frontends only so.
    let versions = ["h1req", "h2req", "h3req", "req_other"].into_iter().filter_map(value);
    let requests = versions.fold(0u64, u64::saturating_add);
    let (front, back) = (&row.proxy.state.front, &row.proxy.state.back);
    match (row.kind, row.server) {
        (Kind::Frontend, _) => {
            let counters = front.counters.of(0);
            value("h1sess").into_iter().for_each(|n| counters.h1.earlier.set(n));
            value("h2sess").into_iter().for_each(|n| counters.h2.earlier.set(n));
            if requests > 0 {
                give(row, "req_tot", requests);
            }
        }
        (Kind::Backend, _) => value("chkdown").into_iter().for_each(|n| back.went_down.store(n, Relaxed)),
        (_, Some(server)) => {
            let state = &server.state;
            value("chkfail").into_iter().for_each(|n| state.failed_checks.store(n, Relaxed));
            value("chkdown").into_iter().for_each(|n| state.went_down.store(n, Relaxed));
        }
        _ => {}
    }
}

/// What is read of a column names the counter that it is.
fn give(row: &mut Row<'_>, name: &str, value: u64) {
    if let Some(column) = COLUMNS.iter().find(|c| c.name == name) {
        row.given = Some(Given::First(value));
        let _ = (column.read)(row);
        row.given = None;
    }
}
