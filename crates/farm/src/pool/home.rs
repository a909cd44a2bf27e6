//! Where a connection of many streams rests, as it sees it.

use model::server::admin;
use mux::{Mux, Pool, Resting};

use std::sync::Arc;

use super::Idle;
use crate::{At, FarmWorker, Stay, with_worker};

/// The pool of a server on this worker. It keeps the server and its backend.
pub struct Home {
    at: At,
    state: Option<Arc<model::Server>>,
    epoch: u32,
    moves: u64,
    _stay: Stay,
}

impl Home {
    /// That of a server.
    pub fn of(worker: &FarmWorker, at: At) -> Home {
        let state = worker.farm.program.find_server(at.proxy, at.server).map(|s| s.state.clone());
        let moves = state.as_ref().map_or(0, |state| state.moves());
        Home {
            at,
            state,
            epoch: worker.farm.epoch,
            moves,
            _stay: worker.farm.stay(at.proxy, Some(at.server)),
        }
    }
}

impl Home {
    /// Where the server is in the configuration that runs.
    fn today(&self, w: &FarmWorker) -> Option<At> {
        match w.farm.epoch == self.epoch {
            true => Some(self.at),
            false => w.farm.place_of(self.state.as_ref()?),
        }
    }
}

impl Pool for Home {
    fn rest(&self, resting: Resting) {
        let Resting { socket, identity, requests, seat } = resting;
        with_worker(|w| {
            let at = self.today(w)?;
            let config = w.farm.program.find_server(at.proxy, at.server)?;
            if config.state.moves() != self.moves || config.state.admin() & admin::MAINT != 0 {
                return None;
            }
            let (ways, shared) = (w.farm.backend(at.proxy), w.farm.program.global.tune.shared_pool);
            let slot = ways.slots.get(at.server as usize).filter(|_| shared);
            let quay = slot.and_then(|slot| slot.quays.own());
            let idle = Idle::new(socket, identity, requests, seat);
            w.pools.give(at.proxy, at.server, idle, &config, quay)
        });
    }

    fn has_another(&self, than: &Mux) -> bool {
        let has = with_worker(|w| {
            let at = self.today(w)?;
            Some(w.pools.has_another(at.proxy, at.server, than))
        });
        has.flatten() == Some(true)
    }
}
