//! Lua: which files are loaded, and what scripts may do (`tune.lua.*`). Words are checked here; what they
//! mean is known to the crate that runs scripts, before anything is compiled.

use super::draft::{GlobalDraft, Lua, entry};
use super::idle;
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};

const fn tune(name: &'static str, doc: &'static str, example: &'static str) -> Keyword<GlobalDraft> {
    entry(name, idle::arguments, doc, example)
}

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry(
        "lua-load",
        |s, g| load(s, g, "'lua-load' expects a file name as parameter."),
        "Runs a Lua file in the state of all threads.",
        "",
    ),
    entry(
        "lua-load-per-thread",
        |s, g| load(s, g, "'lua-load-per-thread' expects a file as parameter."),
        "Runs a Lua file in a state of its own for each thread.",
        "",
    ),
    entry(
        "lua-prepend-path",
        path,
        "Where Lua modules are looked for first.",
        "lua-prepend-path /etc/lua/?.lua",
    ),
    tune(
        "tune.lua.bool-sample-conversion",
        "Whether booleans reach scripts as such.",
        "tune.lua.bool-sample-conversion normal",
    ),
    tune("tune.lua.burst-timeout", "How long a script may run in one go.", "tune.lua.burst-timeout 1s")
        .default("1s"),
    tune(
        "tune.lua.forced-yield",
        "After how many instructions a script lets others go first.",
        "tune.lua.forced-yield 5000",
    ),
    tune("tune.lua.log.loggers", "Whether lines of scripts go to the loggers.", "tune.lua.log.loggers on")
        .default("on"),
    tune("tune.lua.log.stderr", "When lines of scripts go to standard error.", "tune.lua.log.stderr auto")
        .default("auto"),
    tune("tune.lua.maxmem", "Memory of each state of Lua, in megabytes.", "tune.lua.maxmem 64"),
    entry("tune.lua.openlibs", libraries, "The libraries that scripts find.", "tune.lua.openlibs all")
        .default("all"),
    tune(
        "tune.lua.service-timeout",
        "How long the script of a service may run in all.",
        "tune.lua.service-timeout 4s",
    )
    .default("4s"),
    tune(
        "tune.lua.session-timeout",
        "How long the script of a rule may run in all.",
        "tune.lua.session-timeout 4s",
    )
    .default("4s"),
    tune("tune.lua.task-timeout", "How long a task may run in all.", "tune.lua.task-timeout 10s"),
];

fn load(s: &mut Statement<'_>, global: &mut GlobalDraft, missing: &str) -> Step {
    global.lua = Lua::Loaded;
    s.word(missing)?;
    s.args.eat_rest();
    Ok(())
}

fn path(s: &mut Statement<'_>, global: &mut GlobalDraft) -> Step {
    global.lua = global.lua.max(Lua::Prepended);
    s.word("'lua-prepend-path' expects to receive a <path> as argument")?;
    match s.next().map(|word| word.text()) {
        None | Some("path" | "cpath") => Ok(()),
        Some(_) => Err(s.fail("'lua-prepend-path' expects <type> to either be 'path' or 'cpath'")),
    }
}

/// What `tune.lua.openlibs` may name.
const LIBRARIES: [&str; 8] = ["table", "io", "os", "string", "math", "utf8", "package", "debug"];

fn libraries(s: &mut Statement<'_>, global: &mut GlobalDraft) -> Step {
    if global.lua == Lua::Loaded {
        return Err(s.fail(
            "'tune.lua.openlibs' must be set before any \"lua-load\" or \"lua-load-per-thread\" directive.",
        ));
    }
    let names = LIBRARIES.join(",");
    let word = s.word(format!(
        "'tune.lua.openlibs' expects 'all', 'none', or a comma-separated list of libraries: {names}"
    ))?;
    s.end()?;
    let chosen: Vec<&str> = word.text().split(',').filter(|name| !name.is_empty()).collect();
    if let Some(odd) =
        chosen.iter().find(|name| !matches!(**name, "all" | "none") && !LIBRARIES.contains(name))
    {
        let text = format!("'tune.lua.openlibs': unknown library '{odd}', expected one of: all,none,{names}");
        return Err(s.fail_at(word.span(), text));
    }
    let none = chosen.contains(&"none");
    if none && chosen.iter().any(|name| *name != "none") {
        let text = "'tune.lua.openlibs': 'none' cannot be combined with other libraries.";
        return Err(s.fail_at(word.span(), text));
    }
    // The path was put into a state that has them all.
    let all = chosen.contains(&"all") || LIBRARIES.iter().all(|name| chosen.contains(name));
    if global.lua == Lua::Prepended && !all {
        return Err(s.fail(
            "'tune.lua.openlibs' must appear before any 'lua-load', 'lua-load-per-thread' or 'lua-prepend-path' directive",
        ));
    }
    Ok(())
}
