//! Scripts of a configuration: their files are run while it is read, and what they registered is put into
//! the registry of words that rules may use.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use engine::Worker;
use engine::worker::service::{Service, Services, StreamKind, Talk, Talking};
use lang::places::{CONSTANT, Places};
use lang::registry::{OwnedAction, OwnedFilter, OwnedService, Sets};
use lang::words::Fault;
use lang::{Registry, Words};
use mlua::{Function, MultiValue, Value};
use parking_lot::Mutex;
use syntax::{Diagnostic, Diagnostics, Environment, Level, Reading, Span, Style};

use crate::action::LuaAction;
use crate::applet::LuaService;
use crate::failure::Failure;
use crate::host::Nothing;
use crate::pattern_sets::Made;
use crate::register::{Registered, Shared};
use crate::run::{Run, Step};
use crate::scripts::{Calls, Functions, Scripts};
use crate::settings::Settings;
use crate::state::State;
use crate::value::Bound;
use crate::wait::Wait;

/// All functions that scripts find.
const BOUND: &[&[Bound]] = &[
    crate::core::BOUND,
    crate::text::BOUND,
    crate::certs::BOUND,
    crate::txn::BOUND,
    crate::http::BOUND,
    crate::samples::BOUND,
    crate::pattern_sets::BOUND,
    crate::proxies::BOUND,
    crate::servers::BOUND,
    crate::tables::BOUND,
    crate::sockets::BOUND,
    crate::register::BOUND,
    crate::events::BOUND,
    crate::flowing::BOUND,
];

/// A command of scripts for the runtime API.
pub struct LuaCommand {
    /// The words that name it.
    pub words: Vec<String>,
    /// Its line of help.
    pub usage: String,
    functions: Functions,
}

/// All that a configuration has of scripts.
pub struct Loaded {
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) registered: BTreeMap<usize, Shared>,
    commands: Vec<Arc<LuaCommand>>,
    services: Services,
}

/// Loads what the `global` sections name, and registers what that registers. `None`: there is no script.
/// What is wrong is told among the diagnostics of the reading.
pub fn load(reading: &mut Reading, registry: &mut Registry, threads: usize) -> Option<Arc<Loaded>> {
    let mut settings = Settings { load: crate::state::next_id(), ..Settings::default() };
    let mut files = Vec::new();
    for (_, section) in reading.tree.with_word("global") {
        for line in &section.lines {
            let word = line.keyword().text();
            let words: Vec<&str> = line.args().iter().map(|w| w.text()).collect();
            match word {
                "lua-load" | "lua-load-per-thread" => {
                    if let Some((file, args)) = words.split_first() {
                        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
                        files.push((
                            word == "lua-load",
                            (*file).to_owned(),
                            args,
                            line.span(),
                            settings.clone(),
                        ));
                    }
                }
                _ => settings.line(word, &words),
            }
        }
    }
    let (.., span, first) = files.first()?;
    let mut said = Diagnostics::new();
    if first.normal_bools.is_none() {
        said.push(Diagnostic::warning(*span, AMBIGUOUS).styled(Style::Plain));
    }
    let mut loader = Loader {
        threads,
        states: BTreeMap::new(),
        made: Made::default(),
        environment: Arc::new(reading.environment.clone()),
    };
    for (shared, file, args, span, at) in &files {
        // Limits hold for all scripts, wherever they stand; libraries and paths as far as they were said.
        let own = Settings { paths: at.paths.clone(), libs: at.libs, debug: at.debug, ..settings.clone() };
        let own = Arc::new(Settings { normal_bools: at.normal_bools, ..own });
        // The next files run all the same, so that all that is wrong is told.
        let loaded = match *shared {
            true => loader.file(true, file, args, &own),
            false => loader.file(false, &from_root(file), args, &own),
        };
        if let Err(text) = loaded {
            said.push(wrong(*span, text));
        }
    }
    let failed = said.has_errors();
    said.extend(std::mem::take(&mut reading.diagnostics));
    reading.diagnostics = said;
    if failed {
        return None;
    }
    let mut states = BTreeMap::new();
    let mut registered = BTreeMap::new();
    for (number, (state, shared)) in loader.states {
        states.insert(number, state);
        registered.insert(number, shared);
    }
    let scripts = Arc::new(Scripts { settings: Arc::new(settings), states });
    let mut loaded = Loaded { scripts, registered, commands: Vec::new(), services: Vec::new() };
    for words in loaded.said_twice() {
        let text = format!(
            "Trying to register CLI keyword 'lua.{words}' more than once. This will become a hard error in version 2.5."
        );
        reading.diagnostics.push(Diagnostic::plain(Level::Warning, text));
    }
    loaded.announce(registry);
    Some(Arc::new(loaded))
}

/// The name under which messages know a file of `lua-load-per-thread`: from the root on, as HAProxy has it.
fn from_root(file: &str) -> Cow<'_, str> {
    match std::env::current_dir() {
        Ok(folder) if !file.starts_with('/') => format!("{}/{file}", folder.display()).into(),
        _ => file.into(),
    }
}

const AMBIGUOUS: &str = "hlua: please set \"tune.lua.bool-sample-conversion\" tunable to either \"normal\" or \"pre-3.1-bug\" explicitly to avoid ambiguities. This must be set before any \"lua-load\" or \"lua-load-per-thread\" directive. Defaulting to \"pre-3.1-bug\".";

fn wrong(span: Span, text: String) -> Diagnostic {
    Diagnostic::alert(span, text)
}

struct Loader {
    threads: usize,
    states: BTreeMap<usize, (Arc<State>, Shared)>,
    made: Made,
    environment: Arc<Environment>,
}

impl Loader {
    /// Runs a file in the shared state, or in that of each thread.
    fn file(
        &mut self,
        shared: bool,
        file: &str,
        args: &[String],
        settings: &Arc<Settings>,
    ) -> Result<(), String> {
        let text = base::outside::read(file)
            .map_err(|e| format!("error in Lua file '{file}': cannot open {file}: {}", reason(&e)))?;
        let numbers = if shared { 0..=0 } else { 1..=self.threads };
        for number in numbers {
            self.run(number, file, &text, args, settings)?;
        }
        Ok(())
    }

    /// A new state with all that scripts find in it.
    fn state(&self, number: usize, settings: &Arc<Settings>) -> mlua::Result<(Arc<State>, Shared)> {
        let state = Arc::new(State::new(number, self.threads, settings.clone(), BOUND)?);
        let registered = Shared::default();
        state.lua.set_app_data(registered.clone());
        state.lua.set_app_data(self.made.clone());
        state.lua.set_app_data(self.environment.clone());
        state.lua.set_app_data(crate::events::Waiting::default());
        state.lua.set_app_data(Arc::downgrade(&state));
        Ok((state, registered))
    }

    fn run(
        &mut self,
        number: usize,
        file: &str,
        text: &[u8],
        args: &[String],
        settings: &Arc<Settings>,
    ) -> Result<(), String> {
        let broken = |e: mlua::Error| format!("Lua runtime error: {}", crate::failure::words(&e));
        let (state, registered) = match self.states.get(&number) {
            Some(known) => known.clone(),
            None => {
                let made = self.state(number, settings).map_err(broken)?;
                self.states.insert(number, made.clone());
                made
            }
        };
        // The first line may be one for the shell.
        let skip = text.first() == Some(&b'#');
        let body = if skip {
            text.iter().position(|c| *c == b'\n').map_or(&b""[..], |at| &text[at..])
        } else {
            text
        };
        let chunk = state.lua.load(body).set_name(format!("@{file}"));
        let function = chunk.into_function().map_err(|e| match crate::failure::failure(&e) {
            Failure::Memory => "Lua out of memory error".to_owned(),
            _ => format!("error in Lua file '{file}': {}", crate::failure::words(&e)),
        })?;
        let mut values = MultiValue::new();
        for arg in args {
            values.push_back(Value::String(state.lua.create_string(arg).map_err(broken)?));
        }
        registered.lock().open = true;
        let done = at_once(&state, function, values);
        registered.lock().open = false;
        done.map_err(|failure| match failure {
            Failure::Runtime(text, _) => format!("Lua runtime error: {text}"),
            Failure::Memory => "Lua out of memory error".to_owned(),
            other => format!("Lua runtime error: {other:?}"),
        })
    }
}

/// A state of no configuration.
#[cfg(fuzzing)]
pub(crate) fn alone(settings: Settings) -> mlua::Result<Arc<State>> {
    let (states, made, environment) = Default::default();
    let loader = Loader { threads: 1, states, made, environment };
    Ok(loader.state(0, &Arc::new(settings))?.0)
}

/// What the system says, without its number.
fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Runs a function to its end: nobody else waits while the configuration is read, so waits are over at once.
pub fn at_once(state: &Arc<State>, function: Function, mut values: MultiValue) -> Result<(), Failure> {
    let mut run = Run::free(state, function)?;
    loop {
        match run.resume(&Nothing, std::mem::take(&mut values)) {
            Step::Done(_) => return Ok(()),
            Step::Failed(failure) => return Err(failure),
            Step::Waits(wait) => {
                let over = match wait {
                    Wait::Own => crate::came::Came::Nothing,
                    Wait::Yield | Wait::Sleep(_) | Wait::Wake(_) => crate::came::Came::Over,
                    _ => crate::came::Came::Wrong("not available while the configuration is read".into()),
                };
                values = over.values(&state.lua).map_err(|e| crate::failure::failure(&e))?;
            }
        }
    }
}

/// Names that scripts think of live as long as the process, each once.
fn interned(text: &str) -> &'static str {
    static ALL: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut all = ALL.lock();
    if let Some(known) = all.iter().find(|known| **known == text) {
        return known;
    }
    let text: &'static str = Box::leak(text.into());
    all.push(text);
    text
}

impl Loaded {
    /// Whether scripts send the mails about servers.
    pub fn send_mail(&self) -> bool {
        self.registered.values().any(|registered| registered.lock().mail)
    }

    /// Services for the engine.
    pub fn services(&self) -> Services {
        self.services.clone()
    }

    /// Commands for the runtime API.
    pub fn commands(&self) -> Vec<Arc<dyn Talk>> {
        let all = &self.commands;
        let bound =
            all.iter().map(|command| Spoken { scripts: self.scripts.clone(), command: command.clone() });
        bound.map(|spoken| Arc::new(spoken) as Arc<dyn Talk>).collect()
    }

    /// The words of commands that one state has more than once.
    fn said_twice(&self) -> Vec<String> {
        let mut twice = Vec::new();
        for registered in self.registered.values() {
            let mut known: Vec<String> = Vec::new();
            for (words, ..) in &registered.lock().commands {
                let words = words.join(" ");
                let found = if known.contains(&words) { &mut twice } else { &mut known };
                found.push(words);
            }
        }
        twice
    }

    /// Puts what was registered where rules find it.
    fn announce(&mut self, registry: &mut Registry) {
        type ByName<K, F = Function> = BTreeMap<String, (K, Vec<(usize, F)>)>;
        let mut filters: ByName<(), (mlua::Table, Function)> = BTreeMap::new();
        // One name may be several actions, each for its own rule sets.
        let mut actions: BTreeMap<(String, Sets, usize), Vec<(usize, Function)>> = BTreeMap::new();
        let mut fetches: ByName<()> = BTreeMap::new();
        let mut converters: ByName<()> = BTreeMap::new();
        let mut services: ByName<StreamKind> = BTreeMap::new();
        let mut commands: ByName<(Vec<String>, String)> = BTreeMap::new();
        for (number, registered) in &self.registered {
            let all: &Registered = &registered.lock();
            for (name, sets, count, f) in &all.actions {
                let entry = actions.entry((name.clone(), *sets, *count)).or_default();
                // What a state registers twice is what it registered first.
                if entry.iter().all(|(known, _)| known != number) {
                    entry.push((*number, f.clone()));
                }
            }
            for (name, f) in &all.fetches {
                fetches.entry(name.clone()).or_default().1.push((*number, f.clone()));
            }
            for (name, f) in &all.converters {
                converters.entry(name.clone()).or_default().1.push((*number, f.clone()));
            }
            for (name, kind, f) in &all.services {
                services.entry(name.clone()).or_insert((*kind, Vec::new())).1.push((*number, f.clone()));
            }
            for (name, class, f) in &all.filters {
                let entry = filters.entry(name.clone()).or_default();
                entry.1.push((*number, (class.clone(), f.clone())));
            }
            for (words, usage, f) in &all.commands {
                let key = words.join(" ");
                let entry = commands.entry(key).or_insert(((words.clone(), usage.clone()), Vec::new()));
                // The line of the first stays, and the last one runs.
                entry.1.retain(|(known, _)| known != number);
                entry.1.push((*number, f.clone()));
            }
        }
        for ((name, sets, count), functions) in actions {
            self.action(registry, &name, sets, count, self.scripts.keep(&functions));
        }
        for (name, ((), functions)) in fetches {
            let (scripts, calls, own) = (self.scripts.clone(), self.scripts.keep(&functions), name.clone());
            registry.add_fetch(
                &format!("lua.{name}"),
                places(),
                Box::new(move |env, args| crate::action::fetch(&scripts, &calls, &own, env, args)),
            );
        }
        for (name, ((), functions)) in converters {
            let (scripts, calls, own) = (self.scripts.clone(), self.scripts.keep(&functions), name.clone());
            registry.add_converter(
                &format!("lua.{name}"),
                Box::new(move |env, value, args| {
                    crate::action::convert(&scripts, &calls, &own, env, value, args)
                }),
            );
        }
        for (name, (kind, functions)) in services {
            self.service(registry, &name, kind, Arc::new(functions));
        }
        for (name, ((), classes)) in filters {
            let (scripts, own) = (self.scripts.clone(), Arc::<str>::from(name.as_str()));
            registry.add_filter(OwnedFilter {
                name: format!("lua.{name}").into(),
                tag: "HLUA".into(),
                parse: Box::new(move |words, place, _, _| {
                    crate::filter::parse(&scripts, &classes, &own, words, place)
                }),
            });
        }
        for (_, ((words, usage), functions)) in commands {
            let functions = Arc::new(functions);
            self.commands.push(Arc::new(LuaCommand { words, usage, functions }));
        }
    }

    fn action(&self, registry: &mut Registry, name: &str, sets: Sets, count: usize, calls: Calls) {
        let (scripts, own): (_, Arc<str>) = (self.scripts.clone(), name.into());
        registry.add_action(OwnedAction {
            name: format!("lua.{name}").into(),
            sets,
            parse: Box::new(move |words: &mut Words<'_>, _, _, _| {
                let mut taken: Vec<Box<[u8]>> = Vec::new();
                for _ in 0..count {
                    let over = words.peek().is_none();
                    if over {
                        return Err(Fault::new(format!("expects {count} arguments")));
                    }
                    taken.extend(words.take().map(Into::into));
                }
                Ok(Box::new(LuaAction {
                    scripts: scripts.clone(),
                    calls: calls.clone(),
                    name: own.clone(),
                    words: taken,
                }))
            }),
        });
    }

    fn service(&mut self, registry: &mut Registry, name: &str, kind: StreamKind, functions: Functions) {
        let full = format!("lua.{name}");
        let (sets, elsewhere) = match kind {
            StreamKind::Http => (Sets::HTTP_REQ, "HTTP services only available on 'http-request' rulesets"),
            StreamKind::Tcp => {
                (Sets::TCP_REQ, "TCP services only available on 'tcp-request content' rulesets")
            }
        };
        registry.add_service(OwnedService { name: full.as_str().into(), sets, elsewhere: elsewhere.into() });
        let shown = interned(&format!("<{full}>"));
        let service: Arc<dyn Service> =
            Arc::new(LuaService { scripts: self.scripts.clone(), shown, kind, functions });
        self.services.push((full.into(), service));
    }
}

/// Where fetches of scripts may stand.
fn places() -> Places {
    CONSTANT
}

/// A command with the scripts that it is of.
struct Spoken {
    scripts: Arc<Scripts>,
    command: Arc<LuaCommand>,
}

impl Talk for Spoken {
    fn words(&self) -> &[String] {
        &self.command.words
    }

    fn usage(&self) -> &str {
        &self.command.usage
    }

    fn talk(&self, worker: Rc<Worker>, words: Vec<String>, socket: rt::Socket, input: Vec<u8>) -> Talking {
        let (scripts, command) = (self.scripts.clone(), self.command.clone());
        Box::pin(async move {
            let mut io = crate::io::Io::of_tcp(socket).with_input(input);
            command.run(&scripts, &worker, &words, &mut io).await;
            io.into_socket()
        })
    }
}

impl LuaCommand {
    /// Runs it for a client of the runtime API.
    pub async fn run(
        &self,
        scripts: &Scripts,
        worker: &Rc<Worker>,
        words: &[String],
        io: &mut crate::io::Io,
    ) {
        let Some((state, function)) = scripts.function(&self.functions, worker.index) else { return };
        let what = format!("Lua cli '{}'", self.words.join(" "));
        crate::applet::command(&state, function, &what, words, worker, io).await;
    }
}
