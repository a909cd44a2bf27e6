//! The page as HTML: its frame. Rows are in [`rows`], what cells show when the pointer rests on them in
//! [`tips`].
//!
//! Scripts read this page as well as people: headings, their order, the classes of rows, the anchors
//! (`proxy/Frontend`, `proxy/server`, `proxy/+listener`) and the fields of the form are those of HAProxy's
//! page. Everything that comes from the configuration or from the network is escaped.

mod rows;
mod tips;

use std::fmt::Write;

use engine::Shared;
use program::Proxy;
use program::stats::Page;

use super::options::{Options, RESULTS};
use super::post::ACTIONS;
use super::row::{Filter, Row, each};
use crate::info::Facts;
use crate::product;

const STYLE: &str = include_str!("style.css");

/// What the colours mean: pairs of a class and a text, as they stand beside each other.
const LEGEND: &[(&str, &str)] = &[
    ("active_up", "active UP"),
    ("backup_up", "backup UP"),
    ("active_going_down", "active UP, going down"),
    ("backup_going_down", "backup UP, going down"),
    ("active_going_up", "active DOWN, going up"),
    ("backup_going_up", "backup DOWN, going up"),
    ("active_down", "active or backup DOWN"),
    ("active_no_check", "not checked"),
    ("maintain", "DOWN for maintenance (MAINT)"),
    ("active_draining", "soft stopped for maintenance (DRAIN, NOLB)"),
];

/// The page being written, and all that its parts depend on.
struct Sheet<'p> {
    shared: &'p Shared,
    page: &'p Page,
    options: &'p Options,
    /// Whoever looks may change things: tables have a column of boxes.
    admin: bool,
    out: String,
}

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
    let mut sheet = Sheet { shared, page, options, admin, out: String::with_capacity(16 * 1024) };
    sheet.head();
    sheet.about();
    sheet.legend();
    sheet.links();
    sheet.message();
    let mut current: Option<u32> = None;
    each(shared, filter, |row| {
        if current != Some(row.index) {
            sheet.end_proxy(current);
            sheet.begin_proxy(&row);
            current = Some(row.index);
        }
        rows::write(&mut sheet, &row);
    });
    sheet.end_proxy(current);
    sheet.out.push_str("</body></html>\n");
    sheet.out
}

impl Sheet<'_> {
    fn head(&mut self) {
        let page = self.page;
        let version =
            if page.show_version { format!(" version {}", product::VERSION) } else { String::new() };
        let node = page.node.as_deref().map_or(String::new(), |n| format!(" on {}", escape(n)));
        let about = page.description.as_deref().map_or(String::new(), |d| format!(": {}", escape(d)));
        let _ = write!(
            self.out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\">\
<title>Statistics Report for {}{node}</title>\n<style>\n{STYLE}</style></head>\n<body>\n<h1>Harrier{version}</h1>\n\
<h2>Statistics Report for pid {}{node}{about}</h2>\n",
            product::NAME,
            std::process::id(),
        );
    }

    fn about(&mut self) {
        // Other workers can't be asked while a request is answered.
        let here = std::iter::once((rt::worker_stats(), rt::buf_stats()));
        let facts = Facts::new(self.shared, here, false);
        let f = |name| facts.text(name);
        let memmax = Some(f("Memmax_MB")).filter(|m| m != "0").map_or("unlimited".into(), |m| m + " MB");
        let _ = write!(
            self.out,
            "<div class=\"top\"><section><h3>General process information</h3>\n<p><b>pid = </b> {} (process #{}, \
nbproc = {}, nbthread = {})<br>\n<b>uptime = </b> {}; warnings = {}<br>\n<b>system limits:</b> memmax = {memmax}; \
ulimit-n = {}<br>\n<b>maxsock = </b> {}; <b>maxconn = </b> {}; <b>reached = </b> {}; <b>maxpipes = </b> {}<br>\n\
current conns = {}; current pipes = {}/{}; conn rate = {}/sec; sess rate = {}/sec<br>\n\
Tasks of this thread: {}; idle = {} %</p></section>\n",
            f("Pid"),
            f("Process_num"),
            f("Nbproc"),
            f("Nbthread"),
            f("Uptime"),
            f("TotalWarnings"),
            f("Ulimit-n"),
            f("Maxsock"),
            f("Maxconn"),
            f("MaxconnReached"),
            f("Maxpipes"),
            f("CurrConns"),
            f("PipesUsed"),
            f("PipesFree"),
            f("ConnRate"),
            f("SessRate"),
            f("Tasks"),
            f("Idle_pct"),
        );
    }

    fn legend(&mut self) {
        self.out.push_str("<section><h3>Colours</h3>\n<ul class=\"legend\">");
        for (class, text) in LEGEND {
            let _ = write!(self.out, "<li><span class=\"{class}\"></span>{text}");
        }
        self.out.push_str("</ul></section>\n");
    }

    fn links(&mut self) {
        let plain = Options { result: None, form: Default::default(), ..self.options.clone() };
        let prefix = &self.page.uri;
        let _ = write!(
            self.out,
            "<section><h3>Display options</h3>\n<ul><li><form method=\"get\">Scope: <input name=\"scope\" value=\"{}\" \
size=\"8\" maxlength=\"20\" tabindex=\"1\"></form>\n",
            escape(&plain.scope)
        );
        let mut item = |o: Options, form: &str, text: &str| {
            let to = escape(&format!("{prefix}{form}{}", o.link()));
            let _ = writeln!(self.out, "<li><a href=\"{to}\">{text}</a>");
        };
        let (up, quiet) = (plain.up, plain.no_refresh);
        let toggled = if up { "Show all servers" } else { "Hide 'DOWN' servers" };
        item(Options { up: !up, ..plain.clone() }, "", toggled);
        if self.page.refresh.is_some() {
            let toggled = if quiet { "Enable refresh" } else { "Disable refresh" };
            item(Options { no_refresh: !quiet, ..plain.clone() }, "", toggled);
        }
        item(plain.clone(), "", "Refresh now");
        let export = Options { up: false, no_refresh: self.page.refresh.is_some() || quiet, ..plain };
        item(export.clone(), ";csv", "CSV export");
        item(export, ";json", "JSON export");
        item(Options::default(), ";json-schema", "JSON schema");
        self.out.push_str("</ul></section></div>\n");
    }

    fn message(&mut self) {
        let Some(result) = self.options.result else { return };
        let Some((.., class, text)) = RESULTS.iter().find(|(r, ..)| *r == result) else { return };
        let back = Options { result: None, form: Default::default(), ..self.options.clone() };
        let href = escape(&format!("{}{}", self.page.uri, back.link()));
        let _ = writeln!(
            self.out,
            "<div class=\"message {class}\"><a href=\"{href}\" title=\"Remove this message\">[X]</a> {text}</div>"
        );
    }

    fn begin_proxy(&mut self, row: &Row<'_>) {
        let p = row.proxy;
        if self.has_form(p) {
            self.out.push_str("<form method=\"post\">");
        }
        let name = escape(&p.name);
        let link = format!("<a class=\"px\" href=\"#{name}\">{name}</a>");
        let link = if self.page.legends { tips::tipped(&link, &legend_of(p)) } else { link };
        let about =
            p.description.as_deref().map_or(String::new(), |d| format!(" <small>{}</small>", escape(d)));
        let _ = write!(
            self.out,
            "<h3 class=\"pxname\"><a name=\"{name}\" id=\"{name}\"></a>{link}{about}</h3>\n\
<table class=\"tbl\"><thead>\n<tr class=\"titre\">"
        );
        rows::headings(self, p);
        self.out.push_str("</thead>\n<tbody>\n");
    }

    /// Whether the table of a proxy stands in a form.
    fn has_form(&self, p: &Proxy) -> bool {
        self.admin && p.is_backend && p.present().next().is_some()
    }

    fn end_proxy(&mut self, current: Option<u32>) {
        let Some(index) = current else { return };
        self.out.push_str("</tbody></table>\n");
        // It may have been deleted since its head was written.
        let Some(proxy) = self.shared.program.proxies.get(index as usize) else { return };
        if !self.has_form(&proxy) {
            return;
        }
        self.out.push_str(
            "<p>Choose the action for the chosen servers: <select name=\"action\"><option value=\"\"></option>",
        );
        for (word, text, _) in ACTIONS.iter().filter(|(_, text, _)| !text.is_empty()) {
            let _ = write!(self.out, "<option value=\"{word}\">{text}</option>");
        }
        let id = proxy.state.id;
        let _ = writeln!(
            self.out,
            "</select><input type=\"hidden\" name=\"b\" value=\"#{id}\">&nbsp;\
<input type=\"submit\" value=\"Apply\"></p></form>"
        );
    }
}

fn legend_of(p: &Proxy) -> String {
    let cap = match (p.is_frontend, p.is_backend) {
        (true, true) => "proxy",
        (true, false) => "frontend",
        _ => "backend",
    };
    let mode = p.mode.word();
    format!("cap: {cap}, mode: {mode}, id: {}", p.state.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
    }
}
