//! From a program to a running process, in the order that works: limits, sockets, pid file, background, log
//! sinks, chroot, rights, threads.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Barrier, Mutex, PoisonError};

use engine::run;
use engine::sinks::Outlets;
use engine::{Shared, Worker};
use program::{Global, Program};
use rt::sys::{self, Capability, Limit, Signal};
use rt::{Listener, WorkerSpec};

use crate::args::Args;
use crate::background::Background;
use crate::config::Loaded;
use crate::inplace::Again;
use crate::master::Birth;
use crate::ready::Ready;
use crate::sockets::{self, Sockets};
use crate::{handover, say, stop, watchdog};
use supervisor::line::{Word, WorkerEnd};
use supervisor::machine::{MAX_RELOADS, Settings};

/// Runs a program until it is stopped.
pub fn run(loaded: Loaded, args: &Args, mut birth: Option<Birth>) -> ExitCode {
    let program = loaded.program;
    args.remarks.iter().for_each(|text| say::warning(text));
    if !set_limits(&program, args) {
        return ExitCode::FAILURE;
    }
    // The last one, so that all others are there.
    if program.global.prealloc_fd
        && let Some(last) = Limit::Descriptors.get().0.and_then(|n| i32::try_from(n).ok())
    {
        let _ = sys::fill_table(last - 1);
    }
    if let Some(nice) = program.global.nice
        && let Err(e) = sys::set_priority(nice)
    {
        say::warning(&format!("couldn't set the runtime nice value to {nice}: {}", say::reason(&e)));
    }
    rt::set_bufsize(program.global.tune.bufsize);
    rt::set_events_at_once(program.global.tune.maxpollevents as usize);
    rt::set_sleepless(program.global.busy_polling);
    rt::set_pipe_size(program.global.tune.pipesize.unwrap_or(0));
    rt::set_pipe_limit(program.global.maxpipes as usize);
    rt::allow_kernel_tls(!program.global.disabled.ktls);
    if program.tls.wants_kernel() {
        // To load its module the kernel wants privileges that are given up soon.
        rt::kernel_tls();
    }
    let goes_back = birth.is_none() && wants_back(&program.global, args);
    if !goes_back {
        program.tls.gather_entropy();
    }
    let mut shared = Shared::new(program.clone(), rt::precise(), rt::wall());
    let unheard = goes_back || birth.as_ref().is_some_and(|b| b.in_background);
    shared.console = !loaded.quiet && !unheard;
    shared.services = loaded.services;
    let scripts = loaded.scripts;
    shared.commands = scripts.iter().flat_map(|scripts| scripts.commands()).collect();
    lua::objects::set_command(admin::cli::run_at_once);
    let line = birth.as_ref().and_then(|birth| birth.line.another().ok()).map(WorkerEnd::new);
    shared.reloader = Some(Arc::new(Again::new(args, line)));
    loaded.preload.begin(&shared);
    if let Err(text) = loaded.figures.begin(&shared) {
        say::alert(&text);
        return ExitCode::from(1);
    }
    if !open_namespaces(&program) {
        return ExitCode::from(1);
    }
    let predecessor = birth.as_mut().and_then(|b| b.predecessor.take());
    let takes_over = predecessor.is_some() || !args.finish.is_empty() || !args.terminate.is_empty();
    let Ok(inherited) = handover::ask(args.sockets_from.as_deref(), predecessor) else {
        return ExitCode::from(1);
    };
    let Some(sockets) = sockets::open(&shared, args, inherited) else { return ExitCode::from(1) };
    shared.exposed = sockets.exposed(&program);
    sockets::signal(&args.finish, Signal::Usr1);
    sockets::signal(&args.terminate, Signal::Term);
    let Some(settled) = settle(&program, args, goes_back, birth.is_some()) else { return ExitCode::from(1) };
    shared.outlets = settled.outlets;
    let herald = match birth {
        Some(birth) => Some(Herald::Master(birth, settings(&program.global))),
        None => settled.ready.map(Herald::Manager),
    };
    let mut traces = program.traces.clone();
    if let Some(words) = &args.traces {
        // The words were looked at before the configuration was read.
        let _ = model::trace::command::of_command_line(&mut traces, words);
    }
    engine::sinks::traced::apply(&shared, &traces);
    if args.debug {
        engine::debug::begin();
    }
    serve(Arc::new(shared), sockets, herald, takes_over, scripts)
}

/// Opens the network namespaces that the program names; `false`: one can't be had, which was said.
fn open_namespaces(program: &Program) -> bool {
    for namespace in &program.namespaces {
        if let Err(e) = rt::open_namespace(*namespace) {
            say::alert(&format!("Cannot open namespace '{}': {}.", namespace.name(), say::reason(&e)));
            return false;
        }
    }
    true
}

/// Whether the process shall leave its terminal.
fn wants_back(global: &Global, args: &Args) -> bool {
    (args.daemon || global.daemon) && !args.foreground
}

/// Who is told that the process serves.
enum Herald {
    /// The service manager.
    Manager(Ready),
    /// The master, with what else it has to know.
    Master(Birth, Word),
}

/// What a configuration says to the master.
fn settings(global: &Global) -> Word {
    let settings = Settings {
        max_reloads: global.master.max_reloads.unwrap_or(MAX_RELOADS),
        survives_failure: global.master.survives_failure,
        in_place: global.master.in_place,
    };
    Word::Settings(settings, global.pidfile.as_ref().map(|p| p.display().to_string()))
}

/// Memory as `-m` says; descriptors as many as the limits on connections need. `false` when the process has
/// to end because of `strict-limits`.
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
    // Long bodies go through pipes unasked: not at the cost of connections, where more may be open.
    let piped = wanted.saturating_add(program.global.pipe_ends);
    let piped = hard.map_or(piped, |hard| hard.min(piped));
    if soft.is_some_and(|soft| soft < piped) && piped >= wanted && Limit::Descriptors.set(Some(piped)).is_ok()
    {
        return true;
    }
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
fn settle(program: &Program, args: &Args, goes_back: bool, has_master: bool) -> Option<Settled> {
    let global = &program.global;
    // Whoever started a process in the foreground knows it without a file; a master writes its own.
    let pidfile = args.pidfile.as_ref().or(global.pidfile.as_ref()).filter(|_| goes_back);
    // The file is opened where the parent may still write.
    let file = pidfile.map(|path| {
        let cannot = |e| format!("Cannot create pidfile {}: {}", path.display(), say::reason(&e));
        File::create(path).map_err(cannot)
    });
    let file = say_failure(file.transpose())?;
    let background = goes_back.then(Background::enter).transpose();
    let background = say_failure(background.map_err(|e| format!("Cannot fork: {}", say::reason(&e))))?;
    if background.is_some() {
        // What the parent gathered is not the child's.
        program.tls.gather_entropy();
    }
    if let Some(mut f) = file {
        let _ = writeln!(f, "{}", std::process::id());
    }
    let ready = (!has_master).then(Ready::open).flatten();
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
    if !global.setuid_wanted {
        let _ = sys::forbid_new_rights();
    }
    if let Some(uid) = global.uid {
        change_user(uid, &global.capabilities)?;
    }
    if global.set_dumpable {
        let _ = sys::set_dumpable();
    }
    Ok(())
}

/// Changes the user, and keeps the capabilities that `setcap` names. Root has them all.
fn change_user(uid: u32, capabilities: &[Box<str>]) -> Result<(), String> {
    let fail = |what: String| move |e: std::io::Error| format!("{what}: {}.", say::reason(&e));
    let kept = (uid != 0).then_some(capabilities).filter(|list| !list.is_empty());
    if kept.is_some() {
        sys::keep_capabilities().map_err(fail("Cannot keep capabilities".into()))?;
    }
    sys::set_user(uid).map_err(fail(format!("Cannot set uid {uid}")))?;
    let Some(kept) = kept else { return Ok(()) };
    let kept: Vec<Capability> = kept.iter().filter_map(|name| Capability::from_name(name)).collect();
    sys::set_capabilities(&kept).map_err(fail("Cannot set capabilities".into()))
}

/// Starts the workers and waits for their end.
fn serve(
    shared: Arc<Shared>,
    sockets: Sockets,
    herald: Option<Herald>,
    takes_over: bool,
    scripts: Option<Arc<lua::Loaded>>,
) -> ExitCode {
    let global = &shared.program.global;
    let workers: Vec<_> = (0..global.threads.max(1) as usize)
        .map(|i| WorkerSpec {
            name: format!("worker/{}", i + 1),
            affinity: global.affinity.get(i).filter(|a| !a.is_empty()).cloned(),
        })
        .collect();
    let _ = sys::block_signals();
    pattern::merge_in_background();
    // Reading the configuration took more than it left behind.
    if !global.disabled.trimming {
        sys::trim_memory();
    }
    // Nobody but those who accept from a socket may hold it: it is closed with the last of them.
    let Sockets { opened, cli, peers, forwards } = sockets;
    let peers: Vec<_> = peers.into_iter().map(|listener| Mutex::new(Some(listener))).collect();
    let shares: Vec<_> = (0..workers.len()).map(|_| Mutex::new(opened.clone())).collect();
    drop(opened);
    let doors: Vec<_> = (0..workers.len()).map(|_| Mutex::new(forwards.clone())).collect();
    drop(forwards);
    let cli = Mutex::new(cli);
    let herald = Mutex::new(herald);
    // Nobody is served before all functions that scripts run at the start are through, whosever they are.
    let scripted = Barrier::new(workers.len());
    let ended = rt::run(workers, move |index| {
        let share =
            shares.get(index).map(|s| std::mem::take(&mut *s.lock().unwrap_or_else(PoisonError::into_inner)));
        let worker = run::start_worker(index, shared.clone(), share.unwrap_or_default());
        let doors =
            doors.get(index).map(|d| std::mem::take(&mut *d.lock().unwrap_or_else(PoisonError::into_inner)));
        engine::forward::start(&worker, doors.unwrap_or_default());
        let listener = |section: usize| {
            let kept = peers.get(section)?;
            kept.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        peers::start(&worker, listener, takes_over);
        if let Some(scripts) = &scripts {
            if let Err(text) = lua::succeed(Some(scripts), &worker) {
                // As HAProxy does, the process ends where a script finds its surroundings wrong.
                say::alert(&text);
                std::process::exit(1);
            }
            scripted.wait();
        }
        if index == 0 {
            let peers = rt::peers();
            watchdog::start(peers.clone(), shared.program.global.warn_blocked_after);
            rt::spawn(stop::obey(shared.clone(), peers));
            rt::spawn(admin::shm::keep());
            let cli = std::mem::take(&mut *cli.lock().unwrap_or_else(PoisonError::into_inner));
            for (index, (_, listener)) in cli.into_iter().enumerate() {
                rt::spawn(admin::cli::serve(worker.clone(), listener, index));
            }
            match herald.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(Herald::Manager(ready)) => ready.tell(),
                Some(Herald::Master(birth, settings)) => report(&worker, birth, &settings),
                None => {}
            }
        }
    });
    if let Err(e) = ended {
        say::alert(&format!("cannot start the workers: {}", say::reason(&e)));
        return ExitCode::from(1);
    }
    stop::leave()
}

/// Tells the master that this process serves, and takes commands from it.
fn report(worker: &Rc<Worker>, birth: Birth, settings: &Word) {
    let Birth { line, in_background, .. } = birth;
    line.say(&Word::Logs(say::remembered()));
    line.say(settings);
    if in_background {
        let _ = sys::silence_standard_streams();
    }
    line.say(&Word::Ready);
    let line = line.into_socket();
    let number = line.as_raw_fd();
    if let Ok(listener) = Listener::from_sockpair(line) {
        let peers = rt::peers();
        let _ = worker.shared.program.world.process.master_line.set(number);
        rt::spawn(admin::cli::serve_master(worker.clone(), listener, move || stop::orphaned(&peers)));
    }
}
