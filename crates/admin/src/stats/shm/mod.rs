//! `shm-stats-file`: figures that processes count together, and that live on while one takes the place of
//! another.
//!
//! Objects are known by their kind and guid. A worker counts in its own memory as always; several times a
//! second what it has counted since is added to the file, and what others have added becomes the copy of the
//! counters that no worker writes ([`model::Sharded::others`]). So requests pay nothing, and each figure that
//! is shown is the sum. The file is read and written under a lock, not mapped: one that was cut, or a full
//! disk, is an error and not a signal.
//!
//! Each process has one of 64 places in it, and a bit in each record that it uses. Who leaves softly takes
//! its bits away, and a record without any begins anew; whoever dies otherwise leaves them, so that the
//! figures go on.

mod figures;
mod file;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use engine::{Shared, lines, worker};
use model::server::Server;
use program::Program;

use super::clear::clear_row;
use super::row::{Filter, Kind, Row, each};

use figures::Figures;
use file::{FIGURES, HEADER, Image, Place, RECORD, SLOTS};

/// Objects, unless `shm-stats-file-max-objects` says otherwise.
const MAX_OBJECTS: usize = 2000;
/// The most bytes that are read of a file.
const MOST: u64 = 1 << 30;
/// How often figures are told, at most and at least.
const OFTEN: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(1);
/// A process that was not seen for so long is none.
const DEAD: u64 = 60_000;

/// The file of this process.
static BOOK: OnceLock<Mutex<Book>> = OnceLock::new();

/// What came of looking for the file that a program names.
#[derive(Default)]
pub struct Opened {
    /// What is wrong with it.
    pub notes: Vec<String>,
    book: Option<Book>,
}

/// Why a process can't start with the file that its program names.
pub enum Refused {
    /// The file can't be opened.
    File(String),
    /// There is no room for all objects.
    Full(String),
}

/// Opens the file that a program names; `check`: only whether that could be done.
///
/// # Errors
/// Why the process can't start.
pub fn open(program: &Program, check: bool) -> Result<Opened, Refused> {
    let Some(path) = program.global.figures.shared.as_deref() else { return Ok(Opened::default()) };
    fits(program, path).map_err(Refused::Full)?;
    let name = path.display();
    let cannot =
        |e: io::Error| Refused::File(format!("config: cannot open shm stats file '{name}': {}", plain(&e)));
    if check && !path.exists() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        std::fs::metadata(folder.unwrap_or(Path::new("."))).map_err(cannot)?;
    } else {
        let mut how = File::options();
        how.read(true).write(true).create(!check).truncate(false).mode(0o600);
        let mut book = Book::new(how.open(path).map_err(cannot)?, path, most(program));
        let locked = book.lock(true);
        let image = book.load().map_err(cannot)?;
        if locked {
            let _ = book.file.unlock();
        }
        if image.is_none() {
            let notes = vec![format!("incompatible map shm stats file version '{name}'")];
            return Ok(Opened { notes, book: None });
        }
        return Ok(Opened { notes: Vec::new(), book: (!check).then_some(book) });
    }
    Ok(Opened::default())
}

fn most(program: &Program) -> usize {
    program.global.figures.most_shared.unwrap_or(MAX_OBJECTS)
}

/// What the system says of an error, without its number.
fn plain(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Whether there is room for all objects of a program.
fn fits(program: &Program, path: &Path) -> Result<(), String> {
    let (most, mut count) = (most(program), 0);
    let mut room = |guid: &Option<Box<str>>, what: String| {
        count += usize::from(guid.is_some());
        let full = || format!("{what} : {}", full(path, most));
        if count > most { Err(full()) } else { Ok(()) }
    };
    for proxy in program.proxies.beginning().iter().filter(|proxy| !proxy.disabled) {
        let name = &proxy.name;
        if proxy.is_frontend {
            let what = format!("out of memory while setting up shared counters for frontend {name}");
            room(&proxy.state.guid, what)?;
        }
        for bind in proxy.binds.iter().filter(|_| proxy.is_frontend && proxy.options.socket_stats) {
            let what = format!("out of memory while setting up shared listener counters for frontend {name}");
            room(&bind.state.guid, what)?;
        }
        for server in proxy.servers.beginning().iter().filter(|_| proxy.is_backend) {
            let of = format!("{name}/{} server", server.name);
            room(&server.state.guid, format!("memory error while setting up shared counters for {of}"))?;
        }
        if proxy.is_backend {
            let what = format!("out of memory while setting up shared counters for backend {name}");
            room(&proxy.state.guid, what)?;
        }
    }
    Ok(())
}

fn full(path: &Path, most: usize) -> String {
    let path = path.display();
    format!(
        "Cannot add additional object to '{path}' file, maximum number already reached ({most}). Adjust \"shm-stats-file-max-objects\" directive if needed."
    )
}

impl Opened {
    /// The objects of a program that does not run yet begin with what the file says of them.
    ///
    /// # Errors
    /// Why the process can't start.
    pub fn begin(self, shared: &Shared) -> Result<(), String> {
        let Some(mut book) = self.book else { return Ok(()) };
        book.sync(shared, Then::Stay)?;
        let _ = BOOK.set(Mutex::new(book));
        Ok(())
    }
}

fn book() -> Option<MutexGuard<'static, Book>> {
    BOOK.get().map(|book| book.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Tells what was counted, and takes in what others did, before figures are shown.
pub fn refresh(shared: &Shared) {
    if let Some(mut book) = book() {
        book.tell(shared, Then::Stay);
    }
}

/// Does so as long as the process lives.
pub async fn keep() {
    while BOOK.get().is_some() {
        let objects = book().map_or(0, |book| book.known.len());
        rt::sleep(OFTEN.max(SELDOM.min(Duration::from_micros(500) * u32::try_from(objects).unwrap_or(0))))
            .await;
        if let (Some(shared), Some(mut book)) = (worker::with_worker(|w| w.shared.clone()), book()) {
            book.tell(&shared, Then::Pass);
        }
    }
}

/// The process ends. `softly`: as it should, so its objects are released.
pub fn leave(shared: &Shared, softly: bool) {
    if let Some(mut book) = book() {
        book.tell(shared, if softly { Then::Leave } else { Then::Stay });
    }
}

/// Whether the figures of a server are shared.
pub fn holds(server: &Server) -> bool {
    let holds = |book: MutexGuard<'_, Book>| {
        server.guid.as_ref().is_some_and(|guid| book.known.contains_key(&(kind(Kind::Server), guid.clone())))
    };
    book().is_some_and(holds)
}

/// The figures of a server, or of all objects, were set to zero.
pub fn cleared(server: Option<&Server>) {
    if let Some(mut book) = book() {
        let only = server.and_then(|server| server.guid.clone());
        book.clear(only.as_deref());
    }
}

fn kind(kind: Kind) -> u8 {
    kind as u32 as u8
}

/// What a process does with its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It keeps it, and comes again soon: it does not wait for others.
    Pass,
    /// It keeps it.
    Stay,
    /// It gives it back.
    Leave,
}

/// An object that is in the file.
struct Known {
    /// Its record.
    index: usize,
    /// Where it is in memory: another one of its name has counted nothing yet.
    state: usize,
    /// How often its figures had been cleared.
    clearings: u64,
    /// What of each figure was told, and what others had counted.
    told: [u64; FIGURES],
    others: [u64; FIGURES],
}

/// The file, and what this process knows of it.
struct Book {
    file: File,
    path: PathBuf,
    most: usize,
    slot: usize,
    token: u64,
    figures: Figures,
    names: String,
    known: HashMap<(u8, Box<str>), Known>,
    /// Something was wrong, which was said.
    said: bool,
    left: bool,
}

impl Book {
    fn new(file: File, path: &Path, most: usize) -> Book {
        Book {
            file,
            path: path.to_owned(),
            most,
            slot: SLOTS,
            token: rt::random() | 1,
            figures: Figures::new(),
            names: figures::names(),
            known: HashMap::new(),
            said: false,
            left: false,
        }
    }

    /// What the file says; a new one for one that is empty, `None` for one of another kind.
    fn load(&mut self) -> io::Result<Option<Image>> {
        let mut bytes = Vec::new();
        self.file.rewind()?;
        (&self.file).take(MOST).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(Some(Image::new(&self.names)));
        }
        Ok(Image::read(bytes, &self.names))
    }

    /// Takes hold of the file, if nobody else does. `wait`: for a moment, where no requests wait meanwhile or
    /// somebody asked for figures.
    fn lock(&self, wait: bool) -> bool {
        let tries = if wait { 20 } else { 1 };
        (0..tries).any(|at| {
            if at > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.file.try_lock().is_ok()
        })
    }

    /// As [`Book::sync`]; what is wrong is said once.
    fn tell(&mut self, shared: &Shared, then: Then) {
        if let Err(why) = self.sync(shared, then)
            && !std::mem::replace(&mut self.said, true)
        {
            worker::with_worker(|w| lines::console(w, "WARNING", &why));
        }
    }

    /// Tells what was counted, and takes in what others did.
    fn sync(&mut self, shared: &Shared, then: Then) -> Result<(), String> {
        if self.left || !self.lock(then != Then::Pass) {
            return Ok(());
        }
        self.left = then == Then::Leave;
        let done = self.exchange(shared, then);
        let _ = self.file.unlock();
        let name = self.path.display();
        done.unwrap_or_else(|e| Err(format!("shm stats file '{name}' can't be used: {}.", plain(&e))))
    }

    fn exchange(&mut self, shared: &Shared, then: Then) -> io::Result<Result<(), String>> {
        let Some(mut image) = self.load()? else { return Err(io::ErrorKind::InvalidData.into()) };
        if !self.take_place(&mut image) {
            let text = format!("shm stats file '{}' is used by {SLOTS} processes.", self.path.display());
            return Ok(Err(text));
        }
        let (mut index, mut changed, mut lacks) = (None, Vec::new(), false);
        each(shared, &Filter::default(), |mut row| {
            let Some(guid) = row.guid() else { return };
            match self.find(&mut image, &row, guid, &mut index) {
                Some(at) if self.count(&mut image, &mut row, guid) => changed.push(at),
                Some(_) => {}
                None => lacks = true,
            }
        });
        if then == Then::Leave {
            changed = (0..image.count()).collect();
            changed.iter().for_each(|at| self.release(&mut image, *at));
            image.set_place(self.slot, Place::default());
        }
        changed.sort_unstable();
        for at in changed {
            let from = HEADER + at * RECORD;
            let record = image.bytes().get(from..from + RECORD).unwrap_or_default();
            self.file.write_all_at(record, from as u64)?;
        }
        self.file.write_all_at(image.header(), 0)?;
        if !lacks {
            return Ok(Ok(()));
        }
        let text = full(&self.path, self.most);
        Ok(Err(text))
    }

    /// Makes a place one's own, or says that one is still here.
    fn take_place(&mut self, image: &mut Image) -> bool {
        let now = rt::precise().as_millis();
        let dead = |slot: &usize| {
            let place = image.place(*slot);
            place.pid == 0 || place.seen > now || now - place.seen > DEAD
        };
        if self.slot == SLOTS || image.place(self.slot).token != self.token {
            let free = (0..SLOTS).find(|slot| image.place(*slot).pid == 0);
            let Some(slot) = free.or_else(|| (0..SLOTS).find(dead)) else { return false };
            self.slot = slot;
        }
        let place = Place { pid: std::process::id(), token: self.token, seen: now };
        image.set_place(self.slot, place);
        true
    }

    fn bit(&self) -> u64 {
        1 << (self.slot % SLOTS)
    }

    /// This process uses a record no more.
    fn release(&self, image: &mut Image, at: usize) {
        let users = image.record(at).map_or(0, file::Record::users);
        if let Some(mut record) = image.record_mut(at) {
            record.set_users(users & !self.bit());
        }
    }

    /// The record of an object, perhaps a new one; `None` if there is no room for it.
    fn find(
        &mut self,
        image: &mut Image,
        row: &Row<'_>,
        guid: &str,
        index: &mut Option<HashMap<(u8, Box<str>), usize>>,
    ) -> Option<usize> {
        let (key, state) = ((kind(row.kind), Box::from(guid)), address(row));
        if let Some(known) = self.known.get_mut(&key)
            && image.record(known.index).is_some_and(|record| record.object() == (key.0, guid))
        {
            if known.state != state {
                (known.state, known.told, known.others) = (state, [0; FIGURES], [0; FIGURES]);
            }
            return Some(known.index);
        }
        let all = index.get_or_insert_with(|| {
            let records = (0..image.count()).filter_map(|at| Some((image.record(at)?.object(), at)));
            records.map(|((kind, guid), at)| ((kind, guid.into()), at)).collect()
        });
        let at = match all.get(&key) {
            Some(at) => *at,
            None if image.count() >= self.most => return None,
            None => image.append(key.0, guid),
        };
        all.insert(key.clone(), at);
        if image.record(at)?.users() == 0 {
            image.record_mut(at)?.clear();
        }
        let clearings = image.record(at)?.clearings();
        let zero = [0; FIGURES];
        self.known.insert(key, Known { index: at, state, clearings, told: zero, others: zero });
        Some(at)
    }

    /// Brings the figures of an object and its record together; whether the record is another one now.
    fn count(&mut self, image: &mut Image, row: &mut Row<'_>, guid: &str) -> bool {
        let bit = self.bit();
        let Some(known) = self.known.get_mut(&(kind(row.kind), guid.into())) else { return false };
        let Some(record) = image.record(known.index) else { return false };
        if record.clearings() != known.clearings {
            // Somebody else cleared them, for all.
            clear_row(row);
            (known.told, known.others) = ([0; FIGURES], [0; FIGURES]);
            known.clearings = record.clearings();
        }
        let users = record.users();
        let mut figures = [0; FIGURES];
        for (at, figure) in figures.iter_mut().enumerate() {
            *figure = record.figure(at);
        }
        let before = (figures, record.last_session());
        let parts = known.told.iter_mut().zip(&mut known.others).zip(&mut figures);
        for ((_, column), ((told, others), all)) in self.figures.of(row.kind).zip(parts) {
            let Some(shown) = figures::shown(row, column) else { continue };
            let own = shown.wrapping_sub(*others);
            // Who has counted less than before has begun anew.
            let more = own.checked_sub(*told).unwrap_or(own);
            (*told, *all) = (own, all.wrapping_add(more));
            let now = all.saturating_sub(own);
            if now != *others {
                figures::set_others(row, column, now, *others);
                *others = now;
            }
        }
        let mut last = before.1;
        if let Some(date) = figures::last_session(row) {
            last = date.fetch_max(last, Relaxed).max(last);
        }
        if before == (figures, last) && users & bit != 0 {
            return false;
        }
        let Some(mut record) = image.record_mut(known.index) else { return false };
        figures.iter().enumerate().for_each(|(at, n)| record.set_figure(at, *n));
        record.set_last_session(last);
        record.set_users(users | bit);
        true
    }

    /// All figures, or those of one server, are zero here: they are so for all.
    fn clear(&mut self, only: Option<&str>) {
        if self.left || !self.lock(true) {
            return;
        }
        let image = self.load();
        if let Ok(Some(mut image)) = image {
            for ((of, guid), known) in &mut self.known {
                if only.is_some_and(|only| (*of, &**guid) != (kind(Kind::Server), only)) {
                    continue;
                }
                (known.told, known.others) = ([0; FIGURES], [0; FIGURES]);
                if let Some(mut record) = image.record_mut(known.index) {
                    record.clear();
                }
                known.clearings = image.record(known.index).map_or(0, file::Record::clearings);
                let from = HEADER + known.index * RECORD;
                let record = image.bytes().get(from..from + RECORD).unwrap_or_default();
                let _ = self.file.write_all_at(record, from as u64);
            }
        }
        let _ = self.file.unlock();
    }
}

/// Where the counters of an object are.
fn address(row: &Row<'_>) -> usize {
    match (row.server, row.bind) {
        (Some(server), _) => std::ptr::from_ref(&server.state.counters).addr(),
        (_, Some((_, bind))) => std::ptr::from_ref(&bind.state.counters).addr(),
        _ => std::ptr::from_ref(&*row.proxy.state).addr(),
    }
}

/// Entry for fuzzing: any bytes are a file that other processes wrote; `form`: behind a header that is right.
pub fn fuzz(data: &[u8], form: bool, shared: &Shared) {
    let path = Path::new("figures");
    let mut content = data.to_vec();
    if form {
        let mut image = Image::new(&figures::names());
        for (at, guid) in ["f", "b", "s", "x", "l-1", "other"].iter().enumerate() {
            image.append(u8::try_from(at % 4).unwrap_or(0), guid);
        }
        content = image.bytes().to_vec();
        // The bytes are changes: where, and to what.
        for change in data.chunks_exact(3) {
            let [low, high, value] = [0, 1, 2].map(|at| change.get(at).copied().unwrap_or(0));
            let at = usize::from(u16::from_le_bytes([low, high])) % content.len();
            if let Some(byte) = content.get_mut(at) {
                *byte = value;
            }
        }
    }
    let mut how = File::options();
    how.read(true).write(true).create(true).truncate(true);
    let Ok(file) = how.open(path) else { return };
    let _ = file.write_all_at(&content, 0);
    let mut book = Book::new(file, path, 8);
    for then in [Then::Stay, Then::Stay, Then::Leave] {
        let done = book.sync(shared, then);
        if form && then == Then::Stay && done.is_ok() {
            book.clear(None);
        }
    }
}
