//! Rules on the content of a connection of TCP, and its filters, which are asked before them.

use std::any::Any;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use lang::RuleSet;
use lang::action::{self, Flow, Fulfilled, Need, Waiting};
use lang::env::Side;
use lang::filter::Moment;
use lang::rules::{Position, Run};
use model::term::{Cause, Phase};
use program::Proxy;

use crate::filters::{Met, Whose};
use crate::ruling::{self, Bench, Given};
use crate::silence;
use crate::stream::Stream;
use crate::worker::service::StreamKind;

/// The filters and the rules of the frontend.
pub(super) async fn first(stream: &mut Stream<'_>, front: &Proxy) -> Verdict {
    if !may_go_on(stream, Moment::Rules, Whose::Front).await {
        return Verdict::Stop;
    }
    rules(stream, &front.rules.tcp_content, Side::Request, front.timeouts.inspect_request).await
}

/// Those of a backend that is another proxy; whether the stream may go on.
pub(super) async fn of_backend(stream: &mut Stream<'_>, back: &Proxy) -> bool {
    may_go_on(stream, Moment::Rules, Whose::Back).await
        && may_go_on(stream, Moment::BackContent, Whose::All).await
        && goes(stream, &back.rules.tcp_content, Side::Request, back.timeouts.inspect_request).await
}

/// The server is reached: filters, and rules on what it says; whether the stream may go on.
pub(super) async fn of_server(stream: &mut Stream<'_>, back: &Proxy) -> bool {
    if !may_go_on(stream, Moment::Connected, Whose::All).await {
        return false;
    }
    if !back.rules.tcp_response.is_empty() {
        pass_first(stream).await;
    }
    may_go_on(stream, Moment::Response, Whose::All).await
        && goes(stream, &back.rules.tcp_response, Side::Response, back.timeouts.inspect_response).await
}

/// The rules on what an agent has answered, which nothing but them is told of.
pub(super) async fn of_answer(stream: &mut Stream<'_>, back: &Proxy) -> bool {
    goes(stream, &back.rules.tcp_response, Side::Response, back.timeouts.inspect_response).await
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

/// What content rules say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
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
    let deadline = inspect.map(|d| rt::now() + d);
    let verdict = ruling::run(&mut Content { stream, side, deadline }, set, inspect.is_none()).await;
    verdict.unwrap_or(Verdict::Go)
}

/// Asks the filters of the stream; whether it may go on.
async fn may_go_on(stream: &mut Stream<'_>, moment: Moment, whose: Whose) -> bool {
    if !stream.filters.as_ref().is_some_and(|filters| filters.want(moment)) {
        return true;
    }
    let mut bench = Content { stream, side: moment.side(), deadline: None };
    rt::boxed(ruling::meet(&mut bench, (moment, whose))).await.is_none_or(|verdict| verdict == Verdict::Go)
}

/// Where rules on the content of TCP stand.
struct Content<'s, 'c> {
    stream: &'s mut Stream<'c>,
    side: Side,
    /// Until when data are waited for.
    deadline: Option<rt::Mono>,
}

impl Bench for Content<'_, '_> {
    type Verdict = Verdict;

    fn run(&mut self, rules: &RuleSet, from: Position, last: bool, given: Option<Fulfilled>) -> Run {
        if self.side == Side::Request {
            crate::http::peek(self.stream);
        }
        self.stream.run_resumed(rules, self.side, from, last, given)
    }

    async fn fulfil(&mut self, _: &RuleSet, _: Position, need: Need) -> Result<Given, Verdict> {
        Ok(match need {
            Need::Data => {
                let came = match self.side {
                    Side::Request => more_data(self.stream, self.deadline).await,
                    Side::Response => more_response(self.stream, self.deadline).await,
                };
                Given::Data { over: !came }
            }
            Need::Content { data, more, kept } => {
                if let Some(data) = data {
                    replace(self.stream, self.side, &data);
                }
                let over = more
                    && !match self.side {
                        Side::Request => more_data(self.stream, self.deadline).await,
                        Side::Response => more_response(self.stream, self.deadline).await,
                    };
                Given::Back(Fulfilled::Brought(Box::new(action::Content { over, kept })))
            }
            Need::Delay(d) => {
                rt::sleep(d).await;
                Given::Back(Fulfilled::Done)
            }
            Need::Extension(extension) => {
                let waiting = extension.begin(self.stream.worker.clone());
                let brought = while_there(self.stream, self.deadline, waiting).await;
                Given::Back(brought.map_or(Fulfilled::Failed, Fulfilled::Brought))
            }
            Need::Address { resolvers, name, v4 } => {
                let waiting = crate::naming::find(&self.stream.worker, resolvers, name, v4);
                Given::Back(crate::naming::fulfilled(while_there(self.stream, self.deadline, waiting).await))
            }
            // There is no message in TCP, and what comes before the first byte was there.
            Need::Body { .. }
            | Need::Within(..)
            | Need::Interim(_)
            | Need::Handshake
            | Need::ProxyHeader
            | Need::CipHeader => Given::Back(Fulfilled::Failed),
        })
    }

    fn meet(&mut self, at: (Moment, Whose), from: usize, last: bool, given: Option<Fulfilled>) -> Met {
        self.stream.meet(at, from, last, given)
    }

    async fn decide(&mut self, flow: Flow, _: Option<u32>) -> Option<Verdict> {
        Some(decide(self.stream, flow, self.side))
    }
}

/// Puts other data in the place of those of a direction that have not gone on.
fn replace(stream: &mut Stream<'_>, side: Side, data: &[u8]) {
    let place = match side {
        Side::Request => &mut stream.client.buf,
        Side::Response => match &mut stream.upstream {
            Some(up) => &mut up.buf,
            None => return,
        },
    };
    let buf = place.get_or_insert_default();
    buf.consume(buf.len());
    buf.push(data);
    if buf.is_empty() {
        *place = None;
    }
}

/// Waits for an extension as long as the connection stands and the inspection delay is not over.
async fn while_there(
    stream: &Stream<'_>,
    deadline: Option<rt::Mono>,
    mut waiting: Waiting,
) -> Option<Box<dyn Any>> {
    let mut timer = rt::Timer::new();
    timer.set(deadline);
    poll_fn(|cx| {
        if let Poll::Ready(brought) = waiting.as_mut().poll(cx) {
            return Poll::Ready(Some(brought));
        }
        let client = &stream.client;
        if client.session.kill.get().is_some() || client.socket.poll_broken(cx).is_ready() {
            return Poll::Ready(None);
        }
        timer.poll_expired(cx).map(|()| None)
    })
    .await
}

fn decide(stream: &mut Stream<'_>, flow: Flow, side: Side) -> Verdict {
    let phase = match flow {
        Flow::Next | Flow::Accept | Flow::Yield(_) => return Verdict::Go,
        Flow::SwitchToHttp { h2 } => return Verdict::Switch(h2),
        Flow::CloseServer => {
            // It closes a connection that served: what rules noted of it stands.
            let worker = stream.worker.clone();
            let back = &*worker.shared.program.proxy(stream.backend_index());
            crate::stick::store_response(stream, back);
            return Verdict::Stop;
        }
        Flow::Service(name)
            if side == Side::Request && crate::connect::give_to_service(stream, &name, StreamKind::Tcp) =>
        {
            return Verdict::Go;
        }
        Flow::SilentDrop { rst_ttl } => {
            stream.client.vanish(rst_ttl);
            Phase::Request
        }
        _ if side == Side::Response => Phase::Data,
        _ => Phase::Request,
    };
    crate::http::denied(stream, side == Side::Response, side == Side::Request);
    stream.end(Cause::Proxy, phase);
    Verdict::Stop
}

/// How much of a direction rules are shown: what `tune.maxrewrite` reserves stays free.
pub(super) fn most(program: &program::Program) -> usize {
    program.global.tune.most_read().max(1)
}

/// Waits for more of what the client sends; whether it came before the deadline, and before the client was
/// silent for too long.
async fn more_data(stream: &mut Stream<'_>, deadline: Option<rt::Mono>) -> bool {
    let most = most(&stream.worker.shared.program);
    if stream.client.buf.as_ref().is_some_and(|buf| buf.len() >= most) {
        return false;
    }
    // Which of the two it was is asked when the rules are through.
    stream.client.timer.set(deadline.into_iter().chain(silence::deadline(stream)).min());
    match stream.client.receive_within(most).await {
        Ok(n) if n > 0 => {
            stream.heard = rt::now();
            stream.txn.up.received += n as u64;
            true
        }
        _ => false,
    }
}

/// Waits for more of what the server sends, while what the client sends goes on its way; whether more came
/// before the deadline.
async fn more_response(stream: &mut Stream<'_>, deadline: Option<rt::Mono>) -> bool {
    stream.server_timer.set(deadline);
    let most = most(&stream.worker.shared.program);
    poll_fn(|cx| {
        let Some(up) = stream.upstream.as_mut() else { return Poll::Ready(false) };
        if stream.client.session.kill.get().is_some() {
            return Poll::Ready(false);
        }
        let client = &mut *stream.client;
        // How this direction ends is for the pump to find again.
        let _ = stream.upload.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket);
        let buf = up.buf.get_or_insert_default();
        let room = buf.spare_within(most);
        if room.is_empty() {
            return Poll::Ready(false);
        }
        match up.socket.poll_recv(cx, room) {
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
