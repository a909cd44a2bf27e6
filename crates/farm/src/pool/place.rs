//! Where a connection rests: here, or at a quay.

use std::sync::Arc;

use link::transport::Transport;
use rt::{Label, Moored, Quay, Socket};

use super::rest::Resting;
use super::{Identity, Idle};

pub(super) enum Place {
    /// Other workers have to ask for it.
    Here(Transport),
    /// In sight of all workers.
    Quay(Moored),
}

/// The requests served, out of what other workers see.
pub(super) fn noted(note: u64) -> u32 {
    u32::try_from(note).unwrap_or(u32::MAX)
}

impl Resting {
    /// A connection begins to rest.
    pub(super) fn new(idle: Idle, quay: Option<&Arc<Quay>>) -> Resting {
        let Idle { socket, identity, requests, seat } = idle;
        // A seat does not go through a quay.
        let quay = quay.filter(|_| seat.is_none());
        let place = Place::new(socket, quay, identity, requests.into());
        Resting { place, identity, requests, seat, since: rt::now() }
    }
}

impl Place {
    fn new(socket: Transport, quay: Option<&Arc<Quay>>, identity: Identity, note: u64) -> Place {
        let Some(quay) = quay else { return Place::Here(socket) };
        let moored = socket.into_plain().map(|socket| quay.moor(socket, Label { identity, note }));
        match moored {
            Ok(Ok(moored)) => Place::Quay(moored),
            Ok(Err(socket)) => Place::Here(socket.into()),
            Err(encrypted) => Place::Here(encrypted),
        }
    }

    /// Whether the server has closed it, as of the last report; true also if it is gone.
    pub(super) fn is_hung_up(&self) -> bool {
        match self {
            Place::Here(socket) => socket.is_hung_up(),
            Place::Quay(moored) => moored.is_hung_up() || moored.is_gone(),
        }
    }

    /// Whether it is still here and its server has said nothing, see [`Idle::is_quiet`].
    pub(super) fn is_quiet(&self) -> bool {
        match self {
            Place::Here(socket) => super::is_quiet(socket),
            Place::Quay(moored) => !moored.is_hung_up() && moored.look(is_silent) == Some(true),
        }
    }

    /// The connection; `None` if another worker has taken it.
    pub(super) fn leave(self) -> Option<Transport> {
        match self {
            Place::Here(socket) => Some(socket),
            Place::Quay(moored) => moored.unmoor().map(Transport::from),
        }
    }
}

fn is_silent(socket: &Socket) -> bool {
    !socket.is_readable() || socket.try_recv(&mut [0]).is_none()
}
