//! What rules may ask of the outside: the engine's side of [`lang::env::Live`].

use std::cell::OnceCell;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::fleet::Pin;
use bumpalo::Bump;
use lang::Env;
use lang::compression::Compression;
use lang::env::{Limits, Payload, Side, TcpInfo};
use model::proxy::{Listener, Proxy};
use model::vars::Scope;
use model::{Conn, Server, Txn, World};
use rt::{Buf, Mono, Wall};

use crate::Worker;
use wire::http1::Body;
use wire::http1::Scanner;

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
    pub request: Waiting<'v>,
    /// Bytes of the response that were not forwarded.
    pub response: Waiting<'v>,
    /// Memory for bodies that have to be taken out of their chunks.
    pub arena: Option<&'v Bump>,
    /// The client connection, where a stream is looked at.
    pub session: Option<&'v std::rc::Rc<crate::sessions::Session>>,
    /// The client's socket.
    pub client: Option<&'v rt::Socket>,
    /// The server's socket.
    pub upstream: Option<&'v rt::Socket>,
    /// Backend and server that are not in the configuration, once somebody asked for them.
    pub late_backend: OnceCell<Pin<program::Proxy>>,
    /// See there.
    pub late_server: OnceCell<Pin<program::Server>>,
}

/// What of a direction waits in its buffer.
#[derive(Clone, Copy)]
pub struct Waiting<'v> {
    /// Its bytes.
    pub data: &'v [u8],
    /// The body that it begins with; `None`: the bytes as they are.
    pub body: Option<Body>,
    /// How much of the body is shown.
    pub most: usize,
    /// No more will come.
    pub over: bool,
}

impl Default for Waiting<'_> {
    fn default() -> Self {
        Waiting { data: &[], body: None, most: usize::MAX, over: false }
    }
}

impl<'v> Waiting<'v> {
    /// What waits in a buffer; in a full one no more will come. With a body comes what it can't have of it.
    pub fn of(buf: Option<&'v Buf>, body: Option<(Body, usize)>, over: bool) -> Waiting<'v> {
        let Some(buf) = buf else { return Waiting { body: body.map(|b| b.0), over, ..Waiting::default() } };
        let most = body.map_or(usize::MAX, |(_, taken)| crate::room::of(buf, taken));
        Waiting { data: buf.filled(), body: body.map(|b| b.0), most, over: over || buf.is_full() }
    }

    /// The data of the message: without chunks, and without what belongs to the next message.
    fn payload(&self, arena: Option<&'v Bump>) -> Payload<'v> {
        let (bytes, most) = (self.data, self.most);
        let shown = |data: &'v [u8], whole: bool| Payload {
            data: data.get(..most).unwrap_or(data),
            complete: self.over || whole || data.len() >= most,
            due: 0,
        };
        match (self.body, arena) {
            (Some(Body::None), _) => Payload { complete: true, ..Payload::default() },
            (Some(Body::Length(n)), _) => {
                let n = usize::try_from(n).unwrap_or(usize::MAX);
                shown(bytes.get(..n).unwrap_or(bytes), bytes.len() >= n)
            }
            (Some(Body::Chunked), Some(arena)) => {
                let mut data = bumpalo::collections::Vec::with_capacity_in(bytes.len(), arena);
                let mut scanner = Scanner::new(true);
                let end = scanner.data(bytes, |piece| data.extend_from_slice(piece));
                let payload = shown(data.into_bump_slice(), end.unwrap_or(true));
                Payload { due: scanner.chunk_left(), ..payload }
            }
            _ => shown(bytes, false),
        }
    }
}

impl<'v> View<'v> {
    /// A view of a connection that has no backend yet.
    pub fn of(worker: &'v Worker, conn: &Conn) -> View<'v> {
        View {
            worker,
            frontend: conn.frontend.get(),
            backend: None,
            server: None,
            listener: conn.listener.get(),
            request: Waiting::default(),
            response: Waiting::default(),
            arena: None,
            session: None,
            client: None,
            upstream: None,
            late_backend: OnceCell::new(),
            late_server: OnceCell::new(),
        }
    }

    fn backend_at(&self) -> Option<&program::Proxy> {
        let (proxies, at) = (&self.worker.shared.program.proxies, self.backend? as usize);
        match proxies.configured(at) {
            Some(found) => Some(found),
            None => self.late_backend.get_or_init(|| proxies.get(at)?.pin()).as_ref().map(|held| &**held),
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

    fn local_offset(&self, secs: i64) -> i32 {
        rt::sys::local_offset(secs)
    }

    fn random(&self) -> u64 {
        rt::random()
    }

    fn session(&self) -> Option<std::rc::Rc<dyn std::any::Any>> {
        self.session.map(|session| session.clone() as _)
    }

    fn worker(&self) -> usize {
        self.worker.index
    }

    fn world(&self) -> &World {
        &self.worker.shared.program.world
    }

    fn frontend(&self) -> &Proxy {
        &self.worker.shared.program.configured(self.frontend).state
    }

    fn backend(&self) -> Option<&Proxy> {
        Some(&self.backend_at()?.state)
    }

    fn compression(&self) -> [Option<&Compression>; 2] {
        let front = &self.worker.shared.program.configured(self.frontend).compression;
        [front.as_deref(), self.backend_at().and_then(|back| back.compression.as_deref())]
    }

    fn server(&self) -> Option<&Server> {
        let (servers, at) = (&self.backend_at()?.servers, self.server? as usize);
        match servers.configured(at) {
            Some(server) => Some(&server.state),
            None => Some(&self.late_server.get_or_init(|| servers.get(at)?.pin()).as_ref()?.state),
        }
    }

    fn listener(&self) -> Option<&Listener> {
        let frontend = self.worker.shared.program.configured(self.frontend);
        Some(&frontend.binds.get(self.listener as usize)?.state)
    }

    fn default_backend(&self) -> Option<&str> {
        let program = &self.worker.shared.program;
        Some(&program.configured(program.configured(self.frontend).default_backend?).name)
    }

    fn payload(&self, side: Side) -> Payload<'_> {
        match side {
            Side::Request => self.request.payload(self.arena),
            Side::Response => self.response.payload(self.arena),
        }
    }

    fn server_source(&self) -> Option<model::Peer> {
        self.upstream.and_then(local_address)
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

    fn counts_as(&self, status: u16) -> model::txn::ResponseCounts {
        crate::tracking::counts_as(&self.worker.shared.program.global, status)
    }

    fn logs_early(&self) -> bool {
        crate::lines::early_lines(self.worker.shared.program.configured(self.frontend))
    }

    fn write_unique_id(&self, env: &Env<'_>, out: &mut Vec<u8>) -> bool {
        let format = &self.worker.shared.program.configured(self.frontend).unique_id_format;
        format.as_ref().map(|format| format.append(env, lang::logfmt::Use::Header, out)).is_some()
    }

    fn rule_place(&self, rule: u32) -> Option<(&str, u32)> {
        let program = &self.worker.shared.program;
        let (file, line) = *program.rule_places.get(rule as usize)?;
        Some((program.files.get(usize::from(file))?, line))
    }

    fn log(&self, env: &lang::Env<'_>, origin: model::Origin, profile: Option<u32>) {
        crate::lines::now(self.worker, self.frontend, env, origin, profile);
    }

    fn limits(&self, side: Side) -> Option<Limits> {
        // Until a backend is chosen a stream has the frontend for one.
        let index = match (side, self.backend) {
            (Side::Response, Some(backend)) => backend,
            (Side::Response, None) if self.session.is_none() => return None,
            _ => self.frontend,
        };
        let proxy = &*self.worker.shared.program.proxy(index);
        let t = &proxy.timeouts;
        if side == Side::Response && !proxy.is_backend {
            // Nothing that is about servers is a frontend's.
            return Some(Limits { client: t.client, tarpit: t.tarpit, retries: 3, ..Limits::default() });
        }
        Some(Limits {
            client: t.client,
            server: t.server,
            connect: t.connect,
            queue: t.queue.or(t.connect),
            tarpit: if side == Side::Request { t.tarpit } else { t.tarpit.or(t.connect) },
            tunnel: t.tunnel,
            retries: proxy.retries,
            chosen: self.backend.is_some(),
            serves: true,
        })
    }

    fn saved_syn(&self) -> Vec<u8> {
        self.client.and_then(|c| c.saved_syn().ok()).unwrap_or_default()
    }

    fn is_local(&self, ip: IpAddr) -> bool {
        rt::sys::is_local(ip)
    }

    fn free_slots(&self, backend: &Proxy) -> i64 {
        let program = &self.worker.shared.program;
        let Some(proxy) = program.proxies.iter().find(|p| p.is_backend && p.name == backend.name) else {
            return 0;
        };
        let mut free = 0;
        for server in proxy.servers.iter().filter(|s| s.state.is_up()) {
            if server.maxconn == 0 || server.maxqueue == 0 {
                return -1;
            }
            let most = i64::from(server.maxconn) + i64::from(server.maxqueue);
            let now =
                i64::from(server.state.served.load(Relaxed)) + i64::from(server.state.queued.load(Relaxed));
            free += most - now;
        }
        free
    }

    fn decrypts(&self, alg: &[u8], enc: &[u8]) -> bool {
        let tune = &self.worker.shared.program.global.tune;
        let fits = |list: &Option<Vec<&str>>, name: &[u8]| {
            list.as_ref().is_none_or(|l| l.iter().any(|n| n.as_bytes() == name))
        };
        fits(&tune.jwt_algorithms, alg) && fits(&tune.jwt_encodings, enc)
    }

    fn buffer_size(&self) -> usize {
        self.worker.shared.program.global.tune.bufsize
    }

    fn uptime(&self) -> Duration {
        rt::now().since(self.worker.shared.started)
    }

    fn call_ns(&self) -> u64 {
        self.worker.call_began.get().map_or(0, |began| crate::profile::nanos(began.elapsed()))
    }

    fn cpu_usage(&self) -> u32 {
        let (user, system) = rt::sys::cpu_time();
        let threads = u64::from(self.worker.shared.program.global.threads.max(1));
        let all = (self.uptime().as_micros() as u64).saturating_mul(threads);
        u32::try_from((user + system).saturating_mul(100) / all.max(1)).unwrap_or(100).min(100)
    }

    fn variables(&self, scope: Scope) -> &[Box<str>] {
        self.worker.shared.program.vars.of(scope)
    }

    fn capture_length(&self, side: Side, slot: usize) -> Option<usize> {
        let frontend = self.worker.shared.program.configured(self.frontend);
        let list = match side {
            Side::Request => &frontend.req_captures,
            Side::Response => &frontend.res_captures,
        };
        Some(list.get(slot)?.len)
    }

    fn has_frontend(&self, name: &str) -> bool {
        self.worker.shared.program.proxies.iter().any(|p| *p.name == *name && p.is_frontend)
    }

    fn trace(&self, sink: &str, line: &[u8]) {
        self.worker.sinks.trace(sink, line);
    }

    fn node(&self) -> (&str, u32) {
        (&self.worker.shared.program.global.node, std::process::id())
    }
}

/// The local address of a connection.
pub fn local_address(socket: &rt::Socket) -> Option<model::Peer> {
    socket.local_addr().ok().map(|a| link::address::peer(Some(&a)))
}

fn micros(d: std::time::Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}
