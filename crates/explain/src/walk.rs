//! The way of the request, in the order in which traffic goes it.

use bumpalo::Bump;
use lang::action::{Exec, Flow, Fulfilled, Need, Payload, Reply};
use lang::cond::{Condition, Outcome};
use lang::env::{Env, Side};
use lang::logfmt::Use;
use lang::rules::Rule;
use lang::{LogFormat, RuleSet};
use model::{Conn, Peer, Txn};
use program::Program;
use program::options::AddressHeader;
use program::proxy::{Mode, Proxy, SwitchTo};
use wire::http1::{Parsed, parse_request};

use crate::ask::Ask;
use crate::changes::Snapshot;
use crate::door::{destination, door};
use crate::outside::{NOW, Outside, date};
use crate::report::{Report, Row, Section};
use crate::seen::Recorder;

/// Times one action may wait.
const WAITS: usize = 4;

/// The request ends here; the sentence says how.
type End = Option<String>;

pub(crate) struct Walk<'p> {
    program: &'p Program,
    conn: Conn,
    pub(crate) txn: Txn,
    outside: Outside<'p>,
    pub(crate) rows: Vec<Row>,
}

pub fn walk(program: &Program, ask: &Ask) -> Result<Report, String> {
    let (frontend, listener) = door(program, ask)?;
    let proxy = program.configured(frontend);
    let conn = Conn::new(1, frontend, listener, NOW, date());
    let dst = destination(program, ask, frontend, listener);
    conn.set_addresses(Peer::Inet(ask.src), Peer::Inet(dst));
    conn.http_major.set(u8::from(proxy.mode == Mode::Http));
    let outside = Outside { program, frontend, listener, backend: None, body: &ask.body };
    let mut walk = Walk { program, conn, txn: Txn::default(), outside, rows: Vec::new() };
    let mut report = Report {
        request: format!("{} {} HTTP/1.1", ask.method, ask.target),
        addresses: (ask.src.to_string(), dst.to_string()),
        ..Report::default()
    };
    let mut end = walk.opening(proxy);
    let mut before = Snapshot::of(program, &walk.conn, &walk.txn);
    if end.is_none() {
        if proxy.mode == Mode::Http {
            walk.read(ask, proxy)?;
        }
        before = Snapshot::of(program, &walk.conn, &walk.txn);
        end = walk.frontend(proxy);
    }
    let chosen = if end.is_none() { walk.switch(proxy) } else { None };
    report.sections.push(walk.section(format!("frontend {}", proxy.name)));
    report.outcome = match (end, chosen) {
        (Some(end), _) => end,
        (None, None) => "no backend: answers 503".into(),
        (None, Some(backend)) => walk.backend(frontend, backend, &mut report),
    };
    let after = Snapshot::of(program, &walk.conn, &walk.txn);
    report.headers = before.fields_until(&after);
    report.rewritten = (before.line() != after.line()).then(|| after.line().to_owned());
    Ok(report)
}

impl<'p> Walk<'p> {
    fn section(&mut self, title: String) -> Section {
        Section { title, rows: std::mem::take(&mut self.rows) }
    }

    /// The request as its bytes are parsed.
    fn read(&mut self, ask: &Ask, proxy: &Proxy) -> Result<(), String> {
        let tune = &self.program.global.tune;
        let limits = self.program.global.head_limits();
        self.txn.req.set_limit(tune.bufsize);
        self.txn.first_request = true;
        let bytes = ask.bytes();
        match parse_request(&bytes, &mut self.txn.req, &limits, proxy.options.unsafe_request) {
            Ok(Parsed::Complete { .. }) => {}
            Ok(Parsed::Partial) => {
                return Err("the request is too long for tune.bufsize: it is refused".into());
            }
            Err(e) => {
                let (why, status) = (e.kind.as_str(), e.kind.status());
                return Err(format!("the request itself is refused with {status}: {why}"));
            }
        }
        self.txn.has_req = true;
        self.txn.note_proxy(proxy.options.http_use_proxy_header);
        let req = &self.txn.req;
        self.txn.line.edit().set(
            req.method(),
            req.target(),
            req.version().as_str().as_bytes(),
            tune.logurilen,
        );
        Ok(())
    }

    /// Lets something look at the request as it stands.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Env<'_>) -> R) -> R {
        let arena = Bump::new();
        look(&Env {
            conn: &self.conn,
            txn: &self.txn,
            live: &self.outside,
            arena: &arena,
            side: Side::Request,
            last: true,
        })
    }

    /// Rules on the connection.
    fn opening(&mut self, proxy: &Proxy) -> End {
        let end = self.set("tcp-request connection", &proxy.rules.tcp_connection);
        let end = end.or_else(|| self.set("tcp-request session", &proxy.rules.tcp_session));
        // What they decide holds for all requests of the connection.
        if let Some(src) = self.txn.decisions.src {
            self.conn.src.set(src);
        }
        if let Some(dst) = self.txn.decisions.dst {
            self.conn.dst.set(dst);
        }
        end
    }

    fn frontend(&mut self, proxy: &Proxy) -> End {
        if let Some(uri) = proxy.monitor_uri.as_ref().filter(|_| proxy.is_monitored(self.txn.req.target())) {
            return Some(self.monitor(proxy, &String::from_utf8_lossy(uri)));
        }
        self.requests(proxy)
    }

    fn monitor(&mut self, proxy: &Proxy, uri: &str) -> String {
        let mut status = 200;
        for condition in &proxy.monitor_fail {
            let (applies, seen) = self.condition(Some(condition));
            if applies {
                status = 503;
            }
            self.rows.push(row(None, "monitor fail".into(), Some(condition), applies, seen));
        }
        format!("monitor-uri {uri}: answers {status}")
    }

    /// The rules on requests of a proxy.
    fn requests(&mut self, proxy: &Proxy) -> End {
        if let Some(end) = self.set("tcp-request content", &proxy.rules.tcp_content) {
            return Some(end);
        }
        if proxy.mode != Mode::Http {
            return None;
        }
        if let Some(end) = self.set("http-request", &proxy.rules.http_request) {
            return Some(end);
        }
        if let Some(page) = &proxy.stats
            && self.txn.req.target().starts_with(page.uri.as_bytes())
        {
            let end = self.set("stats http-request", &page.rules);
            return Some(
                end.unwrap_or_else(|| format!("stats uri {}: answers the statistics page", page.uri)),
            );
        }
        self.set("redirect", &proxy.rules.redirect)
    }

    fn set(&mut self, keyword: &str, rules: &RuleSet) -> End {
        for rule in rules.iter() {
            let (applies, seen) = self.condition(rule.condition.as_ref());
            let text = format!("{keyword} {}", rule.text);
            let place = self.place(rule.number);
            let mut row = row(place, text, rule.condition.as_ref(), applies, seen);
            let mut end = After::Next;
            if applies {
                (end, row.effects) = self.act(rule);
            }
            self.rows.push(row);
            match end {
                After::Next => {}
                After::Accept => return None,
                After::End(how) => return Some(how),
            }
        }
        None
    }

    pub(crate) fn condition(&self, condition: Option<&Condition>) -> (bool, Vec<crate::Seen>) {
        let Some(condition) = condition else { return (true, Vec::new()) };
        let mut recorder = Recorder::default();
        let outcome = self.look(|env| condition.watched(env, &mut recorder));
        (outcome == Outcome::Yes, recorder.seen)
    }

    /// Runs an action; what it waits for has happened.
    fn act(&mut self, rule: &Rule) -> (After, Vec<String>) {
        let before = Snapshot::of(self.program, &self.conn, &self.txn);
        let mut effects = Vec::new();
        let mut resumed = None;
        let mut after = After::Next;
        for _ in 0..WAITS {
            let arena = Bump::new();
            let mut exec = Exec {
                conn: &self.conn,
                txn: &mut self.txn,
                live: &self.outside,
                arena: &arena,
                side: Side::Request,
                last: true,
                resumed: resumed.take(),
            };
            match rule.action.run(&mut exec) {
                Flow::Yield(need) => {
                    effects.extend(waits(&need));
                    resumed = Some(Fulfilled::Done);
                }
                flow => {
                    after = self.ends(flow);
                    break;
                }
            }
        }
        effects.extend(before.until(&Snapshot::of(self.program, &self.conn, &self.txn)));
        (after, effects)
    }

    fn ends(&self, flow: Flow) -> After {
        After::End(match flow {
            Flow::Next | Flow::Yield(_) => return After::Next,
            Flow::Accept => return After::Accept,
            Flow::Deny(reply) => format!("denied: {}", self.answer(&reply)),
            Flow::Reply(reply) => self.answer(&reply),
            Flow::CloseServer => "closes the connection to the server".into(),
            Flow::Reject => "closes the connection".into(),
            Flow::SilentDrop { .. } => "drops the connection without a word".into(),
            Flow::Tarpit(reply) => {
                format!("holds the client for timeout tarpit, then {}", self.answer(&reply))
            }
            Flow::Service(name) => format!("hands over to service {name}"),
            Flow::SwitchToHttp { .. } => return After::Accept,
            Flow::Invalid => "malformed: answers 400".into(),
            Flow::Error => "internal error: answers 500".into(),
        })
    }

    fn answer(&self, reply: &Reply) -> String {
        let mut out = format!("answers {}", reply.status);
        let text = |f: &LogFormat| {
            let mut out = Vec::new();
            self.look(|env| f.append(env, Use::Value, &mut out));
            String::from_utf8_lossy(&out).into_owned()
        };
        for (name, value) in reply.headers.iter() {
            out.push_str(&format!(", {}: {}", String::from_utf8_lossy(name), text(value)));
        }
        for (name, value) in &reply.computed {
            out.push_str(&format!(", {name}: {}", String::from_utf8_lossy(value)));
        }
        match &reply.payload {
            Payload::Bytes(b) if !b.is_empty() => out.push_str(&format!(", {} bytes of its own", b.len())),
            Payload::Format(f) => out.push_str(&format!(", body: {}", text(f))),
            _ => {}
        }
        out
    }

    /// `use_backend` and `default_backend`.
    fn switch(&mut self, proxy: &'p Proxy) -> Option<u32> {
        for switch in proxy.switching.iter() {
            let (applies, seen) = self.condition(switch.condition.as_ref());
            let (name, found) = match &switch.to {
                SwitchTo::Backend(b) => (self.program.configured(*b).name.to_string(), Some(*b)),
                SwitchTo::Format(format) if applies => {
                    let mut name = Vec::new();
                    self.look(|env| format.append(env, Use::Value, &mut name));
                    let name = String::from_utf8_lossy(&name).into_owned();
                    let found = self.program.backend(&name);
                    (format!("{} -> {name}", format.text), found)
                }
                SwitchTo::Format(format) => (format.text.to_string(), None),
            };
            let place = self.place(switch.number);
            let mut row = row(place, format!("use_backend {name}"), switch.condition.as_ref(), applies, seen);
            if applies && found.is_none() {
                row.effects.push("there is no such backend: the default one is used".into());
            }
            let passed = applies && found.is_some_and(|b| !self.open(proxy, b));
            if passed {
                row.effects.push("that backend is disabled or unpublished: the rule is passed by".into());
            }
            self.rows.push(row);
            if applies && !passed {
                if found.is_some() {
                    return found;
                }
                break;
            }
        }
        if let Some(to) = proxy.default_backend.filter(|b| self.open(proxy, *b)) {
            let text = format!("default_backend {}", self.program.configured(to).name);
            self.rows.push(row(None, text, None, true, Vec::new()));
            return Some(to);
        }
        proxy.is_backend.then_some(self.conn.frontend.get())
    }

    /// Whether rules of this frontend may choose the backend.
    fn open(&mut self, frontend: &'p Proxy, backend: u32) -> bool {
        let proxy = self.program.configured(backend);
        let hidden =
            proxy.disabled || proxy.state.back.unpublished.load(std::sync::atomic::Ordering::Relaxed);
        !hidden || frontend.force_switch.iter().any(|c| self.condition(Some(c)).0)
    }

    /// The backend's rules and its choice of a server.
    fn backend(&mut self, frontend: u32, index: u32, report: &mut Report) -> String {
        let proxy = self.program.configured(index);
        self.txn.backend = Some(index);
        self.outside.backend = Some(index);
        let end = if index == frontend { None } else { self.requests(proxy) };
        report.forwarded = end.is_none() && (!proxy.servers.is_empty() || proxy.dispatch.is_some());
        let outcome = end.unwrap_or_else(|| {
            let outcome = self.server(proxy);
            self.added(self.program.configured(frontend), proxy);
            outcome
        });
        if !self.rows.is_empty() {
            report.sections.push(self.section(format!("backend {}", proxy.name)));
        }
        outcome
    }

    /// Fields that options add on the way out.
    fn added(&mut self, front: &Proxy, back: &Proxy) {
        if !self.txn.has_req {
            return;
        }
        let (src, dst) = self.look(|env| (env.src(), env.dst()));
        let options = [
            ("option forwardfor", &front.forwardfor, &back.forwardfor, src),
            ("option originalto", &front.originalto, &back.originalto, dst),
        ];
        for (text, front, back, peer) in options {
            let Some(ip) = peer.ip() else { continue };
            let req = &self.txn.req;
            let setting =
                AddressHeader::that_applies(front.as_ref(), back.as_ref(), ip, |name| req.has(name));
            if let Some(setting) = setting
                && self.txn.req.append(&setting.name, ip.to_string().as_bytes()).is_ok()
            {
                let mut row = row(None, text.into(), None, true, Vec::new());
                row.effects.push(format!("+ {}: {ip}", String::from_utf8_lossy(setting.name.as_bytes())));
                self.rows.push(row);
            }
        }
        let id =
            front.unique_id_header.as_ref().and_then(|_| self.look(|env| env.with_unique_id(<[u8]>::to_vec)));
        if let (Some(name), Some(id)) = (&front.unique_id_header, id)
            && self.txn.req.set(name, &id).is_ok()
        {
            let (name, id) = (String::from_utf8_lossy(name.as_bytes()), String::from_utf8_lossy(&id));
            let mut row = row(None, format!("unique-id-header {name}"), None, true, Vec::new());
            row.effects.push(format!("+ {name}: {id}"));
            self.rows.push(row);
        }
        if front.forwarded.is_some() || back.forwarded.is_some() {
            let mut row = row(None, "option forwarded".into(), None, true, Vec::new());
            row.effects.push("+ forwarded: ... (RFC 7239)".into());
            self.rows.push(row);
        }
    }

    pub(crate) fn place(&self, number: u32) -> Option<(String, u32)> {
        let (file, line) = lang::Live::rule_place(&self.outside, number)?;
        Some((file.to_owned(), line))
    }
}

/// What follows an action.
enum After {
    Next,
    Accept,
    End(String),
}

/// A rule as it is told; its effects come later.
pub(crate) fn row(
    place: Option<(String, u32)>,
    rule: String,
    condition: Option<&Condition>,
    applies: bool,
    seen: Vec<crate::Seen>,
) -> Row {
    let condition = condition.map(Condition::to_string);
    Row { place, rule, condition, applies, seen, effects: Vec::new() }
}

fn waits(need: &Need) -> Option<String> {
    match need {
        Need::Body { time, .. } => Some(format!("waits for the body, at most {} ms", time.as_millis())),
        Need::Delay(d) => Some(format!("waits {} ms", d.as_millis())),
        Need::Handshake => Some("waits for the end of the TLS handshake".into()),
        Need::Interim(_) => Some("sends an early hint first".into()),
        Need::Data => None,
        Need::ProxyHeader => Some("waits for a PROXY header".into()),
        Need::Content { .. } => Some("changes the data, or waits for more".into()),
        Need::Extension(_) => Some("waits for an extension".into()),
        Need::Within(time, _) => Some(format!("waits for another request, at most {} ms", time.as_millis())),
        Need::Address { name, .. } => Some(format!("asks name servers for '{name}'")),
        Need::CipHeader => Some("waits for a NetScaler header".into()),
    }
}
