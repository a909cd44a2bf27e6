//! Reading, checking and explaining configurations.

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use admin::product;
use base::cpus::Cpu;
use engine::worker::service::Services;
use lang::Registry;
use model::World;
use program::Program;
use program::names::Families;
use syntax::{Diagnostic, Environment, Grammar, Level, Render, Style};

use crate::args::Args;
use crate::version::Answers;
use crate::{say, services};

/// A configuration that may run.
pub struct Loaded {
    /// What it means.
    pub program: Arc<Program>,
    /// Services it may use.
    pub services: Services,
    /// Its scripts, if there are any.
    pub scripts: Option<Arc<lua::Loaded>>,
    /// Figures that its objects begin with (`stats-file`).
    pub preload: admin::preload::Preload,
    /// Figures that it shares with other processes (`shm-stats-file`).
    pub figures: admin::shm::Opened,
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
    let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    let files = match syntax::load(names.iter().map(String::as_str)) {
        Ok(files) => files,
        Err(diagnostic) => {
            let mut all = syntax::Diagnostics::new();
            all.push(diagnostic);
            say::error(&render(args, std::process::id()).text(&all, &syntax::Sources::default()));
            return Err(Unusable::Exit(1));
        }
    };
    if files.is_empty() {
        return Err(Unusable::NoFile);
    }
    let answers = Answers::of(args);
    let grammar = || Grammar { sections: syntax::SECTION_WORDS, facts: &answers };
    if let Some(how) = args.dump.filter(|_| !args.quiet) {
        say::output(&syntax::dump(files.clone(), environment(args), grammar(), how));
    }
    let mut reading = syntax::read(files, environment(args), grammar());
    let mut registry = crate::extensions::registry();
    let mut options = options(args);
    let sources = reading.sources.clone();
    let world = Arc::new(World::new(compile::workers(&reading, &options)));
    let Some(home) = visit(compile::folder(&reading)) else { return Err(Unusable::Exit(1)) };
    let scripts = lua::load(&mut reading, &mut registry, world.workers);
    options.mail_by_script = send_mail(scripts.as_deref());
    let mut outcome = compile::compile(reading, &registry, world, &options);
    let (preload, figures) = figures(&mut outcome, args);
    home.leave();
    // `quiet` is for processes that nobody watches.
    let quiet = args.quiet || outcome.quiet && !args.verbose && !args.foreground;
    say::hush(quiet);
    let render = Render {
        zero_warning: args.zero_warning || outcome.zero_warning,
        quiet,
        ..render(args, std::process::id())
    };
    let verdict = render.verdict(&outcome.diagnostics, &sources);
    let warnings = outcome.diagnostics.iter().filter(|note| note.level == Level::Warning).count();
    product::warned(u32::try_from(warnings).unwrap_or(u32::MAX));
    say::error(&verdict.errors);
    tell_idle(args);
    // `show startup-logs` is read by programs as well.
    let plain = Render { colours: false, ..render }.verdict(&outcome.diagnostics, &sources);
    product::set_startup_logs(plain.errors);
    show_lists(args, &registry);
    if !write_archive(args) {
        return Err(Unusable::Exit(1));
    }
    if verdict.status != 0 {
        return Err(Unusable::Exit(u8::try_from(verdict.status).unwrap_or(1)));
    }
    let Some(mut program) = outcome.program else { return Err(Unusable::Exit(1)) };
    if !suits_master(&program, args) {
        return Err(Unusable::Exit(1));
    }
    if args.processors {
        say::error(&bindings(&program.global));
    }
    if args.check {
        say::output(&verdict.output);
        return Err(Unusable::Exit(0));
    }
    // A worker always has its master's line to listen to.
    if !outcome.has_listener && program.global.cli.is_empty() && !args.master_worker {
        say::alert("No enabled listener found (check for 'bind' directives) ! Exiting.");
        return Err(Unusable::Exit(1));
    }
    switch_off(&mut program, args);
    tell_sockets(&mut program);
    program.adopt();
    let services = services_with(scripts.as_deref());
    Ok(Loaded { program: Arc::new(program), services, scripts, preload, figures, quiet })
}

/// The files of figures that a program names; what is wrong with them is told with the rest.
fn figures(outcome: &mut compile::Outcome, args: &Args) -> (admin::preload::Preload, admin::shm::Opened) {
    let preload = outcome.program.as_ref().map(admin::preload::read).unwrap_or_default();
    let opened = outcome.program.as_ref().map(|program| admin::shm::open(program, args.check));
    let mut say = |level, text: String| {
        outcome.diagnostics.push(Diagnostic::plain(level, text).styled(Style::Bare));
    };
    let figures = opened.transpose().unwrap_or_else(|why| {
        match why {
            admin::shm::Refused::File(text) => say(Level::Alert, text),
            admin::shm::Refused::Full(text) => {
                say(Level::Alert, text);
                say(Level::Alert, "Fatal errors found in configuration.".to_owned());
            }
        }
        None
    });
    let figures = figures.unwrap_or_default();
    for note in preload.notes.iter().chain(&figures.notes) {
        say(Level::Warning, format!("config: {note}"));
    }
    (preload, figures)
}

/// Whether a script sends the mails about servers itself.
fn send_mail(scripts: Option<&lua::Loaded>) -> bool {
    scripts.is_some_and(lua::Loaded::send_mail)
}

/// Says which words of the command line have no effect.
fn tell_idle(args: &Args) {
    for (word, why) in &args.idle {
        say::notice(&format!("'{word}' has no effect in Harrier. {why}"));
    }
    args.notices.iter().for_each(|text| say::notice(text));
}

/// All services, with those of scripts.
pub fn services_with(scripts: Option<&lua::Loaded>) -> Services {
    let mut all = services::all();
    all.extend(scripts.iter().flat_map(|scripts| scripts.services()));
    all
}

/// What is said where nothing but a new process helps.
pub fn advice() -> String {
    let text = "Nothing has changed. A new process can have it: reload without 'in-place' (SIGUSR2 to the master, or '-sf').";
    say::plain("[NOTICE]", text)
}

/// What shall take the place of a configuration that runs.
pub struct Renewed {
    /// What it means; nothing of it holds yet.
    pub program: Program,
    /// Warnings and notices.
    pub text: String,
    /// Threads that it asks for.
    pub workers: usize,
    /// Its scripts, if there are any; they do nothing by themselves yet.
    pub scripts: Option<Arc<lua::Loaded>>,
}

/// Reads the files of the command line again, from a thread of its own, to take the place of a program;
/// `None`: of one in another process.
///
/// # Errors
/// What is wrong with them, as the start would have said it.
pub fn again(args: &Args, before: Option<&Program>) -> Result<Renewed, String> {
    let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    let render = Render { colours: false, quiet: false, ..render(args, std::process::id()) };
    let files = syntax::load(names.iter().map(String::as_str)).map_err(|diagnostic| {
        let mut all = syntax::Diagnostics::new();
        all.push(diagnostic);
        render.text(&all, &syntax::Sources::default())
    })?;
    if files.is_empty() {
        return Err(say::plain("[ALERT]", "There is no configuration any more."));
    }
    let answers = Answers::of(args);
    let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &answers };
    let mut reading = syntax::read(files, environment(args), grammar);
    let (mut options, sources) = (options(args), reading.sources.clone());
    // How many there are can't change, which is told when all else is known.
    let workers = compile::workers(&reading, &options);
    if let Some(folder) = compile::folder(&reading).filter(|_| !base::outside::is_replayed())
        && let Err(e) = std::env::set_current_dir(&folder)
    {
        let (folder, why) = (folder.display(), say::reason(&e));
        let text = format!("config : couldn't set 'default-path' to '{folder}': {why}.");
        return Err(say::plain("[ALERT]", &text));
    }
    let mut registry = crate::extensions::registry();
    let scripts = lua::load(&mut reading, &mut registry, workers);
    options.mail_by_script = send_mail(scripts.as_deref());
    let outcome = match before {
        Some(before) => compile::compile_after(reading, &registry, before, &options),
        None => compile::compile(reading, &registry, Arc::new(World::new(workers)), &options),
    };
    let zero_warning = args.zero_warning || outcome.zero_warning;
    let verdict = Render { zero_warning, ..render }.verdict(&outcome.diagnostics, &sources);
    let (Some(mut program), 0) = (outcome.program, verdict.status) else { return Err(verdict.errors) };
    if !outcome.has_listener && program.global.cli.is_empty() && !args.master_worker {
        let text = "No enabled listener found (check for 'bind' directives) !";
        return Err(verdict.errors + &say::plain("[ALERT]", text));
    }
    switch_off(&mut program, args);
    tell_sockets(&mut program);
    Ok(Renewed { program, text: verdict.errors, workers, scripts })
}

/// What the command line switches off.
fn switch_off(program: &mut Program, args: &Args) {
    let disabled = &mut program.global.disabled;
    disabled.splice |= args.no_splice || args.no_fast_forward || args.no_zero_copy;
    disabled.ktls |= args.no_ktls;
    disabled.reuseport |= args.no_reuseport;
    if args.ipv4_only {
        program.global.tune.families = Families::V4;
    }
}

/// Whether a program and the command line agree about a master; if not, that has been said.
fn suits_master(program: &Program, args: &Args) -> bool {
    if args.master_worker {
        return true;
    }
    if args.master_socket.is_some() {
        say::alert("a master CLI socket was defined, but master-worker mode (-W) is not enabled.");
        return false;
    }
    if program.global.master.survives_failure && !args.check {
        say::alert(
            "'master-worker no-exit-on-failure' is only supported in master-worker mode. Use -W or -Ws in the startup script.",
        );
        return false;
    }
    true
}

/// `HAPROXY_CLI`: where the runtime API listens.
fn tell_sockets(program: &mut Program) {
    let sockets: Vec<String> = program.global.cli.iter().map(|b| admin::listen_name(&b.address)).collect();
    if !sockets.is_empty() {
        let value = sockets.join(";").into_bytes();
        program.environment.push((b"HAPROXY_CLI".as_slice().into(), value.into()));
    }
}

/// The processors of the machine, and those that the process might run on when it began: its threads are
/// bound to some of them later, and whatever they start with them.
fn machine() -> &'static [Cpu] {
    static MACHINE: OnceLock<Vec<Cpu>> = OnceLock::new();
    MACHINE.get_or_init(|| base::cpus::read(&rt::sys::allowed_cpus().unwrap_or_default()))
}

/// What the compiler has to know of the machine and the command line.
fn options(args: &Args) -> compile::Options {
    compile::Options {
        fd_limit: rt::sys::Limit::Descriptors.get().1.unwrap_or(1 << 20),
        processors: machine().iter().filter(|cpu| cpu.allowed).count().max(1),
        machine: machine().to_vec(),
        maxconn: args.maxconn,
        proxy_maxconn: args.proxy_maxconn,
        ignore_resolution: args.ignore_resolution,
        localpeer: args.localpeer.as_deref().map(Into::into),
        trust_servers: args.trust_servers,
        fork_wanted: args.fork_wanted,
        only_checked: args.check,
        mail_by_script: false,
    }
}

/// The folder that the process came from, while it is in another.
struct Home(Option<std::path::PathBuf>);

impl Home {
    fn leave(self) {
        let Some(folder) = self.0 else { return };
        if let Err(e) = std::env::set_current_dir(&folder) {
            say::warning(&format!(
                "Impossible to get back to directory '{}': {}",
                folder.display(),
                say::reason(&e)
            ));
        }
    }
}

/// Goes to where relative paths of the configuration start (`default-path`); `None` if that is nowhere, which
/// has been said.
fn visit(folder: Option<std::path::PathBuf>) -> Option<Home> {
    let Some(folder) = folder else { return Some(Home(None)) };
    let home = std::env::current_dir().ok();
    match std::env::set_current_dir(&folder) {
        Ok(()) => Some(Home(home)),
        Err(e) => {
            let (folder, why) = (folder.display(), say::reason(&e));
            say::alert(&format!("config : couldn't set 'default-path' to '{folder}': {why}."));
            None
        }
    }
}

/// What `-dK`, `-dL` and `-dM` ask for.
fn show_lists(args: &Args, registry: &Registry) {
    if let Some(classes) = &args.keywords {
        say::output(&crate::keywords::dump(classes, registry));
    }
    if args.libraries {
        let list = libraries().into_iter();
        say::output(
            &list.fold("List of loaded object files:\n".to_owned(), |out, path| format!("{out}{path}\n")),
        );
    }
}

/// `-dA`: the same as an archive; `false` if it can't be written, which has been said.
fn write_archive(args: &Args) -> bool {
    let Some(file) = &args.archive else { return true };
    if file.as_os_str().is_empty() {
        say::alert("-dA: missing output file name");
        return false;
    }
    let written = crate::archive::write(file, &libraries());
    if let Err(e) = &written {
        say::alert(&format!("-dA: cannot write '{}': {}", file.display(), say::reason(e)));
    }
    written.is_ok()
}

/// `-dc`: which processors the threads run on.
fn bindings(global: &program::Global) -> String {
    let all = rt::sys::allowed_cpus().unwrap_or_default();
    let mut out = "Thread CPU Bindings:\n  Tgrp/Thr  Tid        CPU set\n".to_owned();
    for thread in 1..=global.threads as usize {
        let set = global.affinity.get(thread - 1).filter(|set| !set.is_empty()).unwrap_or(&all);
        let names: Vec<String> = set.iter().map(usize::to_string).collect();
        let _ = writeln!(out, "  1/{thread:<7} {thread:<10} {}: {}", set.len(), names.join(","));
    }
    out
}

/// `-dL`: the program and the libraries it is linked with, as the system loaded them.
fn libraries() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<String> = Vec::new();
    for path in maps.lines().filter_map(|l| l.find('/').and_then(|at| l.get(at..))) {
        if !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Whether the configuration says that the process shall go to the background. What is wrong with it is told
/// by whoever reads it in earnest.
pub fn wants_daemon(args: &Args) -> bool {
    let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    let Ok(files) = syntax::load(names.iter().map(String::as_str)) else { return false };
    let answers = Answers::of(args);
    let grammar = Grammar { sections: syntax::SECTION_WORDS, facts: &answers };
    let reading = syntax::read(files, environment(args), grammar);
    let lines = reading.tree.with_word("global").flat_map(|(_, section)| &section.lines);
    lines.filter(|line| line.keyword() == "daemon").count() > 0
}

/// What a configuration may ask for as `$NAME`.
pub fn environment(args: &Args) -> Environment {
    let mut env = Environment::of_process();
    let files: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    env.set("HAPROXY_CFGFILES", files.join(";"));
    env.set("HAPROXY_BRANCH", product::BRANCH);
    env.set("HAPROXY_STARTUP_VERSION", product::COMPATIBLE);
    let peer = args.localpeer.clone().unwrap_or_else(rt::sys::hostname);
    env.preset("HAPROXY_LOCALPEER", peer);
    match args.master_worker {
        true => env.set("HAPROXY_MWORKER", "1"),
        false => env.unset("HAPROXY_MWORKER"),
    }
    for name in ["HAPROXY_CLI", "HAPROXY_MASTER_CLI"] {
        env.unset(name);
    }
    for (name, format) in compile::logformats::ENVIRONMENT {
        env.set(name, format);
    }
    env
}

/// How messages about a configuration look.
pub fn render(args: &Args, pid: u32) -> Render<'static> {
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
    match syntax::evaluate(&condition, &environment, &Answers::default()) {
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

/// `harrier help WORD...`.
pub fn explain_keyword(words: &str) -> ExitCode {
    let registry = crate::extensions::registry();
    let reference = crate::reference::Reference::new(&registry);
    let text = match words {
        "" => reference.overview(),
        "--markdown" => reference.manual(),
        words => reference.about(words),
    };
    let found = !text.is_empty();
    say::output(&text);
    if found {
        return ExitCode::SUCCESS;
    }
    let hint = reference.meant(words).map_or(String::new(), |word| format!(" Did you mean '{word}'?"));
    say::error(&format!("Nothing is called '{words}'.{hint} 'harrier help' says what may be asked for.\n"));
    ExitCode::from(1)
}
