//! TCP mode: one stream for the whole connection.

use std::pin::pin;
use std::task::Context;
use std::time::Duration;

use lang::env::Side;
use link::pump::{Break, End, Framing, Half};
use model::term::{Cause, Phase};
use program::Proxy;
use program::proxy::Mode;
use rt::Timer;

use crate::choose::{self, Wish};
use crate::client::Client;
use crate::connect;
use crate::duplex::{Duplex, EndPolicy, Way, drive};
use crate::http::{Next, Owed};
use crate::losses;
use crate::silence;
use crate::stream::Stream;
use crate::{debug, points, traced};
use content::Verdict;
use model::trace::{self, level};

mod content;
pub mod question;

/// How a session ended, or how it goes on.
enum Outcome {
    /// It is over.
    Over,
    /// It is over before anything was passed on.
    Cut,
    /// It goes on as HTTP: a rule said so, or the backend speaks it.
    Http,
    /// It goes on as HTTP/2.
    Http2,
}

/// Serves a connection in TCP mode. When it turned to HTTP its first request has been served: what becomes of
/// the connection, and what the client still owes of that request.
pub async fn serve(client: &mut Client) -> Option<(Next, Owed)> {
    let session = client.session.clone();
    let worker = client.worker.clone();
    let work = async {
        let work = pin!(session_of(client));
        crate::calls::serve(&worker, &session, work).await
    };
    rt::boxed(work).await
}

async fn session_of(client: &mut Client) -> Option<(Next, Owed)> {
    let mut stream = Stream::new(client);
    stream.txn.times.idle_from = stream.client.conn().handshake_done.get();
    stream.heard = stream.txn.times.idle_from.unwrap_or(stream.heard);
    stream.upload = Half::new(Framing::Close);
    // What came behind a header of the PROXY protocol is there already.
    stream.txn.up.received = stream.client.buf.as_ref().map_or(0, |buf| buf.len() as u64);
    stream.txn.awaits_http = stream.frontend().log.looks_at_http;
    stream.number();
    crate::filter::started(&mut stream, false);
    points::stream(&stream, &trace::STREAM, trace::stream::NEW, level::STATE, "new stream");
    debug::accepted(&mut stream);
    traced::session(&stream.client.session, &trace::PT, trace::pt::NEW, level::STATE, "new connection");
    let outcome = steps(&mut stream).await;
    let text = "connection is over";
    traced::session(&stream.client.session, &trace::PT, trace::pt::END, level::STATE, text);
    crate::http::forget(&mut stream);
    match outcome {
        Outcome::Http => Some(crate::http::run_upgraded(&mut stream).await),
        Outcome::Http2 => {
            stream.client.conn().requests.set(0);
            Some((Next::Http2, None))
        }
        outcome => {
            // `option dontlognull` is silent about a client that said nothing, also where a rule refuses it.
            stream.txn.null |= stream.txn.up.received + stream.upload.received == 0;
            crate::finish::run(&mut stream);
            match outcome {
                Outcome::Cut => swallow(stream.client),
                _ => crate::h1::say_end(stream.client),
            }
            None
        }
    }
}

/// Ends the stream towards the client and takes what it sent and nobody read: left where it is, it would turn
/// the close into a reset before the end was seen.
fn swallow(client: &Client) {
    if client.session.vanished.get() {
        return;
    }
    let left = matches!(client.socket.try_recv(&mut [0; 4096]), Some(Ok(0)));
    // With `option nolinger` a client that has closed its side is reset.
    if !(left && client.frontend().options.nolinger) {
        let _ = client.socket.shutdown_write();
    }
}

async fn steps(stream: &mut Stream<'_>) -> Outcome {
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let front = program.configured(stream.client.front);
    crate::http::captures::declared(stream);
    crate::log::accepted(stream);
    // What came along with the connection is there at once, and so is a reset.
    stream.client.socket.raw().assume_readable();
    let broken = look(stream).is_err();
    match content::first(stream, front).await {
        Verdict::Go => {}
        Verdict::Stop => return Outcome::Cut,
        Verdict::Switch(h2) => return may_upgrade(stream, h2),
    }
    let Some(backend) = chosen(stream, front) else {
        if stream.service.is_some() {
            return served(stream, front).await;
        }
        stream.txn.null = !stream.client.has_input();
        stream.end(Cause::ServerAbort, Phase::Connect);
        return Outcome::Cut;
    };
    stream.set_backend(backend);
    crate::filter::sent_to(stream, backend);
    let back = &*program.proxy(backend);
    match back.mode {
        Mode::Http => return may_upgrade(stream, None),
        Mode::Log | Mode::Spop => return misled(stream),
        Mode::Tcp => {}
    }
    if backend != stream.client.front && !content::of_backend(stream, back).await {
        return Outcome::Cut;
    }
    if stream.service.is_some() {
        return served(stream, front).await;
    }
    if broken || stream.client.socket.raw().is_reset() {
        gone(stream, Cause::ClientAbort);
        return Outcome::Cut;
    }
    if silence::is_late(stream) {
        gone(stream, Cause::ClientTimeout);
        return Outcome::Cut;
    }
    let mut wish = Wish { fixed: choose::bound(stream), ..Wish::default() };
    if let Err(failed) = connect::reach(stream, &mut wish).await {
        unreached(stream, &failed);
        return Outcome::Cut;
    }
    debug::reached(stream);
    crate::http::forget(stream);
    crate::log::response_known(stream);
    crate::log::step(stream, model::Origin::Connect);
    if !content::of_server(stream, back).await {
        return Outcome::Cut;
    }
    crate::stick::store_response(stream, back);
    pump(stream, front, back).await;
    stream.txn.null = stream.txn.up.received + stream.upload.received == 0;
    crate::http::early::note_server(stream);
    Outcome::Over
}

/// No server was reached.
fn unreached(stream: &mut Stream<'_>, failed: &connect::Failed) {
    let (cause, phase) = match stream.client.session.kill.get() {
        Some(killed) => (killed, Phase::Connect),
        None => failed.reason(),
    };
    // What the client said counts though nobody took it.
    let _ = look(stream);
    // `option dontlognull` is silent about a client that said nothing, whatever kept it from a server.
    stream.txn.null = !stream.client.has_input();
    let socket = &stream.client.socket;
    let broken = phase == Phase::Queue && socket.is_broken() || socket.raw().is_reset();
    if cause == Cause::ClientAbort && broken {
        // A connection that broke ends the stream wherever it is.
        count_abort(stream, cause);
        stream.end(cause, Phase::Data);
    }
    // Who had left without a word before has broken nothing off.
    if !matches!(failed, connect::Failed::Connect(connect::Attempt::Left)) || stream.client.has_input() {
        stream.end(cause, phase);
    }
}

/// The backend of the stream. A service takes the place of a server, not that of the backend, whose rules
/// have a say, too; one of HTTP has no use for it.
fn chosen(stream: &mut Stream<'_>, front: &Proxy) -> Option<u32> {
    if !front.switching.is_empty() {
        crate::http::peek(stream);
    }
    let backend = choose::backend(stream)?;
    let speaks = stream.service.is_none() || stream.worker.shared.program.proxy(backend).mode == Mode::Tcp;
    speaks.then_some(backend)
}

/// Lets a service serve the stream, as a server would.
async fn served(stream: &mut Stream<'_>, front: &Proxy) -> Outcome {
    let worker = stream.worker.clone();
    let back = &*worker.shared.program.proxy(stream.backend_index());
    if let Err(failed) = connect::reach(stream, &mut Wish::default()).await {
        let (cause, phase, _) = failed.explain();
        stream.end(cause, phase);
        return Outcome::Cut;
    }
    crate::log::response_known(stream);
    crate::log::step(stream, model::Origin::Connect);
    pump(stream, front, back).await;
    stream.txn.null = stream.txn.up.received + stream.upload.received == 0;
    Outcome::Over
}

/// A listener that was told `proto none` stays with TCP.
fn may_upgrade(stream: &mut Stream<'_>, h2: Option<bool>) -> Outcome {
    let listener = stream.client.listener as usize;
    if stream.frontend().binds.get(listener).is_some_and(|b| b.raw) {
        stream.end(Cause::Proxy, Phase::Request);
        return Outcome::Over;
    }
    if h2 == Some(true) {
        return Outcome::Http2;
    }
    stream.http.only_h1 |= h2 == Some(false);
    Outcome::Http
}

/// Takes what has come already, if anything: rules that look at content without an `inspect-delay` find that
/// much.
///
/// # Errors
/// The connection is broken.
fn look(stream: &mut Stream<'_>) -> Result<(), Broken> {
    let client = &mut *stream.client;
    let buf = client.buf.get_or_insert_default();
    let room = buf.spare_within(content::most(&client.worker.shared.program));
    if room.is_empty() {
        return Ok(());
    }
    let read = client.socket.try_recv(room);
    if let Some(Ok(n)) = read {
        buf.advance(n);
        stream.txn.up.received += n as u64;
    }
    if buf.is_empty() {
        client.buf = None;
        stream.http.left_early |= matches!(read, Some(Ok(0)));
    }
    if matches!(read, Some(Err(_))) { Err(Broken) } else { Ok(()) }
}

/// The client's connection is broken.
struct Broken;

/// Only a name made at run time leads to a backend whose servers have nothing to say to clients.
fn misled(stream: &mut Stream<'_>) -> Outcome {
    stream.end(Cause::Internal, Phase::Request);
    Outcome::Cut
}

/// The client reset its connection, or was silent for too long, before anything was done for it.
fn gone(stream: &mut Stream<'_>, cause: Cause) {
    let worker = stream.worker.index;
    let front = stream.frontend();
    front.state.front.counters.of(worker).req_errors.inc();
    let listener = stream.client.listener as usize;
    front.binds[listener].state.counters.of(worker).req_errors.inc();
    stream.backend().state.back.counters.of(worker).client_aborts.inc();
    stream.txn.null = !stream.client.has_input();
    stream.end(cause, Phase::Request);
}

/// The other side has closed: from now on the time of this one is `fin`, if there is such, and it began when
/// it was last heard of.
fn shorten(timer: &mut Timer, limit: &mut Option<Duration>, fin: Option<Duration>) {
    let Some(fin) = fin else { return };
    let seen = timer.deadline().zip(*limit).map_or_else(rt::now, |(at, limit)| at.saturating_sub(limit));
    *limit = Some(fin);
    timer.set(Some(seen + fin));
}

/// Moves bytes both ways until both sides are done, or one is no more.
async fn pump(stream: &mut Stream<'_>, front: &Proxy, back: &Proxy) {
    let tunnel = back.timeouts.tunnel;
    let client_limit = stream.client_limit();
    let server_limit = stream.server_limit();
    // A tunnel begins when nothing is left to inspect, which is now.
    let limits = (tunnel.or(client_limit), tunnel.or(server_limit));
    // A client that has said nothing has been silent since it came; one that had to wait for its server for
    // longer begins anew.
    let came = stream.txn.times.idle_from.filter(|_| stream.txn.up.received == 0);
    let over = limits.0.zip(came).map(|(limit, came)| came + limit).filter(|at| *at > rt::now());
    stream.client.timer.set(over.or_else(|| limits.0.map(|limit| rt::now() + limit)));
    stream.server_timer.set_after(limits.1);
    let mut down = Half::new(Framing::Close);
    down.splice = crate::http::splices(stream, front, back, false);
    stream.upload.splice = crate::http::splices(stream, front, back, true);
    if let Some((chain, outer)) = crate::filter::of_tcp(stream, Side::Request) {
        stream.upload.pass_through(chain, outer);
    }
    if let Some((chain, outer)) = crate::filter::of_tcp(stream, Side::Response) {
        down.pass_through(chain, outer);
    }
    let pipes = !stream.worker.shared.program.global.disabled.splice;
    (down.bulk_pipes, stream.upload.bulk_pipes) = (pipes, pipes);
    let mut duplex = Duplex { down: &mut down, up_done: false, down_done: false, limits };
    let mut policy = TwoSides { front, back, late: None };
    let outcome = drive(stream, &mut duplex, &mut policy, (front, back)).await;
    let late = policy.late;
    if late.is_some() && matches!(outcome, BothEnd::Broken(Cause::ServerAbort, _)) {
        // The time of one side was over, and then the other broke its connection.
        losses::broken(stream);
        stream.txn.server_conn.error = model::conn::ConnError::RESET;
    }
    stream.txn.down.received += down.received;
    stream.txn.down.sent += down.sent;
    stream.txn.down.wire_out += down.sent;
    crate::finish::count_spliced(stream, &down);
    let broken = match outcome {
        _ if late.is_some() => late,
        BothEnd::Whole => None,
        BothEnd::Broken(cause, phase) => Some((cause, phase)),
    };
    if let Some((cause, phase)) = broken {
        // Neither side shall take what it got for the whole.
        stream.client.socket.mute();
        if let Some(up) = &stream.upstream {
            up.socket.mute();
        }
        count_abort(stream, cause);
        stream.end(cause, phase);
    }
}

/// How both sides of a connection of TCP ended.
enum BothEnd {
    Whole,
    Broken(Cause, Phase),
}

/// A connection of TCP: it ends with its second side.
struct TwoSides<'p> {
    front: &'p Proxy,
    back: &'p Proxy,
    /// A side that says nothing for too long counts as one that closed; the other side's time goes on.
    late: Option<(Cause, Phase)>,
}

impl TwoSides<'_> {
    /// What a side that is late ends.
    fn all_late(&self) -> BothEnd {
        self.late.map_or(BothEnd::Whole, |(cause, phase)| BothEnd::Broken(cause, phase))
    }

    fn client_closed(&self, duplex: &mut Duplex<'_>, stream: &mut Stream<'_>) -> Option<BothEnd> {
        if self.back.options.nolinger {
            // Not even its answer is waited for: the connection to the server is reset as the stream ends.
            return Some(BothEnd::Whole);
        }
        duplex.up_done = true;
        shut_server(stream);
        match self.back.timeouts.server_fin {
            None => stream.server_timer.set_after(duplex.limits.1),
            fin => shorten(&mut stream.server_timer, &mut duplex.limits.1, fin),
        }
        None
    }

    fn server_closed(&self, duplex: &mut Duplex<'_>, stream: &mut Stream<'_>) -> Option<BothEnd> {
        duplex.down_done = true;
        // With `option nolinger` a client that has closed its side is reset.
        if !(self.front.options.nolinger && stream.upload.eof) {
            let _ = stream.client.socket.shutdown_write();
        }
        match self.front.timeouts.client_fin {
            None => stream.client.timer.set_after(duplex.limits.0),
            fin => shorten(&mut stream.client.timer, &mut duplex.limits.0, fin),
        }
        None
    }
}

/// Tells the server that no more comes.
fn shut_server(stream: &Stream<'_>) {
    if let Some(up) = &stream.upstream {
        let _ = up.socket.shutdown_write();
    }
}

impl EndPolicy for TwoSides<'_> {
    type Over = BothEnd;

    const FIRST: Way = Way::Up;

    fn killed(&mut self, cause: Cause) -> BothEnd {
        BothEnd::Broken(cause, Phase::Connect)
    }

    fn cut_off(&mut self) -> BothEnd {
        BothEnd::Whole
    }

    fn came(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        way: Way,
        end: Result<End, Break>,
    ) -> Option<BothEnd> {
        let broken = |cause| Some(BothEnd::Broken(cause, Phase::Data));
        match (way, end) {
            (Way::Up, Ok(_)) => self.client_closed(duplex, stream),
            (Way::Down, Ok(_)) => self.server_closed(duplex, stream),
            (Way::Up, Err(Break::Write(_))) => broken(Cause::ServerAbort),
            (Way::Down, Err(Break::Write(_))) => broken(Cause::ClientAbort),
            (Way::Up, Err(_)) => broken(Cause::ClientAbort),
            (Way::Down, Err(_)) => broken(Cause::ServerAbort),
        }
    }

    fn look(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        cx: &mut Context<'_>,
    ) -> Option<BothEnd> {
        if duplex.up_done && duplex.down_done {
            return Some(BothEnd::Whole);
        }
        // The server closed first, and then refused what the client still sent. One behind a Unix socket that
        // closes is gone in both directions at once; that refuses nothing yet.
        let up = stream.upstream.as_ref().filter(|_| duplex.down_done && self.late.is_none())?;
        up.socket.poll_reset(cx).is_ready().then_some(BothEnd::Broken(Cause::ServerAbort, Phase::Data))
    }

    fn late(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        cx: &mut Context<'_>,
    ) -> Option<BothEnd> {
        // Who does not take what waits for him ends the stream; who is only silent ends what he sends.
        if (duplex.down.blocked || !duplex.up_done && !stream.upload.blocked)
            && stream.client.timer.poll_expired(cx).is_ready()
        {
            self.late = self.late.or(Some((Cause::ClientTimeout, Phase::Data)));
            if duplex.down.blocked || self.back.options.nolinger {
                return Some(self.all_late());
            }
            duplex.up_done = true;
            shut_server(stream);
            shorten(&mut stream.server_timer, &mut duplex.limits.1, self.back.timeouts.server_fin);
        }
        if (stream.upload.blocked || !duplex.down_done && !duplex.down.blocked)
            && stream.server_timer.poll_expired(cx).is_ready()
        {
            self.late = self.late.or(Some((Cause::ServerTimeout, Phase::Data)));
            if stream.upload.blocked {
                return Some(self.all_late());
            }
            duplex.down_done = true;
            let _ = stream.client.socket.shutdown_write();
            shorten(&mut stream.client.timer, &mut duplex.limits.0, self.front.timeouts.client_fin);
        }
        (duplex.up_done && duplex.down_done).then(|| self.all_late())
    }
}

fn count_abort(stream: &Stream<'_>, cause: Cause) {
    match cause {
        Cause::ClientAbort | Cause::ClientTimeout => losses::client_abort(stream),
        Cause::ServerAbort => {
            losses::broken(stream);
            losses::server_abort(stream);
        }
        Cause::ServerTimeout => losses::server_abort(stream),
        _ => {}
    }
}
