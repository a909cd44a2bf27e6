//! `set server`: state, weight, address and health of a server.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use farm::At;
use farm::dynamic;
use farm::state::{self as change, Forced, Wanted};
use model::server::Target;
use program::Server;

use super::weight;
use crate::cli::call::{Call, Outcome, Refusal, Reply, severity};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::later(
    &["set", "server"],
    "<bk>/<srv> [opts]",
    "change state, weight, address or health of a server",
    Level::Admin,
    |call| Box::pin(run(call)),
)];

/// How long the system may look for the host of `agent-addr`.
const RESOLVING: Duration = Duration::from_secs(5);

const USAGE: &str = "usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | \
agent-send | check-addr | check-port | fqdn | health | name | ssl | state | weight";

/// `set server <backend>/<server> <what> <value>...`.
async fn run(call: &mut Call<'_>) -> Outcome {
    let at = call.server_to_change()?;
    match call.arg(1) {
        "weight" => weight::set_to(call, call.arg(2)),
        "state" => state(call, at),
        "health" => health(call, at),
        "agent" => agent(call, at),
        "addr" => addr(call, at),
        "agent-addr" | "agent-port" | "agent-send" => agent_setting(call, at).await,
        "check-port" | "check-addr" => check_setting(call, at),
        "fqdn" => fqdn(call, at),
        "ssl" => ssl(call, at),
        "name" => name(call, at),
        _ => Err(USAGE.into()),
    }
}

/// `name`: of a server in maintenance that the configuration does not refer to.
fn name(call: &Call<'_>, at: At) -> Outcome {
    let (new, server) = (call.arg(2), call.config(at));
    if new.is_empty() {
        return Err("set server <b>/<s> name requires a new name.".into());
    }
    if new.len() > 255 {
        return Err("Server name too long.".into());
    }
    if new.chars().any(|c| !c.is_ascii_alphanumeric() && !".:_-".contains(c)) {
        return Err("Server name contains invalid characters.".into());
    }
    if server.state.admin() & model::server::admin::MAINT == 0 {
        let text = "Server must be in maintenance mode to be renamed (set server <b>/<s> state maint).";
        return Err(text.into());
    }
    if *server.name == *new {
        return Ok(Reply::info("Server name updated."));
    }
    let proxy = &*call.shared().program.proxy(at.proxy);
    let default = proxy.default_servers.iter().any(|(known, _)| known.as_deref() == Some(new));
    if default || proxy.present().any(|s| *s.name == *new) {
        return Err("A server with the same name already exists in this backend.".into());
    }
    if dynamic::is_referenced(&call.worker.farm, at) {
        let text =
            "Cannot rename: server's name is statically referenced (use-server, track, or sample argument).";
        return Err(text.into());
    }
    if !server.name.change(new) {
        return Err("Server was renamed too often.".into());
    }
    Ok(Reply::info("Server name updated."))
}

/// `set server ... ssl on|off`.
fn ssl(call: &Call<'_>, at: At) -> Outcome {
    if call.config(at).tls.is_none() {
        return Err("'set server <srv> ssl' cannot be set.  default-server should define ssl settings".into());
    }
    let on = match call.arg(2) {
        "on" => true,
        "off" => false,
        _ => return Err("'set server <srv> ssl' expects 'on' or 'off'.".into()),
    };
    change::set_tls(&call.worker.farm, at, on);
    Ok(Reply::Message(severity::NOTICE, "server ssl setting updated.".into()))
}

fn state(call: &Call<'_>, at: At) -> Outcome {
    let wanted = match call.arg(2) {
        "ready" => Wanted::Ready,
        "drain" => Wanted::Drain,
        "maint" => Wanted::Maint,
        _ => return Err("'set server <srv> state' expects 'ready', 'drain' and 'maint'.".into()),
    };
    change::set_admin(&call.worker.farm, at, wanted);
    Ok(Reply::Done)
}

fn health(call: &Call<'_>, at: At) -> Outcome {
    if call.config(at).track.is_some() {
        return Err("cannot change health on a tracking server.".into());
    }
    let forced = match call.arg(2) {
        "up" => Forced::Up,
        "stopping" => Forced::Stopping,
        "down" => Forced::Down,
        _ => return Err("'set server <srv> health' expects 'up', 'stopping', or 'down'.".into()),
    };
    change::force_health(&call.worker.farm, at, forced);
    Ok(Reply::Done)
}

const NO_AGENT: &str = "agent checks are not enabled on this server.";

fn agent(call: &Call<'_>, at: At) -> Outcome {
    if !call.config(at).asks_agent() {
        return Err(NO_AGENT.into());
    }
    let up = match call.arg(2) {
        "up" => true,
        "down" => false,
        _ => return Err("'set server <srv> agent' expects 'up' or 'down'.".into()),
    };
    change::force_agent(&call.worker.farm, at, up);
    Ok(Reply::Done)
}

async fn agent_setting(call: &Call<'_>, at: At) -> Outcome {
    let what = call.arg(1);
    let server = call.config(at);
    if !server.asks_agent() {
        let dot = if what == "agent-send" { "." } else { "" };
        return Err(format!("agent checks are not enabled on this server{dot}").into());
    }
    let (addr, port) = match what {
        "agent-addr" => asked(call, found(call.arg(2)).await)?,
        "agent-port" => (None, Some(port(what, call.arg(2))?)),
        _ => (None, None),
    };
    let mut probe = server.state.probe.lock();
    probe.agent_addr = addr.or(probe.agent_addr);
    probe.agent_port = port.or(probe.agent_port);
    if what == "agent-send" {
        probe.agent_send = Some(call.arg(2).as_bytes().into());
    }
    Ok(Reply::Done)
}

fn check_setting(call: &Call<'_>, at: At) -> Outcome {
    let server = call.config(at);
    if server.check.is_none() || !server.state.check_enabled.load(Relaxed) {
        return Err("health checks are not enabled on this server".into());
    }
    let (addr, port) = match call.arg(1) {
        "check-addr" => asked(call, None)?,
        what => (None, Some(port(what, call.arg(2))?)),
    };
    let mut probe = server.state.probe.lock();
    probe.check_addr = addr.or(probe.check_addr);
    probe.check_port = port.or(probe.check_port);
    Ok(Reply::Done)
}

/// The address of a host that the system knows.
async fn found(host: &str) -> Option<IpAddr> {
    if host.is_empty() || host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let host = host.to_owned();
    let found = engine::aside::run("resolver", RESOLVING, move || rt::sys::resolve(&host)).await?;
    found.ok()?.first().copied()
}

/// `<address> [port <port>]`; `found` is what the address means if it is a name.
fn asked(call: &Call<'_>, found: Option<IpAddr>) -> Result<(Option<IpAddr>, Option<u16>), Refusal> {
    let (what, addr) = (call.arg(1), call.arg(2));
    if addr.is_empty() {
        return Err(format!("set server <b>/<s> {what} requires an address and optionally a port.").into());
    }
    let Some(ip) = addr.parse().ok().or(found) else { return Err(format!("invalid addr '{addr}'").into()) };
    let port = match (call.arg(3), call.arg(4)) {
        ("port", "") => return Err("provided port is not an integer".into()),
        ("port", text) => Some(port(what, text)?),
        _ => None,
    };
    Ok((Some(ip), port))
}

fn port(what: &str, text: &str) -> Result<u16, Refusal> {
    if text.is_empty() {
        return Err(format!("set server <b>/<s> {what} requires a port.").into());
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("provided port is not an integer".into());
    }
    text.parse().ok().ok_or_else(|| "provided port is invalid".into())
}

/// HAProxy's words, slip included: tools may look for them.
const NO_NEED: &str = "no need to change the FDQN by 'stats socket command'";

fn fqdn(call: &Call<'_>, at: At) -> Outcome {
    let (name, server) = (call.arg(2), call.config(at));
    let why = match name {
        "" => "set server <b>/<s> fqdn requires a FQDN.",
        _ if server.resolvers.is_none() => {
            "set server <b>/<s> fqdn failed because no resolution is configured."
        }
        _ if server.service.is_some() => {
            "set server <b>/<s> fqdn failed because SRV resolution is configured."
        }
        _ => "",
    };
    if !why.is_empty() {
        return Err(why.into());
    }
    let who = format!("{}/{}", call.shared().program.proxy(at.proxy).name, server.name);
    // The longest name that HAProxy has room for.
    let odd = |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c);
    if name.len() > 253 || name.chars().any(odd) {
        return Err(format!("invalid fqdn '{name}' by 'stats socket command'").into());
    }
    if !wire::dns::is_name(name) {
        return Err(format!("could not update {who} FQDN by 'stats socket command'").into());
    }
    let same = server.state.fqdn.lock().as_deref() == Some(name);
    if same {
        return Ok(Reply::Message(severity::NOTICE, NO_NEED.into()));
    }
    let old = farm::names::rename(&call.worker.farm, at, name);
    let old = old.as_deref().unwrap_or("(null)");
    let told = format!("{who} changed its FQDN from {old} to {name} by 'stats socket command'");
    Ok(Reply::Message(severity::NOTICE, told.into()))
}

fn addr(call: &Call<'_>, at: At) -> Outcome {
    if call.arg(2).is_empty() {
        return Err("set server <b>/<s> addr requires an address and optionally a port.".into());
    }
    let port = (call.arg(3) == "port").then(|| call.arg(4));
    let (place, told) = moved(&call.config(at), call.arg(2), port)?;
    if let Some((target, mapped)) = place {
        change::set_target(&call.worker.farm, at, target, mapped);
    }
    Ok(Reply::Message(severity::NOTICE, told.into()))
}

/// The new address of a server, if it is new, and whether its port is added to the client's; and what to say
/// about it.
type Moved = (Option<(Target, bool)>, String);

fn moved(server: &Server, addr: &str, port: Option<&str>) -> Result<Moved, Refusal> {
    if matches!(**server.state.target.load(), Target::Unix { .. }) {
        let why =
            "Update for the current server address family is only supported through configuration file.";
        return Err(why.into());
    }
    let ip: IpAddr = addr.parse().map_err(|_| Refusal::from(format!("Invalid addr '{addr}'")))?;
    let old = match &**server.state.target.load() {
        Target::Inet(a) => Some(*a),
        _ => None,
    };
    let old_port = PortNow { number: old.map_or(0, |a| a.port()), mapped: server.state.mapped.load(Relaxed) };
    let new_port = port.map_or(Ok(old_port), |text| PortNow::parse(text, old_port, server))?;
    let mut changes = Vec::new();
    if old.map(|a| a.ip()) != Some(ip) {
        let before = old.map_or("(none)".into(), |a| a.ip().to_string());
        changes.push(format!("IP changed from '{before}' to '{ip}'"));
    }
    if new_port != old_port {
        changes.push(format!("port changed from '{old_port}' to '{new_port}'"));
    }
    if changes.is_empty() {
        return Ok((None, "nothing changed".into()));
    }
    let target = Target::Inet(SocketAddr::new(ip, new_port.number));
    Ok((Some((target, new_port.mapped)), changes.join(", ") + " by 'stats socket command'"))
}

/// The port of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PortNow {
    number: u16,
    /// It is added to that which the client connected to.
    mapped: bool,
}

impl PortNow {
    /// `80`, or `+10` and `-10`, which a server has whose checks have a port of their own, if there are any.
    fn parse(text: &str, old: PortNow, server: &Server) -> Result<PortNow, Refusal> {
        let mapped = text.starts_with(['+', '-']);
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("problem converting port '{text}' to an int").into());
        }
        let number: u16 = digits.parse().map_err(|_| Refusal::from("provided port is not valid"))?;
        let number = if text.starts_with('-') { number.wrapping_neg() } else { number };
        let set = server.state.probe.lock().check_port.is_some_and(|port| port > 0);
        let checked = |check: &program::check::Check| !set && check.port.is_none();
        if mapped && server.check.as_ref().is_some_and(checked) {
            return Ok(old);
        }
        Ok(PortNow { number, mapped })
    }
}

impl std::fmt::Display for PortNow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.mapped { "+" } else { "" }, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_says_what_changed() {
        let server = crate::tests::server("s", 1);
        server.state.set_target(Target::Inet("127.0.0.1:80".parse().unwrap()));
        let told = |addr: &str, port: Option<&str>| moved(&server, addr, port).map(|(_, told)| told);
        let by = " by 'stats socket command'";
        assert_eq!(told("127.0.0.1", None), Ok("nothing changed".into()));
        assert_eq!(told("127.0.0.2", None), Ok(format!("IP changed from '127.0.0.1' to '127.0.0.2'{by}")));
        assert_eq!(told("127.0.0.1", Some("81")), Ok(format!("port changed from '80' to '81'{by}")));
        assert_eq!(
            told("::1", Some("9")),
            Ok(format!("IP changed from '127.0.0.1' to '::1', port changed from '80' to '9'{by}"))
        );
        assert_eq!(told("foo", None), Err("Invalid addr 'foo'".into()));
        assert_eq!(told("1.2.3.4", Some("x")), Err("problem converting port 'x' to an int".into()));
        assert!(told("1.2.3.4", Some("70000")).is_err() && told("1.2.3.4", Some("")).is_err());
        assert_eq!(told("127.0.0.1", Some("-1")), Ok(format!("port changed from '80' to '+65535'{by}")));
        assert!(told("127.0.0.1", Some("+")).is_err() && told("127.0.0.1", Some("+70000")).is_err());
    }
}
