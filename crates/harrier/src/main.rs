//! The binary: arguments, assembly, signals.
//!
//! `main` reads the command line and the configuration, `start` turns a program into a running process,
//! `stop` ends it. Everything that matters for traffic is in the crates below.
#![forbid(unsafe_code)]
// They panic when nobody reads any more; `say` does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod archive;
mod args;
mod background;
mod config;
mod explain;
mod extensions;
mod handover;
mod inplace;
mod keywords;
mod master;
mod ready;
mod reference;
mod reload;
mod ring_log;
mod say;
mod services;
mod sockets;
mod start;
mod state;
mod stop;
mod version;
mod watchdog;

use std::process::ExitCode;

use admin::product;
use args::{Args, Refused, Version};
use master::{Birth, Role};
use supervisor::line::{Word, WorkerEnd};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("explain") => return explain::run(words),
        Some("reload") => return reload::run(words),
        Some("log") => return ring_log::run(words),
        _ => {}
    }
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(Refused::Usage(why)) => {
            if let Some(why) = why {
                say::alert(&why);
            }
            return show_usage();
        }
        Err(Refused::Said(why)) => {
            say::alert(&why);
            return ExitCode::from(1);
        }
    };
    if let Some(v) = args.version {
        return show_version(v);
    }
    if let Some(word) = &args.help {
        return config::explain_keyword(word);
    }
    if args.traces.as_deref() == Some("help") {
        say::output(TRACES_HELP);
        return ExitCode::SUCCESS;
    }
    if let Some(words) = &args.traces
        && let Err(why) = model::trace::command::of_command_line(&mut model::trace::all_settings(), words)
    {
        say::alert(&format!("config : {why}"));
        return ExitCode::from(1);
    }
    if let Some(condition) = &args.condition {
        return config::evaluate(condition);
    }
    run(args)
}

/// `-dt help`.
const TRACES_HELP: &str = "\
-dt shows on standard error what passes through the process.
Without an argument all sources tell of errors. An argument is a list, with commas, of
   SOURCE:LEVEL:VERBOSITY
each part of which may be empty or missing: all sources, errors, as much as is usual.
'all' stands for all sources, too; these share no verbosity but 'quiet'.
   -dt             errors, of all sources
   -dt all:user    what users do, of all sources
   -dt h1,h2:data  errors of HTTP/1, of HTTP/2 also what is transferred
";

/// The version on standard output, the usage on standard error, as scripts expect them.
fn show_usage() -> ExitCode {
    say::output(&version::short());
    say::error(&version::usage());
    ExitCode::from(1)
}

fn show_version(v: Version) -> ExitCode {
    say::output(&match v {
        Version::Plain => version::short(),
        Version::Full => version::full(),
        Version::Quiet => format!("{}\n", product::VERSION),
        Version::Short => format!("{}\n", product::COMPATIBLE),
        Version::Branch => format!("{}\n", product::BRANCH),
    });
    ExitCode::SUCCESS
}

fn run(mut args: Args) -> ExitCode {
    if args.files.is_empty() {
        return show_usage();
    }
    let home = std::env::current_dir().ok();
    if let Some(folder) = &args.folder
        && let Err(e) = std::env::set_current_dir(folder)
    {
        say::alert(&format!("Could not change to directory {} : {}", folder.display(), say::reason(&e)));
        return ExitCode::from(1);
    }
    if !args.master_worker || args.check {
        return serve(&args, None);
    }
    match master::run(&mut args, home) {
        Role::Ended(code) => code,
        Role::Worker(birth) => work(&args, birth),
    }
}

/// The life of a worker. What it says while it starts reaches the master also when it fails.
fn work(args: &Args, birth: Birth) -> ExitCode {
    say::remember();
    let line = birth.line.another();
    let code = serve(args, Some(birth));
    if let Ok(line) = line {
        let said = say::remembered();
        if !said.is_empty() {
            WorkerEnd::new(line).say(&Word::Logs(said));
        }
    }
    code
}

fn serve(args: &Args, birth: Option<Birth>) -> ExitCode {
    admin::machine::remember(version::build());
    match config::load(args) {
        Ok(loaded) => start::run(loaded, args, birth),
        Err(config::Unusable::NoFile) => show_usage(),
        Err(unusable) => unusable.code(),
    }
}
