//! Scenes. See the library's head for how they are played, and replayed.

mod retries;
mod timeouts;
