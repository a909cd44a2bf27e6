//! The class `Server`: what can be asked of a server and done to it, as the runtime API does it.

use mlua::Value;
use model::server::Target;
use program::Server;

use crate::here::with_worker;
use crate::objects::{ask, object, row};
use crate::value::Bound;
use crate::value::{Args, Outcome, give, inner, nothing};

/// Functions of the class.
pub const BOUND: &[Bound] = &[
    ("server.get_name", 1, get_name),
    ("server.get_puid", 1, |args| tell(args, |s| Some(i64::from(s.state.id).to_string()))),
    ("server.get_rid", 1, |args| {
        tell(args, |s| Some(s.state.revision.load(std::sync::atomic::Ordering::Relaxed).to_string()))
    }),
    ("server.is_backup", 1, |args| truth(args, |s| s.backup)),
    ("server.is_dynamic", 1, is_dynamic),
    ("server.is_draining", 1, is_draining),
    ("server.get_cur_sess", 1, |args| stat(args, "scur")),
    ("server.get_pend_conn", 1, |args| stat(args, "qcur")),
    ("server.get_weight", 1, get_weight),
    ("server.get_maxconn", 1, get_maxconn),
    ("server.get_addr", 1, get_addr),
    ("server.get_stats", 1, get_stats),
    ("server.get_proxy", 1, get_proxy),
    ("server.tracking", 1, tracking),
    ("server.get_trackers", 1, trackers),
    ("server.set_weight", 1, |args| set(args, "weight")),
    ("server.set_maxconn", 1, set_maxconn),
    ("server.set_addr", 1, set_addr),
    ("server.shut_sess", 1, shut_sess),
    ("server.set_drain", 1, |args| put(args, &["state", "drain"])),
    ("server.set_maint", 1, |args| put(args, &["state", "maint"])),
    ("server.set_ready", 1, |args| put(args, &["state", "ready"])),
    ("server.check_enable", 1, |args| switch(args, "enable", "health")),
    ("server.check_disable", 1, |args| switch(args, "disable", "health")),
    ("server.check_force_up", 1, |args| put(args, &["health", "up"])),
    ("server.check_force_nolb", 1, |args| put(args, &["health", "stopping"])),
    ("server.check_force_down", 1, |args| put(args, &["health", "down"])),
    ("server.agent_enable", 1, |args| switch(args, "enable", "agent")),
    ("server.agent_disable", 1, |args| switch(args, "disable", "agent")),
    ("server.agent_force_up", 1, |args| put(args, &["agent", "up"])),
    ("server.agent_force_down", 1, |args| put(args, &["agent", "down"])),
];

/// The names of proxy and server of an object.
pub fn names(args: &Args<'_>) -> Result<(String, String), String> {
    let own: String = args.own()?;
    let (proxy, server) = own.split_once('/').ok_or("bad server")?;
    Ok((proxy.into(), server.into()))
}

/// Looks at a server by the names of its proxy and its own.
pub fn find<R>(proxy: &str, server: &str, look: impl FnOnce(&Server) -> R) -> Option<R> {
    with_worker(|worker| {
        let program = &worker.shared.program;
        let proxy = program.present().find(|p| *p.name == *proxy && p.is_backend)?;
        proxy.servers.iter().find(|s| *s.state.name == *server).map(|s| look(&s))
    })?
}

/// Servers by the places of their proxies and their own, as objects.
fn objects(args: &Args<'_>, places: &[(u32, u32)]) -> Result<Vec<Value>, String> {
    let handles = with_worker(|worker| {
        let program = &worker.shared.program;
        let handle = |(proxy, server): &(u32, u32)| {
            let server = program.find_server(*proxy, *server)?;
            Some(format!("{}/{}", program.proxy(*proxy).name, server.state.name))
        };
        places.iter().filter_map(handle).collect::<Vec<_>>()
    });
    handles.unwrap_or_default().into_iter().map(|handle| object(args.lua(), "server", handle)).collect()
}

/// The server whose state this one follows; nil where there is none.
fn tracking(args: &mut Args<'_>) -> Outcome {
    let place = with(args, |s| s.track)?;
    let found = objects(args, place.as_slice())?;
    give(args.lua(), found.into_iter().next().unwrap_or(Value::Nil))
}

/// The servers that follow this one.
fn trackers(args: &mut Args<'_>) -> Outcome {
    let (proxy, server) = names(args)?;
    let places = with_worker(|worker| {
        let program = &worker.shared.program;
        let own = program.proxies.numbered().find_map(|(p, found)| {
            let at = found.servers.numbered().find(|(_, s)| *s.state.name == *server)?.0;
            (*found.name == *proxy && found.is_backend).then_some((p, at))
        })?;
        let mut places = Vec::new();
        for (p, found) in program.proxies.numbered() {
            places
                .extend(found.servers.numbered().filter(|(_, s)| s.track == Some(own)).map(|(s, _)| (p, s)));
        }
        Some(places)
    });
    let found = objects(args, &places.flatten().unwrap_or_default())?;
    let list = inner(args.lua().create_sequence_from(found))?;
    give(args.lua(), list)
}

fn with<R>(args: &Args<'_>, look: impl FnOnce(&Server) -> R) -> Result<R, String> {
    let (proxy, server) = names(args)?;
    find(&proxy, &server, look).ok_or_else(|| format!("server '{proxy}/{server}' is no more"))
}

fn get_name(args: &mut Args<'_>) -> Outcome {
    let (_, server) = names(args)?;
    give(args.lua(), server)
}

fn tell(args: &mut Args<'_>, tell: fn(&Server) -> Option<String>) -> Outcome {
    let text = with(args, tell)?;
    give(args.lua(), text)
}

fn truth(args: &mut Args<'_>, truth: fn(&Server) -> bool) -> Outcome {
    let b = with(args, truth)?;
    give(args.lua(), b)
}

/// Those that were added while the process runs stand behind those of the configuration.
fn is_dynamic(args: &mut Args<'_>) -> Outcome {
    let (proxy, server) = names(args)?;
    let configured =
        crate::proxies::find(&proxy, |p| p.servers.beginning().iter().any(|s| *s.state.name == *server));
    give(args.lua(), configured == Some(false))
}

fn stats(args: &Args<'_>) -> Result<mlua::Table, String> {
    let (proxy, server) = names(args)?;
    row(args.lua(), |cells| cells.first() == Some(&&*proxy) && cells.get(1) == Some(&&*server))
}

fn stat(args: &mut Args<'_>, column: &str) -> Outcome {
    let n: Option<i64> = inner(stats(args)?.raw_get(column))?;
    give(args.lua(), n.unwrap_or(0))
}

fn get_stats(args: &mut Args<'_>) -> Outcome {
    let table = stats(args)?;
    give(args.lua(), table)
}

fn is_draining(args: &mut Args<'_>) -> Outcome {
    let status: Option<String> = inner(stats(args)?.raw_get("status"))?;
    give(args.lua(), status.is_some_and(|s| s.starts_with("DRAIN")))
}

fn get_weight(args: &mut Args<'_>) -> Outcome {
    let (proxy, server) = names(args)?;
    let answer = ask(&["get", "weight", &format!("{proxy}/{server}")]).unwrap_or_default();
    let n = answer.split_whitespace().next().and_then(|n| n.parse::<i64>().ok());
    give(args.lua(), n.unwrap_or(0))
}

fn get_maxconn(args: &mut Args<'_>) -> Outcome {
    let n: Option<i64> = inner(stats(args)?.raw_get("slim"))?;
    give(args.lua(), n.unwrap_or(0))
}

fn get_addr(args: &mut Args<'_>) -> Outcome {
    let addr: Option<String> = inner(stats(args)?.raw_get("addr"))?;
    let unix = with(args, |s| match &**s.state.target.load() {
        Target::Unix { path, .. } => Some(String::from_utf8_lossy(path).into_owned()),
        _ => None,
    })?;
    let known = unix.or(addr).unwrap_or_else(|| "<unknown>".into());
    give(args.lua(), known)
}

fn get_proxy(args: &mut Args<'_>) -> Outcome {
    let (proxy, _) = names(args)?;
    let made = object(args.lua(), "proxy", proxy)?;
    give(args.lua(), made)
}

/// `set server`, with words behind its name.
fn put(args: &mut Args<'_>, words: &[&str]) -> Outcome {
    let (proxy, server) = names(args)?;
    let name = format!("{proxy}/{server}");
    let mut all = vec!["set", "server", &*name];
    all.extend(words);
    ask(&all);
    nothing()
}

/// What a command says of a fault, as scripts get it: nil when there was none.
fn answered(args: &Args<'_>, answer: Option<String>) -> Outcome {
    let text = answer.unwrap_or_default();
    let text = text.trim();
    match text.is_empty() || text.contains("changed") || text.contains("no need to change") {
        true => give(args.lua(), Value::Nil),
        false => give(args.lua(), text),
    }
}

fn set(args: &mut Args<'_>, what: &str) -> Outcome {
    let (proxy, server) = names(args)?;
    let value = args.text(1)?;
    let answer = ask(&["set", "server", &format!("{proxy}/{server}"), what, &value]);
    answered(args, answer)
}

fn set_maxconn(args: &mut Args<'_>) -> Outcome {
    let (proxy, server) = names(args)?;
    let value = args.text(1)?;
    let answer = ask(&["set", "maxconn", "server", &format!("{proxy}/{server}"), &value]);
    answered(args, answer)
}

fn set_addr(args: &mut Args<'_>) -> Outcome {
    let (proxy, server) = names(args)?;
    let (addr, port) = (args.text(1)?, args.text_or_none(2)?);
    let name = format!("{proxy}/{server}");
    let mut words = vec!["set", "server", &*name, "addr", &*addr];
    if let Some(port) = &port {
        words.extend(["port", port]);
    }
    let answer = ask(&words);
    give(args.lua(), answer.unwrap_or_default().trim())
}

fn shut_sess(args: &mut Args<'_>) -> Outcome {
    let (proxy, server) = names(args)?;
    ask(&["shutdown", "sessions", "server", &format!("{proxy}/{server}")]);
    nothing()
}

/// `enable health`, `disable agent` and their like.
fn switch(args: &mut Args<'_>, way: &str, what: &str) -> Outcome {
    let (proxy, server) = names(args)?;
    ask(&[way, what, &format!("{proxy}/{server}")]);
    nothing()
}
