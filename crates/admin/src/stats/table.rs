//! The table of statistics: each figure once, with its column, what it means, and how it is read.
//!
//! The position in the table is the column of the CSV; names, order and tags are those that tools for HAProxy 3.5
//! know (management manual, 9.1 and 9.2). Behind the general figures stand those of protocols ([`PROTOCOLS`]);
//! in the CSV a column called `-` divides the two.

use std::sync::atomic::Ordering::Relaxed;

use super::protocols::PROTOCOLS;
use super::read::*;
use super::row::{Figure, Kind, Row};
use super::value::{Tag, Value};

/// One figure.
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Nature, see [`Column::tag_for`].
    pub tag: Tag,
    /// What it means.
    pub about: &'static str,
    /// Reads it.
    pub read: fn(&Row<'_>) -> Value,
}

impl Column {
    /// Its nature for a kind of object: a few differ.
    pub fn tag_for(&self, kind: Kind) -> Tag {
        match (self.name, kind) {
            ("act" | "bck", Kind::Server) => "SGPV",
            ("rate_max", Kind::Backend) => "MGPV",
            _ => self.tag,
        }
    }
}

/// All columns with their positions.
pub fn columns() -> impl Iterator<Item = (usize, &'static Column)> {
    COLUMNS.iter().chain(PROTOCOLS).enumerate()
}

/// The general figures.
pub const COLUMNS: &[Column] = &[
    Column {
        name: "pxname",
        tag: "KNSV",
        about: "Name of the proxy",
        read: |r| r.proxy.name.to_string().into(),
    },
    Column {
        name: "svname",
        tag: "KNSV",
        about: "Name of the server or listener, FRONTEND or BACKEND",
        read: |r| r.name().into(),
    },
    Column {
        name: "qcur",
        tag: "MGPV",
        about: "Requests that wait",
        read: |r| gauge(r, |b| &b.queued, |s| &s.queued),
    },
    Column {
        name: "qmax",
        tag: "MMPV",
        about: "Most requests that waited",
        read: |r| gauge(r, |b| &b.queued_max, |s| &s.queued_max),
    },
    Column { name: "scur", tag: "MGPV", about: "Sessions now", read: |r| current(r) },
    Column { name: "smax", tag: "MMPV", about: "Most sessions at a time", read: |r| current_max(r) },
    Column { name: "slim", tag: "CLPV", about: "Limit of sessions", read: |r| limit(r) },
    Column {
        name: "stot",
        tag: "MCPP",
        about: "Sessions so far",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.sessions),
                back: Some(|c| &c.sessions),
                server: Some(|c| &c.sessions),
                listener: Some(|c| &c.sessions),
            })
        },
    },
    Column {
        name: "bin",
        tag: "MCPP",
        about: "Bytes from clients",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.bytes_in),
                back: Some(|c| &c.bytes_in),
                server: Some(|c| &c.bytes_in),
                listener: Some(|c| &c.bytes_in),
            })
        },
    },
    Column {
        name: "bout",
        tag: "MCPP",
        about: "Bytes to clients",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.bytes_out),
                back: Some(|c| &c.bytes_out),
                server: Some(|c| &c.bytes_out),
                listener: Some(|c| &c.bytes_out),
            })
        },
    },
    Column {
        name: "dreq",
        tag: "MCPP",
        about: "Requests denied",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.denied_req),
                back: Some(|c| &c.denied_req),
                listener: Some(|c| &c.denied_req),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "dresp",
        tag: "MCPP",
        about: "Responses denied",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.denied_resp),
                back: Some(|c| &c.denied_resp),
                server: Some(|c| &c.denied_resp),
                listener: Some(|c| &c.denied_resp),
            })
        },
    },
    Column {
        name: "ereq",
        tag: "MCPP",
        about: "Bad requests",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.req_errors),
                listener: Some(|c| &c.req_errors),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "econ",
        tag: "MCPP",
        about: "Connections to servers that failed",
        read: |r| {
            r.sum(Figure {
                back: Some(|c| &c.conn_errors),
                server: Some(|c| &c.conn_errors),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "eresp",
        tag: "MCPP",
        about: "Bad responses",
        read: |r| {
            r.sum(Figure {
                back: Some(|c| &c.resp_errors),
                server: Some(|c| &c.resp_errors),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "wretr",
        tag: "MCPP",
        about: "Connections to servers that were tried again",
        read: |r| {
            r.sum(Figure { back: Some(|c| &c.retries), server: Some(|c| &c.retries), ..Figure::default() })
        },
    },
    Column {
        name: "wredis",
        tag: "MCPP",
        about: "Requests sent to another server",
        read: |r| {
            r.sum(Figure {
                back: Some(|c| &c.redispatches),
                server: Some(|c| &c.redispatches),
                ..Figure::default()
            })
        },
    },
    Column { name: "status", tag: "SGPV", about: "State", read: |r| status(r) },
    Column { name: "weight", tag: "MaPV", about: "Weight in use", read: |r| weight(r) },
    Column {
        name: "act",
        tag: "MGPV",
        about: "Active servers that are usable; 1 for an active server",
        read: |r| servers(r, false),
    },
    Column {
        name: "bck",
        tag: "MGPV",
        about: "Backup servers that are usable; 1 for a backup server",
        read: |r| servers(r, true),
    },
    Column {
        name: "chkfail",
        tag: "MCPP",
        about: "Checks that failed while the server was up",
        read: |r| watched(r).map(|s| s.state.failed_checks.load(Relaxed)).into(),
    },
    Column { name: "chkdown", tag: "MCPP", about: "Times that it went down", read: |r| went_down(r) },
    Column {
        name: "lastchg",
        tag: "MAPP",
        about: "Seconds since the state changed",
        read: |r| last_change(r),
    },
    Column { name: "downtime", tag: "MCPV", about: "Seconds of being down", read: |r| downtime(r) },
    Column {
        name: "qlimit",
        tag: "CLPV",
        about: "Limit of requests that wait",
        read: |r| positive(r.server.map_or(0, |s| s.maxqueue)),
    },
    Column { name: "pid", tag: "KGPV", about: "Number of the process (always 1)", read: |_| 1u32.into() },
    Column { name: "iid", tag: "KGSV", about: "Id of the proxy", read: |r| r.proxy.state.id.into() },
    Column { name: "sid", tag: "KGSV", about: "Id of the server or listener", read: |r| r.id().into() },
    Column {
        name: "throttle",
        tag: "MaPV",
        about: "Share of the weight while it starts slowly, percent",
        read: |r| throttle(r),
    },
    Column {
        name: "lbtot",
        tag: "MCPP",
        about: "Times that it was chosen",
        read: |r| {
            r.sum(Figure { back: Some(|c| &c.chosen), server: Some(|c| &c.chosen), ..Figure::default() })
        },
    },
    Column { name: "tracked", tag: "CNSV", about: "Server whose state it follows", read: |r| tracked(r) },
    Column {
        name: "type",
        tag: "CGSV",
        about: "0 frontend, 1 backend, 2 server, 3 listener",
        read: |r| (r.kind as u32).into(),
    },
    Column {
        name: "rate",
        tag: "MRPP",
        about: "Sessions in the last second",
        read: |r| rate(r, |f| &f.session_rate, |b| &b.session_rate, |s| &s.rate),
    },
    Column {
        name: "rate_lim",
        tag: "CLPV",
        about: "Limit of sessions a second",
        read: |r| r.is_front().then_some(r.proxy.rate_limit).into(),
    },
    Column {
        name: "rate_max",
        tag: "MMPV",
        about: "Most sessions in a second",
        read: |r| peak(r, |f| &f.session_rate, |b| &b.session_rate, |s| &s.rate),
    },
    Column {
        name: "check_status",
        tag: "MOPV",
        about: "Result of the last check",
        read: |r| checked(r).map(|s| s.state.status.lock().last.status.code()).into(),
    },
    Column {
        name: "check_code",
        tag: "MOPV",
        about: "Status code of the last check",
        read: |r| checked(r).and_then(|s| code(&s.state.status.lock().last)).into(),
    },
    Column {
        name: "check_duration",
        tag: "MDPV",
        about: "Time of the last check, ms",
        read: |r| checked(r).and_then(|s| took(&s.state.status.lock().last)).into(),
    },
    Column { name: "hrsp_1xx", tag: "MCPP", about: "Responses of class 1xx", read: |r| r.responses(0) },
    Column { name: "hrsp_2xx", tag: "MCPP", about: "Responses of class 2xx", read: |r| r.responses(1) },
    Column { name: "hrsp_3xx", tag: "MCPP", about: "Responses of class 3xx", read: |r| r.responses(2) },
    Column { name: "hrsp_4xx", tag: "MCPP", about: "Responses of class 4xx", read: |r| r.responses(3) },
    Column { name: "hrsp_5xx", tag: "MCPP", about: "Responses of class 5xx", read: |r| r.responses(4) },
    Column { name: "hrsp_other", tag: "MCPP", about: "Responses of class other", read: |r| r.responses(5) },
    Column { name: "hanafail", tag: "MCPP", about: "Failures seen in traffic", read: |r| observed(r) },
    Column {
        name: "req_rate",
        tag: "MRPP",
        about: "Requests in the last second",
        read: |r| front_rate(r, |f| &f.request_rate),
    },
    Column {
        name: "req_rate_max",
        tag: "MMPV",
        about: "Most requests in a second",
        read: |r| front_peak(r, |f| &f.request_rate),
    },
    Column { name: "req_tot", tag: "MCPP", about: "Requests so far", read: |r| requests(r) },
    Column {
        name: "cli_abrt",
        tag: "MCPP",
        about: "Transfers that the client broke off",
        read: |r| {
            r.sum(Figure {
                back: Some(|c| &c.client_aborts),
                server: Some(|c| &c.client_aborts),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "srv_abrt",
        tag: "MCPP",
        about: "Transfers that the server broke off",
        read: |r| {
            r.sum(Figure {
                back: Some(|c| &c.server_aborts),
                server: Some(|c| &c.server_aborts),
                ..Figure::default()
            })
        },
    },
    Column { name: "comp_in", tag: "MCPP", about: "Bytes given to compression", read: |r| no_figure(r) },
    Column { name: "comp_out", tag: "MCPP", about: "Bytes from compression", read: |r| no_figure(r) },
    Column {
        name: "comp_byp",
        tag: "MCPP",
        about: "Bytes that passed compression by",
        read: |r| no_figure(r),
    },
    Column { name: "comp_rsp", tag: "MCPP", about: "Responses that were compressed", read: |r| no_figure(r) },
    Column {
        name: "lastsess",
        tag: "MAPP",
        about: "Seconds since the last session, -1: none",
        read: |r| last_session(r),
    },
    Column {
        name: "last_chk",
        tag: "MOPV",
        about: "Last words of the check",
        // One row is one line, whatever a peer said.
        read: |r| {
            checked(r).map(|s| s.state.status.lock().last.detail.replace('\r', "").replace('\n', " ")).into()
        },
    },
    Column {
        name: "last_agt",
        tag: "MOPV",
        about: "Last words of the agent",
        read: |r| with_agent(r).map(|s| s.state.status.lock().agent.detail.clone()).into(),
    },
    Column { name: "qtime", tag: "MaPV", about: "Average time in the queue, ms", read: |r| r.average(0) },
    Column { name: "ctime", tag: "MaPV", about: "Average time to connect, ms", read: |r| r.average(1) },
    Column {
        name: "rtime",
        tag: "MaPV",
        about: "Average time of the server to answer, ms",
        read: |r| r.average(2),
    },
    Column { name: "ttime", tag: "MaPV", about: "Average time in all, ms", read: |r| r.average(3) },
    Column {
        name: "agent_status",
        tag: "MOPV",
        about: "Result of the last agent check",
        read: |r| with_agent(r).map(|s| agent_status(s).code()).into(),
    },
    Column {
        name: "agent_code",
        tag: "MOPV",
        about: "Status code of the last agent check",
        read: |r| with_agent(r).and_then(|s| code(&s.state.status.lock().agent)).into(),
    },
    Column {
        name: "agent_duration",
        tag: "MDPV",
        about: "Time of the last agent check, ms",
        read: |r| with_agent(r).map(|s| u64::from(s.state.status.lock().agent.duration_ms)).into(),
    },
    Column {
        name: "check_desc",
        tag: "MOPV",
        about: "What the last check means",
        read: |r| checked(r).map(|s| s.state.status.lock().last.status.text()).into(),
    },
    Column {
        name: "agent_desc",
        tag: "MOPV",
        about: "What the last agent check means",
        read: |r| with_agent(r).map(|s| agent_status(s).text()).into(),
    },
    Column {
        name: "check_rise",
        tag: "CGSV",
        about: "Good checks to come up",
        read: |r| checked(r).and_then(|s| s.check.as_ref()).map(|c| c.rise).into(),
    },
    Column {
        name: "check_fall",
        tag: "CGSV",
        about: "Bad checks to go down",
        read: |r| checked(r).and_then(|s| s.check.as_ref()).map(|c| c.fall).into(),
    },
    Column {
        name: "check_health",
        tag: "CGSV",
        about: "Health, 0 to rise + fall - 1",
        read: |r| checked(r).map(|s| u32::try_from(s.state.health.load(Relaxed)).unwrap_or(0)).into(),
    },
    Column {
        name: "agent_rise",
        tag: "CGSV",
        about: "Good agent checks to come up",
        read: |r| with_agent(r).map(|_| 1u32).into(),
    },
    Column {
        name: "agent_fall",
        tag: "CGSV",
        about: "Bad agent checks to go down",
        read: |r| with_agent(r).map(|_| 1u32).into(),
    },
    Column {
        name: "agent_health",
        tag: "CGSV",
        about: "Health as the agent sees it",
        read: |r| {
            with_agent(r).map(|s| u32::try_from(s.state.agent_health.load(Relaxed)).unwrap_or(0)).into()
        },
    },
    Column { name: "addr", tag: "CGSV", about: "Address", read: |r| address(r) },
    Column {
        name: "cookie",
        tag: "CNSV",
        about: "Cookie: of a server its value, of a backend its name",
        read: |r| cookie(r),
    },
    Column { name: "mode", tag: "CGSV", about: "tcp or http", read: |r| mode(r).into() },
    Column { name: "algo", tag: "CGSV", about: "How servers are chosen", read: |r| algorithm(r) },
    Column {
        name: "conn_rate",
        tag: "MRPP",
        about: "Connections in the last second",
        read: |r| front_rate(r, |f| &f.conn_rate),
    },
    Column {
        name: "conn_rate_max",
        tag: "MMPV",
        about: "Most connections in a second",
        read: |r| front_peak(r, |f| &f.conn_rate),
    },
    Column {
        name: "conn_tot",
        tag: "MCPP",
        about: "Connections so far",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.connections),
                listener: Some(|c| &c.sessions),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "intercepted",
        tag: "MCPP",
        about: "Requests answered by the proxy itself",
        read: |r| http_only(r, r.sum(Figure { front: Some(|c| &c.intercepted), ..Figure::default() })),
    },
    Column {
        name: "dcon",
        tag: "MCPP",
        about: "Connections denied",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.denied_conn),
                listener: Some(|c| &c.denied_conn),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "dses",
        tag: "MCPP",
        about: "Sessions denied",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.denied_sess),
                listener: Some(|c| &c.denied_sess),
                ..Figure::default()
            })
        },
    },
    Column {
        name: "wrew",
        tag: "MCPP",
        about: "Header rewrites that failed",
        read: |r| {
            or_zero(
                r,
                r.sum(Figure {
                    front: Some(|c| &c.failed_rewrites),
                    back: Some(|c| &c.failed_rewrites),
                    server: Some(|c| &c.failed_rewrites),
                    ..Figure::default()
                }),
            )
        },
    },
    Column {
        name: "connect",
        tag: "MCPP",
        about: "Connections made to servers",
        read: |r| {
            r.sum(Figure { back: Some(|c| &c.connects), server: Some(|c| &c.connects), ..Figure::default() })
        },
    },
    Column {
        name: "reuse",
        tag: "MCPP",
        about: "Requests on a connection that was there",
        read: |r| {
            r.sum(Figure { back: Some(|c| &c.reuses), server: Some(|c| &c.reuses), ..Figure::default() })
        },
    },
    Column {
        name: "cache_lookups",
        tag: "MCPP",
        about: "Look-ups in the cache",
        read: |r| http_only(r, no_figure(r)),
    },
    Column {
        name: "cache_hits",
        tag: "MCPP",
        about: "Of these, with success",
        read: |r| http_only(r, no_figure(r)),
    },
    Column { name: "srv_icur", tag: "MGPV", about: "Idle connections", read: |r| idle(r) },
    Column {
        name: "src_ilim",
        tag: "CLPV",
        about: "Limit of idle connections",
        read: |r| r.server.and_then(|s| u32::try_from(s.pool_max_conn).ok()).into(),
    },
    Column { name: "qtime_max", tag: "MMPV", about: "Longest time in the queue, ms", read: |r| r.longest(0) },
    Column { name: "ctime_max", tag: "MMPV", about: "Longest time to connect, ms", read: |r| r.longest(1) },
    Column {
        name: "rtime_max",
        tag: "MMPV",
        about: "Longest time of the server to answer, ms",
        read: |r| r.longest(2),
    },
    Column { name: "ttime_max", tag: "MMPV", about: "Longest time in all, ms", read: |r| r.longest(3) },
    Column {
        name: "eint",
        tag: "MCPP",
        about: "Internal errors",
        read: |r| {
            or_zero(
                r,
                r.sum(Figure {
                    front: Some(|c| &c.internal_errors),
                    back: Some(|c| &c.internal_errors),
                    server: Some(|c| &c.internal_errors),
                    ..Figure::default()
                }),
            )
        },
    },
    Column {
        name: "idle_conn_cur",
        tag: "MGPV",
        about: "Idle connections that may be shared with care",
        read: |r| idle(r),
    },
    Column {
        name: "safe_conn_cur",
        tag: "MGPV",
        about: "Idle connections that may be shared",
        read: |r| r.server.map(|_| 0u32).into(),
    },
    Column {
        name: "used_conn_cur",
        tag: "MGPV",
        about: "Connections in use",
        read: |r| r.server.map(|s| s.state.used_conns.load(Relaxed)).into(),
    },
    Column {
        name: "need_conn_est",
        tag: "MGPV",
        about: "Connections that will be needed",
        read: |r| r.server.map(|s| s.state.used_conns.load(Relaxed)).into(),
    },
    Column { name: "uweight", tag: "MaPV", about: "Weight as set", read: |r| user_weight(r) },
    Column {
        name: "agg_server_status",
        tag: "MGPV",
        about: "State of the servers taken together",
        read: |r| r.is_back().then_some(0u32).into(),
    },
    Column {
        name: "agg_server_check_status",
        tag: "MGPV",
        about: "The same, by an older name",
        read: |r| r.is_back().then_some(0u32).into(),
    },
    Column {
        name: "agg_check_status",
        tag: "MGPV",
        about: "Results of checks taken together",
        read: |r| r.is_back().then_some(0u32).into(),
    },
    Column {
        name: "srid",
        tag: "MCPV",
        about: "Revision of the server's settings",
        read: |r| r.server.map(|_| 0u32).into(),
    },
    Column {
        name: "sess_other",
        tag: "MCPV",
        about: "Sessions without HTTP",
        read: |r| {
            if r.http() {
                no_front_figure(r)
            } else {
                r.sum(Figure { front: Some(|c| &c.sessions), ..Figure::default() })
            }
        },
    },
    Column {
        name: "h1sess",
        tag: "MCPP",
        about: "Sessions with HTTP/1",
        read: |r| {
            if r.http() {
                r.sum(Figure { front: Some(|c| &c.sessions), ..Figure::default() })
            } else {
                no_front_figure(r)
            }
        },
    },
    Column { name: "h2sess", tag: "MCPP", about: "Sessions with HTTP/2", read: |r| no_front_figure(r) },
    Column { name: "h3sess", tag: "MCPP", about: "Sessions with HTTP/3", read: |r| no_front_figure(r) },
    Column {
        name: "req_other",
        tag: "MCPP",
        about: "Requests of no version of HTTP",
        read: |r| no_front_figure(r),
    },
    Column {
        name: "h1req",
        tag: "MCPP",
        about: "Requests with HTTP/1",
        read: |r| r.sum(Figure { front: Some(|c| &c.requests), ..Figure::default() }),
    },
    Column { name: "h2req", tag: "MCPP", about: "Requests with HTTP/2", read: |r| no_front_figure(r) },
    Column { name: "h3req", tag: "MCPP", about: "Requests with HTTP/3", read: |r| no_front_figure(r) },
    Column { name: "proto", tag: "SGPV", about: "Protocol of a listener", read: |r| protocol(r) },
    Column {
        name: "priv_idle_cur",
        tag: "MGPV",
        about: "Idle connections of one client each",
        read: |r| r.server.map(|_| 0u32).into(),
    },
    Column {
        name: "reqbin",
        tag: "MCPP",
        about: "Bytes of requests received",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.bytes_in),
                back: Some(|c| &c.bytes_in),
                server: Some(|c| &c.bytes_in),
                listener: Some(|c| &c.bytes_in),
            })
        },
    },
    Column {
        name: "reqbout",
        tag: "MCPP",
        about: "Bytes of requests passed on",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.bytes_in),
                back: Some(|c| &c.bytes_in),
                server: Some(|c| &c.bytes_in),
                listener: Some(|c| &c.bytes_in),
            })
        },
    },
    Column {
        name: "resbin",
        tag: "MCPP",
        about: "Bytes of responses received",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.bytes_out),
                back: Some(|c| &c.bytes_out),
                server: Some(|c| &c.bytes_out),
                listener: Some(|c| &c.bytes_out),
            })
        },
    },
    Column {
        name: "resbout",
        tag: "MCPP",
        about: "Bytes of responses passed on",
        read: |r| {
            r.sum(Figure {
                front: Some(|c| &c.bytes_out),
                back: Some(|c| &c.bytes_out),
                server: Some(|c| &c.bytes_out),
                listener: Some(|c| &c.bytes_out),
            })
        },
    },
    Column {
        name: "cache_hint_hits",
        tag: "MCPP",
        about: "Answers found in the cache by hints",
        read: |r| http_only(r, no_figure(r)),
    },
];
