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

use crate::draft::{Draft, LoadState, ServerDraft};
use base::time::Mono;
use model::Server;
use model::server::{Op, Target, admin};
use syntax::{Diagnostic, Diagnostics, Level, Style};

/// The fields that a line has at least.
const FIELDS: usize = 19;

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

    /// Warns of a line that is about another backend or server.
    fn mismatch(&self, p: &Draft, line: &Known, notes: &mut Diagnostics) {
        let mut warn = |what: String| say(notes, Level::Warning, format!("Proxy '{}': {what}", p.name));
        let id = p.id.unwrap_or(0).to_string();
        let (name, found) = (&p.name, "from server state file");
        if line.proxy != p.name {
            warn(format!("backend name mismatch: {found}: '{}', from running config '{name}'", line.proxy));
        } else if *line.proxy_id != *id {
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
                break;
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
    ("srv_time_since_last_change", u64::MAX),
    ("srv_check_status", 255),
    ("srv_check_result", 255),
    ("srv_check_health", u64::MAX),
    ("srv_check_state", u64::MAX),
    ("srv_agent_state", u64::MAX),
    ("bk_f_forced_id", 1),
    ("srv_f_forced_id", 1),
];

/// Gives a new server the state it had; `all` are those of its backend as far as they are there.
pub(super) fn apply(
    known: &Known,
    server: &Server,
    draft: &ServerDraft,
    p: &Draft,
    all: &[(std::sync::Arc<Server>, bool)],
    notes: &mut Diagnostics,
) {
    let label = format!("{}/{}", p.name, server.name);
    let mut values = [0; NUMBERS.len()];
    let mut wrong = Vec::new();
    for ((value, (name, most)), at) in values.iter_mut().zip(NUMBERS).zip(1..) {
        let text = known.field(at);
        match text.parse::<u64>().ok().filter(|n| *n <= most) {
            Some(n) => *value = n,
            // Times and configured weights that can't be read say nothing.
            None if matches!(name, "srv_iweight" | "srv_time_since_last_change") => {}
            None => wrong.push(format!("invalid {name} value '{text}'")),
        }
    }
    let [op, flags, weight, initial, ..] = values;
    let flags = flags as u32;
    // An operator forces one of both.
    let both = admin::FMAINT | admin::FDRAIN;
    if flags & both == both && wrong.is_empty() {
        wrong.push(format!("invalid srv_admin_state value '{flags}'"));
    }
    if !wrong.is_empty() {
        let text = format!("server-state application failed for server '{label}', {}", wrong.join(", "));
        return say(notes, Level::Warning, text);
    }
    let (was_up, was_stopping) = (server.is_up(), server.op() == Op::Stopping);
    let left = administer(server, flags);
    if initial == u64::from(draft.weight) {
        server.weight.store(weight as u32, Relaxed);
    }
    let maintained = server.admin() & admin::FMAINT != 0;
    let (rise, fall) = (i64::from(draft.rise), i64::from(draft.fall));
    let (state, health) = match op {
        0 => (Op::Stopped, 0),
        1 if draft.slowstart.is_some() => (Op::Starting, 1),
        1 => (Op::Running, 1),
        3 => (Op::Stopping, rise),
        _ => (Op::Running, rise + fall - 1),
    };
    // Who leaves maintenance begins anew: one failed check takes it down.
    let (state, health) = match left {
        true if draft.check => (Op::Running, rise),
        true => (Op::Running, health),
        false => (state, health),
    };
    // Of a server that an operator took out nothing is known of what it would be otherwise.
    if !maintained {
        server.set_op(state, Mono::ZERO);
    }
    if !maintained || draft.disabled {
        server.health.store(health, Relaxed);
    }
    if let (Target::Inet(at), Some(port)) = (&**server.target.load(), port(known)) {
        server.set_target(Target::Inet(std::net::SocketAddr::new(at.ip(), port)));
    }
    if left {
        let text = format!("Server {label} is UP/READY (leaving forced maintenance).");
        say(notes, Level::Warning, text);
    } else if !maintained || op == 0 {
        told(server, &label, (was_up, was_stopping), all, notes);
    }
    if server.agent_enabled.load(Relaxed) || values[9] & 2 == 0 {
        return;
    }
    let text = format!(
        "server-state partially applied for server '{label}', agent checks are not enabled on this server"
    );
    say(notes, Level::Warning, text);
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

/// The port that the server had.
fn port(known: &Known) -> Option<u16> {
    known.field(14).parse().ok().filter(|port| *port > 0)
}

/// Says that a server is not what the configuration would make it; `before` is whether it was up, and
/// stopping.
fn told(
    server: &Server,
    label: &str,
    before: (bool, bool),
    all: &[(std::sync::Arc<Server>, bool)],
    notes: &mut Diagnostics,
) {
    let count = |backup: bool| all.iter().filter(|(s, b)| *b == backup && s.is_usable()).count();
    let (active, backup) = (count(false), count(true));
    let changed = "changed from server-state after a reload";
    let text = match (before, server.is_up(), server.op() == Op::Stopping) {
        ((true, _), false, _) => format!(
            "Server {label} is DOWN, {changed}. {active} active and {backup} backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue."
        ),
        ((_, false), true, true) => format!(
            "Server {label} is stopping, {changed}. {active} active and {backup} backup servers online. 0 sessions requeued, 0 total in queue."
        ),
        ((false, _), true, _) => format!(
            "Server {label} is UP, {changed}. {active} active and {backup} backup servers online. 0 sessions requeued, 0 total in queue."
        ),
        _ => return,
    };
    say(notes, Level::Warning, text);
}

fn say(notes: &mut Diagnostics, level: Level, text: String) {
    notes.push(Diagnostic::plain(level, text).styled(Style::Bare));
}
