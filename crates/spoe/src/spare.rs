//! Buffers of messages and answers that are at rest: each is used again by whoever needs one next.

use std::cell::RefCell;

/// Buffers of messages and answers that are kept for the next ones, and the most bytes of one that is.
const SPARE: (usize, usize) = (64, 4096);

thread_local! {
    static BYTES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer.
pub fn take() -> Vec<u8> {
    BYTES.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// A buffer that is not needed any more.
pub fn give(mut bytes: Vec<u8>) {
    BYTES.with_borrow_mut(|spare| {
        if spare.len() < SPARE.0 && bytes.capacity() <= SPARE.1 {
            bytes.clear();
            spare.push(bytes);
        }
    });
}
