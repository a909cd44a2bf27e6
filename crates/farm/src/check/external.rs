//! Checks that a program makes (manual, `option external-check`): it is told of whom in its arguments and
//! environment, and its exit status is the verdict.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::check::{CheckResult, CheckStatus};
use model::server::Target;
use program::Mode;
use program::address::Listen;
use program::check::{Check, External};
use program::proto::Proto;
use rt::sys::{ProgramEnd, ProgramSpec, run_program};

use super::script::Timing;
use crate::At;
use crate::FarmWorker;

/// Runs a server's check program once; it has the time that connecting has.
pub async fn run(worker: &Rc<FarmWorker>, at: At, check: &Check, external: &External) -> CheckResult {
    let begun = rt::now();
    let timeouts = &worker.farm.program.proxy(at.proxy).timeouts;
    let timing = Timing::of(begun, check.inter, timeouts.connect, timeouts.check);
    let limit = Duration::from_millis(timing.for_connect().millis_since(begun));
    let end = run_program(spec(worker, at, external), limit).await;
    let (status, code) = match end {
        ProgramEnd::Exited(0) => (CheckStatus::ProcOk, 0),
        ProgramEnd::Exited(code) => (CheckStatus::ProcErr, code),
        ProgramEnd::Killed => (CheckStatus::ProcErr, -1),
        // What a shell's child reports that couldn't become the program.
        ProgramEnd::NotStarted => (CheckStatus::ProcErr, 255),
        ProgramEnd::TimedOut => (CheckStatus::ProcTimeout, 0),
    };
    let duration_ms = u32::try_from(rt::now().millis_since(begun)).unwrap_or(u32::MAX);
    CheckResult { status, code, duration_ms, ..CheckResult::default() }
}

/// An address as the program is told it; a Unix socket has no port.
fn parts(addr: Option<(String, Option<u16>)>) -> (String, String) {
    match addr {
        Some((addr, port)) => (addr, port.map(|p| p.to_string()).unwrap_or_default()),
        None => Default::default(),
    }
}

fn spec(worker: &FarmWorker, at: At, external: &External) -> ProgramSpec {
    let proxy = &*worker.farm.program.proxy(at.proxy);
    let server = &*proxy.server(at.server);
    let bound = proxy.binds.iter().find_map(|b| match &b.address {
        Listen::Tcp(a) => Some((a.ip().to_string(), Some(a.port()))),
        Listen::Unix(path) => Some((String::from_utf8_lossy(path).into_owned(), None)),
        _ => None,
    });
    let target = match &**server.state.target.load() {
        Target::Inet(a) => Some((a.ip().to_string(), Some(a.port()))),
        Target::Unix { path, .. } => Some((String::from_utf8_lossy(path).into_owned(), None)),
        Target::None => None,
    };
    let (proxy_addr, proxy_port) = parts(bound);
    let (addr, port) = parts(target);
    let or_unused = |text: &str| if text.is_empty() { "NOT_USED".to_owned() } else { text.to_owned() };
    let args = vec![or_unused(&proxy_addr), or_unused(&proxy_port), addr.clone(), or_unused(&port)];
    let state = &server.state;
    let proto = match proxy.mode {
        Mode::Http if server.proto == Proto::H2 => "h2",
        Mode::Http if server.proto == Proto::Fcgi => "fcgi",
        Mode::Http => "h1",
        _ => "tcp",
    };
    let env = [
        ("PATH", external.path.as_deref().unwrap_or_default().to_owned()),
        ("HAPROXY_PROXY_NAME", proxy.name.to_string()),
        ("HAPROXY_PROXY_ID", proxy.state.id.to_string()),
        ("HAPROXY_PROXY_ADDR", proxy_addr),
        ("HAPROXY_PROXY_PORT", proxy_port),
        ("HAPROXY_SERVER_NAME", server.name.to_string()),
        ("HAPROXY_SERVER_ID", state.id.to_string()),
        ("HAPROXY_SERVER_ADDR", addr),
        ("HAPROXY_SERVER_PORT", port),
        ("HAPROXY_SERVER_MAXCONN", state.maxconn.load(Relaxed).to_string()),
        ("HAPROXY_SERVER_CURCONN", state.served.load(Relaxed).to_string()),
        ("HAPROXY_SERVER_SSL", u8::from(server.tls.is_some()).to_string()),
        ("HAPROXY_SERVER_PROTO", proto.to_owned()),
    ];
    ProgramSpec {
        program: external.command.to_string(),
        args,
        env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        inherit_env: external.preserve_env,
    }
}
