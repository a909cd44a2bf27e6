//! The task of a connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use engine::Worker;
use farm::At;
use link::timed::{self, Trouble};
use link::transport::Transport;
use model::server::admin;
use model::server_conns::Seat;
use model::trace::{level, spop};
use program::Proxy;
use rt::{Buf, Timer};
use wire::spop::write::{Greeting, disconnect, greeting};
use wire::spop::{AgentHello, Disconnect, Status, frame, kind};

use super::{Ended, Fault, Line, connect, pool, traced};

/// How long an agent may take to answer a good-bye.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a connection ended.
enum End {
    /// The agent has to be told.
    Ours(Status),
    /// The agent closed, or said good-bye with this status code.
    Theirs(u32),
    /// Nobody needs it.
    Idle,
}

/// Opens a connection and serves those who ask over it, until it ends.
pub async fn run(line: Rc<Line>, worker: Rc<Worker>, server: u32) {
    let shared = worker.shared.clone();
    let proxy = &*shared.program.proxy(line.agent.backend);
    let config = &*proxy.server(server);
    let _stay = shared.farm.stay(line.agent.backend, Some(server));
    let seat = config.strict_maxconn.then(|| Seat::take(&config.state));
    if matches!(seat, Some(None)) {
        return line.close(|payload| Ended::Unreached(Fault::Unreachable, payload), Status::Io.code());
    }
    let opened = connect::connect(&worker, proxy, At { proxy: line.agent.backend, server }, config).await;
    let socket = match opened {
        Ok(socket) => socket,
        Err(fault) => {
            traced::connection(&line, spop::ERR, level::ERROR, "agent not reached");
            return line.close(|payload| Ended::Unreached(fault, payload), Status::Io.code());
        }
    };
    traced::connection(&line, spop::NEW, level::STATE, "new connection");
    let mut input = None;
    match greet(&line, proxy, &socket, &mut input).await {
        Ok(hello) => line.opened(hello),
        Err((status, told)) => {
            traced::connection(&line, spop::ERR, level::ERROR, "no greeting");
            line.close(|_| Ended::Failed(status), status);
            if let Some(status) = told {
                part(&line, &socket, status, Vec::new()).await;
            }
            return traced::connection(&line, spop::END, level::STATE, "connection is over");
        }
    }
    let mut serving = Serving { worker, timer: Timer::new(), pause: config.pool_purge_delay, sent: 0 };
    let end = poll_fn(|cx| serving.turn(cx, &line, &socket, &mut input)).await;
    let code = match end {
        End::Ours(status) => status.code(),
        End::Theirs(code) => code,
        End::Idle => Status::Normal.code(),
    };
    if !line.used.get() {
        line.server.conns.leave(true);
    }
    if !matches!(end, End::Idle) {
        traced::connection(&line, spop::ERR, level::ERROR, "connection failed");
    }
    line.close(Ended::Elsewhere, code);
    match end {
        End::Ours(status) => part(&line, &socket, status, rest(&line, serving.sent)).await,
        End::Idle => part(&line, &socket, Status::Normal, rest(&line, serving.sent)).await,
        End::Theirs(_) => {}
    }
    traced::connection(&line, spop::END, level::STATE, "connection is over");
}

/// What is left of a frame that was begun.
fn rest(line: &Line, sent: usize) -> Vec<u8> {
    let out = line.out.take();
    out.get(sent..).map(<[u8]>::to_vec).unwrap_or_default()
}

/// Shakes hands. `timeout server` is for that, or `timeout connect` where there is none.
///
/// # Errors
/// The status of those who wait, and what the agent has to be told.
async fn greet(
    line: &Line,
    proxy: &Proxy,
    socket: &Transport,
    input: &mut Option<Buf>,
) -> Result<AgentHello, (u32, Option<Status>)> {
    let most = u32::try_from(line.agent.most).unwrap_or(u32::MAX);
    let (pipelining, engine) = (line.agent.pipelining, Some(line.agent.id()));
    let mut hello = Vec::new();
    let io = (Status::Io.code(), None);
    greeting(&mut hello, &Greeting { most, pipelining, check: false, engine }).map_err(|_| io)?;
    let mut timer = Timer::new();
    timer.set_after(proxy.timeouts.server.or(proxy.timeouts.connect));
    let late = |trouble| match trouble {
        Trouble::TimedOut => (Status::Io.code(), Some(Status::Timeout)),
        Trouble::Io(_) => io,
    };
    traced::sends(line, kind::HAPROXY_HELLO, 0, hello.len());
    timed::send(socket, &hello, &mut timer).await.map_err(late)?;
    loop {
        let data = input.as_ref().map(Buf::filled).unwrap_or_default();
        let invalid = (Status::Invalid.code(), None);
        if let Some((read, taken)) = frame(data, line.agent.most).map_err(|_| invalid)? {
            traced::received(line, read.kind, read.stream, taken);
            if read.kind != kind::AGENT_HELLO || (read.stream, read.frame) != (0, 0) {
                return Err(invalid);
            }
            let agreed = AgentHello::greeted(read.payload, line.agent.most);
            let agreed = agreed.map_err(|status| (Status::Io.code(), Some(status)))?;
            if let Some(buf) = input {
                buf.consume(taken);
            }
            return Ok(agreed);
        }
        let full = input.as_ref().is_some_and(Buf::is_full);
        if full || timed::receive(socket, input, &mut timer).await.map_err(late)? == 0 {
            return Err(io);
        }
    }
}

/// Says good-bye behind what was begun, and waits a moment for the agent to answer.
async fn part(line: &Line, socket: &Transport, status: Status, mut out: Vec<u8>) {
    traced::sends(line, kind::HAPROXY_DISCONNECT, 0, 0);
    let mut timer = Timer::new();
    timer.set_after(Some(FAREWELL));
    disconnect(&mut out, status);
    if timed::send(socket, &out, &mut timer).await.is_err() {
        return;
    }
    let mut input = None;
    while matches!(timed::receive(socket, &mut input, &mut timer).await, Ok(n) if n > 0) {
        input = None;
    }
}

/// What a connection at work knows.
struct Serving {
    worker: Rc<Worker>,
    /// Runs while nobody uses it.
    timer: Timer,
    /// `pool-purge-delay`
    pause: Duration,
    /// Bytes of the buffer that are sent.
    sent: usize,
}

impl Serving {
    /// One turn: everything that can be done now.
    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        line: &Rc<Line>,
        socket: &Transport,
        input: &mut Option<Buf>,
    ) -> Poll<End> {
        if let Err(end) = self.send(cx, line, socket) {
            return Poll::Ready(end);
        }
        if let Err(end) = receive(cx, line, socket, input) {
            return Poll::Ready(end);
        }
        self.watch(cx, line)
    }

    fn send(&mut self, cx: &mut Context<'_>, line: &Line, socket: &Transport) -> Result<(), End> {
        let mut out = line.out.borrow_mut();
        while let Some(data) = out.get(self.sent..).filter(|data| !data.is_empty()) {
            match socket.poll_send(cx, data, false) {
                Poll::Ready(Ok(n)) => self.sent += n,
                Poll::Ready(Err(_)) => return Err(End::Theirs(Status::Io.code())),
                Poll::Pending => return Ok(()),
            }
        }
        out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Looks after a connection that nobody uses.
    fn watch(&mut self, cx: &mut Context<'_>, line: &Rc<Line>) -> Poll<End> {
        if !line.is_idle() {
            self.timer.set(None);
            return Poll::Pending;
        }
        if line.left.get() == 0 {
            return Poll::Ready(End::Idle);
        }
        if self.timer.deadline().is_none() {
            self.timer.set_after(Some(self.pause.max(Duration::from_millis(100))));
        }
        while self.timer.poll_expired(cx).is_ready() {
            let gone = line.server.admin() & admin::MAINT != 0 || line.server.moves() != line.moves;
            if gone || self.worker.is_superseded() || pool::has_another(line.key, line) {
                return Poll::Ready(End::Idle);
            }
            self.timer.set_after(Some(self.pause.max(Duration::from_millis(100))));
        }
        Poll::Pending
    }
}

/// Reads what has come, and hands answers to those that wait for them.
fn receive(
    cx: &mut Context<'_>,
    line: &Rc<Line>,
    socket: &Transport,
    input: &mut Option<Buf>,
) -> Result<(), End> {
    loop {
        frames(line, input)?;
        if input.is_none() && socket.poll_readable(cx).is_pending() {
            return Ok(());
        }
        let buf = input.get_or_insert_with(Buf::new);
        buf.compact();
        let received = socket.poll_recv(cx, buf.spare_mut());
        let cut = !buf.is_empty();
        match received {
            Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) if cut => {
                return Err(End::Theirs(Status::Invalid.code()));
            }
            Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) => return Err(End::Theirs(Status::Io.code())),
            Poll::Ready(Ok(n)) => buf.advance(n),
            Poll::Pending => {
                if buf.is_empty() {
                    *input = None;
                }
                return Ok(());
            }
        }
    }
}

/// Takes all whole frames out of what has come.
fn frames(line: &Line, input: &mut Option<Buf>) -> Result<(), End> {
    let Some(buf) = input else { return Ok(()) };
    while let Some((read, taken)) = frame(buf.filled(), line.most.get()).map_err(End::Ours)? {
        traced::received(line, read.kind, read.stream, taken);
        match read.kind {
            kind::ACK => line.answer(read.stream, read.frame, read.payload).map_err(End::Ours)?,
            kind::AGENT_DISCONNECT => {
                let told = Disconnect::parse(read.payload).map_err(End::Ours)?;
                let code = u32::try_from(told.code).unwrap_or(Status::Unknown.code());
                // One without a reason is the end of the connection, no more.
                return Err(End::Theirs(if code == 0 { Status::Io.code() } else { code }));
            }
            _ => return Err(End::Ours(Status::Invalid)),
        }
        buf.consume(taken);
    }
    Ok(())
}
