//! Reaching the server of an agent: the connection, perhaps through a SOCKS4 proxy, and TLS on it.

use std::io;

use engine::Worker;
use farm::check;
use link::handshake::{self, Refused};
use link::timed::{self, Failure, Trouble};
use link::transport::Transport;
use program::{Proxy, Server};
use rt::{Addr, ConnectOptions, Timer};
use tls::Handshake;

use super::Fault;

/// Connects, at most for `timeout connect`.
pub async fn connect(
    worker: &Worker,
    proxy: &Proxy,
    at: farm::At,
    config: &Server,
) -> Result<Transport, Fault> {
    let addr = link::address::target(&config.state.target.load()).ok_or(Fault::Unreachable)?;
    let mut timer = Timer::new();
    timer.set_after(proxy.timeouts.connect);
    let first = config.socks4.map(Addr::Inet);
    let began = rt::now();
    let options = options(worker, proxy, config);
    let connected = timed::connect(first.as_ref().unwrap_or(&addr), &options, &mut timer).await;
    let mut socket = connected.map_err(|trouble| match trouble {
        Trouble::TimedOut => Fault::TimedOut,
        // What the system says at once, it says of itself.
        Trouble::Io(e) => classify(&e, rt::now() == began && !matches!(addr, Addr::Inet(_))),
    })?;
    if config.socks4.is_some() {
        let asked = link::socks::connect(socket.raw(), &addr, &mut timer, |_| false).await;
        asked.map_err(|refused| match refused {
            link::socks::Refused::TimedOut => Fault::TimedOut,
            _ => Fault::Refused,
        })?;
    }
    if let Some(tls) = config.tls() {
        if farm::secure::full(&worker.farm).is_err() {
            return Err(Fault::Resource);
        }
        let program = &worker.shared.program;
        let name = tls.sni.as_ref().and_then(|sni| engine::process_vars::constant(program, sni));
        let alpn = Some(tls.alpn.to_vec()).filter(|names| !names.is_empty());
        let begun = Handshake::connect(&tls.connector, name.as_deref(), alpn).map_err(|_| Fault::Refused)?;
        let sizes = farm::secure::sizes(&program.global.tune);
        let shaken = handshake::connect(sizes, socket.raw(), begun, &mut timer, |_| false).await;
        farm::secure::count(&worker.farm, proxy, &config.state, &shaken);
        let (stream, facts) = shaken.map_err(|refused| match refused {
            Refused::TimedOut => Fault::TimedOut,
            Refused::Failed(..) => {
                tls.connector.forget(name.as_deref());
                Fault::Refused
            }
        })?;
        socket.secure(*stream, Some(facts));
    }
    check::observe(&worker.farm, at.proxy, at.server, check::Seen::Connected);
    Ok(socket)
}

fn classify(e: &io::Error, at_once: bool) -> Fault {
    match Failure::of(e) {
        Failure::Resource => Fault::Resource,
        Failure::TimedOut => Fault::TimedOut,
        Failure::Refused if at_once => Fault::Unreachable,
        Failure::Refused => Fault::Refused,
    }
}

/// What the connection is made with. There is no client whose address could be taken.
fn options(worker: &Worker, proxy: &Proxy, config: &Server) -> ConnectOptions {
    let tune = &worker.shared.program.global.tune;
    let source = config.source.as_ref().or(proxy.source.as_ref());
    ConnectOptions {
        interface: source.and_then(|s| s.interface.as_deref()).map(str::to_owned),
        source: source.and_then(|s| s.addr).map(Addr::Inet),
        ..engine::connect::plain_options(tune, proxy, Some(config))
    }
}
