//! Messages that could not be parsed, kept for `show errors`.

use model::Peer;
use rt::Wall;

/// Bytes kept of a bad message.
pub const KEPT: usize = 16384;

/// One bad message.
#[derive(Clone, Debug)]
pub struct Captured {
    /// It was a response.
    pub response: bool,
    /// When.
    pub date: Wall,
    /// Frontend, backend and server, as indices of the program.
    pub frontend: u32,
    /// Backend.
    pub backend: Option<u32>,
    /// Server.
    pub server: Option<u32>,
    /// Client.
    pub src: Peer,
    /// Number of the connection.
    pub session: u64,
    /// Where the parser stopped.
    pub position: usize,
    /// What the parser was reading.
    pub state: &'static str,
    /// What is wrong.
    pub text: &'static str,
    /// What was received.
    pub bytes: Box<[u8]>,
}

/// Bad messages that a worker keeps.
const MOST: usize = 8;

/// Keeps a bad message in place of the oldest one.
pub fn keep(worker: &crate::Worker, captured: Captured) {
    let mut kept = worker.errors.borrow_mut();
    if kept.len() >= MOST {
        kept.pop_front();
    }
    kept.push_back(captured);
}
