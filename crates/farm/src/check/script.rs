//! One health check from connect to verdict: the steps of a rule set, in order (manual, `tcp-check`,
//! `http-check`).
//!
//! Consecutive `expect` rules look at the same answer; sending again starts a new one. What is sent in a row
//! goes out together. A rule set that does not begin with `connect` has one in front of it, and an HTTP one
//! that asks without expecting anything expects 2xx or 3xx.

use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use lang::LogFormat;
use model::check::{CheckResult, CheckStatus};
use model::vars::Owned;
use model::{Conn, Txn};
use program::Server;
use program::check::{Check, Expect, Pattern, Ruleset, Step};
use rt::{Addr, ConnectOptions, Mono, Timer};
use wire::method::Method;

use super::contact::{self, Contact, Trouble};
use super::expect;
use super::http;
use crate::At;
use crate::FarmWorker;

mod answer;
mod dial;

use dial::Target;

/// What an HTTP check without `expect` wants.
static GOOD_STATUS: LazyLock<Expect> = LazyLock::new(|| Expect::of(Pattern::Status(vec![(200, 399)])));

/// Runs a server's health check once.
pub async fn run(worker: &Rc<FarmWorker>, at: At, check: &Check) -> CheckResult {
    let begun = rt::now();
    let program = worker.farm.program.clone();
    let proxy = &*program.proxy(at.proxy);
    let mut script = Script {
        worker,
        at,
        server: &program.server(at.proxy, at.server),
        check,
        conn: Conn::new(worker.next_serial(), at.proxy, 0, begun, rt::wall()),
        txn: Box::default(),
        link: None,
        timer: Timer::new(),
        limits: Timing::of(begun, check.inter, proxy.timeouts.connect, proxy.timeouts.check),
        method: Method::Options,
        head: None,
        body: Vec::new(),
    };
    script.txn.backend = Some(at.proxy);
    script.txn.server = Some(at.server);
    if let Some(format) = &proxy.unique_id_format {
        let id = script.text(format);
        *script.txn.unique_id.borrow_mut() = Some(id.into());
    }
    let mut result = match script.steps(&check.ruleset).await {
        Ok(result) | Err(result) => result,
    };
    result.duration_ms = u32::try_from(rt::now().millis_since(begun)).unwrap_or(u32::MAX);
    result
}

/// Deadlines (manual, `timeout check`): with it, connecting takes at most `timeout connect` and the interval,
/// and what follows `timeout check`; without it, everything together takes the interval.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    whole: Mono,
    connect: Option<Duration>,
    answer: Option<Duration>,
}

impl Timing {
    /// The deadlines of a check that begins now.
    pub fn of(begun: Mono, inter: Duration, connect: Option<Duration>, answer: Option<Duration>) -> Timing {
        let connect = answer.map(|_| connect.map_or(inter, |c| c.min(inter)));
        Timing { whole: begun + inter, connect, answer }
    }

    /// When connecting must be done.
    pub fn for_connect(&self) -> Mono {
        self.connect.map_or(self.whole, |d| rt::now() + d)
    }

    /// When the answer must be there, once connected.
    pub fn for_answer(&self) -> Mono {
        self.answer.map_or(self.whole, |d| rt::now() + d)
    }
}

struct Script<'w> {
    worker: &'w Rc<FarmWorker>,
    at: At,
    server: &'w Server,
    check: &'w Check,
    conn: Conn,
    txn: Box<Txn>,
    link: Option<Contact>,
    timer: Timer,
    limits: Timing,
    /// Of the last request.
    method: Method,
    /// Length of the answer's head, once it is there.
    head: Option<usize>,
    /// Body of the answer, or what a TCP server said, for expressions.
    body: Vec<u8>,
}

fn failure(status: CheckStatus, detail: String) -> CheckResult {
    CheckResult { status, detail, ..CheckResult::default() }
}

/// Whether a server must know of its new connection before this step: it is to speak first, or to be left for
/// another one.
fn listens(next: Option<&Step>) -> bool {
    matches!(next, Some(Step::Expect(_) | Step::Connect { .. }))
}

impl Script<'_> {
    async fn steps(&mut self, rules: &Ruleset) -> Result<CheckResult, CheckResult> {
        let talks = |s: &&Step| {
            matches!(s, Step::Connect { .. } | Step::SendHttp { .. } | Step::Send { .. } | Step::Expect(_))
        };
        let next = |from: usize| rules.steps.iter().skip(from).find(talks);
        let first = next(0);
        if !matches!(first, Some(Step::Connect { .. })) {
            let send_proxy = self.check.send_proxy;
            let what = String::new();
            let tls = self.spoken_first();
            let to = Target {
                port: None,
                addr: None,
                send_proxy,
                socks: self.check.via_socks4,
                linger: false,
                tls,
                proto: self.check.proto,
                delay_ack: !listens(first),
                place: None,
                what,
            };
            self.connect(to).await?;
        }
        let mut passed = failure(self.connected(), String::new());
        let mut unanswered = false;
        // That of the `comment` rule right before a step.
        let mut before = None;
        let first = usize::from(!rules.uncounted);
        for (number, step) in (first..).zip(&rules.steps) {
            let spare: Option<&str> = before.take();
            match step {
                Step::Connect { comment, .. } => {
                    let place = Some((number, comment.as_deref().or(spare)));
                    self.flush(number, "send", None).await?;
                    let then = next(number + 1 - first);
                    let target = self.target(step, place, !listens(then));
                    self.connect(target).await?;
                    if rules.tcp || rules.http {
                        passed = failure(self.connected(), "(tcp-check)".to_owned());
                    }
                }
                Step::SendHttp { .. } => {
                    self.send_http(step);
                    unanswered = true;
                }
                Step::Send { data, hex, .. } => {
                    self.send(data, *hex, number)?;
                    if rules.tcp {
                        passed = failure(CheckStatus::L7Ok, "(tcp-check)".to_owned());
                    }
                }
                Step::Expect(rule) => {
                    passed = self.expect(rule, number, spare).await?;
                    unanswered = false;
                }
                Step::SetVar(var, expr) => {
                    if let Some(value) = self.value(expr) {
                        self.set(*var, Some(value));
                    }
                }
                Step::SetVarFormat(var, format) => {
                    self.set(*var, Some(Owned::Str(self.text(format).into())));
                }
                Step::UnsetVar(var) => self.set(*var, None),
                Step::Comment(text) => before = Some(&**text),
            }
        }
        if unanswered {
            passed = self.expect(&GOOD_STATUS, rules.steps.len() + first, None).await?;
        }
        self.flush(rules.steps.len(), "send", None).await?;
        Ok(passed)
    }

    /// ` at step 2 of tcp-check (expect string 'x') comment: 'y'`; nothing for HTTP and ready-made checks.
    fn place(&self, number: usize, what: &str, comment: Option<&str>) -> String {
        if self.check.ruleset.http || self.check.ruleset.canned {
            return String::new();
        }
        let comment = comment.map(|c| format!(" comment: '{c}'")).unwrap_or_default();
        format!(" at step {number} of tcp-check ({what}){comment}")
    }

    fn forget(&mut self) {
        self.head = None;
        self.body.clear();
        self.txn.has_res = false;
    }

    /// Where to put what is to be sent.
    fn out(&mut self) -> &mut Vec<u8> {
        self.forget();
        match &mut self.link {
            Some(link) => link.out(),
            // There is a connection whenever steps run.
            None => &mut self.body,
        }
    }

    fn send(&mut self, data: &LogFormat, hex: bool, number: usize) -> Result<(), CheckResult> {
        let text = self.text(data);
        let bytes = if hex { expect::unhex(&text) } else { Some(text) };
        let Some(bytes) = bytes else {
            let detail = format!("tcp-check send : failed to build log-format string at step {number}");
            return Err(failure(CheckStatus::L7Rsp, detail));
        };
        self.out().extend_from_slice(&bytes);
        Ok(())
    }

    fn send_http(&mut self, step: &Step) {
        let Step::SendHttp { method, uri, version, headers, body, .. } = step else { return };
        let worker = self.worker;
        let proxy = &*worker.farm.program.proxy(self.at.proxy);
        let server = &*proxy.server(self.at.server);
        let name = proxy.send_name_header.as_ref().map(wire::head::FieldName::as_bytes);
        let request = http::Request {
            server: name.map(|name| (name, server.name.as_bytes())),
            pretends: proxy.options.http_pretend_keepalive,
            method,
            uri: self.line(uri),
            version,
            headers: headers.iter().map(|(name, value)| (&**name, self.line(value))).collect(),
            body: body.as_ref().map(|b| self.text(b)),
            state: self.state(),
        };
        self.method = Method::from_bytes(method);
        request.write(self.out());
    }

    fn state(&self) -> Option<String> {
        self.check.ruleset.send_state.then(|| http::state(self.worker, self.at))
    }

    async fn flush(&mut self, number: usize, what: &str, comment: Option<&str>) -> Result<(), CheckResult> {
        let Some(link) = &mut self.link else { return Ok(()) };
        match link.flush(&mut self.timer).await {
            Ok(()) => Ok(()),
            Err(Trouble::TimedOut) => Err(failure(CheckStatus::L7Timeout, self.place(number, what, comment))),
            Err(Trouble::Io(e)) => {
                let detail = format!("{}{}", contact::describe(&e), self.place(number, what, comment));
                Err(failure(CheckStatus::SockErr, detail))
            }
        }
    }
}

/// How a connection of a check is made.
pub fn options(worker: &FarmWorker, at: At, server: &Server) -> ConnectOptions {
    let proxy = &*worker.farm.program.proxy(at.proxy);
    let source = server.source.as_ref().or(proxy.source.as_ref());
    let has_port = server.check.as_ref().is_some_and(|check| check.port.is_some());
    // Packets to a server behind a Unix socket are never signed, nor then those of its checks elsewhere.
    let local = matches!(**server.state.target.load(), model::configured::Target::Unix { .. });
    let md5sig = server.md5sig.as_deref().filter(|_| !local);
    ConnectOptions {
        source: source.and_then(|s| s.addr).map(Addr::Inet),
        interface: source.and_then(|s| s.interface.as_deref()).map(str::to_owned),
        mptcp: server.check_mptcp.unwrap_or(server.mptcp && !has_port),
        md5sig: md5sig.map(|k| k.as_bytes().to_vec()),
        namespace: server.namespace.without_client(),
        ..ConnectOptions::default()
    }
}

/// A refused connection is the server's fault; a lack of descriptors or ports is ours.
pub fn connect_status(e: &std::io::Error) -> CheckStatus {
    match e.raw_os_error() {
        // EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, EAGAIN
        Some(24 | 23 | 105 | 12 | 99 | 11) => CheckStatus::SockErr,
        // ETIMEDOUT
        Some(110) => CheckStatus::L4Timeout,
        _ => CheckStatus::L4Con,
    }
}
