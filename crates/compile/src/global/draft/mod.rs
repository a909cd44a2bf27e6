//! The `global` section while it is read.

mod buffers;
mod groups;
mod tls;

pub(crate) use buffers::Buffers;
pub(crate) use groups::Groups;
pub(crate) use tls::TlsGlobal;

use base::threads::ThreadGroups;
use std::path::PathBuf;
use std::time::Duration;

use program::global::{ForMaster, StatusSet, Switches, Tune};
use program::listener::UnixRights;
use syntax::Span;

use crate::draft::{BindDraft, LineRef, LogDraft, Shards};
use crate::keyword::{Keyword, Places};
use crate::statement::{Statement, Step};

/// Names in lower case, and how they are sent.
pub(crate) type CasePairs = Vec<(Box<[u8]>, Box<[u8]>)>;

/// Threads, and the processors that they run on.
pub(crate) type CpuMap = Vec<CpuMapLine>;

/// A `cpu-map` line, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct CpuMapLine {
    /// Groups.
    pub groups: Vec<u32>,
    /// Threads of these, from 1.
    pub threads: Vec<u32>,
    /// Processors.
    pub cpus: Vec<usize>,
}

impl CpuMapLine {
    /// Whether it is about a thread, counted from 0.
    pub(crate) fn names(&self, thread: u32, groups: &ThreadGroups) -> bool {
        self.groups.iter().any(|group| {
            let members = groups.threads(*group);
            members.contains(&thread) && self.threads.contains(&(thread - members.start + 1))
        })
    }
}

/// What is forgotten that servers and backends might be made from at run time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Purge {
    /// `defaults` sections.
    pub proxies: bool,
    /// `default-server` lines.
    pub servers: bool,
}

/// What was read about Lua files so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lua {
    /// Nothing.
    Unseen,
    /// Where modules are.
    Prepended,
    /// A file.
    Loaded,
}

/// The section while it is read.
pub(crate) struct GlobalDraft {
    /// `anonkey`.
    pub anon_key: u32,
    /// `maxcomprate` and its like.
    pub compression: model::compression::Terms,
    /// `tune.defaults.purge`.
    pub purge: Purge,
    pub threads: Option<u32>,
    /// The settings that count once and have their value.
    pub once: Vec<&'static str>,
    /// `thread-groups` and its kin.
    pub groups: Groups,
    /// `tune.bufsize` and its kin.
    pub buffers: Buffers,
    pub maxconn: Option<u32>,
    pub ulimit_n: Option<u64>,
    pub fd_hard_limit: Option<u64>,
    pub maxconnrate: u32,
    pub maxsessrate: u32,
    pub maxpipes: u32,
    pub cpu_map: CpuMap,
    pub daemon: bool,
    pub pidfile: Option<PathBuf>,
    pub figures: program::global::FigureFiles,
    pub master: ForMaster,
    pub chroot: Option<PathBuf>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub log: LogDraft,
    pub log_tag: Option<Box<str>>,
    pub log_hostname: Option<Box<str>>,
    pub cli: Vec<BindDraft>,
    pub cli_timeout: Option<Duration>,
    pub cli_maxconn: u32,
    pub node: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub localpeer: Option<Box<str>>,
    /// Whether `-L` named this peer, so that no line may.
    pub localpeer_given: bool,
    pub grace: Option<Duration>,
    pub hard_stop_after: Option<Duration>,
    pub close_spread_time: Option<Duration>,
    pub spread_checks: u32,
    pub max_spread_checks: Option<Duration>,
    pub case_adjust: CasePairs,
    pub case_adjust_file: Option<(PathBuf, Span)>,
    pub disabled: Switches,
    pub busy_polling: bool,
    pub reject_privileged_ports: bool,
    pub set_dumpable: bool,
    pub server_state_base: Option<PathBuf>,
    pub server_state_file: Option<PathBuf>,
    pub external_check: bool,
    /// `external-check preserve-env`.
    pub external_check_env: bool,
    pub insecure_fork_wanted: bool,
    pub setuid_wanted: bool,
    pub prealloc_fd: bool,
    pub never_local: bool,
    /// `setcap`.
    pub capabilities: Vec<Box<str>>,
    /// `tune.renice.runtime`.
    pub nice: Option<i8>,
    pub strict_limits: bool,
    pub warn_blocked_after: Duration,
    pub h1_any_payload: bool,
    pub h1_keep_insecure_te: bool,
    pub err_codes: StatusSet,
    pub fail_codes: StatusSet,
    pub zero_warning: bool,
    /// What has been read about Lua files.
    pub lua: Lua,
    /// `quiet`.
    pub quiet: bool,
    /// `expose-experimental-directives`.
    pub experimental: bool,
    pub unix_bind: UnixRights,
    pub unix_prefix: Box<[u8]>,
    /// `set-var`, `set-var-fmt` lines.
    pub vars: Vec<LineRef>,
    pub tune: Tune,
    /// `tune.listener.default-shards`.
    pub default_shards: Shards,
    /// `tune.http.cookielen`.
    pub cookielen: usize,
    /// `tune.vars.*-max-size`: global, proc, sess, txn, reqres, check; 0: none.
    pub vars_max: [usize; 6],
    pub tls: TlsGlobal,
}

impl Default for GlobalDraft {
    fn default() -> GlobalDraft {
        let mut err_codes = StatusSet::empty();
        err_codes.change(400, 499, true);
        let mut fail_codes = StatusSet::empty();
        fail_codes.change(500, 599, true);
        fail_codes.change(501, 501, false);
        fail_codes.change(505, 505, false);
        GlobalDraft {
            default_shards: Shards::default(),
            anon_key: 0,
            compression: Default::default(),
            purge: Purge::default(),
            threads: None,
            once: Vec::new(),
            groups: Groups::default(),
            buffers: Buffers::default(),
            maxconn: None,
            ulimit_n: None,
            fd_hard_limit: None,
            maxconnrate: 0,
            maxsessrate: 0,
            maxpipes: 0,
            cpu_map: Vec::new(),
            daemon: false,
            pidfile: None,
            figures: Default::default(),
            master: ForMaster::default(),
            chroot: None,
            uid: None,
            gid: None,
            log: LogDraft::default(),
            log_tag: None,
            log_hostname: None,
            cli: Vec::new(),
            cli_timeout: Some(Duration::from_secs(10)),
            cli_maxconn: 10,
            node: None,
            description: None,
            localpeer: None,
            localpeer_given: false,
            grace: None,
            hard_stop_after: None,
            close_spread_time: None,
            spread_checks: 0,
            max_spread_checks: None,
            case_adjust: Vec::new(),
            case_adjust_file: None,
            disabled: Switches::default(),
            busy_polling: false,
            reject_privileged_ports: false,
            set_dumpable: false,
            server_state_base: None,
            server_state_file: None,
            external_check: false,
            external_check_env: false,
            insecure_fork_wanted: false,
            setuid_wanted: false,
            prealloc_fd: false,
            never_local: false,
            capabilities: Vec::new(),
            nice: None,
            strict_limits: true,
            warn_blocked_after: Duration::from_millis(100),
            h1_any_payload: false,
            h1_keep_insecure_te: false,
            err_codes,
            fail_codes,
            zero_warning: false,
            lua: Lua::Unseen,
            quiet: false,
            experimental: false,
            unix_bind: UnixRights::default(),
            unix_prefix: Box::default(),
            vars: Vec::new(),
            tune: Tune::default(),
            cookielen: 63,
            vars_max: [0; 6],
            tls: TlsGlobal::default(),
        }
    }
}

/// An entry of a global table.
pub(crate) const fn entry(
    name: &'static str,
    set: fn(&mut Statement<'_>, &mut GlobalDraft) -> Step,
    doc: &'static str,
    example: &'static str,
) -> Keyword<GlobalDraft> {
    Keyword { name, places: Places(0), set, doc, example, default: "", once: None, idle: false }
}

impl GlobalDraft {
    /// The section before its first line, as the command line has it.
    pub(crate) fn of(options: &crate::Options) -> GlobalDraft {
        let mut draft = GlobalDraft { insecure_fork_wanted: options.fork_wanted, ..GlobalDraft::default() };
        draft.localpeer_given = options.localpeer.is_some();
        if options.trust_servers {
            draft.tls.server_verify = ::tls::words::Verify::None;
        }
        draft
    }
}
