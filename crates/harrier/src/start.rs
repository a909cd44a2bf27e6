//! From a program to a running process, in the order that works: limits, sockets, pid file, background, log sinks,
//! chroot, rights, threads.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use engine::Shared;
use engine::log::Outlets;
use engine::run;
use program::{Global, Program};
use rt::WorkerSpec;
use rt::sys::{self, Limit, Signal};

use crate::args::Args;
use crate::background::Background;
use crate::config::Loaded;
use crate::ready::Ready;
use crate::sockets::{self, Sockets};
use crate::{say, stop, watchdog};

/// Runs a program until it is stopped.
pub fn run(loaded: Loaded, args: &Args) -> ExitCode {
    let program = loaded.program;
    remark(args);
    if !set_limits(&program, args) {
        return ExitCode::FAILURE;
    }
    rt::set_bufsize(program.global.tune.bufsize);
    rt::set_pipe_size(program.global.tune.pipesize.unwrap_or(0));
    rt::set_pipe_limit(program.global.maxpipes as usize);
    rt::allow_kernel_tls(!program.global.disabled.ktls);
    if program.tls.wants_kernel() {
        // To load its module the kernel wants privileges that are given up soon.
        rt::kernel_tls();
    }
    if !goes_back(&program.global, args) {
        program.tls.gather_entropy();
    }
    let process = &program.world.process;
    process.maxconn.store(program.global.maxconn, Relaxed);
    process.conn_rate_limit.store(program.global.maxconnrate, Relaxed);
    process.sess_rate_limit.store(program.global.maxsessrate, Relaxed);
    let mut shared = Shared::new(program.clone(), rt::precise(), rt::wall());
    shared.console = !loaded.quiet && !goes_back(&program.global, args);
    shared.services = loaded.services;
    let Some(sockets) = sockets::open(&shared, args) else { return ExitCode::from(1) };
    sockets::signal(&args.finish, Signal::Usr1);
    sockets::signal(&args.terminate, Signal::Term);
    match settle(&program, args) {
        Some(settled) => {
            shared.outlets = settled.outlets;
            serve(Arc::new(shared), sockets, settled.ready)
        }
        None => ExitCode::from(1),
    }
}

/// Whether the process leaves its terminal.
fn goes_back(global: &Global, args: &Args) -> bool {
    (args.daemon || global.daemon) && !args.foreground
}

/// What was asked for and is not there yet is said once.
fn remark(args: &Args) {
    for text in &args.remarks {
        say::warning(text);
    }
    if args.master_worker {
        say::notice(
            "There is no master process in Harrier yet: this process serves by itself. To reload, start a new one with '-sf'.",
        );
    }
    if args.sockets_from.as_deref().is_some_and(|path| path.as_os_str() != "/dev/null") {
        say::warning(
            "'-x': sockets of a running process can't be taken over yet, so all ports are opened anew.",
        );
    }
}

/// Memory as `-m` says; descriptors as many as the limits on connections need. `false` when the process has to end because of
/// `strict-limits`.
fn set_limits(program: &Program, args: &Args) -> bool {
    let strict = program.global.strict_limits;
    let say = if strict { say::alert } else { say::warning };
    if let Some(megabytes) = args.memory
        && let Err(e) = Limit::Data.set(Some(megabytes << 20))
    {
        say(&format!("Cannot limit memory to {megabytes} MB: {}.", say::reason(&e)));
        if strict {
            return false;
        }
    }
    let wanted = program.global.ulimit_n;
    let (soft, hard) = Limit::Descriptors.get();
    if wanted == 0 || soft.is_none_or(|s| s >= wanted) || Limit::Descriptors.set(Some(wanted)).is_ok() {
        return true;
    }
    // At least what is allowed without further rights.
    if let Some(h) = hard.filter(|_| !strict) {
        let _ = Limit::Descriptors.set(Some(h.min(wanted)));
    }
    say(&format!("Cannot raise FD limit to {wanted}, limit is {}.", hard.unwrap_or(0)));
    !strict
}

/// What has to be opened before the chroot and is used behind it.
struct Settled {
    outlets: Outlets,
    ready: Option<Ready>,
}

/// Pid file, background, log sinks, chroot, rights. `None` when something failed, which has been said.
fn settle(program: &Program, args: &Args) -> Option<Settled> {
    let global = &program.global;
    // Whoever started a process in the foreground knows it without a file; a supervisor that asked for a master reads it there.
    let pidfile = args
        .pidfile
        .as_ref()
        .or(global.pidfile.as_ref())
        .filter(|_| goes_back(global, args) || args.master_worker);
    // The file is opened where the parent may still write.
    let file = pidfile.map(|path| {
        let cannot = |e| format!("Cannot create pidfile {}: {}", path.display(), say::reason(&e));
        File::create(path).map_err(cannot)
    });
    let file = say_failure(file.transpose())?;
    let background = goes_back(global, args).then(Background::enter).transpose();
    let background = say_failure(background.map_err(|e| format!("Cannot fork: {}", say::reason(&e))))?;
    if background.is_some() {
        // What the parent gathered is not the child's.
        program.tls.gather_entropy();
    }
    if let Some(mut f) = file {
        let _ = writeln!(f, "{}", std::process::id());
    }
    let ready = args.notify.then(Ready::open).flatten();
    let outlets = Outlets::open(program);
    // The C library reads the time zone at the first use, which has to be out here.
    sys::local_offset(0);
    match (confine(global), background) {
        (Ok(()), None) => {}
        (Ok(()), Some(b)) => b.started(),
        (Err(text), None) => {
            say::alert(&text);
            return None;
        }
        (Err(text), Some(b)) => {
            b.failed(&text);
            return None;
        }
    }
    Some(Settled { outlets, ready })
}

fn say_failure<T>(result: Result<T, String>) -> Option<T> {
    result.inspect_err(|text| say::alert(text)).ok()
}

/// Chroot, group, user.
fn confine(global: &Global) -> Result<(), String> {
    let fail = |what: String| move |e: std::io::Error| format!("{what}: {}.", say::reason(&e));
    if let Some(folder) = global.chroot.as_deref().filter(|f| f.as_os_str() == "auto") {
        sys::chroot_nowhere().map_err(fail(format!("Cannot chroot({})", folder.display())))?;
    } else if let Some(folder) = &global.chroot {
        sys::chroot(folder).map_err(fail(format!("Cannot chroot({})", folder.display())))?;
    }
    if let Some(gid) = global.gid {
        let _ = sys::clear_groups();
        sys::set_group(gid).map_err(fail(format!("Cannot set gid {gid}")))?;
    }
    if let Some(uid) = global.uid {
        sys::set_user(uid).map_err(fail(format!("Cannot set uid {uid}")))?;
    }
    if global.set_dumpable {
        let _ = sys::set_dumpable();
    }
    Ok(())
}

/// Starts the workers and waits for their end.
fn serve(shared: Arc<Shared>, sockets: Sockets, ready: Option<Ready>) -> ExitCode {
    let global = &shared.program.global;
    let workers: Vec<_> = (0..global.threads.max(1) as usize)
        .map(|i| WorkerSpec {
            name: format!("worker/{}", i + 1),
            affinity: global.affinity.get(i).filter(|a| !a.is_empty()).cloned(),
        })
        .collect();
    let _ = sys::block_signals();
    pattern::merge_in_background();
    // Nobody but those who accept from a socket may hold it: it is closed with the last of them.
    let Sockets { opened, cli } = sockets;
    let shares: Vec<_> = (0..workers.len()).map(|_| Mutex::new(opened.clone())).collect();
    drop(opened);
    let ended = rt::run(workers, move |index| {
        let share =
            shares.get(index).map(|s| std::mem::take(&mut *s.lock().unwrap_or_else(PoisonError::into_inner)));
        let worker = run::start_worker(index, shared.clone(), share.unwrap_or_default());
        if index == 0 {
            let peers = rt::peers();
            watchdog::start(peers.clone());
            rt::spawn(stop::obey(shared.clone(), peers));
            for (bind, listener) in &cli {
                rt::spawn(admin::cli::serve(worker.clone(), listener.clone(), bind.clone()));
            }
            if let Some(ready) = &ready {
                ready.tell();
            }
        }
    });
    if let Err(e) = ended {
        say::alert(&format!("cannot start the workers: {}", say::reason(&e)));
        return ExitCode::from(1);
    }
    stop::leave()
}
