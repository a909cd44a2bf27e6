//! One request and its response, from top to bottom.

use lang::filter::Moment;
use link::pump::{Framing, Half};
use model::Origin;
use model::term::{Cause, Phase, Term};
use program::proxy::Mode;
use wire::http1::Body;
use wire::method::Method;

use super::failed::{killed, was_killed};
use super::{
    Next, Owed, Rest, answer, awaiting, cached, captures, cgi, early, forward, headers, replaced, request,
    response, retry, rules,
};
use crate::choose::{self, Wish};
use crate::client::Client;
use crate::connect::{self, Failed};
use crate::debug;
use crate::filters::Whose;
use crate::losses;
use crate::points;
use crate::stream::Stream;
use model::trace::{self, level};

/// How a step ended that did not end the request.
pub enum Step {
    /// Go on.
    Go,
    /// The request is answered or given up; this becomes of the connection.
    Done(Next),
}

/// Serves one request; also gives what the client still owes of it.
pub async fn run(client: &mut Client) -> (Next, Owed) {
    let session = client.session.clone();
    let worker = client.worker.clone();
    let work = std::pin::pin!(async move {
        let mut stream = Stream::new(client);
        let next = steps(&mut stream, false).await;
        forward::until_taken(&mut stream).await;
        crate::finish::run(&mut stream);
        (next, owed(&mut stream))
    });
    crate::calls::serve(&worker, &session, work).await
}

/// Serves the first request of a connection whose stream was TCP so far: what came is parsed only now, the
/// rules on content have run, and a backend may be chosen already.
pub async fn run_upgraded(stream: &mut Stream<'_>) -> (Next, Owed) {
    stream.client.conn().http_major.set(1);
    stream.upload = Half::new(Framing::Length(0));
    stream.frontend().state.front.counters.of(stream.worker.index).upgraded.inc();
    request::count_stream(stream);
    // What came counts as the message that it turns out to be.
    (stream.txn.up.received, stream.txn.up.wire_in) = (0, 0);
    let limits = &stream.frontend().timeouts;
    let limit = limits.http_request.or(limits.client);
    stream.client.timer.set_after(limit);
    let next = steps(stream, true).await;
    crate::finish::run(stream);
    (next, owed(stream))
}

fn owed(stream: &mut Stream<'_>) -> Owed {
    if stream.http.body_received {
        return None;
    }
    let nothing = Half::new(Framing::Length(0));
    let half = std::mem::replace(&mut stream.upload, nothing);
    let served = stream.txn.by_service.map(|_| stream.backend().state.clone());
    Some(Box::new(Rest { half, awaited: stream.http.whole, served }))
}

async fn steps(stream: &mut Stream<'_>, upgraded: bool) -> Next {
    match request::read(stream).await {
        request::Read::Request => {
            points::stream(stream, &trace::STREAM, trace::stream::NEW, level::STATE, "new stream");
            received(stream, false, "received request head");
            debug::requested(stream);
            captures::request(stream);
            if !upgraded {
                crate::log::accepted(stream);
            }
        }
        request::Read::Nothing => return Next::Close,
        request::Read::Preface => {
            // The streams to come are the requests.
            stream.txn.silent = true;
            if !upgraded {
                request::uncount_stream(stream);
            }
            stream.client.conn().requests.set(0);
            return Next::Http2;
        }
        request::Read::Bad(status) => {
            let events = (trace::h1::STREAM_ERR, trace::h2::STREAM_ERR);
            points::message(stream, false, events, level::ERROR, "malformed request");
            return bad(stream, status, upgraded).await;
        }
    }
    points::stream(stream, &trace::STREAM, trace::stream::RULES, level::STATE, "rules of the frontend");
    if let Step::Done(next) = rules::filters(stream, Moment::Rules, Whose::Front).await {
        return next;
    }
    match rules::frontend(stream, upgraded).await {
        Step::Go => {}
        Step::Done(next) => return next,
    }
    if was_killed(stream) {
        return Next::Close;
    }
    if stream.txn.caching.hit.is_some() {
        return cached::serve(stream).await;
    }
    let served = stream.service.is_some();
    if stream.txn.backend.is_none()
        && !served
        && let Step::Done(next) = to_backend(stream).await
    {
        return next;
    }
    points::stream(stream, &trace::STREAM, trace::stream::RULES, level::STATE, "rules of the backend");
    if let Step::Done(next) = rules::filters(stream, Moment::Rules, Whose::Back).await {
        return next;
    }
    if !served && let Step::Done(next) = rules::backend(stream).await {
        return next;
    }
    if stream.txn.caching.hit.is_some() {
        return cached::serve(stream).await;
    }
    captures::request_cookie(stream);
    let fixed = bind(stream);
    if let Step::Done(next) = cgi::finish_head(stream).await {
        return next;
    }
    let mut wish = Wish { fixed, ..Wish::default() };
    // A client of HTTP/2 may have taken its request back before anybody was chosen to serve it.
    if has_left(stream) {
        // The log names the server that a rule or a cookie found all the same.
        stream.set_server(wish.fixed);
        return gone(stream).await;
    }
    loop {
        match once(stream, &mut wish).await {
            Attempt::Over(next) => return next,
            Attempt::Again => {}
        }
    }
}

/// Whether the client did not stay until somebody was chosen to serve it; one of HTTP/2 takes its request
/// back.
fn has_left(stream: &Stream<'_>) -> bool {
    stream.http.client_left || stream.client.part.is_some() && stream.client.socket.is_broken()
}

/// The server that a request is bound to, if any; what options add to its head comes behind rules and cookies
/// and before stick tables look at it. A service takes no server.
pub(super) fn bind(stream: &mut Stream<'_>) -> Option<u32> {
    let served = stream.service.is_some();
    let ruled = if served { None } else { choose::ruled(stream) };
    headers::add_own(stream);
    if served { None } else { choose::stuck(stream, ruled) }
}

/// Sends the request to the backend that rules choose.
async fn to_backend(stream: &mut Stream<'_>) -> Step {
    let Some(backend) = choose::backend(stream) else {
        if stream.frontend().mode != Mode::Http {
            // The frontend takes its own place, which is one for streams.
            return misled(stream);
        }
        let left = has_left(stream);
        match left {
            true => stream.end(Cause::ClientAbort, Phase::Request),
            false => stream.end(Cause::ServerAbort, Phase::Connect),
        }
        // Nobody was there to take the request: it counts as one that never came whole, unless it was waited
        // for.
        let times = &mut stream.txn.times;
        times.request.take_if(|_| !times.waited);
        if left {
            // Nor is anybody there to be told so.
            request::count_front_error(stream);
            return Step::Done(Next::Close);
        }
        // The frontend takes the place of the backend that there is not, also for the rules of its answer.
        stream.enter(stream.client.front);
        return Step::Done(answer::refuse(stream, 503).await);
    };
    stream.set_backend(backend);
    crate::filter::sent_to(stream, backend);
    if stream.worker.shared.program.proxy(backend).mode != Mode::Http {
        return misled(stream);
    }
    Step::Go
}

/// Ends at a proxy that takes no messages, to which only `switch-mode` or a name made at run time lead.
fn misled(stream: &mut Stream<'_>) -> Step {
    stream.end(Cause::Internal, Phase::Request);
    (stream.txn.status, stream.txn.times.request) = (500, None);
    stream.http.misled = true;
    Step::Done(Next::Close)
}

/// Refuses what is no request.
///
/// No stream is made for what is no request: a frontend of TCP logs it as the end of its own session, with
/// whose addresses rules on content have nothing to do. The stream of TCP that waited for the request
/// (`upgraded`) is one that its client cut off.
async fn bad(stream: &mut Stream<'_>, status: u16, upgraded: bool) -> Next {
    if stream.frontend().mode != Mode::Tcp {
        return answer::refuse(stream, status).await;
    }
    if upgraded {
        request::count_front_error(stream);
        if stream.txn.backend.is_some() {
            losses::client_abort(stream);
        }
    }
    stream.txn.backend = None;
    (stream.txn.decisions.src, stream.txn.decisions.dst) = (None, None);
    stream.txn.term = Term::default();
    stream.end(Cause::Proxy, Phase::Request);
    let next = answer::refuse(stream, status).await;
    (stream.txn.status, stream.txn.unread) = (0, true);
    next
}

/// The client left before its request was whole: nobody is to be served.
async fn gone(stream: &mut Stream<'_>) -> Next {
    if was_killed(stream) {
        return Next::Close;
    }
    stream.end(Cause::ClientAbort, Phase::Request);
    let worker = stream.worker.index;
    {
        let back = stream.backend();
        back.state.back.counters.of(worker).client_aborts.inc();
        if let Some(server) = stream.txn.server {
            back.server(server).state.counters.of(worker).client_aborts.inc();
        }
    }
    let whole = match stream.client.part {
        Some(_) => stream.http.request_body == Body::None,
        None => crate::body::is_whole(stream),
    };
    if whole {
        // A request that came whole and is taken back is answered with nothing, not even in the log.
        request::count_front_error(stream);
        return Next::Close;
    }
    answer::refuse(stream, 400).await
}

enum Attempt {
    Over(Next),
    Again,
}

/// One attempt at a server: connect, send, receive.
async fn once(stream: &mut Stream<'_>, wish: &mut Wish) -> Attempt {
    if let Err(failed) = connect::reach(stream, wish).await {
        stream.server_is_done();
        if cached::is_error(failed.explain().2)
            && let Some(next) = cached::instead(stream).await
        {
            return Attempt::Over(next);
        }
        return Attempt::Over(unreachable(stream, &failed).await);
    }
    crate::log::step(stream, Origin::Connect);
    points::stream(stream, &trace::STREAM, trace::stream::SIDES, level::STATE, "server reached");
    debug::reached(stream);
    let events = (trace::h1::TX_HEADERS, trace::h2::TX_HEADERS);
    points::message(stream, true, events, level::USER, "sending request head");
    if let Step::Done(next) = rules::filters(stream, Moment::Connected, Whose::All).await {
        return Attempt::Over(next);
    }
    crate::filter::prepare_request(stream);
    if headers::send_request(stream).is_err() {
        rules::count_internal_error(stream);
        stream.end(Cause::Internal, Phase::Headers);
        return Attempt::Over(answer::refuse(stream, 500).await);
    }
    match awaiting::until_response(stream).await {
        awaiting::Wait::Response => {
            connect::settle_service(stream);
            received(stream, true, "received response head");
            debug::answered(stream);
        }
        awaiting::Wait::Over(next) => return Attempt::Over(next),
        awaiting::Wait::Retry => {
            if let Err(next) = early::settle(stream).await {
                return Attempt::Over(next);
            }
            if retry::prepare_retry(stream, wish).await {
                return Attempt::Again;
            }
            return Attempt::Over(answer::refuse(stream, 502).await);
        }
        awaiting::Wait::Failed(status) => {
            // It went to the server: an answer made now can't tell of it.
            stream.http.dismissed = true;
            stream.note_lost();
            if (status.is_some_and(cached::is_error) || stream.txn.silent)
                && let Some(next) = cached::instead(stream).await
            {
                return Attempt::Over(next);
            }
            return Attempt::Over(match status {
                Some(s) => answer::refuse(stream, s).await,
                None => Next::Close,
            });
        }
    }
    if response::opens_tunnel(stream) {
        return Attempt::Over(forward::tunnel(stream).await);
    }
    if stream.upstream.as_ref().is_some_and(crate::stream::Upstream::is_through) {
        // The end of the response came along with its head.
        stream.server_is_done();
    }
    if cached::is_error(stream.txn.res.status())
        && let Some(next) = cached::instead(stream).await
    {
        return Attempt::Over(next);
    }
    if let Some(next) = cached::confirmed(stream).await {
        return Attempt::Over(next);
    }
    match response::process(stream).await {
        Step::Go => {
            tell(stream);
            Attempt::Over(forward::body(stream).await)
        }
        Step::Done(next) => Attempt::Over(next),
    }
}

/// A head has come.
#[track_caller]
fn received(stream: &Stream<'_>, back: bool, text: &str) {
    let begun = if back { 0 } else { trace::h1::STREAM_NEW };
    let events = (trace::h1::RX_HEADERS | begun, trace::h2::RX_HEADERS);
    points::message(stream, back, events, level::USER, text);
}

/// Writes the lines that wait for a response's head.
pub fn tell(stream: &mut Stream<'_>) {
    let events = (trace::h1::TX_HEADERS, trace::h2::TX_HEADERS);
    points::message(stream, false, events, level::USER, "sending response head");
    early_lines(stream);
}

/// Writes those lines alone.
pub fn early_lines(stream: &mut Stream<'_>) {
    if crate::log::shows_response_early(stream) {
        // The head counts as rules have left it.
        stream.txn.asap = stream.txn.down.sent + replaced::unsent(stream);
    }
    crate::log::response_known(stream);
    crate::log::step(stream, Origin::Response);
}

/// A CONNECT that the server has agreed to.
pub fn is_tunnel(stream: &Stream<'_>) -> bool {
    stream.txn.req.method_id() == Method::Connect && (200..300).contains(&stream.txn.res.status())
}

async fn unreachable(stream: &mut Stream<'_>, failed: &Failed) -> Next {
    let (cause, phase, status) = failed.explain();
    if let Failed::Redirect(server) = failed {
        return answer::server_redirect(stream, *server).await;
    }
    if let Some(cause) = stream.client.session.kill.get() {
        killed(stream, cause);
        // Who waited for a place is not said to have waited.
        if phase == Phase::Queue {
            stream.txn.times.queued = None;
        }
        return Next::Close;
    }
    stream.end(cause, phase);
    if cause == Cause::ClientTimeout {
        let next = answer::refuse(stream, status).await;
        if !stream.txn.server_conn.begun {
            // Nothing was under way to a server: the log tells of no answer.
            stream.txn.status = 0;
        }
        return next;
    }
    if cause == Cause::ClientAbort {
        // It is a server that had nothing to say, whatever was hinted at before.
        stream.txn.hinted = false;
        // Nothing was exchanged that this client could have cut off, unless it broke its place in the queue.
        if phase == Phase::Queue && stream.client.socket.is_broken() {
            stream.backend().state.back.counters.of(stream.worker.index).client_aborts.inc();
        }
        return Next::Close;
    }
    if (cause, phase) == (Cause::ServerTimeout, Phase::Connect) && !stream.is_first() {
        // A client that has used its connection before may send its request again, and nobody has seen this
        // one.
        stream.txn.status = status;
        return Next::Close;
    }
    answer::refuse(stream, status).await
}
