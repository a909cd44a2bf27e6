//! Actions that the page's form asks for (configuration manual, `stats admin`).

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use engine::Worker;
use farm::At;
use farm::state::{self, Forced, Wanted};
use model::server::admin as bit;
use model::term::Cause;
use program::{Proxy, Server};

use super::options::{Result, decode};
use crate::cli::call::{find_proxy, find_server};
use crate::gather::tell_all;

/// An action: changes a server, or says that there was nothing to do.
type Action = fn(&Rc<Worker>, At, &Server) -> bool;

/// All actions: the word in the form, what the list of the page says, and what is done.
pub const ACTIONS: &[(&str, &str, Action)] = &[
    ("ready", "Set state to READY", |w, at, _| admin(w, at, Wanted::Ready)),
    ("drain", "Set state to DRAIN", |w, at, _| admin(w, at, Wanted::Drain)),
    ("maint", "Set state to MAINT", |w, at, _| admin(w, at, Wanted::Maint)),
    ("dhlth", "Health: disable checks", |_, _, s| check(s, false)),
    ("ehlth", "Health: enable checks", |_, _, s| check(s, true)),
    ("hrunn", "Health: force UP", |w, at, s| health(w, at, s, Forced::Up)),
    ("hnolb", "Health: force NOLB", |w, at, s| health(w, at, s, Forced::Stopping)),
    ("hdown", "Health: force DOWN", |w, at, s| health(w, at, s, Forced::Down)),
    ("dagent", "Agent: disable checks", |_, _, s| agent_check(s, false)),
    ("eagent", "Agent: enable checks", |_, _, s| agent_check(s, true)),
    ("arunn", "Agent: force UP", |w, at, s| agent(w, at, s, true)),
    ("adown", "Agent: force DOWN", |w, at, s| agent(w, at, s, false)),
    ("shutdown", "Kill sessions", |_, at, _| kill(at)),
    // Older words that scripts still use; the list of the page does not show them.
    ("start", "", |w, at, s| bits(w, at, s, 0, bit::FDRAIN)),
    ("stop", "", |w, at, s| bits(w, at, s, bit::FDRAIN, 0)),
    ("enable", "", |w, at, s| bits(w, at, s, 0, bit::FMAINT)),
    ("disable", "", |w, at, s| bits(w, at, s, bit::FMAINT, 0)),
];

/// Sets and clears bits of the administrative state, unless they are so already.
fn bits(worker: &Rc<Worker>, at: At, server: &Server, set: u32, clear: u32) -> bool {
    let now = server.state.admin();
    let changes = now & set != set || now & clear != 0;
    if changes {
        state::change_admin(&worker.farm, at, set, clear);
    }
    changes
}

fn check(server: &Server, on: bool) -> bool {
    let has = server.check.is_some();
    if has {
        server.state.check_enabled.store(on, Relaxed);
    }
    has
}

fn agent_check(server: &Server, on: bool) -> bool {
    let has = server.agent.is_some();
    if has {
        server.state.agent_enabled.store(on, Relaxed);
    }
    has
}

fn admin(worker: &Rc<Worker>, at: At, wanted: Wanted) -> bool {
    state::set_admin(&worker.farm, at, wanted);
    true
}

fn health(worker: &Rc<Worker>, at: At, server: &Server, forced: Forced) -> bool {
    let own = server.track.is_none();
    if own {
        state::force_health(&worker.farm, at, forced);
    }
    own
}

fn agent(worker: &Rc<Worker>, at: At, server: &Server, up: bool) -> bool {
    let has = server.agent.is_some();
    if has {
        state::force_agent(&worker.farm, at, up);
    }
    has
}

fn kill(at: At) -> bool {
    tell_all(move |w| {
        w.sessions
            .kill(Cause::Killed, |s| s.place_in(&w.shared.program) == (Some(at.proxy), Some(at.server)));
    });
    true
}

/// Does what a form asks for: `s=SERVER&s=SERVER&action=ACTION&b=BACKEND`. With a `scope` only servers of its
/// proxies are changed.
pub fn run(worker: &Rc<Worker>, scope: &[Box<str>], body: &[u8]) -> Result {
    let text = String::from_utf8_lossy(body);
    let pairs = || {
        text.split('&').map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key, decode(value))
        })
    };
    let (mut backend, mut action, mut servers) = (None, None, Vec::new());
    for (_, name) in pairs().filter(|(key, _)| *key == "b") {
        let found = find_proxy(&worker.shared, &name, |p| p.is_backend);
        // What is out of scope is not even said to exist.
        let within = |p: &Proxy| scope.contains(&p.name);
        match found {
            Some(found) if scope.is_empty() || within(&found.1) => backend = Some(found),
            None if scope.is_empty() => return Result::Errp,
            _ => return Result::Deny,
        }
    }
    for (key, value) in pairs() {
        match key {
            "action" => match ACTIONS.iter().find(|(word, ..)| *word == value) {
                Some((.., run)) => action = Some(run),
                None => return Result::Errp,
            },
            "s" => servers.push(value),
            _ => {}
        }
    }
    let (Some((proxy, config_of)), Some(action)) = (backend, action) else { return Result::None };
    let (mut done, mut unknown) = (0, 0);
    for name in &servers {
        let Some(server) = find_server(&config_of, name) else {
            unknown += 1;
            continue;
        };
        let Some(held) = worker.shared.program.find_server(proxy, server) else {
            unknown += 1;
            continue;
        };
        done += u32::from(action(worker, At { proxy, server }, &held));
    }
    match (done, unknown) {
        (0, 0) => Result::None,
        (0, _) => Result::Errp,
        (_, 0) => Result::Done,
        _ => Result::Part,
    }
}
