//! Two processes' worth of objects at one file.

use super::*;
use crate::fuzzing::objects;

struct Process {
    shared: Shared,
    book: Book,
}

impl Process {
    fn new(path: &Path, most: usize) -> Process {
        let mut how = File::options();
        how.read(true).write(true).create(true).truncate(false);
        Process { shared: objects(), book: Book::new(how.open(path).unwrap(), path, most) }
    }

    fn sync(&mut self, then: Then) -> Result<(), String> {
        self.book.sync(&self.shared, then)
    }

    fn front(&self) -> std::sync::Arc<model::proxy::Proxy> {
        self.shared.program.world.find_proxy("f").unwrap()
    }

    /// Sessions of the frontend, and failed checks of the server.
    fn shown(&self) -> (u64, u64) {
        let server = self.shared.program.world.find_proxy("b").unwrap().back.servers.read()[0].clone();
        (self.front().front.counters.sum(|c| &c.sessions), server.failed_checks.load(Relaxed))
    }

    fn count(&self, sessions: u64) {
        self.front().front.counters.of(1).sessions.add(sessions);
        let server = self.shared.program.world.find_proxy("b").unwrap().back.servers.read()[0].clone();
        server.failed_checks.fetch_add(1, Relaxed);
    }
}

fn at(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("harrier-shm-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn what_one_counts_the_other_shows_until_the_last_one_leaves() {
    let path = at("two");
    let mut a = Process::new(&path, 9);
    a.sync(Then::Stay).unwrap();
    a.count(5);
    a.sync(Then::Stay).unwrap();
    let mut b = Process::new(&path, 9);
    b.sync(Then::Stay).unwrap();
    assert_eq!((b.shown(), a.book.slot, b.book.slot), ((5, 1), 0, 1));
    b.count(2);
    a.count(10);
    for p in [&mut a, &mut b] {
        p.sync(Then::Stay).unwrap();
    }
    a.sync(Then::Stay).unwrap();
    assert_eq!((a.shown(), b.shown()), ((17, 3), (17, 3)));
    // It changes nothing that they look again.
    for p in [&mut a, &mut b] {
        p.sync(Then::Stay).unwrap();
        assert_eq!(p.shown(), (17, 3));
    }
    a.sync(Then::Leave).unwrap();
    let mut c = Process::new(&path, 9);
    c.sync(Then::Stay).unwrap();
    assert_eq!((c.shown(), c.book.slot), ((17, 3), 0), "somebody still uses them");
    b.sync(Then::Leave).unwrap();
    c.sync(Then::Leave).unwrap();
    let mut d = Process::new(&path, 9);
    d.sync(Then::Stay).unwrap();
    assert_eq!(d.shown(), (0, 0));
    let _ = std::fs::remove_file(&path);
}

#[test]
fn who_clears_clears_for_all() {
    let path = at("clear");
    let (mut a, mut b) = (Process::new(&path, 9), Process::new(&path, 9));
    for p in [&mut a, &mut b] {
        p.sync(Then::Stay).unwrap();
        p.count(3);
        p.sync(Then::Stay).unwrap();
    }
    a.sync(Then::Stay).unwrap();
    assert_eq!(a.shown(), (6, 2));
    each(&a.shared, &Filter::default(), |row| clear_row(&row));
    a.book.clear(None);
    b.sync(Then::Stay).unwrap();
    a.sync(Then::Stay).unwrap();
    assert_eq!((a.shown(), b.shown()), ((0, 0), (0, 0)));
    b.count(4);
    b.sync(Then::Stay).unwrap();
    a.sync(Then::Stay).unwrap();
    assert_eq!(a.shown(), (4, 1));
    let _ = std::fs::remove_file(&path);
}

#[test]
fn who_finds_no_room_counts_for_itself() {
    let path = at("full");
    let mut a = Process::new(&path, 2);
    let why = a.sync(Then::Stay).unwrap_err();
    assert!(why.contains("maximum number already reached (2)"), "{why}");
    a.count(1);
    assert!(a.sync(Then::Stay).is_err());
    assert_eq!(a.shown(), (1, 1));
    let _ = std::fs::remove_file(&path);
}
