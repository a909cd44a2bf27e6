//! The binary: arguments, assembly, signals.
//!
//! `main` reads the command line and the configuration, `start` turns a program into a running process,
//! `stop` ends it. Everything that matters for traffic is in the crates below.
#![forbid(unsafe_code)]

mod args;
mod config;
mod explain;
mod keywords;
mod start;
mod stop;
mod version;
mod watchdog;

use std::io::Write;
use std::process::ExitCode;

use args::{Args, Usage, Version};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().is_some_and(|w| w == "explain") {
        return explain::run(words);
    }
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(Usage(why)) => {
            if let Some(why) = why {
                eprintln!("{why}");
            }
            eprint!("{}", version::usage());
            return ExitCode::from(1);
        }
    };
    if let Some(v) = args.version {
        return show_version(v);
    }
    if let Some(word) = &args.help {
        return config::explain_keyword(word);
    }
    if let Some(condition) = &args.condition {
        return config::evaluate(condition);
    }
    run(args)
}

fn show_version(v: Version) -> ExitCode {
    match v {
        Version::Plain => println!("{}", version::line()),
        Version::Full => print!("{}", version::full()),
        Version::Quiet => println!("{}-harrier{}", version::COMPATIBLE, version::OURS),
        Version::Short => println!("{}", version::COMPATIBLE),
        Version::Branch => println!("{}", version::BRANCH),
    }
    ExitCode::SUCCESS
}

fn run(args: Args) -> ExitCode {
    if args.files.is_empty() {
        eprint!("{}", version::usage());
        return ExitCode::from(1);
    }
    if let Some(folder) = &args.folder
        && let Err(e) = std::env::set_current_dir(folder)
    {
        eprintln!("Could not change to directory {} : {e}", folder.display());
        return ExitCode::from(1);
    }
    match config::load(&args) {
        Ok(loaded) => start::run(loaded, &args),
        Err(code) => {
            let _ = std::io::stdout().flush();
            ExitCode::from(code)
        }
    }
}
