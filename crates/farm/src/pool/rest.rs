//! The connections to one server that rest at a worker, and in which order they are used again.

use std::collections::VecDeque;

use model::server_conns::{Seat, is_safe};
use rt::Mono;

use super::Identity;
use super::place::Place;

/// A connection while it rests.
pub(super) struct Resting {
    pub(super) place: Place,
    pub(super) identity: Identity,
    pub(super) requests: u32,
    pub(super) seat: Option<Seat>,
    /// When it came to rest.
    pub(super) since: Mono,
}

/// Which connections a request may have, and which of them first ([`is_safe`] says which are proven).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A first request with `http-reuse aggressive`: those that were used again before.
    Proven,
    /// A first request with `http-reuse always`: all, proven ones first.
    ProvenFirst,
    /// A later request, whose client tries again if it is lost: all, and this is how the others are proven.
    FreshFirst,
}

/// Two lists, in the order in which their connections came to rest. Whoever has rested longest is used first,
/// as in HAProxy: servers that count the seconds of a connection at rest see them all used now and then.
#[derive(Default)]
pub(super) struct Rest {
    fresh: VecDeque<Resting>,
    proven: VecDeque<Resting>,
}

impl Rest {
    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.proven.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn push(&mut self, resting: Resting) {
        let list = if is_safe(resting.requests) { &mut self.proven } else { &mut self.fresh };
        list.push_back(resting);
    }

    /// The lists that `order` allows, one after the other.
    fn lists(&mut self, order: Order) -> impl Iterator<Item = &mut VecDeque<Resting>> {
        let (first, second) = match order {
            Order::Proven => (Some(&mut self.proven), None),
            Order::ProvenFirst => (Some(&mut self.proven), Some(&mut self.fresh)),
            Order::FreshFirst => (Some(&mut self.fresh), Some(&mut self.proven)),
        };
        first.into_iter().chain(second)
    }

    /// The next one that fits. Those on the way to it that their servers have closed come along with it, for
    /// nobody.
    pub(super) fn next(&mut self, identity: Identity, order: Order) -> Option<Resting> {
        self.lists(order).find_map(|list| {
            let wanted = |r: &Resting| r.identity == identity || r.place.is_hung_up();
            let at = list.iter().position(wanted)?;
            list.remove(at)
        })
    }

    /// The one that has rested longest.
    pub(super) fn oldest(&mut self) -> Option<Resting> {
        let since = |list: &VecDeque<Resting>| list.front().map(|r| r.since);
        match (since(&self.fresh), since(&self.proven)) {
            (Some(fresh), Some(proven)) if proven < fresh => self.proven.pop_front(),
            (Some(_), _) => self.fresh.pop_front(),
            (None, _) => self.proven.pop_front(),
        }
    }

    /// Takes out those of which `ended` is true.
    pub(super) fn extract(&mut self, mut ended: impl FnMut(&Resting) -> bool, mut part: impl FnMut(Resting)) {
        for list in self.lists(Order::FreshFirst) {
            for _ in 0..list.len() {
                match list.pop_front() {
                    Some(resting) if ended(&resting) => part(resting),
                    Some(resting) => list.push_back(resting),
                    None => break,
                }
            }
        }
    }
}
