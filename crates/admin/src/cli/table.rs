//! The table of commands, put together from those of the families: which words name a command, who may give
//! it, how it is used, and what runs it, each entry beside its function. `help`, the suggestions for unknown
//! commands and the `-dKcli` dump are read from it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use engine::worker::service::Talk;
use program::listener::Level;

use super::call::{Call, Outcome, Reply, Scope, Viewer};
use crate::command as c;

/// A command that waits for something.
pub type Later = for<'a, 'c> fn(&'a mut Call<'c>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// How a command runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// At once.
    Now(fn(&mut Call<'_>) -> Outcome),
    /// It asks other workers, or waits.
    Later(Later),
}

/// One command.
pub struct Command {
    /// The words that name it.
    pub words: &'static [&'static str],
    /// Its arguments, for `help`.
    pub arguments: &'static str,
    /// What it does, for `help`; an empty one keeps it out of the list.
    pub about: &'static str,
    /// The lowest level that may give it. Some look closer at their arguments.
    pub level: Level,
    /// What runs it.
    pub run: Run,
    /// It wants `experimental-mode on`.
    pub experimental: bool,
    /// It wants `expert-mode on`.
    pub expert: bool,
}

impl Command {
    /// One that answers at once.
    pub const fn now(
        words: &'static [&'static str],
        arguments: &'static str,
        about: &'static str,
        level: Level,
        run: fn(&mut Call<'_>) -> Outcome,
    ) -> Command {
        Command { words, arguments, about, level, run: Run::Now(run), experimental: false, expert: false }
    }

    /// One that asks other workers, or waits.
    pub const fn later(
        words: &'static [&'static str],
        arguments: &'static str,
        about: &'static str,
        level: Level,
        run: Later,
    ) -> Command {
        Command { words, arguments, about, level, run: Run::Later(run), experimental: false, expert: false }
    }

    /// The same, but it wants `experimental-mode on`.
    pub const fn experimental(self) -> Command {
        Command { experimental: true, ..self }
    }

    /// The same, but it wants `expert-mode on`.
    pub const fn expert(self) -> Command {
        Command { expert: true, ..self }
    }

    /// Which processes know it.
    pub fn processes(&self) -> Processes {
        if OF_MASTER.iter().any(|c| c.words == self.words) {
            return Processes::Master;
        }
        let both = SHARED.contains(&self.words) || ALWAYS.iter().any(|c| c.words == self.words);
        if both { Processes::Both } else { Processes::Worker }
    }
}

/// Which processes know a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processes {
    /// The one that serves.
    Worker,
    /// The master.
    Master,
    /// Either.
    Both,
}

/// Whether a list of commands for somebody shows this one.
fn is_shown(command: &Command, viewer: Viewer) -> bool {
    !command.about.is_empty()
        && (viewer.expert || !command.expert)
        && (viewer.experimental || !command.experimental)
}

/// The families of commands.
const FAMILIES: &[&[Command]] = &[
    c::activity::COMMANDS,
    c::anon::COMMANDS,
    c::basic::COMMANDS,
    c::cache::COMMANDS,
    c::client::COMMANDS,
    c::cookies::COMMANDS,
    c::counters::COMMANDS,
    c::dev::COMMANDS,
    c::errors::COMMANDS,
    c::events::COMMANDS,
    c::farm::COMMANDS,
    c::fds::COMMANDS,
    c::frontend::COMMANDS,
    c::inside::COMMANDS,
    c::limits::COMMANDS,
    c::mirror::COMMANDS,
    c::patterns::COMMANDS,
    c::peers::COMMANDS,
    c::pools::COMMANDS,
    c::process::COMMANDS,
    c::profiling::COMMANDS,
    c::reload::COMMANDS,
    c::server::COMMANDS,
    c::servers::COMMANDS,
    c::sessions::COMMANDS,
    c::set_server::COMMANDS,
    c::stat::COMMANDS,
    c::tables::COMMANDS,
    c::ticket_keys::COMMANDS,
    c::tls::COMMANDS,
    c::tls::certs::COMMANDS,
    c::tls::files::COMMANDS,
    c::tls::lists::COMMANDS,
    c::tls::responses::COMMANDS,
    c::traces::COMMANDS,
    c::vars::COMMANDS,
    c::wait::COMMANDS,
    c::weight::COMMANDS,
];

/// All commands but those of every connection ([`ALWAYS`]), sorted by their words.
pub fn commands() -> &'static [&'static Command] {
    static SORTED: LazyLock<Vec<&Command>> = LazyLock::new(|| {
        let mut all: Vec<&Command> = FAMILIES.iter().copied().flatten().collect();
        all.sort_by_key(|c| c.words);
        all
    });
    &SORTED
}
/// Commands that every connection knows; they close each list of `help`.
pub const ALWAYS: &[Command] = &[
    Command::now(
        &["help"],
        "[<command>]",
        "list commands, all or those that match",
        Level::User,
        c::basic::help,
    ),
    Command::now(
        &["prompt"],
        "[help | n | i | p | timed ]*",
        "switch the prompt and the interactive mode",
        Level::User,
        c::basic::prompt,
    ),
    Command::now(&["quit"], "", "close the connection", Level::User, c::basic::quit),
];

/// What the line of a master process understands by itself ([`Scope::Master`]): only listed here, it is the
/// master that runs them.
const OF_MASTER: &[Command] = &[
    of_master(&["@!<pid>"], "", "give a command to the process of this id"),
    of_master(&["@<relative pid>"], "", "give a command to a present worker"),
    of_master(&["@master"], "", "give a command to the master"),
    of_master(&["hard-reload"], "", "read the configuration again, old workers end at once"),
    of_master(&["mcli-debug-mode"], "[on|off]", ""),
    of_master(&["reload"], "", "read the configuration again, old workers finish their work"),
    of_master(&["show", "proc"], "", "the master and its workers"),
];

const fn of_master(words: &'static [&'static str], arguments: &'static str, about: &'static str) -> Command {
    Command::now(words, arguments, about, Level::Operator, |_| Ok(Reply::Done))
}

/// Commands of a worker that a master knows, too.
const SHARED: &[&[&str]] = &[
    &["echo"],
    &["experimental-mode"],
    &["expert-mode"],
    &["operator"],
    &["show", "cli", "level"],
    &["show", "cli", "sockets"],
    &["show", "env"],
    &["show", "startup-logs"],
    &["show", "version"],
    &["user"],
];

/// All commands, of workers and of a master, as a list of the build's.
pub fn everything() -> impl Iterator<Item = &'static Command> {
    commands().iter().copied().chain(OF_MASTER).chain(ALWAYS)
}

/// The commands of a scope but those of every connection, sorted by their words.
fn of_scope(scope: Scope) -> Vec<&'static Command> {
    let workers = commands().iter().copied();
    let mut all: Vec<_> = match scope {
        Scope::Worker => return workers.collect(),
        Scope::Master => workers.filter(|c| SHARED.contains(&c.words)).chain(OF_MASTER).collect(),
        Scope::MasterDebug => workers.chain(OF_MASTER).collect(),
    };
    all.sort_by_key(|c| c.words);
    all
}

/// The command that `words` begin with.
pub fn find(words: &[String], scope: Scope) -> Option<&'static Command> {
    let is_it = |c: &&Command| c.words.len() <= words.len() && c.words.iter().zip(words).all(|(a, b)| a == b);
    let known = |c: &&Command| scope != Scope::Master || SHARED.contains(&c.words);
    let of_worker = commands().iter().copied().filter(known);
    of_worker.chain(ALWAYS).filter(is_it).max_by_key(|c| c.words.len())
}

/// A command as `help` lists it.
struct Row<'a> {
    words: Vec<&'a str>,
    line: String,
}

impl Row<'_> {
    fn of(command: &'static Command) -> Row<'static> {
        let mut usage = command.words.join(" ");
        if !command.arguments.is_empty() {
            usage.push(' ');
            usage.push_str(command.arguments);
        }
        let colon = if usage.len() < 40 { " :" } else { ":" };
        let line = format!("  {usage:<39}{colon} {}\n", command.about);
        Row { words: command.words.to_vec(), line }
    }
}

/// All that a viewer may see, in order. What extensions add is sorted in by the line that they say of it.
fn rows<'a>(viewer: Viewer, added: &'a [Arc<dyn Talk>]) -> Vec<Row<'a>> {
    let own = of_scope(viewer.scope).into_iter().filter(|c| is_shown(c, viewer));
    let mut rows: Vec<Row<'a>> = own.map(Row::of).collect();
    for (n, command) in added.iter().enumerate() {
        // Of those with the same words the last one runs, and the line of the first is shown.
        if added.iter().take(n).any(|before| before.words() == command.words()) {
            continue;
        }
        let line = format!("  {}\n", command.usage());
        let at = rows.iter().position(|row| row.line > line).unwrap_or(rows.len());
        rows.insert(at, Row { words: command.words().iter().map(String::as_str).collect(), line });
    }
    rows
}

/// The answer to words that name no command.
pub fn unknown(words: &[String], viewer: Viewer, added: &[Arc<dyn Talk>]) -> String {
    let first = words.first().map_or("", String::as_str);
    format!(
        "Unknown command: '{first}', but maybe one of the following ones is a better match:\n{}",
        list(near(words, rows(viewer, added)))
    )
}

/// The answer to `help` with `words` behind it.
pub fn help(words: &[String], viewer: Viewer, added: &[Arc<dyn Talk>]) -> String {
    let all = rows(viewer, added);
    let listed = if words.is_empty() { all } else { near(words, all) };
    format!("The following commands are valid at this level:\n{}", list(listed))
}

fn list(rows: Vec<Row<'_>>) -> String {
    let always = ALWAYS.iter().filter(|c| !c.about.is_empty());
    rows.into_iter().map(|row| row.line).chain(always.map(|c| Row::of(c).line)).collect()
}

/// Commands that come closest to what was typed: those that share the longest run of words, the last of which
/// may be unfinished; if there is none, those one of whose words is nearest to one that was typed.
fn near<'a>(words: &[String], all: Vec<Row<'a>>) -> Vec<Row<'a>> {
    let typed: Vec<&str> = words.iter().map(String::as_str).collect();
    let shared = |row: &Row<'_>| {
        let whole = row.words.iter().zip(&typed).take_while(|(a, b)| a == b).count();
        let begun = match (row.words.get(whole), typed.get(whole)) {
            (Some(a), Some(b)) => !b.is_empty() && a.starts_with(b),
            _ => false,
        };
        whole * 2 + usize::from(begun)
    };
    let best = all.iter().map(shared).max().unwrap_or(0);
    if best > 0 {
        return all.into_iter().filter(|row| shared(row) == best).collect();
    }
    let distance = |row: &Row<'_>| {
        let pairs = row.words.iter().flat_map(|a| typed.iter().map(move |b| edits(a, b)));
        pairs.min().unwrap_or(usize::MAX)
    };
    let mut nearest: Vec<(usize, Row<'a>)> = all.into_iter().enumerate().collect();
    nearest.sort_by_key(|(_, row)| distance(row));
    nearest.truncate(5);
    nearest.sort_by_key(|(place, _)| *place);
    nearest.into_iter().map(|(_, row)| row).collect()
}

/// How many letters must change to make one word of the other. Words beyond 64 letters are cut.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scope: Scope) -> Viewer {
        Viewer { scope, ..Viewer::default() }
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn no_words_name_two_commands() {
        for pair in commands().windows(2) {
            assert!(pair[0].words < pair[1].words, "{:?} {:?}", pair[0].words, pair[1].words);
        }
    }

    #[test]
    fn a_command_is_found_by_its_words_and_arguments_stay() {
        assert_eq!(
            find(&words("show servers state be1"), Scope::Worker).map(|c| c.words),
            Some(&["show", "servers", "state"][..])
        );
        assert!(find(&words("show servers"), Scope::Worker).is_none());
        assert!(find(&words("Show info"), Scope::Worker).is_none());
        assert!(find(&words("show inf"), Scope::Worker).is_none());
    }

    #[test]
    fn suggestions_follow_the_words_typed() {
        let text = unknown(&words("show servers foo"), of(Scope::Worker), &[]);
        assert!(text.starts_with(
            "Unknown command: 'show', but maybe one of the following ones is a better match:\n"
        ));
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(text.contains("  show servers conn [<backend>]           : "), "{text}");
        assert!(unknown(&words("shw stat"), of(Scope::Worker), &[]).contains("show stat"));
        assert!(unknown(&words("zzzz"), of(Scope::Worker), &[]).ends_with("close the connection\n"));
    }

    #[test]
    fn help_lists_everything_visible() {
        let text = help(&[], of(Scope::Worker), &[]);
        assert!(text.contains("show info [desc|json|typed|float]*") && !text.contains("expert-mode"));
        assert_eq!(
            help(&words("set sev"), of(Scope::Worker), &[]).lines().count(),
            5,
            "{}",
            help(&words("set sev"), of(Scope::Worker), &[])
        );
    }

    #[test]
    fn a_master_knows_its_own_commands_and_a_few_of_a_worker() {
        let text = help(&[], of(Scope::Master), &[]);
        assert!(
            text.contains("  @!<pid>  ")
                && text.contains("  show env [var]  ")
                && !text.contains("show stat")
        );
        assert_eq!(text.lines().count(), 18, "{text}");
        assert!(find(&words("show stat"), Scope::Master).is_none());
        assert!(find(&words("show stat"), Scope::MasterDebug).is_some());
        assert!(find(&words("show version"), Scope::Master).is_some());
        assert!(help(&[], of(Scope::MasterDebug), &[]).contains("show stat"));
    }
}
