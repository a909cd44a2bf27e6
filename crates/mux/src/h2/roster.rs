//! What belongs to the streams of a connection, from the head of a request until nobody has anything left to
//! take.
//!
//! On the wire a stream ends when both sides have said all, and the slot of its key goes to the next one at
//! once. What came on it may wait much longer, for a taker who is slow. So members have places of their own
//! here, and the slot of a key leads to a place only while the stream lives.

use base::slab::Key;

/// The members, each of one stream.
pub struct Roster<T> {
    places: Vec<Option<(Key, T)>>,
    /// Places without a member.
    vacant: Vec<usize>,
    /// By the slots of keys: the place of the stream that had the slot last.
    by_slot: Vec<usize>,
    /// The place that the next circle begins with.
    first: usize,
}

impl<T> Roster<T> {
    /// One without members.
    pub fn new() -> Roster<T> {
        Roster { places: Vec::new(), vacant: Vec::new(), by_slot: Vec::new(), first: 0 }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the member of a stream that has just begun.
    pub fn insert(&mut self, stream: Key, member: T) {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        let slot = stream.slot();
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, usize::MAX);
        }
        if let Some(at) = self.by_slot.get_mut(slot) {
            *at = place;
        }
        if let Some(empty) = self.places.get_mut(place) {
            debug_assert!(empty.is_none(), "a vacant place has no member");
            *empty = Some((stream, member));
        }
    }

    /// The member of a stream that lives, or of one that was the last in its slot.
    pub fn find(&mut self, stream: Key) -> Option<&mut T> {
        let place = self.place(stream)?;
        self.get(place)
    }

    /// Takes the member of a stream out.
    pub fn take(&mut self, stream: Key) -> Option<T> {
        let place = self.place(stream)?;
        self.remove(place)
    }

    fn place(&self, stream: Key) -> Option<usize> {
        let place = *self.by_slot.get(stream.slot())?;
        let (key, _) = self.places.get(place)?.as_ref()?;
        (*key == stream).then_some(place)
    }

    /// The member at a place.
    pub fn get(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(place)?.as_mut().map(|(_, member)| member)
    }

    /// Takes the member at a place out.
    pub fn remove(&mut self, place: usize) -> Option<T> {
        let (_, member) = self.places.get_mut(place)?.take()?;
        self.vacant.push(place);
        Some(member)
    }

    /// All members.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten().map(|(_, member)| member)
    }

    /// All places, in a circle that begins where [`Roster::begin_with`] said.
    pub fn circle(&self) -> impl Iterator<Item = usize> + use<T> {
        let count = self.places.len();
        let first = if self.first < count { self.first } else { 0 };
        (first..count).chain(0..first)
    }

    /// Lets the next circle begin with a place.
    pub fn begin_with(&mut self, place: usize) {
        self.first = place;
    }

    /// Takes all members out.
    pub fn clear(&mut self) {
        *self = Roster::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::slab::Slab;

    #[test]
    fn a_member_stays_though_the_slot_of_its_stream_is_used_again() {
        let (mut streams, mut roster) = (Slab::new(10), Roster::new());
        let first = streams.insert(()).unwrap();
        roster.insert(first, "first");
        streams.remove(first);
        let second = streams.insert(()).unwrap();
        assert_eq!(first.slot(), second.slot());
        roster.insert(second, "second");
        assert_eq!(roster.len(), 2);
        assert_eq!(roster.find(second), Some(&mut "second"));
        assert_eq!(roster.find(first), None, "nothing is heard of it any more");
        let all: Vec<_> = roster.circle().filter_map(|place| roster.get(place).copied()).collect();
        assert_eq!(all, ["first", "second"]);
        assert_eq!(roster.take(second), Some("second"));
        assert_eq!(roster.take(second), None);
        let left: Vec<_> = roster.circle().filter_map(|place| roster.remove(place)).collect();
        assert_eq!((left, roster.is_empty()), (vec!["first"], true));
    }

    #[test]
    fn a_circle_visits_each_place_once_wherever_it_begins() {
        let (mut streams, mut roster) = (Slab::new(10), Roster::new());
        for n in 0..5 {
            roster.insert(streams.insert(()).unwrap(), n);
        }
        for first in 0..7 {
            roster.begin_with(first);
            let mut places: Vec<_> = roster.circle().collect();
            assert_eq!(places.first(), Some(&(first % 5)).filter(|_| first < 5).or(Some(&0)));
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3, 4]);
        }
    }
}
