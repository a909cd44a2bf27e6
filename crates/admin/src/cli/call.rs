//! One command being run: what it was given, and what it may answer.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::fleet::Held;
use engine::{Shared, Worker};
use farm::At;
use program::listener::{Level, Severity};
use program::{Proxy, Server};

use super::anon::Anon;

/// Syslog severities of answers (`severity-output`).
pub mod severity {
    /// Something went wrong.
    pub const ERR: u8 = 3;
    /// Worth knowing.
    pub const WARNING: u8 = 4;
    /// A change was made.
    pub const NOTICE: u8 = 5;
    /// What was asked for.
    pub const INFO: u8 = 6;
}

/// Which commands a connection may know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of a process that serves.
    #[default]
    Worker,
    /// Those that make sense in a master process.
    Master,
    /// Both (`mcli-debug-mode on`).
    MasterDebug,
}

/// Who looks at the table: what is listed depends on where, and on the modes that are on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Viewer {
    /// Which commands there are.
    pub scope: Scope,
    /// `expert-mode on`.
    pub expert: bool,
    /// `experimental-mode on`.
    pub experimental: bool,
}

/// The state of one connection to the runtime API.
#[derive(Debug)]
pub struct Client {
    /// Which commands it may know of.
    pub scope: Scope,
    /// It may take the listening sockets over (`expose-fd listeners`).
    pub exposes: bool,
    /// It is the master, which may hand a configuration over.
    pub is_master: bool,
    /// What it may do.
    pub level: Level,
    /// How answers are marked.
    pub severity: Severity,
    /// It stays open after a line of commands.
    pub interactive: bool,
    /// A prompt is shown.
    pub prompt: bool,
    /// The prompt shows the uptime.
    pub timed: bool,
    /// How long it may be idle.
    pub timeout: Option<Duration>,
    /// `expert-mode on`.
    pub expert: bool,
    /// `experimental-mode on`.
    pub experimental: bool,
    /// `set anon on`.
    pub anon: Anon,
    /// `quit` was given.
    pub quit: bool,
}

impl Client {
    /// Who has just connected.
    pub fn new(level: Level, severity: Severity, timeout: Option<Duration>) -> Client {
        Client {
            scope: Scope::Worker,
            exposes: false,
            is_master: false,
            level,
            severity,
            interactive: false,
            prompt: false,
            timed: false,
            timeout,
            expert: false,
            experimental: false,
            anon: Anon::default(),
            quit: false,
        }
    }

    /// What it may see of the table of commands.
    pub fn viewer(&self) -> Viewer {
        Viewer { scope: self.scope, expert: self.expert, experimental: self.experimental }
    }
}

/// What a command answers.
#[derive(Debug)]
pub enum Reply {
    /// Nothing at all, not even the empty line.
    Silent,
    /// Nothing but the empty line.
    Done,
    /// Text as it is, each line ended.
    Dump(String),
    /// The lines of a ring from a position on.
    Events {
        /// Which ring, by index of the program.
        ring: usize,
        /// Where to begin.
        position: u64,
        /// Go on with new lines until the client says anything.
        wait: bool,
        /// A NUL byte ends each line instead of a line feed.
        nul: bool,
    },
    /// Lines that are made while they are sent.
    Lines(Box<dyn Lines>),
    /// A message with a severity.
    Message(u8, Cow<'static, str>),
}

/// A long answer that is never held as a whole.
pub trait Lines: std::fmt::Debug {
    /// Appends the next line, or a few; `false` when there are no more.
    fn append(&mut self, out: &mut String) -> bool;
}

/// Why a command was refused: a message of severity `err`.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal(pub Cow<'static, str>);

/// What becomes of a command.
pub type Outcome = Result<Reply, Refusal>;

impl From<&'static str> for Refusal {
    fn from(text: &'static str) -> Refusal {
        Refusal(text.into())
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal(text.into())
    }
}

impl Reply {
    /// A message of severity `info`.
    pub fn info(text: impl Into<Cow<'static, str>>) -> Reply {
        Reply::Message(severity::INFO, text.into())
    }
}

/// Something that takes connections, or messages.
pub struct FrontAt {
    /// Which section it is.
    pub whose: Whose,
    /// What it does now.
    pub state: Arc<model::Proxy>,
    /// Whether anybody can come to it.
    pub has_sockets: bool,
    /// It was never started.
    pub disabled: bool,
}

/// Sections that take connections, by their place in the program.
#[derive(Clone, Copy, Debug)]
pub enum Whose {
    /// A proxy.
    Proxy(u32),
    /// A `log-forward` section.
    Forward(usize),
}

/// A command being run.
pub struct Call<'c> {
    /// The worker that runs it.
    pub worker: Rc<Worker>,
    /// Who gave it.
    pub client: &'c mut Client,
    /// All its words.
    pub words: &'c [String],
    /// How many of these name the command.
    pub named: usize,
    /// The payload behind `<<`.
    pub payload: Option<&'c str>,
}

impl Call<'_> {
    /// The argument number `n` behind the words of the command; empty if there is none.
    pub fn arg(&self, n: usize) -> &str {
        self.words.get(self.named + n).map_or("", String::as_str)
    }

    /// All arguments.
    pub fn args(&self) -> &[String] {
        self.words.get(self.named..).unwrap_or(&[])
    }

    /// What all workers share.
    pub fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    /// The backend called `name`, or numbered `#id`.
    pub fn find_backend(&self, name: &str) -> Option<(u32, Held<'_, Proxy>)> {
        find_proxy(self.shared(), name, |p| p.is_backend)
    }

    /// The frontend, or `log-forward` section, that argument 0 names.
    ///
    /// # Errors
    /// What the runtime API says of a name that is missing or not known.
    pub fn frontend(&self) -> Result<FrontAt, Refusal> {
        let name = self.arg(0);
        if name.is_empty() {
            return Err("A frontend name is expected.".into());
        }
        if let Some((index, proxy)) = find_proxy(self.shared(), name, |p| p.is_frontend) {
            return Ok(FrontAt {
                whose: Whose::Proxy(index),
                state: proxy.state.clone(),
                has_sockets: !proxy.binds.is_empty(),
                disabled: proxy.disabled,
            });
        }
        let forwards = self.shared().program.forwards.iter().enumerate();
        let found = forwards.into_iter().find(|(_, forward)| *forward.name == *name);
        let (index, forward) = found.ok_or("No such frontend.")?;
        Ok(FrontAt {
            whose: Whose::Forward(index),
            state: forward.state.clone(),
            has_sockets: !forward.binds.is_empty() || !forward.datagrams.is_empty(),
            disabled: false,
        })
    }

    /// The server that argument 0 names as `backend/server`.
    ///
    /// # Errors
    /// What the runtime API says of a name that is missing or not known.
    pub fn server(&self) -> Result<At, Refusal> {
        self.server_called(self.arg(0))
    }

    /// As [`Call::server`], for commands that change something: nothing of a proxy that was never started can
    /// be.
    ///
    /// # Errors
    /// As [`Call::server`].
    pub fn server_to_change(&self) -> Result<At, Refusal> {
        let at = self.server()?;
        match self.shared().program.proxy(at.proxy).disabled {
            true => Err("Proxy is disabled.".into()),
            false => Ok(at),
        }
    }

    /// As [`Call::server`], for any text.
    ///
    /// # Errors
    /// As [`Call::server`].
    pub fn server_called(&self, name: &str) -> Result<At, Refusal> {
        let pair = name.split_once('/').filter(|(_, server)| !server.is_empty());
        let (backend, server) = pair.ok_or("Require 'backend/server'.")?;
        let (index, proxy) = self.find_backend(backend).ok_or("No such backend.")?;
        let at = find_server(&proxy, server).ok_or("No such server.")?;
        Ok(At { proxy: index, server: at })
    }

    /// The configuration of a server.
    pub fn config(&self, at: At) -> Held<'_, Server> {
        config(self.shared(), at)
    }
}

/// The configuration of the server at a place. The place comes from a look-up in the same program.
pub fn config(shared: &Shared, at: At) -> Held<'_, Server> {
    shared.program.server(at.proxy, at.server)
}

/// The proxy called `name` or numbered `#id` among those that `which` admits.
pub fn find_proxy<'s>(
    shared: &'s Shared,
    name: &str,
    which: impl Fn(&Proxy) -> bool,
) -> Option<(u32, Held<'s, Proxy>)> {
    let id = name.strip_prefix('#').and_then(|id| id.parse::<u32>().ok());
    let is_it = |p: &Proxy| which(p) && !p.is_removed() && id.map_or(&*p.name == name, |id| p.state.id == id);
    shared.program.proxies.numbered().find(|(_, p)| is_it(p))
}

/// The index of the server called `name` or numbered `#id`.
pub fn find_server(proxy: &Proxy, name: &str) -> Option<u32> {
    let id = name.strip_prefix('#').and_then(|id| id.parse::<u32>().ok());
    let is_it = |s: &Server| !s.state.is_removed() && id.map_or(&*s.name == name, |id| s.state.id == id);
    proxy.position(is_it)
}
