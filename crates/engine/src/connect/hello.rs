//! TLS with a server: what the handshake begins with, and what came of it.

use std::sync::Arc;

use link::handshake::{Refused, number};
use link::transport::Transport;
use model::conn::ConnError;
use model::secured::Secured;
use program::proxy::Proxy;
use program::server::{Server, ServerTls};
use rt::Timer;
use tls::Handshake;

use super::multiplex::Speaks;
use super::{Attempt, classify, withdraws};
use crate::stream::Stream;

/// What a handshake with a server begins with.
pub(super) struct Hello<'a> {
    /// The PROXY header, which goes before it.
    pub(super) header: Option<&'a [u8]>,
    /// The name to send and to check.
    pub(super) name: Option<&'a [u8]>,
    /// In place of the configured protocols.
    pub(super) alpn: Option<Vec<Vec<u8>>>,
    /// The request may go out as early data.
    pub(super) early: bool,
}

/// Whether what a client sent may go to a server as early data (manual, `allow-0rtt` of servers), where the
/// protocol is known before the handshake is over: with several to choose from it is not.
pub(super) fn early(
    stream: &Stream<'_>,
    proxy: &Proxy,
    server: u32,
    tls: &ServerTls,
    speaks: Speaks,
) -> bool {
    let known = match speaks {
        Speaks::Plain | Speaks::H2 | Speaks::Fcgi => true,
        Speaks::H1 => false,
        Speaks::Asks | Speaks::AsksH2 => {
            let spoken = stream.worker.farm.pools.spoke_h2(stream.backend_index(), server);
            spoken && tls.alpn.iter().all(|name| name[..] == *b"h2")
        }
    };
    tls.early && known && !stream.http.refused_early && may_be_early(stream, proxy)
}

/// Whether a copy of what a client sent does no harm: it came as early data itself, or the configuration says
/// that its requests may be repeated.
pub(super) fn may_be_early(stream: &Stream<'_>, proxy: &Proxy) -> bool {
    if !stream.txn.has_req {
        stream.client.look_early();
    }
    stream.client.conn().early.get() || (stream.txn.has_req && proxy.retry_on.early_rejected)
}

/// The name that is sent to a server, and that its certificate has to be for: `sni`, or the host of the
/// request.
pub(super) fn server_name(stream: &Stream<'_>, tls: &ServerTls) -> Option<Box<[u8]>> {
    match &tls.sni {
        Some(sni) => stream
            .evaluate(lang::env::Side::Request, |env| Some(sni.eval(env).ok()?.binary(env.arena).into())),
        None if tls.auto && stream.txn.has_req => {
            let host = stream.txn.req.first("host")?;
            Some(host.split(|c| *c == b':').next()?.into())
        }
        None => None,
    }
}

/// TLS on a new connection, after the PROXY header, which goes in the clear. `timeout connect` holds for it,
/// too.
pub(super) async fn secure(
    stream: &mut Stream<'_>,
    proxy: &Proxy,
    config: &Server,
    tls: &ServerTls,
    how: Hello<'_>,
    socket: &mut Transport,
) -> Result<(), Attempt> {
    if let Some(header) = how.header {
        socket.send_all(header).await.map_err(|e| classify(&e))?;
    }
    if let Err(Refused::Failed(code, ..)) = farm::secure::full(&stream.worker.farm) {
        stream.txn.server_conn.error = ConnError(code);
        return Err(Attempt::Full);
    }
    // A request is retried, or answered with 425; bytes of TCP can only be sent once more.
    let again = !stream.txn.has_req;
    let handshake = match how.early {
        true => Handshake::connect_early(&tls.connector, how.name, how.alpn, again),
        false => Handshake::connect(&tls.connector, how.name, how.alpn),
    };
    let handshake = handshake.map_err(|_| Attempt::Refused)?;
    stream.txn.server_secured = Some(Arc::new(Secured::awaited(tls.connector.highest())));
    let mut timer = Timer::new();
    timer.set_after(stream.txn.overrides.connect.or(proxy.timeouts.connect));
    let mut left = false;
    let sizes = farm::secure::sizes(&stream.worker.shared.program.global.tune);
    let shaken = link::handshake::connect(sizes, socket.raw(), handshake, &mut timer, |cx| {
        left = withdraws(stream, proxy, cx);
        left
    })
    .await;
    // What data overtook is counted when it is over, and what a client's leaving broke off is no failed
    // handshake.
    let early = matches!(&shaken, Ok((tls, _)) if tls.is_early());
    if !early && !left {
        farm::secure::count(&stream.worker.farm, proxy, &config.state, &shaken);
    }
    match shaken {
        Ok((tls, _)) if tls.is_early() => {
            socket.secure_early(*tls);
            Ok(())
        }
        Ok((tls, facts)) => {
            socket.secure(*tls, Some(facts));
            Ok(())
        }
        Err(_) if left => Err(Attempt::Aborted),
        Err(Refused::TimedOut) => Err(Attempt::TimedOut),
        Err(Refused::Failed(code, _, facts)) => {
            tls.connector.forget(how.name);
            stream.txn.server_secured = Some(facts);
            stream.txn.server_conn.error = ConnError(code);
            Err(if code == number::NAME { Attempt::WrongName } else { Attempt::Refused })
        }
    }
}
