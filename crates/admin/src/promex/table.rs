//! What the columns of the statistics are called as metrics, and for which objects they are shown.

use super::asked::Scope;
use crate::stats::row::Kind;

/// How a figure becomes lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A number, NaN where the object has none.
    Number,
    /// A number that only proxies of HTTP have.
    Http,
    /// Responses of this class, which only proxies of HTTP have.
    Class(&'static str),
    /// Milliseconds, shown as seconds.
    Seconds,
    /// A number, 0 for none, of servers that have a figure in this column.
    With(&'static str),
    /// The same of a time.
    SecondsWith(&'static str),
    /// A line for each state that the object may be in, 1 in the one that it is in.
    State,
    /// The same for the results of checks.
    Check,
    /// How many servers are in each state.
    Servers,
    /// How many of them had each result of their last check.
    Checks,
}

/// One metric of objects.
pub(super) struct Metric {
    /// The column of the statistics that it shows.
    pub column: &'static str,
    /// Its name behind that of the scope.
    pub name: &'static str,
    /// The objects that have it, by their first letters.
    pub kinds: &'static str,
    /// Whether it only grows.
    pub counter: bool,
    /// How it is written.
    pub form: Form,
}

/// Kinds of objects in the order in which they are written.
pub(super) const KINDS: [(Kind, Scope, &str); 4] = [
    (Kind::Frontend, Scope::Frontend, "frontend"),
    (Kind::Listener, Scope::Listener, "listener"),
    (Kind::Backend, Scope::Backend, "backend"),
    (Kind::Server, Scope::Server, "server"),
];

/// States that a kind of object may be in.
pub(super) fn states(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Frontend | Kind::Backend => &["DOWN", "UP"],
        Kind::Listener => &["WAITING", "OPEN", "FULL"],
        Kind::Server => &["DOWN", "UP", "MAINT", "DRAIN", "NOLB"],
    }
}

/// Results of checks.
pub(super) const CHECKS: [&str; 16] = [
    "HANA", "SOCKERR", "L4OK", "L4TOUT", "L4CON", "L6OK", "L6TOUT", "L6RSP", "L7TOUT", "L7RSP", "L7OK",
    "L7OKC", "L7STS", "PROCERR", "PROCTOUT", "PROCOK",
];

/// The family of a protocol's column, by which it was registered with HAProxy's statistics.
pub(super) fn module(column: &str) -> &'static str {
    match column.split('_').next() {
        Some("h1") => "h1",
        Some("h2") => "h2",
        Some("ssl") => "ssl",
        Some("quic") => "quic",
        _ => "h3",
    }
}

const fn gauge(column: &'static str, name: &'static str, kinds: &'static str) -> Metric {
    Metric { column, name, kinds, counter: false, form: Form::Number }
}

const fn count(column: &'static str, name: &'static str, kinds: &'static str) -> Metric {
    Metric { column, name, kinds, counter: true, form: Form::Number }
}

impl Metric {
    const fn form(mut self, form: Form) -> Metric {
        self.form = form;
        self
    }
}

/// The metrics of objects, in the order of their columns.
pub(super) const METRICS: &[Metric] = &[
    gauge("qcur", "current_queue", "BS"),
    gauge("qmax", "max_queue", "BS"),
    gauge("scur", "current_sessions", "FLBS"),
    gauge("smax", "max_sessions", "FLBS"),
    gauge("slim", "limit_sessions", "FLBS"),
    count("stot", "sessions_total", "FLBS"),
    count("bin", "bytes_in_total", "FLBS"),
    count("bout", "bytes_out_total", "FLBS"),
    count("dreq", "requests_denied_total", "FLB"),
    count("dresp", "responses_denied_total", "FLBS"),
    count("ereq", "request_errors_total", "FL"),
    count("econ", "connection_errors_total", "BS"),
    count("eresp", "response_errors_total", "BS"),
    count("wretr", "retry_warnings_total", "BS"),
    count("wredis", "redispatch_warnings_total", "BS"),
    gauge("status", "status", "FLBS").form(Form::State),
    gauge("weight", "weight", "BS"),
    gauge("act", "active_servers", "B"),
    gauge("act", "active", "S"),
    gauge("bck", "backup_servers", "B"),
    gauge("bck", "backup", "S"),
    count("chkfail", "check_failures_total", "S"),
    count("chkdown", "check_up_down_total", "BS"),
    gauge("lastchg", "check_last_change_seconds", "BS"),
    count("downtime", "downtime_seconds_total", "BS"),
    gauge("qlimit", "queue_limit", "S"),
    gauge("throttle", "current_throttle", "S"),
    count("lbtot", "loadbalanced_total", "BS"),
    gauge("rate", "current_session_rate", "FBS"),
    gauge("rate_lim", "limit_session_rate", "F"),
    gauge("rate_max", "max_session_rate", "FBS"),
    gauge("check_status", "check_status", "S").form(Form::Check),
    gauge("check_code", "check_code", "S").form(Form::With("check_status")),
    gauge("check_duration", "check_duration_seconds", "S").form(Form::SecondsWith("check_status")),
    count("hrsp_1xx", "http_responses_total", "FBS").form(Form::Class("1xx")),
    count("hrsp_2xx", "http_responses_total", "FBS").form(Form::Class("2xx")),
    count("hrsp_3xx", "http_responses_total", "FBS").form(Form::Class("3xx")),
    count("hrsp_4xx", "http_responses_total", "FBS").form(Form::Class("4xx")),
    count("hrsp_5xx", "http_responses_total", "FBS").form(Form::Class("5xx")),
    count("hrsp_other", "http_responses_total", "FBS").form(Form::Class("other")),
    gauge("req_rate_max", "http_requests_rate_max", "F").form(Form::Http),
    count("req_tot", "http_requests_total", "FBS").form(Form::Http),
    count("cli_abrt", "client_aborts_total", "BS"),
    count("srv_abrt", "server_aborts_total", "BS"),
    count("comp_in", "http_comp_bytes_in_total", "FB").form(Form::Http),
    count("comp_out", "http_comp_bytes_out_total", "FB").form(Form::Http),
    count("comp_byp", "http_comp_bytes_bypassed_total", "FB").form(Form::Http),
    count("comp_rsp", "http_comp_responses_total", "FB").form(Form::Http),
    gauge("lastsess", "last_session_seconds", "BS"),
    gauge("qtime", "queue_time_average_seconds", "BS").form(Form::Seconds),
    gauge("ctime", "connect_time_average_seconds", "BS").form(Form::Seconds),
    gauge("rtime", "response_time_average_seconds", "BS").form(Form::Seconds),
    gauge("ttime", "total_time_average_seconds", "BS").form(Form::Seconds),
    gauge("agent_status", "agent_status", "S").form(Form::Check),
    gauge("agent_code", "agent_code", "S").form(Form::With("agent_status")),
    gauge("agent_duration", "agent_duration_seconds", "S").form(Form::SecondsWith("agent_status")),
    gauge("conn_rate_max", "connections_rate_max", "F"),
    count("conn_tot", "connections_total", "FL"),
    count("intercepted", "intercepted_requests_total", "F").form(Form::Http),
    count("dcon", "denied_connections_total", "FL"),
    count("dses", "denied_sessions_total", "FL"),
    count("wrew", "failed_header_rewriting_total", "FLBS"),
    count("connect", "connection_attempts_total", "BS"),
    count("reuse", "connection_reuses_total", "BS"),
    count("cache_lookups", "http_cache_lookups_total", "FB").form(Form::Http),
    count("cache_hits", "http_cache_hits_total", "FB").form(Form::Http),
    gauge("srv_icur", "idle_connections_current", "S"),
    gauge("src_ilim", "idle_connections_limit", "S"),
    gauge("qtime_max", "max_queue_time_seconds", "BS").form(Form::Seconds),
    gauge("ctime_max", "max_connect_time_seconds", "BS").form(Form::Seconds),
    gauge("rtime_max", "max_response_time_seconds", "BS").form(Form::Seconds),
    gauge("ttime_max", "max_total_time_seconds", "BS").form(Form::Seconds),
    count("eint", "internal_errors_total", "FLBS"),
    gauge("idle_conn_cur", "unsafe_idle_connections_current", "S"),
    gauge("safe_conn_cur", "safe_idle_connections_current", "S"),
    gauge("used_conn_cur", "used_connections_current", "S"),
    gauge("need_conn_est", "need_connections_current", "S"),
    gauge("uweight", "uweight", "BS"),
    gauge("agg_server_status", "agg_server_status", "B").form(Form::Servers),
    gauge("agg_server_check_status", "agg_server_check_status", "B").form(Form::Servers),
    gauge("agg_check_status", "agg_check_status", "B").form(Form::Checks),
    gauge("priv_idle_cur", "private_idle_connections_current", "S"),
    count("reqbin", "req_bytes_in_total", "FLBS"),
    count("reqbout", "req_bytes_out_total", "FLBS"),
    count("resbin", "res_bytes_in_total", "FLBS"),
    count("resbout", "res_bytes_out_total", "FLBS"),
    count("cache_hint_hits", "http_cache_hint_hits_total", "FB").form(Form::Http),
];

/// How a figure of the process is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// As a gauge.
    Gauge,
    /// As a counter.
    Counter,
    /// As the text of this label.
    Label(&'static str),
}

/// The metrics of the process: a name of `show info`, the name of the metric, how it is shown.
pub(super) const PROCESS: &[(&str, &str, Show)] = &[
    ("Nbthread", "nbthread", Show::Gauge),
    ("Nbproc", "nbproc", Show::Gauge),
    ("Process_num", "relative_process_id", Show::Gauge),
    ("Uptime_sec", "uptime_seconds", Show::Gauge),
    ("PoolFailed", "pool_failures_total", Show::Counter),
    ("Ulimit-n", "max_fds", Show::Gauge),
    ("Maxsock", "max_sockets", Show::Gauge),
    ("Maxconn", "max_connections", Show::Gauge),
    ("Hard_maxconn", "hard_max_connections", Show::Gauge),
    ("CurrConns", "current_connections", Show::Gauge),
    ("CumConns", "connections_total", Show::Counter),
    ("CumReq", "requests_total", Show::Counter),
    ("MaxSslConns", "max_ssl_connections", Show::Gauge),
    ("CurrSslConns", "current_ssl_connections", Show::Gauge),
    ("CumSslConns", "ssl_connections_total", Show::Counter),
    ("Maxpipes", "max_pipes", Show::Gauge),
    ("PipesUsed", "pipes_used_total", Show::Counter),
    ("PipesFree", "pipes_free_total", Show::Counter),
    ("ConnRate", "current_connection_rate", Show::Gauge),
    ("ConnRateLimit", "limit_connection_rate", Show::Gauge),
    ("MaxConnRate", "max_connection_rate", Show::Gauge),
    ("SessRate", "current_session_rate", Show::Gauge),
    ("SessRateLimit", "limit_session_rate", Show::Gauge),
    ("MaxSessRate", "max_session_rate", Show::Gauge),
    ("SslRate", "current_ssl_rate", Show::Gauge),
    ("SslRateLimit", "limit_ssl_rate", Show::Gauge),
    ("MaxSslRate", "max_ssl_rate", Show::Gauge),
    ("SslFrontendKeyRate", "current_frontend_ssl_key_rate", Show::Gauge),
    ("SslFrontendMaxKeyRate", "max_frontend_ssl_key_rate", Show::Gauge),
    ("SslFrontendSessionReuse_pct", "frontend_ssl_reuse", Show::Gauge),
    ("SslBackendKeyRate", "current_backend_ssl_key_rate", Show::Gauge),
    ("SslBackendMaxKeyRate", "max_backend_ssl_key_rate", Show::Gauge),
    ("SslCacheLookups", "ssl_cache_lookups_total", Show::Counter),
    ("SslCacheMisses", "ssl_cache_misses_total", Show::Counter),
    ("CompressBpsIn", "http_comp_bytes_in_total", Show::Counter),
    ("CompressBpsOut", "http_comp_bytes_out_total", Show::Counter),
    ("CompressBpsRateLim", "limit_http_comp", Show::Gauge),
    ("ZlibMemUsage", "current_zlib_memory", Show::Gauge),
    ("MaxZlibMemUsage", "max_zlib_memory", Show::Gauge),
    ("Tasks", "current_tasks", Show::Gauge),
    ("Run_queue", "current_run_queue", Show::Gauge),
    ("Idle_pct", "idle_time_percent", Show::Gauge),
    ("node", "node", Show::Label("node")),
    ("description", "description", Show::Label("desc")),
    ("Stopping", "stopping", Show::Gauge),
    ("Jobs", "jobs", Show::Gauge),
    ("Unstoppable Jobs", "unstoppable_jobs", Show::Gauge),
    ("Listeners", "listeners", Show::Gauge),
    ("ActivePeers", "active_peers", Show::Gauge),
    ("ConnectedPeers", "connected_peers", Show::Gauge),
    ("DroppedLogs", "dropped_logs_total", Show::Counter),
    ("BusyPolling", "busy_polling_enabled", Show::Gauge),
    ("FailedResolutions", "failed_resolutions", Show::Counter),
    ("TotalBytesOut", "bytes_out_total", Show::Counter),
    ("TotalSplicedBytesOut", "spliced_bytes_out_total", Show::Counter),
    ("BytesOutRate", "bytes_out_rate", Show::Gauge),
    ("CumRecvLogs", "recv_logs_total", Show::Counter),
    ("Build info", "build_info", Show::Label("version")),
    ("Memmax_bytes", "max_memory_bytes", Show::Gauge),
    ("PoolAlloc_bytes", "pool_allocated_bytes", Show::Gauge),
    ("PoolUsed_bytes", "pool_used_bytes", Show::Gauge),
    ("Start_time_sec", "start_time_seconds", Show::Gauge),
    ("TotalWarnings", "total_warnings", Show::Counter),
    ("PatternsAdded", "patterns_added_total", Show::Gauge),
    ("PatternsFreed", "patterns_freed_total", Show::Gauge),
    ("NbThreadGroups", "nb_thread_groups", Show::Gauge),
];
