//! How far a peer was told of a table, across connections.

use std::collections::VecDeque;

use stick::{Cursor, Table};

/// What is on its way: once this update is acknowledged, the log of this shard is known up to there.
#[derive(Clone, Copy, Debug)]
struct Flight {
    update: u32,
    part: u32,
    cursor: Cursor,
}

/// So much may be on its way before later flights stand for earlier ones.
const MOST: usize = 16_384;

/// How far a peer was told of a table.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// What was sent, by shard.
    pub sent: Vec<Cursor>,
    /// What was acknowledged.
    acked: Vec<Cursor>,
    /// The number of the last update.
    pub update: u32,
    flights: VecDeque<Flight>,
}

impl Progress {
    /// Nothing was told yet.
    pub(crate) fn new(table: &Table) -> Progress {
        let none = vec![Cursor::default(); table.parts() as usize];
        Progress { sent: none.clone(), acked: none, ..Progress::default() }
    }

    /// A new connection: what was not acknowledged is told again.
    pub(crate) fn rewind(&mut self) {
        self.flights.clear();
        self.sent.clone_from(&self.acked);
    }

    /// A shard was told of up to here, with updates up to the last.
    pub(crate) fn took_off(&mut self, part: u32, cursor: Cursor) {
        if let Some(sent) = self.sent.get_mut(part as usize) {
            *sent = cursor;
        }
        match self.flights.back_mut() {
            // Nothing was told since: that flight is on its way for this stretch, too.
            Some(last) if (last.update, last.part) == (self.update, part) => {
                last.cursor = cursor;
                return;
            }
            _ => {}
        }
        if self.flights.len() >= MOST {
            // Of each shard the latest is kept.
            let mut kept = vec![false; self.sent.len()];
            let mut rest: VecDeque<Flight> = VecDeque::new();
            for flight in self.flights.drain(..).rev() {
                if let Some(seen) = kept.get_mut(flight.part as usize)
                    && !std::mem::replace(seen, true)
                {
                    rest.push_front(flight);
                }
            }
            self.flights = rest;
        }
        self.flights.push_back(Flight { update: self.update, part, cursor });
    }

    /// The peer knows all updates up to this one.
    pub(crate) fn landed(&mut self, update: u32) {
        // Numbers go round.
        let is_known = |f: &Flight| update.wrapping_sub(f.update) < u32::MAX / 2;
        while let Some(flight) = self.flights.pop_front_if(|f| is_known(f)) {
            if let Some(acked) = self.acked.get_mut(flight.part as usize) {
                *acked = flight.cursor;
            }
        }
    }

    /// The peer was told everything up to these places by other means.
    pub(crate) fn told(&mut self, cursors: Vec<Cursor>) {
        if cursors.len() == self.sent.len() {
            self.flights.clear();
            self.acked.clone_from(&cursors);
            self.sent = cursors;
        }
    }
}
