//! What rules may ask of the outside: the engine's side of [`lang::env::Live`].

use lang::env::{Payload, Side, TcpInfo};
use model::proxy::{Listener, Proxy};
use model::{Conn, Server, Txn, World};
use rt::{Mono, Wall};

use crate::Worker;

/// The view of one stream at one moment. Cheap to make: references only.
pub struct View<'v> {
    /// The worker.
    pub worker: &'v Worker,
    /// The frontend, as an index of the program.
    pub frontend: u32,
    /// The backend, once chosen.
    pub backend: Option<u32>,
    /// The server, once chosen.
    pub server: Option<u32>,
    /// The listener, as an index of the frontend.
    pub listener: u32,
    /// Bytes of the request that were not forwarded.
    pub request: Payload<'v>,
    /// Bytes of the response that were not forwarded.
    pub response: Payload<'v>,
    /// The client's socket.
    pub client: Option<&'v rt::Socket>,
    /// The server's socket.
    pub upstream: Option<&'v rt::Socket>,
}

impl<'v> View<'v> {
    /// A view of a connection that has no backend yet.
    pub fn of(worker: &'v Worker, conn: &Conn) -> View<'v> {
        View {
            worker,
            frontend: conn.frontend,
            backend: None,
            server: None,
            listener: conn.listener,
            request: Payload::default(),
            response: Payload::default(),
            client: None,
            upstream: None,
        }
    }

    /// A view of a transaction.
    pub fn of_txn(worker: &'v Worker, conn: &Conn, txn: &Txn) -> View<'v> {
        View { backend: txn.backend, server: txn.server, ..View::of(worker, conn) }
    }
}

impl lang::Live for View<'_> {
    fn now(&self) -> Mono {
        rt::now()
    }

    fn date(&self) -> Wall {
        rt::wall()
    }

    fn random(&self) -> u64 {
        rt::random()
    }

    fn worker(&self) -> usize {
        self.worker.index
    }

    fn world(&self) -> &World {
        &self.worker.shared.program.world
    }

    fn frontend(&self) -> &Proxy {
        &self.worker.shared.program.proxy(self.frontend).state
    }

    fn backend(&self) -> Option<&Proxy> {
        Some(&self.worker.shared.program.proxy(self.backend?).state)
    }

    fn server(&self) -> Option<&Server> {
        let backend = self.worker.shared.program.proxy(self.backend?);
        Some(&backend.servers.get(self.server? as usize)?.state)
    }

    fn listener(&self) -> Option<&Listener> {
        let frontend = self.worker.shared.program.proxy(self.frontend);
        Some(&frontend.binds.get(self.listener as usize)?.state)
    }

    fn default_backend(&self) -> Option<&str> {
        let program = &self.worker.shared.program;
        Some(&program.proxy(program.proxy(self.frontend).default_backend?).name)
    }

    fn payload(&self, side: Side) -> Payload<'_> {
        match side {
            Side::Request => self.request,
            Side::Response => self.response,
        }
    }

    fn tcp_info(&self, side: Side) -> Option<TcpInfo> {
        let socket = match side {
            Side::Request => self.client?,
            Side::Response => self.upstream?,
        };
        let i = socket.tcp_info().ok()?;
        Some(TcpInfo {
            rtt_us: micros(i.rtt),
            rttvar_us: micros(i.rttvar),
            unacked: i.unacked,
            sacked: i.sacked,
            lost: i.lost,
            retrans: i.retrans,
            fackets: i.fackets,
            reordering: i.reordering,
        })
    }

    fn unique_id(&self) -> Option<&[u8]> {
        None
    }

    fn rule_place(&self, rule: u32) -> Option<(&str, u32)> {
        let program = &self.worker.shared.program;
        let (file, line) = *program.rule_places.get(rule as usize)?;
        Some((program.files.get(usize::from(file))?, line))
    }

    fn node(&self) -> (&str, u32) {
        (&self.worker.shared.program.global.node, std::process::id())
    }
}

fn micros(d: std::time::Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}
