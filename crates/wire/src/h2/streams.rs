//! Streams (RFC 9113 section 5.1).
//!
//! ```text
//!            HEADERS                    END_STREAM received        END_STREAM sent
//!   idle ------------> open (both) ---> half-closed (remote) ---> closed
//!                           \ END_STREAM sent          END_STREAM received
//!                            ----------> half-closed (local) ---> closed
//!                 RST_STREAM either way, from anywhere: closed
//! ```
//!
//! A live stream is in the slab with its two halves; idle is every number above the last, closed every other.
//! Of the last closed ones it is remembered who closed them, because what still comes for a stream that this
//! side reset is no fault of the peer, while what comes for one that the peer ended is.

use base::slab::{Key, Slab};

use super::flow::{Inflow, Outflow};

/// A live stream.
#[derive(Debug)]
pub struct Stream {
    pub id: u32,
    pub outflow: Outflow,
    pub inflow: Inflow,
    /// The peer has not ended its half.
    pub receiving: bool,
    /// This side has not ended its half.
    pub sending: bool,
    /// The head came that is followed by the body: an informational response is none.
    pub head_in: bool,
    /// Bytes of the body that are yet to come, where a length was declared.
    pub left: Option<u64>,
    /// The response has no body whatever it declares: to HEAD, or by its status.
    pub bodiless: bool,
    /// The turn in which something came on it last.
    pub fed: u32,
    /// It waits in the line of those that want to send.
    pub queued: bool,
}

/// How many closed streams are remembered.
const REMEMBERED: usize = 64;
/// Marks a remembered stream that this side reset.
const OURS: u32 = 1 << 31;

/// What is known of a closed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// This side reset it: the peer may not know yet.
    Reset,
    /// The peer knows.
    Known,
    /// It was closed long ago, or never opened.
    Forgotten,
}

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams {
    pub slab: Slab<Stream>,
    ids: Ids,
    /// Streams whose other half is open: those that share the receive buffer.
    pub receiving: u32,
    closed: [u32; REMEMBERED],
    closed_at: usize,
}

impl Streams {
    pub fn new() -> Streams {
        Streams {
            slab: Slab::new(usize::MAX),
            ids: Ids::default(),
            receiving: 0,
            closed: [0; REMEMBERED],
            closed_at: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.slab.len()
    }

    #[inline]
    pub fn find(&self, id: u32) -> Option<Key> {
        self.ids.get(id)
    }

    pub fn insert(&mut self, stream: Stream) -> Option<Key> {
        let (id, receiving) = (stream.id, stream.receiving);
        let key = self.slab.insert(stream).ok()?;
        self.receiving += u32::from(receiving);
        self.ids.insert(id, key);
        Some(key)
    }

    /// Notes that the peer ended its half; forgets the stream if that was the last.
    pub fn end_receiving(&mut self, key: Key) {
        let Some(stream) = self.slab.get_mut(key).filter(|stream| stream.receiving) else { return };
        stream.receiving = false;
        self.receiving -= 1;
        if !stream.sending {
            self.remove(key, false);
        }
    }

    /// Notes that this side ended its half; forgets the stream if that was the last.
    pub fn end_sending(&mut self, key: Key) {
        let Some(stream) = self.slab.get_mut(key) else { return };
        stream.sending = false;
        if !stream.receiving {
            self.remove(key, false);
        }
    }

    /// Forgets a stream; `reset`: this side reset it.
    pub fn remove(&mut self, key: Key, reset: bool) -> Option<Stream> {
        let stream = self.slab.remove(key)?;
        self.receiving -= u32::from(stream.receiving);
        self.ids.remove(stream.id);
        self.remember(stream.id, reset);
        Some(stream)
    }

    /// Remembers that the stream `id` is closed.
    pub fn remember(&mut self, id: u32, reset: bool) {
        if let Some(place) = self.closed.get_mut(self.closed_at) {
            *place = if reset { id | OURS } else { id };
        }
        self.closed_at = (self.closed_at + 1) % REMEMBERED;
    }

    pub fn closed(&self, id: u32) -> Closed {
        match self.closed.iter().find(|place| **place & !OURS == id) {
            Some(place) if place & OURS != 0 => Closed::Reset,
            Some(_) => Closed::Known,
            None => Closed::Forgotten,
        }
    }
}

/// Stream numbers to keys: open addressing, at most half full, emptied by moving back what follows.
#[derive(Debug, Default)]
struct Ids {
    places: Vec<Option<(u32, Key)>>,
    len: usize,
}

impl Ids {
    fn home(&self, id: u32) -> usize {
        (id.wrapping_mul(0x9e37_79b1) >> 12) as usize & self.places.len().wrapping_sub(1)
    }

    fn place(&self, id: u32) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = self.home(id);
        while let Some(Some((other, _))) = self.places.get(at) {
            if *other == id {
                return Some(at);
            }
            at = (at + 1) & (self.places.len() - 1);
        }
        None
    }

    fn get(&self, id: u32) -> Option<Key> {
        let at = self.place(id)?;
        self.places.get(at).copied().flatten().map(|(_, key)| key)
    }

    fn insert(&mut self, id: u32, key: Key) {
        if (self.len + 1) * 2 > self.places.len() {
            let size = (self.places.len() * 2).max(8);
            let old = std::mem::replace(&mut self.places, vec![None; size]);
            old.into_iter().flatten().for_each(|(id, key)| self.put(id, key));
        }
        self.put(id, key);
        self.len += 1;
    }

    fn put(&mut self, id: u32, key: Key) {
        let mut at = self.home(id);
        while self.places.get(at).is_some_and(Option::is_some) {
            at = (at + 1) & (self.places.len() - 1);
        }
        if let Some(place) = self.places.get_mut(at) {
            *place = Some((id, key));
        }
    }

    fn remove(&mut self, id: u32) {
        let Some(mut hole) = self.place(id) else { return };
        let mask = self.places.len() - 1;
        self.len -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some(Some((other, key))) = self.places.get(at).copied() else { break };
            // It may move back if the hole lies between its home and where it is.
            if (at.wrapping_sub(self.home(other)) & mask) >= (at.wrapping_sub(hole) & mask) {
                if let Some(place) = self.places.get_mut(hole) {
                    *place = Some((other, key));
                }
                hole = at;
            }
        }
        if let Some(place) = self.places.get_mut(hole) {
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn numbers_are_found_until_removed(ops in proptest::collection::vec((any::<bool>(), 0u32..60), 1..300)) {
            let (mut ids, mut model) = (Ids::default(), HashMap::new());
            for (insert, number) in ops {
                let id = number * 512 + 1;
                if insert && !model.contains_key(&id) {
                    ids.insert(id, Key::from_bits(u64::from(number)));
                    model.insert(id, Key::from_bits(u64::from(number)));
                } else if !insert {
                    ids.remove(id);
                    model.remove(&id);
                }
                for number in 0..60 {
                    let id = number * 512 + 1;
                    prop_assert_eq!(ids.get(id), model.get(&id).copied());
                }
            }
        }
    }

    #[test]
    fn the_last_closed_streams_are_remembered() {
        let mut streams = Streams::new();
        streams.remember(1, true);
        streams.remember(3, false);
        assert_eq!((streams.closed(1), streams.closed(3)), (Closed::Reset, Closed::Known));
        assert_eq!(streams.closed(5), Closed::Forgotten);
        (0..64).for_each(|number| streams.remember(101 + 2 * number, false));
        assert_eq!(streams.closed(1), Closed::Forgotten);
    }
}
