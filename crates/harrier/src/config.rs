//! Reading, checking and explaining configurations.

use std::process::ExitCode;
use std::sync::Arc;

use admin::product;
use engine::service::Services;
use lang::Registry;
use model::World;
use program::Program;
use syntax::{Environment, Grammar, Render};

use crate::args::Args;
use crate::say;
use crate::version::Answers;

/// A configuration that may run.
pub struct Loaded {
    /// What it means.
    pub program: Arc<Program>,
    /// Services it may use.
    pub services: Services,
    /// `-q` or `quiet`: the start says nothing.
    pub quiet: bool,
}

/// Why nothing runs; all messages are printed.
pub enum Unusable {
    /// There was nothing to read.
    NoFile,
    /// The process ends with this code.
    Exit(u8),
}

impl Unusable {
    /// The exit code.
    pub fn code(self) -> ExitCode {
        match self {
            Unusable::NoFile => ExitCode::from(1),
            Unusable::Exit(code) => ExitCode::from(code),
        }
    }
}

/// Reads the files of the command line.
pub fn load(args: &Args) -> Result<Loaded, Unusable> {
    let pid = std::process::id();
    let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    let files = match syntax::load(names.iter().map(String::as_str)) {
        Ok(files) => files,
        Err(diagnostic) => {
            let mut all = syntax::Diagnostics::new();
            all.push(diagnostic);
            say::error(&render(args, pid).text(&all, &syntax::Sources::default()));
            return Err(Unusable::Exit(1));
        }
    };
    if files.is_empty() {
        return Err(Unusable::NoFile);
    }
    if let Some(key) = args.dump {
        let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &Answers };
        say::output(&syntax::dump(files.clone(), environment(args), grammar, key));
    }
    let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &Answers };
    let reading = syntax::read(files, environment(args), grammar);
    let registry = Registry::standard();
    let options = compile::Options {
        fd_limit: rt::sys::Limit::Descriptors.get().1.unwrap_or(1 << 20),
        processors: rt::sys::allowed_cpus().map_or(1, |c| c.len()),
        maxconn: args.maxconn,
        proxy_maxconn: args.proxy_maxconn,
        ignore_resolution: args.ignore_resolution,
        localpeer: args.localpeer.as_deref().map(Into::into),
    };
    let sources = reading.sources.clone();
    let world = Arc::new(World::new(compile::workers(&reading, &options)));
    let outcome = compile::compile(reading, &registry, world, &options);
    // `quiet` is for processes that nobody watches.
    let quiet = args.quiet || outcome.quiet && !args.verbose && !args.foreground;
    say::hush(quiet);
    let zero_warning = args.zero_warning || outcome.zero_warning;
    let render = Render { zero_warning, quiet, ..render(args, pid) };
    let verdict = render.verdict(&outcome.diagnostics, &sources);
    say::error(&verdict.errors);
    // `show startup-logs` is read by programs as well.
    let plain = Render { colours: false, ..render }.verdict(&outcome.diagnostics, &sources);
    product::set_startup_logs(plain.errors);
    show_lists(args, &registry);
    if verdict.status != 0 {
        return Err(Unusable::Exit(u8::try_from(verdict.status).unwrap_or(1)));
    }
    let Some(mut program) = outcome.program else { return Err(Unusable::Exit(1)) };
    if args.master_socket.is_some() && !args.master_worker {
        say::alert("a master CLI socket was defined, but master-worker mode (-W) is not enabled.");
        return Err(Unusable::Exit(1));
    }
    if args.check {
        say::output(&verdict.output);
        return Err(Unusable::Exit(0));
    }
    if !outcome.has_listener && program.global.cli.is_empty() {
        say::alert("No enabled listener found (check for 'bind' directives) ! Exiting.");
        return Err(Unusable::Exit(1));
    }
    program.global.disabled.splice |= args.no_splice;
    program.global.disabled.ktls |= args.no_ktls;
    program.global.disabled.reuseport |= args.no_reuseport;
    Ok(Loaded { program: Arc::new(program), services: services(), quiet })
}

/// What `-dK`, `-dL` and `-dM` ask for.
fn show_lists(args: &Args, registry: &Registry) {
    if let Some(classes) = &args.keywords {
        say::output(&crate::keywords::dump(classes, registry));
    }
    if args.memory_debugging.as_deref().is_some_and(|o| o.split(',').any(|o| o == "help")) {
        say::output("-dM has no effect in Harrier: memory is never read before it is written.\n");
    }
    if args.libraries {
        say::output(&libraries());
    }
}

/// `-dL`: the program and the libraries it is linked with, as the system loaded them.
fn libraries() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<&str> = Vec::new();
    for path in maps.lines().filter_map(|l| l.find('/').and_then(|at| l.get(at..))) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths.iter().fold("List of loaded object files:\n".to_owned(), |out, path| format!("{out}{path}\n"))
}

fn services() -> Services {
    vec![("stats".into(), Arc::new(admin::stats::page::Stats))]
}

fn environment(args: &Args) -> Environment {
    let mut env = Environment::of_process();
    let files: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    env.set("HAPROXY_CFGFILES", files.join(";"));
    env.set("HAPROXY_BRANCH", product::BRANCH);
    env.set("HAPROXY_STARTUP_VERSION", product::COMPATIBLE);
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
        version: product::COMPATIBLE,
        program: "harrier",
        carets: true,
        colours: say::colours(),
        diag: args.diagnostics,
        quiet: args.quiet,
        verbose: args.verbose,
        zero_warning: args.zero_warning,
    }
}

/// `-cc`: exit code 0 if the condition holds, 1 if not, 2 if it can't be evaluated.
pub fn evaluate(condition: &str) -> ExitCode {
    let environment = Environment::of_process();
    let condition = match syntax::unquote(condition, &environment) {
        Ok(words) => words,
        Err(syntax::FaultKind::Quote) => return wrong("Syntax Error in condition: Unmatched quote."),
        Err(_) => return wrong("Syntax Error in condition: wrong escape sequence or variable."),
    };
    match syntax::evaluate(&condition, &environment, &Answers) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => wrong(&format!("Failed to evaluate condition: {}", e.text)),
    }
}

/// A condition that can't be evaluated.
fn wrong(text: &str) -> ExitCode {
    say::alert(text);
    ExitCode::from(2)
}

/// `harrier help KEYWORD`.
pub fn explain_keyword(word: &str) -> ExitCode {
    let registry = Registry::standard();
    let text = match word {
        "--markdown" => crate::reference::manual(&registry),
        word => crate::reference::about(word, &registry),
    };
    let found = !text.is_empty();
    say::output(&text);
    if found {
        return ExitCode::SUCCESS;
    }
    say::error(&format!("Nothing is called '{word}'.\n"));
    ExitCode::from(1)
}
