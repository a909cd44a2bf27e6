//! Commands about the process: facts, environment, sockets, names.

use std::pin::Pin;

use base::foreign;
use engine::Worker;
use program::address::Listen;

use crate::cli::call::{Call, Outcome, Reply, Scope};
use crate::info;

use super::basic::level_name;
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["show", "backend"], "", "names of all backends", Level::User, backends),
    Command::now(&["show", "cli", "sockets"], "", "where the runtime API listens", Level::User, cli_sockets),
    Command::now(&["show", "env"], "[var]", "environment variables, all or one", Level::Operator, env),
    Command::later(
        &["show", "info"],
        "[desc|json|typed|float]*",
        "facts and figures of the process",
        Level::User,
        info,
    ),
    Command::now(
        &["show", "startup-logs"],
        "",
        "what was said while the process started",
        Level::Operator,
        startup_logs,
    ),
    Command::now(&["show", "resolvers"], "[id]", "figures of name servers", Level::User, resolvers),
];

/// `show startup-logs`.
pub fn startup_logs(_: &mut Call<'_>) -> Outcome {
    Ok(Reply::Dump(crate::product::startup_logs()))
}

/// `show backend`.
pub fn backends(call: &mut Call<'_>) -> Outcome {
    let names = call.shared().program.present().filter(|p| p.is_backend).map(|p| format!("{}\n", p.name));
    Ok(Reply::Dump("# name\n".to_owned() + &names.collect::<String>()))
}

/// `show cli sockets`.
pub fn cli_sockets(call: &mut Call<'_>) -> Outcome {
    if call.client.scope != Scope::Worker {
        return Ok(Reply::Done);
    }
    let mut text = String::from("# socket lvl processes\n");
    if let Some(line) = call.shared().program.world.process.master_line.get() {
        text.push_str(&format!("sockpair@{line} admin all\n"));
    }
    for bind in &call.shared().program.global.cli {
        text.push_str(&format!("{} {} all\n", listen_name(&bind.address), level_name(bind.level)));
    }
    Ok(Reply::Dump(text))
}

/// An address as `show cli sockets` writes it.
pub fn listen_name(address: &Listen) -> String {
    let name = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    match address {
        Listen::Tcp(a) if a.is_ipv4() => format!("ipv4@{a}"),
        Listen::Tcp(a) => format!("ipv6@{a}"),
        Listen::Unix(path) => format!("unix@{}", name(path)),
        Listen::Abns(n) => format!("abns@{}", name(n)),
        Listen::Abnsz(n) => format!("abnsz@{}", name(n)),
        Listen::Fd(n) => match rt::sys::inherited_addr(*n) {
            Some(rt::Addr::Inet(a)) => listen_name(&Listen::Tcp(a)),
            Some(rt::Addr::Unix(path)) => format!("unix@{}", String::from_utf8_lossy(&path)),
            _ => format!("fd@{n}"),
        },
        Listen::SockPair(n) => format!("sockpair@{n}"),
    }
}

/// `show resolvers [<section>]`.
pub fn resolvers(call: &mut Call<'_>) -> Outcome {
    let wanted = call.arg(0);
    let mut found =
        call.shared().program.resolvers.iter().filter(|r| wanted.is_empty() || *r.name == *wanted);
    let mut text = String::new();
    for section in found.by_ref() {
        text.push_str(&format!("Resolvers section {}\n", section.name));
        for server in &section.servers {
            text.push_str(&format!(" nameserver {}:\n", server.name));
            for (event, name, _) in model::names::EVENTS {
                text.push_str(&format!("  {:<13}{}\n", format!("{name}:"), server.state.get(event)));
            }
        }
    }
    if text.is_empty() && !wanted.is_empty() {
        return Err("Can't find that resolvers section".into());
    }
    Ok(Reply::Dump(text))
}

/// `show env`.
pub fn env(call: &mut Call<'_>) -> Outcome {
    let line = |(name, value): &program::EnvironmentVariable| {
        format!("{}={}\n", foreign::text(name), foreign::text(value))
    };
    let mut all = call.shared().program.environment.iter();
    match call.arg(0) {
        "" => Ok(Reply::Dump(all.map(line).collect())),
        name => {
            let found =
                all.find(|(known, _)| **known == *foreign::bytes(name)).ok_or("Variable not found")?;
            Ok(Reply::Dump(line(found)))
        }
    }
}

/// The same with what this worker alone knows, at once.
pub fn info_of(worker: &Worker) -> String {
    let own = std::iter::once((rt::worker_stats(), rt::buf_stats()));
    info::plain(&info::Facts::new(&worker.shared, own, false), false)
}

/// `show info`.
pub fn info<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let has = |word: &str| call.args().iter().any(|a| a == word);
        let (json, typed, desc, float) = (has("json"), has("typed"), has("desc"), has("float"));
        let workers = crate::gather::gather(|_| (rt::worker_stats(), rt::buf_stats())).await;
        let facts = info::Facts::new(call.shared(), workers.into_iter().map(|(_, w)| w), float);
        Ok(Reply::Dump(match (json, typed) {
            (true, _) => info::json(&facts),
            (_, true) => info::typed(&facts, desc),
            _ => info::plain(&facts, desc),
        }))
    })
}
