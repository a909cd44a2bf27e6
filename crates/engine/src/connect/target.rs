//! Where a connection leads and what it is made with: its address, its options, and what makes it stand in
//! for others.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use base::netns::Namespace;
use model::Peer;
use model::server::Target;
use program::address::{Source, UseSource};
use program::global::Tune;
use program::proxy::{Proxy, Reuse};
use program::server::{Server, ServerNamespace};
use rt::{Addr, ConnectOptions};
use wire::proxy::tlv;

use crate::stream::Stream;
use farm::pool::{Fit, Traits};

/// Where to connect to: the server's address, or for transparent parts of it the client's destination.
pub(super) fn address(stream: &Stream<'_>, server: &Server) -> Option<Addr> {
    let dst = || stream.txn.decisions.dst.unwrap_or_else(|| stream.client.conn().dst.get());
    let target = server.state.target.load();
    let Target::Inet(configured) = &**target else { return link::address::target(&target) };
    let mut addr = *configured;
    if server.transparent {
        // In its own family: an address to connect from may be of that.
        addr.set_ip(dst().ip()?.to_canonical());
    }
    if server.state.mapped.load(Relaxed) {
        // An offset below zero stands there as a number that wraps around.
        addr.set_port(dst().port()?.wrapping_add(addr.port()));
    } else if server.transparent && addr.port() == 0 {
        addr.set_port(dst().port()?);
    }
    Some(Addr::Inet(addr))
}

/// What connections to a server are made with, whoever needs them.
pub fn plain_options(tune: &Tune, proxy: &Proxy, server: Option<&Server>) -> ConnectOptions {
    ConnectOptions {
        keepalive: proxy.options.server_keepalive.map(crate::net::keepalive),
        user_timeout: server.and_then(|s| s.tcp_ut),
        fastopen: server.is_some_and(|s| s.tfo),
        mptcp: server.is_some_and(|s| s.mptcp),
        md5sig: server.and_then(|s| s.md5sig.as_deref()).map(|k| k.as_bytes().to_vec()),
        namespace: server.and_then(|s| s.namespace.without_client()),
        congestion: server.and_then(|s| s.congestion.as_deref()).map(str::to_owned),
        recv_buffer: tune.rcvbuf_server.map(|b| b as usize),
        send_buffer: tune.sndbuf_server.map(|b| b as usize),
        ..ConnectOptions::default()
    }
}

pub(super) fn options(
    stream: &Stream<'_>,
    proxy: &Proxy,
    server: Option<&Server>,
    source: Option<&Source>,
) -> ConnectOptions {
    let tune = &stream.worker.shared.program.global.tune;
    let mut options = ConnectOptions {
        mark: stream.txn.decisions.bc_mark,
        tos: stream.txn.decisions.bc_tos,
        unsent: tune.unsent_server,
        // Without data to go along the acknowledgement goes at once.
        delay_ack: proxy.options.tcp_smart_connect && (stream.txn.has_req || stream.client.has_input()),
        ..plain_options(tune, proxy, server)
    };
    if server.is_some_and(|s| s.namespace == ServerNamespace::Client) {
        options.namespace = client_namespace(stream);
    }
    if let Some(source) = source {
        options.interface = source.interface.as_deref().map(str::to_owned);
        let (addr, transparent) = source_address(stream, source);
        options.source = addr.map(Addr::Inet);
        options.transparent = transparent;
    }
    options
}

/// The network namespace of the client: the one that a PROXY header names, if the configuration names it,
/// too, and else that of the listener.
pub(super) fn client_namespace(stream: &Stream<'_>) -> Option<Namespace> {
    let conn = stream.client.conn();
    let header = conn.proxy_header.borrow();
    let told = header.as_ref().and_then(|h| h.tlvs.iter().find(|(kind, _)| *kind == tlv::NETNS));
    let known = &stream.worker.shared.program.namespaces;
    let told = told.and_then(|(_, name)| Namespace::find(name)).filter(|n| known.contains(n));
    told.or_else(|| stream.frontend().binds.get(stream.client.listener as usize)?.namespace)
}

/// The address to connect from, and whether it is a foreign one.
fn source_address(stream: &Stream<'_>, source: &Source) -> (Option<SocketAddr>, bool) {
    let client = || match stream.txn.decisions.src.unwrap_or_else(|| stream.client.conn().src.get()) {
        Peer::Inet(a) => Some(link::address::plain(a)),
        _ => None,
    };
    match &source.usesrc {
        None => (source.addr.map(|a| with_port(a, source.ports)), false),
        Some(UseSource::Addr(a)) => (Some(*a), true),
        Some(UseSource::Client) => (client(), true),
        Some(UseSource::ClientIp) => (client().map(|a| SocketAddr::new(a.ip(), 0)), true),
        Some(UseSource::Header(name, occurrence)) => {
            let text =
                if *occurrence < 0 { stream.txn.req.last(&**name) } else { stream.txn.req.first(&**name) };
            let ip = text.and_then(|t| std::str::from_utf8(t).ok()?.trim().parse().ok());
            (ip.map(|ip| SocketAddr::new(ip, 0)), true)
        }
    }
}

fn with_port(mut addr: SocketAddr, ports: Option<(u16, u16)>) -> SocketAddr {
    if let Some((low, high)) = ports {
        let span = u64::from(high.saturating_sub(low)) + 1;
        addr.set_port(low.saturating_add((rt::random() % span) as u16));
    }
    addr
}

/// Which requests a connection made for this one may serve. How often the server had been moved was asked
/// before its address.
pub(super) fn fit(
    stream: &Stream<'_>,
    proxy: &Proxy,
    (server, moves): (&Server, u64),
    addr: &Addr,
    name: Option<&[u8]>,
    header: Option<&[u8]>,
) -> Fit {
    let shareable = stream.txn.has_req && proxy.reuse != Reuse::Never;
    let plain = !server.transparent
        && !server.state.mapped.load(Relaxed)
        && server.source.is_none()
        && proxy.source.is_none()
        && server.pool_conn_name.is_none()
        && server.namespace != ServerNamespace::Client
        && name.is_none()
        && header.is_none()
        && stream.txn.decisions.bc_mark.is_none()
        && stream.txn.decisions.bc_tos.is_none();
    if plain {
        return Fit { identity: moves, shareable, moves };
    }
    let source = server.source.as_ref().or(proxy.source.as_ref()).map(|s| source_address(stream, s));
    let (mark, tos) = (stream.txn.decisions.bc_mark, stream.txn.decisions.bc_tos);
    let namespace = (server.namespace == ServerNamespace::Client).then(|| client_namespace(stream)).flatten();
    let with =
        |name: Option<&[u8]>| Traits { addr, moves, source, mark, tos, name, header, namespace }.identity();
    let identity = match &server.pool_conn_name {
        Some(expr) => stream.evaluate(lang::env::Side::Request, |env| {
            // An empty name is none.
            with(expr.eval(env).ok().map(|value| value.binary(env.arena)).filter(|name| !name.is_empty()))
        }),
        None => with(name),
    };
    Fit { identity, shareable, moves }
}

/// The same of one to an address without a server.
pub(super) fn address_fit(stream: &Stream<'_>, proxy: &Proxy, addr: &Addr) -> Fit {
    let source = proxy.source.as_ref().map(|s| source_address(stream, s));
    let (mark, tos) = (stream.txn.decisions.bc_mark, stream.txn.decisions.bc_tos);
    let traits = Traits { addr, moves: 0, source, mark, tos, name: None, header: None, namespace: None };
    Fit { identity: traits.identity(), shareable: false, moves: 0 }
}
