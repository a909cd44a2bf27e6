//! One health check from connect to verdict: the steps of a rule set, in order (manual, `tcp-check`, `http-check`).
//!
//! Consecutive `expect` rules look at the same answer; sending again starts a new one. What is sent in a row goes out
//! together. A rule set that does not begin with `connect` has one in front of it, and an HTTP one that asks without
//! expecting anything expects 2xx or 3xx.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use lang::env::{Env, Side};
use lang::logfmt::Use;
use lang::{Expr, LogFormat};
use model::check::{CheckResult, CheckStatus};
use model::vars::{Owned, Scope, VarRef};
use model::{Conn, Txn};
use program::Server;
use program::check::{Check, Expect, Pattern, PortFrom, Protocol, Ruleset, Step};
use rt::{Addr, ConnectOptions, Mono, Timer};
use wire::http1::{Limits, Parsed, parse_response};
use wire::method::Method;

use super::expect::{self, Look, Received};
use super::link::{self, Link, Trouble};
use super::protocols::{self, Judged};
use super::{http, verdict};
use crate::Worker;
use crate::live::{View, Waiting};
use crate::secure::Refused;
use crate::state::At;

/// What an HTTP check without `expect` wants.
static GOOD_STATUS: LazyLock<Expect> = LazyLock::new(|| Expect {
    negated: false,
    min_recv: None,
    what: Pattern::Status(vec![(200, 399)]),
    ok_status: None,
    error_status: None,
    timeout_status: None,
    on_success: None,
    on_error: None,
    status_code: None,
    comment: None,
});

/// Runs a server's health check once.
pub async fn run(worker: &Rc<Worker>, at: At, check: &Check) -> CheckResult {
    let begun = rt::now();
    let program = worker.shared.program.clone();
    let proxy = program.proxy(at.proxy);
    let mut script = Script {
        worker,
        at,
        server: &proxy.servers[at.server as usize],
        check,
        conn: Conn::new(worker.next_serial(), at.proxy, 0, begun, rt::wall()),
        txn: worker.take_txn(),
        link: None,
        timer: Timer::new(),
        limits: Timing::of(begun, check.inter, proxy.timeouts.connect, proxy.timeouts.check),
        method: Method::Options,
        head: None,
        body: Vec::new(),
    };
    script.txn.backend = Some(at.proxy);
    script.txn.server = Some(at.server);
    let mut result = match script.steps(&check.ruleset).await {
        Ok(result) | Err(result) => result,
    };
    result.duration_ms = u32::try_from(rt::now().millis_since(begun)).unwrap_or(u32::MAX);
    let txn = std::mem::take(&mut script.txn);
    drop(script);
    worker.give_txn(txn);
    result
}

/// Deadlines (manual, `timeout check`): with it, connecting takes at most `timeout connect` and the interval, and
/// what follows `timeout check`; without it, everything together takes the interval.
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
    worker: &'w Rc<Worker>,
    at: At,
    server: &'w Server,
    check: &'w Check,
    conn: Conn,
    txn: Box<Txn>,
    link: Option<Link>,
    timer: Timer,
    limits: Timing,
    /// Of the last request.
    method: Method,
    /// Length of the answer's head, once it is there.
    head: Option<usize>,
    /// Body of the answer, or what a TCP server said, for expressions.
    body: Vec<u8>,
}

/// Server name and protocols of TLS.
type Spoken = (Option<Box<str>>, Option<Vec<Vec<u8>>>);

/// A `connect` as the configuration has it.
struct Target<'c> {
    port: Option<u16>,
    addr: Option<SocketAddr>,
    send_proxy: bool,
    /// Through the server's SOCKS4 proxy.
    socks: bool,
    linger: bool,
    /// TLS, with its server name and protocols.
    tls: Option<Spoken>,
    /// HTTP/2 without negotiation.
    h2: bool,
    /// Where it stands, for messages; nothing for the implicit one.
    place: Option<(usize, Option<&'c str>)>,
    /// `connect`, or `connect port 80`.
    what: String,
}

fn failure(status: CheckStatus, detail: String) -> CheckResult {
    CheckResult { status, detail, ..CheckResult::default() }
}

impl Script<'_> {
    async fn steps(&mut self, rules: &Ruleset) -> Result<CheckResult, CheckResult> {
        let talks = |s: &&Step| {
            matches!(s, Step::Connect { .. } | Step::SendHttp { .. } | Step::Send { .. } | Step::Expect(_))
        };
        let first = rules.steps.iter().find(talks);
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
                h2: self.check.h2,
                place: None,
                what,
            };
            self.connect(to).await?;
        }
        let mut asks = rules.http && !rules.steps.iter().any(|s| matches!(s, Step::SendHttp { .. }));
        let mut passed = failure(self.connected(), String::new());
        let mut unanswered = rules.http;
        // That of the `comment` rule right before a step.
        let mut before = None;
        for (number, step) in (1..).zip(&rules.steps) {
            let spare: Option<&str> = before.take();
            match step {
                Step::Connect { comment, .. } => {
                    let place = Some((number, comment.as_deref().or(spare)));
                    self.flush(number, "send", None).await?;
                    let target = self.target(step, place);
                    self.connect(target).await?;
                    if rules.tcp {
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
                    if std::mem::take(&mut asks) {
                        self.send_default();
                    }
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
        if asks {
            self.send_default();
        }
        if unanswered {
            passed = self.expect(&GOOD_STATUS, rules.steps.len() + 1, None).await?;
        }
        self.flush(rules.steps.len(), "send", None).await?;
        Ok(passed)
    }

    /// What a `connect` connects to.
    fn target<'c>(&self, step: &Step, place: Option<(usize, Option<&'c str>)>) -> Target<'c> {
        let Step::Connect {
            port, addr, send_proxy, default, via_socks4, linger, ssl, sni, alpn, proto, ..
        } = step
        else {
            return Target {
                port: None,
                addr: None,
                send_proxy: false,
                socks: self.check.via_socks4,
                linger: false,
                tls: self.spoken(),
                h2: self.check.h2,
                place,
                what: String::new(),
            };
        };
        let (port, what) = match port {
            None => (None, "connect".to_owned()),
            Some(PortFrom::Fixed(port)) => (Some(*port), format!("connect port {port}")),
            Some(PortFrom::Expr(expr)) => (self.port(expr), "connect port (expression)".to_owned()),
        };
        let send_proxy = *send_proxy || *default && self.check.send_proxy;
        let inherited = self.spoken().filter(|_| *default);
        let speaks = *ssl || inherited.is_some();
        let (own_sni, own_alpn) = inherited.unwrap_or_default();
        let tls = speaks.then(|| (sni.clone().or(own_sni), alpn.clone().or(own_alpn)));
        let socks = *via_socks4 || (*default && self.check.via_socks4);
        let h2 = proto.unwrap_or(*default && self.check.h2);
        Target { port, addr: *addr, send_proxy, socks, linger: *linger, tls, h2, place, what }
    }

    /// The port that an expression names; one that names none leaves the server's.
    fn port(&self, expr: &Expr) -> Option<u16> {
        let port = match self.value(expr)? {
            Owned::Int(n) => u16::try_from(n).ok(),
            Owned::Str(t) | Owned::Bin(t) => std::str::from_utf8(&t).ok()?.trim().parse().ok(),
            _ => None,
        };
        port.filter(|p| *p > 0)
    }

    /// ` at step 2 of tcp-check (expect string 'x') comment: 'y'`; nothing for HTTP and ready-made checks.
    fn place(&self, number: usize, what: &str, comment: Option<&str>) -> String {
        if self.check.ruleset.http || self.check.ruleset.canned {
            return String::new();
        }
        let comment = comment.map(|c| format!(" comment: '{c}'")).unwrap_or_default();
        format!(" at step {number} of tcp-check ({what}){comment}")
    }

    fn address(&self, to: &Target<'_>) -> Option<Addr> {
        let own = crate::net::target(&self.server.state.target.load());
        let (set_addr, set_port) = {
            let probe = self.server.state.probe.lock();
            (probe.check_addr, probe.check_port.filter(|p| *p > 0))
        };
        let configured = self.check.addr;
        let check_addr =
            set_addr.map(|ip| SocketAddr::new(ip, configured.map_or(0, |a| a.port()))).or(configured);
        let check_port = set_port.or(self.check.port);
        let Some(ip) = to.addr.or(check_addr) else {
            let Some(Addr::Inet(mut a)) = own else { return own };
            a.set_port(to.port.or(check_port).unwrap_or(a.port()));
            return Some(Addr::Inet(a));
        };
        let own = own.as_ref().and_then(Addr::as_inet).map(|a| a.port());
        let given = |a: SocketAddr| (a.port() > 0).then_some(a.port());
        let port = to.port.or_else(|| to.addr.and_then(given)).or(check_port);
        let port = port.or_else(|| check_addr.and_then(given)).or(own)?;
        Some(Addr::Inet(SocketAddr::new(ip.ip(), port)))
    }

    async fn connect(&mut self, to: Target<'_>) -> Result<(), CheckResult> {
        self.link = None;
        self.forget();
        let place = match to.place {
            Some((n, comment)) => self.place(n, &to.what, comment),
            None if self.check.ruleset.tcp => " at initial connection step of tcp-check".to_owned(),
            None => String::new(),
        };
        let Some(addr) = self.address(&to) else {
            return Err(failure(CheckStatus::SockErr, format!("No address to connect to{place}")));
        };
        if let Some(link) = self.resume(&to, &addr).await {
            self.timer.set(Some(self.limits.for_answer()));
            self.link = Some(link);
            return Ok(());
        }
        self.timer.set(Some(self.limits.for_connect()));
        let through = self.server.socks4.filter(|_| to.socks).map(Addr::Inet);
        let options = options(self.worker, self.at, self.server);
        let first = through.as_ref().unwrap_or(&addr);
        let mut opened = Link::open(first, &options, to.linger, &mut self.timer).await;
        if let (Ok(link), Some(_)) = (&opened, &through) {
            let asked = crate::socks::connect(link.socket(), &addr, &mut self.timer, |_| false).await;
            if let Err(refused) = asked {
                opened = Err(match refused {
                    crate::socks::Refused::Io(e) => Trouble::Io(e),
                    _ => Trouble::TimedOut,
                });
            }
        }
        let mut link = match opened {
            Ok(link) => link,
            Err(Trouble::TimedOut) => return Err(failure(CheckStatus::L4Timeout, place)),
            Err(Trouble::Io(e)) => {
                return Err(failure(connect_status(&e), format!("{}{place}", link::describe(&e))));
            }
        };
        self.timer.set(Some(self.limits.for_answer()));
        if to.send_proxy {
            let version = self.server.send_proxy.as_ref().map_or(1, |s| s.version);
            proxy_header(&mut link, version);
        }
        if let Some((sni, alpn)) = to.tls {
            self.secure(&mut link, sni, alpn, &place).await?;
        }
        if self.check.ruleset.http && (to.h2 || link.agreed_h2()) {
            if link.flush(&mut self.timer).await.is_err() {
                return Err(failure(CheckStatus::SockErr, place));
            }
            link.multiplex(self.worker, self.at.proxy);
        }
        self.link = Some(link);
        Ok(())
    }

    /// An idle connection of the server, where the check may use one. What is set at run time about addresses of checks
    /// speaks against it as what is configured does.
    async fn resume(&self, to: &Target<'_>, addr: &Addr) -> Option<Link> {
        let moved = {
            let probe = self.server.state.probe.lock();
            probe.check_addr.is_some() || probe.check_port.is_some_and(|p| p > 0)
        };
        if !self.check.reuse_pool || to.place.is_some() || moved {
            return None;
        }
        let proxy = self.worker.shared.program.proxy(self.at.proxy);
        let auto = self.host();
        let name = self.check.pool_name.as_deref().or(auto.as_deref());
        let idle = crate::connect::idle_for_check(self.worker, proxy, self.at, addr, name).await?;
        Some(Link::resume(idle))
    }

    /// What connections speak unasked.
    fn spoken(&self) -> Option<Spoken> {
        self.check.tls.then(|| (self.check.sni.clone(), self.check.alpn.clone()))
    }

    /// The same where no rule says how to connect: the host asked for is the server's name.
    fn spoken_first(&self) -> Option<Spoken> {
        let (sni, alpn) = self.spoken()?;
        Some((sni.or_else(|| self.host()), alpn))
    }

    /// The host that the first request asks for, if it is to be the server's name (`check-sni-auto`).
    fn host(&self) -> Option<Box<str>> {
        let steps = self.check.ruleset.steps.iter().filter(|_| self.check.sni_auto);
        let headers = steps.filter_map(|s| match s {
            Step::SendHttp { headers, .. } => Some(headers),
            _ => None,
        });
        let (_, host) = headers.take(1).flatten().find(|(name, _)| name.eq_ignore_ascii_case(b"host"))?;
        let host = self.text(host);
        let name = host.split(|c| *c == b':').next().filter(|n| !n.is_empty())?;
        Some(std::str::from_utf8(name).ok()?.into())
    }

    /// What a connection that stands is worth.
    fn connected(&self) -> CheckStatus {
        match self.link.as_ref().is_some_and(Link::is_secure) {
            true => CheckStatus::L6Ok,
            false => CheckStatus::L4Ok,
        }
    }

    async fn secure(
        &mut self,
        link: &mut Link,
        sni: Option<Box<str>>,
        alpn: Option<Vec<Vec<u8>>>,
        place: &str,
    ) -> Result<(), CheckResult> {
        let Some(connector) = &self.check.connector else { return Ok(()) };
        // A PROXY header goes in the clear.
        if link.flush(&mut self.timer).await.is_err() {
            return Err(failure(CheckStatus::SockErr, place.to_owned()));
        }
        let name = sni.and_then(|n| tls::ServerName::try_from(n.into_string()).ok());
        let Ok(handshake) = tls::Handshake::connect(connector, name, alpn) else {
            return Err(failure(CheckStatus::L6Rsp, place.to_owned()));
        };
        let (worker, server) = (self.worker, &self.server.state);
        let proxy = worker.shared.program.proxy(self.at.proxy);
        let count = |shaken: &_| crate::secure::count(worker, proxy, server, shaken);
        match link.secure(worker, handshake, &mut self.timer, count).await {
            Ok(()) => Ok(()),
            Err(Refused::TimedOut) => Err(failure(CheckStatus::L6Timeout, place.to_owned())),
            Err(Refused::Failed(_, text, _)) => Err(failure(CheckStatus::L6Rsp, format!("{text}{place}"))),
        }
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

    fn send_default(&mut self) {
        let state = self.state();
        let request = http::Request { method: b"OPTIONS", version: b"HTTP/1.0", state, ..Default::default() };
        self.method = Method::Options;
        request.write(self.out());
    }

    fn send_http(&mut self, step: &Step) {
        let Step::SendHttp { method, uri, version, headers, body, .. } = step else { return };
        let request = http::Request {
            method,
            uri: self.text(uri),
            version,
            headers: headers.iter().map(|(name, value)| (&**name, self.text(value))).collect(),
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
                let detail = format!("{}{}", link::describe(&e), self.place(number, what, comment));
                Err(failure(CheckStatus::SockErr, detail))
            }
        }
    }

    /// Waits until a rule is decided. `spare` is the comment for one that has none of its own.
    async fn expect(
        &mut self,
        rule: &Expect,
        number: usize,
        spare: Option<&str>,
    ) -> Result<CheckResult, CheckResult> {
        let what = expect::describe(&rule.what);
        let comment = rule.comment.as_deref().or(spare);
        self.flush(number, &what, comment).await?;
        loop {
            let look = if self.check.ruleset.http {
                self.look_http(rule)?
            } else if let Some(result) = self.look_protocol(rule) {
                return result;
            } else {
                self.look_tcp(rule, number, comment)?
            };
            match look {
                Look::Satisfied => return Ok(self.satisfied(rule)),
                Look::Violated => return Err(self.violated(rule, number, comment)),
                Look::Later => {}
            }
            let Some(link) = &mut self.link else {
                return Err(failure(CheckStatus::SockErr, String::new()));
            };
            if link.more(&mut self.timer).await.is_err() {
                let status = rule.timeout_status.unwrap_or(CheckStatus::L7Timeout);
                return Err(failure(status, self.place(number, &what, comment)));
            }
        }
    }

    /// What a protocol's own rules make of the answer; `None`: it needs more, or there is none at all.
    fn look_protocol(&mut self, rule: &Expect) -> Option<Result<CheckResult, CheckResult>> {
        let Pattern::Protocol(protocol) = rule.what else { return None };
        let link = self.link.as_ref()?;
        let (data, over) = (link.data(), link.is_over());
        if data.is_empty() && (link.error().is_some() || !over || protocol != Protocol::Ldap) {
            return None;
        }
        match protocols::judge(protocol, data, over) {
            Judged::Later => None,
            Judged::Passed(detail) => {
                Some(Ok(CheckResult { fleeting: true, ..failure(CheckStatus::L7Ok, detail) }))
            }
            Judged::Failed(status, code, detail) => {
                Some(Err(CheckResult { code, ..failure(status, detail) }))
            }
        }
    }

    fn look_tcp(&mut self, rule: &Expect, number: usize, comment: Option<&str>) -> Result<Look, CheckResult> {
        let Some(link) = &self.link else { return Ok(Look::Later) };
        let (data, over) = (link.data(), link.is_over());
        if over
            && data.is_empty()
            && let Some(e) = link.error()
        {
            let place = self.place(number, &expect::describe(&rule.what), comment);
            return Err(failure(CheckStatus::SockErr, format!("{}{place}", link::describe(e))));
        }
        match rule.what {
            // Nothing at all, and no more to come: no answer of any protocol.
            Pattern::Protocol(_) => return Ok(if over { Look::Violated } else { Look::Later }),
            _ if data.is_empty() && !over => return Ok(Look::Later),
            _ => {}
        }
        self.body.clear();
        self.body.extend_from_slice(data);
        Ok(expect::in_data(rule, &self.needle(rule), &Received { data, over }))
    }

    fn look_http(&mut self, rule: &Expect) -> Result<Look, CheckResult> {
        let Some(link) = &self.link else { return Ok(Look::Later) };
        let (data, over) = (link.data(), link.is_over());
        let head = match self.head {
            Some(length) => length,
            None => {
                let limits = Limits { head: rt::bufsize(), ..Limits::default() };
                match parse_response(data, &mut self.txn.res, &limits, false) {
                    Ok(Parsed::Complete { consumed }) => consumed,
                    Ok(Parsed::Partial) if !over => return Ok(Look::Later),
                    _ => {
                        let detail = link.error().map(link::describe).unwrap_or_default();
                        return Err(failure(CheckStatus::SockErr, detail));
                    }
                }
            }
        };
        self.head = Some(head);
        self.txn.has_res = true;
        let status = self.txn.res.status();
        self.txn.status = status;
        if status == 404 && self.check.ruleset.disable_on_404 && verdict::runs(self.server) {
            let result = failure(CheckStatus::L7OkCond, String::new());
            return Err(CheckResult { code: i32::from(status), ..result });
        }
        let raw = data.get(head..).unwrap_or_default();
        let (body, whole) = http::body(&self.txn.res, self.method, raw, over);
        self.body.clear();
        self.body.extend_from_slice(&body);
        if expect::wants_head(&rule.what) {
            return Ok(expect::in_head(rule, &self.txn.res, &|f| self.text(f)));
        }
        if self.body.is_empty() {
            return Ok(if whole { Look::Violated } else { Look::Later });
        }
        Ok(expect::in_data(rule, &self.needle(rule), &Received { data: &self.body, over: whole }))
    }

    /// The bytes that a pattern looks for.
    fn needle(&self, rule: &Expect) -> Vec<u8> {
        match &rule.what {
            Pattern::Text(t) | Pattern::Binary(t) => t.to_vec(),
            Pattern::Format(f) => self.text(f),
            Pattern::BinaryFormat(f) => expect::unhex(&self.text(f)).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn satisfied(&self, rule: &Expect) -> CheckResult {
        let http = self.check.ruleset.http;
        let detail = match &rule.on_success {
            Some(format) => self.message(format),
            None if http || self.check.ruleset.canned => String::new(),
            None => "(tcp-check)".to_owned(),
        };
        let status = rule.ok_status.unwrap_or(CheckStatus::L7Ok);
        CheckResult { code: self.code(rule), ..failure(status, detail) }
    }

    fn violated(&self, rule: &Expect, number: usize, comment: Option<&str>) -> CheckResult {
        let http = self.check.ruleset.http;
        let about_head = http && expect::wants_head(&rule.what);
        let comment = comment.map(|c| format!(" comment: {c}")).unwrap_or_default();
        let detail = match &rule.on_error {
            Some(format) => format!("{}{comment}", self.message(format)),
            None if !http && self.body.is_empty() => {
                format!("TCPCHK got an empty response at step {number}{comment}")
            }
            None if self.check.ruleset.canned => String::new(),
            None if about_head && self.txn.res.reason().is_empty() => {
                let what = match &rule.what {
                    Pattern::Status(_) => "(status codes)",
                    Pattern::StatusRegex(_) => " (regex)",
                    _ => " (header pattern)",
                };
                format!("TCPCHK did not match content{what} at step {number}{comment}")
            }
            None if about_head => {
                format!("{}{comment}", String::from_utf8_lossy(self.txn.res.reason()))
            }
            None if http && self.body.is_empty() => {
                format!("HTTP content check could not find a response body{comment}")
            }
            None if http && rule.negated => format!("HTTP check matched unwanted content{comment}"),
            None if http => format!("HTTP content check did not match{comment}"),
            None => {
                let how = if rule.negated { "matched unwanted content" } else { "did not match content" };
                format!("TCPCHK {how} {} at step {number}{comment}", expect::name(&rule.what))
            }
        };
        let usual = if about_head { CheckStatus::L7Sts } else { CheckStatus::L7Rsp };
        let status = rule.error_status.unwrap_or(usual);
        CheckResult { code: self.code(rule), ..failure(status, detail) }
    }

    fn code(&self, rule: &Expect) -> i32 {
        let given = rule.status_code.as_ref().and_then(|expr| match self.value(expr)? {
            Owned::Int(n) => i32::try_from(n).ok(),
            Owned::Str(t) | Owned::Bin(t) => std::str::from_utf8(&t).ok()?.trim().parse().ok(),
            _ => None,
        });
        given.unwrap_or(if self.check.ruleset.http { i32::from(self.txn.status) } else { 0 })
    }

    fn message(&self, format: &LogFormat) -> String {
        String::from_utf8_lossy(&self.text(format)).into_owned()
    }

    fn text(&self, format: &LogFormat) -> Vec<u8> {
        if let Some(text) = format.constant() {
            return text.to_vec();
        }
        let mut out = Vec::new();
        self.evaluate(|env| format.append(env, Use::Value, &mut out));
        out
    }

    fn value(&self, expr: &Expr) -> Option<Owned> {
        self.evaluate(|env| expr.eval_owned(env))
    }

    fn evaluate<R>(&self, f: impl FnOnce(&Env<'_>) -> R) -> R {
        self.worker.with_arena(|arena| {
            let view = View {
                response: Waiting { data: &self.body, body: None, over: true },
                upstream: self.link.as_ref().map(Link::socket),
                ..View::of_txn(self.worker, &self.conn, &self.txn)
            };
            f(&Env { conn: &self.conn, txn: &self.txn, live: &view, arena, side: Side::Response, last: true })
        })
    }

    /// Sets or forgets a variable; only those of the process, the session and the check are in reach.
    fn set(&self, var: VarRef, value: Option<Owned>) {
        match var.scope {
            Scope::Proc => self.worker.shared.program.world.vars.set(var.slot, value),
            Scope::Sess => drop(self.conn.vars.borrow_mut().set(var.slot, value)),
            _ => drop(self.txn.check_vars.borrow_mut().set(var.slot, value)),
        }
    }
}

/// How a connection of a check is made.
pub fn options(worker: &Worker, at: At, server: &Server) -> ConnectOptions {
    let proxy = worker.shared.program.proxy(at.proxy);
    let source = server.source.as_ref().or(proxy.source.as_ref());
    ConnectOptions {
        source: source.and_then(|s| s.addr).map(Addr::Inet),
        interface: source.and_then(|s| s.interface.as_deref()).map(str::to_owned),
        md5sig: server.md5sig.as_deref().map(|k| k.as_bytes().to_vec()),
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

/// Version 1 names this very connection, version 2 says that it is the proxy's own.
fn proxy_header(link: &mut Link, version: u8) {
    let end = |a: std::io::Result<Addr>| a.ok().as_ref().and_then(Addr::as_inet);
    let (src, dst) = (end(link.socket().local_addr()), end(link.socket().peer_addr()));
    if version == 1 {
        wire::proxy::v1(src.zip(dst), link.out());
    } else {
        wire::proxy::v2(None, &wire::proxy::V2Options::default(), link.out());
    }
}
