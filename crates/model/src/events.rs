//! What happens to servers, for whoever wants to be told (scripts: `core.event_sub`, Lua API manual).
//!
//! Whoever changes a server tells it here, as it happens and in that order. Those who want to know are called
//! then and there: they only note what they were told, and see to it elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use parking_lot::RwLock;

use crate::check::CheckResult;
use crate::server::Op;

/// Kinds of events, as bits.
pub mod kind {
    /// A server was added.
    pub const ADD: u32 = 1;
    /// A server was deleted.
    pub const DEL: u32 = 2;
    /// It can be used again.
    pub const UP: u32 = 4;
    /// It can't be used any more.
    pub const DOWN: u32 = 8;
    /// Its operational state is another.
    pub const STATE: u32 = 16;
    /// Its administrative state is another.
    pub const ADMIN: u32 = 32;
    /// A check's result is worth telling.
    pub const CHECK: u32 = 64;
    /// It has another address.
    pub const ADDRESS: u32 = 128;
    /// All of them.
    pub const ALL: u32 = 255;
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Its result.
    pub result: CheckResult,
    /// An agent gave it.
    pub agent: bool,
    /// The counter of health after it.
    pub health: i64,
    /// `rise` and `fall`.
    pub limits: (i64, i64),
}

/// What belongs to an event of its kind.
#[derive(Clone, Debug)]
pub enum Detail {
    /// Nothing.
    Nothing,
    /// Of [`kind::STATE`].
    State {
        /// An administrative change has led to it.
        admin: bool,
        /// A check has led to it.
        check: Option<Checked>,
        /// What else, in words.
        cause: String,
        /// Before and after.
        change: (Op, Op),
        /// How many requests that waited look for a server anew.
        requeued: usize,
    },
    /// Of [`kind::ADMIN`]: bits of [`crate::server::admin`].
    Admin {
        /// Why, in words.
        cause: String,
        /// Before and after.
        change: (u32, u32),
        /// As above.
        requeued: usize,
    },
    /// Of [`kind::CHECK`].
    Check(Checked),
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its kind: one bit.
    pub kind: u32,
    /// Name and number of the proxy.
    pub proxy: (Box<str>, u32),
    /// Name and number of the server, and its revision.
    pub server: (Box<str>, u32, u32),
    /// When it happened, in seconds since 1970.
    pub when: u64,
    /// The rest.
    pub detail: Detail,
}

/// Who is told.
pub type Told = Arc<dyn Fn(&Event) + Send + Sync>;

/// Those who want to be told.
#[derive(Default)]
pub struct Subscribers {
    /// All kinds that anybody wants.
    kinds: AtomicU32,
    next: AtomicU32,
    list: RwLock<Vec<(u32, u32, Told)>>,
}

impl Subscribers {
    /// One more, for these kinds; the number by which it ends.
    pub fn begin(&self, kinds: u32, told: Told) -> u32 {
        let number = self.next.fetch_add(1, Relaxed);
        self.list.write().push((number, kinds, told));
        self.kinds.fetch_or(kinds, Relaxed);
        number
    }

    /// It wants no more.
    pub fn end(&self, number: u32) {
        let mut list = self.list.write();
        list.retain(|(n, ..)| *n != number);
        self.kinds.store(list.iter().fold(0, |all, (_, kinds, _)| all | kinds), Relaxed);
    }

    /// Whether anybody wants one of these kinds.
    #[inline]
    pub fn wants(&self, kinds: u32) -> bool {
        self.kinds.load(Relaxed) & kinds != 0
    }

    /// Tells those who want it.
    pub fn tell(&self, event: &Event) {
        // Outside of the lock: who is told may end its subscription.
        let told: Vec<Told> = {
            let list = self.list.read();
            list.iter()
                .filter(|(_, kinds, _)| kinds & event.kind != 0)
                .map(|(.., told)| told.clone())
                .collect()
        };
        told.iter().for_each(|told| told(event));
    }
}

impl std::fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscribers({})", self.list.read().len())
    }
}
