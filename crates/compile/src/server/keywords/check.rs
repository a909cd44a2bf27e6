//! Words about the health of a server: checks, agents, observation, what happens when it goes down.

use std::net::{Ipv4Addr, SocketAddr};

use program::server::{Observe, OnError};
use syntax::addr::{self, Accept, Host, Ports};
use syntax::{Diagnostic, Level};

use super::{ServerKeyword, delay, off, on, proto, strictly, text, value, word};
use crate::draft::{Draft, InitState, Named, ServerDraft};
use crate::statement::{Statement, Step};

/// The words of this family.
pub(super) const KEYWORDS: &[ServerKeyword] = &[
    word("addr", 1, check_addr, "Address for health checks.").example("addr 127.0.0.2").default("the server's"),
    word("agent-addr", 1, agent_addr, "Address of the agent.").example("agent-addr 127.0.0.2").default("the server's"),
    word("agent-check", 0, |v, _, _| on(&mut v.agent), "Ask an agent for the state of the server.").example("agent-check agent-port 9000"),
    word(
        "agent-inter",
        1,
        |v, s, p| delay(s, v, p, "agent-inter").map(|d| v.agent_inter = Some(d)),
        "Time between agent checks.",
    ).example("agent-inter 5s").default("that of inter"),
    word(
        "agent-port",
        1,
        |v, s, _| {
            v.agent_port = u16::try_from(value(s, "agent-port", "expects a port number as argument.")?).ok();
            Ok(())
        },
        "Port of the agent.",
    ).example("agent-port 9000"),
    word(
        "agent-send",
        1,
        |v, s, _| {
            v.agent_send = s.word("'agent-send' expects a string as argument.")?.bytes().into();
            Ok(())
        },
        "What is sent to the agent first.",
    ).example("agent-send hello\\n").default("nothing"),
    word("check", 0, |v, _, _| on(&mut v.check), "Check the server's health.").example("check"),
    word(
        "check-pool-conn-name",
        1,
        |v, s, _| text(s, &mut v.check_pool_conn_name, "'check-pool-conn-name' : missing value"),
        "Name of the idle connections that checks may use.",
    ).example("check-pool-conn-name up"),
    word(
        "check-proto",
        1,
        |v, s, _| proto(s, "check-proto").map(|mux| v.check_proto = Some(mux)),
        "Protocol of checks.",
    ).example("check-proto h2").default("that of proto"),
    word("check-reuse-pool", 0, |v, _, _| on(&mut v.check_reuse_pool), "Checks may use idle connections.").example("check-reuse-pool"),
    word("check-send-proxy", 0, |v, _, _| on(&mut v.check_send_proxy), "Checks begin with a PROXY header.").example("check-send-proxy"),
    word(
        "check-via-socks4",
        0,
        |v, _, _| on(&mut v.check_via_socks4),
        "Checks go through the SOCKS4 proxy, too.",
    ).example("check-via-socks4"),
    word(
        "downinter",
        1,
        |v, s, p| delay(s, v, p, "downinter").map(|d| v.downinter = Some(d)),
        "Time between checks while down.",
    ).example("downinter 10s").default("that of inter"),
    word(
        "error-limit",
        1,
        |v, s, _| {
            let n = value(s, "error-limit", "expects an integer argument.")?;
            v.error_limit = strictly(s, n, "error-limit has to be > 0.")?;
            Ok(())
        },
        "Errors that 'observe' tolerates.",
    ).example("error-limit 5").default("10"),
    word(
        "fall",
        1,
        |v, s, _| {
            let n = value(s, "fall", "expects an integer argument.")?;
            v.fall = strictly(s, n, "'fall' has to be > 0.")?;
            Ok(())
        },
        "Failed checks before the server is down.",
    ).example("fall 2").default("3"),
    word(
        "fastinter",
        1,
        |v, s, p| delay(s, v, p, "fastinter").map(|d| v.fastinter = Some(d)),
        "Time between checks while changing.",
    ).example("fastinter 500ms").default("that of inter"),
    word(
        "healthcheck",
        1,
        |v, s, _| {
            let word = s.word("'healthcheck' expects a healthcheck name as argument.")?;
            v.healthcheck = Some(word.text().into());
            Ok(())
        },
        "The check of a healthcheck section.",
    ),
    word(
        "init-state",
        1,
        |v, s, _| {
            let word = s.word(
                "'init-state' expects one of 'none', 'fully-up', 'up', 'down', or 'fully-down' but got ''",
            )?;
            v.init_state = match word.text() {
            "none" => InitState::Unsaid,
            "up" => InitState::Up,
            "fully-up" => InitState::FullyUp,
            "down" => InitState::Down,
            "fully-down" => InitState::FullyDown,
            _ => return Err(s.fail(format!("'init-state' expects one of 'none', 'fully-up', 'up', 'down', or 'fully-down' but got '{word}'"))),
        };
            Ok(())
        },
        "State before the first check.",
    ).example("init-state down").default("up, or what track says"),
    word("inter", 1, |v, s, p| delay(s, v, p, "inter").map(|d| v.inter = d), "Time between checks.").example("inter 5s").default("2s"),
    word("no-agent-check", 0, |v, _, _| off(&mut v.agent), "No agent check.").example("no-agent-check").configured(),
    word("no-check", 0, |v, _, _| off(&mut v.check), "No health check.").example("no-check").configured(),
    word(
        "no-check-reuse-pool",
        0,
        |v, _, _| off(&mut v.check_reuse_pool),
        "Checks make their own connections.",
    ).example("no-check-reuse-pool")
    .configured(),
    word("no-check-send-proxy", 0, |v, _, _| off(&mut v.check_send_proxy), "No PROXY header on checks.").example("no-check-send-proxy")
        .configured(),
    word("observe", 1, observe, "Learn the health from live traffic.").example("observe layer7").default("nothing"),
    word("on-error", 1, on_error, "What happens when too many errors were observed.").example("on-error mark-down").default("fail-check"),
    word(
        "on-marked-down",
        1,
        |v, s, _| {
            v.down_kills = choice(s, "on-marked-down", "shutdown-sessions")?;
            Ok(())
        },
        "What happens to sessions when the server goes down.",
    ).example("on-marked-down shutdown-sessions").default("none"),
    word(
        "on-marked-up",
        1,
        |v, s, _| {
            v.up_kills_backups = choice(s, "on-marked-up", "shutdown-backup-sessions")?;
            Ok(())
        },
        "What happens to sessions on backups when the server comes up.",
    ).example("on-marked-up shutdown-backup-sessions").default("none"),
    word(
        "port",
        1,
        |v, s, _| {
            v.check_port = u16::try_from(value(s, "port", "expects a port number as argument.")?).ok();
            Ok(())
        },
        "Port for health checks.",
    ).example("port 8080").default("the server's"),
    word(
        "rise",
        1,
        |v, s, _| {
            let n = value(s, "rise", "expects an integer argument.")?;
            v.rise = strictly(s, n, "'rise' has to be > 0.")?;
            Ok(())
        },
        "Passed checks before the server is up.",
    ).example("rise 3").default("2"),
    word(
        "track",
        1,
        |v, s, _| {
            let word = s.word("'track' expects [<proxy>/]<server> as argument.")?;
            v.track = Some(Named { name: word.text().into(), span: word.span() });
            Ok(())
        },
        "Take the health of another server.",
    ).example("track p/s1"),
];

/// `addr`: its port holds unless `port` names one; port 0 is the server's.
fn check_addr(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'addr' expects <ipv4|ipv6> as argument.")?;
    let refuse = |why: String| Diagnostic::alert(word.span(), format!("'addr' : {why}"));
    let accept = Accept { offsets: false, datagrams: false, ..Accept::SERVER };
    let found = addr::parse(word.text(), accept, s.around.environment).map_err(refuse)?;
    let port = match found.ports {
        Ports::One(port) => port,
        _ => 0,
    };
    let ip = match &found.host {
        Host::Ip(_) | Host::Name(..) => crate::resolve::ip(&found.host),
        _ => return Err(refuse(format!("checks of '{word}' are not supported yet by Harrier (planned)"))),
    };
    let ip = ip.ok_or_else(|| refuse(unresolved(&found.host, word.text())))?;
    v.check_addr = Some(SocketAddr::new(ip, port));
    v.plain.check_mptcp = Some(found.mptcp);
    Ok(())
}

/// What is said of a host without an address.
pub(super) fn unresolved(host: &Host, text: &str) -> String {
    let name = match host {
        Host::Name(name, _) => name,
        _ => text,
    };
    addr::unresolved(name, text)
}

/// `agent-addr`: its port is a word of its own.
fn agent_addr(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'agent-addr' expects an address as argument.")?;
    let text = word.text();
    let found = if text == "*" { Some(Ipv4Addr::UNSPECIFIED.into()) } else { text.parse().ok() };
    let found = found.or_else(|| crate::resolve::host(text));
    let wrong = format!("parsing agent-addr failed. Check if '{text}' is correct address.");
    v.agent_addr = Some(found.ok_or_else(|| s.fail(wrong))?);
    Ok(())
}

/// A word that has one possible value, or `none`.
fn choice(s: &mut Statement<'_>, name: &str, only: &str) -> Step<bool> {
    let word = s.word(format!("'{name}' expects '{only}' as argument."))?;
    match word.text() {
        "none" => Ok(false),
        w if w == only => Ok(true),
        _ => Err(s.fail(format!("'{name}' expects '{only}' but got '{word}'"))),
    }
}

fn observe(v: &mut ServerDraft, s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let word = s.word("'observe' expects <mode> as argument.")?;
    v.observe = match word.text() {
        "none" => None,
        "layer4" | "tcp" => Some(Observe::Layer4),
        "layer7" | "http" => {
            if p.mode != program::Mode::Http {
                // A `default-server` line has no name.
                let named = !v.name.is_empty() || v.template.is_some();
                let before = if named { format!("{} : ", v.label(p)) } else { String::new() };
                let text = format!("{before}'{word}' can only be used in http proxies..");
                let note = Diagnostic::new(Level::Alert, word.span(), text).tolerated();
                s.notes.push(crate::statement::bracket(note));
            }
            Some(Observe::Layer7)
        }
        _ => {
            return Err(
                s.fail(format!("'observe' expects one of 'none', 'layer4', 'layer7' but got '{word}'"))
            );
        }
    };
    Ok(())
}

fn on_error(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    const CHOICES: &str = "'fastinter', 'fail-check', 'sudden-death' or 'mark-down'";
    let word = s.word(format!("'on-error' expects one of {CHOICES} but got ''"))?;
    v.on_error = match word.text() {
        "fastinter" => OnError::FastInter,
        "fail-check" => OnError::FailCheck,
        "sudden-death" => OnError::SuddenDeath,
        "mark-down" => OnError::MarkDown,
        _ => return Err(s.fail(format!("'on-error' expects one of {CHOICES} but got '{word}'"))),
    };
    Ok(())
}
