//! Where a connection of many streams rests, as it sees it.

use mux::{Mux, Pool};

use std::sync::Arc;

use crate::{At, FarmWorker, Stay, with_worker};

/// The pool of a server on this worker. It keeps the server and its backend.
pub struct Home {
    at: At,
    state: Option<Arc<model::Server>>,
    epoch: u32,
    _stay: Stay,
}

impl Home {
    /// That of a server.
    pub fn of(worker: &FarmWorker, at: At) -> Home {
        let state = worker.farm.program.find_server(at.proxy, at.server).map(|s| s.state.clone());
        Home { at, state, epoch: worker.farm.epoch, _stay: worker.farm.stay(at.proxy, Some(at.server)) }
    }
}

impl Pool for Home {
    fn has_another(&self, than: &Mux) -> bool {
        let has = with_worker(|w| {
            let at = match w.farm.epoch == self.epoch {
                true => self.at,
                false => w.farm.place_of(self.state.as_ref()?)?,
            };
            Some(w.pools.has_another(at.proxy, at.server, than))
        });
        has.flatten() == Some(true)
    }
}
