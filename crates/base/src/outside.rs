//! What a configuration needs of the world outside: files, folders, names of hosts.
//!
//! A process that runs in a chroot under another user can't see most of it. So whoever reads a configuration
//! asks here, and for each thread it may be said where the answers come from: from the system, from the
//! system while they are written down ([`record`]), or from what somebody else wrote down ([`replay`]). What
//! is asked for and was not written down is not there.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::{self, Cursor, Read, Write};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

/// ENOENT.
const NOT_THERE: i32 = 2;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Something else.
    Other,
}

/// What may be asked; the byte that stands for it where answers travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
enum Asked {
    Content,
    Kind,
    Names,
    Addresses,
}

/// No more answers follow.
const END: u8 = u8::MAX;

/// The most bytes of a name, and of an answer.
const LONGEST: (u64, u64) = (1 << 20, 1 << 36);

type Key = (u8, String);
type Answer = Result<Vec<u8>, i32>;

/// Answers that somebody else wrote down: those that are known, and where more come from.
#[derive(Default)]
pub struct Record {
    known: HashMap<Key, Answer>,
    more: Option<Box<dyn Read>>,
    broken: Option<io::Error>,
}

impl Record {
    /// What [`record`] writes at the other end. It is waited for whatever is asked and did not come yet.
    pub fn arriving(from: impl Read + 'static) -> Record {
        Record { more: Some(Box::new(from)), ..Record::default() }
    }

    /// Writes down what a file holds.
    pub fn put(&mut self, path: &str, content: Vec<u8>) {
        self.known.insert((Asked::Content as u8, path.to_owned()), Ok(content));
    }

    /// One more answer; `false`: that was the last.
    fn receive(&mut self) -> bool {
        let Some(from) = &mut self.more else { return false };
        match receive(from) {
            Ok(Some((key, answer))) => {
                self.known.insert(key, answer);
                return true;
            }
            Ok(None) => {}
            Err(e) => self.broken = Some(e),
        }
        self.more = None;
        false
    }

    fn answer(&mut self, key: &Key) -> Answer {
        while !self.known.contains_key(key) && self.receive() {}
        self.known.get(key).cloned().unwrap_or(Err(NOT_THERE))
    }
}

/// Where answers are written down, each once.
struct Notes {
    to: Box<dyn Write>,
    told: HashSet<Key>,
    failed: io::Result<()>,
}

enum Source {
    System,
    Recording(Notes),
    Recorded(Record),
}

thread_local! {
    static SOURCE: RefCell<Source> = const { RefCell::new(Source::System) };
}

/// From now on what this thread asks for is written down, each answer at once, so that whoever has
/// [`Record::arriving`] of it can begin.
pub fn record(to: impl Write + 'static) {
    SOURCE.set(Source::Recording(Notes { to: Box::new(to), told: HashSet::new(), failed: Ok(()) }));
}

/// Nothing more is written down, which is said there.
///
/// # Errors
/// Why not all could be written.
pub fn recorded() -> io::Result<()> {
    let Source::Recording(mut notes) = SOURCE.replace(Source::System) else { return Ok(()) };
    notes.failed?;
    notes.to.write_all(&[END])
}

/// From now on this thread is answered from what was written down.
pub fn replay(record: Record) {
    SOURCE.set(Source::Recorded(record));
}

/// From now on this thread is answered by the system. What else was written down is received to its end.
///
/// # Errors
/// Why it did not come whole.
pub fn live() -> io::Result<()> {
    let Source::Recorded(mut record) = SOURCE.replace(Source::System) else { return Ok(()) };
    while record.receive() {}
    record.broken.map_or(Ok(()), Err)
}

/// Whether this thread is answered from what was written down.
pub fn is_replayed() -> bool {
    SOURCE.with_borrow(|source| matches!(source, Source::Recorded(_)))
}

fn ask(asked: Asked, key: &str, live: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    SOURCE.with_borrow_mut(|source| match source {
        Source::System => live(),
        Source::Recording(notes) => {
            let answer = live();
            let key = (asked as u8, key.to_owned());
            if notes.failed.is_ok() && !notes.told.contains(&key) {
                let told = answer.as_deref().map_err(|e| e.raw_os_error().unwrap_or(NOT_THERE));
                notes.failed = send(&mut notes.to, &key, told);
                notes.told.insert(key);
            }
            answer
        }
        Source::Recorded(record) => {
            record.answer(&(asked as u8, key.to_owned())).map_err(io::Error::from_raw_os_error)
        }
    })
}

/// An answer as bytes: what was asked, whether it failed, the lengths of name and answer, both of them.
fn send(to: &mut dyn Write, (asked, name): &Key, answer: Result<&[u8], i32>) -> io::Result<()> {
    let number;
    let (mark, content) = match answer {
        Ok(content) => (0, content),
        Err(e) => {
            number = e.to_le_bytes();
            (1, &number[..])
        }
    };
    let lengths = [name.len() as u64, content.len() as u64].map(u64::to_le_bytes);
    to.write_all(&[&[*asked, mark][..], lengths.as_flattened(), name.as_bytes()].concat())?;
    to.write_all(content)
}

/// The next of them; `None`: there are no more.
fn receive(from: &mut dyn Read) -> io::Result<Option<(Key, Answer)>> {
    let mut asked = [0];
    from.read_exact(&mut asked)?;
    if asked == [END] {
        return Ok(None);
    }
    let (mut mark, mut lengths) = ([0], [[0; 8]; 2]);
    from.read_exact(&mut mark)?;
    from.read_exact(lengths.as_flattened_mut())?;
    let [name, content] = lengths.map(u64::from_le_bytes);
    if name > LONGEST.0 || content > LONGEST.1 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let name = String::from_utf8(exactly(from, name)?).map_err(|_| io::ErrorKind::InvalidData)?;
    let content = exactly(from, content)?;
    let answer = match (mark, content.as_slice().try_into()) {
        ([0], _) => Ok(content),
        (_, Ok(number)) => Err(i32::from_le_bytes(number)),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok(Some(((asked[0], name), answer)))
}

fn exactly(from: &mut dyn Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The content of a file.
///
/// # Errors
/// What the system says.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    ask(Asked::Content, &name(path), || std::fs::read(path))
}

/// The content of a file of text.
///
/// # Errors
/// What the system says, or that it is no text.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// A file to read piece by piece. Only what is written down is ever in memory as a whole.
///
/// # Errors
/// What the system says.
pub fn open(path: impl AsRef<Path>) -> io::Result<Box<dyn Read>> {
    let path = path.as_ref();
    let live = SOURCE.with_borrow(|source| matches!(source, Source::System));
    match live {
        true => Ok(Box::new(std::fs::File::open(path)?)),
        false => Ok(Box::new(Cursor::new(read(path)?))),
    }
}

/// What a path leads to.
///
/// # Errors
/// What the system says.
pub fn kind(path: impl AsRef<Path>) -> io::Result<Kind> {
    let path = path.as_ref();
    let found = ask(Asked::Kind, &name(path), || {
        let what = std::fs::metadata(path)?;
        Ok(vec![if what.is_file() { 0 } else { 1 + u8::from(!what.is_dir()) }])
    });
    Ok(match found?.as_slice() {
        [0] => Kind::File,
        [1] => Kind::Folder,
        _ => Kind::Other,
    })
}

/// Whether a path leads to a folder.
pub fn is_folder(path: impl AsRef<Path>) -> bool {
    kind(path).is_ok_and(|kind| kind == Kind::Folder)
}

/// Whether a path leads to a file.
pub fn is_file(path: impl AsRef<Path>) -> bool {
    kind(path).is_ok_and(|kind| kind == Kind::File)
}

/// Whether a path leads anywhere.
pub fn exists(path: impl AsRef<Path>) -> bool {
    kind(path).is_ok()
}

/// The names in a folder that are text, as the system orders them.
///
/// # Errors
/// What the system says.
pub fn names(path: impl AsRef<Path>) -> io::Result<Vec<String>> {
    let path = path.as_ref();
    let joined = ask(Asked::Names, &name(path), || {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names.join("\0").into_bytes())
    });
    let joined = String::from_utf8(joined?).unwrap_or_default();
    Ok(joined.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// The addresses of a host, as the system's resolver orders them.
pub fn addresses(host: &str) -> Vec<IpAddr> {
    let found = ask(Asked::Addresses, host, || {
        let found = (host, 0u16).to_socket_addrs()?;
        let texts: Vec<String> = found.map(|a| a.ip().to_string()).collect();
        Ok(texts.join(" ").into_bytes())
    });
    let text = String::from_utf8(found.unwrap_or_default()).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|ip| ip.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_down_is_answered_elsewhere() {
        let folder = std::env::temp_dir().join(format!("harrier-outside-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        let file = folder.join("file");
        std::fs::write(&file, b"text").unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        record(writer);
        assert_eq!(read(&file).unwrap(), b"text");
        assert_eq!(read(&file).unwrap(), b"text");
        assert!(is_folder(folder.join("sub")) && read(folder.join("none")).is_err());
        let there = names(&folder).unwrap();
        assert_eq!(addresses("127.0.0.1"), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        recorded().unwrap();
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(read(&file).is_err());
        // Asked in another order, and not for everything.
        replay(Record::arriving(Cursor::new(bytes.clone())));
        assert!(is_replayed());
        assert!(is_folder(folder.join("sub")));
        assert_eq!(read_to_string(&file).unwrap(), "text");
        let mut pieces = String::new();
        open(&file).unwrap().read_to_string(&mut pieces).unwrap();
        assert_eq!((&*pieces, names(&folder).unwrap()), ("text", there));
        let missing = read(folder.join("none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        live().unwrap();
        assert!(exists("/"));
        replay(Record::arriving(Cursor::new(bytes.clone())));
        assert!(!exists("/"));
        assert_eq!(addresses("127.0.0.1").len(), 1);
        live().unwrap();
        for cut in 0..bytes.len() {
            replay(Record::arriving(Cursor::new(bytes[..cut].to_vec())));
            assert!(live().is_err(), "{cut} of {}", bytes.len());
        }
    }

    #[test]
    fn an_answer_is_there_before_the_last() {
        let (to, from) = std::os::unix::net::UnixStream::pair().unwrap();
        let (had, hears) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            replay(Record::arriving(from));
            assert!(is_folder("/"));
            had.send(()).unwrap();
            assert!(!is_folder("/none"));
            live().unwrap();
        });
        record(to);
        assert!(is_folder("/"));
        hears.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        recorded().unwrap();
        other.join().unwrap();
    }
}
