//! Rules on requests: `tcp-request content` and `http-request` of the frontend, then of the backend.

use std::time::Duration;

use lang::RuleSet;
use lang::action::{Flow, Fulfilled, Need, Reply};
use lang::env::Side;
use lang::filter::Moment;
use lang::rules::{Position, Run};
use model::term::{Cause, Phase};
use program::Proxy;
use program::options::RestrictNames;
use rt::Mono;
use wire::method::Method;

use super::exchange::Step;
use super::{Next, answer, copy, early, replaced, wait};
use crate::filters::{Met, Whose};
use crate::ruling::{self, Bench, Given};
use crate::silence;
use crate::stream::Stream;
use crate::worker::service::StreamKind;

/// Rules of the frontend, its statistics page and its monitor. Those on content have had their turn when the
/// stream was TCP before (`upgraded`).
pub async fn frontend(stream: &mut Stream<'_>, upgraded: bool) -> Step {
    let worker = stream.worker.clone();
    let index = stream.client.front;
    let proxy = &*worker.shared.program.proxy(index);
    if !upgraded && let Step::Done(next) = content(stream, proxy).await {
        return Step::Done(next);
    }
    super::request::count_request(stream);
    crate::tracking::request(stream.client.conn(), &stream.txn);
    if let Step::Done(next) = in_time(stream, proxy).await {
        return Step::Done(next);
    }
    if let Some(next) = answer::monitor(stream, proxy).await {
        return Step::Done(next);
    }
    // The rules to come are part of the request: what it took is not known yet.
    let read = stream.txn.times.request.take();
    crate::log::request_known(stream);
    crate::log::step(stream, model::Origin::Request);
    stream.txn.times.request = read;
    if let Step::Done(next) = filters(stream, Moment::FrontRequest, Whose::All).await {
        return Step::Done(next);
    }
    proxy_rules(stream, proxy, index).await
}

/// Rules of the backend, when it is another proxy than the frontend, and what else comes before a server is
/// chosen.
pub async fn backend(stream: &mut Stream<'_>) -> Step {
    let worker = stream.worker.clone();
    let index = stream.backend_index();
    let proxy = &*worker.shared.program.proxy(index);
    if index != stream.client.front {
        if let Step::Done(next) = filters(stream, Moment::BackContent, Whose::All).await {
            return Step::Done(next);
        }
        if let Step::Done(next) = content(stream, proxy).await {
            return Step::Done(next);
        }
        if let Step::Done(next) = in_time(stream, proxy).await {
            return Step::Done(next);
        }
        if let Step::Done(next) = filters(stream, Moment::BackRequest, Whose::All).await {
            return Step::Done(next);
        }
        if let Step::Done(next) = proxy_rules(stream, proxy, index).await {
            return Step::Done(next);
        }
    }
    if !looks_at_body(stream, proxy) {
        return Step::Go;
    }
    let known = stream.txn.times.request;
    if let Err(status) = wait::buffer_request(stream, proxy).await {
        let times = &mut stream.txn.times;
        // All rules have seen the request by now: that its body is late undoes nothing of it.
        (times.request, times.waited) = (times.request.or(known), true);
        return Step::Done(answer::refuse(stream, status).await);
    }
    Step::Go
}

/// `tcp-request content`.
async fn content(stream: &mut Stream<'_>, proxy: &Proxy) -> Step {
    let inspect = proxy.timeouts.inspect_request;
    stream.http.as_tcp = true;
    // To the logs of a frontend the request has yet to come.
    let line = stream.txn.backend.is_none().then(|| std::mem::take(&mut stream.txn.line));
    let step = run(stream, &proxy.rules.tcp_content, Side::Request, inspect).await;
    if let Some(line) = line {
        stream.txn.line = line;
    }
    stream.http.as_tcp = false;
    if matches!(step, Step::Done(_)) && stream.txn.backend.is_none() && stream.txn.status == 0 {
        // Cut off as a TCP session: the log has no request either.
        stream.txn.line.clear();
    }
    step
}

/// Refuses a request of which a part never came while its content was inspected.
async fn in_time(stream: &mut Stream<'_>, proxy: &Proxy) -> Step {
    if proxy.timeouts.inspect_request.is_none() || !silence::is_over(stream) {
        return Step::Go;
    }
    stream.end(Cause::ClientTimeout, Phase::Request);
    Step::Done(answer::refuse(stream, 400).await)
}

async fn proxy_rules(stream: &mut Stream<'_>, proxy: &Proxy, index: u32) -> Step {
    if proxy.options.http_buffer_request {
        if let Err(status) = wait::buffer_request(stream, proxy).await {
            return Step::Done(answer::refuse(stream, status).await);
        }
        stream.http.buffered = true;
    }
    if let Step::Done(next) = run(stream, &proxy.rules.http_request, Side::Request, None).await {
        return Step::Done(next);
    }
    if stream.service.is_some() || stream.txn.caching.hit.is_some() {
        return Step::Go;
    }
    if let Step::Done(next) = restrict_names(stream, proxy.options.restrict_names).await {
        return Step::Done(next);
    }
    // What the rules let through, as they left it but for the method, may be a request for the page.
    if let Some(page) = &proxy.stats
        && matches!(stream.txn.first_method(), Method::Get | Method::Head | Method::Post)
        && wire::uri::path_and_query(stream.txn.req.target()).starts_with(page.uri.as_bytes())
    {
        let whole = crate::body::is_taken(stream);
        if let Step::Done(next) = run(stream, &page.rules, Side::Request, None).await {
            answer::service_refused(stream);
            return Step::Done(if whole { next } else { Next::Close });
        }
        return Step::Done(answer::service(stream, "stats", index).await);
    }
    // Also for what `http-request allow` let pass.
    run(stream, &proxy.rules.redirect, Side::Request, None).await
}

/// `option http-restrict-req-hdr-names`: field names with other characters than letters, digits and `-`,
/// which some servers take for other names, go, or the request does.
async fn restrict_names(stream: &mut Stream<'_>, restrict: RestrictNames) -> Step {
    if restrict == RestrictNames::Preserve {
        return Step::Go;
    }
    let plain = |name: &[u8]| name.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'-');
    loop {
        let odd = stream.txn.req.fields().find(|(_, name, _)| !plain(name)).map(|(index, ..)| index);
        let Some(index) = odd else { return Step::Go };
        if restrict == RestrictNames::Reject {
            let reply = Reply { keep_alive: true, ..Reply::error(403) };
            return decide(stream, Flow::Deny(reply), Side::Request).await;
        }
        stream.txn.req.remove(index);
    }
}

/// `balance url_param` needs the body of what came as a POST before it chooses a server, with `check_post`
/// and without.
fn looks_at_body(stream: &mut Stream<'_>, proxy: &Proxy) -> bool {
    matches!(proxy.balance, program::proxy::Balance::UrlParam(_))
        && stream.is_posted()
        && !crate::choose::is_bound(stream, proxy)
}

/// Runs a rule set to its end, fulfilling what its rules wait for.
pub async fn run(stream: &mut Stream<'_>, rules: &RuleSet, side: Side, inspect: Option<Duration>) -> Step {
    if rules.is_empty() {
        return Step::Go;
    }
    bound_rewrites(stream, side);
    let deadline = inspect.map(|d| rt::now() + d);
    let mut bench = Message { stream, side, deadline, paused: false, hints: Vec::new() };
    let step = ruling::run(&mut bench, rules, inspect.is_none()).await.map_or(Step::Go, Step::Done);
    if !stream.txn.mirror.copies.is_empty() {
        copy::begin(stream);
    }
    step
}

/// Asks the filters of the stream.
pub async fn filters(stream: &mut Stream<'_>, moment: Moment, whose: Whose) -> Step {
    if !stream.filters.as_ref().is_some_and(|filters| filters.want(moment)) {
        return Step::Go;
    }
    let side = moment.side();
    bound_rewrites(stream, side);
    let mut bench = Message { stream, side, deadline: None, paused: false, hints: Vec::new() };
    rt::boxed(ruling::meet(&mut bench, (moment, whose))).await.map_or(Step::Go, Step::Done)
}

/// Where rules on a request or a response stand.
struct Message<'s, 'c> {
    stream: &'s mut Stream<'c>,
    side: Side,
    /// Until when data are waited for.
    deadline: Option<Mono>,
    /// Rules on a request have waited for something.
    paused: bool,
    /// Fields of an interim response that is yet to be sent.
    hints: Vec<u8>,
}

impl Bench for Message<'_, '_> {
    type Verdict = Next;

    fn run(&mut self, rules: &RuleSet, from: Position, last: bool, given: Option<Fulfilled>) -> Run {
        let run = self.stream.run_resumed(rules, self.side, from, last, given);
        if self.paused && !matches!(run, Run::Waits(..)) {
            // What rules wait for is part of the request (`%TR`), which they see as it was without.
            self.stream.txn.times.request = Some(rt::now());
        }
        run
    }

    async fn fulfil(&mut self, rules: &RuleSet, at: Position, need: Need) -> Result<Given, Next> {
        let given = self.give(rules, at, need).await?;
        self.paused = self.side == Side::Request;
        Ok(given)
    }

    fn meet(&mut self, at: (Moment, Whose), from: usize, last: bool, given: Option<Fulfilled>) -> Met {
        self.stream.meet(at, from, last, given)
    }

    async fn decide(&mut self, flow: Flow, number: Option<u32>) -> Option<Next> {
        let answers = matches!(flow, Flow::Reply(_));
        let step = decide(self.stream, flow, self.side).await;
        // Who answers has decided more than rules on the answer, who refuses less.
        if answers {
            self.stream.txn.last_rule.set(number);
        }
        match step {
            Step::Go => None,
            Step::Done(next) => Some(next),
        }
    }
}

impl Message<'_, '_> {
    async fn give(&mut self, rules: &RuleSet, at: Position, need: Need) -> Result<Given, Next> {
        let (stream, side) = (&mut *self.stream, self.side);
        match need {
            Need::Data => {
                let over = !wait::more(stream, side, self.deadline).await;
                if side == Side::Response {
                    // What is waited for is part of the response (`%Tr`).
                    stream.txn.times.response = stream.txn.times.response.map(|_| rt::now());
                }
                return Ok(Given::Data { over });
            }
            Need::Body { time, at_least, large } => {
                let wait = wait::Wait { time: Some(time), at_least, large };
                if let Err(status) = body(stream, side, wait).await {
                    let next = answer::refuse(stream, status).await;
                    stream.txn.last_rule.set(rules.number(at));
                    return Err(next);
                }
            }
            Need::Delay(d) => {
                wait::pause(stream, d, patience(stream, rules)).await;
                if side == Side::Request {
                    give_up_silence(stream)?;
                }
            }
            Need::Extension(extension) => {
                let waiting = extension.begin(stream.worker.clone());
                let brought = wait::extension(stream, self.deadline, waiting).await;
                if side == Side::Request {
                    give_up_silence(stream)?;
                }
                return Ok(Given::Back(brought.map_or(Fulfilled::Failed, Fulfilled::Brought)));
            }
            Need::Within(time, extension) => {
                let waiting = extension.begin(stream.worker.clone());
                let _ = wait::extension(stream, Some(rt::now() + time), waiting).await;
                if side == Side::Request {
                    give_up_silence(stream)?;
                }
            }
            Need::Address { resolvers, name, v4 } => {
                let waiting = crate::naming::find(&stream.worker, resolvers, name, v4);
                let brought = wait::extension(stream, self.deadline, waiting).await;
                if side == Side::Request {
                    give_up_silence(stream)?;
                }
                return Ok(Given::Back(crate::naming::fulfilled(brought)));
            }
            Need::Interim(field) => {
                self.hints.extend_from_slice(&field);
                if !rules.hints_on(at) {
                    answer::hint(stream, &std::mem::take(&mut self.hints)).await;
                }
            }
            Need::Handshake => early::handshake(stream).await?,
            // These come before the first byte, in no other rule set; and the data of TCP are no message.
            Need::ProxyHeader | Need::CipHeader | Need::Content { .. } => {
                return Ok(Given::Back(Fulfilled::Failed));
            }
        }
        Ok(Given::Back(Fulfilled::Done))
    }
}

/// How a client may leave in a pause of these rules: their proxy and the backend, if there is one, both have
/// a say (`option abortonclose`).
fn patience(stream: &Stream<'_>, rules: &RuleSet) -> wait::Patience {
    let front = stream.frontend();
    let of_front = std::ptr::eq(rules, &raw const front.rules.http_response);
    if stream.backend().options.abortonclose && (!of_front || front.options.abortonclose) {
        wait::Patience::None
    } else {
        wait::Patience::Half
    }
}

/// Ends a stream whose client was silent for too long while rules waited.
fn give_up_silence(stream: &mut Stream<'_>) -> Result<(), Next> {
    if !silence::is_over(stream) {
        return Ok(());
    }
    // What never came whole has no time, and nobody is told anything.
    stream.txn.times.request = None;
    stream.end(Cause::ClientTimeout, Phase::Request);
    Err(Next::Close)
}

/// `wait-for-body`; the status to answer when it was in vain.
async fn body(stream: &mut Stream<'_>, side: Side, wait: wait::Wait) -> Result<(), u16> {
    match side {
        Side::Request => {
            let waited = wait::request(stream, wait).await;
            wait::note_request(stream, waited)
        }
        // What follows in a tunnel is no body.
        Side::Response if super::exchange::is_tunnel(stream) => Ok(()),
        Side::Response => {
            let waited = wait::response(stream, wait).await;
            wait::note_response(stream, waited)
        }
    }
}

/// Head and buffered body share one buffer: what the body takes of it is not there for what rules add
/// (`tune.maxrewrite` is always left free).
fn bound_rewrites(stream: &mut Stream<'_>, side: Side) {
    let tune = &stream.worker.shared.program.global.tune;
    let (bufsize, reserve) = (tune.bufsize, tune.maxrewrite);
    let buffered = |buf: Option<&rt::Buf>| buf.map_or(0, |b| b.filled().len());
    let txn = &mut *stream.txn;
    let (head, came, body) = match side {
        // Without a body, what follows is the next request.
        Side::Request if stream.http.body_received => (&mut txn.req, 0, 0),
        Side::Request => (&mut txn.req, txn.up.wire_in, buffered(stream.client.buf.as_ref())),
        Side::Response => {
            let buf = stream.upstream.as_ref().and_then(|u| u.buf.as_ref());
            (&mut txn.res, txn.down.wire_in, buffered(buf))
        }
    };
    // What the body may take was settled when it came, behind the head as it then was.
    let came = usize::try_from(came).unwrap_or(usize::MAX);
    let room = bufsize.saturating_sub(reserve).saturating_sub(came);
    head.set_limit(bufsize - body.min(room));
}

/// Does what a rule decided.
async fn decide(stream: &mut Stream<'_>, flow: Flow, side: Side) -> Step {
    let next = match flow {
        Flow::Next | Flow::Accept | Flow::SwitchToHttp { .. } | Flow::Yield(_) => return Step::Go,
        Flow::Service(name) if side == Side::Request && streams(stream, &name) => {
            super::wait::invite_in_place(stream).await;
            return Step::Go;
        }
        _ if side == Side::Response => {
            let closes = matches!(flow, Flow::Reject | Flow::CloseServer);
            let spare = replaced::count(stream);
            let next = carry_out(stream, flow, side).await;
            if !closes {
                spare.settle(stream);
            }
            next
        }
        _ => carry_out(stream, flow, side).await,
    };
    Step::Done(next)
}

/// Gives the stream to a service that takes the place of a server; whether it is one.
fn streams(stream: &mut Stream<'_>, name: &str) -> bool {
    let streams = crate::connect::give_to_service(stream, name, StreamKind::Http);
    if streams {
        stream.end(Cause::Local, Phase::Request);
        intercepted(stream);
    }
    streams
}

/// Ends the stream as a rule decided.
async fn carry_out(stream: &mut Stream<'_>, flow: Flow, side: Side) -> Next {
    let response = side == Side::Response;
    match flow {
        // These end nothing.
        Flow::Next | Flow::Accept | Flow::SwitchToHttp { .. } | Flow::Yield(_) => Next::Close,
        Flow::Deny(reply) => {
            denied(stream, response, false);
            if !response {
                crate::tracking::request_error(stream.client.conn(), &stream.txn);
                look_at_cookies(stream);
            }
            stream.end(Cause::Proxy, if response { Phase::Headers } else { Phase::Request });
            answer::send(stream, reply).await
        }
        Flow::Reply(reply) => {
            if !response && answer::is_challenge(&reply) {
                crate::tracking::request_error(stream.client.conn(), &stream.txn);
            } else {
                stream.end(Cause::Local, if response { Phase::Headers } else { Phase::Request });
            }
            let next = answer::send(stream, reply).await;
            stream.end(Cause::Local, Phase::Request);
            // What a cache or a service answers has counted when it was found.
            let counted = response && (stream.txn.caching.hit.is_some() || stream.service.is_some());
            if !stream.http.after_failed && !counted {
                intercepted(stream);
            }
            next
        }
        Flow::Reject => {
            denied(stream, response, stream.http.as_tcp);
            stream.end(Cause::Proxy, if response { Phase::Data } else { Phase::Request });
            forget_time(stream, response);
            if !response {
                stream.client.expel();
            }
            Next::Close
        }
        Flow::CloseServer => {
            crate::losses::response_failure(stream);
            stream.end(Cause::ServerAbort, Phase::Headers);
            forget_time(stream, response);
            answer::refuse(stream, 502).await
        }
        Flow::SilentDrop { rst_ttl } => {
            // Also in the midst of a response it is the client that is turned away, and by the backend if the
            // rule is its own.
            denied(stream, false, false);
            stream.end(Cause::Proxy, Phase::Request);
            match response {
                // Before anything was said there is none.
                true if stream.txn.times.response.is_none() => stream.txn.status = 0,
                true => stream.txn.status = stream.txn.res.status(),
                false => forget_time(stream, response),
            }
            stream.client.vanish(rst_ttl);
            Next::Close
        }
        Flow::Tarpit(reply) => {
            denied(stream, response, false);
            crate::tracking::request_error(stream.client.conn(), &stream.txn);
            look_at_cookies(stream);
            stream.end(Cause::Proxy, Phase::Tarpit);
            answer::tarpit(stream, reply).await
        }
        Flow::Service(name) => answer::service(stream, &name, stream.backend_index()).await,
        Flow::Invalid | Flow::Error => failed(stream, matches!(flow, Flow::Invalid), response).await,
    }
}

/// A rule that fails ends the stream as one that refuses does, and so does one that finds the request
/// malformed (`invalid`). The request's time is not known.
async fn failed(stream: &mut Stream<'_>, invalid: bool, response: bool) -> Next {
    stream.end(Cause::Proxy, if response { Phase::Headers } else { Phase::Request });
    if !response {
        forget_time(stream, response);
    }
    if invalid {
        super::request::count_front_error(stream);
        return answer::refuse(stream, 400).await;
    }
    count_internal_error(stream);
    answer::refuse(stream, 500).await
}

/// Looks at the cookies of a request that is refused for its log line; one that is answered otherwise goes
/// without.
fn look_at_cookies(stream: &mut Stream<'_>) {
    super::captures::request_cookie(stream);
    crate::persist::look(stream);
}

/// Answers in place of a response whose last rules failed (`http-after-response`).
pub async fn failed_after(stream: &mut Stream<'_>) -> Next {
    match decide(stream, Flow::Error, if stream.place.is_some() { Side::Response } else { Side::Request })
        .await
    {
        Step::Done(next) => next,
        Step::Go => Next::Close,
    }
}

/// Counts an error of ours where it is to be seen: at the server when its response was at work.
pub fn count_internal_error(stream: &Stream<'_>) {
    let worker = stream.worker.index;
    if let Some((front, listener)) = stream.front_counters() {
        front.internal_errors.inc();
        listener.internal_errors.inc();
    }
    if stream.txn.backend.is_some() {
        stream.backend().state.back.counters.of(worker).internal_errors.inc();
    }
    if let Some(place) = &stream.place {
        place.config().state.counters.of(worker).internal_errors.inc();
    }
}

/// Counts a refusal where it is to be seen.
///
/// A stream that is cut off as TCP (`tcp-request content`) counts at the frontend alone.
pub fn denied(stream: &Stream<'_>, response: bool, cut: bool) {
    // `silent-drop` counts among the requests wherever it stands, and at a backend that is chosen.
    let vanished = stream.client.session.vanished.get();
    let response = response && !vanished;
    let worker = stream.worker.index;
    let back = stream.txn.backend.filter(|_| !cut || response || vanished).map(|_| stream.backend());
    let back = back.as_ref().map(|b| b.state.back.counters.of(worker));
    let front = stream.front_counters();
    if response {
        if let Some((front, listener)) = front {
            front.denied_resp.inc();
            listener.denied_resp.inc();
        }
        back.into_iter().for_each(|b| b.denied_resp.inc());
        if let Some(p) = &stream.place {
            p.config().state.counters.of(worker).denied_resp.inc();
        }
    } else {
        if let Some((front, listener)) = front {
            front.denied_req.inc();
            listener.denied_req.inc();
        }
        back.into_iter().for_each(|b| b.denied_req.inc());
    }
}

/// A message that is cut off without an answer counts as one that never came whole.
fn forget_time(stream: &mut Stream<'_>, response: bool) {
    let times = &mut stream.txn.times;
    match response {
        true => times.response = None,
        false if !times.waited => times.request = None,
        false => {}
    }
}

/// Counts a request that is answered here before a backend was chosen.
pub fn intercepted(stream: &Stream<'_>) {
    if stream.txn.backend.is_none() {
        stream.frontend().state.front.counters.of(stream.worker.index).intercepted.inc();
    }
}
