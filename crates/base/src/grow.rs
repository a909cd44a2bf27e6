//! A list that grows while it is read.
//!
//! Servers can be added while a configuration runs, and every request looks some up by index. So elements
//! never move and are never taken away: the first ones are one slice, as fast as any, and those that come
//! later stand in chunks, each twice as long as the one before, beginning with one: most lists that grow
//! never have many. A reader takes no lock; whoever appends holds one.

use std::ops::Index;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Elements of the first chunk.
const FIRST: usize = 1;

/// Chunks at most: room for about a million elements that are added later.
const CHUNKS: usize = 20;

type Chunk<T> = OnceLock<Box<[OnceLock<T>]>>;

/// See the module.
pub struct Grow<T> {
    first: Box<[T]>,
    chunks: [Chunk<T>; CHUNKS],
    len: AtomicUsize,
    appending: Mutex<()>,
}

impl<T> Grow<T> {
    /// A list of these elements.
    pub fn new(first: Vec<T>) -> Grow<T> {
        Grow {
            len: AtomicUsize::new(first.len()),
            first: first.into(),
            chunks: [const { OnceLock::new() }; CHUNKS],
            appending: Mutex::new(()),
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many were there at the beginning.
    pub fn initial(&self) -> usize {
        self.first.len()
    }

    /// The element at a position.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        if let Some(found) = self.first.get(at) {
            return Some(found);
        }
        let (chunk, at) = place(at - self.first.len());
        self.chunks.get(chunk)?.get()?.get(at)?.get()
    }

    /// The first element.
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// Appends an element and says where it stands; gives it back when there is no room for more.
    ///
    /// # Errors
    /// The element, if the list is full.
    pub fn push(&self, element: T) -> Result<usize, T> {
        let _turn = self.appending.lock().unwrap_or_else(PoisonError::into_inner);
        let at = self.len.load(Ordering::Relaxed);
        let (chunk, offset) = place(at - self.first.len());
        let Some(chunk_at) = self.chunks.get(chunk) else { return Err(element) };
        let slots = chunk_at.get_or_init(|| (0..FIRST << chunk).map(|_| OnceLock::new()).collect());
        match slots.get(offset) {
            Some(slot) => slot.set(element)?,
            None => return Err(element),
        }
        self.len.store(at + 1, Ordering::Release);
        Ok(at)
    }

    /// The elements, taken out.
    pub fn into_vec(self) -> Vec<T> {
        let mut all = self.first.into_vec();
        let later = self.chunks.into_iter().filter_map(OnceLock::into_inner);
        all.extend(later.flat_map(Vec::from).filter_map(OnceLock::into_inner));
        all
    }

    /// All elements in order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { list: self, at: 0, end: self.len() }
    }
}

/// The chunk and the place in it of an element, counted from the first that was added later.
fn place(at: usize) -> (usize, usize) {
    let chunk = (at / FIRST + 1).ilog2() as usize;
    (chunk, at - FIRST * ((1 << chunk) - 1))
}

/// All elements of a [`Grow`] that were there when it was made.
pub struct Iter<'g, T> {
    list: &'g Grow<T>,
    at: usize,
    end: usize,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Iter { ..*self }
    }
}

impl<'g, T> Iterator for Iter<'g, T> {
    type Item = &'g T;

    fn next(&mut self) -> Option<&'g T> {
        if self.at >= self.end {
            return None;
        }
        let found = self.list.get(self.at);
        self.at += 1;
        found
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.at;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

impl<'g, T> IntoIterator for &'g Grow<T> {
    type Item = &'g T;
    type IntoIter = Iter<'g, T>;

    fn into_iter(self) -> Iter<'g, T> {
        self.iter()
    }
}

impl<T> Index<usize> for Grow<T> {
    type Output = T;

    /// Positions come from the list itself.
    #[inline]
    fn index(&self, at: usize) -> &T {
        self.get(at).expect("a position of this list")
    }
}

impl<T> FromIterator<T> for Grow<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Grow<T> {
        Grow::new(elements.into_iter().collect())
    }
}

impl<T> From<Vec<T>> for Grow<T> {
    fn from(first: Vec<T>) -> Grow<T> {
        Grow::new(first)
    }
}

impl<T> Default for Grow<T> {
    fn default() -> Grow<T> {
        Grow::new(Vec::new())
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Grow<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_places() {
        let list: Grow<usize> = (0..3).collect();
        for n in 3..1000 {
            assert_eq!(list.push(n), Ok(n));
        }
        assert_eq!(list.len(), 1000);
        assert!(list.iter().copied().eq(0..1000));
        assert_eq!((list[2], list[3], list[4], list[66], list[67], list.get(1000)), (2, 3, 4, 66, 67, None));
        assert_eq!(list.initial(), 3);
        assert!(list.into_vec().into_iter().eq(0..1000));
    }

    #[test]
    fn readers_see_whole_elements_while_others_append() {
        let list: Grow<String> = Grow::default();
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| (0..500).for_each(|_| drop(list.push("x".repeat(9)))));
            }
            s.spawn(|| {
                while list.len() < 1000 {
                    assert!(list.iter().all(|e| e.len() == 9));
                }
            });
        });
        assert_eq!(list.iter().count(), 1000);
    }
}
