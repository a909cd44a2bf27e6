//! Floor 8: from the tree of a configuration to the [`Program`] that runs.
//!
//! Two passes, because rules may name what stands below them. The first goes through the sections in order
//! and turns each line into settings of a draft by the entry of its keyword (`global`, `proxy`, `bind`,
//! `server`: plain tables). The second (`assemble`) knows all proxies and servers, gives them their place in
//! the live world, parses rules and expressions, and checks what only the whole can show.
//!
//! Every complaint is a [`syntax::Diagnostic`] in HAProxy's words; a line that is wrong costs that line, and
//! all wrong lines are reported in one run.
//!
//! The modules stand on floors: at the bottom what settings are while they are read (`draft`) and the cursor
//! over the words of a line (`statement`); then the rows of tables (`keyword`) and the families of keywords;
//! then the tables of a section (`proxy`, `global`, `bind`, `server`) and the sections; `assemble` above all
//! of them. What is below names nothing above.
#![forbid(unsafe_code)]

mod assemble;
mod bind;
mod cache;
mod check;
mod draft;
pub mod dump;
pub mod dynamic;
mod fcgi;
mod forward;
pub mod fuzzing;
mod global;
mod healthcheck;
mod keyword;
mod log;
pub mod logformats;
mod mailers;
mod mux;
mod names;
mod namespaces;
mod notes;
mod patterns;
mod peers;
mod profile;
mod proxy;
pub mod reference;
mod resolve;
mod resolvers;
mod ring;
mod sections;
mod server;
mod statement;
mod table;
mod tls;
mod traces;
mod units;
mod users;

use std::sync::Arc;

use base::cpus::Cpu;
use lang::Registry;
use model::World;
use program::Program;
use syntax::{Diagnostics, Reading};

pub use keyword::Places;

/// What the compiler has to know of the machine and the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// File descriptors that the process may have at most (the hard limit).
    pub fd_limit: u64,
    /// Processors that the process may run on.
    pub processors: usize,
    /// All processors of the machine; none: as many as `processors` says, each a core of its own.
    pub machine: Vec<Cpu>,
    /// `-m`, `-n`: `maxconn` of the command line takes precedence.
    pub maxconn: Option<u32>,
    /// `-N`: `maxconn` of proxies that have none.
    pub proxy_maxconn: Option<u32>,
    /// `-dr`: a server whose name can't be resolved is no error.
    pub ignore_resolution: bool,
    /// `-L`: name of this peer.
    pub localpeer: Option<Box<str>>,
    /// `-dV`: the certificates of servers are not verified unless a line says so.
    pub trust_servers: bool,
    /// `-dI`: programs may be run while traffic is served.
    pub fork_wanted: bool,
    /// `-c`: nothing will be started. HAProxy does not look up then where logs go.
    pub only_checked: bool,
    /// A script sends the mails about servers (`core.use_native_mailers_config`).
    pub mail_by_script: bool,
}

impl Options {
    /// All processors of the machine.
    fn machine(&self) -> Vec<Cpu> {
        match self.machine.is_empty() {
            true => (0..self.processors).map(Cpu::alone).collect(),
            false => self.machine.clone(),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fd_limit: 1024,
            processors: 1,
            machine: Vec::new(),
            maxconn: None,
            proxy_maxconn: None,
            ignore_resolution: false,
            localpeer: None,
            trust_servers: false,
            fork_wanted: false,
            only_checked: false,
            mail_by_script: false,
        }
    }
}

/// What came out.
pub struct Outcome {
    /// The program; `None` when the configuration can't be used.
    pub program: Option<Program>,
    /// All complaints, those of reading included, in the order of the files.
    pub diagnostics: Diagnostics,
    /// At least one listener would be started. Without any, HAProxy exits with status 2 instead of starting.
    pub has_listener: bool,
    /// `zero-warning` stands in the configuration: warnings are fatal.
    pub zero_warning: bool,
    /// `quiet`: nothing shall be said of all this.
    pub quiet: bool,
    /// `daemon`: how the process shall start, known even when the rest is wrong.
    pub daemon: bool,
}

/// The number of workers that a configuration asks for (`nbthread`): the world needs it before anything is
/// compiled. Without the keyword it is the number of processors that `cpu-set` and `cpu-policy` choose; at
/// most 64, and no more than `thread-hard-limit` allows.
pub fn workers(reading: &Reading, options: &Options) -> usize {
    global::places::place(&reading.tree, &options.machine()).threads
}

/// The folder in which relative paths of the configuration start (`default-path`), if it says so: to be gone
/// to while it is compiled.
pub fn folder(reading: &Reading) -> Option<std::path::PathBuf> {
    global::path::folder(reading)
}

/// Compiles what was read. `world` must have been made for [`workers`] of the same reading.
pub fn compile(reading: Reading, registry: &Registry, world: Arc<World>, options: &Options) -> Outcome {
    compile_with(reading, registry, world, options, (None, None))
}

/// Compiles what shall take the place of a configuration that runs. Who has a name in both has the same live
/// state and number; variables keep their places, listeners, sets of patterns and tables what they are.
/// Nothing of it changes before the outcome is adopted.
pub fn compile_after(reading: Reading, registry: &Registry, before: &Program, options: &Options) -> Outcome {
    compile_with(reading, registry, before.world.clone(), options, (None, Some(before)))
}

/// The same with the certificates of a running configuration, or after one.
fn compile_with(
    reading: Reading,
    registry: &Registry,
    world: Arc<World>,
    options: &Options,
    (store, before): (Option<Arc<::tls::Store>>, Option<&Program>),
) -> Outcome {
    let Reading { tree, sources, environment, diagnostics } = reading;
    let mut notes = diagnostics;
    let drafts = sections::read(&tree, &sources, &environment, options, &mut notes);
    let mut outcome = Outcome {
        program: None,
        diagnostics: Diagnostics::new(),
        has_listener: drafts.proxies.iter().any(|p| !p.disabled && !p.binds.is_empty())
            || drafts.forwards.iter().any(|f| !f.proxy.binds.is_empty() || !f.datagrams.is_empty()),
        zero_warning: drafts.global.zero_warning,
        quiet: drafts.global.quiet,
        daemon: drafts.global.daemon,
    };
    let ground =
        assemble::Ground { tree: &tree, sources: &sources, registry, options, world, environment, before };
    let mut found = Diagnostics::new();
    let program = assemble::program(drafts, ground, store, &mut found);
    notes.extend(found);
    // How the lines fit together is only looked at when each of them could be read, as in HAProxy: a line
    // that was left out would be missed elsewhere.
    notes.stop_at_errors();
    unplaced(&mut notes);
    outcome.program = Some(program).filter(|_| !notes.has_errors());
    if let Some(program) = &outcome.program {
        program.tls.seal();
    }
    notes.sort();
    notes.reorder(|first, second| {
        first.text.ends_with("will still be processed before.")
            && second.text.ends_with("further entries are NOOP.")
    });
    outcome.diagnostics = notes;
    outcome
}

/// A rule that was not understood has no place among the others: nothing is said of it.
fn unplaced(notes: &mut Diagnostics) {
    let place = |note: &syntax::Diagnostic| note.span.map(|span| (span.file, span.line));
    let wrong: std::collections::HashSet<_> =
        notes.iter().filter(|note| note.is_of_reading()).filter_map(place).collect();
    notes.retain(|note| {
        !note.text.ends_with("rule will still be processed before.")
            || !place(note).is_some_and(|at| wrong.contains(&at))
    });
}

#[cfg(test)]
mod tests;
