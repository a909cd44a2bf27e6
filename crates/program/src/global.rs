//! The `global` section.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::vars::VarRef;

use crate::listener::Bind;
use crate::log::Target;

/// Header names in lower case, and how they are to be written.
pub type CaseMap = Arc<[(Box<[u8]>, Box<[u8]>)]>;

/// What a configuration says to the master process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForMaster {
    /// `mworker-max-reloads`.
    pub max_reloads: Option<u32>,
    /// `master-worker no-exit-on-failure`.
    pub survives_failure: bool,
    /// `reload in-place`: a reload has the running worker adopt the configuration.
    pub in_place: bool,
}

/// Settings of the whole process.
pub struct Global {
    /// `maxconn`, computed when not given.
    pub maxconn: u32,
    /// `ulimit-n`, computed when not given.
    pub ulimit_n: u64,
    /// Descriptors beyond that for pipes that nobody asked for; 0 where `ulimit-n` says how many there may
    /// be.
    pub pipe_ends: u64,
    /// `nbthread`.
    pub threads: u32,
    /// `thread-groups`: how many groups they are told in.
    pub thread_groups: u32,
    /// `cpu-map`: for each worker its processors; empty: free.
    pub affinity: Vec<Vec<usize>>,
    /// `maxpipes`.
    pub maxpipes: u32,
    /// `daemon`.
    pub daemon: bool,
    /// Files of figures.
    pub figures: FigureFiles,
    /// `pidfile`.
    pub pidfile: Option<PathBuf>,
    /// What the master process heeds.
    pub master: ForMaster,
    /// `chroot`.
    pub chroot: Option<PathBuf>,
    /// `user`, `uid`.
    pub uid: Option<u32>,
    /// `group`, `gid`.
    pub gid: Option<u32>,
    /// `log` targets.
    pub log: Arc<[Target]>,
    /// `ocsp-update.*`.
    pub ocsp: Ocsp,
    /// `httpclient.ssl.ca-file`, `httpclient.ssl.verify`: how calls of the process's own speak TLS.
    pub client_tls: tls::store::ServerSpec,
    /// `log-tag`.
    pub log_tag: Box<str>,
    /// `log-send-hostname`: the name in lines that carry one.
    pub log_hostname: Option<Box<str>>,
    /// `stats socket`: where the runtime API listens.
    pub cli: Vec<Bind>,
    /// `stats timeout`.
    pub cli_timeout: Option<Duration>,
    /// `stats maxconn`.
    pub cli_maxconn: u32,
    /// `node`.
    pub node: Box<str>,
    /// `description`.
    pub description: Option<Box<str>>,
    /// `localpeer`.
    pub localpeer: Box<str>,
    /// `grace`.
    pub grace: Option<Duration>,
    /// `hard-stop-after`.
    pub hard_stop_after: Option<Duration>,
    /// `close-spread-time`.
    pub close_spread_time: Option<Duration>,
    /// `spread-checks`, percent.
    pub spread_checks: u32,
    /// `max-spread-checks`.
    pub max_spread_checks: Option<Duration>,
    /// `h1-case-adjust`: lower-case name to what is sent.
    pub case_adjust: CaseMap,
    /// `noreuseport` and its kin switch parts off.
    pub disabled: Switches,
    /// `busy-polling`.
    pub busy_polling: bool,
    /// `harden.reject-privileged-ports.tcp`.
    pub reject_privileged_ports: bool,
    /// `set-dumpable`.
    pub set_dumpable: bool,
    /// `insecure-setuid-wanted`.
    pub setuid_wanted: bool,
    /// `prealloc-fd`.
    pub prealloc_fd: bool,
    /// `pp2-never-send-local`.
    pub never_local: bool,
    /// `setcap`: names.
    pub capabilities: Vec<Box<str>>,
    /// `tune.renice.runtime`.
    pub nice: Option<i8>,
    /// `strict-limits`.
    pub strict_limits: bool,
    /// `warn-blocked-traffic-after`.
    pub warn_blocked_after: Duration,
    /// `h1-accept-payload-with-any-method`.
    pub h1_any_payload: bool,
    /// `h1-do-not-close-on-insecure-transfer-encoding`.
    pub h1_keep_insecure_te: bool,
    /// `http-err-codes`, `http-fail-codes`: which statuses count as errors and failures in stick tables.
    pub err_codes: StatusSet,
    /// See `err_codes`.
    pub fail_codes: StatusSet,
    /// `set-var`, `set-var-fmt`: variables of the process, set once when it starts, in order.
    pub set_vars: Vec<(VarRef, SetVar)>,
    /// `tune.*`.
    pub tune: Tune,
}

impl Global {
    /// What heads of HTTP/1 may be like.
    pub fn head_limits(&self) -> wire::http1::Limits {
        wire::http1::Limits {
            head: self.tune.most_read(),
            fields: self.tune.maxhdr,
            any_payload: self.h1_any_payload,
            insecure_coding: self.h1_keep_insecure_te,
        }
    }
}

/// Where the value of a variable of the process comes from.
pub enum SetVar {
    /// An expression over constants.
    Expr(lang::Expr),
    /// A format.
    Format(lang::LogFormat),
}

/// Parts that were switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// `nosplice`.
    pub splice: bool,
    /// `no-memory-trimming`: what was only needed to start is not given back to the system.
    pub trimming: bool,
    /// `noktls`.
    pub ktls: bool,
    /// `noreuseport`.
    pub reuseport: bool,
}

/// Where figures of other processes stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FigureFiles {
    /// Those to begin with (`stats-file`).
    pub first: Option<PathBuf>,
    /// Those that processes count together (`shm-stats-file`).
    pub shared: Option<PathBuf>,
    /// The most objects in that file (`shm-stats-file-max-objects`).
    pub most_shared: Option<usize>,
}

/// A set of status codes 100 to 599.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSet(pub Box<[u64; 8]>);

impl StatusSet {
    /// No status.
    pub fn empty() -> StatusSet {
        StatusSet(Box::new([0; 8]))
    }

    /// Whether a status is in the set.
    pub fn has(&self, status: u16) -> bool {
        let Some(bit) = status.checked_sub(100).filter(|b| *b < 500) else { return false };
        self.0[usize::from(bit / 64)] & (1 << (bit % 64)) != 0
    }

    /// Adds or removes a range.
    pub fn change(&mut self, from: u16, to: u16, present: bool) {
        for bit in from.max(100)..=to.min(599) {
            let bit = bit - 100;
            let word = &mut self.0[usize::from(bit / 64)];
            let mask = 1 << (bit % 64);
            if present { *word |= mask } else { *word &= !mask }
        }
    }
}

/// `tune.*`: the limits that exist so far.
#[derive(Clone, Debug)]
pub struct Tune {
    /// `dns-accept-family`: which addresses resolvers ask for.
    pub families: crate::names::Families,
    /// `tune.bufsize`.
    pub bufsize: usize,
    /// `tune.bufsize.large`, 0: none.
    pub large_bufsize: usize,
    /// `tune.maxrewrite`.
    pub maxrewrite: usize,
    /// `tune.maxaccept`, 0: no limit.
    pub maxaccept: u32,
    /// `tune.maxpollevents`.
    pub maxpollevents: u32,
    /// `tune.http.maxhdr`.
    pub maxhdr: usize,
    /// `tune.cli.max-payload-size`.
    pub cli_payload: usize,
    /// `tune.http.logurilen`.
    pub logurilen: usize,
    /// `tune.*glitches*`.
    pub glitches: Glitches,
    /// `tune.idle-pool.shared`.
    pub shared_pool: bool,
    /// `tune.pool-low-fd-ratio`, percent.
    pub pool_low_fd: u32,
    /// `tune.pool-high-fd-ratio`, percent.
    pub pool_high_fd: u32,
    /// `tune.rcvbuf.client`: bytes.
    pub rcvbuf_client: Option<u32>,
    /// `tune.rcvbuf.frontend`: bytes, of sockets for datagrams.
    pub rcvbuf_frontend: Option<u32>,
    /// `tune.rcvbuf.server`: bytes.
    pub rcvbuf_server: Option<u32>,
    /// `tune.notsent-lowat.client`: bytes.
    pub unsent_client: Option<u32>,
    /// `tune.notsent-lowat.server`: bytes.
    pub unsent_server: Option<u32>,
    /// `tune.sndbuf.client`: bytes.
    pub sndbuf_client: Option<u32>,
    /// `tune.sndbuf.server`: bytes.
    pub sndbuf_server: Option<u32>,
    /// `tune.pipesize`.
    pub pipesize: Option<usize>,
    /// `tune.idletimer`.
    pub idletimer: Duration,
    /// `tune.ssl.maxrecord`, 0: none.
    pub ssl_maxrecord: usize,
    /// `tune.ssl.hard-maxrecord`, 0: none.
    pub ssl_hard_maxrecord: usize,
    /// `tune.ssl.keyupdate-rate-limit`, 0: none.
    pub ssl_key_updates: u32,
    /// `tune.runqueue-depth`.
    pub runqueue_depth: u32,
    /// `tune.stick-counters`.
    pub stick_counters: u32,
    /// `tune.max-checks-per-thread`.
    pub max_checks: u32,
    /// `profiling.tasks`: whether the time of calls is measured, one of [`model::world::profiling`].
    pub profiling: u8,
    /// `jwt.decrypt_alg_list`: what is allowed; `None`: everything.
    pub jwt_algorithms: Option<Vec<&'static str>>,
    /// `jwt.decrypt_enc_list`: what is allowed; `None`: everything.
    pub jwt_encodings: Option<Vec<&'static str>>,
    /// `tune.h2.*`.
    pub h2: H2,
}

/// At how many glitches a connection of HTTP/1 ends, 0: never; those of HTTP/2 stand in [`H2Side`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Glitches {
    /// `tune.h1.fe.glitches-threshold`.
    pub front: u32,
    /// `tune.glitches.kill.cpu-usage`: below this use of its thread, in percent, no connection of any kind
    /// ends.
    pub cpu: u32,
}

/// `tune.h2.*`.
#[derive(Clone, Debug, Default)]
pub struct H2 {
    /// `tune.h2.header-table-size`; `None`: 4096.
    pub header_table: Option<u32>,
    /// `tune.h2.max-frame-size`; `None`: as `tune.bufsize`.
    pub frame: Option<u32>,
    /// What holds for both sides where a side says nothing.
    pub both: H2Side,
    /// `tune.h2.fe.*`.
    pub front: H2Side,
    /// `tune.h2.be.*`.
    pub back: H2Side,
    /// `tune.h2.fe.max-rst-at-once`, 0: no limit.
    pub resets_at_once: u32,
    /// `tune.h2.fe.max-total-streams`, 0: no limit.
    pub total_streams: u32,
    /// `tune.h2.log-errors`.
    pub log_errors: H2Log,
    /// `rq-load` of `tune.h2.fe.max-concurrent-streams`: the run queue above which fewer streams are offered;
    /// 0: never.
    pub load: u32,
    /// `min` of it: streams that are offered at least.
    pub load_min: u32,
    /// `tune.streams-elasticity`: streams that all clients' connections may be offered when there are
    /// `maxconn` of them, percent of that; 0: as many as each likes.
    pub elasticity: u32,
    /// `h2-workaround-bogus-websocket-clients`: WebSocket over streams is not offered.
    pub no_websocket: bool,
}

/// What `tune.h2` sets for one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct H2Side {
    /// `max-concurrent-streams`, 0: no limit.
    pub streams: Option<u32>,
    /// `initial-window-size`, bytes.
    pub window: Option<u32>,
    /// `rxbuf`, bytes.
    pub rxbuf: Option<u32>,
    /// `max-frames-at-once`, 0: no limit.
    pub frames_at_once: u32,
    /// `glitches-threshold`, 0: none.
    pub glitches: u32,
}

/// `tune.h2.log-errors`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum H2Log {
    None,
    /// What ends a connection.
    Connection,
    /// What ends a stream, too.
    #[default]
    Stream,
}

impl Tune {
    /// Most bytes of a buffer that what is read may take: `tune.maxrewrite` of `tune.bufsize` stay free for
    /// what rules add.
    pub fn most_read(&self) -> usize {
        self.bufsize.saturating_sub(self.maxrewrite)
    }
}

impl Default for Tune {
    fn default() -> Tune {
        Tune {
            families: Default::default(),
            bufsize: 16384,
            large_bufsize: 0,
            profiling: model::world::profiling::AUTO,
            jwt_algorithms: None,
            jwt_encodings: None,
            maxrewrite: 1024,
            maxaccept: 4,
            maxpollevents: 200,
            maxhdr: 101,
            cli_payload: 128 * 1024,
            logurilen: 1024,
            glitches: Glitches::default(),
            shared_pool: true,
            pool_low_fd: 20,
            pool_high_fd: 25,
            rcvbuf_client: None,
            rcvbuf_frontend: None,
            rcvbuf_server: None,
            unsent_client: None,
            unsent_server: None,
            sndbuf_client: None,
            sndbuf_server: None,
            pipesize: None,
            idletimer: Duration::from_secs(1),
            ssl_maxrecord: 0,
            ssl_hard_maxrecord: 0,
            ssl_key_updates: 100,
            runqueue_depth: 0,
            stick_counters: 3,
            max_checks: 0,
            h2: H2::default(),
        }
    }
}

/// How OCSP responses are kept fresh (`ocsp-update.*`).
#[derive(Clone, Copy, Debug)]
pub struct Ocsp {
    /// How often.
    pub pace: tls::store::Pace,
    /// `ocsp-update.disable`.
    pub disabled: bool,
    /// `ocsp-update.httpproxy`.
    pub proxy: Option<std::net::SocketAddr>,
    /// `httpclient.retries`: tries behind the first.
    pub retries: u32,
    /// `httpclient.timeout.connect`.
    pub connect: std::time::Duration,
    /// `httpclient.resolvers.prefer`: whether addresses of IPv4 are taken first.
    pub prefer_v4: bool,
    /// `httpclient.resolvers.id`: the section that names are looked up by, by index of the program; `None`:
    /// none are.
    pub resolvers: Option<u32>,
}

impl Default for Ocsp {
    fn default() -> Ocsp {
        let connect = std::time::Duration::from_secs(5);
        Ocsp {
            pace: Default::default(),
            disabled: false,
            proxy: None,
            retries: 3,
            connect,
            prefer_v4: false,
            resolvers: None,
        }
    }
}
