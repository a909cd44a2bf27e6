//! The atomics of the lock-free parts: those of the standard library, or loom's when it explores
//! interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};

/// Stands between a sequentially consistent write and such a read of another word that must not be older.
/// The language guarantees that order by itself; loom knows it only from a fence.
pub(crate) fn after_write() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
