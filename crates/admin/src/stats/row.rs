//! The objects that have statistics: frontends, their listeners, servers, backends. A row is one of them
//! together with all that its figures are read from.

use std::sync::atomic::Ordering::Relaxed;

use base::time::{Mono, Wall};
use engine::Shared;
use farm::ramp;
use model::proxy::{BackCounters, FrontCounters, ListenerCounters};
use model::server::ServerCounters;
use model::{Counter, Sharded};
use program::proxy::Mode;
use program::{Bind, Program, Proxy, Server};

use super::value::Value;

/// What a row is about; the discriminant is its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A frontend.
    Frontend = 0,
    /// A backend.
    Backend = 1,
    /// A server.
    Server = 2,
    /// A listener of a frontend.
    Listener = 3,
}

impl Kind {
    /// Its bit in the type filter of `show stat`.
    pub fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The letter that begins its typed lines.
    pub fn letter(self) -> char {
        match self {
            Kind::Frontend => 'F',
            Kind::Backend => 'B',
            Kind::Server => 'S',
            Kind::Listener => 'L',
        }
    }

    /// `objType` in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Frontend => "Frontend",
            Kind::Backend => "Backend",
            Kind::Server => "Server",
            Kind::Listener => "Listener",
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only the proxy of this id.
    pub proxy: Option<u32>,
    /// Only the proxies of these names (`stats scope`); empty: all.
    pub scope: Vec<Box<str>>,
    /// Only proxies whose name holds this text (the page's search).
    pub search: String,
    /// Kinds, by [`Kind::bit`].
    pub kinds: u32,
    /// Only the server or listener of this id.
    pub id: Option<u32>,
    /// Without servers in maintenance.
    pub no_maint: bool,
    /// Without servers that are down.
    pub up: bool,
    /// With addresses and cookies.
    pub legends: bool,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            proxy: None,
            scope: Vec::new(),
            search: String::new(),
            kinds: u32::MAX,
            id: None,
            no_maint: false,
            up: false,
            legends: true,
        }
    }
}

/// One object.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    /// What it is.
    pub kind: Kind,
    /// Its proxy.
    pub proxy: &'r Proxy,
    /// The proxy, as an index of the program.
    pub index: u32,
    /// The server, for a server.
    pub server: Option<&'r Server>,
    /// The listener and its number from 1, for a listener.
    pub bind: Option<(u32, &'r Bind)>,
    /// Everything.
    pub shared: &'r Shared,
    /// What was asked for.
    pub filter: &'r Filter,
    /// When.
    pub now: Mono,
    /// When, as a date.
    pub wall: Wall,
    /// Figures are not only read but set before.
    pub given: Option<Given>,
}

/// What a figure is set to.
#[derive(Clone, Copy, Debug)]
pub enum Given {
    /// It begins with this ([`crate::preload`]): no worker counts yet.
    First(u64),
    /// Other processes have counted this ([`crate::shm`]).
    Others(u64),
}

/// Figures to sum, one function for each kind that has it.
#[derive(Clone, Copy, Default)]
pub struct Figure {
    /// Of frontends.
    pub front: Option<fn(&FrontCounters) -> &Counter>,
    /// Of backends.
    pub back: Option<fn(&BackCounters) -> &Counter>,
    /// Of servers.
    pub server: Option<fn(&ServerCounters) -> &Counter>,
    /// Of listeners.
    pub listener: Option<fn(&ListenerCounters) -> &Counter>,
}

impl<'r> Row<'r> {
    /// That of a proxy, which stands at this index, as a whole.
    pub fn of(
        kind: Kind,
        (index, proxy): (u32, &'r Proxy),
        (shared, filter): (&'r Shared, &'r Filter),
        (now, wall): (Mono, Wall),
    ) -> Row<'r> {
        Row { kind, proxy, index, server: None, bind: None, shared, filter, now, wall, given: None }
    }

    /// Its proxy speaks HTTP.
    pub fn http(&self) -> bool {
        self.proxy.mode == Mode::Http
    }

    /// It is a frontend.
    pub fn is_front(&self) -> bool {
        self.kind == Kind::Frontend
    }

    /// It is a backend.
    pub fn is_back(&self) -> bool {
        self.kind == Kind::Backend
    }

    /// It is a listener.
    pub fn is_listener(&self) -> bool {
        self.kind == Kind::Listener
    }

    /// `sid`: the id of the server or listener.
    pub fn id(&self) -> u32 {
        match (self.server, self.bind) {
            (Some(s), _) => s.state.id,
            (_, Some((_, b))) => b.state.id,
            _ => 0,
        }
    }

    /// `svname`.
    pub fn name(&self) -> String {
        match (self.kind, self.server, self.bind) {
            (Kind::Frontend, ..) => "FRONTEND".into(),
            (_, Some(s), _) => s.name.to_string(),
            (_, _, Some((_, b))) if !b.state.name.is_empty() => b.state.name.to_string(),
            (_, _, Some((number, _))) => format!("sock-{number}"),
            _ => "BACKEND".into(),
        }
    }

    /// The name under which it stands in files of figures.
    pub fn guid(&self) -> Option<&'r str> {
        match (self.kind, self.server) {
            (Kind::Frontend | Kind::Backend, _) => self.proxy.state.guid.as_deref(),
            (Kind::Listener, _) => self.bind.and_then(|(_, bind)| bind.state.guid.as_deref()),
            (_, Some(server)) => server.state.guid.as_deref(),
            _ => None,
        }
    }

    /// Sums a figure over all workers.
    pub fn sum(&self, figure: Figure) -> Value {
        match (self.kind, self.server, self.bind) {
            (Kind::Frontend, ..) => self.total(figure.front, &self.proxy.state.front.counters),
            (Kind::Backend, ..) => self.total(figure.back, &self.proxy.state.back.counters),
            (_, Some(s), _) => self.total(figure.server, &s.state.counters),
            (_, _, Some((_, b))) => self.total(figure.listener, &b.state.counters),
            _ => Value::None,
        }
    }

    fn total<T: Default>(&self, figure: Option<fn(&T) -> &Counter>, counters: &Sharded<T>) -> Value {
        figure.map_or(Value::None, |figure| self.one(counters, figure))
    }

    /// A figure summed over all workers; what is given is taken before.
    fn one<T: Default>(&self, counters: &Sharded<T>, figure: impl Fn(&T) -> &Counter) -> Value {
        match self.given {
            Some(Given::First(n)) => figure(counters.of(0)).set(n),
            Some(Given::Others(n)) => figure(counters.others()).set(n),
            None => {}
        }
        counters.sum(figure).into()
    }

    /// Responses of one class; only HTTP has them.
    pub fn responses(&self, class: usize) -> Value {
        if !self.http() {
            return Value::None;
        }
        match (self.kind, self.server) {
            (Kind::Frontend, _) => self.one(&self.proxy.state.front.counters, |c| &c.responses[class]),
            (Kind::Backend, _) => self.one(&self.proxy.state.back.counters, |c| &c.responses[class]),
            (_, Some(s)) => self.one(&s.state.counters, |c| &c.responses[class]),
            _ => Value::None,
        }
    }

    /// An average time: 0 queue, 1 connect, 2 response, 3 total.
    pub fn average(&self, which: usize) -> Value {
        let of = |requests: u64| Some(requests).filter(|_| self.http());
        match (self.kind, self.server) {
            (Kind::Backend, _) => {
                let back = &self.proxy.state.back;
                back.times.get(of(back.counters.sum(|c| &c.requests)))[which].into()
            }
            (_, Some(s)) => s.state.times.get(of(s.state.counters.sum(|c| &c.requests)))[which].into(),
            _ => Value::None,
        }
    }

    /// The greatest of such times.
    pub fn longest(&self, which: usize) -> Value {
        let n = match (self.kind, self.server) {
            (Kind::Backend, _) => self.proxy.state.back.counters.greatest(|c| &c.max_times[which]),
            (_, Some(s)) => s.state.counters.greatest(|c| &c.max_times[which]),
            _ => return Value::None,
        };
        u32::try_from(n).unwrap_or(u32::MAX).into()
    }

    /// Seconds from a moment of the monotonic clock, in ms, until now; at most since the start.
    pub fn seconds_since(&self, ms: u64) -> u32 {
        let ms = ms.max(self.shared.started.as_millis());
        u32::try_from(self.now.as_millis().saturating_sub(ms) / 1000).unwrap_or(u32::MAX)
    }

    /// Seconds since a date in seconds, -1 for none.
    pub fn age(&self, date: u64) -> Value {
        if date == 0 {
            return Value::S32(-1);
        }
        Value::S32(i32::try_from(self.wall.as_secs().saturating_sub(date)).unwrap_or(i32::MAX))
    }

    /// Usable servers: active ones, backups.
    pub fn usable(&self) -> (u32, u32) {
        let usable = |backup: bool| {
            let n = self.proxy.servers.iter().filter(|s| s.backup == backup && s.state.is_usable());
            u32::try_from(n.count()).unwrap_or(u32::MAX)
        };
        (usable(false), usable(true))
    }

    /// The sum of weights of the servers that get requests now, as far as slow start has come with them.
    pub fn total_weight(&self) -> u32 {
        self.sum_of_weights(|s| ramp(s, self.now))
    }

    /// The same sum when every slow start is over.
    pub fn full_weight(&self) -> u32 {
        self.sum_of_weights(|_| None)
    }

    fn sum_of_weights(&self, ramp: impl Fn(&Server) -> Option<(u64, u64)>) -> u32 {
        let weight = |s: &Server| balance::effective_weight(s.state.weight.load(Relaxed), ramp(s));
        let usable = |backup: bool| {
            self.proxy.servers.iter().filter(move |s| s.backup == backup && s.state.is_usable())
        };
        let sum: u32 = if usable(false).next().is_some() {
            usable(false).map(|s| weight(&s)).sum()
        } else if self.proxy.options.allbackups {
            usable(true).map(|s| weight(&s)).sum()
        } else {
            usable(true).next().map_or(0, |s| weight(&s))
        };
        sum.div_ceil(balance::WEIGHT_SCALE)
    }
}

/// Calls `f` with each object that the filter lets through, in the order of the configuration.
pub fn each(shared: &Shared, filter: &Filter, mut f: impl FnMut(Row<'_>)) {
    let (now, wall) = (rt::now(), rt::wall());
    for (index, proxy) in shared.program.proxies.numbered() {
        let proxy = &*proxy;
        if proxy.is_removed() || !wants_proxy(filter, proxy) {
            continue;
        }
        let row = |kind| Row::of(kind, (index, proxy), (shared, filter), (now, wall));
        let wants = |kind: Kind| filter.kinds & kind.bit() != 0;
        let this = |id: u32| filter.id.is_none_or(|wanted| wanted == id);
        if proxy.is_frontend && wants(Kind::Frontend) {
            f(row(Kind::Frontend));
        }
        if proxy.is_frontend && wants(Kind::Listener) && proxy.options.socket_stats {
            for (number, bind) in (1u32..).zip(&proxy.binds).filter(|(_, b)| this(b.state.id)) {
                f(Row { bind: Some((number, bind)), ..row(Kind::Listener) });
            }
        }
        if proxy.is_backend && wants(Kind::Server) {
            let shown = |s: &Server| this(s.state.id) && wants_server(filter, s);
            for server in proxy.present().filter(|s| shown(s)) {
                f(Row { server: Some(&server), ..row(Kind::Server) });
            }
        }
        if proxy.is_backend && wants(Kind::Backend) {
            f(row(Kind::Backend));
        }
    }
}

fn wants_proxy(filter: &Filter, proxy: &Proxy) -> bool {
    !proxy.disabled
        && filter.proxy.is_none_or(|id| id == proxy.state.id)
        && (filter.scope.is_empty() || filter.scope.contains(&proxy.name))
        && (filter.search.is_empty() || proxy.name.contains(&filter.search))
}

fn wants_server(filter: &Filter, server: &Server) -> bool {
    let maint = server.state.admin() & model::server::admin::MAINT != 0;
    (!filter.no_maint || !maint) && (!filter.up || server.state.is_up())
}

/// The server that another one tracks.
pub fn tracked<'p>(program: &'p Program, server: &Server) -> Option<(&'p Proxy, &'p Server)> {
    let (proxy, index) = server.track?;
    // Only servers of the configuration are tracked.
    let proxy = program.proxies.configured(proxy as usize)?;
    Some((proxy, proxy.servers.configured(index as usize)?))
}
