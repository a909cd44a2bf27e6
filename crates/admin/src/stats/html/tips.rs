//! What a cell shows when the pointer rests on it: figures that have no column of their own.

use std::fmt::Write;

use super::super::row::{Kind, Row};
use super::escape;
use super::rows::figure;

/// How a figure of a tip is shown.
#[derive(Clone, Copy)]
enum Shape {
    /// As it is.
    Plain,
    /// Per second.
    Rate,
    /// With its share of another column, in percent.
    Of(&'static str),
    /// `-` when there is none.
    Limit,
    /// The greatest time and the average one, in ms.
    Times(&'static str),
}

use Shape::{Limit, Of, Plain, Rate, Times};

/// A line of a tip: label, column, shape. Lines whose column is empty for an object are left out.
type Line = (&'static str, &'static str, Shape);

const RATE: &[Line] = &[
    ("Current connection rate:", "conn_rate", Rate),
    ("Current session rate:", "rate", Rate),
    ("Current request rate:", "req_rate", Rate),
];

const PEAK: &[Line] = &[
    ("Max connection rate:", "conn_rate_max", Rate),
    ("Max session rate:", "rate_max", Rate),
    ("Max request rate:", "req_rate_max", Rate),
];

const SERVER_CONNECTIONS: &[Line] = &[
    ("Current active connections:", "scur", Plain),
    ("Current used connections:", "used_conn_cur", Plain),
    ("Current idle connections:", "srv_icur", Plain),
    ("- unsafe:", "idle_conn_cur", Plain),
    ("- safe:", "safe_conn_cur", Plain),
    ("Estimated need of connections:", "need_conn_est", Plain),
    ("Private idle connections:", "priv_idle_cur", Plain),
    ("Active connections limit:", "slim", Limit),
    ("Idle connections limit:", "src_ilim", Limit),
];

const FRONT_TOTALS: &[Line] = &[
    ("Cum. connections:", "conn_tot", Plain),
    ("Cum. sessions:", "stot", Plain),
    ("- HTTP/1 sessions:", "h1sess", Plain),
    ("- HTTP/2 sessions:", "h2sess", Plain),
    ("- HTTP/3 sessions:", "h3sess", Plain),
    ("- other sessions:", "sess_other", Plain),
    ("Cum. HTTP requests:", "req_tot", Plain),
    ("- HTTP/1 requests:", "h1req", Plain),
    ("- HTTP/2 requests:", "h2req", Plain),
    ("- HTTP/3 requests:", "h3req", Plain),
    ("- other requests:", "req_other", Plain),
    ("- HTTP 1xx responses:", "hrsp_1xx", Plain),
    ("- HTTP 2xx responses:", "hrsp_2xx", Plain),
    ("Compressed 2xx:", "comp_rsp", Of("hrsp_2xx")),
    ("- HTTP 3xx responses:", "hrsp_3xx", Plain),
    ("- HTTP 4xx responses:", "hrsp_4xx", Plain),
    ("- HTTP 5xx responses:", "hrsp_5xx", Plain),
    ("- other responses:", "hrsp_other", Plain),
    ("Intercepted requests:", "intercepted", Plain),
    ("Cache lookups:", "cache_lookups", Plain),
    ("Cache hits:", "cache_hits", Of("cache_lookups")),
    ("Cache hint hits:", "cache_hint_hits", Plain),
    ("Failed hdr rewrites:", "wrew", Plain),
    ("Internal errors:", "eint", Plain),
];

/// Of backends and servers in mode HTTP.
const BACK_TOTALS: &[Line] = &[
    ("Cum. sessions:", "stot", Plain),
    ("New connections:", "connect", Plain),
    ("Reused connections:", "reuse", Of("stot")),
    ("Cum. HTTP requests:", "req_tot", Plain),
    ("- HTTP 1xx responses:", "hrsp_1xx", Of("req_tot")),
    ("- HTTP 2xx responses:", "hrsp_2xx", Of("req_tot")),
    ("Compressed 2xx:", "comp_rsp", Of("hrsp_2xx")),
    ("- HTTP 3xx responses:", "hrsp_3xx", Of("req_tot")),
    ("- HTTP 4xx responses:", "hrsp_4xx", Of("req_tot")),
    ("- HTTP 5xx responses:", "hrsp_5xx", Of("req_tot")),
    ("- other responses:", "hrsp_other", Of("req_tot")),
    ("Cache lookups:", "cache_lookups", Plain),
    ("Cache hits:", "cache_hits", Of("cache_lookups")),
    ("Cache hint hits:", "cache_hint_hits", Plain),
    ("Failed hdr rewrites:", "wrew", Plain),
    ("Internal errors:", "eint", Plain),
];

const TIMES: &[Line] = &[
    ("- Queue time:", "qtime", Times("qtime_max")),
    ("- Connect time:", "ctime", Times("ctime_max")),
    ("- Responses time:", "rtime", Times("rtime_max")),
    ("- Total time:", "ttime", Times("ttime_max")),
];

const BYTES: &[Line] = &[
    ("Response bytes in:", "resbin", Plain),
    ("Compression in:", "comp_in", Plain),
    ("Compression out:", "comp_out", Of("comp_in")),
    ("Compression bypass:", "comp_byp", Plain),
];

/// Something with a tip.
pub fn tipped(shown: &str, tip: &str) -> String {
    format!("<u>{shown}<div class=\"tips\">{}</div></u>", escape(tip))
}

/// Something with a table as its tip, unless the table is empty.
fn with_table(shown: &str, lines: &str) -> String {
    if lines.is_empty() {
        return shown.to_owned();
    }
    format!("<u>{shown}<div class=\"tips\"><table class=\"det\">{lines}</table></div></u>")
}

fn lines(row: &Row<'_>, list: &[Line]) -> String {
    let mut out = String::new();
    for (label, column, shape) in list {
        let value = figure(row, column);
        if value.is_empty() && !matches!(shape, Limit) {
            continue;
        }
        let _ = write!(out, "<tr><th>{label}</th>{}</tr>", shaped(row, &value, *shape));
    }
    out
}

fn shaped(row: &Row<'_>, value: &str, shape: Shape) -> String {
    match shape {
        Plain => format!("<td>{value}</td>"),
        Rate => format!("<td>{value}/s</td>"),
        Of(whole) => {
            let number = |t: &str| t.parse::<u64>().unwrap_or(0);
            let share = number(value).saturating_mul(100).checked_div(number(&figure(row, whole)));
            format!("<td>{value}</td><td>({}%)</td>", share.unwrap_or(0))
        }
        Limit => format!("<td>{}</td>", if value.is_empty() || value == "0" { "-" } else { value }),
        Times(greatest) => format!("<td>{} / {value}</td><td>ms</td>", figure(row, greatest)),
    }
}

/// The tip of a cell, by the column that the cell shows.
pub fn cell(row: &Row<'_>, column: &str, shown: &str) -> String {
    let server = row.kind == Kind::Server;
    match column {
        "rate" => with_table(shown, &lines(row, without_requests(row, RATE))),
        "rate_max" => with_table(shown, &lines(row, without_requests(row, PEAK))),
        "scur" if server => with_table(shown, &lines(row, SERVER_CONNECTIONS)),
        "stot" if row.is_front() => {
            let few = if row.http() { FRONT_TOTALS } else { &FRONT_TOTALS[..2] };
            with_table(shown, &lines(row, few))
        }
        "stot" => with_table(shown, &totals(row)),
        "bout" if !server => with_table(shown, &lines(row, BYTES)),
        "eresp" => {
            let aborts = (figure(row, "cli_abrt"), figure(row, "srv_abrt"));
            tipped(
                shown,
                &format!("Connection resets during transfers: {} client, {} server", aborts.0, aborts.1),
            )
        }
        "chkfail" => {
            let seen = Some(figure(row, "hanafail")).filter(|n| !n.is_empty());
            let seen = seen.map_or(String::new(), |n| format!("+{n} failed responses"));
            tipped(shown, &format!("Failed Health Checks{seen}"))
        }
        "check_status" => {
            let parts = [figure(row, "check_desc"), figure(row, "last_chk")];
            let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
            tipped(shown, &parts.join(": "))
        }
        _ => shown.to_owned(),
    }
}

fn without_requests<'l>(row: &Row<'_>, list: &'l [Line]) -> &'l [Line] {
    if row.http() { list } else { &list[..2] }
}

fn totals(row: &Row<'_>) -> String {
    let first = if row.http() { BACK_TOTALS } else { &BACK_TOTALS[..1] };
    let mut out = lines(row, first);
    out.push_str("<tr><th colspan=\"3\">Max / Avg over last 1024 success. conn.</th></tr>");
    for line in TIMES.iter().filter(|(_, column, _)| row.http() || *column != "rtime") {
        out.push_str(&lines(row, std::slice::from_ref(line)));
    }
    out
}

/// What the name of a row shows with `stats show-legends`.
pub fn name(row: &Row<'_>) -> String {
    let mut parts = Vec::new();
    let address = figure(row, "addr");
    if !address.is_empty() {
        parts.push(match address.parse::<std::net::SocketAddr>() {
            Ok(a) if a.is_ipv4() => format!("IPv4: {a}"),
            Ok(a) => format!("IPv6: {a}"),
            Err(_) => address,
        });
    }
    let quoted = |label: &str, column: &str| {
        let value = figure(row, column);
        (!value.is_empty()).then(|| format!("{label}: '{value}'"))
    };
    match row.kind {
        Kind::Frontend => {}
        Kind::Listener => {
            parts.push(format!("proto={}", figure(row, "proto")));
            parts.push(format!("id: {}", row.id()));
        }
        Kind::Server => {
            parts.push(format!("id: {}", row.id()));
            parts.push(format!(
                "rid: {}",
                Some(figure(row, "srid")).filter(|r| !r.is_empty()).unwrap_or("0".into())
            ));
            parts.extend(quoted("cookie", "cookie"));
        }
        Kind::Backend => {
            parts.push(format!("balancing: {}", figure(row, "algo")));
            parts.extend(quoted("cookie", "cookie"));
        }
    }
    parts.join(", ")
}

/// The figures of a protocol, for `stats show-modules`; empty if the object has none.
pub fn module(row: &Row<'_>, name: &str) -> String {
    let mut out = String::new();
    let prefix = format!("{name}_");
    for column in super::super::protocols::PROTOCOLS.iter().filter(|c| c.name.starts_with(&prefix)) {
        let value = (column.read)(row).to_text();
        if !value.is_empty() {
            let about = column.about.split_once(": ").map_or(column.about, |(_, about)| about);
            let _ = write!(out, "<tr><th>{about}</th><td>{value}</td></tr>");
        }
    }
    if out.is_empty() { out } else { with_table(name, &out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_of_tips_exist() {
        let all = [RATE, PEAK, SERVER_CONNECTIONS, FRONT_TOTALS, BACK_TOTALS, TIMES, BYTES];
        for (_, name, shape) in all.iter().flat_map(|l| l.iter()) {
            let other = match shape {
                Of(other) | Times(other) => other,
                _ => name,
            };
            for name in [name, other] {
                assert!(crate::stats::table::COLUMNS.iter().any(|c| c.name == *name), "{name}");
            }
        }
    }
}
