//! One question to an agent (manual, `agent-check`).

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use model::check::{CheckResult, CheckStatus};
use program::check::Agent;
use rt::{Addr, Timer};

use super::contact::{self, Contact, Trouble};
use super::script::{Timing, connect_status, options};
use super::{verdict, words};
use crate::At;
use crate::FarmWorker;

/// What became of the question.
enum Answer {
    /// A whole line, its end cut off.
    Line(Vec<u8>),
    /// Words, but no end of line: not to be trusted.
    Incomplete,
    /// None; the status and why.
    Failed(CheckStatus, String),
}

/// Asks a server's agent and does what it says.
pub async fn run(worker: &Rc<FarmWorker>, at: At, agent: &Agent) {
    let begun = rt::now();
    let answer = ask(worker, at, agent).await;
    let duration_ms = u32::try_from(rt::now().millis_since(begun)).unwrap_or(u32::MAX);
    let mut result = CheckResult { duration_ms, ..CheckResult::default() };
    match answer {
        Answer::Line(line) => return verdict::agent(worker, at, result, Some(&words::parse(&line))),
        Answer::Incomplete => {
            let server = &*worker.farm.program.server(at.proxy, at.server);
            result.status = server.state.status.lock().agent.status;
            result.detail = "Ignoring incomplete line from agent".to_owned();
        }
        Answer::Failed(status, detail) => (result.status, result.detail) = (status, detail),
    }
    verdict::agent(worker, at, result, None);
}

fn address(worker: &FarmWorker, at: At, agent: &Agent) -> Option<Addr> {
    let server = &*worker.farm.program.server(at.proxy, at.server);
    let (set_addr, set_port) = {
        let probe = server.state.probe.lock();
        (probe.agent_addr, probe.agent_port.filter(|p| *p > 0))
    };
    let ip = match set_addr.or(agent.addr.map(|a| a.ip())) {
        Some(ip) => ip,
        None => link::address::target(&server.state.target.load())?.as_inet()?.ip(),
    };
    Some(Addr::Inet(SocketAddr::new(ip, set_port.unwrap_or(agent.port))))
}

async fn ask(worker: &Rc<FarmWorker>, at: At, agent: &Agent) -> Answer {
    let proxy = &*worker.farm.program.proxy(at.proxy);
    let Some(addr) = address(worker, at, agent) else {
        return Answer::Failed(CheckStatus::SockErr, String::new());
    };
    let timing = Timing::of(rt::now(), agent.inter, proxy.timeouts.connect, proxy.timeouts.check);
    let mut timer = Timer::at(timing.for_connect());
    let server = &*proxy.server(at.server);
    let options = rt::ConnectOptions { mptcp: false, ..options(worker, at, server) };
    let mut link = match Contact::open(&addr, &options, false, &mut timer).await {
        Ok(link) => link,
        Err(Trouble::TimedOut) => return Answer::Failed(CheckStatus::L4Timeout, String::new()),
        Err(Trouble::Io(e)) => return Answer::Failed(connect_status(&e), contact::describe(&e)),
    };
    timer.set(Some(timing.for_answer()));
    let set = server.state.probe.lock().agent_send.clone();
    link.out().extend_from_slice(set.as_deref().unwrap_or(&agent.send));
    match link.flush(&mut timer).await {
        Ok(()) => {}
        Err(Trouble::TimedOut) => return Answer::Failed(CheckStatus::L7Timeout, String::new()),
        Err(Trouble::Io(e)) => return Answer::Failed(CheckStatus::SockErr, contact::describe(&e)),
    }
    loop {
        if let Some(end) = link.data().iter().position(|b| matches!(b, b'\r' | b'\n')) {
            return Answer::Line(link.data().get(..end).unwrap_or_default().to_vec());
        }
        if link.is_over() {
            return ended(&link);
        }
        if link.more(&mut timer).await.is_err() {
            return Answer::Failed(CheckStatus::L7Timeout, String::new());
        }
    }
}

fn ended(link: &Contact) -> Answer {
    if !link.data().is_empty() {
        return Answer::Incomplete;
    }
    match link.error() {
        Some(e) => Answer::Failed(CheckStatus::SockErr, contact::describe(e)),
        None => {
            let detail = "TCPCHK got an empty response at step 2".to_owned();
            Answer::Failed(CheckStatus::L7Rsp, detail)
        }
    }
}

/// Whether a server's agent is to be asked now.
pub fn is_due(worker: &FarmWorker, at: At) -> bool {
    let server = &*worker.farm.program.server(at.proxy, at.server);
    server.state.agent_enabled.load(Relaxed)
}
