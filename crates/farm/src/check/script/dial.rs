//! How a check gets its connection: where to, an idle one or a new one, with a PROXY header and TLS as it is
//! asked for.

use std::net::SocketAddr;

use lang::Expr;
use link::handshake::Refused;
use model::check::{CheckResult, CheckStatus};
use model::vars::Owned;
use program::check::{PortFrom, Step};
use program::proto::Proto;
use rt::Addr;

use super::{Script, connect_status, failure, options};
use crate::check::contact::{self, Contact, Trouble};

/// Server name and protocols of TLS.
type Spoken = (Option<Box<str>>, Option<Vec<Vec<u8>>>);

/// A `connect` as the configuration has it.
pub(super) struct Target<'c> {
    pub(super) port: Option<u16>,
    pub(super) addr: Option<SocketAddr>,
    pub(super) send_proxy: bool,
    /// Through the server's SOCKS4 proxy.
    pub(super) socks: bool,
    pub(super) linger: bool,
    /// TLS, with its server name and protocols.
    pub(super) tls: Option<Spoken>,
    /// HTTP/2 without negotiation.
    pub(super) proto: Proto,
    /// The SYN-ACK is acknowledged with what is said next. A check that only connects never lets the server's
    /// program see its connection: the reset that ends it comes instead.
    pub(super) delay_ack: bool,
    /// Where it stands, for messages; nothing for the implicit one.
    pub(super) place: Option<(usize, Option<&'c str>)>,
    /// `connect`, or `connect port 80`.
    pub(super) what: String,
}

impl Script<'_> {
    /// What a `connect` connects to.
    pub(super) fn target<'c>(
        &self,
        step: &Step,
        place: Option<(usize, Option<&'c str>)>,
        delay_ack: bool,
    ) -> Target<'c> {
        let Step::Connect {
            port, addr, send_proxy, default, via_socks4, linger, ssl, sni, alpn, proto, ..
        } = step
        else {
            return Target {
                port: None,
                addr: None,
                send_proxy: false,
                socks: self.check.via_socks4,
                linger: false,
                tls: self.spoken(),
                proto: self.check.proto,
                delay_ack,
                place,
                what: String::new(),
            };
        };
        let (port, what) = match port {
            None => (None, "connect".to_owned()),
            Some(PortFrom::Fixed(port)) => (Some(*port), format!("connect port {port}")),
            Some(PortFrom::Expr(expr)) => (self.port(expr), "connect port (expression)".to_owned()),
        };
        let send_proxy = *send_proxy || *default && self.check.send_proxy;
        let inherited = self.spoken().filter(|_| *default);
        let speaks = *ssl || inherited.is_some();
        let (own_sni, own_alpn) = inherited.unwrap_or_default();
        let tls = speaks.then(|| (sni.clone().or(own_sni), alpn.clone().or(own_alpn)));
        let socks = *via_socks4 || (*default && self.check.via_socks4);
        let proto = proto.unwrap_or(if *default { self.check.proto } else { Proto::Usual });
        Target { port, addr: *addr, send_proxy, socks, linger: *linger, tls, proto, delay_ack, place, what }
    }

    /// The port that an expression names; one that names none leaves the server's.
    pub(super) fn port(&self, expr: &Expr) -> Option<u16> {
        let port = match self.value(expr)? {
            Owned::Int(n) => u16::try_from(n).ok(),
            Owned::Str(t) | Owned::Bin(t) => std::str::from_utf8(&t).ok()?.trim().parse().ok(),
            _ => None,
        };
        port.filter(|p| *p > 0)
    }

    pub(super) fn address(&self, to: &Target<'_>) -> Option<Addr> {
        let own = link::address::target(&self.server.state.target.load());
        let (set_addr, set_port) = {
            let probe = self.server.state.probe.lock();
            (probe.check_addr, probe.check_port.filter(|p| *p > 0))
        };
        let configured = self.check.addr;
        let check_addr =
            set_addr.map(|ip| SocketAddr::new(ip, configured.map_or(0, |a| a.port()))).or(configured);
        let check_port = set_port.or(self.check.port);
        let Some(ip) = to.addr.or(check_addr) else {
            let Some(Addr::Inet(mut a)) = own else { return own };
            a.set_port(to.port.or(check_port).unwrap_or(a.port()));
            return Some(Addr::Inet(a));
        };
        let own = own.as_ref().and_then(Addr::as_inet).map(|a| a.port());
        let given = |a: SocketAddr| (a.port() > 0).then_some(a.port());
        let port = to.port.or_else(|| to.addr.and_then(given)).or(check_port);
        let port = port.or_else(|| check_addr.and_then(given)).or(own)?;
        Some(Addr::Inet(SocketAddr::new(ip.ip(), port)))
    }

    pub(super) async fn connect(&mut self, to: Target<'_>) -> Result<(), CheckResult> {
        self.link = None;
        self.forget();
        let place = match to.place {
            Some((n, comment)) => self.place(n, &to.what, comment),
            None if self.check.ruleset.tcp => " at initial connection step of tcp-check".to_owned(),
            None => String::new(),
        };
        let Some(addr) = self.address(&to) else {
            return Err(failure(CheckStatus::SockErr, format!("No address to connect to{place}")));
        };
        if let Some(link) = self.resume(&to, &addr).await {
            self.timer.set(Some(self.limits.for_answer()));
            self.link = Some(link);
            return Ok(());
        }
        self.timer.set(Some(self.limits.for_connect()));
        let through = self.server.socks4.filter(|_| to.socks).map(Addr::Inet);
        let options =
            rt::ConnectOptions { delay_ack: to.delay_ack, ..options(self.worker, self.at, self.server) };
        let first = through.as_ref().unwrap_or(&addr);
        let mut opened = Contact::open(first, &options, to.linger, &mut self.timer).await;
        if let (Ok(link), Some(_)) = (&opened, &through) {
            let asked = link::socks::connect(link.socket(), &addr, &mut self.timer, |_| false).await;
            if let Err(refused) = asked {
                opened = Err(match refused {
                    link::socks::Refused::Io(e) => Trouble::Io(e),
                    _ => Trouble::TimedOut,
                });
            }
        }
        let mut link = match opened {
            Ok(link) => link,
            Err(Trouble::TimedOut) => return Err(failure(CheckStatus::L4Timeout, place)),
            Err(Trouble::Io(e)) => {
                return Err(failure(connect_status(&e), format!("{}{place}", contact::describe(&e))));
            }
        };
        self.timer.set(Some(self.limits.for_answer()));
        if to.send_proxy {
            let version = self.server.send_proxy.as_ref().map_or(1, |s| s.version);
            let told = self.worker.farm.program.global.never_local;
            proxy_header(&mut link, version, told);
        }
        if let Some((sni, alpn)) = to.tls {
            self.secure(&mut link, sni, alpn, &place).await?;
        }
        let proto = if link.agreed_h2() { Proto::H2 } else { to.proto };
        if self.check.ruleset.http && proto != Proto::Usual {
            if link.flush(&mut self.timer).await.is_err() {
                return Err(failure(CheckStatus::SockErr, place));
            }
            link.multiplex(self.worker, self.at, proto);
        }
        self.link = Some(link);
        Ok(())
    }

    /// An idle connection of the server, where the check may use one. What is set at run time about addresses
    /// of checks speaks against it as what is configured does.
    pub(super) async fn resume(&self, to: &Target<'_>, addr: &Addr) -> Option<Contact> {
        let moved = {
            let probe = self.server.state.probe.lock();
            probe.check_addr.is_some() || probe.check_port.is_some_and(|p| p > 0)
        };
        if !self.check.reuse_pool || to.place.is_some() || moved {
            return None;
        }
        let proxy = &*self.worker.farm.program.proxy(self.at.proxy);
        let auto = to.tls.as_ref().and_then(|_| self.host());
        let name = self.check.pool_name.as_deref().or(auto.as_deref());
        let idle = crate::pool::idle_for_check(self.worker, proxy, self.at, addr, name).await?;
        Some(Contact::resume(idle))
    }

    /// What connections speak unasked.
    pub(super) fn spoken(&self) -> Option<Spoken> {
        self.check.tls.then(|| (self.check.sni.clone(), self.check.alpn.clone()))
    }

    /// The same where no rule says how to connect: the host asked for is the server's name.
    pub(super) fn spoken_first(&self) -> Option<Spoken> {
        let (sni, alpn) = self.spoken()?;
        Some((sni.or_else(|| self.host()), alpn))
    }

    /// The host that the first request asks for, if it is to be the server's name (`check-sni-auto`).
    pub(super) fn host(&self) -> Option<Box<str>> {
        let steps = self.check.ruleset.steps.iter().filter(|_| self.check.sni_auto);
        let headers = steps.filter_map(|s| match s {
            Step::SendHttp { headers, .. } => Some(headers),
            _ => None,
        });
        let (_, host) = headers.take(1).flatten().find(|(name, _)| name.eq_ignore_ascii_case(b"host"))?;
        let host = self.text(host);
        let name = host.split(|c| *c == b':').next().filter(|n| !n.is_empty())?;
        Some(std::str::from_utf8(name).ok()?.into())
    }

    /// What a connection that stands is worth.
    pub(super) fn connected(&self) -> CheckStatus {
        match self.link.as_ref().is_some_and(Contact::is_secure) {
            true => CheckStatus::L6Ok,
            false => CheckStatus::L4Ok,
        }
    }

    pub(super) async fn secure(
        &mut self,
        link: &mut Contact,
        sni: Option<Box<str>>,
        alpn: Option<Vec<Vec<u8>>>,
        place: &str,
    ) -> Result<(), CheckResult> {
        let Some(connector) = &self.check.connector else { return Ok(()) };
        // A PROXY header goes in the clear.
        if link.flush(&mut self.timer).await.is_err() {
            return Err(failure(CheckStatus::SockErr, place.to_owned()));
        }
        let name = sni.as_ref().map(|n| n.as_bytes());
        let Ok(handshake) = tls::Handshake::connect(connector, name, alpn) else {
            return Err(failure(CheckStatus::L6Rsp, place.to_owned()));
        };
        let (worker, server) = (self.worker, &self.server.state);
        let proxy = &*worker.farm.program.proxy(self.at.proxy);
        let count = |shaken: &_| crate::secure::count(worker, proxy, server, shaken);
        match link.secure(worker, handshake, &mut self.timer, count).await {
            Ok(()) => Ok(()),
            Err(Refused::TimedOut) => Err(failure(CheckStatus::L6Timeout, place.to_owned())),
            Err(Refused::Failed(_, text, _)) => {
                connector.forget(name);
                Err(failure(CheckStatus::L6Rsp, format!("{text}{place}")))
            }
        }
    }
}

/// Version 1 names this very connection, version 2 says that it is the proxy's own.
fn proxy_header(link: &mut Contact, version: u8, told: bool) {
    let end = |a: std::io::Result<Addr>| a.ok().as_ref().and_then(Addr::as_inet);
    let (src, dst) = (end(link.socket().local_addr()), end(link.socket().peer_addr()));
    if version == 1 {
        wire::proxy::v1(src.zip(dst), link.out());
    } else {
        wire::proxy::v2(src.zip(dst).filter(|_| told), &wire::proxy::V2Options::default(), link.out());
    }
}
