//! The tables of the page: headings, and a row for each object. The number and order of cells are those that
//! scripts count on: a cell that spans several columns does so on HAProxy's page, too.

use std::fmt::Write;

use program::Proxy;

use super::super::row::{Kind, Row, tracked};
use super::super::table;
use super::{Sheet, escape, tips};

/// Groups of columns and the headings under them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Queue", &["Cur", "Max", "Limit"]),
    ("Session rate", &["Cur", "Max", "Limit"]),
    ("Sessions", &["Cur", "Max", "Limit", "Total", "LbTot", "Last"]),
    ("Bytes", &["In", "Out"]),
    ("Denied", &["Req", "Resp"]),
    ("Errors", &["Req", "Conn", "Resp"]),
    ("Warnings", &["Retr", "Redis"]),
    ("Server", &["Status", "LastChk", "Wght", "Act", "Bck", "Chk", "Dwn", "Dwntme", "Thrtle"]),
];

/// Protocols that `stats show-modules` adds a column for.
const MODULES: &[&str] = &["h2", "ssl", "h3", "quic", "h1"];

/// The two lines of headings.
pub fn headings(sheet: &mut Sheet<'_>, proxy: &Proxy) {
    let (form, modules) = (sheet.has_form(proxy), sheet.page.modules);
    let out = &mut sheet.out;
    if form {
        out.push_str(
            "<th rowspan=\"2\"><input type=\"checkbox\" title=\"all\" onclick=\"for (const c of \
this.closest('form').querySelectorAll('input[name=s]')) c.checked = this.checked\"></th>",
        );
    } else if sheet.admin {
        out.push_str("<th rowspan=\"2\"></th>");
    }
    out.push_str("<th rowspan=\"2\"></th>");
    for (heading, columns) in GROUPS {
        let _ = write!(out, "<th colspan=\"{}\">{heading}</th>", columns.len());
    }
    if modules {
        let _ = write!(out, "<th colspan=\"{}\">Extra modules</th>", MODULES.len());
    }
    out.push_str("</tr>\n<tr class=\"titre\">");
    let modules = if modules { MODULES } else { &[] };
    for heading in GROUPS.iter().flat_map(|(_, columns)| *columns).chain(modules) {
        let _ = write!(out, "<th>{heading}</th>");
    }
    out.push_str("</tr>");
}

/// A figure as text; empty for none.
pub fn figure(row: &Row<'_>, column: &str) -> String {
    table::COLUMNS.iter().find(|c| c.name == column).map_or(String::new(), |c| (c.read)(row).to_text())
}

/// One row.
pub fn write(sheet: &mut Sheet<'_>, row: &Row<'_>) {
    let mut cells = Cells { row, out: String::with_capacity(2048) };
    match row.kind {
        Kind::Frontend => cells.frontend(),
        Kind::Listener => cells.listener(),
        Kind::Server => cells.server(),
        Kind::Backend => cells.backend(),
    }
    if sheet.page.modules {
        MODULES.iter().for_each(|m| cells.cell(&tips::module(row, m)));
    }
    let cells = cells.out;
    let _ = write!(sheet.out, "<tr class=\"{}\">", class(row));
    if sheet.admin {
        match row.server {
            Some(s) => {
                let name = escape(&s.name);
                let _ = write!(sheet.out, "<td><input type=\"checkbox\" name=\"s\" value=\"{name}\"></td>");
            }
            None => sheet.out.push_str("<td></td>"),
        }
    }
    let name = name(row, sheet.page.legends);
    let _ = writeln!(sheet.out, "{name}{cells}</tr>");
}

fn name(row: &Row<'_>, legends: bool) -> String {
    let (anchor, shown) = match row.kind {
        Kind::Frontend => ("Frontend".into(), "Frontend".into()),
        Kind::Backend => ("Backend".into(), "Backend".into()),
        Kind::Listener => (format!("+{}", row.name()), row.name()),
        Kind::Server => (row.name(), row.name()),
    };
    let (anchor, shown) = (escape(&format!("{}/{anchor}", row.proxy.name)), escape(&shown));
    let mut link = format!("<a class=\"lfsb\" href=\"#{anchor}\">{shown}</a>");
    if legends && row.kind != Kind::Frontend {
        link = tips::tipped(&link, &tips::name(row));
    }
    format!("<td class=\"ac\"><a name=\"{anchor}\" id=\"{anchor}\"></a>{link}</td>")
}

/// The cells of a row behind its name.
struct Cells<'r> {
    row: &'r Row<'r>,
    out: String,
}

impl Cells<'_> {
    fn cell(&mut self, html: &str) {
        let _ = write!(self.out, "<td>{html}</td>");
    }

    fn centred(&mut self, html: &str) {
        let _ = write!(self.out, "<td class=\"ac\">{html}</td>");
    }

    fn empty(&mut self, cells: usize) {
        (0..cells).for_each(|_| self.cell(""));
    }

    /// One empty cell over several columns.
    fn span(&mut self, columns: usize) {
        let _ = write!(self.out, "<td colspan=\"{columns}\"></td>");
    }

    /// Figures, each with its tip.
    fn figures(&mut self, columns: &[&str]) {
        for column in columns {
            let shown = grouped(&escape(&figure(self.row, column)));
            self.cell(&tips::cell(self.row, column, &shown));
        }
    }

    fn limit(&mut self, column: &str) {
        let value = figure(self.row, column);
        self.cell(if value.is_empty() || value == "0" { "-" } else { &value });
    }

    fn frontend(&mut self) {
        self.span(3);
        self.figures(&["rate", "rate_max"]);
        self.limit("rate_lim");
        self.figures(&["scur", "smax", "slim", "stot"]);
        self.empty(2);
        self.figures(&["bin", "bout", "dreq", "dresp", "ereq"]);
        self.empty(4);
        self.status();
        self.span(8);
    }

    fn listener(&mut self) {
        self.span(3);
        self.span(3);
        self.figures(&["scur", "smax", "slim", "stot"]);
        self.empty(2);
        self.figures(&["bin", "bout", "dreq", "dresp", "ereq"]);
        self.empty(4);
        self.status();
        self.span(8);
    }

    fn backend(&mut self) {
        self.figures(&["qcur", "qmax"]);
        self.empty(1);
        let (rate, peak) = (figure(self.row, "rate"), figure(self.row, "rate_max"));
        self.cell(&rate);
        self.cell(&peak);
        self.empty(1);
        self.figures(&["scur", "smax", "slim", "stot", "lbtot"]);
        self.cell(&age(&figure(self.row, "lastsess")));
        self.figures(&["bin", "bout", "dreq", "dresp"]);
        self.empty(1);
        self.figures(&["econ", "eresp", "wretr", "wredis"]);
        self.status();
        self.empty(1);
        self.weight();
        self.centred(&figure(self.row, "act"));
        self.centred(&figure(self.row, "bck"));
        self.empty(1);
        self.figures(&["chkdown"]);
        let down = if self.row.proxy.present().next().is_none() {
            String::new()
        } else {
            figure(self.row, "downtime")
        };
        self.cell(&span(&down));
        self.empty(1);
    }

    fn server(&mut self) {
        self.figures(&["qcur", "qmax"]);
        self.limit("qlimit");
        let (rate, peak) = (figure(self.row, "rate"), figure(self.row, "rate_max"));
        self.cell(&rate);
        self.cell(&peak);
        self.empty(1);
        self.figures(&["scur", "smax"]);
        self.limit("slim");
        self.figures(&["stot", "lbtot"]);
        self.cell(&age(&figure(self.row, "lastsess")));
        self.figures(&["bin", "bout"]);
        self.empty(1);
        self.figures(&["dresp"]);
        self.empty(1);
        self.figures(&["econ", "eresp", "wretr", "wredis"]);
        self.status();
        self.last_check();
        self.weight();
        for column in ["act", "bck"] {
            self.centred(if figure(self.row, column) == "1" { "Y" } else { "-" });
        }
        self.checks();
        let throttle = Some(figure(self.row, "throttle")).filter(|t| !t.is_empty());
        self.centred(&throttle.map_or("-".into(), |t| t + " %"));
    }

    fn status(&mut self) {
        let status = escape(&figure(self.row, "status"));
        if self.row.is_front() || self.row.is_listener() {
            return self.centred(&status);
        }
        if status == "no check" {
            return self.centred("<i>no check</i>");
        }
        let since = span(&figure(self.row, "lastchg"));
        let arrow = match class(self.row) {
            "active_going_down" | "backup_going_down" => " &darr;",
            "active_going_up" | "backup_going_up" => " &uarr;",
            _ => "",
        };
        if self.row.is_back() && status.starts_with("DOWN") {
            return self.centred(&format!("{since} <b class=\"alarm\">{status}</b>"));
        }
        self.centred(&format!("{since} {status}{arrow}"));
    }

    fn last_check(&mut self) {
        let status = figure(self.row, "check_status");
        if status.is_empty() {
            return self.cell("");
        }
        let mut text = status;
        for (column, before, after) in [("check_code", "/", ""), ("check_duration", " in ", "ms")] {
            let value = figure(self.row, column);
            if !value.is_empty() {
                text.push_str(&format!("{before}{value}{after}"));
            }
        }
        let text = tips::cell(self.row, "check_status", &escape(&text));
        self.centred(&text);
    }

    fn weight(&mut self) {
        let text = format!("{}/{}", figure(self.row, "weight"), figure(self.row, "uweight"));
        self.centred(&text);
    }

    /// Failed checks, times down and time down: of a server that tracks another one, which; without checks
    /// nothing.
    fn checks(&mut self) {
        let Some(server) = self.row.server else { return };
        if let Some((proxy, other)) = tracked(&self.row.shared.program, server) {
            let via = escape(&format!("{}/{}", proxy.name, other.name));
            let _ = write!(
                self.out,
                "<td class=\"ac\" colspan=\"3\"><a class=\"lfsb\" href=\"#{via}\">via {via}</a></td>"
            );
            return;
        }
        if figure(self.row, "chkfail").is_empty() {
            return self.span(3);
        }
        self.figures(&["chkfail", "chkdown"]);
        self.cell(&span(&figure(self.row, "downtime")));
    }
}

/// A number with its thousands set apart; copied, it is the number.
fn grouped(number: &str) -> String {
    if number.len() < 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut out = String::with_capacity(number.len() * 2);
    for (at, digit) in number.char_indices() {
        let left = number.len() - at;
        match left > 1 && left % 3 == 1 {
            true => out.push_str(&format!("<span class=\"rls\">{digit}</span>")),
            false => out.push(digit),
        }
    }
    out
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

/// The class of a row.
fn class(row: &Row<'_>) -> &'static str {
    match row.kind {
        Kind::Frontend => return "frontend",
        Kind::Backend => return "backend",
        Kind::Listener => return "socket",
        Kind::Server => {}
    }
    server_class(&figure(row, "status"), row.server.is_some_and(|s| s.backup))
}

/// The class of a server's row by its `status`.
fn server_class(status: &str, backup: bool) -> &'static str {
    let moving = status.contains('/') && !status.contains("via");
    let pair = match status.split(' ').next().unwrap_or("") {
        "MAINT" => return "maintain",
        "NOLB" => ("active_nolb", "backup_nolb"),
        "DRAIN" => ("active_draining", "backup_draining"),
        "no" => ("active_no_check", "backup_no_check"),
        "UP" if moving => ("active_going_down", "backup_going_down"),
        "UP" => ("active_up", "backup_up"),
        "DOWN" if moving => ("active_going_up", "backup_going_up"),
        _ => ("active_down", "backup_down"),
    };
    if backup { pair.1 } else { pair.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_show_two_units() {
        for (s, text) in [("0", "0s"), ("61", "1m1s"), ("3700", "1h1m"), ("90000", "1d1h"), ("", "")] {
            assert_eq!(span(s), text);
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped("999"), "999");
        assert_eq!(grouped("9895"), "<span class=\"rls\">9</span>895");
        assert_eq!(grouped("1234567"), "<span class=\"rls\">1</span>23<span class=\"rls\">4</span>567");
        assert_eq!(grouped("OPEN"), "OPEN");
    }

    #[test]
    fn the_class_of_a_row_tells_state_and_role() {
        for (status, backup, class) in [
            ("UP", false, "active_up"),
            ("UP", true, "backup_up"),
            ("UP 1/3", false, "active_going_down"),
            ("DOWN 1/2", true, "backup_going_up"),
            ("DOWN (agent)", false, "active_down"),
            ("DRAIN", true, "backup_draining"),
            ("NOLB", false, "active_nolb"),
            ("MAINT (via a/b)", true, "maintain"),
            ("no check", false, "active_no_check"),
        ] {
            assert_eq!(server_class(status, backup), class, "{status}");
        }
    }
}
