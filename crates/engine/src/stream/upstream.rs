//! The connection to a server that serves a stream.

use farm::pool::Fit;
use link::transport::{Early, Transport};
use model::server_conns::Seat;
use mux::Call;
use rt::Buf;

/// A connection to a server in use.
pub struct Upstream {
    /// Its socket, perhaps with TLS on it.
    pub socket: Transport,
    /// Bytes received from the server and not passed on.
    pub buf: Option<Buf>,
    /// It served a request before this one.
    pub reused: bool,
    /// Requests it has served before.
    pub requests: u32,
    /// Which requests it may serve after this one.
    pub fit: Fit,
    /// What it holds of a server with `strict-maxconn`.
    pub seat: Option<Seat>,
    /// It is a stream of a multiplexed connection.
    pub call: Option<Call>,
}

impl Upstream {
    /// The connection itself.
    fn connection(&self) -> &Transport {
        self.call.as_ref().map_or(&self.socket, |call| call.mux().socket())
    }

    /// How early data ended; `None` where there were none.
    pub fn early_end(&self) -> Option<Early> {
        self.connection().early_end()
    }

    /// What the TLS handshake found, if there was one and it is over.
    pub fn secured(&self) -> Option<&std::sync::Arc<model::secured::Secured>> {
        self.connection().facts()
    }

    /// Whether the server has said all that it will say here, and some of that is at hand.
    pub fn is_through(&self) -> bool {
        self.socket.is_hung_up() || self.call.as_ref().is_some_and(Call::was_bare)
    }

    /// The socket of the connection itself.
    pub fn raw(&self) -> &rt::Socket {
        self.call.as_ref().map_or(self.socket.raw(), Call::raw)
    }
}
