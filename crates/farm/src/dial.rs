//! A connection as a `server` line asks for it, made by the process itself: to name servers, rings and
//! servers of logs. Whatever of the line needs a client's connection says nothing here.

use link::transport::Transport;
use link::{handshake, socks, timed};
use program::address::Source;
use program::global::Tune;
use program::server::{Plain, ServerTls};
use rt::{Addr, ConnectOptions, Timer};
use tls::Handshake;

/// What a line says of its connections.
#[derive(Clone, Copy)]
pub struct Line<'l> {
    /// TLS, with the name to send and to check (`sni`).
    pub tls: Option<(&'l ServerTls, Option<&'l [u8]>)>,
    /// Its other words.
    pub plain: &'l Plain,
    /// `source`.
    pub source: Option<&'l Source>,
}

/// Connects to an address, through a proxy and with TLS where the line says so; `None`: it can't be had now.
pub async fn connect(addr: &Addr, line: Line<'_>, tune: &Tune, timer: &mut Timer) -> Option<Transport> {
    let proxy = line.plain.socks4.map(Addr::Inet);
    if proxy.is_some() && !socks::leads_to(addr) {
        return None;
    }
    let mut transport = timed::connect(proxy.as_ref().unwrap_or(addr), &line.options(), timer).await.ok()?;
    if proxy.is_some() {
        socks::connect(transport.raw(), addr, timer, |_| false).await.ok()?;
    }
    if let Some((tls, name)) = line.tls {
        let alpn = Some(tls.alpn.to_vec()).filter(|names| !names.is_empty());
        let begun = Handshake::connect(&tls.connector, name, alpn).ok()?;
        let sizes = crate::secure::sizes(tune);
        let shaken = handshake::connect(sizes, transport.raw(), begun, timer, |_| false).await;
        let (stream, facts) = shaken.ok()?;
        transport.secure(*stream, Some(facts));
    }
    Some(transport)
}

impl Line<'_> {
    fn options(&self) -> ConnectOptions {
        let (plain, source) = (self.plain, self.source);
        ConnectOptions {
            user_timeout: plain.tcp_ut,
            fastopen: plain.tfo,
            mptcp: plain.mptcp,
            namespace: plain.namespace.without_client(),
            md5sig: plain.md5sig.as_deref().map(|key| key.as_bytes().to_vec()),
            congestion: plain.congestion.as_deref().map(str::to_owned),
            interface: source.and_then(|s| s.interface.as_deref()).map(str::to_owned),
            source: source.and_then(|s| s.addr).map(Addr::Inet),
            ..ConnectOptions::default()
        }
    }
}
