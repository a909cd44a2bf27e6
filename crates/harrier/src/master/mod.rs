//! The master process (`-W`, `-Ws`): it starts a worker, watches it, and on a reload replaces its own program
//! and starts the next one (management guide, chapter 4).
//!
//! [`supervisor`] decides, [`watch`] does what it decides, [`cli`] answers on the master's socket. The master
//! reads of the configuration only whether it goes to the background; a worker reads it all, and tells its
//! master what concerns it.

mod again;
mod cli;
mod life;
mod reader;
mod show;
mod watch;

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use admin::product;
use engine::Shared;
use model::World;
use program::{Bind, Program};
use rt::Listener;
use rt::sys::{self, Fork};
use syntax::{Environment, Grammar, Source};

use crate::args::Args;
use crate::background::Background;
use crate::{config, say, sockets};

use again::Kept;
use supervisor::line::WorkerEnd;
use supervisor::machine::{Child, Event, Machine, Stage};

/// What a process does after it was split.
pub enum Role {
    /// It is the worker.
    Worker(Birth),
    /// It was the master, and ends.
    Ended(ExitCode),
}

/// What a worker has from its master.
pub struct Birth {
    /// The way to the master.
    pub line: WorkerEnd,
    /// The way to the worker before, which has sockets to hand over.
    pub predecessor: Option<OwnedFd>,
    /// The process left its terminal; what the worker says is heard until it serves.
    pub in_background: bool,
}

/// Becomes a master. Returns in the worker, and in the master at its end.
pub fn run(args: &mut Args, home: Option<std::path::PathBuf>) -> Role {
    let kept = Kept::take();
    say::hush(args.quiet);
    if kept.is_some() {
        // These were for the first start.
        args.finish.clear();
        args.terminate.clear();
        args.sockets_from.take_if(|path| path.as_os_str() != "/dev/null");
    }
    match prepare(args, home, kept) {
        Ok(role) => role,
        Err(text) => {
            if !text.is_empty() {
                say::alert(&text);
            }
            Role::Ended(ExitCode::FAILURE)
        }
    }
}

fn prepare(args: &Args, home: Option<std::path::PathBuf>, kept: Option<Kept>) -> Result<Role, String> {
    let again = kept.is_some();
    let program = program(args)?;
    let mut kept = match kept {
        Some(kept) => kept,
        None => Kept::new(Machine::new(rt::wall().as_secs(), product::VERSION)),
    };
    let bind = program.global.cli.first().cloned();
    let listener = match (kept.socket.take(), &bind) {
        (_, None) => None,
        (Some(fd), Some(_)) => Listener::from_fd(fd, BACKLOG).ok(),
        (None, Some(bind)) => Some(open(&program, bind)?),
    };
    let goes_back = !args.foreground && (args.daemon || !again && config::wants_daemon(args));
    let background = (goes_back && !again).then(Background::enter_attached).transpose();
    let background = background.map_err(|e| format!("Cannot fork: {}", say::reason(&e)))?;
    let pair = sys::socket_pair().map_err(|e| format!("Cannot start a worker: {}", say::reason(&e)))?;
    let (ours, theirs) = pair;
    match sys::fork() {
        Ok(Fork::Child) => {
            drop(listener);
            drop(background);
            let predecessor = kept.predecessor();
            let _ = sys::unblock_signals();
            let line = WorkerEnd::new(theirs);
            Ok(Role::Worker(Birth { line, predecessor, in_background: goes_back }))
        }
        Ok(Fork::Parent(pid)) => {
            drop(theirs);
            let child = newborn(pid, ours.as_raw_fd());
            kept.lines.insert(pid, ours);
            let parts = watch::Parts {
                kept,
                began: Event::Started(child),
                listener: listener.zip(bind),
                background,
                shared: Shared::new(Arc::new(program), rt::precise(), rt::wall()),
                notify: args.notify,
                pidfile: args.pidfile.clone(),
                home,
                in_background: goes_back && again,
                args: args.clone(),
            };
            Ok(Role::Ended(life::run(parts)))
        }
        Err(e) => {
            drop(theirs);
            let parts = watch::Parts {
                kept,
                began: Event::NotStarted(say::reason(&e)),
                listener: listener.zip(bind),
                background,
                shared: Shared::new(Arc::new(program), rt::precise(), rt::wall()),
                notify: args.notify,
                pidfile: None,
                home,
                in_background: goes_back && again,
                args: args.clone(),
            };
            Ok(Role::Ended(life::run(parts)))
        }
    }
}

/// Connections that may wait on the master's socket.
const BACKLOG: u32 = 1024;

fn newborn(pid: i32, line: i32) -> Child {
    Child {
        pid,
        stage: Stage::Loading,
        reloads: 0,
        started: rt::wall().as_secs(),
        version: product::VERSION.to_owned(),
        overdue: false,
        line,
    }
}

fn open(program: &Program, bind: &Bind) -> Result<Listener, String> {
    sockets::listen(&program.global, bind, BACKLOG).map_err(|e| {
        sockets::complain(bind, "proxy MASTER", &e);
        let name = std::env::args().next().unwrap_or_default();
        format!("[{name}.main()] Some protocols failed to start their listeners! Exiting.")
    })
}

/// The master's own program: no proxies, and where its commands are taken (`-S`).
fn program(args: &Args) -> Result<Program, String> {
    let mut text = "global\n    nbthread 1\n".to_owned();
    if let Some(socket) = &args.master_socket {
        let (address, options) = socket.split_once(',').unwrap_or((socket, ""));
        text.push_str(&format!("    stats socket {address} level admin {}\n", options.replace(',', " ")));
    }
    let answers = crate::version::Answers::of(args);
    let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &answers };
    let source = Source::new("master-socket", text.into_bytes());
    let reading = syntax::read(vec![source], Environment::new(), grammar);
    let sources = reading.sources.clone();
    let options = compile::Options::default();
    let world = Arc::new(World::new(1));
    let outcome = compile::compile(reading, &crate::extensions::registry(), world, &options);
    let Some(mut program) = outcome.program else {
        say::error(&config::render(args, std::process::id()).text(&outcome.diagnostics, &sources));
        return Err("Can't create the master's CLI.".to_owned());
    };
    let mut environment = config::environment(args);
    if let Some(bind) = program.global.cli.first() {
        environment.set("HAPROXY_MASTER_CLI", admin::listen_name(&bind.address));
    }
    environment.unset("HAPROXY_LOCALPEER");
    program.environment = environment.iter().map(|(n, v)| (n.into(), v.into())).collect();
    program.adopt();
    Ok(program)
}
