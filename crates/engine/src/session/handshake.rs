//! The TLS handshake of a client, and what is counted of it.

use std::sync::Arc;
use std::time::Duration;

use link::handshake::{self, Rejected};
use model::conn::ConnError;
use model::figures::TlsCounters;
use program::Proxy;
use tls::{Acceptor, Handshake};

use crate::client::Client;
use crate::traced;
use farm::secure::sizes;
use model::trace::{self, level};

/// Without `timeout client-hs` and `timeout client`.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts a connection with TLS whose handshake never began, for the header that it must begin with was none:
/// a failed one, as in HAProxy, unless the client let the time pass (`late`).
pub(super) fn not_begun(client: &Client, proxy: &Proxy, late: bool) {
    client.worker.shared.program.world.process.ssl_rate.add(rt::now().as_millis());
    tls::figures::not_shaken();
    counters(client, proxy).iter().filter(|_| !late).for_each(|c| c.failed.inc());
}

/// Where handshakes of a client count: at its frontend and at its listener.
fn counters<'p>(client: &Client, proxy: &'p Proxy) -> [&'p TlsCounters; 2] {
    let (worker, bind) = (client.worker.index, &proxy.binds[client.listener as usize]);
    [&proxy.state.front.counters.of(worker).tls, &bind.state.counters.of(worker).tls]
}

/// Shakes hands with a client.
///
/// # Errors
/// The connection may not go on: why.
pub(super) async fn shake(
    client: &mut Client,
    proxy: &Proxy,
    acceptor: Arc<Acceptor>,
) -> Result<(), Box<Rejected>> {
    let limit = proxy.timeouts.client_hs.or(proxy.timeouts.client).unwrap_or(PATIENCE);
    client.timer.set_after(Some(limit));
    let worker = client.worker.clone();
    let program = &worker.shared.program;
    let process = &program.world.process;
    process.ssl_rate.add(rt::now().as_millis());
    let counted = counters(client, proxy);
    traced::session(&client.session, &trace::SSL, trace::ssl::NEW, level::STATE, "handshake begins");
    // What came behind the PROXY header is the beginning of the handshake.
    let begun = client.buf.take();
    let begun = begun.as_ref().map(rt::Buf::filled).unwrap_or_default();
    let begun = Handshake::accept(acceptor, begun);
    let (socket, timer, session) = (client.socket.raw(), &mut client.timer, &client.session);
    let ends = || session.kill.get().is_some();
    match handshake::accept(sizes(&program.global.tune), socket, begun, timer, ends).await {
        Ok((stream, facts)) => {
            counted.iter().for_each(|c| c.done(facts.resumed));
            for counters in counted.iter().filter(|_| !facts.resumed) {
                match facts.staple {
                    Some(true) => counters.staples.inc(),
                    Some(false) => counters.failed_staples.inc(),
                    None => {}
                }
            }
            if !facts.resumed {
                process.ssl_front_keys.add(rt::now().as_millis());
            }
            client.conn().early.set(stream.is_early());
            client.conn().set_secured(handshake::secured(*facts));
            client.socket.secure(*stream, None);
            traced::session(
                &client.session,
                &trace::SSL,
                trace::ssl::HANDSHAKE,
                level::PROTO,
                "handshake is done",
            );
            Ok(())
        }
        Err(mut why) => {
            // Who lets the time pass has failed nothing, and was never through.
            let in_time = !why.is_late();
            counted.iter().filter(|_| in_time).for_each(|c| c.failed.inc());
            let conn = client.conn();
            conn.handshake_done.set(in_time.then(rt::now));
            conn.error.set(ConnError(why.number));
            conn.set_secured(std::mem::take(&mut why.facts));
            traced::session(&client.session, &trace::SSL, trace::ssl::ERR, level::ERROR, &why.text);
            Err(Box::new(why))
        }
    }
}
