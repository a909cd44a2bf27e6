//! The entries of one segment: pattern texts end to end in one arena, and where there are values a number per
//! entry into a table of distinct ones. No entry has an allocation of its own. Entries of a map all have a
//! value; the runtime API may give one to an entry of an ACL, too, where it is kept and shown and means
//! nothing.
//!
//! Long lists of IPv4 addresses have no text at all: [`Hosts`] keeps them in order of the
//! address, and the text is made again when somebody asks. Such entries are numbered in that
//! order; entries with a text follow behind them. [`Entries::at`] gives the order of the file.

use hashbrown::HashTable;

use crate::hosts::Hosts;

/// Pattern texts and values.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    text: Vec<u8>,
    ends: Vec<u32>,
    hosts: Option<Box<Compact>>,
    values: Option<Box<Values>>,
}

/// Addresses without text, and the places in the file of the entries that have one.
#[derive(Debug)]
struct Compact {
    hosts: Hosts,
    odd_at: Vec<u32>,
}

/// Instead of the number of a value: the entry has none.
const NONE: u32 = u32::MAX;

/// Distinct values and which entry has which; entries behind the last that has one are left out.
#[derive(Debug, Default)]
pub(crate) struct Values {
    of: Vec<u32>,
    text: Vec<u8>,
    ends: Vec<u32>,
    seen: HashTable<u32>,
}

/// Room for the text of an address.
#[derive(Debug, Default)]
pub(crate) struct TextRoom {
    bytes: [u8; 15],
}

fn slice<'a>(text: &'a [u8], ends: &[u32], n: usize) -> &'a [u8] {
    let start = if n == 0 { 0 } else { ends.get(n - 1).map_or(0, |e| *e as usize) };
    let end = ends.get(n).map_or(start, |e| *e as usize);
    text.get(start..end).unwrap_or_default()
}

fn hash(text: &[u8]) -> u64 {
    base::hash::xxh3(text, 0)
}

impl Values {
    fn intern(&mut self, value: &[u8]) -> Option<u32> {
        let Values { text, ends, seen, .. } = self;
        if let Some(n) = seen.find(hash(value), |n| slice(text, ends, *n as usize) == value) {
            return Some(*n);
        }
        let n = u32::try_from(ends.len()).ok().filter(|n| *n != NONE)?;
        let end = u32::try_from(text.len().checked_add(value.len())?).ok()?;
        text.extend_from_slice(value);
        ends.push(end);
        seen.insert_unique(hash(value), n, |n| hash(slice(text, ends, *n as usize)));
        Some(n)
    }
}

impl Entries {
    /// Appends an entry; fails when the arena is full (4 GiB).
    pub(crate) fn push(&mut self, pattern: &[u8], value: Option<&[u8]>) -> Option<()> {
        let end = u32::try_from(self.text.len().checked_add(pattern.len())?).ok()?;
        if let Some(value) = value {
            self.put_value(self.ends.len(), value)?;
        }
        self.text.extend_from_slice(pattern);
        self.ends.push(end);
        Some(())
    }

    /// The value of the entry at `place`, behind all that got one before.
    pub(crate) fn put_value(&mut self, place: usize, value: &[u8]) -> Option<()> {
        let values = self.values.get_or_insert_default();
        let n = values.intern(value)?;
        values.of.resize(place, NONE);
        values.of.push(n);
        Some(())
    }

    /// The same entries with the values of others, in their order.
    pub(crate) fn with_values_of(self, others: Entries) -> Entries {
        Entries { values: others.values, ..self }
    }

    /// Puts IPv4 addresses, in the order of the file, before the entries there are. `odd_at` are the places
    /// of the latter; values are those of all of them in the order of the file.
    pub(crate) fn with_hosts(mut self, addresses: Vec<u32>, odd_at: Vec<u32>) -> Entries {
        let hosts = Hosts::build(addresses);
        if let Some(values) = &mut self.values {
            let mut of = vec![NONE; hosts.len() as usize + odd_at.len()];
            let places = Places { hosts: &hosts, odd_at: &odd_at };
            for (place, value) in (0u32..).zip(&values.of) {
                if let Some(slot) = of.get_mut(places.entry(place) as usize) {
                    *slot = *value;
                }
            }
            values.of = of;
        }
        self.hosts = Some(Box::new(Compact { hosts, odd_at }));
        self
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> u32 {
        let texts = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.host_count().saturating_add(texts)
    }

    /// The addresses kept without text.
    pub(crate) fn hosts(&self) -> Option<&Hosts> {
        self.hosts.as_ref().map(|compact| &compact.hosts)
    }

    /// Entries below this number are addresses without text.
    pub(crate) fn host_count(&self) -> u32 {
        self.hosts().map_or(0, Hosts::len)
    }

    /// The entry at a place of the file.
    pub(crate) fn at(&self, place: u32) -> u32 {
        match &self.hosts {
            None => place,
            Some(compact) => Places { hosts: &compact.hosts, odd_at: &compact.odd_at }.entry(place),
        }
    }

    /// The place in the file of entry `n`, if it has a text.
    pub(crate) fn place(&self, n: u32) -> u32 {
        let Some(compact) = &self.hosts else { return n };
        let odd = n.checked_sub(compact.hosts.len()).and_then(|odd| compact.odd_at.get(odd as usize));
        odd.copied().unwrap_or(n)
    }

    /// The pattern of entry `n` as written.
    pub(crate) fn pattern<'a>(&'a self, n: u32, room: &'a mut TextRoom) -> &'a [u8] {
        match self.text(n) {
            Some(text) => text,
            None => room.put(self.hosts().map_or(0, |h| h.address(n))),
        }
    }

    /// The pattern of entry `n`, if its text is kept.
    pub(crate) fn text(&self, n: u32) -> Option<&[u8]> {
        let n = n.checked_sub(self.host_count())?;
        Some(slice(&self.text, &self.ends, n as usize))
    }

    /// Whether any entry has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// The value of entry `n`, if it has one.
    pub(crate) fn value(&self, n: u32) -> Option<&[u8]> {
        let values = self.values.as_ref()?;
        let v = *values.of.get(n as usize)?;
        (v != NONE).then(|| slice(&values.text, &values.ends, v as usize))
    }

    /// The distinct values, each with the number of the first entry of the file that has it.
    pub(crate) fn distinct_values(&self) -> Vec<(u32, &[u8])> {
        let Some(values) = &self.values else { return Vec::new() };
        let mut seen = vec![false; values.ends.len()];
        let mut out = Vec::new();
        for place in 0..self.len() {
            let Some(v) = values.of.get(self.at(place) as usize) else { continue };
            if let Some(new) = seen.get_mut(*v as usize).filter(|s| !**s) {
                *new = true;
                out.push((place, slice(&values.text, &values.ends, *v as usize)));
            }
        }
        out
    }

    /// Gives back what growing left over, and the table that only writing needs.
    pub(crate) fn seal(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        if let Some(values) = &mut self.values {
            values.seen = HashTable::new();
            values.text.shrink_to_fit();
            values.ends.shrink_to_fit();
            values.of.shrink_to_fit();
        }
    }
}

/// From places in the file to entries.
struct Places<'a> {
    hosts: &'a Hosts,
    odd_at: &'a [u32],
}

impl Places<'_> {
    fn entry(&self, place: u32) -> u32 {
        let before = self.odd_at.partition_point(|at| *at < place);
        let odd = u32::try_from(before).unwrap_or(u32::MAX);
        if self.odd_at.get(before) == Some(&place) {
            return self.hosts.len().saturating_add(odd);
        }
        self.hosts.at(place - odd)
    }
}

impl TextRoom {
    /// The text of an IPv4 address.
    pub(crate) fn put(&mut self, address: u32) -> &[u8] {
        let mut len = 0;
        for (n, octet) in address.to_be_bytes().into_iter().enumerate() {
            if n > 0 {
                self.bytes[len] = b'.';
                len += 1;
            }
            for (unit, least) in [(100, 100), (10, 10), (1, 0)] {
                if octet >= least {
                    self.bytes[len] = b'0' + octet / unit % 10;
                    len += 1;
                }
            }
        }
        &self.bytes[..len]
    }
}
