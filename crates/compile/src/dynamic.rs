//! Servers that are added and variables that are set while a configuration runs (`add server`, `set var`;
//! management manual, 9.3).
//!
//! The words are those of a `server` line, so they are compiled as one: in a small configuration of their
//! own, with a world of their own, from which the server is then taken. What refers to the rest of the
//! running configuration (`track`, the id, the check of the backend) is put right afterwards.

use std::collections::HashMap;
use std::sync::Arc;

use base::fleet::Held;
use lang::Registry;
use model::World;
use program::check::Ruleset;
use program::proxy::AddedBackend;
use program::server::{Server, Settings};
use program::{Mode, Program, Proxy};
use syntax::{Environment, Grammar, Level, PlainBuild, SECTION_WORDS, Source};

use crate::server::keywords;
use crate::{Options, compile_with};

/// The words that a server added at run time may have and that this build knows, in order.
pub fn words() -> Vec<&'static str> {
    let mut words: Vec<_> =
        keywords::all().filter(|k| k.dynamic && k.set.is_some()).map(|k| k.name).collect();
    words.sort_unstable();
    words
}

/// Compiles a server for the backend `proxy` of a running program. `words` begins with its address. Gives the
/// server, which is in maintenance and whose checks are off, and what there is to say about it.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn server(
    program: &Program,
    proxy: u32,
    name: &str,
    words: &[String],
) -> Result<(Server, Vec<String>), String> {
    let backend = &*program.proxy(proxy);
    let Asked { line, track, id, healthcheck, settings } = read(program, backend, name, words)?;
    let checks_say_proxy = line.iter().any(|w| w == "check-send-proxy");
    let id = id.unwrap_or_else(|| free_id(backend));
    let mut text = configuration(backend, name, id, &line);
    if program.tls.is_experimental() {
        text.insert_str(0, "global\n expose-experimental-directives\n");
    }
    let (mut server, notes) = compiled(&text, program, &backend.name, name)?;
    if let Some(holder) = server.state.guid.as_deref().and_then(|guid| holder(program, guid)) {
        return Err(format!("'guid': duplicate entry with {holder}."));
    }
    let state = line.iter().rposition(|w| w == "init-state").and_then(|at| line.get(at + 1));
    if track.is_some() && state.is_some_and(|state| state != "none") {
        return Err("unable to set init-state and tracking at the same time!".into());
    }
    server.forced_id = words.iter().any(|w| w == "id");
    server.track = track;
    if let Some(check) = &mut server.check {
        // Unlike those of the configuration their checks speak no TLS and send no PROXY header unasked.
        check.tls = words.iter().any(|w| w == "check-ssl");
        check.send_proxy = checks_say_proxy;
        check.ruleset = healthcheck.unwrap_or_else(|| backend.check.clone());
    }
    server.settings = settings.into();
    server.added = Some(words.into());
    server.state.check_enabled.store(false, std::sync::atomic::Ordering::Relaxed);
    server.state.agent_enabled.store(false, std::sync::atomic::Ordering::Relaxed);
    Ok((server, notes))
}

/// What the words ask for: those that can be compiled apart, and those that can't.
struct Asked {
    line: Vec<String>,
    track: Option<(u32, u32)>,
    id: Option<u32>,
    healthcheck: Option<Arc<Ruleset>>,
    /// All that others may take from it.
    settings: Vec<Box<str>>,
}

fn read(program: &Program, backend: &Proxy, name: &str, words: &[String]) -> Result<Asked, String> {
    let Some((address, mut words)) = words.split_first() else {
        return Err("'server' expects <name> and <addr>[:<port>] as arguments.".into());
    };
    let mut asked =
        Asked { line: vec![address.clone()], track: None, id: None, healthcheck: None, settings: Vec::new() };
    if words.first().is_some_and(|w| w == "from") {
        let origin = words.get(1).ok_or("from: missing value.")?;
        let taken: Vec<String> = origin_of(program, backend, origin)?.iter().map(|w| w.to_string()).collect();
        asked.take(program, backend, name, &taken, true)?;
        words = &words[2..];
    }
    asked.take(program, backend, name, words, false)?;
    Ok(asked)
}

/// The words that a server takes from another one or from a `default-server` line.
fn origin_of(program: &Program, backend: &Proxy, origin: &str) -> Result<Settings, String> {
    let found = |name: &str| match name {
        "" => Some(Held::alone(backend)),
        name => program.present().find(|p| p.is_backend && *p.name == *name),
    };
    if origin == "none" {
        return Ok(Settings::default());
    }
    let kept = |p: &Proxy, name: Option<&str>| {
        let mut all = p.default_servers.iter();
        all.find(|(known, _)| known.as_deref() == name).map(|(_, settings)| settings.clone())
    };
    if let Some(name) = origin.strip_prefix("be:") {
        let p = found(name).ok_or_else(|| format!("from: unknown backend instance '{name}'."))?;
        return Ok(kept(&p, None).unwrap_or_default());
    }
    let path = origin.strip_prefix("srv:");
    let path = path.ok_or_else(|| format!("invalid '{origin}' value for 'from' keyword."))?;
    let (name, server) = path.split_once('/').unwrap_or(("", path));
    if server.is_empty() {
        return Err("from: require <backend>/<server>.".into());
    }
    let p = found(name).ok_or_else(|| format!("from: unknown backend '{name}'."))?;
    let model = p.present().find(|s| *s.name == *server).map(|s| s.settings.clone());
    let model = model.or_else(|| kept(&p, Some(server)));
    model.ok_or_else(|| format!("from: unknown server '{server}' in backend '{}'.", p.name))
}

impl Asked {
    /// Adds words. Those that were taken from elsewhere were allowed there, and leave out what only the
    /// configuration can do.
    fn take(
        &mut self,
        program: &Program,
        backend: &Proxy,
        name: &str,
        words: &[String],
        taken: bool,
    ) -> Result<(), String> {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let (plain, values) = split(word, &mut rest, taken)?;
            if taken && (plain == "init-addr" || plain == "track" || plain.starts_with("resolve")) {
                continue;
            }
            match (plain, values.first()) {
                ("track", Some(target)) => self.track = Some(tracked(program, backend, target)?),
                ("id", Some(id)) => self.id = Some(own_id(backend, id)?),
                ("healthcheck", Some(section)) => {
                    let found = program.healthchecks.iter().find(|(known, _)| **known == **section);
                    let (_, rules) = found.ok_or_else(|| {
                        format!("parsing [(null):0]: healthcheck section '*healthcheck-{section}' not found for server '{name}'.")
                    })?;
                    self.healthcheck = Some(rules.clone());
                }
                _ => {
                    self.line.push(word.clone());
                    self.line.extend(values.iter().map(|w| w.to_string()));
                }
            }
            if !matches!(plain, "track" | "id" | "guid") {
                self.settings.push(word.as_str().into());
                self.settings.extend(values.into_iter().map(|w| w.as_str().into()));
            }
        }
        Ok(())
    }
}

/// A keyword with the words that belong to it.
fn split<'w>(
    word: &'w str,
    rest: &mut std::slice::Iter<'w, String>,
    taken: bool,
) -> Result<(&'w str, Vec<&'w String>), String> {
    let plain = word.split_once('(').map_or(word, |(name, _)| name);
    let Some(keyword) = keywords::all().find(|k| k.name == plain) else {
        let near = syntax::nearest(word, keywords::all().filter(|k| k.dynamic).map(|k| k.name));
        let hint = near.map_or(".".into(), |n| format!("; did you mean '{n}' maybe ?"));
        return Err(format!("unknown keyword '{word}'{hint}"));
    };
    if !taken && !keyword.dynamic {
        return Err(format!("'{plain}' option is not accepted for dynamic server"));
    }
    if plain == "source" {
        let mut values: Vec<&String> = rest.by_ref().take(1).collect();
        while rest.as_slice().first().is_some_and(|w| w == "usesrc" || w == "interface") {
            values.extend(rest.by_ref().take(2));
        }
        return Ok((plain, values));
    }
    let takes = usize::try_from(keyword.args).unwrap_or(0).max(usize::from(plain == "set-proxy-v2-tlv-fmt"));
    Ok((plain, rest.by_ref().take(takes).collect()))
}

fn own_id(backend: &Proxy, text: &str) -> Result<u32, String> {
    let id = text.parse::<u32>().ok().filter(|id| *id > 0 && *id <= i32::MAX as u32);
    let id = id.ok_or("'id' : custom id has to be between 1 and 4294967295..")?;
    match backend.present().find(|s| s.state.id == id) {
        Some(other) => Err(format!("custom id {id} already used by server '{}'.", other.name)),
        None => Ok(id),
    }
}

fn free_id(backend: &Proxy) -> u32 {
    let taken: std::collections::HashSet<u32> = backend.present().map(|s| s.state.id).collect();
    (1..u32::MAX).find(|id| !taken.contains(id)).unwrap_or(u32::MAX)
}

/// The server that another one shall track: one of the configuration, with checks.
fn tracked(program: &Program, backend: &Proxy, target: &str) -> Result<(u32, u32), String> {
    let (proxy, name) = target.split_once('/').unwrap_or((&backend.name, target));
    let at = program
        .backend(proxy)
        .ok_or_else(|| format!("unable to find required proxy '{proxy}' for tracking."))?;
    let proxy_at = program.proxy(at);
    let servers = &proxy_at.servers;
    let found = proxy_at.position(|s| *s.name == *name && !s.state.is_removed());
    let found = found.ok_or_else(|| format!("unable to find required server '{name}' for tracking."))?;
    let Some(server) = servers.configured(found as usize) else {
        return Err(format!("unable to use {proxy}/{name} for tracking as it is a dynamic server."));
    };
    if server.check.is_none() && server.agent.is_none() && server.track.is_none() {
        return Err(format!(
            "unable to use {proxy}/{name} for tracking as it does not have any check nor agent enabled."
        ));
    }
    Ok((at, found))
}

/// Whose this unique name is.
fn holder(program: &Program, guid: &str) -> Option<String> {
    let same = |held: &Option<Box<str>>| held.as_deref() == Some(guid);
    program.present().find_map(|p| {
        let server = || p.present().find(|s| same(&s.state.guid));
        let bind = || p.binds.iter().find(|b| same(&b.state.guid));
        if same(&p.state.guid) {
            Some(format!("{} {}", noun(&p), p.name))
        } else if let Some(server) = server() {
            Some(format!("server {}/{}", p.name, server.name))
        } else {
            bind().map(|b| format!("listener {} ({}:{})", p.name, b.place.0, b.place.1))
        }
    })
}

/// What a proxy is called in messages.
fn noun(p: &Proxy) -> &'static str {
    match (p.is_frontend, p.is_backend) {
        (true, true) => "proxy",
        (true, false) => "frontend",
        _ => "backend",
    }
}

/// A configuration with nothing but the server.
fn configuration(backend: &Proxy, name: &str, id: u32, line: &[String]) -> String {
    let mode = if backend.mode == Mode::Http { "http" } else { "tcp" };
    let quote = |word: &str| format!(" '{}'", word.replace('\'', "'\\''"));
    let quoted = |words: &[String]| words.iter().map(|word| quote(word)).collect::<String>();
    let (address, words) = line.split_at(line.len().min(1));
    let fcgi =
        words.windows(2).any(|pair| matches!(pair, [proto, fcgi] if proto == "proto" && fcgi == "fcgi"));
    // The application is the backend's; here it only has to be one.
    let (app, uses) = match fcgi && backend.fcgi.is_some() {
        true => ("fcgi-app a\n docroot /\n", " use-fcgi-app a\n"),
        false => ("", ""),
    };
    format!(
        "{app}backend {}\n mode {mode}\n timeout connect 1s\n timeout server 1s\n{uses} server{}{} id {id} init-addr none{}\n",
        backend.name,
        quote(name),
        quoted(address),
        quoted(words),
    )
}

fn compiled(
    text: &str,
    running: &Program,
    backend: &str,
    name: &str,
) -> Result<(Server, Vec<String>), String> {
    let outcome = alone(text, running.world.workers, Some(running.tls.clone()));
    let label = format!("'server {backend}/{name}' : ");
    let told = |level: Level| {
        let texts = outcome.diagnostics.iter().filter(move |d| d.level == level).map(|d| &d.text);
        texts
            .map(|t| t.split_once(label.as_str()).map_or(t.as_str(), |(_, rest)| rest).to_owned())
            .collect::<Vec<_>>()
    };
    let Some(program) = outcome.program else {
        let unusable = "MUX protocol is not usable for server.";
        let why = told(Level::Alert)
            .into_iter()
            .next()
            .filter(|text| text.contains("' is not usable for server '"));
        if why.is_some() {
            return Err(unusable.into());
        }
        return Err(told(Level::Alert).into_iter().next().unwrap_or_else(|| "Invalid server.".into()));
    };
    if program.vars != Default::default() {
        return Err("variables cannot be used by dynamic servers".into());
    }
    let mut notes = told(Level::Warning);
    // A line that only we wrote above it is nobody's to remove.
    notes.retain(|note| !note.starts_with("Option 'expose-experimental-directives' is set"));
    let proxy = program.proxies.into_vec().pop().ok_or("Invalid server.")?;
    let server = proxy.servers.into_vec().pop().ok_or("Invalid server.")?;
    Ok((server, notes))
}

/// A backend that is made of the `defaults` section `from`, not known to anybody yet. It is in the mode that
/// is asked for, or else that of the section.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn backend(
    program: &Program,
    name: &str,
    from: &str,
    mode: Option<Mode>,
    guid: Option<&str>,
) -> Result<Proxy, String> {
    let defaults = program.defaults.iter().find(|d| *d.name == *from);
    let defaults = defaults.ok_or_else(|| format!("Cannot find default proxy '{from}'."))?;
    let given = mode;
    let mode = mode.or(defaults.mode).ok_or_else(|| {
        format!("Mode is required as '{from}' default proxy does not explicitly defines it.")
    })?;
    let failed = |why: String| format!("Error during backend creation : {why}.");
    let proxy = program.present().find(|p| *p.name == *name).map(|p| format!("{} {name}", noun(&p)));
    let same = proxy
        .or_else(|| program.defaults.iter().any(|d| *d.name == *name).then(|| format!("defaults {name}")));
    if let Some(other) = same {
        return Err(failed(format!("name is already used by other proxy '{other}'")));
    }
    if let Some(holder) = guid.and_then(|guid| holder(program, guid)) {
        return Err(failed(format!("GUID insertion : duplicate entry with {holder}")));
    }
    if let Some(why) = &defaults.unfit {
        return Err(format!("Error during backend creation : {why}"));
    }
    let template = defaults.backends[usize::from(mode == Mode::Http)].as_ref();
    let template =
        template.ok_or_else(|| failed(format!("'{from}' has settings that no backend may have")))?;
    let id = program.proxies.iter().map(|p| p.state.id).max().unwrap_or(1).saturating_add(1);
    let state = Arc::new(model::Proxy::new(name, id, guid, program.world.workers));
    state.back.unpublished.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut proxy = template.instance(name, state);
    proxy.added = Some(Arc::new(AddedBackend { from: from.into(), mode: given, guid: guid.map(Into::into) }));
    proxy.fullconn = fullconn(program);
    Ok(proxy)
}

/// Takes backends and servers that were added at run time over from a program to the one that is to take its
/// place: they are made again by the words that made them, and go on with their live state. Says of each that
/// can't be had any more why it goes.
pub fn carry_over(before: &Program, now: &mut Program) -> Vec<String> {
    let mut lost = Vec::new();
    let mut places: HashMap<_, _> =
        now.proxies.numbered().map(|(at, p)| (Arc::as_ptr(&p.state), at)).collect();
    for (_, was) in before.proxies.numbered().filter(|(_, p)| !p.is_removed()) {
        if let (Some(added), None) = (&was.added, places.get(&Arc::as_ptr(&was.state))) {
            match backend(now, &was.name, &added.from, added.mode, added.guid.as_deref()) {
                Ok(made) if now.proxies.iter().any(|p| p.state.id == was.state.id) => {
                    drop(made);
                    lost.push(format!("backend '{}': id {} is taken.", was.name, was.state.id));
                }
                Ok(made) => {
                    let at = now.proxies.push(Proxy { state: was.state.clone(), ..made });
                    places.extend(u32::try_from(at).map(|at| (Arc::as_ptr(&was.state), at)));
                    now.adoption.gone.retain(|gone| !Arc::ptr_eq(gone, &was.state));
                }
                Err(why) => lost.push(format!("backend '{}': {why}", was.name)),
            }
        }
        let Some(&at) = places.get(&Arc::as_ptr(&was.state)) else { continue };
        for server in was.present().filter(|s| s.added.is_some()) {
            if let Err(why) = carry_server(now, at, &server) {
                lost.push(format!("server '{}/{}': {why}", was.name, server.name));
            }
        }
    }
    lost
}

/// A server that was added to what is the backend `at` now.
fn carry_server(now: &mut Program, at: u32, was: &Server) -> Result<(), String> {
    let proxy = now.proxy(at);
    if proxy.present().any(|s| *s.name == *was.name) {
        // The configuration has it by now, and with it its live state.
        return Ok(());
    }
    if proxy.present().any(|s| s.state.id == was.state.id) {
        return Err(format!("id {} is taken.", was.state.id));
    }
    let words = was.added.as_deref().unwrap_or_default();
    let (made, _) = server(now, at, &was.name, words)?;
    proxy.servers.push(Server { state: was.state.clone(), ..made });
    let state = proxy.state.clone();
    drop(proxy);
    let terms = now.adoption.proxies.iter_mut().find(|terms| Arc::ptr_eq(&terms.state, &state));
    if let Some(terms) = terms {
        terms.servers.push(was.state.clone());
    }
    Ok(())
}

/// `fullconn` of a backend that nobody names: any frontend whose rules compute a name may send to it.
fn fullconn(program: &Program) -> u32 {
    let computes = |p: &Proxy| {
        p.is_frontend && p.switching.iter().any(|s| matches!(s.to, program::proxy::SwitchTo::Format(_)))
    };
    let sum: u64 = program.proxies.iter().filter(|p| computes(p)).map(|p| u64::from(p.maxconn)).sum();
    u32::try_from(sum.div_ceil(10).max(1)).unwrap_or(u32::MAX)
}

/// Compiles the assignment of a variable of the process (`set var`) as a configuration of its own.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn variable(name: &str, format: bool, words: &[String], workers: usize) -> Result<Program, String> {
    let keyword = if format { "set-var-fmt" } else { "set-var" };
    let words: String = words.iter().map(|word| format!(" '{}'", word.replace('\'', "'\\''"))).collect();
    let text = format!("global\n {keyword} '{}'{words}\n", name.replace('\'', "'\\''"));
    let outcome = alone(&text, workers, None);
    let first = outcome.diagnostics.iter().find(|d| d.level == Level::Alert).map(|d| d.text.clone());
    outcome.program.ok_or_else(|| {
        let text = first.unwrap_or_else(|| "Invalid expression.".into());
        let told = text.rsplit_once(&format!("'{keyword} {name}': ")).map_or(text.as_str(), |(_, told)| told);
        told.trim_end_matches('.').to_owned()
    })
}

/// A line for a certificate list of a running configuration (`add ssl crt-list`).
///
/// # Errors
/// What is wrong with it.
pub fn list_line(store: &::tls::Store, text: &str) -> Result<::tls::store::ListLine, String> {
    crate::tls::list::one(store, "CLI", 1, text.trim())
}

/// Compiles a text in a world of its own.
fn alone(text: &str, workers: usize, store: Option<Arc<::tls::Store>>) -> crate::Outcome {
    let grammar = Grammar { sections: SECTION_WORDS, facts: &PlainBuild };
    // Addresses may name variables.
    let mut environment = if store.is_some() { Environment::of_process() } else { Environment::new() };
    for (name, value) in crate::logformats::ENVIRONMENT {
        environment.set(name, value);
    }
    let reading = syntax::read(vec![Source::new("cli", text.as_bytes().to_vec())], environment, grammar);
    let options = Options { processors: workers, ..Options::default() };
    let world = Arc::new(World::new(workers));
    let mut outcome = compile_with(reading, &Registry::standard(), world, &options, (store, None));
    outcome.program.iter_mut().for_each(Program::adopt);
    outcome
}
