//! What is known of peers while a process runs, for whoever asks (`show peers`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use parking_lot::Mutex;

/// A `peers` section. Times are milliseconds of the process's clock.
#[derive(Debug, Default)]
pub struct Section {
    /// The peers in the order of the configuration.
    pub peers: Vec<Arc<Peer>>,
    /// Everything was learned, or there was nobody to learn from.
    pub up_to_date: AtomicBool,
    /// Until when somebody is waited for to learn from; 0: nobody is.
    pub learning_until: AtomicU64,
}

/// A peer.
#[derive(Debug, Default)]
pub struct Peer {
    /// Its name.
    pub name: Box<str>,
    /// It is this process.
    pub local: bool,
    /// Its address.
    pub address: Box<str>,
    /// Tables are exchanged with it now.
    pub connected: AtomicBool,
    /// What came of the last handshake.
    pub last_status: Mutex<&'static str>,
    /// When the last handshake was over; 0: never.
    pub last_handshake: AtomicU64,
    /// When it is tried next; 0: never.
    pub reconnect: AtomicU64,
    /// Heartbeats that were sent.
    pub beats_sent: AtomicU32,
    /// Heartbeats that came.
    pub beats_seen: AtomicU32,
    /// How often it was silent for too long.
    pub silences: AtomicU32,
    /// Connections that were made.
    pub connections: AtomicU32,
    /// Messages that could not be understood.
    pub errors: AtomicU32,
    /// Connections that met another one.
    pub collisions: AtomicU32,
    /// What is learned from it.
    pub learning: AtomicBool,
    /// It is taught.
    pub teaching: AtomicBool,
    /// For each table of the section.
    pub tables: Vec<Table>,
    /// The texts that it was sent, by number.
    pub sent_texts: Mutex<Vec<Arc<str>>>,
    /// The texts that it has sent, by number.
    pub seen_texts: Mutex<Vec<Option<Arc<str>>>>,
}

/// How far a table was exchanged with a peer.
#[derive(Debug, Default)]
pub struct Table {
    /// Its name between peers.
    pub name: Box<str>,
    /// The number that the peer gives it; 0: none yet.
    pub remote_id: AtomicU64,
    /// The types of data that the peer has in it.
    pub remote_data: AtomicU64,
    /// The last update that was acknowledged to the peer.
    pub acked: AtomicU32,
    /// The last update that was sent.
    pub pushed: AtomicU32,
    /// The last update that came.
    pub seen: AtomicU32,
}

/// A word that may be replaced.
pub fn word(word: &'static str) -> Mutex<&'static str> {
    Mutex::new(word)
}
