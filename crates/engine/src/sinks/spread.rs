//! Backends of logs: which server takes a line.

use std::cell::Cell;
use std::sync::Arc;

use base::hash::Function;
use bumpalo::Bump;
use farm::Farm;
use lang::env::Side;
use lang::{Env, Value};
use model::server::Target;
use model::{Conn, Txn};
use program::proxy::{Balance, Proxy};
use rt::{Addr, Datagram};

use crate::process_vars::Outside;

/// A worker's choice of servers.
pub(super) struct Spread {
    farm: Arc<Farm>,
    /// What converters of `log-hash` compute in.
    scratch: Cell<Option<Box<Scratch>>>,
}

/// Converters are run as for a transaction, of which a line has none.
struct Scratch {
    conn: Conn,
    txn: Txn,
    arena: Bump,
}

impl Spread {
    pub fn new(farm: Arc<Farm>) -> Spread {
        Spread { farm, scratch: Cell::new(None) }
    }

    /// The sink of the server that takes a line with this message; `None` while there is no server.
    pub fn choose(&self, proxy: u32, message: &[u8]) -> Option<usize> {
        let held = self.farm.program.proxies.get(proxy as usize)?;
        let key = self.key(&held, message);
        let server = self.farm.backend(proxy).balancer.pick(key, |_| false)?;
        held.servers.get(server)?.log_sink
    }

    fn key(&self, proxy: &Proxy, message: &[u8]) -> Option<u32> {
        let expr = match &proxy.balance {
            Balance::Random(_) => return Some(rt::random() as u32),
            Balance::LogHash(expr) => expr,
            _ => return None,
        };
        let fresh = || {
            let conn = Conn::new(0, 0, 0, rt::now(), rt::wall());
            Box::new(Scratch { conn, txn: Txn::default(), arena: Bump::new() })
        };
        let mut scratch = self.scratch.take().unwrap_or_else(fresh);
        let outside = Outside::new(&self.farm.program);
        let Scratch { conn, txn, arena } = &*scratch;
        let env = Env { conn, txn, live: &outside, arena, side: Side::Request, last: true };
        let found = expr.convert(&env, Value::Str(message)).ok();
        // A key that is its own hash is read as a number.
        let number = proxy.hash.function == Function::None;
        let bytes = found.map(|key| if number { key.text(arena) } else { key.binary(arena) });
        let hash = bytes.map(|bytes| proxy.hash.hash(bytes));
        scratch.arena.reset();
        self.scratch.set(Some(scratch));
        hash
    }

    /// Where a server is now.
    pub fn address(&self, proxy: u32, server: u32) -> Option<Addr> {
        let held = self.farm.program.proxies.get(proxy as usize)?;
        let server = held.servers.get(server as usize)?;
        match &**server.state.target.load() {
            Target::Inet(addr) => Some(Addr::Inet(*addr)),
            _ => None,
        }
    }
}

/// The socket towards a server, whose address may change at run time.
#[derive(Default)]
pub(super) struct Towards(Option<(Addr, Datagram)>);

impl Towards {
    /// The socket towards this address.
    pub fn socket(&mut self, addr: Addr) -> std::io::Result<&Datagram> {
        if self.0.as_ref().is_none_or(|(known, _)| *known != addr) {
            self.0 = Some((addr.clone(), Datagram::connect(&addr)?));
        }
        self.0.as_ref().map(|(_, socket)| socket).ok_or_else(|| std::io::ErrorKind::NotConnected.into())
    }

    /// Sends a line.
    pub fn send(&mut self, addr: Addr, line: &[u8]) -> std::io::Result<()> {
        let socket = self.socket(addr)?;
        match socket.try_send(line) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Err(e),
            // What is refused is an earlier line: once more.
            Err(_) => socket.try_send(line).map(drop),
        }
    }
}
