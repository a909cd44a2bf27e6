//! A stage for tests: a request, a response, a connection and proxies that rules can be tried on, without
//! a configuration and without a network.

#[cfg(test)]
mod ask;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use base::time::{Mono, Wall};
use bumpalo::Bump;
use model::proxy::{Listener, Proxy};
use model::vars::{Scope, VarRef};
use model::{Conn, Peer, Server, Txn, World};

use crate::action::{Exec, Flow};
use crate::cond::Acl;
use crate::env::{Env, Live, Payload, Side, TcpInfo};
use crate::fetch::{Password, User, Userlist};
use crate::names::{CaptureSlot, Names};
use crate::places::Place;
use crate::registry::{ActionPlace, Registry, Sets};
use crate::rules::{Position, Rule, RuleSet, Run};
use crate::words::{Fault, Words};

/// Everything that rules look at, filled with plausible facts.
pub(crate) struct Stage {
    pub(crate) reg: Registry,
    pub(crate) outside: Outside,
    pub(crate) conn: Conn,
    pub(crate) txn: Txn,
    pub(crate) side: Side,
    pub(crate) last: bool,
    pub(crate) names: Book,
}

/// The outside world.
pub(crate) struct Outside {
    pub(crate) world: World,
    pub(crate) front: Arc<Proxy>,
    pub(crate) back: Arc<Proxy>,
    pub(crate) server: Arc<Server>,
    pub(crate) listener: Option<Listener>,
    pub(crate) body: Vec<u8>,
    pub(crate) complete: bool,
    pub(crate) random: Cell<u64>,
    pub(crate) variables: Vec<Box<str>>,
    pub(crate) traced: std::cell::RefCell<Vec<u8>>,
    pub(crate) logs_early: bool,
}

/// The resolver of names.
pub(crate) struct Book {
    reg: Registry,
    front: Arc<Proxy>,
    back: Arc<Proxy>,
    server: Arc<Server>,
    slots: HashMap<String, VarRef>,
    pub(crate) acls: HashMap<String, Arc<Acl>>,
    pub(crate) files: HashMap<String, String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) missing: Vec<crate::names::Missing>,
    sets: HashMap<String, Arc<pattern::LiveSet>>,
    pub(crate) tables: Vec<Arc<stick::Table>>,
}

/// A table of addresses that stores everything, with single counters or with arrays.
fn table(name: &str, single: bool) -> Arc<stick::Table> {
    use stick::data::{Shape, TYPES};
    let mut layout = stick::Layout::default();
    for t in TYPES {
        let alone = t.data.in_array().is_some();
        if (single && !t.array) || (!single && !alone) {
            layout.store(t.data, if t.array { 3 } else { 1 }, if t.shape == Shape::Rate { 1000 } else { 0 });
        }
    }
    let settings = stick::Settings {
        name: name.into(),
        kind: stick::KeyKind::Ip,
        size: 10,
        expire: 60_000,
        nopurge: false,
        recv_only: false,
        write_to: None,
        srvkey: stick::SrvKey::Name,
        brates_factor: 10,
        peers: None,
        layout,
    };
    Arc::new(stick::Table::new(settings, 1))
}

impl Live for Outside {
    fn logs_early(&self) -> bool {
        self.logs_early
    }
    fn now(&self) -> Mono {
        Mono::from_nanos(5_000_000_000)
    }
    fn date(&self) -> Wall {
        Wall::from_micros(1_795_237_060_123_456)
    }
    fn random(&self) -> u64 {
        self.random.get()
    }
    fn worker(&self) -> usize {
        0
    }
    fn world(&self) -> &World {
        &self.world
    }
    fn frontend(&self) -> &Proxy {
        &self.front
    }
    fn backend(&self) -> Option<&Proxy> {
        Some(&self.back)
    }
    fn server(&self) -> Option<&Server> {
        Some(&self.server)
    }
    fn listener(&self) -> Option<&Listener> {
        self.listener.as_ref()
    }
    fn default_backend(&self) -> Option<&str> {
        Some("be")
    }
    fn payload(&self, _: Side) -> Payload<'_> {
        Payload { data: &self.body, complete: self.complete, due: 0 }
    }
    fn tcp_info(&self, _: Side) -> Option<TcpInfo> {
        Some(TcpInfo { rtt_us: 1500, rttvar_us: 750, retrans: 2, ..TcpInfo::default() })
    }
    fn rule_place(&self, rule: u32) -> Option<(&str, u32)> {
        Some(("a.cfg", rule))
    }
    fn limits(&self, side: Side) -> Option<crate::env::Limits> {
        let seconds = |n| Some(std::time::Duration::from_secs(n));
        let base = if side == Side::Request { 10 } else { 20 };
        Some(crate::env::Limits {
            client: seconds(base),
            server: seconds(base + 1),
            connect: seconds(base + 2),
            queue: seconds(base + 3),
            tarpit: seconds(base + 4),
            tunnel: None,
            retries: 3,
            chosen: true,
            serves: true,
        })
    }
    fn saved_syn(&self) -> Vec<u8> {
        vec![0x45, 0]
    }
    fn is_local(&self, ip: std::net::IpAddr) -> bool {
        ip.is_loopback()
    }
    fn free_slots(&self, _: &Proxy) -> i64 {
        -1
    }
    fn buffer_size(&self) -> usize {
        16384
    }
    fn uptime(&self) -> std::time::Duration {
        std::time::Duration::from_secs(77)
    }
    fn cpu_usage(&self) -> u32 {
        12
    }
    fn variables(&self, _: Scope) -> &[Box<str>] {
        &self.variables
    }
    fn capture_length(&self, _: Side, slot: usize) -> Option<usize> {
        (slot == 0).then_some(5)
    }
    fn has_frontend(&self, name: &str) -> bool {
        name == "fe"
    }
    fn trace(&self, sink: &str, line: &[u8]) {
        self.traced.borrow_mut().extend_from_slice(&[sink.as_bytes(), b" ", line].concat());
    }
    fn node(&self) -> (&str, u32) {
        ("node1", 4242)
    }
}

impl Names for Book {
    fn miss(&mut self, missing: crate::names::Missing) {
        self.missing.push(missing);
    }
    fn frontend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        match name.unwrap_or("fe") {
            "fe" => Ok(self.front.clone()),
            other => Err(Fault::new(format!("unable to find frontend '{other}' referenced"))),
        }
    }
    fn backend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        match name.unwrap_or("be") {
            "be" => Ok(self.back.clone()),
            other => Err(Fault::new(format!("unable to find backend '{other}' referenced"))),
        }
    }
    fn server(&self, name: &str) -> Result<(Arc<Proxy>, Arc<Server>), Fault> {
        match name {
            "be/s1" | "s1" => Ok((self.back.clone(), self.server.clone())),
            other => Err(Fault::new(format!("unable to find server '{other}' referenced"))),
        }
    }
    fn variable(&mut self, name: &str) -> Result<VarRef, Fault> {
        let next = self.slots.len() as u16;
        let scope =
            name.split('.').next().and_then(Scope::from_prefix).ok_or_else(|| Fault::new("no scope"))?;
        Ok(*self.slots.entry(name.to_owned()).or_insert(VarRef { scope, slot: next }))
    }
    fn acl(&mut self, name: &str) -> Result<Arc<Acl>, Fault> {
        if let Some(acl) = self.acls.get(name) {
            return Ok(acl.clone());
        }
        let reg = std::mem::replace(&mut self.reg, Registry::empty());
        let acl = crate::parse::predefined(name, &reg, self);
        self.reg = reg;
        acl.ok_or_else(|| Fault::new(format!("no such ACL : '{name}'")))
    }
    fn patterns(
        &mut self,
        reference: &str,
        face: pattern::Face,
        map: bool,
    ) -> Result<Arc<pattern::View>, Fault> {
        let Some(text) = self.files.get(reference) else {
            return Err(Fault::new(format!("failed to open pattern file <{reference}>")));
        };
        let shape = if map { pattern::Shape::Map } else { pattern::Shape::Acl };
        if let Some(set) = self.sets.get(reference) {
            return Ok(Arc::new(set.view(face.kind, face.flags).map_err(|e| Fault::new(e.text))?));
        }
        let set = pattern::LiveSet::new(reference, shape);
        self.sets.insert(reference.to_owned(), set.clone());
        let view = set.view(face.kind, face.flags).map_err(|e| Fault::new(e.text))?;
        for line in text.lines().filter_map(|l| pattern::split_line(l.as_bytes(), shape)) {
            set.add(None, line.pattern, line.value).map_err(|e| Fault::new(e.to_string()))?;
        }
        Ok(Arc::new(view))
    }
    fn changed(&mut self, reference: &str) -> Arc<std::sync::OnceLock<Arc<pattern::LiveSet>>> {
        let cell = Arc::new(std::sync::OnceLock::new());
        if let Some(set) = self.sets.get(reference) {
            let _ = cell.set(set.clone());
        }
        cell
    }
    fn object(
        &self,
        kind: crate::arg::Kind,
        name: Option<&str>,
    ) -> Result<Arc<dyn std::any::Any + Send + Sync>, Fault> {
        if kind == crate::arg::Kind::Table {
            let found = self.tables.iter().find(|t| *t.settings().name == *name.unwrap_or("be"));
            let missing =
                || Fault::new(format!("unable to find table '{}' referenced", name.unwrap_or("be")));
            return found.cloned().map(|t| t as Arc<_>).ok_or_else(missing);
        }
        let user = |name: &str, password, group: &str| User {
            name: name.as_bytes().into(),
            password: Some(password),
            groups: Box::new([group.as_bytes().into()]),
        };
        // The hash of "secret" as crypt(3) makes it.
        let hash = "$5$salt$kpa26zwgX83BPSR8d7w93OIXbFt/d3UOTZaAu5vsTM6";
        Ok(Arc::new(Userlist {
            name: "users".into(),
            users: Box::new([
                user("plain", Password::Plain(b"secret"[..].into()), "staff"),
                user("crypt", Password::Crypt(crate::fetch::Hashed::new(hash)), "admins"),
            ]),
            groups: Box::new([b"staff"[..].into(), b"admins"[..].into()]),
        }))
    }
    fn backend_index(&self, _: &str) -> Result<u32, Fault> {
        Ok(0)
    }
    fn mirror(&self, _: &str) -> Result<(Arc<Proxy>, u32), Fault> {
        Ok((self.back.clone(), 0))
    }
    fn error_file(&mut self, section: &str, status: u16) -> Result<Option<Arc<[u8]>>, Fault> {
        Ok(Some(format!("{section} {status}").into_bytes().into()))
    }
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, Fault> {
        match self.files.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Err(Fault::new(format!("error opening file '{path}'"))),
        }
    }
    fn capture(&mut self, _: bool, slot: CaptureSlot) -> Result<u16, Fault> {
        match slot {
            CaptureSlot::Id(id) => Ok(id),
            CaptureSlot::Length(_) => Ok(0),
        }
    }
    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        (name == "PATH").then(|| b"/bin".to_vec())
    }
    fn is_http(&self) -> bool {
        true
    }
    fn experimental(&self) -> bool {
        true
    }
    fn owner(&self) -> String {
        "frontend 'fe'".into()
    }
    fn bandwidth(&self, name: &str) -> Result<Arc<crate::bandwidth::Bwlim>, Fault> {
        let scope = crate::bandwidth::Scope::Stream(1000);
        let (name, order, upload) = (name.into(), Some(0), false);
        Ok(Arc::new(crate::bandwidth::Bwlim { name, order, upload, min_size: 0, limit: 1000, scope }))
    }
    fn service(&self, name: &str) -> bool {
        name == "prometheus-exporter"
    }
    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }
}

impl Stage {
    /// `GET /a/b?c=d&e=f HTTP/1.1` with a few header fields, answered with 200.
    pub(crate) fn new() -> Stage {
        let front = Arc::new(Proxy::new("fe", 2, None, 1));
        let back = Arc::new(Proxy::new("be", 3, None, 1));
        let server = World::server(&back, "s1", || Server::new("be", "s1", 1, 1));
        let mut txn =
            Txn { has_req: true, has_res: true, first_request: true, status: 200, ..Txn::default() };
        *txn.unique_id.borrow_mut() = Some(b"id-1".as_slice().into());
        txn.req.set_target(b"/a/b?c=d&e=f").unwrap();
        for (name, value) in [
            ("host", "www.example.com:80"),
            ("x-list", "a, b"),
            ("x-list", "c"),
            ("cookie", "sid=1; t=x; sid=2"),
            ("x-n", "42"),
        ] {
            txn.req.append(name.as_bytes(), value.as_bytes()).unwrap();
        }
        txn.res.append(b"set-cookie", b"sid=9; path=/").unwrap();
        txn.line.edit().set(b"GET", b"/a/b?c=d&e=f", b"HTTP/1.1", 1024);
        txn.line_kept = true;
        let conn =
            Conn::new(7, 0, 0, Mono::from_nanos(1_000_000_000), Wall::from_micros(1_795_237_056_000_000));
        conn.set_addresses(
            Peer::Inet("192.0.2.1:1234".parse().unwrap()),
            Peer::Inet("198.51.100.2:80".parse().unwrap()),
        );
        let names = Book {
            reg: Registry::standard(),
            front: front.clone(),
            back: back.clone(),
            server: server.clone(),
            slots: HashMap::new(),
            acls: HashMap::new(),
            files: HashMap::from([
                ("map.txt".to_owned(), "/a one\n/a/b two words\n".to_owned()),
                ("numbers.txt".to_owned(), "1:9 small\n10: big\n".to_owned()),
                ("nets.txt".to_owned(), "192.0.2.0/24 net\n".to_owned()),
                ("acl.txt".to_owned(), String::new()),
            ]),
            warnings: Vec::new(),
            missing: Vec::new(),
            sets: HashMap::new(),
            tables: vec![table("be", true), table("arrays", false)],
        };
        let outside = Outside {
            world: World::new(1),
            front,
            back,
            server,
            listener: None,
            body: Vec::new(),
            complete: true,
            random: Cell::new(0x0123_4567_89ab_cdef),
            variables: Vec::new(),
            traced: Default::default(),
            logs_early: false,
        };
        Stage { reg: Registry::standard(), outside, conn, txn, side: Side::Request, last: true, names }
    }

    /// Lets expressions look.
    pub(crate) fn with_env<R>(&self, look: impl for<'e> FnOnce(&Env<'e>) -> R) -> R {
        let arena = Bump::new();
        look(&Env {
            conn: &self.conn,
            txn: &self.txn,
            live: &self.outside,
            arena: &arena,
            side: self.side,
            last: self.last,
        })
    }

    /// A rule, parsed.
    pub(crate) fn rule(&mut self, set: Sets, text: &[&str]) -> Result<Rule, Fault> {
        let list: Vec<&[u8]> = text.iter().map(|w| w.as_bytes()).collect();
        let place = match set {
            Sets::TCP_CONN => Place::FrontConn,
            Sets::TCP_SESS => Place::FrontSess,
            Sets::TCP_REQ => Place::BackTcpContent,
            Sets::TCP_RES => Place::BackTcpResponse,
            Sets::HTTP_REQ => Place::BackHttpReq,
            _ => Place::BackHttpRes,
        };
        Rule::parse(
            &mut Words::new(&list),
            &ActionPlace { set, place, form: crate::registry::Form::Rule },
            1,
            &self.reg,
            &mut self.names,
        )
    }

    /// A rule of one set, run; how it ended.
    pub(crate) fn run(&mut self, set: Sets, text: &[&str]) -> Run {
        let rule = self.rule(set, text).unwrap_or_else(|f| panic!("{text:?}: {f}"));
        self.run_all(&RuleSet::new(vec![rule]), Position(0))
    }

    /// A rule set, run.
    pub(crate) fn run_all(&mut self, rules: &RuleSet, from: Position) -> Run {
        let arena = Bump::new();
        let mut exec = Exec {
            conn: &self.conn,
            txn: &mut self.txn,
            live: &self.outside,
            arena: &arena,
            side: self.side,
            last: self.last,
            resumed: None,
        };
        rules.run(&mut exec, from)
    }

    /// A rule that must let the next one run.
    pub(crate) fn pass(&mut self, set: Sets, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        assert!(matches!(self.run(set, &words), Run::Done), "{text}");
    }

    /// A rule that must decide.
    pub(crate) fn decide(&mut self, set: Sets, text: &str) -> Flow {
        let words: Vec<&str> = text.split(' ').collect();
        match self.run(set, &words) {
            Run::Decided(flow, _) => flow,
            Run::Waits(need, _) => Flow::Yield(need),
            Run::Done => panic!("{text}: nothing decided"),
        }
    }
}
