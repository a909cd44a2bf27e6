//! The form of the file, as `docs/shm-stats-file.md` tells it: a header, then a record for each object. All
//! numbers have their lowest byte first.

/// The size of the header.
pub const HEADER: usize = 4096;
/// The most figures of an object.
pub const FIGURES: usize = 40;
/// The size of a record.
pub const RECORD: usize = FIXED + FIGURES * 8;
/// Processes that may use a file at a time: each has a bit.
pub const SLOTS: usize = 64;

const MAGIC: &[u8; 8] = b"HARRSTAT";
const VERSION: u32 = 1;
/// Where the places of processes begin, and the size of one.
const PLACES: usize = 32;
const PLACE: usize = 24;
/// Where the names of the figures stand.
const NAMES: usize = PLACES + SLOTS * PLACE;
/// The longest name of an object.
const GUID: usize = 128;
/// Where the figures of a record begin.
const FIXED: usize = GUID + 32;

/// A process that uses the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its number; 0: nobody.
    pub pid: u32,
    /// What tells it from others.
    pub token: u64,
    /// When it was last here, ms of the monotonic clock.
    pub seen: u64,
}

/// What is in a file, or will be.
#[derive(Debug, Default)]
pub struct Image(Vec<u8>);

fn number(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn short(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(room) = bytes.get_mut(at..at + what.len()) {
        room.copy_from_slice(what);
    }
}

impl Image {
    /// That of a new file, whose figures have these names.
    pub fn new(names: &str) -> Image {
        let mut bytes = vec![0; HEADER];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 12, &(RECORD as u32).to_le_bytes());
        put(&mut bytes, 20, &(HEADER as u32).to_le_bytes());
        put(&mut bytes, NAMES, names.as_bytes());
        Image(bytes)
    }

    /// That of a file with these bytes; `None` if they are not of this form, or the figures are others.
    pub fn read(bytes: Vec<u8>, names: &str) -> Option<Image> {
        let new = Image::new(names);
        let same = |range: std::ops::Range<usize>| {
            let part = bytes.get(range.clone());
            part.is_some() && part == new.0.get(range)
        };
        if !same(0..16) || !same(20..24) || !same(NAMES..HEADER) {
            return None;
        }
        let image = Image(bytes);
        (image.0.len() >= HEADER + image.count() * RECORD).then_some(image)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of the header.
    pub fn header(&self) -> &[u8] {
        self.0.get(..HEADER).unwrap_or_default()
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        short(&self.0, 16) as usize
    }

    /// A place of a process.
    pub fn place(&self, slot: usize) -> Place {
        let at = PLACES + slot * PLACE;
        Place { pid: short(&self.0, at), token: number(&self.0, at + 8), seen: number(&self.0, at + 16) }
    }

    /// Sets a place.
    pub fn set_place(&mut self, slot: usize, place: Place) {
        let at = PLACES + slot * PLACE;
        put(&mut self.0, at, &place.pid.to_le_bytes());
        put(&mut self.0, at + 8, &place.token.to_le_bytes());
        put(&mut self.0, at + 16, &place.seen.to_le_bytes());
    }

    /// A record.
    pub fn record(&self, index: usize) -> Option<Record<'_>> {
        let at = HEADER + index * RECORD;
        (index < self.count()).then_some(())?;
        self.0.get(at..at + RECORD).map(Record)
    }

    /// A record that is to be changed.
    pub fn record_mut(&mut self, index: usize) -> Option<RecordMut<'_>> {
        let at = HEADER + index * RECORD;
        (index < self.count()).then_some(())?;
        self.0.get_mut(at..at + RECORD).map(RecordMut)
    }

    /// One record more, for an object of this kind and name. Its number.
    pub fn append(&mut self, kind: u8, guid: &str) -> usize {
        let index = self.count();
        self.0.resize(HEADER + (index + 1) * RECORD, 0);
        put(&mut self.0, 16, &(index as u32 + 1).to_le_bytes());
        let at = HEADER + index * RECORD;
        if let Some(record) = self.0.get_mut(at..at + RECORD) {
            record.fill(0);
            put(record, 0, guid.as_bytes());
            put(record, GUID, &[kind]);
        }
        index
    }
}

/// What a file says of an object.
#[derive(Clone, Copy)]
pub struct Record<'i>(&'i [u8]);

impl<'i> Record<'i> {
    /// Its kind and its name.
    pub fn object(self) -> (u8, &'i str) {
        let name = self.0.get(..GUID).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let kind = self.0.get(GUID).copied().unwrap_or(u8::MAX);
        (kind, std::str::from_utf8(name).unwrap_or_default())
    }

    /// Who uses it, a bit for each place.
    pub fn users(self) -> u64 {
        number(self.0, GUID + 8)
    }

    /// How often its figures were set to zero.
    pub fn clearings(self) -> u64 {
        number(self.0, GUID + 16)
    }

    /// The date of the last session, seconds since 1970.
    pub fn last_session(self) -> u64 {
        number(self.0, GUID + 24)
    }

    /// A figure.
    pub fn figure(self, which: usize) -> u64 {
        number(self.0, FIXED + which.min(FIGURES) * 8)
    }
}

/// A record that is to be changed.
pub struct RecordMut<'i>(&'i mut [u8]);

impl RecordMut<'_> {
    /// See [`Record::users`].
    pub fn set_users(&mut self, users: u64) {
        put(self.0, GUID + 8, &users.to_le_bytes());
    }

    /// See [`Record::last_session`].
    pub fn set_last_session(&mut self, date: u64) {
        put(self.0, GUID + 24, &date.to_le_bytes());
    }

    /// See [`Record::figure`].
    pub fn set_figure(&mut self, which: usize, n: u64) {
        if which < FIGURES {
            put(self.0, FIXED + which * 8, &n.to_le_bytes());
        }
    }

    /// All figures are zero.
    pub fn clear(&mut self) {
        let clearings = Record(self.0).clearings().wrapping_add(1);
        put(self.0, GUID + 16, &clearings.to_le_bytes());
        if let Some(rest) = self.0.get_mut(GUID + 24..) {
            rest.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let mut image = Image::new("a,b");
        assert_eq!(image.append(1, "one"), 0);
        assert_eq!(image.append(2, &"x".repeat(127)), 1);
        image.set_place(63, Place { pid: 7, token: 8, seen: 9 });
        let mut record = image.record_mut(1).unwrap();
        record.set_users(5);
        record.set_last_session(77);
        record.set_figure(0, u64::MAX);
        record.set_figure(FIGURES - 1, 3);
        record.set_figure(FIGURES, 3);
        let read = Image::read(image.bytes().to_vec(), "a,b").unwrap();
        assert_eq!((read.count(), read.place(63).pid, read.place(62)), (2, 7, Place::default()));
        let record = read.record(1).unwrap();
        assert_eq!(record.object(), (2, &*"x".repeat(127)));
        assert_eq!((record.users(), record.last_session(), record.clearings()), (5, 77, 0));
        assert_eq!((record.figure(0), record.figure(FIGURES - 1)), (u64::MAX, 3));
        assert!(read.record(2).is_none());
        // Other figures, a file that was cut, one of somebody else.
        assert!(Image::read(image.bytes().to_vec(), "a,c").is_none());
        assert!(Image::read(image.bytes()[..image.bytes().len() - 1].to_vec(), "a,b").is_none());
        for junk in [Vec::new(), vec![0; 8192], b"HARRSTAT".to_vec()] {
            assert!(Image::read(junk, "a,b").is_none());
        }
        image.record_mut(1).unwrap().clear();
        let record = image.record(1).unwrap();
        assert_eq!((record.users(), record.clearings(), record.figure(0)), (5, 1, 0));
    }
}
