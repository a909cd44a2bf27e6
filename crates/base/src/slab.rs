//! A slab whose keys know when they are stale.
//!
//! Tasks, streams and timers are named by small integers that travel through queues and other threads, and
//! may arrive after the thing they named is gone and its place taken. So a key carries the generation of its
//! slot: looking up a stale key finds nothing instead of somebody else. Slots are recycled last-in first-out,
//! which keeps the warm ones in use, and the values stay in one contiguous allocation.

/// The name of a value in one [`Slab`]: its slot and the generation of that slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    slot: u32,
    generation: u32,
}

impl Key {
    /// The key as one number, for places that carry only an integer.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// The key that [`Key::to_bits`] gave.
    pub fn from_bits(bits: u64) -> Key {
        Key { slot: bits as u32, generation: (bits >> 32) as u32 }
    }

    /// The index of the slot: small, dense, reused.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Values in recycled slots, found by generation-checked keys.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Option<u32>,
    len: usize,
    limit: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    Used(T),
    Free { next: Option<u32> },
}

impl<T> Slab<T> {
    /// An empty slab that holds at most `limit` values (and never more than 2^32 - 1).
    pub fn new(limit: usize) -> Slab<T> {
        Slab { slots: Vec::new(), free: None, len: 0, limit: limit.min(u32::MAX as usize) }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores `value`, or gives it back when the slab is full.
    pub fn insert(&mut self, value: T) -> Result<Key, T> {
        if self.len >= self.limit {
            return Err(value);
        }
        self.len += 1;
        let Some(slot) = self.free else {
            let slot = self.slots.len() as u32;
            self.slots.push(Slot { generation: 0, state: State::Used(value) });
            return Ok(Key { slot, generation: 0 });
        };
        let place = &mut self.slots[slot as usize];
        if let State::Free { next } = place.state {
            self.free = next;
        }
        place.state = State::Used(value);
        Ok(Key { slot, generation: place.generation })
    }

    /// Takes the value out, unless the key is stale.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.slots.get_mut(key.slot()).filter(|s| s.generation == key.generation)?;
        if matches!(place.state, State::Free { .. }) {
            return None;
        }
        let State::Used(value) = std::mem::replace(&mut place.state, State::Free { next: self.free }) else {
            return None;
        };
        place.generation = place.generation.wrapping_add(1);
        self.free = Some(key.slot);
        self.len -= 1;
        Some(value)
    }

    /// The value, unless the key is stale.
    pub fn get(&self, key: Key) -> Option<&T> {
        match self.slots.get(key.slot())? {
            Slot { generation, state: State::Used(value) } if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// The value, unless the key is stale.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.slots.get_mut(key.slot())? {
            Slot { generation, state: State::Used(value) } if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// All values with their keys, in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(slot, place)| match &place.state {
            State::Used(value) => Some((Key { slot: slot as u32, generation: place.generation }, value)),
            State::Free { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn a_stale_key_finds_nothing_though_its_slot_is_used_again() {
        let mut slab = Slab::new(10);
        let first = slab.insert("first").unwrap();
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second").unwrap();
        assert_eq!(second.slot(), first.slot());
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(Key::from_bits(second.to_bits()), second);
    }

    #[test]
    fn a_full_slab_gives_the_value_back() {
        let mut slab = Slab::new(1);
        let key = slab.insert(1).unwrap();
        assert_eq!(slab.insert(2), Err(2));
        slab.remove(key);
        assert!(slab.insert(2).is_ok());
    }

    proptest! {
        #[test]
        fn behaves_as_a_map(ops in proptest::collection::vec((0..3_u8, any::<u16>()), 1..200)) {
            let (mut slab, mut model, mut keys) = (Slab::new(50), HashMap::new(), Vec::new());
            for (op, value) in ops {
                if op < 2 {
                    if let Ok(key) = slab.insert(value) {
                        prop_assert!(model.insert(key, value).is_none());
                        keys.push(key);
                    } else {
                        prop_assert_eq!(model.len(), 50);
                    }
                } else if !keys.is_empty() {
                    let key = keys[usize::from(value) % keys.len()];
                    prop_assert_eq!(slab.remove(key), model.remove(&key));
                }
                prop_assert_eq!(slab.len(), model.len());
            }
            for (key, value) in slab.iter() {
                prop_assert_eq!(model.get(&key), Some(value));
            }
        }
    }
}
