//! The classes `Proxy` and `Listener`, and the tables of them.

use mlua::{Lua, Value};
use program::{Mode, Proxy};

use crate::here::with_worker;
use crate::objects::{ask, object, row};
use crate::value::Bound;
use crate::value::{Args, Outcome, give, inner, nothing};

/// Functions of the classes.
pub const BOUND: &[Bound] = &[
    ("core.proxies", 0, |args| names(args, |_| true)),
    ("core.backends", 0, |args| names(args, |p| p.is_backend)),
    ("core.frontends", 0, |args| names(args, |p| p.is_frontend)),
    ("known.proxies", 0, |args| known(args, |_| true)),
    ("known.backends", 0, |args| known(args, |p| p.is_backend)),
    ("known.frontends", 0, |args| known(args, |p| p.is_frontend)),
    ("proxy.get_name", 1, |args| told(args, |p, lua| lua.create_string(&*p.name).map(Value::String))),
    ("proxy.get_uuid", 1, |args| {
        told(args, |p, lua| lua.create_string(p.state.id.to_string()).map(Value::String))
    }),
    ("proxy.get_cap", 1, get_cap),
    ("proxy.get_mode", 1, get_mode),
    ("proxy.get_srv_act", 1, |args| usable(args, false)),
    ("proxy.get_srv_bck", 1, |args| usable(args, true)),
    ("proxy.get_stats", 1, get_stats),
    ("proxy.servers", 1, servers),
    ("proxy.has_server", 1, has_server),
    ("proxy.listeners", 1, listeners),
    ("proxy.stktable", 1, stktable),
    ("proxy.get_mailers", 1, get_mailers),
    ("proxy.pause", 1, |args| frontend(args, "disable")),
    ("proxy.resume", 1, |args| frontend(args, "enable")),
    ("proxy.stop", 1, |args| frontend(args, "shutdown")),
    ("proxy.shut_bcksess", 1, shut_bcksess),
    ("listener.get_stats", 1, listener_stats),
];

/// The names of proxies; none while the configuration is read.
fn names(args: &mut Args<'_>, wanted: fn(&Proxy) -> bool) -> Outcome {
    let all = with_worker(|worker| {
        let program = &worker.shared.program;
        let all = program.present().filter(|p| wanted(p) && !p.name.is_empty());
        all.map(|p| p.name.to_string()).collect::<Vec<_>>()
    });
    let table = inner(args.lua().create_sequence_from(all.unwrap_or_default()))?;
    give(args.lua(), table)
}

/// Whether there is a proxy of that name.
fn known(args: &mut Args<'_>, wanted: fn(&Proxy) -> bool) -> Outcome {
    let name = args.text(1)?;
    let known = with_worker(|worker| {
        let program = &worker.shared.program;
        program.present().any(|p| wanted(&p) && *p.name == *name)
    });
    give(args.lua(), known.unwrap_or(false))
}

/// Looks at the proxy that an object is of.
pub fn with<R>(args: &Args<'_>, look: impl FnOnce(&Proxy) -> R) -> Result<R, String> {
    let name: String = args.own()?;
    find(&name, look).ok_or_else(|| format!("proxy '{name}' is no more"))
}

/// Looks at a proxy by its name.
pub fn find<R>(name: &str, look: impl FnOnce(&Proxy) -> R) -> Option<R> {
    with_worker(|worker| {
        let program = &worker.shared.program;
        program.present().find(|p| *p.name == *name).map(|p| look(&p))
    })?
}

fn told(args: &mut Args<'_>, tell: fn(&Proxy, &Lua) -> mlua::Result<Value>) -> Outcome {
    let lua = args.lua().clone();
    let value = with(args, |proxy| tell(proxy, &lua))?;
    give(args.lua(), inner(value)?)
}

fn get_cap(args: &mut Args<'_>) -> Outcome {
    told(args, |p, lua| {
        let cap = match (p.is_frontend, p.is_backend) {
            (true, true) => "proxy",
            (true, false) => "frontend",
            (false, true) => "backend",
            (false, false) => "ruleset",
        };
        lua.create_string(cap).map(Value::String)
    })
}

fn get_mode(args: &mut Args<'_>) -> Outcome {
    told(args, |p, lua| {
        let mode = match p.mode {
            Mode::Tcp => "tcp",
            Mode::Http => "http",
            _ => "unknown",
        };
        lua.create_string(mode).map(Value::String)
    })
}

/// Servers that may be chosen.
fn usable(args: &mut Args<'_>, backup: bool) -> Outcome {
    let name: String = args.own()?;
    let table = row(args.lua(), |cells| cells.first() == Some(&&*name) && cells.get(1) == Some(&"BACKEND"))?;
    let n: Option<i64> = inner(table.raw_get(if backup { "bck" } else { "act" }))?;
    give(args.lua(), n.unwrap_or(0))
}

fn get_stats(args: &mut Args<'_>) -> Outcome {
    let name: String = args.own()?;
    let which = with(args, |p| if p.is_backend && !p.is_frontend { "BACKEND" } else { "FRONTEND" })?;
    let table = row(args.lua(), |cells| cells.first() == Some(&&*name) && cells.get(1) == Some(&which))?;
    give(args.lua(), table)
}

fn servers(args: &mut Args<'_>) -> Outcome {
    let names = with(args, |p| p.servers.iter().map(|s| s.state.name.to_string()).collect::<Vec<_>>())?;
    let table = inner(args.lua().create_sequence_from(names))?;
    give(args.lua(), table)
}

fn has_server(args: &mut Args<'_>) -> Outcome {
    let name = args.text(1)?;
    let has = with(args, |p| p.is_backend && p.servers.iter().any(|s| *s.state.name == *name))?;
    give(args.lua(), has)
}

fn listeners(args: &mut Args<'_>) -> Outcome {
    let of = |p: &Proxy| p.binds.iter().map(|b| b.state.name.to_string()).collect::<Vec<_>>();
    let (proxy, names) = with(args, |p| (p.name.to_string(), of(p)))?;
    let table = inner(args.lua().create_table())?;
    for name in names {
        let made = object(args.lua(), "listener", format!("{proxy}/{name}"))?;
        inner(table.raw_set(name, made))?;
    }
    give(args.lua(), table)
}

fn listener_stats(args: &mut Args<'_>) -> Outcome {
    let own: String = args.own()?;
    let (proxy, name) = own.split_once('/').unwrap_or((&own, ""));
    let table = row(args.lua(), |cells| cells.first() == Some(&proxy) && cells.get(1) == Some(&name))?;
    give(args.lua(), table)
}

fn stktable(args: &mut Args<'_>) -> Outcome {
    let name: String = args.own()?;
    let known = with_worker(|w| w.shared.program.tables.iter().any(|t| *t.settings().name == *name));
    match known {
        Some(true) => {
            let made = object(args.lua(), "table", name)?;
            give(args.lua(), made)
        }
        _ => give(args.lua(), Value::Nil),
    }
}

/// What a proxy says of mail; nil where that is not complete.
fn get_mailers(args: &mut Args<'_>) -> Outcome {
    let found = with(args, |p| Some((p.mail.clone()?, p.options.log_health_checks)))?;
    let Some((mail, checks)) = found else { return give(args.lua(), Value::Nil) };
    let table = || {
        let table = args.lua().create_table()?;
        let servers = args.lua().create_table()?;
        for model::mail::Mailer { name, address } in &mail.mailers {
            servers.raw_set(&**name, format!("{}:{}", address.ip(), address.port()))?;
        }
        table.raw_set("track_server_health", checks)?;
        table.raw_set("log_level", mail.level)?;
        table.raw_set("mailservers", servers)?;
        table.raw_set("mailservers_timeout", i64::try_from(mail.timeout.as_millis()).unwrap_or(i64::MAX))?;
        table.raw_set("smtp_hostname", &*mail.hostname)?;
        table.raw_set("smtp_from", &*mail.from)?;
        table.raw_set("smtp_to", &*mail.to)?;
        Ok(table)
    };
    let table = inner(table())?;
    give(args.lua(), table)
}

/// A command about a frontend.
fn frontend(args: &mut Args<'_>, what: &str) -> Outcome {
    let name: String = args.own()?;
    ask(&[what, "frontend", &name]);
    nothing()
}

fn shut_bcksess(args: &mut Args<'_>) -> Outcome {
    let (name, backups) = with(args, |p| {
        let backups = p.servers.iter().filter(|s| s.backup).map(|s| s.state.name.to_string());
        (p.name.to_string(), backups.collect::<Vec<_>>())
    })?;
    for server in backups {
        ask(&["shutdown", "sessions", "server", &format!("{name}/{server}")]);
    }
    nothing()
}
