//! Scenes. See the library's head for how they are played, and replayed.

mod aborts;
mod bodies;
mod checks;
mod queue;
mod retries;
mod reuse;
mod tcp;
mod timeouts;
