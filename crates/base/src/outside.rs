//! What a configuration needs of the world outside: files, folders, names of hosts.
//!
//! A process that runs in a chroot under another user can't see most of it. So whoever reads a configuration
//! asks here, and for each thread it may be said where the answers come from: from the system, from the
//! system while they are written down ([`record`]), or from what somebody else wrote down ([`replay`]). What
//! is asked for and was not written down is not there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Cursor, Read};
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

/// Answers, by what was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    files: HashMap<String, Result<Vec<u8>, i32>>,
    kinds: HashMap<String, Result<u8, i32>>,
    folders: HashMap<String, Result<Vec<u8>, i32>>,
    hosts: HashMap<String, Result<Vec<u8>, i32>>,
}

impl Record {
    /// Writes down what a file holds.
    pub fn put(&mut self, path: &str, content: Vec<u8>) {
        self.files.insert(path.to_owned(), Ok(content));
    }
}

enum Source {
    System,
    Recording(Record),
    Recorded(Record),
}

thread_local! {
    static SOURCE: RefCell<Source> = const { RefCell::new(Source::System) };
}

/// From now on what this thread asks for is written down.
pub fn record() {
    SOURCE.set(Source::Recording(Record::default()));
}

/// What was written down since [`record`]; nothing more is.
pub fn recorded() -> Record {
    match SOURCE.replace(Source::System) {
        Source::Recording(record) => record,
        Source::System | Source::Recorded(_) => Record::default(),
    }
}

/// From now on this thread is answered from what was written down.
pub fn replay(record: Record) {
    SOURCE.set(Source::Recorded(record));
}

/// From now on this thread is answered by the system.
pub fn live() {
    SOURCE.set(Source::System);
}

/// Whether this thread is answered from what was written down.
pub fn is_replayed() -> bool {
    SOURCE.with_borrow(|source| matches!(source, Source::Recorded(_)))
}

type Table<T> = HashMap<String, Result<T, i32>>;

fn ask<T: Clone>(
    key: &str,
    table: fn(&mut Record) -> &mut Table<T>,
    live: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    SOURCE.with_borrow_mut(|source| match source {
        Source::System => live(),
        Source::Recording(record) => {
            let answer = live();
            let told = answer.as_ref().map(T::clone).map_err(|e| e.raw_os_error().unwrap_or(NOT_THERE));
            table(record).insert(key.to_owned(), told);
            answer
        }
        Source::Recorded(record) => {
            let known = table(record).get(key).cloned().unwrap_or(Err(NOT_THERE));
            known.map_err(io::Error::from_raw_os_error)
        }
    })
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
    ask(&name(path), |r| &mut r.files, || std::fs::read(path))
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
    let found = ask(
        &name(path),
        |r| &mut r.kinds,
        || {
            let what = std::fs::metadata(path)?;
            Ok(if what.is_file() { 0 } else { 1 + u8::from(!what.is_dir()) })
        },
    );
    Ok(match found? {
        0 => Kind::File,
        1 => Kind::Folder,
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
    let joined = ask(
        &name(path),
        |r| &mut r.folders,
        || {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(path)? {
                names.extend(entry?.file_name().into_string().ok());
            }
            Ok(names.join("\0").into_bytes())
        },
    );
    let joined = String::from_utf8(joined?).unwrap_or_default();
    Ok(joined.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// The addresses of a host, as the system's resolver orders them.
pub fn addresses(host: &str) -> Vec<IpAddr> {
    let found = ask(
        host,
        |r| &mut r.hosts,
        || {
            let found = (host, 0u16).to_socket_addrs()?;
            let texts: Vec<String> = found.map(|a| a.ip().to_string()).collect();
            Ok(texts.join(" ").into_bytes())
        },
    );
    let text = String::from_utf8(found.unwrap_or_default()).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|ip| ip.parse().ok()).collect()
}

impl Record {
    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, &self.files, Vec::clone);
        encode(&mut out, &self.kinds, |kind| vec![*kind]);
        encode(&mut out, &self.folders, Vec::clone);
        encode(&mut out, &self.hosts, Vec::clone);
        out
    }

    /// The record of these bytes; `None`: they are none.
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let rest = &mut &*bytes;
        let record = Record {
            files: decode(rest, |bytes| Some(bytes.to_vec()))?,
            kinds: decode(rest, |bytes| bytes.first().copied())?,
            folders: decode(rest, |bytes| Some(bytes.to_vec()))?,
            hosts: decode(rest, |bytes| Some(bytes.to_vec()))?,
        };
        rest.is_empty().then_some(record)
    }
}

fn encode<T>(out: &mut Vec<u8>, table: &Table<T>, bytes: fn(&T) -> Vec<u8>) {
    out.extend_from_slice(&(table.len() as u64).to_le_bytes());
    for (key, answer) in table {
        let (mark, content) = match answer {
            Ok(value) => (0, bytes(value)),
            Err(number) => (1, number.to_le_bytes().to_vec()),
        };
        out.push(mark);
        for piece in [key.as_bytes(), &content] {
            out.extend_from_slice(&(piece.len() as u64).to_le_bytes());
            out.extend_from_slice(piece);
        }
    }
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (number, behind) = rest.split_first_chunk::<8>()?;
    *rest = behind;
    usize::try_from(u64::from_le_bytes(*number)).ok()
}

fn piece<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    let (piece, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(piece)
}

fn decode<T>(rest: &mut &[u8], value: fn(&[u8]) -> Option<T>) -> Option<Table<T>> {
    let count = number(rest)?;
    let mut table = HashMap::new();
    for _ in 0..count {
        let (mark, behind) = rest.split_first()?;
        *rest = behind;
        let key = String::from_utf8(piece(rest)?.to_vec()).ok()?;
        let content = piece(rest)?;
        let answer = match mark {
            0 => Ok(value(content)?),
            _ => Err(i32::from_le_bytes(content.try_into().ok()?)),
        };
        table.insert(key, answer);
    }
    Some(table)
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
        record();
        assert_eq!(read(&file).unwrap(), b"text");
        assert!(is_folder(folder.join("sub")) && read(folder.join("none")).is_err());
        let there = names(&folder).unwrap();
        assert_eq!(addresses("127.0.0.1"), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        let bytes = recorded().encode();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(read(&file).is_err());
        replay(Record::decode(&bytes).unwrap());
        assert!(is_replayed());
        assert_eq!(read_to_string(&file).unwrap(), "text");
        let mut pieces = String::new();
        open(&file).unwrap().read_to_string(&mut pieces).unwrap();
        assert_eq!((&*pieces, names(&folder).unwrap()), ("text", there));
        assert!(is_folder(folder.join("sub")) && !exists("/"));
        let missing = read(folder.join("none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(addresses("127.0.0.1").len(), 1);
        live();
        assert!(exists("/"));
        for cut in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..cut]), None);
        }
    }
}
