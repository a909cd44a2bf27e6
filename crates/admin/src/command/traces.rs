//! `trace`, `show trace`: what passes through the process, while somebody looks (management guide, 9.3).

use engine::sinks::traced;
use model::trace::command::{self, Told};
use model::trace::{self, show};
use program::listener::Level;

use crate::cli::call::{Call, Outcome, Reply, severity};
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["show", "trace"], "[<source>]", "what is traced, and where to", Level::User, status),
    Command::now(
        &["trace"],
        "[<source>|0] [cmd [args...]]",
        "list traces, change them, or end all",
        Level::Operator,
        change,
    ),
];

/// `trace [<source> [<word> [<value>]]*]`.
fn change(call: &mut Call<'_>) -> Outcome {
    let shared = call.shared();
    let words: Vec<&str> = call.args().iter().map(String::as_str).collect();
    let mut all = trace::all_settings();
    let told = command::run(&mut all, &words, &traced::names(shared));
    traced::apply(shared, &all);
    match told {
        Err(text) => Err(text.into()),
        Ok(Told::Nothing) => Ok(Reply::Done),
        Ok(Told::List(text)) => Ok(Reply::Message(severity::WARNING, text.into())),
        Ok(Told::Notice(text)) => Ok(Reply::Message(severity::NOTICE, text.into())),
    }
}

/// `show trace [<source>]`.
fn status(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        _ if !call.arg(0).is_empty() && call.client.level < Level::Operator => {
            Err("Permission denied".into())
        }
        "" => Ok(Reply::Dump(show::overview())),
        name => Ok(Reply::Dump(show::one(name).ok_or("No such trace source")?)),
    }
}
