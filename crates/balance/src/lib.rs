//! Floor 3: the balancing algorithms and queues: pure functions and lock-free state.
//!
//! Which server gets the next request is asked by every thread for every request, while the answer's
//! ingredients (health, weights, administrative state) change a few times an hour. So the work is split: the
//! slow side, [`Balancer::rebuild`], turns the list of servers into an immutable schedule and publishes it by
//! swapping a pointer; the fast side reads the schedule and touches at most a cursor or the load of the
//! server it chose. No pick ever waits for another thread.
//!
//! A server is known here by its index and the few facts of a [`ServerView`]; nothing is known of HTTP,
//! sockets or clocks. Keys are bytes ([`key`] cuts them out of URIs, parameters and header values), chance is
//! a number that the caller passes in, so the same inputs give the same choice.
//!
//! | module | holds |
//! |---|---|
//! | [`view`] | what is known of a server, effective weights, which servers take part |
//! | [`key`] | from bytes of a request to the hash of its key |
//! | [`rotation`] | `roundrobin`: the weighted order and its cursor |
//! | [`map`] | `static-rr` and map-based hashing |
//! | [`ring`] | consistent hashing |
//! | [`leastconn`] | the tree of least loads |
//! | [`random`] | weighted draws |
//! | [`load`] | requests on each server |
//! | [`balancer`] | all of them behind one face |
//! | [`limit`] | how many requests a server may take now |
//! | [`queue`] | requests that wait for a server |
#![forbid(unsafe_code)]

pub mod balancer;
pub mod key;
pub mod leastconn;
pub mod limit;
pub mod load;
pub mod map;
mod published;
pub mod queue;
pub mod random;
pub mod ring;
pub mod rotation;
mod sync;
pub mod view;

pub use balancer::{Algorithm, Balancer, HashType, Method, Settings};
pub use view::{HashKey, ServerView, WEIGHT_SCALE, effective_weight};
