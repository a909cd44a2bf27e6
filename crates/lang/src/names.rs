//! Names in rules, resolved by whoever knows the whole configuration.

use std::sync::{Arc, OnceLock};

use model::vars::VarRef;
use model::{Proxy, Server};
use pattern::LiveSet;

use crate::arg::Kind;
use crate::cond::Acl;
use crate::waits::Waits;
use crate::words::Fault;

/// What a rule names and the whole configuration does not have.
///
/// Names are looked up when all lines are read: what is wrong with the words of any line comes before what is
/// missed. A parser that finds a name missing therefore notes it ([`Names::miss`]) and reads on, and makes
/// something that does nothing of it, for the configuration is refused at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Of an argument in parentheses.
    Argument {
        /// What is said of it, up to the end of its place: `unable to find table 'a' referenced in arg 1 of
        /// ...`.
        text: String,
        /// What is said behind the place and the proxy.
        behind: String,
        /// The argument stands in an ACL, which is said instead of the kind of line.
        acl: bool,
    },
    /// Of words of an action, a filter or a `stick` rule.
    Rule(String),
    /// Nothing that keeps the configuration from being used, but worth a warning.
    Remark(String),
    /// The same, of which the proxy is a part.
    Whole(String),
    /// A refusal that stands for itself.
    Refusal(String),
}

/// What extensions keep of the proxy at hand for lines further below.
pub type Shelf = Vec<Arc<dyn std::any::Any + Send + Sync>>;

/// The targets of `log` lines (`program::log::Target`, a list), known once everything is read.
pub type Loggers = Arc<OnceLock<Box<dyn std::any::Any + Send + Sync>>>;

/// A backend as the agent of an SPOE filter names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agents {
    /// Its number.
    At(u32),
    /// There is none of this name.
    Unknown,
    /// It is one of another mode.
    OtherMode,
}

/// Stands in the text of a fault about an argument for the place of the argument, where that is not at the
/// end.
pub const PLACE: &str = "\u{2026}";

/// The resolver of names: `compile` implements it with the configuration at hand.
///
/// Proxies, servers and tables may be declared after the rule that names them, so `compile` declares
/// all sections before it parses any rule.
///
/// A fault about a name that an argument holds ends where the place of the argument follows (`...
/// referenced`), or has [`PLACE`] there.
pub trait Names {
    /// Notes that something is nowhere to be found. The line at hand is read on.
    fn miss(&mut self, missing: Missing);

    /// Notes what a format waits for: when log lines are written follows from all formats of a proxy.
    fn format_waits(&mut self, waits: Waits) {
        let _ = waits;
    }

    /// Notes that something looks at messages of HTTP, in a proxy of whatever mode.
    fn looks_at_http(&mut self) {}

    /// A proxy with the role of a frontend; `None`: the current one.
    ///
    /// # Errors
    /// No such frontend.
    fn frontend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault>;

    /// A proxy with the role of a backend; `None`: the current one.
    ///
    /// # Errors
    /// No such backend.
    fn backend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault>;

    /// A server, `backend/server` or `server` of the current proxy.
    ///
    /// # Errors
    /// No such server.
    fn server(&self, name: &str) -> Result<(Arc<Proxy>, Arc<Server>), Fault>;

    /// The slot of a variable, given one on first mention.
    ///
    /// # Errors
    /// A name without a scope, or with characters that names may not have.
    fn variable(&mut self, name: &str) -> Result<VarRef, Fault>;

    /// A named ACL of the current proxy (or a predefined one).
    ///
    /// # Errors
    /// No such ACL.
    fn acl(&mut self, name: &str) -> Result<Arc<Acl>, Fault>;

    /// A map or ACL file, loaded once however often it is named, as this kind of match sees it. `map` says
    /// that its lines have values, which an ACL may leave aside (`-M`).
    ///
    /// # Errors
    /// What is wrong with the reference, the file, or a line of it.
    fn patterns(
        &mut self,
        reference: &str,
        face: pattern::Face,
        map: bool,
    ) -> Result<Arc<pattern::View>, Fault>;

    /// The set for the patterns of an ACL that stand in its line, under the number that `-u` asks for.
    /// `criterion` is what the ACL looks at. It has no patterns yet, or those of the same line of a
    /// `defaults` section.
    ///
    /// # Errors
    /// The number is taken.
    fn inline(&mut self, criterion: &str, number: Option<u32>) -> Result<Arc<LiveSet>, Fault> {
        let _ = (criterion, number);
        Ok(LiveSet::new("", pattern::Shape::Acl))
    }

    /// The file that an action changes. It may be named by rules further below, so it is known when all rules
    /// are; it stays unknown if no rule looks it up.
    fn changed(&mut self, reference: &str) -> Arc<OnceLock<Arc<LiveSet>>>;

    /// A user list or a stick table, by kind and name, for the entries that use them.
    ///
    /// # Errors
    /// None of that name.
    fn object(
        &self,
        kind: crate::arg::Kind,
        name: Option<&str>,
    ) -> Result<Arc<dyn std::any::Any + Send + Sync>, Fault>;

    /// The number under which the engine finds a backend that is chosen statically (`use_backend`).
    ///
    /// # Errors
    /// No such backend.
    fn backend_index(&self, name: &str) -> Result<u32, Fault>;

    /// The backend that `mirror` names: its state, and the number under which the engine finds it.
    ///
    /// # Errors
    /// There is none, or it is none of HTTP.
    fn mirror(&self, name: &str) -> Result<(Arc<Proxy>, u32), Fault> {
        Err(Fault::new(format!("unable to find backend '{name}'")))
    }

    /// The number under which the engine finds a `resolvers` section.
    ///
    /// # Errors
    /// No such section.
    fn resolvers(&self, name: &str) -> Result<u32, Fault> {
        Err(Fault::new(format!("Can't find resolvers section '{name}' for do-resolve action")))
    }

    /// The complete answer of an `http-errors` section for a status, if it has one.
    ///
    /// # Errors
    /// No such section.
    fn error_file(&mut self, section: &str, status: u16) -> Result<Option<Arc<[u8]>>, Fault>;

    /// Contents of a file named in a rule (`file`, `lf-file`).
    ///
    /// # Errors
    /// What the system says.
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, Fault>;

    /// The slot of a declared capture (`declare capture`), or a new anonymous one of this length.
    ///
    /// # Errors
    /// No such slot on this side.
    fn capture(&mut self, response: bool, slot: CaptureSlot) -> Result<u16, Fault>;

    /// The length that a declared capture keeps, if it is known.
    fn capture_length(&self, _response: bool, _id: u16) -> Option<usize> {
        None
    }

    /// How many entries of stick tables may be tracked at once (`tune.stick-counters`).
    fn stick_counters(&self) -> usize {
        3
    }

    /// Whether there is a service of this name (`use-service`).
    fn service(&self, _name: &str) -> bool {
        false
    }

    /// A bandwidth limitation filter of the current proxy (`filter bwlim-in`, `filter bwlim-out`).
    ///
    /// # Errors
    /// No such filter.
    fn bandwidth(&self, name: &str) -> Result<Arc<crate::bandwidth::Bwlim>, Fault> {
        Err(Fault::new(format!(
            "unable to find bwlim filter '{name}' referenced by set-bandwidth-limit rule"
        )))
    }

    /// A cache that the rule at hand uses. Where there is none of this name it is noted.
    fn cache(&mut self, _name: &str) -> Option<crate::caching::NamedCache> {
        None
    }

    /// The number of a log profile (`do-log profile NAME`).
    ///
    /// # Errors
    /// No such profile.
    fn log_profile(&mut self, name: &str) -> Result<u32, Fault> {
        Err(Fault::new(format!("do-log action: profile '{name}' is invalid")))
    }

    /// The log-format text of an `environment`-like alias (`HAPROXY_HTTP_LOG_FMT` and its kin).
    fn environment(&self, name: &str) -> Option<Vec<u8>>;

    /// The certificates that rules may name.
    fn tls_store(&self) -> Option<Arc<tls::Store>> {
        None
    }

    /// Whether the current proxy is in HTTP mode.
    fn is_http(&self) -> bool;

    /// Whether there are large buffers (`tune.bufsize.large`).
    fn large_buffers(&self) -> bool {
        false
    }

    /// Whether the rule at hand stands in a proxy that has no such side: no frontend ([`Side::Request`]), no
    /// backend. What stands in `defaults` is for whoever inherits it.
    fn lacks(&self, _side: crate::env::Side) -> bool {
        false
    }

    /// Whether the rule at hand stands in `defaults`.
    fn in_defaults(&self) -> bool {
        false
    }

    /// Whether `expose-experimental-directives` was said.
    fn experimental(&self) -> bool {
        false
    }

    /// The section at hand in the words of messages, `frontend 'web'`.
    fn owner(&self) -> String {
        String::new()
    }

    /// A warning about the line at hand.
    fn warn(&mut self, text: String);

    /// A complaint about another file, which a line at hand names; `fatal`: nothing starts.
    fn aside(&mut self, fatal: bool, text: String) {
        let _ = (fatal, text);
    }

    /// What extensions keep of the proxy at hand; none where rules are read for others (`defaults`).
    fn shelf(&mut self) -> Option<&mut Shelf> {
        None
    }

    /// The backend with the servers of an agent (`use-backend` of `spoe-agent`). One in TCP mode becomes one
    /// of `mode spop`.
    fn agents(&mut self, name: &str) -> Agents {
        let _ = name;
        Agents::Unknown
    }

    /// The targets of `log` lines in a file of an extension: whether `no` stood in front of each line, and
    /// its other words. `label` names the section for messages.
    ///
    /// # Errors
    /// Which line is wrong, and why.
    fn loggers(&mut self, lines: &[(bool, Vec<Vec<u8>>)], label: &str) -> Result<Loggers, (usize, String)> {
        let _ = (lines, label);
        Ok(Loggers::default())
    }

    /// The size of a buffer, in bytes (`tune.bufsize`).
    fn buffer_size(&self) -> usize {
        16384
    }
}

/// Which capture is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureSlot {
    /// A declared one.
    Id(u16),
    /// A new one of this length.
    Length(u32),
}

/// The stick table of this name, or that of the current proxy.
///
/// # Errors
/// There is none.
pub fn table(names: &dyn Names, name: Option<&str>) -> Result<Arc<::stick::Table>, Fault> {
    let found = names.object(Kind::Table, name)?;
    found.downcast::<::stick::Table>().map_err(|_| Fault::new("no such table"))
}
