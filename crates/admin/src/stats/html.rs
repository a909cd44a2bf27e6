//! The page as HTML. Everything that comes from the configuration or from the network is escaped.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use engine::Shared;
use program::Proxy;
use program::proxy::Mode;
use program::stats::Page;

use super::options::{Options, RESULTS};
use super::post::ACTIONS;
use super::row::{Filter, Kind, Row, each};
use super::table;
use crate::product;

const STYLE: &str = include_str!("style.css");

/// Groups of columns: a heading, and the columns with their headings.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    ("Queue", &[("Cur", "qcur"), ("Max", "qmax"), ("Limit", "qlimit")]),
    ("Session rate", &[("Cur", "rate"), ("Max", "rate_max"), ("Limit", "rate_lim")]),
    (
        "Sessions",
        &[
            ("Cur", "scur"),
            ("Max", "smax"),
            ("Limit", "slim"),
            ("Total", "stot"),
            ("LbTot", "lbtot"),
            ("Last", "lastsess"),
        ],
    ),
    ("Bytes", &[("In", "bin"), ("Out", "bout")]),
    ("Denied", &[("Req", "dreq"), ("Resp", "dresp")]),
    ("Errors", &[("Req", "ereq"), ("Conn", "econ"), ("Resp", "eresp")]),
    ("Warnings", &[("Retr", "wretr"), ("Redis", "wredis")]),
    (
        "Server",
        &[
            ("Status", "status"),
            ("LastChk", "check_status"),
            ("Wght", "weight"),
            ("Act", "act"),
            ("Bck", "bck"),
            ("Chk", "chkfail"),
            ("Dwn", "chkdown"),
            ("Dwntme", "downtime"),
            ("Thrtle", "throttle"),
        ],
    ),
];

/// Figures that a cell shows when the pointer rests on it.
const DETAILS: &[(&str, &[&str])] = &[
    ("rate", &["conn_rate", "rate", "req_rate"]),
    ("rate_max", &["conn_rate_max", "rate_max", "req_rate_max"]),
    ("scur", &["used_conn_cur", "srv_icur", "idle_conn_cur", "safe_conn_cur", "need_conn_est", "src_ilim"]),
    (
        "stot",
        &[
            "conn_tot",
            "stot",
            "connect",
            "reuse",
            "req_tot",
            "hrsp_1xx",
            "hrsp_2xx",
            "hrsp_3xx",
            "hrsp_4xx",
            "hrsp_5xx",
            "hrsp_other",
            "intercepted",
            "wrew",
            "eint",
            "qtime",
            "qtime_max",
            "ctime",
            "ctime_max",
            "rtime",
            "rtime_max",
            "ttime",
            "ttime_max",
        ],
    ),
    ("dreq", &["dcon", "dses", "dreq"]),
    ("eresp", &["cli_abrt", "srv_abrt"]),
    ("check_status", &["check_desc", "check_code", "check_duration", "last_chk", "agent_desc", "last_agt"]),
    ("chkfail", &["chkfail", "hanafail"]),
];

/// What the colours mean.
const LEGEND: &[(&str, &str)] = &[
    ("up", "active UP"),
    ("backup-up", "backup UP"),
    ("warn", "UP, going down, or DOWN, going up"),
    ("down", "active or backup DOWN"),
    ("nocheck", "not checked"),
    ("maint", "in maintenance (MAINT)"),
    ("drain", "soft stopped (NOLB, DRAIN)"),
];

/// Writes a text so that it may stand in HTML, also inside of quotes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The whole page.
pub fn render(shared: &Shared, page: &Page, options: &Options, filter: &Filter, admin: bool) -> String {
    let mut out = String::with_capacity(16 * 1024);
    head(&mut out, page);
    about(&mut out, shared);
    legend(&mut out);
    links(&mut out, page, options);
    message(&mut out, page, options);
    let mut current: Option<(u32, bool)> = None;
    each(shared, filter, |row| {
        if current.map(|(index, _)| index) != Some(row.index) {
            end_proxy(&mut out, current.take(), shared);
            let form = admin && row.proxy.is_backend && !row.proxy.servers.is_empty();
            begin_proxy(&mut out, &row, page, form);
            current = Some((row.index, form));
        }
        let form = current.is_some_and(|(_, form)| form);
        line(&mut out, &row, page, form);
    });
    end_proxy(&mut out, current, shared);
    out.push_str("</body></html>\n");
    out
}

fn head(out: &mut String, page: &Page) {
    let version = if page.hide_version { String::new() } else { format!(" version {}", product::VERSION) };
    let node = page.node.as_deref().map_or(String::new(), |n| format!(" on {}", escape(n)));
    let about = page.description.as_deref().map_or(String::new(), |d| format!(": {}", escape(d)));
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Statistics Report for \
{}{node}</title>\n<style>\n{STYLE}</style></head>\n<body>\n<h1>Harrier{version}</h1>\n\
<h2>Statistics Report for pid {}{node}{about}</h2>\n",
        product::NAME,
        std::process::id(),
    );
}

fn about(out: &mut String, shared: &Shared) {
    let global = &shared.program.global;
    let process = &shared.program.world.process;
    let now = rt::now();
    let s = now.since(shared.started).as_secs();
    let maxconn = process.maxconn.load(Relaxed);
    let _ = write!(
        out,
        "<div class=\"top\"><section><h3>General process information</h3>\n<p><b>pid = </b> {} (process #1, \
nbproc = 1, nbthread = {})<br>\n<b>uptime = </b> {}d {}h{:02}m{:02}s<br>\n<b>system limits:</b> ulimit-n = {}<br>\n\
<b>maxconn = </b> {maxconn}<br>\ncurrent conns = {}; conn rate = {}/sec; sess rate = {}/sec</p></section>\n",
        std::process::id(),
        global.threads,
        s / 86_400,
        s / 3600 % 24,
        s / 60 % 60,
        s % 60,
        global.ulimit_n,
        process.connections.load(Relaxed),
        process.conn_rate.read(now.as_millis()),
        process.sess_rate.read(now.as_millis()),
    );
}

fn legend(out: &mut String) {
    out.push_str("<section><h3>Colours</h3>\n<ul class=\"legend\">");
    for (class, text) in LEGEND {
        let _ = write!(out, "<li><span class=\"{class}\"></span>{text}");
    }
    out.push_str("</ul></section>\n");
}

fn links(out: &mut String, page: &Page, options: &Options) {
    let plain = Options { result: None, form: Default::default(), ..options.clone() };
    let uri = |o: &Options, form: &str| escape(&format!("{}{form}{}", page.uri, o.link()));
    let _ = write!(
        out,
        "<section><h3>Display options</h3>\n<ul><li><form method=\"get\">Scope: <input name=\"scope\" value=\"{}\" \
size=\"8\" maxlength=\"20\"></form>\n",
        escape(&options.scope)
    );
    let mut item = |o: Options, form: &str, text: &str| {
        let _ = writeln!(out, "<li><a href=\"{}\">{text}</a>", uri(&o, form));
    };
    let (up, refresh) = (plain.up, plain.no_refresh);
    item(
        Options { up: !up, ..plain.clone() },
        "",
        if up { "Show all servers" } else { "Hide 'DOWN' servers" },
    );
    if page.refresh.is_some() {
        let text = if refresh { "Enable refresh" } else { "Disable refresh" };
        item(Options { no_refresh: !refresh, ..plain.clone() }, "", text);
    }
    item(plain.clone(), "", "Refresh now");
    item(plain.clone(), ";csv", "CSV export");
    item(plain.clone(), ";json", "JSON export");
    item(plain, ";json-schema", "JSON schema");
    out.push_str("</ul></section></div>\n");
}

fn message(out: &mut String, page: &Page, options: &Options) {
    let Some(result) = options.result else { return };
    let Some((.., class, text)) = RESULTS.iter().find(|(r, ..)| *r == result) else { return };
    let back = Options { result: None, form: Default::default(), ..options.clone() };
    let href = escape(&format!("{}{}", page.uri, back.link()));
    let _ = writeln!(
        out,
        "<p class=\"message {class}\"><a href=\"{href}\" title=\"Remove this message\">[X]</a> {text}</p>"
    );
}

fn begin_proxy(out: &mut String, row: &Row<'_>, page: &Page, form: bool) {
    let p = row.proxy;
    let name = escape(&p.name);
    if form {
        out.push_str("<form method=\"post\">");
    }
    let tip = if page.legends { format!(" title=\"{}\"", escape(&legend_of(p))) } else { String::new() };
    let about = p.description.as_deref().map_or(String::new(), |d| format!(" <small>{}</small>", escape(d)));
    let _ = write!(
        out,
        "<h3 class=\"proxy\" id=\"{name}\"{tip}><a href=\"#{name}\">{name}</a>{about}</h3>\n<table><thead>\n<tr>"
    );
    if form {
        out.push_str(
            "<th rowspan=\"2\"><input type=\"checkbox\" title=\"all\" onclick=\"for (const c of \
this.closest('form').querySelectorAll('input[name=s]')) c.checked = this.checked\"></th>",
        );
    }
    out.push_str("<th rowspan=\"2\"></th>");
    for (heading, columns) in GROUPS {
        let _ = write!(out, "<th colspan=\"{}\">{heading}</th>", columns.len());
    }
    out.push_str("</tr>\n<tr>");
    for (heading, _) in GROUPS.iter().flat_map(|(_, columns)| *columns) {
        let _ = write!(out, "<th>{heading}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
}

fn legend_of(p: &Proxy) -> String {
    let cap = match (p.is_frontend, p.is_backend) {
        (true, true) => "proxy",
        (true, false) => "frontend",
        _ => "backend",
    };
    let mode = if p.mode == Mode::Http { "http" } else { "tcp" };
    format!("cap: {cap}, mode: {mode}, id: {}", p.state.id)
}

fn end_proxy(out: &mut String, current: Option<(u32, bool)>, shared: &Shared) {
    let Some((index, form)) = current else { return };
    out.push_str("</tbody></table>\n");
    if !form {
        return;
    }
    out.push_str(
        "<p>Choose the action for the chosen servers: <select name=\"action\"><option value=\"\"></option>",
    );
    for (word, text, _) in ACTIONS {
        let _ = write!(out, "<option value=\"{word}\">{text}</option>");
    }
    let id = shared.program.proxy(index).state.id;
    let _ = writeln!(
        out,
        "</select><input type=\"hidden\" name=\"b\" value=\"#{id}\">&nbsp;<input type=\"submit\" value=\"Apply\"></p></form>"
    );
}

fn line(out: &mut String, row: &Row<'_>, page: &Page, form: bool) {
    let name = match row.kind {
        Kind::Frontend => "Frontend".to_owned(),
        Kind::Backend => "Backend".to_owned(),
        _ => row.name(),
    };
    let (proxy, shown) = (escape(&row.proxy.name), escape(&name));
    let _ = write!(out, "<tr class=\"{}\">", class(row));
    if form {
        match row.server {
            Some(_) => {
                let _ = write!(out, "<td><input type=\"checkbox\" name=\"s\" value=\"{shown}\"></td>");
            }
            None => out.push_str("<td></td>"),
        }
    }
    let tip = if page.legends { format!(" title=\"{}\"", escape(&tip(row))) } else { String::new() };
    let _ = write!(out, "<td class=\"name\" id=\"{proxy}/{shown}\"{tip}>");
    match row.server.and_then(|s| s.redir.as_deref()) {
        Some(to) => {
            let _ = write!(out, "<a href=\"{}\">{shown}</a>", escape(&String::from_utf8_lossy(to)));
        }
        None => {
            let _ = write!(out, "<a href=\"#{proxy}/{shown}\">{shown}</a>");
        }
    }
    out.push_str("</td>");
    for (_, column) in GROUPS.iter().flat_map(|(_, columns)| *columns) {
        cell(out, row, column);
    }
    out.push_str("</tr>\n");
}

fn tip(row: &Row<'_>) -> String {
    let parts = [
        ("", "addr"),
        ("id: ", "sid"),
        ("cookie: ", "cookie"),
        ("balancing: ", "algo"),
        ("tracks: ", "tracked"),
    ];
    let text = |(label, column): (&str, &str)| {
        let value = figure(row, column);
        (!value.is_empty()).then(|| format!("{label}{value}"))
    };
    parts.into_iter().filter_map(text).collect::<Vec<_>>().join(", ")
}

/// A figure as text.
fn figure(row: &Row<'_>, column: &str) -> String {
    table::COLUMNS.iter().find(|c| c.name == column).map_or(String::new(), |c| (c.read)(row).to_text())
}

fn cell(out: &mut String, row: &Row<'_>, column: &str) {
    let value = match column {
        "status" => status(row),
        "lastsess" => age(&figure(row, column)),
        "downtime" => span(&figure(row, column)),
        "check_status" => check(row),
        "rate_lim" | "slim" | "qlimit" => Some(figure(row, column)).filter(|v| v != "0").unwrap_or_default(),
        "act" | "bck" if row.server.is_some() => if figure(row, column) == "1" { "Y" } else { "-" }.into(),
        "throttle" => Some(figure(row, column)).filter(|v| !v.is_empty()).map_or(String::new(), |v| v + "%"),
        _ => figure(row, column),
    };
    let details = DETAILS.iter().find(|(name, _)| *name == column).map(|(_, list)| details(row, list));
    let _ = match details.filter(|d| !d.is_empty()) {
        Some(d) => write!(out, "<td title=\"{}\">{}</td>", escape(&d), escape(&value)),
        None => write!(out, "<td>{}</td>", escape(&value)),
    };
}

fn details(row: &Row<'_>, list: &[&str]) -> String {
    let line = |name: &&str| {
        let value = figure(row, name);
        let about = table::COLUMNS.iter().find(|c| c.name == *name).map_or("", |c| c.about);
        (!value.is_empty()).then(|| format!("{about}: {value}"))
    };
    list.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn status(row: &Row<'_>) -> String {
    let status = figure(row, "status");
    if row.is_front() || row.is_listener() {
        return status;
    }
    format!("{} {status}", span(&figure(row, "lastchg")))
}

fn check(row: &Row<'_>) -> String {
    let (status, code, took) =
        (figure(row, "check_status"), figure(row, "check_code"), figure(row, "check_duration"));
    let mut text = status;
    if !code.is_empty() {
        text.push_str(&format!("/{code}"));
    }
    if !took.is_empty() {
        text.push_str(&format!(" in {took}ms"));
    }
    text
}

fn age(seconds: &str) -> String {
    if seconds == "-1" { "?".into() } else { span(seconds) }
}

/// A number of seconds by its two greatest units.
fn span(seconds: &str) -> String {
    let Ok(s) = seconds.parse::<u64>() else { return String::new() };
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{}s", s / 60, s % 60),
        3600..86_400 => format!("{}h{}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{}h", s / 86_400, s / 3600 % 24),
    }
}

fn class(row: &Row<'_>) -> &'static str {
    match row.kind {
        Kind::Frontend => return "frontend",
        Kind::Backend => return "backend",
        Kind::Listener => return "listener",
        Kind::Server => {}
    }
    let status = figure(row, "status");
    let backup = row.server.is_some_and(|s| s.backup);
    match status.split(' ').next().unwrap_or("") {
        "MAINT" => "maint",
        "DRAIN" | "NOLB" => "drain",
        "no" => "nocheck",
        "UP" if status.contains('/') => "warn",
        "UP" if backup => "backup-up",
        "UP" => "up",
        "DOWN" if status.contains('/') => "warn",
        _ => "down",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_of_the_page_exist() {
        let names = GROUPS.iter().flat_map(|(_, c)| *c).map(|(_, n)| n);
        for name in names.chain(DETAILS.iter().flat_map(|(_, list)| *list)) {
            assert!(table::COLUMNS.iter().any(|c| c.name == *name), "{name}");
        }
    }

    #[test]
    fn times_show_two_units() {
        for (s, text) in [("0", "0s"), ("61", "1m1s"), ("3700", "1h1m"), ("90000", "1d1h"), ("", "")] {
            assert_eq!(span(s), text);
        }
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
    }
}
