//! From a program to a running process, in the order that works: sockets, limits, pid file, log
//! sinks, chroot, rights, threads.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use engine::log::Outlets;
use engine::run::{self, Opened};
use engine::{Shared, listener};
use program::address::Listen;
use program::{Bind, Program};
use rt::sys::{self, Limit};
use rt::{Listener, WorkerSpec};

use crate::args::Args;
use crate::config::Loaded;
use crate::{stop, watchdog};

/// Runs a program until it is stopped.
pub fn run(loaded: Loaded, args: &Args) -> ExitCode {
    let program = loaded.program;
    let pid = std::process::id();
    let limits = set_limits(&program);
    if let Err(text) = limits {
        eprintln!("[WARNING]  ({pid}) : {text}");
    }
    rt::set_bufsize(program.global.tune.bufsize);
    let process = &program.world.process;
    process.maxconn.store(program.global.maxconn, Relaxed);
    process.conn_rate_limit.store(program.global.maxconnrate, Relaxed);
    process.sess_rate_limit.store(program.global.maxsessrate, Relaxed);
    let mut shared = Shared::new(program.clone(), rt::precise(), rt::wall());
    let background = (args.daemon || program.global.daemon) && !args.foreground;
    shared.console = !args.quiet && !background;
    shared.services = loaded.services;
    let (opened, failed) = run::open_all(&shared, open);
    for (p, b, e) in &failed {
        complain(&program, *p, *b, e);
    }
    let Ok(cli) = open_cli(&program) else { return ExitCode::from(1) };
    if !failed.is_empty() {
        return ExitCode::from(1);
    }
    for pid in &args.finish {
        let _ = sys::kill(*pid, sys::Signal::Usr1.number());
    }
    for pid in &args.terminate {
        let _ = sys::kill(*pid, sys::Signal::Term.number());
    }
    match settle(&program, args) {
        Ok(outlets) => shared.outlets = outlets,
        Err(code) => return code,
    }
    serve(Arc::new(shared), opened, cli)
}

/// Opens one listening socket, inherited ones included.
fn open(bind: &Bind, backlog: u32) -> std::io::Result<Listener> {
    match &bind.address {
        Listen::Fd(fd) => Listener::adopt(sys::inherited(*fd)?, &listener::options(bind, backlog)),
        Listen::SockPair(fd) => Listener::from_sockpair(sys::inherited(*fd)?),
        _ => listener::open(bind, backlog),
    }
}

/// Opens the sockets of the runtime API.
fn open_cli(program: &Program) -> Result<Vec<(Bind, Listener)>, ()> {
    let mut list = Vec::new();
    for bind in &program.global.cli {
        match open(bind, 1024) {
            Ok(l) => list.push((bind.clone(), l)),
            Err(e) => {
                let (file, line) = &bind.place;
                eprintln!(
                    "[ALERT]    ({}) : Binding [{file}:{line}] for proxy GLOBAL: cannot bind socket ({}) for [{}]",
                    std::process::id(),
                    reason(&e),
                    shown(&bind.address)
                );
                return Err(());
            }
        }
    }
    Ok(list)
}

fn complain(program: &Program, proxy: u32, bind: u32, e: &std::io::Error) {
    let proxy = program.proxy(proxy);
    let bind = &proxy.binds[bind as usize];
    let (file, line) = &bind.place;
    let noun = if proxy.is_backend { "proxy" } else { "frontend" };
    eprintln!(
        "[ALERT]    ({}) : Binding [{file}:{line}] for {noun} {}: cannot bind socket ({}) for [{}]",
        std::process::id(),
        proxy.name,
        reason(e),
        shown(&bind.address)
    );
}

/// What the system says, without Rust's number behind it.
fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn shown(address: &Listen) -> String {
    match address {
        Listen::Tcp(a) => a.to_string(),
        Listen::Unix(p) | Listen::Abns(p) | Listen::Abnsz(p) => String::from_utf8_lossy(p).into_owned(),
        Listen::Fd(n) => format!("fd@{n}"),
        Listen::SockPair(n) => format!("sockpair@{n}"),
    }
}

/// Raises the number of descriptors to what the limits on connections need.
fn set_limits(program: &Program) -> Result<(), String> {
    let wanted = program.global.ulimit_n;
    let (soft, hard) = Limit::Descriptors.get();
    if wanted == 0 || soft.is_none_or(|s| s >= wanted) {
        return Ok(());
    }
    if Limit::Descriptors.set(Some(wanted)).is_ok() {
        return Ok(());
    }
    // At least what is allowed without further rights.
    if let Some(h) = hard {
        let _ = Limit::Descriptors.set(Some(h.min(wanted)));
    }
    Err(format!("Cannot raise FD limit to {wanted}, limit is {}.", hard.unwrap_or(0)))
}

/// Background, pid file, log sinks, chroot, rights. The sinks, opened while the whole tree is in sight, are returned.
fn settle(program: &Program, args: &Args) -> Result<Outlets, ExitCode> {
    let global = &program.global;
    let fail = |text: String| {
        eprintln!("[ALERT]    ({}) : {text}", std::process::id());
        ExitCode::from(1)
    };
    let background = (args.daemon || global.daemon) && !args.foreground;
    let pidfile = args.pidfile.as_ref().or(global.pidfile.as_ref());
    // The file is opened where the parent may still write.
    let mut file = match pidfile {
        None => None,
        Some(path) => Some(
            std::fs::File::create(path)
                .map_err(|e| fail(format!("Cannot create pidfile {}: {}", path.display(), reason(&e))))?,
        ),
    };
    if background {
        match sys::fork() {
            Ok(sys::Fork::Parent(_)) => std::process::exit(0),
            Ok(sys::Fork::Child) => {
                let _ = sys::detach_from_terminal();
                if !args.quiet || args.verbose {
                    let _ = sys::silence_standard_streams();
                }
            }
            Err(e) => return Err(fail(format!("Cannot fork: {}", reason(&e)))),
        }
    }
    if let Some(f) = &mut file {
        use std::io::Write;
        let _ = writeln!(f, "{}", std::process::id());
    }
    let outlets = Outlets::open(program);
    if let Some(folder) = &global.chroot {
        sys::chroot(folder)
            .map_err(|e| fail(format!("Cannot chroot({}): {}", folder.display(), reason(&e))))?;
    }
    if let Some(gid) = global.gid {
        let _ = sys::clear_groups();
        sys::set_group(gid).map_err(|e| fail(format!("Cannot set gid {gid}: {}", reason(&e))))?;
    }
    if let Some(uid) = global.uid {
        sys::set_user(uid).map_err(|e| fail(format!("Cannot set uid {uid}: {}", reason(&e))))?;
    }
    if global.set_dumpable {
        let _ = sys::set_dumpable();
    }
    Ok(outlets)
}

/// Starts the workers and waits for their end.
fn serve(shared: Arc<Shared>, opened: Vec<Opened>, cli: Vec<(Bind, Listener)>) -> ExitCode {
    let global = &shared.program.global;
    let workers = (0..global.threads.max(1) as usize)
        .map(|i| WorkerSpec {
            name: format!("worker/{}", i + 1),
            affinity: global.affinity.get(i).filter(|a| !a.is_empty()).cloned(),
        })
        .collect();
    let _ = sys::block_signals();
    let ended = rt::run(workers, move |index| {
        let worker = run::start_worker(index, shared.clone(), &opened);
        if index == 0 {
            let peers = rt::peers();
            watchdog::start(peers.clone());
            rt::spawn(stop::obey(shared.clone(), peers));
            for (bind, listener) in &cli {
                rt::spawn(admin::cli::serve(worker.clone(), listener.clone(), bind.clone()));
            }
        }
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("[ALERT]    ({}) : cannot start the workers: {}", std::process::id(), reason(&e));
            ExitCode::from(1)
        }
    }
}
