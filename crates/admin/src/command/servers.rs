//! `show servers state`, `show servers conn`.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;

use base::fleet::Held;
use model::check::{CheckResult, CheckStatus};
use model::server::admin;
use program::{Proxy, Server};

use crate::cli::anon::Anon;
use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use crate::server_state::address;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["show", "servers", "conn"], "[<backend>]", "connections of servers", Level::User, conn),
    Command::now(
        &["show", "servers", "state"],
        "[<backend>]",
        "state of servers, to be loaded by a later process",
        Level::User,
        state,
    ),
];

/// The proxies that the command concerns: the backend that was named, or all that have servers.
fn backends<'c>(call: &'c Call<'_>) -> Result<Vec<Held<'c, Proxy>>, Refusal> {
    if call.arg(0).is_empty() {
        return Ok(call.shared().program.present().filter(|p| p.is_backend).collect());
    }
    let found = call.find_backend(call.arg(0)).ok_or("Can't find backend.")?;
    Ok(vec![found.1])
}

const STATE_COLUMNS: &str = "# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state \
srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result \
srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port \
srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n";

/// `show servers state`: version 1 of the format that a later process loads.
pub fn state(call: &mut Call<'_>) -> Outcome {
    let mut out = format!("1\n{STATE_COLUMNS}");
    for proxy in backends(call)? {
        for server in proxy.present() {
            state_line(&mut out, call.client.anon, call.shared().started, &proxy, &server);
        }
    }
    Ok(Reply::Dump(out))
}

fn state_line(out: &mut String, anon: Anon, started: rt::Mono, proxy: &Proxy, server: &Server) {
    let s = &server.state;
    let (addr, port) = address(server);
    let changed = s.unchanged_ms(rt::now(), started) / 1000;
    let maint = s.admin() & admin::MAINT != 0;
    let (status, result, works) = {
        let health = s.status.lock();
        let works = [health.last.at_work, health.agent.at_work];
        (health.last.status.number(), check_result(server, &health.last), works)
    };
    let probe = s.probe.lock().clone();
    let said = server.probed;
    // The checks of a proxy that is `disabled` are not even made.
    let at_work = !proxy.disabled;
    let shown = |ip: Option<IpAddr>| ip.map_or("-".into(), |ip| ip.to_string());
    let _ = writeln!(
        out,
        "{} {} {} {} {} {} {} {} {} {changed} {status} {result} {} {} {} {} {} {} {port} {} {} {} {} {} {}",
        proxy.state.id,
        anon.word(&proxy.name),
        s.id,
        anon.word(&server.name),
        anon.server(&addr),
        if maint { 0 } else { s.op() as u8 },
        s.admin(),
        s.weight.load(Relaxed),
        s.initial_weight.load(Relaxed),
        s.health.load(Relaxed),
        if at_work { check_state(server, works[0]) } else { 0 },
        if at_work { agent_state(server, works[1]) } else { 0 },
        u8::from(proxy.forced_id),
        u8::from(server.forced_id),
        s.fqdn.lock().as_deref().map_or("-".into(), |name| anon.word(name)),
        server.service.as_deref().map_or("-".into(), |name| anon.word(name)),
        tls_state(server),
        probe.check_port.or(said.check_port).unwrap_or(0),
        shown(probe.check_addr.or(said.check_addr)),
        shown(probe.agent_addr.or(said.agent_addr)),
        probe.agent_port.or(said.agent_port).unwrap_or(0),
    );
}

/// `srv_use_ssl`: 1 with TLS, 0 without, -1 as `no-ssl` says.
fn tls_state(server: &Server) -> i8 {
    match server.tls() {
        Some(_) => 1,
        None if server.state.refuses_tls.load(Relaxed) => -1,
        None => 0,
    }
}

/// `srv_check_result`: 0 unknown, 1 neutral, 2 failed, 3 passed, 4 conditionally passed.
fn check_result(server: &Server, last: &CheckResult) -> u8 {
    if let Some(told) = last.told {
        return told;
    }
    match last.status {
        _ if server.check.is_none() || last.at_work => 0,
        CheckStatus::Unknown | CheckStatus::Init | CheckStatus::Forced => 0,
        CheckStatus::L7OkCond => 4,
        s if s.passed() => 3,
        _ => 2,
    }
}

/// `srv_check_state`: 1 at work, 2 configured, 4 enabled, 8 paused by maintenance.
fn check_state(server: &Server, works: bool) -> u8 {
    let s = &server.state;
    let configured = server.check.is_some();
    u8::from(configured && works)
        + 2 * u8::from(configured)
        + 4 * u8::from(configured && s.check_enabled.load(Relaxed))
        + 8 * u8::from(s.checks_paused.load(Relaxed))
}

/// `srv_agent_state`: as `srv_check_state`, with 16 for an agent.
fn agent_state(server: &Server, works: bool) -> u8 {
    let s = &server.state;
    if server.agent.is_none() {
        return 0;
    }
    18 + 4 * u8::from(s.agent_enabled.load(Relaxed)) + u8::from(works)
}

/// `show servers conn`.
pub fn conn(call: &mut Call<'_>) -> Outcome {
    let workers = call.shared().program.world.workers;
    let mut out = format!(
        "# bkname/svname bkid/svid addr port - purge_delay served used_cur used_max need_est idle_sess \
unsafe_nb safe_nb idle_lim idle_cur idle_per_thr[{workers}]\n"
    );
    for proxy in backends(call)? {
        for server in proxy.present() {
            conn_line(&mut out, call.client.anon, &proxy, &server, workers);
        }
    }
    Ok(Reply::Dump(out))
}

/// Idle connections of a worker are its own; the first of the columns by worker holds their sum.
fn conn_line(out: &mut String, anon: Anon, proxy: &Proxy, server: &Server, workers: usize) {
    let s = &server.state;
    let (addr, port) = address(server);
    let (conns, idle, (unproven, safe)) = (&s.conns, s.conns.idle(), s.conns.idle_and_safe());
    let _ = write!(
        out,
        "{}/{} {}/{} {} {port} - {} {} {} {} {} {} {} {safe} {} {idle}",
        anon.word(&proxy.name),
        anon.word(&server.name),
        proxy.state.id,
        s.id,
        anon.server(&addr),
        server.pool_purge_delay.as_millis(),
        s.served.load(Relaxed),
        conns.used(),
        conns.used_max(),
        conns.need(),
        conns.private(),
        unproven,
        server.pool_max_conn,
    );
    // A server that keeps no idle connections has none to tell of by worker.
    if server.pool_max_conn != 0 {
        let _ = write!(out, " {idle}");
        out.push_str(&" 0".repeat(workers.saturating_sub(1)));
    }
    out.push('\n');
}
