//! The memory of a shard's entries: slots of one size in chunks, found by number.
//!
//! An entry of its own, with a key and a row of their own and a count of references, takes three times the
//! bytes that it holds. Here a slot is a head and a stretch of bytes, the key and the row behind it. What has
//! no fixed size, a text as key and the name of a server, stands beside them where the table has such. A
//! chunk in which nothing is left gives its memory back.

use std::sync::Arc;

use crate::key::KeyKind;
use crate::layout::Layout;

/// What every entry has.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// When it was used last, ms.
    pub touched: u64,
    /// How many hold it.
    pub uses: u32,
    /// The one that was used before it; in a free slot the next free one of the chunk.
    pub older: u32,
    /// The one that was used after it, or a mark.
    pub newer: u32,
}

/// There is no such slot.
pub const NONE: u32 = u32::MAX;
/// Mark of an entry that stands aside from the order of age.
pub const ASIDE: u32 = u32::MAX - 1;
/// Mark of a slot that holds no entry.
pub const FREE: u32 = u32::MAX - 2;

/// Slots of a chunk.
const CHUNK: usize = 64;

#[derive(Debug, Default)]
struct Chunk {
    heads: Box<[Head]>,
    /// Keys and rows.
    cells: Box<[u8]>,
    /// Keys that are texts.
    texts: Box<[Box<[u8]>]>,
    servers: Box<[Option<Arc<str>>]>,
    /// The number of the latest record of each entry in the log of updates, where there is one; 0: none.
    numbers: Box<[u32]>,
    used: u32,
    /// The first free slot.
    free: u32,
    /// It stands in the list of those that may have room.
    listed: bool,
}

/// The slots of a shard.
#[derive(Debug)]
pub struct Slab {
    /// Bytes of a key, unless it is a text.
    key: Option<usize>,
    /// Bytes of a row.
    row: usize,
    /// It keeps names of servers.
    servers: bool,
    /// Peers are told of its entries.
    numbered: bool,
    chunks: Vec<Chunk>,
    /// Chunks that may have room.
    roomy: Vec<u32>,
}

fn split(place: u32) -> (usize, usize) {
    (place as usize / CHUNK, place as usize % CHUNK)
}

impl Slab {
    /// Room for nothing yet.
    pub fn new(kind: KeyKind, layout: &Layout, numbered: bool) -> Slab {
        let (row, servers) = (layout.bytes(), layout.has_texts());
        Slab { key: kind.width(), row, servers, numbered, chunks: Vec::new(), roomy: Vec::new() }
    }

    /// Slots that have memory, and the bytes of one; texts beside them left out.
    pub fn size(&self) -> (usize, usize) {
        let chunks = self.chunks.iter().filter(|chunk| !chunk.heads.is_empty()).count();
        let beside = |there: bool, bytes: usize| if there { bytes } else { 0 };
        let slot = size_of::<Head>()
            + self.key.unwrap_or(size_of::<Box<[u8]>>())
            + self.row
            + beside(self.servers, size_of::<Option<Arc<str>>>())
            + beside(self.numbered, size_of::<u32>());
        (chunks * CHUNK, slot)
    }

    fn memory(&self) -> Chunk {
        let head = |i: u32| Head {
            touched: 0,
            uses: 0,
            older: if i + 1 < CHUNK as u32 { i + 1 } else { NONE },
            newer: FREE,
        };
        let only = |there: bool| if there { CHUNK } else { 0 };
        Chunk {
            heads: (0..CHUNK as u32).map(head).collect(),
            cells: vec![0; CHUNK * (self.key.unwrap_or(0) + self.row)].into(),
            texts: (0..only(self.key.is_none())).map(|_| Box::default()).collect(),
            servers: (0..only(self.servers)).map(|_| None).collect(),
            numbers: vec![0; only(self.numbered)].into(),
            used: 0,
            free: 0,
            listed: true,
        }
    }

    /// Makes an entry of a key; none if the key is none of this kind.
    pub fn take(&mut self, key: &[u8], now: u64) -> Option<u32> {
        if self.key.is_some_and(|width| width != key.len()) {
            return None;
        }
        let at = match self.roomy.last() {
            Some(at) => *at,
            None => {
                let at = u32::try_from(self.chunks.len()).ok()?;
                self.chunks.push(Chunk { listed: true, ..Chunk::default() });
                self.roomy.push(at);
                at
            }
        };
        if self.chunks[at as usize].heads.is_empty() {
            self.chunks[at as usize] = self.memory();
        }
        let width = self.key.unwrap_or(0) + self.row;
        let chunk = &mut self.chunks[at as usize];
        let slot = chunk.free as usize;
        let head = &mut chunk.heads[slot];
        chunk.free = head.older;
        *head = Head { touched: now, uses: 0, older: NONE, newer: ASIDE };
        let cells = &mut chunk.cells[slot * width..][..width];
        cells.fill(0);
        match self.key {
            Some(n) => cells[..n].copy_from_slice(key),
            None => chunk.texts[slot] = key.into(),
        }
        chunk.used += 1;
        if chunk.free == NONE {
            chunk.listed = false;
            self.roomy.pop();
        }
        Some(at * CHUNK as u32 + slot as u32)
    }

    /// Takes an entry out; its memory is another's.
    pub fn give(&mut self, place: u32) {
        let (at, slot) = split(place);
        let chunk = &mut self.chunks[at];
        chunk.heads[slot] = Head { touched: 0, uses: 0, older: chunk.free, newer: FREE };
        chunk.free = slot as u32;
        if let Some(text) = chunk.texts.get_mut(slot) {
            *text = Box::default();
        }
        if let Some(server) = chunk.servers.get_mut(slot) {
            *server = None;
        }
        if let Some(number) = chunk.numbers.get_mut(slot) {
            *number = 0;
        }
        chunk.used -= 1;
        if !std::mem::replace(&mut chunk.listed, true) {
            self.roomy.push(at as u32);
        }
        // The last one with room stays: an entry that comes and goes costs no allocation.
        if chunk.used == 0 && self.roomy.len() > 1 {
            *chunk = Chunk { listed: true, ..Chunk::default() };
        }
    }

    /// Whether there is an entry.
    pub fn has(&self, place: u32) -> bool {
        let (at, slot) = split(place);
        self.chunks.get(at).and_then(|c| c.heads.get(slot)).is_some_and(|h| h.newer != FREE)
    }

    /// The head of an entry.
    #[inline]
    pub fn head(&self, place: u32) -> &Head {
        let (at, slot) = split(place);
        &self.chunks[at].heads[slot]
    }

    /// The head of an entry, to be changed.
    #[inline]
    pub fn head_mut(&mut self, place: u32) -> &mut Head {
        let (at, slot) = split(place);
        &mut self.chunks[at].heads[slot]
    }

    /// The key of an entry.
    #[inline]
    pub fn key(&self, place: u32) -> &[u8] {
        let (at, slot) = split(place);
        let chunk = &self.chunks[at];
        match self.key {
            Some(n) => &chunk.cells[slot * (n + self.row)..][..n],
            None => &chunk.texts[slot],
        }
    }

    /// The row of an entry.
    #[inline]
    pub fn row(&self, place: u32) -> &[u8] {
        let ((at, slot), key) = (split(place), self.key.unwrap_or(0));
        &self.chunks[at].cells[slot * (key + self.row) + key..][..self.row]
    }

    /// The row of an entry, to be changed.
    #[inline]
    pub fn row_mut(&mut self, place: u32) -> &mut [u8] {
        let ((at, slot), key) = (split(place), self.key.unwrap_or(0));
        &mut self.chunks[at].cells[slot * (key + self.row) + key..][..self.row]
    }

    /// The number of its latest record in the log of updates.
    pub fn number(&self, place: u32) -> u32 {
        let (at, slot) = split(place);
        self.chunks.get(at).and_then(|c| c.numbers.get(slot)).copied().unwrap_or(0)
    }

    /// Notes the number of its latest record, where that is kept; the one before.
    pub fn set_number(&mut self, place: u32, number: u32) -> u32 {
        let (at, slot) = split(place);
        match self.chunks.get_mut(at).and_then(|c| c.numbers.get_mut(slot)) {
            Some(known) => std::mem::replace(known, number),
            None => 0,
        }
    }

    /// The entries there are.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        let chunks = (0u32..).zip(&self.chunks);
        chunks.flat_map(|(at, chunk)| {
            let slots = (0u32..).zip(&chunk.heads).filter(|(_, head)| head.newer != FREE);
            slots.map(move |(slot, _)| at * CHUNK as u32 + slot)
        })
    }

    /// The server noted in an entry.
    pub fn server(&self, place: u32) -> Option<&Arc<str>> {
        let (at, slot) = split(place);
        self.chunks[at].servers.get(slot)?.as_ref()
    }

    /// Forgets the server noted in an entry.
    pub fn clear_server(&mut self, place: u32) {
        let (at, slot) = split(place);
        if let Some(known) = self.chunks[at].servers.get_mut(slot) {
            *known = None;
        }
    }

    /// Notes the server, where that is kept.
    pub fn set_server(&mut self, place: u32, server: &Arc<str>) {
        let (at, slot) = split(place);
        if let Some(known) = self.chunks[at].servers.get_mut(slot) {
            *known = Some(server.clone());
        }
    }
}
