//! The table of statistics: each figure once, with its column, what it means, and how it is read.
//!
//! The position in the table is the column of the CSV; names, order and tags are those that tools for HAProxy
//! 3.5 know (management manual, 9.1 and 9.2). Behind the general figures stand those of protocols
//! ([`PROTOCOLS`]); in the CSV a column called `-` divides the two.

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

/// An entry of a table.
pub(super) const fn column(
    name: &'static str,
    tag: Tag,
    about: &'static str,
    read: fn(&Row<'_>) -> Value,
) -> Column {
    Column { name, tag, about, read }
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
    column("pxname", "KNSV", "Name of the proxy", |r| r.proxy.name.to_string().into()),
    column("svname", "KNSV", "Name of the server or listener, FRONTEND or BACKEND", |r| r.name().into()),
    column("qcur", "MGPV", "Requests that wait", |r| gauge(r, |b| &b.queued, |s| &s.queued)),
    column("qmax", "MMPV", "Most requests that waited", |r| gauge(r, |b| &b.queued_max, |s| &s.queued_max)),
    column("scur", "MGPV", "Sessions now", current),
    column("smax", "MMPV", "Most sessions at a time", current_max),
    column("slim", "CLPV", "Limit of sessions", limit),
    column("stot", "MCPP", "Sessions so far", |r| {
        r.sum(Figure {
            front: Some(|c| &c.sessions),
            back: Some(|c| &c.sessions),
            server: Some(|c| &c.sessions),
            listener: Some(|c| &c.sessions),
        })
    }),
    column("bin", "MCPP", "Bytes from clients", |r| {
        r.sum(Figure {
            front: Some(|c| &c.bytes.request_in),
            back: Some(|c| &c.bytes.request_in),
            server: Some(|c| &c.bytes.request_in),
            listener: Some(|c| &c.bytes.request_in),
        })
    }),
    column("bout", "MCPP", "Bytes to clients", |r| {
        r.sum(Figure {
            front: Some(|c| &c.bytes.response_in),
            back: Some(|c| &c.bytes.response_in),
            server: Some(|c| &c.bytes.response_in),
            listener: Some(|c| &c.bytes.response_in),
        })
    }),
    column("dreq", "MCPP", "Requests denied", |r| {
        r.sum(Figure {
            front: Some(|c| &c.denied_req),
            back: Some(|c| &c.denied_req),
            listener: Some(|c| &c.denied_req),
            ..Figure::default()
        })
    }),
    column("dresp", "MCPP", "Responses denied", |r| {
        r.sum(Figure {
            front: Some(|c| &c.denied_resp),
            back: Some(|c| &c.denied_resp),
            server: Some(|c| &c.denied_resp),
            listener: Some(|c| &c.denied_resp),
        })
    }),
    column("ereq", "MCPP", "Bad requests", |r| {
        r.sum(Figure {
            front: Some(|c| &c.req_errors),
            listener: Some(|c| &c.req_errors),
            ..Figure::default()
        })
    }),
    column("econ", "MCPP", "Connections to servers that failed", |r| {
        r.sum(Figure {
            back: Some(|c| &c.conn_errors),
            server: Some(|c| &c.conn_errors),
            ..Figure::default()
        })
    }),
    column("eresp", "MCPP", "Bad responses", |r| {
        r.sum(Figure {
            back: Some(|c| &c.resp_errors),
            server: Some(|c| &c.resp_errors),
            ..Figure::default()
        })
    }),
    column("wretr", "MCPP", "Connections to servers that were tried again", |r| {
        r.sum(Figure { back: Some(|c| &c.retries), server: Some(|c| &c.retries), ..Figure::default() })
    }),
    column("wredis", "MCPP", "Requests sent to another server", |r| {
        r.sum(Figure {
            back: Some(|c| &c.redispatches),
            server: Some(|c| &c.redispatches),
            ..Figure::default()
        })
    }),
    column("status", "SGPV", "State", status),
    column("weight", "MaPV", "Weight in use", weight),
    column("act", "MGPV", "Active servers that are usable; 1 for an active server", |r| servers(r, false)),
    column("bck", "MGPV", "Backup servers that are usable; 1 for a backup server", |r| servers(r, true)),
    column("chkfail", "MCPP", "Checks that failed while the server was up", |r| {
        watched(r).map(|s| s.state.failed_checks.load(Relaxed)).into()
    }),
    column("chkdown", "MCPP", "Times that it went down", went_down),
    column("lastchg", "MAPP", "Seconds since the state changed", last_change),
    column("downtime", "MCPV", "Seconds of being down", downtime),
    column("qlimit", "CGSV", "Limit of requests that wait", |r| positive(r.server.map_or(0, |s| s.maxqueue))),
    column("pid", "KGPV", "Number of the process (always 1)", |_| 1u32.into()),
    column("iid", "KGSV", "Id of the proxy", |r| r.proxy.state.id.into()),
    column("sid", "KGSV", "Id of the server or listener", |r| r.id().into()),
    column("throttle", "MaPV", "Share of the weight while it starts slowly, percent", throttle),
    column("lbtot", "MCPP", "Times that it was chosen", |r| {
        r.sum(Figure { back: Some(|c| &c.chosen), server: Some(|c| &c.chosen), ..Figure::default() })
    }),
    column("tracked", "CNSV", "Server whose state it follows", tracked),
    column("type", "CGSV", "0 frontend, 1 backend, 2 server, 3 listener", |r| (r.kind as u32).into()),
    column("rate", "MRPP", "Sessions in the last second", |r| {
        rate(r, |f| &f.session_rate, |b| &b.session_rate, |s| &s.rate)
    }),
    column("rate_lim", "CLPV", "Limit of sessions a second", |r| {
        r.is_front().then_some(r.proxy.rate_limit).into()
    }),
    column("rate_max", "MMPV", "Most sessions in a second", |r| {
        peak(r, |f| &f.session_rate, |b| &b.session_rate, |s| &s.rate)
    }),
    column("check_status", "MOPV", "Result of the last check", |r| {
        checked(r).map(|s| s.state.status.lock().last.shown()).into()
    }),
    column("check_code", "MOPV", "Status code of the last check", |r| {
        checked(r).and_then(|s| code(&s.state.status.lock().last)).into()
    }),
    column("check_duration", "MDPV", "Time of the last check, ms", |r| {
        checked(r).and_then(|s| took(&s.state.status.lock().last)).into()
    }),
    column("hrsp_1xx", "MCPP", "Responses of class 1xx", |r| r.responses(0)),
    column("hrsp_2xx", "MCPP", "Responses of class 2xx", |r| r.responses(1)),
    column("hrsp_3xx", "MCPP", "Responses of class 3xx", |r| r.responses(2)),
    column("hrsp_4xx", "MCPP", "Responses of class 4xx", |r| r.responses(3)),
    column("hrsp_5xx", "MCPP", "Responses of class 5xx", |r| r.responses(4)),
    column("hrsp_other", "MCPP", "Responses of class other", |r| r.responses(5)),
    column("hanafail", "MCPP", "Failures seen in traffic", observed),
    column("req_rate", "MRPP", "Requests in the last second", |r| front_rate(r, |f| &f.request_rate)),
    column("req_rate_max", "MMPV", "Most requests in a second", |r| front_peak(r, |f| &f.request_rate)),
    column("req_tot", "MCPP", "Requests so far", requests),
    column("cli_abrt", "MCPP", "Transfers that the client broke off", |r| {
        r.sum(Figure {
            back: Some(|c| &c.client_aborts),
            server: Some(|c| &c.client_aborts),
            ..Figure::default()
        })
    }),
    column("srv_abrt", "MCPP", "Transfers that the server broke off", |r| {
        r.sum(Figure {
            back: Some(|c| &c.server_aborts),
            server: Some(|c| &c.server_aborts),
            ..Figure::default()
        })
    }),
    column("comp_in", "MCPP", "Bytes given to compression", |r| {
        r.sum(Figure {
            front: Some(|c| &c.compression.bytes_in),
            back: Some(|c| &c.compression.bytes_in),
            ..Figure::default()
        })
    }),
    column("comp_out", "MCPP", "Bytes from compression", |r| {
        r.sum(Figure {
            front: Some(|c| &c.compression.bytes_out),
            back: Some(|c| &c.compression.bytes_out),
            ..Figure::default()
        })
    }),
    column("comp_byp", "MCPP", "Bytes that passed compression by", |r| {
        r.sum(Figure {
            front: Some(|c| &c.compression.bypassed),
            back: Some(|c| &c.compression.bypassed),
            ..Figure::default()
        })
    }),
    column("comp_rsp", "MCPP", "Responses that were compressed", |r| {
        r.sum(Figure {
            front: Some(|c| &c.compression.responses),
            back: Some(|c| &c.compression.responses),
            ..Figure::default()
        })
    }),
    column("lastsess", "MAPP", "Seconds since the last session, -1: none", last_session),
    column(
        "last_chk",
        "MOPV",
        "Last words of the check",
        // One row is one line, whatever a peer said.
        |r| checked(r).map(|s| s.state.status.lock().last.detail.replace('\r', "").replace('\n', " ")).into(),
    ),
    column("last_agt", "MOPV", "Last words of the agent", |r| {
        with_agent(r).map(|s| s.state.status.lock().agent.detail.clone()).into()
    }),
    column("qtime", "MaPV", "Average time in the queue, ms", |r| r.average(0)),
    column("ctime", "MaPV", "Average time to connect, ms", |r| r.average(1)),
    column("rtime", "MaPV", "Average time of the server to answer, ms", |r| r.average(2)),
    column("ttime", "MaPV", "Average time in all, ms", |r| r.average(3)),
    column("agent_status", "MOPV", "Result of the last agent check", |r| {
        with_agent(r).map(agent_shown).into()
    }),
    column("agent_code", "MOPV", "Status code of the last agent check", |r| {
        with_agent(r).and_then(|s| code(&s.state.status.lock().agent)).into()
    }),
    column("agent_duration", "MDPV", "Time of the last agent check, ms", |r| {
        with_agent(r).map(|s| u64::from(s.state.status.lock().agent.duration_ms)).into()
    }),
    column("check_desc", "MOPV", "What the last check means", |r| {
        checked(r).map(|s| s.state.status.lock().last.status.text()).into()
    }),
    column("agent_desc", "MOPV", "What the last agent check means", |r| {
        with_agent(r).map(|s| agent_status(s).text()).into()
    }),
    column("check_rise", "CGSV", "Good checks to come up", |r| {
        checked(r).and_then(|s| s.check.as_ref()).map(|c| c.rise).into()
    }),
    column("check_fall", "CGSV", "Bad checks to go down", |r| {
        checked(r).and_then(|s| s.check.as_ref()).map(|c| c.fall).into()
    }),
    column("check_health", "CGSV", "Health, 0 to rise + fall - 1", |r| {
        checked(r).map(|s| u32::try_from(s.state.health.load(Relaxed)).unwrap_or(0)).into()
    }),
    column("agent_rise", "CGSV", "Good agent checks to come up", |r| with_agent(r).map(|_| 1u32).into()),
    column("agent_fall", "CGSV", "Bad agent checks to go down", |r| with_agent(r).map(|_| 1u32).into()),
    column("agent_health", "CGSV", "Health as the agent sees it", |r| {
        with_agent(r).map(|s| u32::try_from(s.state.agent_health.load(Relaxed)).unwrap_or(0)).into()
    }),
    column("addr", "CGSV", "Address", address),
    column("cookie", "CNSV", "Cookie: of a server its value, of a backend its name", cookie),
    column("mode", "CGSV", "tcp or http", |r| mode(r).into()),
    column("algo", "CGSV", "How servers are chosen", algorithm),
    column("conn_rate", "MRPP", "Connections in the last second", |r| front_rate(r, |f| &f.conn_rate)),
    column("conn_rate_max", "MMPV", "Most connections in a second", |r| front_peak(r, |f| &f.conn_rate)),
    column("conn_tot", "MCPP", "Connections so far", |r| {
        r.sum(Figure {
            front: Some(|c| &c.connections),
            listener: Some(|c| &c.connections),
            ..Figure::default()
        })
    }),
    column("intercepted", "MCPP", "Requests answered by the proxy itself", |r| {
        http_only(r, r.sum(Figure { front: Some(|c| &c.intercepted), ..Figure::default() }))
    }),
    column("dcon", "MCPP", "Connections denied", |r| {
        r.sum(Figure {
            front: Some(|c| &c.denied_conn),
            listener: Some(|c| &c.denied_conn),
            ..Figure::default()
        })
    }),
    column("dses", "MCPP", "Sessions denied", |r| {
        r.sum(Figure {
            front: Some(|c| &c.denied_sess),
            listener: Some(|c| &c.denied_sess),
            ..Figure::default()
        })
    }),
    column("wrew", "MCPP", "Header rewrites that failed", |r| {
        or_zero(
            r,
            r.sum(Figure {
                front: Some(|c| &c.failed_rewrites),
                back: Some(|c| &c.failed_rewrites),
                server: Some(|c| &c.failed_rewrites),
                listener: Some(|c| &c.failed_rewrites),
            }),
        )
    }),
    column("connect", "MCPP", "Connections made to servers", |r| {
        r.sum(Figure { back: Some(|c| &c.connects), server: Some(|c| &c.connects), ..Figure::default() })
    }),
    column("reuse", "MCPP", "Requests on a connection that was there", |r| {
        r.sum(Figure { back: Some(|c| &c.reuses), server: Some(|c| &c.reuses), ..Figure::default() })
    }),
    column("cache_lookups", "MCPP", "Look-ups in caches", |r| {
        let figure = Figure {
            front: Some(|c| &c.cache.lookups),
            back: Some(|c| &c.cache.lookups),
            ..Figure::default()
        };
        http_only(r, r.sum(figure))
    }),
    column("cache_hits", "MCPP", "Of these, with success", |r| {
        let figure =
            Figure { front: Some(|c| &c.cache.hits), back: Some(|c| &c.cache.hits), ..Figure::default() };
        http_only(r, r.sum(figure))
    }),
    column("srv_icur", "MGPV", "Idle connections", idle),
    column("src_ilim", "CLPV", "Limit of idle connections", |r| {
        r.server.and_then(|s| u32::try_from(s.pool_max_conn).ok()).into()
    }),
    column("qtime_max", "MMPV", "Longest time in the queue, ms", |r| r.longest(0)),
    column("ctime_max", "MMPV", "Longest time to connect, ms", |r| r.longest(1)),
    column("rtime_max", "MMPV", "Longest time of the server to answer, ms", |r| r.longest(2)),
    column("ttime_max", "MMPV", "Longest time in all, ms", |r| r.longest(3)),
    column("eint", "MCPP", "Internal errors", |r| {
        or_zero(
            r,
            r.sum(Figure {
                front: Some(|c| &c.internal_errors),
                back: Some(|c| &c.internal_errors),
                server: Some(|c| &c.internal_errors),
                listener: Some(|c| &c.internal_errors),
            }),
        )
    }),
    column("idle_conn_cur", "MGPV", "Idle connections that may be shared with care", |r| {
        r.server.map(|s| s.state.conns.idle_and_safe().0).into()
    }),
    column("safe_conn_cur", "MGPV", "Idle connections that may be shared", |r| {
        r.server.map(|s| s.state.conns.idle_and_safe().1).into()
    }),
    column("used_conn_cur", "MGPV", "Connections in use", |r| r.server.map(|s| s.state.conns.used()).into()),
    column("need_conn_est", "MGPV", "Connections that will be needed", |r| {
        r.server.map(|s| s.state.conns.need()).into()
    }),
    column("uweight", "MaPV", "Weight as set", user_weight),
    column("agg_server_status", "MGPV", "State of the servers taken together", |r| {
        r.is_back().then_some(0u32).into()
    }),
    column("agg_server_check_status", "MGPV", "The same, by an older name", |r| {
        r.is_back().then_some(0u32).into()
    }),
    column("agg_check_status", "MGPV", "Results of checks taken together", |r| {
        r.is_back().then_some(0u32).into()
    }),
    column("srid", "MCPV", "Tells a server from those that had its id before", |r| {
        r.server.map(|s| s.state.revision.load(Relaxed)).into()
    }),
    column("sess_other", "MCPV", "Sessions without HTTP", |r| {
        if r.http() {
            return no_front_figure(r);
        }
        let upgraded = r.sum(Figure { front: Some(|c| &c.upgraded), ..Figure::default() });
        match (r.sum(Figure { front: Some(|c| &c.sessions), ..Figure::default() }), upgraded) {
            (Value::U64(all), Value::U64(upgraded)) => Value::U64(all.saturating_sub(upgraded)),
            (none, _) => none,
        }
    }),
    column("h1sess", "MCPP", "Sessions with HTTP/1", |r| {
        if r.http() {
            let now = r.sum(Figure { front: Some(|c| &c.h1.connections), ..Figure::default() });
            return plus(now, r.sum(Figure { front: Some(|c| &c.h1.earlier), ..Figure::default() }));
        }
        r.sum(Figure { front: Some(|c| &c.upgraded), ..Figure::default() })
    }),
    column("h2sess", "MCPP", "Sessions with HTTP/2", |r| {
        let now = r.sum(Figure { front: Some(|c| &c.h2.connections), ..Figure::default() });
        plus(now, r.sum(Figure { front: Some(|c| &c.h2.earlier), ..Figure::default() }))
    }),
    column("h3sess", "MCPP", "Sessions with HTTP/3", no_front_figure),
    column("req_other", "MCPP", "Requests of no version of HTTP", |r| {
        r.sum(Figure { front: Some(|c| &c.other_requests), ..Figure::default() })
    }),
    column("h1req", "MCPP", "Requests with HTTP/1", |r| {
        let of = |front| r.sum(Figure { front: Some(front), ..Figure::default() });
        match (of(|c| &c.requests), of(|c| &c.h2_requests), of(|c| &c.h3_requests), of(|c| &c.other_requests))
        {
            (Value::U64(all), Value::U64(h2), Value::U64(h3), Value::U64(other)) => {
                Value::U64(all.saturating_sub(h2 + h3 + other))
            }
            (none, ..) => none,
        }
    }),
    column("h2req", "MCPP", "Requests with HTTP/2", |r| {
        r.sum(Figure { front: Some(|c| &c.h2_requests), ..Figure::default() })
    }),
    column("h3req", "MCPP", "Requests with HTTP/3", |r| {
        r.sum(Figure { front: Some(|c| &c.h3_requests), ..Figure::default() })
    }),
    column("proto", "SGPV", "Protocol of a listener", protocol),
    column("priv_idle_cur", "MGPV", "Idle connections of one client each", |r| {
        r.server.map(|s| s.state.conns.private()).into()
    }),
    column("reqbin", "MCPP", "Bytes of requests received", |r| {
        r.sum(Figure {
            front: Some(|c| &c.bytes.request_in),
            back: Some(|c| &c.bytes.request_in),
            server: Some(|c| &c.bytes.request_in),
            listener: Some(|c| &c.bytes.request_in),
        })
    }),
    column("reqbout", "MCPP", "Bytes of requests passed on", |r| {
        r.sum(Figure {
            front: Some(|c| &c.bytes.request_out),
            back: Some(|c| &c.bytes.request_out),
            server: Some(|c| &c.bytes.request_out),
            listener: Some(|c| &c.bytes.request_out),
        })
    }),
    column("resbin", "MCPP", "Bytes of responses received", |r| {
        r.sum(Figure {
            front: Some(|c| &c.bytes.response_in),
            back: Some(|c| &c.bytes.response_in),
            server: Some(|c| &c.bytes.response_in),
            listener: Some(|c| &c.bytes.response_in),
        })
    }),
    column("resbout", "MCPP", "Bytes of responses passed on", |r| {
        r.sum(Figure {
            front: Some(|c| &c.bytes.response_out),
            back: Some(|c| &c.bytes.response_out),
            server: Some(|c| &c.bytes.response_out),
            listener: Some(|c| &c.bytes.response_out),
        })
    }),
    column("cache_hint_hits", "MCPP", "Of these, those that found nothing but links", |r| {
        let figure = Figure {
            front: Some(|c| &c.cache.hint_hits),
            back: Some(|c| &c.cache.hint_hits),
            ..Figure::default()
        };
        http_only(r, r.sum(figure))
    }),
];

/// Two figures together, where there are such.
fn plus(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::U64(one), Value::U64(other)) => Value::U64(one + other),
        (none, _) => none,
    }
}
