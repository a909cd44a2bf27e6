//! Scenes. See the library's head for how they are played, and replayed.

mod queue;
mod retries;
mod reuse;
mod timeouts;
