//! What scripts register while their files are read: actions, fetches, converters, services, commands, tasks
//! and functions that run when the configuration is complete.

use std::sync::Arc;

use engine::worker::service::StreamKind;
use lang::registry::Sets;
use mlua::{Function, Table, Value};
use parking_lot::Mutex;

use crate::here::with_worker;
use crate::value::Bound;
use crate::value::{Args, Outcome, nothing};

/// Functions of `core` that register.
pub const BOUND: &[Bound] = &[
    ("core.register_action", 0, action),
    ("core.register_fetches", 0, fetch),
    ("core.register_converters", 0, converter),
    ("core.register_service", 0, service),
    ("core.register_cli", 0, cli),
    ("core.register_init", 0, init),
    ("core.register_task", 0, task),
    ("core.register_filter", 0, filter),
    ("core.use_native_mailers_config", 0, mail),
];

/// The most that one state registers of each kind.
const MOST: usize = 4096;

/// A task, with what it is called with.
pub type Task = (Function, Vec<Value>);

/// What the files of one state have registered.
#[derive(Default)]
pub struct Registered {
    /// Name, where it may stand, number of its words, function.
    pub actions: Vec<(String, Sets, usize, Function)>,
    /// Name and function.
    pub fetches: Vec<(String, Function)>,
    /// Name and function.
    pub converters: Vec<(String, Function)>,
    /// Name, what it speaks, function.
    pub services: Vec<(String, StreamKind, Function)>,
    /// The words that name it, its line of help, function.
    pub commands: Vec<(Vec<String>, String, Function)>,
    /// Name, class, the function that makes one for a line of the configuration.
    pub filters: Vec<(String, Table, Function)>,
    /// Functions that run when the configuration is complete.
    pub inits: Vec<Function>,
    /// Tasks that begin when the process serves.
    pub tasks: Vec<Task>,
    /// They send the mails about servers (`email-alert`).
    pub mail: bool,
    /// Files are being read.
    pub open: bool,
}

/// The registrations of a state, in its data.
pub type Shared = Arc<Mutex<Registered>>;

/// The registrations of the state, if anything may be registered now: this is said before the arguments are
/// looked at.
fn open(args: &Args<'_>, what: &str) -> Result<Shared, String> {
    let shared = args.lua().app_data_ref::<Shared>().map(|s| s.clone());
    match shared {
        Some(shared) if shared.lock().open => Ok(shared),
        Some(_) => Err(format!("{what}: not available outside of body context")),
        None => Err("nothing can be registered here".into()),
    }
}

fn with<R>(args: &Args<'_>, what: &str, work: impl FnOnce(&mut Registered) -> R) -> Result<R, String> {
    let shared = open(args, what)?;
    let mut registered = shared.lock();
    if registered.actions.len() + registered.services.len() + registered.fetches.len() > MOST {
        return Err(format!("{what}: too many registrations"));
    }
    Ok(work(&mut registered))
}

fn mail(args: &mut Args<'_>) -> Outcome {
    with(args, "use_native_mailers_config", |all| all.mail = true)?;
    nothing()
}

fn action(args: &mut Args<'_>) -> Outcome {
    open(args, "register_action")?;
    let name = args.text(1)?;
    let Value::Table(places) = args.get(2) else {
        return Err("register_action: second argument must be a table of strings".into());
    };
    let function = args.function(3)?;
    let count = usize::try_from(args.int_or(4, 0)?).unwrap_or(0).min(16);
    let mut sets = Sets(0);
    for place in places.sequence_values::<mlua::String>() {
        let place =
            place.map_err(|_| "register_action: second argument must be a table of strings".to_owned())?;
        let place = place.to_string_lossy();
        sets = sets.and(match place.as_str() {
            "tcp-req" => Sets::TCP_REQ,
            "tcp-res" => Sets::TCP_RES,
            "http-req" => Sets::HTTP_REQ,
            "http-res" => Sets::HTTP_RES,
            "http-after-res" => Sets::HTTP_AFTER,
            _ => {
                return Err(format!(
                    "Lua action environment '{place}' is unknown. 'tcp-req', 'tcp-res', 'http-req', 'http-res' or 'http-after-res' are expected."
                ));
            }
        });
    }
    with(args, "register_action", |all| all.actions.push((name, sets, count, function)))?;
    nothing()
}

fn fetch(args: &mut Args<'_>) -> Outcome {
    open(args, "register_fetches")?;
    let (name, function) = (args.text(1)?, args.function(2)?);
    with(args, "register_fetches", |all| all.fetches.push((name, function)))?;
    nothing()
}

fn converter(args: &mut Args<'_>) -> Outcome {
    open(args, "register_converters")?;
    let (name, function) = (args.text(1)?, args.function(2)?);
    with(args, "register_converters", |all| all.converters.push((name, function)))?;
    nothing()
}

fn service(args: &mut Args<'_>) -> Outcome {
    open(args, "register_service")?;
    let (name, kind, function) = (args.text(1)?, args.text(2)?, args.function(3)?);
    let kind = match kind.as_str() {
        "http" => StreamKind::Http,
        "tcp" => StreamKind::Tcp,
        _ => {
            return Err(format!(
                "Lua service environment '{kind}' is unknown. 'tcp' or 'http' are expected."
            ));
        }
    };
    with(args, "register_service", |all| all.services.push((name, kind, function)))?;
    nothing()
}

fn cli(args: &mut Args<'_>) -> Outcome {
    open(args, "register_cli")?;
    let Value::Table(path) = args.get(1) else {
        return Err(args.bad(1, "1st argument must be a table"));
    };
    let words = path.sequence_values::<Value>().map(|word| match word {
        Ok(Value::String(word)) => Ok(word.to_string_lossy()),
        _ => Err(args.bad(1, "1st argument must be a table filled with strings")),
    });
    let words = words.collect::<Result<Vec<_>, String>>()?;
    if words.is_empty() || words.len() > 5 {
        return Err("Lua cli path: between one and five words are expected".into());
    }
    let (usage, function) = (args.text(2)?, args.function(3)?);
    with(args, "register_cli", |all| all.commands.push((words, usage, function)))?;
    nothing()
}

fn init(args: &mut Args<'_>) -> Outcome {
    args.want(1, 1)?;
    let function = args.function(1)?;
    with(args, "register_init", |all| all.inits.push(function))?;
    nothing()
}

fn task(args: &mut Args<'_>) -> Outcome {
    if args.len() == 0 || args.len() > 5 {
        return Err("'register_task' needs between 1 and 5 arguments".into());
    }
    let function = args.function(1)?;
    let values: Vec<Value> = (2..=args.len()).map(|n| args.get(n).clone()).collect();
    let shared = args.lua().app_data_ref::<Shared>().map(|s| s.clone());
    if let Some(shared) = &shared {
        let mut registered = shared.lock();
        if registered.open || with_worker(|_| ()).is_none() {
            registered.tasks.push((function, values));
            return nothing();
        }
    }
    crate::tasks::begin_task(args.lua(), function, values);
    nothing()
}

fn filter(args: &mut Args<'_>) -> Outcome {
    open(args, "register_filter")?;
    let (name, class, function) = (args.text(1)?, args.table(2)?, args.function(3)?);
    with(args, "register_filter", |all| all.filters.push((name, class, function)))?;
    nothing()
}
