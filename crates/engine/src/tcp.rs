//! TCP mode: one stream for the whole connection.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lang::RuleSet;
use lang::action::{Flow, Fulfilled, Need};
use lang::env::Side;
use lang::rules::{Position, Run};
use model::term::{Cause, Phase};
use program::Proxy;
use program::proxy::Mode;
use rt::{Buf, Timer};

use crate::choose::{self, Wish};
use crate::connect;
use crate::h1::{Next, Owed};
use crate::losses;
use crate::pump::{Break, Framing, Half};
use crate::session::Client;
use crate::silence;
use crate::stream::Stream;

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

/// Serves a connection in TCP mode. When it turned to HTTP its first request has been served: what becomes of the
/// connection, and what the client still owes of that request.
pub async fn serve(client: &mut Client) -> Option<(Next, Owed)> {
    let session = client.session.clone();
    let worker = client.worker.clone();
    let work = async {
        let work = pin!(session_of(client));
        crate::sessions::serve(&worker, &session, work).await
    };
    rt::boxed(work).await
}

async fn session_of(client: &mut Client) -> Option<(Next, Owed)> {
    let mut stream = Stream::new(client);
    stream.txn.times.idle_from = stream.client.conn().handshake_done.get();
    stream.heard = stream.txn.times.idle_from.unwrap_or(stream.heard);
    stream.upload = Half::new(Framing::Close);
    stream.number();
    crate::filter::started(&stream);
    let outcome = steps(&mut stream).await;
    crate::h1::forget(&mut stream);
    match outcome {
        Outcome::Http => Some(crate::h1::run_upgraded(&mut stream).await),
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

/// Ends the stream towards the client and takes what it sent and nobody read: left where it is, it would turn the close
/// into a reset before the end was seen.
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
    let front = program.configured(stream.client.conn().frontend);
    crate::h1::captures::declared(stream);
    crate::log::accepted(stream);
    // What came along with the connection is there at once, and so is a reset.
    stream.client.socket.raw().assume_readable();
    let broken = look(stream).is_err();
    match rules(stream, &front.rules.tcp_content, Side::Request, front.timeouts.inspect_request).await {
        Verdict::Go => {}
        Verdict::Stop => return Outcome::Cut,
        Verdict::Switch(h2) => return may_upgrade(stream, h2),
    }
    if !front.switching.is_empty() {
        crate::h1::peek(stream);
    }
    let Some(backend) = choose::backend(stream) else {
        stream.txn.null = !stream.client.has_input();
        stream.end(Cause::ServerAbort, Phase::Connect);
        return Outcome::Cut;
    };
    stream.set_backend(backend);
    let back = &*program.proxy(backend);
    if back.mode == Mode::Http {
        return may_upgrade(stream, None);
    }
    if backend != stream.client.conn().frontend
        && !goes(stream, &back.rules.tcp_content, Side::Request, back.timeouts.inspect_request).await
    {
        return Outcome::Cut;
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
        let (cause, phase, _) = failed.explain();
        // What the client said counts though nobody took it.
        let _ = look(stream);
        // `option dontlognull` is silent about a client that said nothing, whatever kept it from a server.
        stream.txn.null = !stream.client.has_input();
        let broken = phase == Phase::Queue || stream.client.socket.raw().is_reset();
        if cause == Cause::ClientAbort && broken {
            // A connection that broke ends the stream wherever it is; so does the wait in a queue only that way.
            count_abort(stream, cause);
            stream.end(cause, Phase::Data);
        }
        // Who had left without a word before has broken nothing off.
        if !matches!(failed, connect::Failed::Connect(connect::Attempt::Left)) || stream.client.has_input() {
            stream.end(cause, phase);
        }
        return Outcome::Cut;
    }
    crate::h1::forget(stream);
    crate::log::response_known(stream);
    crate::log::step(stream, model::Origin::Connect);
    if !back.rules.tcp_response.is_empty() {
        pass_first(stream).await;
    }
    if !goes(stream, &back.rules.tcp_response, Side::Response, back.timeouts.inspect_response).await {
        return Outcome::Cut;
    }
    crate::stick::store_response(stream, back);
    pump(stream, front, back).await;
    stream.txn.null = stream.txn.up.received + stream.upload.received == 0;
    crate::h1::early::note_server(stream);
    Outcome::Over
}

/// What the client has said by now is with the server before rules on the server's answers decide anything.
async fn pass_first(stream: &mut Stream<'_>) {
    poll_fn(|cx| {
        if let Some(up) = stream.upstream.as_mut() {
            let client = &mut *stream.client;
            // How this direction ends is for the pump to find again.
            let _ =
                stream.upload.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket);
        }
        Poll::Ready(())
    })
    .await;
}

/// A listener that was told `proto none` stays with TCP.
fn may_upgrade(stream: &mut Stream<'_>, h2: Option<bool>) -> Outcome {
    let listener = stream.client.conn().listener as usize;
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

/// What content rules say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Go,
    Stop,
    /// To HTTP; `proto`.
    Switch(Option<bool>),
}

/// Runs content rules that can't change the mode; whether the stream may go on.
async fn goes(stream: &mut Stream<'_>, set: &RuleSet, side: Side, inspect: Option<Duration>) -> bool {
    rules(stream, set, side, inspect).await == Verdict::Go
}

/// Runs content rules.
async fn rules(stream: &mut Stream<'_>, set: &RuleSet, side: Side, inspect: Option<Duration>) -> Verdict {
    if set.is_empty() {
        return Verdict::Go;
    }
    let deadline = inspect.map(|d| rt::now() + d);
    let (mut from, mut last, mut resumed) = (Position(0), inspect.is_none(), None);
    loop {
        if side == Side::Request {
            crate::h1::peek(stream);
        }
        match stream.run_resumed(set, side, from, last, resumed.take()) {
            Run::Done => return Verdict::Go,
            Run::Decided(flow, _) => return decide(stream, flow, side),
            Run::Waits(Flow::Yield(need), at) => {
                from = at;
                match need {
                    Need::Data if side == Side::Request => last = !more_data(stream, deadline).await,
                    Need::Data => last = !more_response(stream, deadline).await,
                    Need::Delay(d) => {
                        rt::sleep(d).await;
                        resumed = Some(Fulfilled::Done);
                    }
                    // There is no message in TCP, and what comes before the first byte was there.
                    Need::Body { .. }
                    | Need::Interim(_)
                    | Need::Handshake
                    | Need::ProxyHeader
                    | Need::CipHeader => {
                        resumed = Some(Fulfilled::Failed);
                    }
                }
            }
            Run::Waits(..) => return Verdict::Go,
        }
    }
}

fn decide(stream: &mut Stream<'_>, flow: Flow, side: Side) -> Verdict {
    let phase = match flow {
        Flow::Next | Flow::Accept | Flow::Yield(_) => return Verdict::Go,
        Flow::SwitchToHttp { h2 } => return Verdict::Switch(h2),
        Flow::CloseServer => return Verdict::Stop,
        Flow::SilentDrop { rst_ttl } => {
            stream.client.vanish(rst_ttl);
            Phase::Request
        }
        _ if side == Side::Response => Phase::Data,
        _ => Phase::Request,
    };
    crate::h1::denied(stream, side == Side::Response, true);
    stream.end(Cause::Proxy, phase);
    Verdict::Stop
}

/// Takes what has come already, if anything: rules that look at content without an `inspect-delay` find that much.
///
/// # Errors
/// The connection is broken.
fn look(stream: &mut Stream<'_>) -> Result<(), Broken> {
    let client = &mut *stream.client;
    let buf = client.buf.get_or_insert_default();
    if buf.is_full() {
        return Ok(());
    }
    let read = client.socket.try_recv(buf.spare_mut());
    if let Some(Ok(n)) = read {
        buf.advance(n);
        stream.txn.up.received += n as u64;
    }
    if buf.is_empty() {
        client.buf = None;
    }
    if matches!(read, Some(Err(_))) { Err(Broken) } else { Ok(()) }
}

/// The client's connection is broken.
struct Broken;

/// The client reset its connection, or was silent for too long, before anything was done for it.
fn gone(stream: &mut Stream<'_>, cause: Cause) {
    let worker = stream.worker.index;
    let front = stream.frontend();
    front.state.front.counters.of(worker).req_errors.inc();
    let listener = stream.client.conn().listener as usize;
    front.binds[listener].state.counters.of(worker).req_errors.inc();
    stream.backend().state.back.counters.of(worker).client_aborts.inc();
    stream.txn.null = !stream.client.has_input();
    stream.end(cause, Phase::Request);
}

/// Waits for more of what the client sends; whether it came before the deadline, and before the client was silent for too long.
async fn more_data(stream: &mut Stream<'_>, deadline: Option<rt::Mono>) -> bool {
    if stream.client.buf.as_ref().is_some_and(Buf::is_full) {
        return false;
    }
    // Which of the two it was is asked when the rules are through.
    stream.client.timer.set(deadline.into_iter().chain(silence::deadline(stream)).min());
    match stream.receive().await {
        Ok(n) if n > 0 => {
            stream.txn.up.received += n as u64;
            true
        }
        _ => false,
    }
}

/// Waits for more of what the server sends, while what the client sends goes on its way; whether more came before the
/// deadline.
async fn more_response(stream: &mut Stream<'_>, deadline: Option<rt::Mono>) -> bool {
    stream.server_timer.set(deadline);
    poll_fn(|cx| {
        let Some(up) = stream.upstream.as_mut() else { return Poll::Ready(false) };
        if stream.client.session.kill.get().is_some() {
            return Poll::Ready(false);
        }
        let client = &mut *stream.client;
        // How this direction ends is for the pump to find again.
        let _ = stream.upload.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket);
        let buf = up.buf.get_or_insert_default();
        if buf.spare() == 0 {
            return Poll::Ready(false);
        }
        match up.socket.poll_recv(cx, buf.spare_mut()) {
            Poll::Ready(Ok(n)) if n > 0 => {
                buf.advance(n);
                stream.txn.down.received += n as u64;
                Poll::Ready(true)
            }
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending => stream.server_timer.poll_expired(cx).map(|()| false),
        }
    })
    .await
}

/// The other side has closed: from now on the time of this one is `fin`, if there is such, and it began when it was last heard of.
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
    let mut limits = (tunnel.or(client_limit), tunnel.or(server_limit));
    // A side that says nothing for too long counts as one that closed; the other side's time goes on.
    let mut late = None;
    // A client that has said nothing has been silent since it came; one that had to wait for its server for longer begins anew.
    let came = stream.txn.times.idle_from.filter(|_| stream.txn.up.received == 0);
    let over = limits.0.zip(came).map(|(limit, came)| came + limit).filter(|at| *at > rt::now());
    stream.client.timer.set(over.or_else(|| limits.0.map(|limit| rt::now() + limit)));
    stream.server_timer.set_after(limits.1);
    let mut down = Half::new(Framing::Close);
    down.splice = crate::h1::splices(stream, front, back, false);
    stream.upload.splice = crate::h1::splices(stream, front, back, true);
    stream.upload.filters = crate::filter::chain(stream, Side::Request);
    down.filters = crate::filter::chain(stream, Side::Response);
    let pipes = !stream.worker.shared.program.global.disabled.splice;
    (down.bulk_pipes, stream.upload.bulk_pipes) = (pipes, pipes);
    let (mut up_done, mut down_done) = (false, false);
    let mut moved = false;
    let outcome = poll_fn(|cx| {
        if let Some(cause) = stream.client.session.kill.get() {
            return Poll::Ready(Some((cause, Phase::Connect)));
        }
        if front.options.contstats && std::mem::take(&mut moved) {
            crate::finish::count_meanwhile(stream, &down);
        }
        let Some(up) = stream.upstream.as_mut() else { return Poll::Ready(None) };
        let client = &mut *stream.client;
        if !up_done {
            let half = &mut stream.upload;
            match half.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket) {
                // Not even its answer is waited for: the connection to the server is reset as the stream ends.
                Poll::Ready(Ok(_)) if back.options.nolinger => return Poll::Ready(None),
                Poll::Ready(Ok(_)) => {
                    up_done = true;
                    let _ = up.socket.shutdown_write();
                    match back.timeouts.server_fin {
                        None => stream.server_timer.set_after(limits.1),
                        fin => shorten(&mut stream.server_timer, &mut limits.1, fin),
                    }
                }
                Poll::Ready(Err(Break::Write(_))) => {
                    return Poll::Ready(Some((Cause::ServerAbort, Phase::Data)));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Some((Cause::ClientAbort, Phase::Data))),
                Poll::Pending => {}
            }
        }
        if !down_done {
            match down.poll(cx, &up.socket, &mut up.buf, &mut stream.to_client, &client.socket) {
                Poll::Ready(Ok(_)) => {
                    down_done = true;
                    // With `option nolinger` a client that has closed its side is reset.
                    if !(front.options.nolinger && stream.upload.eof) {
                        let _ = client.socket.shutdown_write();
                    }
                    match front.timeouts.client_fin {
                        None => client.timer.set_after(limits.0),
                        fin => shorten(&mut client.timer, &mut limits.0, fin),
                    }
                }
                Poll::Ready(Err(Break::Write(_))) => {
                    return Poll::Ready(Some((Cause::ClientAbort, Phase::Data)));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Some((Cause::ServerAbort, Phase::Data))),
                Poll::Pending => {}
            }
        }
        if up_done && down_done {
            return Poll::Ready(None);
        }
        // The server closed first, and then refused what the client still sent. One behind a Unix socket that closes is gone
        // in both directions at once; that refuses nothing yet.
        if down_done && !up_done && late.is_none() && up.socket.poll_reset(cx).is_ready() {
            return Poll::Ready(Some((Cause::ServerAbort, Phase::Data)));
        }
        let moved_up = std::mem::take(&mut stream.upload.moved);
        let moved_down = std::mem::take(&mut down.moved);
        if moved_up || moved_down && down.prolongs(front.options.independent_streams) {
            client.timer.set_after(limits.0);
        }
        if moved_down || moved_up && stream.upload.prolongs(back.options.independent_streams) {
            stream.server_timer.set_after(limits.1);
        }
        moved |= moved_up || moved_down;
        // Who does not take what waits for him ends the stream; who is only silent ends what he sends.
        if (down.blocked || !up_done && !stream.upload.blocked) && client.timer.poll_expired(cx).is_ready() {
            late = late.or(Some((Cause::ClientTimeout, Phase::Data)));
            if down.blocked || back.options.nolinger {
                return Poll::Ready(late);
            }
            up_done = true;
            let _ = up.socket.shutdown_write();
            shorten(&mut stream.server_timer, &mut limits.1, back.timeouts.server_fin);
        }
        if (stream.upload.blocked || !down_done && !down.blocked)
            && stream.server_timer.poll_expired(cx).is_ready()
        {
            late = late.or(Some((Cause::ServerTimeout, Phase::Data)));
            if stream.upload.blocked {
                return Poll::Ready(late);
            }
            down_done = true;
            let _ = client.socket.shutdown_write();
            shorten(&mut client.timer, &mut limits.0, front.timeouts.client_fin);
        }
        if up_done && down_done { Poll::Ready(late) } else { Poll::Pending }
    })
    .await;
    if late.is_some() && outcome.is_some_and(|(cause, _)| cause == Cause::ServerAbort) {
        // The time of one side was over, and then the other broke its connection.
        losses::broken(stream);
        stream.txn.server_conn.error = model::conn::ConnError::RESET;
    }
    let outcome = late.or(outcome);
    stream.txn.down.received += down.received;
    stream.txn.down.sent += down.sent;
    stream.txn.down.wire_out += down.sent;
    crate::finish::count_spliced(stream, &down);
    if let Some((cause, phase)) = outcome {
        // Neither side shall take what it got for the whole.
        stream.client.socket.mute();
        if let Some(up) = &stream.upstream {
            up.socket.mute();
        }
        count_abort(stream, cause);
        stream.end(cause, phase);
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
