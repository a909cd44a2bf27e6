//! The number of the worker that this thread is.
//!
//! State that several threads write is sometimes kept once per worker. Which copy a thread uses must not
//! depend on the order in which threads happened to start, or a simulated world would not replay; so the
//! number is set by whoever starts the worker. A thread that nobody numbered is worker 0.

use std::cell::Cell;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The number of this worker, from 0.
pub fn number() -> usize {
    NUMBER.get()
}

/// Makes this thread worker `number`.
pub fn set_number(number: usize) {
    NUMBER.set(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_number() {
        set_number(3);
        let other = std::thread::spawn(|| (number(), set_number(7), number())).join().unwrap();
        assert_eq!((number(), other.0, other.2), (3, 0, 7));
    }
}
