//! What scripts do through the runtime API: figures of the process and of its proxies, states of servers.
//!
//! That API lives in a crate beside this one, so the program hands it in once, at the start.

use std::rc::Rc;
use std::sync::OnceLock;

use engine::Worker;
use mlua::{Lua, Table, Value};

use crate::here::with_worker;
use crate::value::inner;

/// Runs one command of the runtime API and gives its answer.
pub type Command = fn(&Rc<Worker>, Vec<String>) -> String;

/// How commands are run, as the program said.
static COMMAND: OnceLock<Command> = OnceLock::new();

/// Says how commands of the runtime API are run.
pub fn set_command(command: Command) {
    let _ = COMMAND.set(command);
}

/// What a command answers; nothing where there is no process that serves yet.
pub fn ask(words: &[&str]) -> Option<String> {
    let command = COMMAND.get()?;
    let worker = with_worker(Rc::clone)?;
    Some(command(&worker, words.iter().map(|word| (*word).to_owned()).collect()))
}

/// The lines of `show info`.
pub fn info() -> Vec<(String, String)> {
    let text = ask(&["show", "info"]).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A row of the statistics as a table: the first that `wanted` says is it.
pub fn row(lua: &Lua, wanted: impl Fn(&[&str]) -> bool) -> Result<Table, String> {
    let table = inner(lua.create_table())?;
    let text = ask(&["show", "stat"]).unwrap_or_default();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if !wanted(&cells) {
            continue;
        }
        for (name, cell) in
            names.iter().zip(cells).filter(|(name, cell)| !name.is_empty() && !cell.is_empty())
        {
            match cell.parse::<i64>() {
                Ok(number) => inner(table.raw_set(*name, number))?,
                Err(_) => inner(table.raw_set(*name, cell))?,
            }
        }
        break;
    }
    Ok(table)
}

/// An object of a class that the prelude knows.
pub fn object(lua: &Lua, class: &str, handle: impl mlua::IntoLua) -> Result<Value, String> {
    let made = lua.named_registry_value::<Table>("made");
    let make: mlua::Function = inner(made.and_then(|made| made.raw_get("object")))?;
    let handle = inner(handle.into_lua(lua))?;
    inner(make.call((class, handle)))
}
