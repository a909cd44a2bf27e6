//! A client that speaks HTTP/2: its connection yields requests, each of which is served as a client of its
//! own.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use link::transport::Transport;
use model::offers::Share;
use model::proxy::H2Counters;
use model::{Conn, World};
use mux::{Arrival, Host, Settings};
use rt::Timer;

use super::spawn;
use crate::client::{Client, Part, Seat, seat_session};
use crate::departure::is_sent_away;

/// Serves a connection until it ends.
pub(super) async fn serve(mut client: Client) {
    client.conn().http_major.set(2);
    let (buf, timer) = (client.buf.take(), std::mem::replace(&mut client.timer, Timer::new()));
    let (limits, settings, _offer) = settings(&client);
    let mut lead = Lead(Rc::new(client));
    mux::h2::serve(&mut lead, limits, settings, buf, timer).await;
    let Lead(client) = lead;
    if Rc::weak_count(&client) > 0 {
        // Streams that end with the connection tell of it in their log lines: it counts until they have.
        rt::yield_now().await;
    }
    if !client.socket.is_broken() {
        // Each stream that is still at work remembers the connection.
        let alone = Rc::weak_count(&client) == 0;
        rt::boxed(crate::h1::close(&client, true, alone)).await;
    }
}

/// What the connection may do.
fn settings(client: &Client) -> (wire::h2::Limits, Settings, Option<Offer>) {
    let (global, frontend) = (&client.worker.shared.program.global, client.frontend());
    let mut limits = mux::h2::client_limits(global, frontend.options.unsafe_request, rt::queued());
    let offer = Offer::of(client, &mut limits.streams);
    let multiplex = model::conn::Multiplex { limit: limits.streams, ..Default::default() };
    client.conn().multiplex.set(multiplex);
    (limits, settings_of(client), offer)
}

/// What a connection was offered, given back when it ends.
struct Offer(Arc<World>, u32);

impl Offer {
    /// Where all connections share the streams that they offer (`tune.streams-elasticity`).
    fn of(client: &Client, streams: &mut u32) -> Option<Offer> {
        let program = &client.worker.shared.program;
        let (world, percent) = (&program.world, program.global.tune.h2.elasticity);
        let connections = world.process.maxconn.load(Relaxed);
        if percent == 0 {
            return None;
        }
        *streams = world.process.offers.take(*streams, Share { connections, percent });
        Some(Offer(world.clone(), *streams))
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.0.process.offers.back(self.1);
    }
}

fn settings_of(client: &Client) -> Settings {
    let (global, frontend) = (&client.worker.shared.program.global, client.frontend());
    let bind = frontend.binds.get(client.listener as usize);
    let timeouts = &frontend.timeouts;
    Settings {
        log_errors: global.tune.h2.log_errors,
        log_silent: !frontend.options.dontlognull && !frontend.options.http_ignore_probes,
        ping: bind.and_then(|bind| bind.idle_ping),
        client: timeouts.client,
        request: timeouts.http_request,
        keep_alive: timeouts.http_keep_alive,
    }
}

/// The connection that streams are parts of.
struct Lead(Rc<Client>);

impl Host for Lead {
    fn socket(&self) -> &Transport {
        &self.0.socket
    }

    fn conn(&self) -> &Conn {
        self.0.conn()
    }

    fn counters(&self) -> &H2Counters {
        &self.0.frontend().state.front.counters.of(self.0.worker.index).h2
    }

    fn arrive(&mut self, arrival: Arrival) {
        let client = &self.0;
        let Arrival { head, refused, id, link, receipt } = arrival;
        let part = Part { head: Some(head), refused, lead: Rc::downgrade(client), id, receipt };
        let stream = Client::of_stream(seat(client), client.session.clone(), link.into(), part);
        let worker = stream.worker.clone();
        let frontend = worker.shared.program.configured(stream.front);
        spawn(frontend, stream.listener, one(stream));
    }

    fn renew(&mut self) -> Option<Settings> {
        if !self.0.worker.is_superseded() || self.0.session.leaves.get() {
            return None;
        }
        // Streams that are at work remember the connection, and where they began.
        let client = Rc::get_mut(&mut self.0)?;
        client.follow().then(|| settings_of(client))
    }

    fn rests(&self, idle: bool) {
        self.0.session.idle.set(idle);
    }

    fn is_killed(&self) -> bool {
        self.0.session.kill.get().is_some()
    }

    fn is_stopped(&self) -> bool {
        self.0.is_frontend_stopped()
    }

    fn is_sent_away(&self) -> bool {
        is_sent_away(&self.0.worker, &self.0.session)
    }

    fn glitches(&self, more: u32) {
        crate::tracking::glitches(self.0.conn(), more);
    }

    fn malformed(&self) {
        crate::tracking::malformed(self.0.conn());
    }
}

/// Where the next request is served: by the configuration that runs, also while requests of the one before
/// are under way on the connection.
fn seat(client: &Client) -> Seat {
    let own = || Seat { worker: client.worker.clone(), front: client.front, listener: client.listener };
    if !client.worker.is_superseded() || client.session.leaves.get() {
        return own();
    }
    let Some(seat) = client.next_seat() else {
        client.session.leaves.set(true);
        return own();
    };
    if !client.session.is_of(&seat.worker.program) {
        // Whose they are is said in terms of the configuration before.
        client.session.own.take();
        seat_session(&client.session, &seat.worker, seat.front, seat.listener);
    }
    seat
}

/// Serves the request of one stream.
async fn one(mut client: Client) {
    let _ = rt::boxed(crate::http::exchange::run(&mut client)).await;
}
