//! Where a connection of many streams rests, as it sees it.

use mux::h2::{Mux, Pool};

use crate::{At, FarmWorker, Stay, with_worker};

/// The pool of a server on this worker. It keeps the server and its backend.
pub struct Home {
    at: At,
    _stay: Stay,
}

impl Home {
    /// That of a server.
    pub fn of(worker: &FarmWorker, at: At) -> Home {
        Home { at, _stay: worker.farm.stay(at.proxy, Some(at.server)) }
    }
}

impl Pool for Home {
    fn has_another(&self, than: &Mux) -> bool {
        with_worker(|w| w.pools.has_another(self.at.proxy, self.at.server, than)) == Some(true)
    }
}
