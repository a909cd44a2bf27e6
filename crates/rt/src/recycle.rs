//! Boxes whose memory is used again.
//!
//! The future of a request is several kilobytes, made and dropped at every request. The general allocator
//! would do, but it takes and gives back pages under load and its cost shows in profiles; here a freed block
//! goes on a list of its size class in the thread that frees it, and the next box of that class takes it from
//! there: a pop and a push. Each list is bounded in bytes, and what nobody took from it for a while goes
//! back, half of it at a time.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr::NonNull;

/// Classes are 64 bytes apart up to 1 KiB, then four to each doubling up to 64 KiB.
const CLASSES: usize = 16 + 6 * 4;
const LARGEST: usize = 64 << 10;
const ALIGN: usize = 16;
/// What one list may hold, in bytes.
const LIST_BYTES: usize = 2 << 20;

thread_local! {
    static LISTS: RefCell<Lists> = const { RefCell::new(Lists([const { List::EMPTY }; CLASSES])) };
}

/// Blocks of a class, uninitialised.
struct List {
    blocks: Vec<NonNull<u8>>,
    /// The fewest there were since the last trim.
    lowest: usize,
    /// Blocks that this thread took from the allocator, less those that it gave back: only all threads
    /// together tell how many there are, since a block may be freed by another one than made it.
    made: i64,
    /// Blocks that this thread took from the allocator.
    allocations: u64,
}

/// Blocks of a size, as one thread knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockStats {
    /// The size, in bytes.
    pub size: usize,
    /// Blocks that wait for their next use.
    pub idle: usize,
    /// Blocks made by this thread less those freed by it: add up all threads.
    pub made: i64,
    /// Calls of the allocator.
    pub allocations: u64,
}

/// The recycled blocks of this thread, by size, those sizes left out that were never asked for.
pub fn block_stats() -> Vec<BlockStats> {
    let tell = |(class, list): (usize, &List)| BlockStats {
        size: class_size(class),
        idle: list.blocks.len(),
        made: list.made,
        allocations: list.allocations,
    };
    let is_known = |s: &BlockStats| s.allocations > 0 || s.idle > 0 || s.made != 0;
    LISTS.with(|lists| lists.borrow().0.iter().enumerate().map(tell).filter(is_known).collect())
}

impl List {
    const EMPTY: List = List { blocks: Vec::new(), lowest: 0, made: 0, allocations: 0 };

    /// A block is needed: one of the list, or else count one that is made.
    fn pop_or_count(&mut self) -> Option<NonNull<u8>> {
        let block = self.pop();
        if block.is_none() {
            (self.made, self.allocations) = (self.made + 1, self.allocations + 1);
        }
        block
    }

    fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = self.blocks.pop();
        self.lowest = self.lowest.min(self.blocks.len());
        block
    }

    /// Frees all but the first `keep`; returns how many bytes that gave.
    fn shorten(&mut self, class: usize, keep: usize) -> usize {
        let drained = self.blocks.drain(keep.min(self.blocks.len())..);
        let freed = drained.len() * class_size(class);
        self.made -= drained.len() as i64;
        for block in drained {
            // SAFETY: blocks on the list of `class` were allocated by `take` with this very layout.
            unsafe { dealloc(block.as_ptr(), class_layout(class)) };
        }
        freed
    }
}

/// The free lists of a thread.
struct Lists([List; CLASSES]);

impl Drop for Lists {
    fn drop(&mut self) {
        for (class, list) in self.0.iter_mut().enumerate() {
            list.shorten(class, 0);
        }
    }
}

/// Frees half of what lay on this thread's lists since the last time; returns how many bytes that were.
pub(crate) fn trim() -> usize {
    LISTS.with(|lists| {
        let mut freed = 0;
        for (class, list) in lists.borrow_mut().0.iter_mut().enumerate() {
            freed += list.shorten(class, list.blocks.len() - list.lowest / 2);
            list.lowest = list.blocks.len();
        }
        freed
    })
}

/// The class of a layout; `None` for what is too large or too aligned to be recycled, or has no size.
fn class_of(layout: Layout) -> Option<usize> {
    let size = layout.size();
    if size == 0 || size > LARGEST || layout.align() > ALIGN {
        return None;
    }
    if size <= 1024 {
        return Some((size - 1) / 64);
    }
    let octave = (size - 1).ilog2() as usize;
    Some(16 + (octave - 10) * 4 + ((size - 1) >> (octave - 2) & 3))
}

/// The size that blocks of a class have.
fn class_size(class: usize) -> usize {
    match class.checked_sub(16) {
        None => (class + 1) * 64,
        Some(high) => (5 + high % 4) << (8 + high / 4),
    }
}

fn class_layout(class: usize) -> Layout {
    Layout::from_size_align(class_size(class), ALIGN).expect("class sizes are valid")
}

/// Memory for `layout` (not of size zero).
fn take(layout: Layout) -> NonNull<u8> {
    let class = class_of(layout);
    if let Some(block) =
        class.and_then(|c| LISTS.try_with(|l| l.borrow_mut().0[c].pop_or_count()).ok().flatten())
    {
        return block;
    }
    let layout = class.map_or(layout, class_layout);
    // SAFETY: the layout's size is not zero: class sizes are not, and callers don't ask for zero.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives back what `take(layout)` returned.
///
/// # Safety
/// `block` comes from `take` with the same layout and isn't used any more.
// SAFETY: callers promise what the one unsafe call below needs: memory of `take`, with its layout, given
// once.
unsafe fn give(block: NonNull<u8>, layout: Layout) {
    let class = class_of(layout);
    let kept = class.is_some_and(|c| {
        let keep = |l: &RefCell<Lists>| {
            let list = &mut l.borrow_mut().0[c];
            let room = list.blocks.len() < (LIST_BYTES / class_size(c)).max(4);
            match room {
                true => list.blocks.push(block),
                false => list.made -= 1,
            }
            room
        };
        LISTS.try_with(keep).unwrap_or(false)
    });
    if !kept {
        // SAFETY: `take` allocated it with this layout.
        unsafe { dealloc(block.as_ptr(), class.map_or(layout, class_layout)) };
    }
}

/// An owned value in recycled memory.
pub struct RecycledBox<T: ?Sized>(NonNull<T>);

// SAFETY: the box owns its value as `Box` does; the memory may be given back on any thread.
unsafe impl<T: ?Sized + Send> Send for RecycledBox<T> {}
// SAFETY: a shared box gives only shared access to the value.
unsafe impl<T: ?Sized + Sync> Sync for RecycledBox<T> {}

impl<T> RecycledBox<T> {
    /// Moves `value` into recycled memory.
    pub fn new(value: T) -> RecycledBox<T> {
        let layout = Layout::new::<T>();
        let place = if layout.size() == 0 { NonNull::dangling() } else { take(layout).cast::<T>() };
        // SAFETY: `place` is valid for a `T` (classes are at least as large and aligned), or dangling for a
        // type without size.
        unsafe { place.write(value) };
        RecycledBox(place)
    }
}

impl<T: ?Sized> Drop for RecycledBox<T> {
    fn drop(&mut self) {
        // SAFETY: the box owns a valid value; its layout is that of `new`, also behind a trait object.
        unsafe {
            let layout = Layout::for_value(self.0.as_ref());
            self.0.drop_in_place();
            if layout.size() != 0 {
                give(self.0.cast(), layout);
            }
        }
    }
}

impl<T: ?Sized> Deref for RecycledBox<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the box owns a valid value.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for RecycledBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns a valid value and is borrowed mutably.
        unsafe { self.0.as_mut() }
    }
}

/// A future in recycled memory.
pub type RecycledFuture<'a, T> = Pin<RecycledBox<dyn Future<Output = T> + 'a>>;

/// Moves a future into recycled memory, which it gives back when dropped. For futures too large to lie in a
/// task that is mostly idle (an idle connection's task should stay below 512 bytes).
pub fn boxed<'a, T, F: Future<Output = T> + 'a>(future: F) -> RecycledFuture<'a, T> {
    let place = RecycledBox::new(future);
    let raw: NonNull<dyn Future<Output = T> + 'a> = place.0;
    std::mem::forget(place);
    // SAFETY: the value never moves again: only the pointer does, and the box hands out no `&mut T` to its
    // content once pinned.
    unsafe { Pin::new_unchecked(RecycledBox(raw)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_fits_its_class_without_much_waste() {
        for size in 1..=LARGEST {
            let class = class_of(Layout::from_size_align(size, 8).unwrap()).unwrap();
            assert!(class < CLASSES);
            assert!(class_size(class) >= size, "{size} in a block of {}", class_size(class));
            assert!(class_size(class) < size + size / 4 + 64, "{size} in a block of {}", class_size(class));
        }
    }

    #[test]
    fn memory_comes_back() {
        let first = RecycledBox::new([7u8; 3000]);
        let address = first.0.as_ptr() as usize;
        drop(first);
        let second = RecycledBox::new([8u8; 2900]);
        assert_eq!(second.0.as_ptr() as usize, address);
        assert_eq!(second[2899], 8);
    }

    #[test]
    fn lists_are_bounded() {
        let many: Vec<_> = (0..1000).map(|_| RecycledBox::new([0u8; 4096])).collect();
        drop(many);
        let kept = LISTS
            .with(|l| l.borrow().0.iter().enumerate().map(|(c, v)| v.blocks.len() * class_size(c)).max());
        assert_eq!(kept, Some(LIST_BYTES));
    }

    #[test]
    fn what_nobody_takes_goes_back() {
        let held: Vec<_> = (0..40).map(|_| RecycledBox::new([0u8; 4096])).collect();
        drop(held);
        // The first look only learns how many there are.
        assert_eq!(trim(), 0);
        assert_eq!(trim(), 20 * 4096);
        let used: Vec<_> = (0..15).map(|_| RecycledBox::new([0u8; 4096])).collect();
        drop(used);
        assert_eq!(trim(), 2 * 4096, "five were not needed");
        for _ in 0..10 {
            trim();
        }
        assert_eq!(trim(), 0, "one stays");
    }

    #[test]
    fn a_boxed_future_drops_its_content_once() {
        struct Count(std::rc::Rc<std::cell::Cell<u32>>);
        impl Drop for Count {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let drops = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = Count(drops.clone());
        drop(boxed(async move {
            let _count = count;
        }));
        assert_eq!(drops.get(), 1);
        drop(RecycledBox::new(()));
    }
}
