//! Files of server states, as `show servers state` writes them: what a process that went knew of its servers,
//! so that the next one begins with it (manual, `load-server-state-from-file`).
//!
//! Each line is about one server, found by the name of its backend and its own. A value counts only where the
//! configuration does not say otherwise: the weight as long as the configured one is the same, an address
//! only of servers that have a name.

use base::outside;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::draft::{Draft, LoadState, ServerDraft};
use base::time::Mono;
use model::Server;
use model::check::CheckStatus;
use model::server::{Op, Target, admin};
use syntax::{Diagnostic, Diagnostics, Level, Style};

/// The fields that a line has at least.
const FIELDS: usize = 20;

/// What a file says of the servers of a backend, by name.
pub(super) type States = HashMap<Box<str>, Known>;

/// A line.
#[derive(Clone)]
pub(super) struct Known {
    proxy: Box<str>,
    proxy_id: Box<str>,
    name: Box<str>,
    fields: Vec<Box<str>>,
}

impl Known {
    /// The field at a place behind the server's name.
    fn field(&self, at: usize) -> &str {
        self.fields.get(at).map_or("", |field| field)
    }

    /// The address that a server with a name had.
    pub fn address(&self) -> Option<IpAddr> {
        self.field(0).parse().ok()
    }
}

/// Where the files are, and what the one of all backends says.
pub(super) struct StateFiles {
    base: Option<PathBuf>,
    global: Vec<Known>,
}

impl StateFiles {
    /// Reads the file of all backends.
    pub fn new(base: Option<&Path>, global: Option<&Path>, notes: &mut Diagnostics) -> StateFiles {
        let mut files = StateFiles { base: base.map(Path::to_owned), global: Vec::new() };
        if let Some(path) = global {
            files.global = files.read(path, "config", "global server state file", "", notes);
        }
        files
    }

    /// What is known of the servers of a backend.
    pub fn of(&self, p: &Draft, notes: &mut Diagnostics) -> States {
        if p.disabled || p.servers.is_empty() {
            return States::new();
        }
        let local = p.load_state == Some(LoadState::Local);
        let lines = match p.load_state {
            Some(LoadState::Global) => {
                self.global.iter().filter(|line| line.proxy == p.name).cloned().collect()
            }
            Some(LoadState::Local) => {
                let name = p.state_file.as_deref().unwrap_or(&p.name);
                let who = format!("Proxy '{}'", p.name);
                self.read(Path::new(name), &who, "server state file", ".", notes)
            }
            _ => Vec::new(),
        };
        let mut states = States::new();
        for line in lines {
            if local {
                self.mismatch(p, &line, notes);
            }
            if p.servers.iter().any(|s| s.name == line.name) && line.proxy == p.name {
                states.insert(line.name.clone(), line);
            }
        }
        states
    }

    /// Warns of a line that is about another backend or server. Lines of backends that have neither its
    /// number nor its name are there for others.
    fn mismatch(&self, p: &Draft, line: &Known, notes: &mut Diagnostics) {
        let mut warn = |what: String| say(notes, Level::Warning, format!("Proxy '{}': {what}", p.name));
        let id = p.id.unwrap_or(0).to_string();
        let (name, found) = (&p.name, "from server state file");
        if line.proxy != p.name && *line.proxy_id == *id {
            warn(format!("backend name mismatch: {found}: '{}', from running config '{name}'", line.proxy));
        } else if line.proxy == p.name && *line.proxy_id != *id {
            warn(format!("backend ID mismatch: {found}: '{}', from running config '{id}'", line.proxy_id));
        }
        if line.proxy == p.name && !p.servers.iter().any(|s| s.name == line.name) {
            warn(format!("can't find server '{}' in backend '{name}'", line.name));
        }
    }

    /// The lines of a file; `who` and `what` stand in messages, which end as `stop` says when it can't be
    /// opened.
    fn read(&self, path: &Path, who: &str, what: &str, stop: &str, notes: &mut Diagnostics) -> Vec<Known> {
        let path = self.base.as_deref().map_or_else(|| path.to_owned(), |base| base.join(path));
        let file = path.display();
        let text = match outside::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) => {
                let why = crate::notes::os_text(&e);
                say(notes, Level::Notice, format!("{who}: Can't open {what} '{file}': {why}{stop}"));
                return Vec::new();
            }
        };
        let mut lines = text.lines();
        match lines.next() {
            None => {
                let end = if stop.is_empty() { "." } else { stop };
                say(notes, Level::Notice, format!("{who}: Empty {what} '{file}'{end}"));
                return Vec::new();
            }
            Some("1") => {}
            Some(_) => {
                say(notes, Level::Warning, format!("{who}: Can't get version of the {what} '{file}'."));
                return Vec::new();
            }
        }
        let mut out = Vec::new();
        for (number, line) in (1..).zip(lines) {
            let mut words = line.split_ascii_whitespace().take_while(|word| !word.starts_with('#'));
            let Some(proxy_id) = words.next() else { continue };
            let (proxy, _, name) = (words.next(), words.next(), words.next());
            let fields: Vec<Box<str>> = words.map(Into::into).collect();
            let (Some(proxy), Some(name), true) = (proxy, name, fields.len() + 4 >= FIELDS) else {
                say(notes, Level::Warning, format!("{who}: corrupted {what} '{file}' at line {number}."));
                return Vec::new();
            };
            let (proxy, proxy_id, name) = (proxy.into(), proxy_id.into(), name.into());
            out.push(Known { proxy, proxy_id, name, fields });
        }
        out
    }
}

/// The names of the numbers of a line behind the address, with the greatest that each may be.
const NUMBERS: [(&str, u64); 12] = [
    ("srv_op_state", 3),
    ("srv_admin_state", 0xff),
    ("srv_uweight", 256),
    ("srv_iweight", 256),
    ("srv_last_time_change", u64::MAX),
    ("srv_check_status", 21),
    ("srv_check_result", 4),
    ("srv_check_health", u64::MAX),
    ("srv_check_state", 63),
    ("srv_agent_state", 63),
    ("bk_f_forced_id", 1),
    ("srv_f_forced_id", 1),
];

/// Bits of `srv_check_state` and `srv_agent_state`: there is such a check, and it runs.
const CONFIGURED: u64 = 2;
const ENABLED: u64 = 4;

/// Places of the fields behind the numbers.
mod place {
    pub const PORT: usize = 14;
    pub const TLS: usize = 16;
    pub const CHECK_PORT: usize = 17;
    pub const CHECK_ADDR: usize = 18;
    pub const AGENT_ADDR: usize = 19;
    pub const AGENT_PORT: usize = 20;
}

/// The numbers of a line and its port, or what is wrong with them.
fn numbers(known: &Known) -> Result<([u64; NUMBERS.len()], u16), String> {
    let mut values = [0; NUMBERS.len()];
    let mut wrong = Vec::new();
    for ((value, (name, most)), at) in values.iter_mut().zip(NUMBERS).zip(1..) {
        let text = known.field(at);
        match text.parse::<u64>().ok().filter(|n| *n <= most) {
            Some(n) => *value = n,
            // Times in the future and health below zero say nothing.
            None if matches!(name, "srv_last_time_change" | "srv_check_health") && negative(text) => {}
            None => wrong.push(format!("invalid {name} value '{text}'")),
        }
    }
    let text = known.field(place::PORT);
    let port = text.parse();
    if port.is_err() {
        wrong.push(format!("invalid srv_port value '{text}'"));
    }
    // An operator forces one of both.
    let both = u64::from(admin::FMAINT | admin::FDRAIN);
    let [_, flags, ..] = values;
    if flags & both == both && wrong.is_empty() {
        wrong.push(format!("invalid srv_admin_state value '{flags}'"));
    }
    match port {
        Ok(port) if wrong.is_empty() => Ok((values, port)),
        _ => Err(wrong.join(", ")),
    }
}

/// Gives a new server the state it had; `all` are those of its backend as far as they are there.
pub(super) fn apply(
    known: &Known,
    server: &Server,
    draft: &ServerDraft,
    p: &Draft,
    all: &[(std::sync::Arc<Server>, bool)],
    notes: &mut Diagnostics,
) {
    let name = format!("{}/{}", p.name, server.name);
    let (values, port) = match numbers(known) {
        Ok(read) => read,
        Err(wrong) => {
            let text = format!("server-state application failed for server '{name}', {wrong}");
            return say(notes, Level::Warning, text);
        }
    };
    let [op, flags, weight, initial, since, ..] = values;
    let before = (server.is_up(), server.op() == Op::Stopping);
    let left = administer(server, flags as u32);
    if initial == u64::from(draft.weight) {
        server.weight.store(weight as u32, Relaxed);
    }
    let maintained = server.admin() & admin::FMAINT != 0;
    let (state, health) = health(&values, draft, left);
    // Of a server that an operator took out nothing is known of what it would be otherwise.
    if !maintained {
        server.set_op(state, Mono::ZERO);
    }
    if !maintained || draft.disabled {
        server.health.store(health, Relaxed);
    } else {
        server.went_down.fetch_add(1, Relaxed);
    }
    if let Target::Inet(at) = &**server.target.load() {
        server.set_target(Target::Inet(std::net::SocketAddr::new(at.ip(), port)));
    }
    // Of a server that could speak TLS an operator may have said the contrary of the configuration.
    match known.field(place::TLS) {
        "" => {}
        tls => {
            server.plain.store(tls != "1", Relaxed);
            server.refuses_tls.store(tls == "-1", Relaxed);
        }
    }
    // A slow start begins anew. Who is drained is told of where there is none to begin, as in HAProxy.
    let drained = server.admin() & (admin::FDRAIN | admin::CMAINT) != 0;
    let slow = is_slow(&values, draft);
    let anew = op == 1 && !left && if slow { !drained && !maintained } else { drained };
    let since = if anew { 0 } else { since };
    server.changed_before.store(since.saturating_mul(1000), Relaxed);
    checked(server, &values);
    let label = format!("{}Server {name}", if draft.backup { "Backup " } else { "" });
    if anew {
        let online = usable(all, "online");
        say(notes, Level::Warning, format!("{label} is UP. {online} 0 sessions requeued, 0 total in queue."));
    } else if left {
        say(notes, Level::Warning, format!("{label} is UP/READY (leaving forced maintenance)."));
    } else if !maintained || op == 0 || op == 3 {
        let stopping = if maintained { op == 3 } else { server.op() == Op::Stopping };
        told(&label, before, (server.is_up() || maintained && stopping, stopping), all, notes);
    }
    if let Err(what) = probed(known, server, draft) {
        let text = format!("server-state partially applied for server '{name}', {what}");
        say(notes, Level::Warning, text);
    }
}

/// The state that a line tells, and how many checks it is from the other one. Who has `left` maintenance
/// begins anew: one failed check takes it down.
fn health(values: &[u64; NUMBERS.len()], draft: &ServerDraft, left: bool) -> (Op, i64) {
    let [op, _, _, _, _, _, _, health, ..] = *values;
    let rise = i64::from(draft.rise);
    let most = rise + i64::from(draft.fall) - 1;
    let first = if rise > 1 { 1 } else { most };
    let (state, health) = match op {
        0 => (Op::Stopped, 0),
        1 if is_slow(values, draft) => (Op::Starting, first),
        1 => (Op::Running, first),
        3 => (Op::Stopping, i64::try_from(health).ok().filter(|h| (rise..most).contains(h)).unwrap_or(rise)),
        _ => (Op::Running, most),
    };
    match left {
        true if draft.check => (Op::Running, rise),
        true => (Op::Running, health),
        false => (state, health),
    }
}

/// Whether a server's slow start would not be over yet.
fn is_slow(values: &[u64; NUMBERS.len()], draft: &ServerDraft) -> bool {
    let [_, _, _, _, since, ..] = *values;
    draft.slowstart.is_some_and(|slow| Duration::from_secs(since) < slow)
}

/// A number below zero.
fn negative(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|n| n < 0)
}

/// What the last check found, and which checks an operator had switched off.
fn checked(server: &Server, values: &[u64; NUMBERS.len()]) {
    let [_, _, _, _, _, status, result, _, check, agent, ..] = *values;
    if let Some(status) = u8::try_from(status).ok().and_then(CheckStatus::from_number) {
        let last = &mut server.status.lock().last;
        last.status = status;
        last.told = u8::try_from(result).ok();
    }
    for (bits, enabled) in [(check, &server.check_enabled), (agent, &server.agent_enabled)] {
        if bits & (CONFIGURED | ENABLED) == CONFIGURED {
            enabled.store(false, Relaxed);
        }
    }
    if server.check_enabled.load(Relaxed) && server.admin() & admin::MAINT != 0 {
        server.checks_paused.store(true, Relaxed);
    }
}

/// Where checks go that were given another port or address; the first thing that can't be ends it.
fn probed(known: &Known, server: &Server, draft: &ServerDraft) -> Result<(), String> {
    let given = |at: usize| Some(known.field(at)).filter(|text| !matches!(*text, "" | "-" | "0"));
    let mut probe = server.probe.lock();
    let probe = &mut *probe;
    let health = draft.check && server.check_enabled.load(Relaxed);
    let agent = draft.agent && server.agent_enabled.load(Relaxed);
    let kinds = [
        ("health", health, place::CHECK_ADDR, place::CHECK_PORT),
        ("agent", agent, place::AGENT_ADDR, place::AGENT_PORT),
    ];
    let to = [(&mut probe.check_addr, &mut probe.check_port), (&mut probe.agent_addr, &mut probe.agent_port)];
    for ((kind, asked, addr_at, port_at), (addr, port)) in kinds.into_iter().zip(to) {
        let (new_addr, new_port) = (given(addr_at), given(port_at));
        if !asked && new_addr.or(new_port).is_some() {
            return Err(format!("{kind} checks are not enabled on this server"));
        }
        if let Some(text) = new_addr {
            *addr = Some(text.parse().map_err(|_| format!("invalid addr '{text}'"))?);
        }
        if let Some(text) = new_port {
            let number: i64 = text.parse().map_err(|_| "provided port is not an integer")?;
            *port = Some(u16::try_from(number).map_err(|_| "provided port is invalid")?);
        }
    }
    Ok(())
}

/// What an operator had asked for. Maintenance that the configuration had asked for then (`disabled`) ends
/// with that word, and what it asks for now holds unless an operator had ended it before. Tells whether that
/// is so.
fn administer(server: &Server, flags: u32) -> bool {
    let (then, now) = (flags & admin::CMAINT != 0, server.admin() & admin::CMAINT != 0);
    let forced = flags & admin::FMAINT;
    let left = now && then && forced == 0;
    let (set, clear) = match now {
        false => (flags & admin::FDRAIN | if then { 0 } else { forced }, 0),
        true if left => (flags & admin::FDRAIN, admin::FMAINT),
        true => (0, 0),
    };
    if set | clear != 0 {
        server.change_admin(set, clear, Mono::ZERO);
    }
    left
}

/// Says that a server is not what the configuration would make it. `before` and `now` are whether it is up,
/// and stopping.
fn told(
    label: &str,
    before: (bool, bool),
    now: (bool, bool),
    all: &[(std::sync::Arc<Server>, bool)],
    notes: &mut Diagnostics,
) {
    let changed = "changed from server-state after a reload";
    let left = |word: &str| usable(all, word);
    let text = match (before, now.0, now.1) {
        ((true, _), false, _) => format!(
            "{label} is DOWN, {changed}. {} 0 sessions active, 0 requeued, 0 remaining in queue.",
            left("left")
        ),
        ((_, false), true, true) => format!(
            "{label} is stopping, {changed}. {} 0 sessions requeued, 0 total in queue.",
            left("online")
        ),
        ((false, _), true, _) => {
            let online = left("online");
            format!("{label} is UP, {changed}. {online} 0 sessions requeued, 0 total in queue.")
        }
        _ => return,
    };
    say(notes, Level::Warning, text);
}

/// Who is there to serve: they are `left`, or `online`.
fn usable(all: &[(std::sync::Arc<Server>, bool)], word: &str) -> String {
    let count = |backup: bool| all.iter().filter(|(s, b)| *b == backup && s.is_usable()).count();
    let (active, backup) = (count(false), count(true));
    let on = if active == 0 && backup > 0 { " Running on backup." } else { "" };
    format!("{active} active and {backup} backup servers {word}.{on}")
}

fn say(notes: &mut Diagnostics, level: Level, text: String) {
    notes.push(Diagnostic::plain(level, text).styled(Style::Bare));
}
