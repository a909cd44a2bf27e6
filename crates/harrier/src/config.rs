//! Reading, checking and explaining configurations.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use engine::service::Services;
use lang::Registry;
use model::World;
use program::Program;
use syntax::{Environment, Grammar, Render};

use crate::args::Args;
use crate::version::{self, Answers};

/// A configuration that may run.
pub struct Loaded {
    /// What it means.
    pub program: Arc<Program>,
    /// Services it may use.
    pub services: Services,
}

/// Reads the files of the command line; on failure, the exit code (all messages are printed).
pub fn load(args: &Args) -> Result<Loaded, u8> {
    let pid = std::process::id();
    let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    let files = match syntax::load(names.iter().map(String::as_str)) {
        Ok(files) => files,
        Err(diagnostic) => {
            let mut all = syntax::Diagnostics::new();
            all.push(diagnostic);
            eprint!("{}", render(args, pid).text(&all, &syntax::Sources::default()));
            return Err(1);
        }
    };
    if let Some(key) = args.dump {
        let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &Answers };
        print!("{}", syntax::dump(files.clone(), environment(args), grammar, key));
    }
    let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &Answers };
    let reading = syntax::read(files, environment(args), grammar);
    let registry = Registry::standard();
    let options = compile::Options {
        fd_limit: rt::sys::Limit::Descriptors.get().1.unwrap_or(1 << 20),
        processors: rt::sys::allowed_cpus().map_or(1, |c| c.len()),
        maxconn: args.maxconn,
        localpeer: args.localpeer.as_deref().map(Into::into),
    };
    let sources = reading.sources.clone();
    let world = Arc::new(World::new(compile::workers(&reading, &options)));
    let outcome = compile::compile(reading, &registry, world, &options);
    let render = Render { zero_warning: args.zero_warning || outcome.zero_warning, ..render(args, pid) };
    let verdict = render.verdict(&outcome.diagnostics, &sources);
    eprint!("{}", verdict.errors);
    admin::product::set_startup_logs(verdict.errors.to_string());
    if let Some(classes) = &args.keywords {
        print!("{}", crate::keywords::dump(classes, &registry));
    }
    if verdict.status != 0 {
        return Err(u8::try_from(verdict.status).unwrap_or(1));
    }
    let Some(program) = outcome.program else { return Err(1) };
    if !outcome.has_listener && program.global.cli.is_empty() {
        eprintln!(
            "[ALERT]    ({pid}) : Configuration file has no error but will not start (no listener) => exit(2)."
        );
        return Err(2);
    }
    if args.check {
        print!("{}", verdict.output);
        return Err(0);
    }
    Ok(Loaded { program: Arc::new(program), services: services() })
}

fn services() -> Services {
    vec![("stats".into(), Arc::new(admin::stats::page::Stats))]
}

fn environment(args: &Args) -> Environment {
    let mut env = Environment::of_process();
    let files: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    env.set("HAPROXY_CFGFILES", files.join(";"));
    env.set("HAPROXY_BRANCH", version::BRANCH);
    env.set("HAPROXY_STARTUP_VERSION", version::COMPATIBLE);
    let peer = args.localpeer.clone().unwrap_or_else(rt::sys::hostname);
    env.preset("HAPROXY_LOCALPEER", peer);
    env.set("HAPROXY_MWORKER", "0");
    for (name, format) in compile::logformats::ENVIRONMENT {
        env.set(name, format);
    }
    env
}

fn render(args: &Args, pid: u32) -> Render<'static> {
    Render {
        pid,
        version: version::COMPATIBLE,
        program: "harrier",
        carets: true,
        colours: std::io::stderr().is_terminal(),
        diag: args.diagnostics,
        quiet: args.quiet,
        verbose: args.verbose,
        zero_warning: args.zero_warning,
    }
}

/// `-cc`: exit code 0 if the condition holds, 1 if not, 2 if it can't be evaluated.
pub fn evaluate(condition: &str) -> ExitCode {
    match syntax::evaluate(condition, &Environment::of_process(), &Answers) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("[ALERT]    ({}) : Failed to evaluate condition: {}", std::process::id(), e.text);
            ExitCode::from(2)
        }
    }
}

/// `harrier help KEYWORD`.
pub fn explain_keyword(word: &str) -> ExitCode {
    let text = crate::keywords::explain(word, &Registry::standard());
    let found = !text.is_empty();
    let _ = std::io::stdout().write_all(text.as_bytes());
    if found {
        return ExitCode::SUCCESS;
    }
    eprintln!("Nothing is called '{word}'.");
    ExitCode::from(1)
}
