//! One scrape: the groups of lines that it writes, and how far it has come with them.

use std::fmt::{Debug, Formatter, Write};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::time::{Mono, Wall};
use engine::Shared;
use engine::worker::service::Pieces;
use model::names::EVENTS;
use rt::{BufStats, WorkerStats};

use super::Format;
use super::asked::{Asked, Scope};
use super::table::{CHECKS, Form, KINDS, METRICS, PROCESS, Show, module, states};
use crate::info::Facts;
use crate::stats::protocols::PROTOCOLS;
use crate::stats::resolvers;
use crate::stats::row::{Filter, Kind, Row};
use crate::stats::table::{COLUMNS, Column};
use crate::stats::value::Value;

/// About as many bytes are made at a time: some hundred lines, a fraction of a millisecond.
const PIECE: usize = 16 * 1024;

type Stats = Vec<(usize, (WorkerStats, BufStats))>;

/// What the lines of an object begin with.
struct Object {
    proxy: u32,
    /// The server's index or the listener's number, for those.
    item: u32,
    /// Labels up to the module's.
    labels: String,
    /// Labels behind it: the description of frontends and backends, which stands last.
    behind: String,
}

/// The lines of one metric.
struct Group {
    name: String,
    about: &'static str,
    counter: bool,
    kind: Kind,
    /// What is shown, in this order: first of all objects the first of it.
    series: Vec<Series>,
    /// A column of this family (`extra-counters`).
    module: Option<&'static str>,
}

/// A column of a metric.
#[derive(Clone, Copy)]
struct Series {
    column: &'static Column,
    form: Form,
    /// Only objects that have a figure here are shown.
    beside: Option<&'static Column>,
}

/// A scrape.
pub(super) struct Scrape {
    shared: Arc<Shared>,
    asked: Asked,
    format: Format,
    /// What the other workers are asked for before the figures of the process can be written.
    gathering: Option<Pin<Box<dyn Future<Output = Stats>>>>,
    filter: Filter,
    objects: [Vec<Object>; 4],
    groups: Vec<Group>,
    /// The place of the next line: its group, which of the series, which object.
    at: (usize, usize, usize),
    /// The group at hand has its heading.
    headed: bool,
}

impl Debug for Scrape {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrape").field("asked", &self.asked).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Pieces for Scrape {
    fn poll_next(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<bool> {
        let mut text = String::with_capacity(PIECE + 1024);
        if let Some(gathering) = &mut self.gathering {
            let stats = ready!(gathering.as_mut().poll(cx));
            self.gathering = None;
            self.process(stats, &mut text);
        }
        let more = self.lines(&mut text);
        if !more {
            self.mirrors(&mut text);
            self.tables(&mut text);
            self.resolvers(&mut text);
            if self.format == Format::OpenMetrics {
                text.push_str("# EOF\n");
            }
        }
        out.extend_from_slice(text.as_bytes());
        Poll::Ready(more)
    }
}

impl Scrape {
    pub(super) fn new(shared: Arc<Shared>, asked: Asked, format: Format) -> Scrape {
        let gathering = asked.wants_scope(Scope::Global).then(|| {
            let stats = crate::gather::gather(|_| (rt::worker_stats(), rt::buf_stats()));
            Box::pin(stats) as Pin<Box<dyn Future<Output = Stats>>>
        });
        let groups = groups(&asked);
        let objects = objects(&shared, &asked);
        let filter = Filter::default();
        Scrape { shared, asked, format, gathering, filter, objects, groups, at: (0, 0, 0), headed: false }
    }

    /// The figures of the process.
    fn process(&self, stats: Stats, out: &mut String) {
        let facts = Facts::new(&self.shared, stats.into_iter().map(|(_, stats)| stats), false);
        let text = self.shared.program.global.description.as_deref();
        let described =
            text.filter(|_| self.asked.descriptions).map_or(String::new(), |text| label("desc", text));
        for (figure, name, show) in PROCESS {
            let name = format!("haproxy_process_{name}");
            // Figures of libraries that are not used are zero.
            let (value, about) = facts.figure(figure).unwrap_or((Value::U32(0), "Not in use"));
            if !self.asked.wants(&name) || !value.is_some() {
                continue;
            }
            heading(out, self.format, &name, about, *show == Show::Counter);
            let own = match show {
                Show::Label("desc") if !described.is_empty() => String::new(),
                Show::Label(key) => label(key, &value.to_text()),
                _ => String::new(),
            };
            let labels = [&*own, &*described].map(|l| l.trim_start_matches(',')).join(",");
            let labels = labels.trim_matches(',');
            out.push_str(&name);
            if !labels.is_empty() {
                let _ = write!(out, "{{{labels}}}");
            }
            out.push(' ');
            if matches!(show, Show::Label(_)) {
                out.push('1')
            } else {
                number(&value, out)
            }
            out.push('\n');
        }
    }

    /// Lines of objects, until there are enough for one piece. `true`: there are more.
    fn lines(&mut self, out: &mut String) -> bool {
        let when = (rt::now(), rt::wall());
        while let Some(group) = self.groups.get(self.at.0) {
            let objects = self.objects.get(group.kind as usize).map_or(&[][..], Vec::as_slice);
            let Some(series) = group.series.get(self.at.1).filter(|_| !objects.is_empty()) else {
                (self.at, self.headed) = ((self.at.0 + 1, 0, 0), false);
                continue;
            };
            while let Some(object) = objects.get(self.at.2) {
                if out.len() >= PIECE {
                    return true;
                }
                self.at.2 += 1;
                with_row(&self.shared, &self.filter, when, group.kind, object, |row| {
                    let mut line =
                        Line { out: &mut *out, group, object, headed: &mut self.headed, format: self.format };
                    line.of(row, series);
                });
            }
            self.at = (self.at.0, self.at.1 + 1, 0);
        }
        false
    }

    /// The figures of stick tables.
    fn tables(&self, out: &mut String) {
        type Read = fn(&stick::Table) -> u32;
        const FIGURES: [(&str, &str, Read); 3] = [
            ("haproxy_sticktable_size", "The most entries of the table", |t| t.settings().size),
            ("haproxy_sticktable_used", "Entries in the table", |t| t.used(rt::now().as_millis())),
            ("haproxy_sticktable_local_updates", "Updates of this process for peers, modulo 2^32", |t| {
                t.changes() as u32
            }),
        ];
        let tables = &self.shared.program.tables;
        if !self.asked.wants_scope(Scope::StickTable) || tables.is_empty() {
            return;
        }
        for (name, about, read) in FIGURES.iter().filter(|(name, ..)| self.asked.wants(name)) {
            heading(out, self.format, name, about, false);
            // The one declared last comes first.
            for table in tables.iter().rev() {
                let s = table.settings();
                let _ =
                    writeln!(out, "{name}{{name=\"{}\",type=\"{}\"}} {}", s.name, s.kind.word(), read(table));
            }
        }
    }
}

impl Scrape {
    /// What became of copies of requests, which is ours; nothing where no rule makes any.
    fn mirrors(&self, out: &mut String) {
        const CURRENT: &str = "haproxy_backend_mirror_current";
        const TOTAL: &str = "haproxy_backend_mirror_copies_total";
        let backends = crate::command::mirror::backends(&self.shared.program);
        if !self.asked.wants_scope(Scope::Backend) || backends.is_empty() {
            return;
        }
        if self.asked.wants(CURRENT) {
            heading(out, self.format, CURRENT, "Copies of requests that are under way", false);
            for (name, state) in &backends {
                let current = state.back.mirrored.load(std::sync::atomic::Ordering::Relaxed);
                let _ = writeln!(out, "{CURRENT}{{proxy=\"{name}\"}} {current}");
            }
        }
        if self.asked.wants(TOTAL) {
            heading(out, self.format, TOTAL, "Copies of requests, by what became of them", true);
            for (name, state) in &backends {
                for (fate, sum) in crate::command::mirror::sums(&state.back) {
                    let _ = writeln!(out, "{TOTAL}{{proxy=\"{name}\",fate=\"{fate}\"}} {sum}");
                }
            }
        }
    }

    /// The figures of name servers.
    fn resolvers(&self, out: &mut String) {
        let sections = &self.shared.program.resolvers;
        if !self.asked.wants_scope(Scope::Resolver) || sections.iter().all(|s| s.servers.is_empty()) {
            return;
        }
        for ((event, _, word), about) in EVENTS.iter().zip(resolvers::about()) {
            let name = format!("haproxy_resolver_{word}");
            if !self.asked.wants(&name) {
                continue;
            }
            heading(out, self.format, &name, about, false);
            for (section, server) in sections.iter().flat_map(|s| s.servers.iter().map(move |n| (s, n))) {
                let labels = label("resolver", &section.name) + &label("nameserver", &server.name);
                let value = server.state.get(*event);
                let _ = writeln!(out, "{name}{{{}}} {value}", labels.trim_start_matches(','));
            }
        }
    }
}

/// The groups of lines that are asked for.
fn groups(asked: &Asked) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (kind, scope, word) in KINDS.iter().filter(|(_, scope, _)| asked.wants_scope(*scope)) {
        for metric in METRICS.iter().filter(|m| m.kinds.contains(kind.letter())) {
            let name = format!("haproxy_{word}_{}", metric.name);
            let Some(column) = column(metric.column).filter(|_| asked.wants(&name)) else { continue };
            let beside = match metric.form {
                Form::With(beside) | Form::SecondsWith(beside) => self::column(beside),
                _ => None,
            };
            let series = Series { column, form: metric.form, beside };
            match groups.last_mut().filter(|group| group.name == name) {
                Some(group) => group.series.push(series),
                None => groups.push(Group {
                    name,
                    about: column.about,
                    counter: metric.counter,
                    kind: *kind,
                    series: vec![series],
                    module: None,
                }),
            }
        }
        if asked.extra {
            groups.extend(extra(*kind, *scope, word, asked));
        }
    }
    groups
}

/// The figures of protocols, of which listeners and servers have only those of TLS. All are said to be
/// counters, as by HAProxy.
fn extra(kind: Kind, scope: Scope, word: &str, asked: &Asked) -> impl Iterator<Item = Group> {
    let proxies = matches!(scope, Scope::Frontend | Scope::Backend);
    PROTOCOLS.iter().filter(move |column| proxies || module(column.name) == "ssl").filter_map(move |column| {
        let name = format!("haproxy_{word}_{}", column.name);
        asked.wants(&name).then(|| Group {
            name,
            about: column.about,
            counter: true,
            kind,
            series: vec![Series { column, form: Form::Number, beside: None }],
            module: Some(module(column.name)),
        })
    })
}

fn column(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|column| column.name == name)
}

/// All objects with their labels, by kind.
fn objects(shared: &Shared, asked: &Asked) -> [Vec<Object>; 4] {
    let mut objects = [const { Vec::new() }; 4];
    let [fronts, backs, servers, listeners] = &mut objects;
    for (proxy, p) in shared.program.proxies.numbered() {
        if p.is_removed() || p.disabled {
            continue;
        }
        let description = p.description.as_deref().filter(|_| asked.descriptions);
        let behind = description.map_or(String::new(), |text| label("desc", text));
        let own = label("proxy", &p.name);
        let labels = own.trim_start_matches(',').to_owned();
        let sub = |item, key, name: &str| Object {
            proxy,
            item,
            labels: format!("{labels}{behind}{}", label(key, name)),
            behind: String::new(),
        };
        let whole = || Object { proxy, item: 0, labels: labels.clone(), behind: behind.clone() };
        if p.is_frontend {
            fronts.push(whole());
            for (number, bind) in (1u32..).zip(&p.binds).filter(|_| p.options.socket_stats) {
                let name = match &*bind.state.name {
                    "" => format!("sock-{number}"),
                    name => name.to_owned(),
                };
                listeners.push(sub(number, "listener", &name));
            }
        }
        if p.is_backend {
            let shown = |s: &program::Server| {
                let hidden = asked.no_maint && s.state.admin() & model::server::admin::MAINT != 0;
                !hidden && !s.state.is_removed()
            };
            for (index, server) in p.servers.numbered().filter(|(_, s)| shown(s)) {
                servers.push(sub(index, "server", &server.name));
            }
            backs.push(whole());
        }
    }
    objects
}

/// Calls `f` with an object, unless it was deleted meanwhile.
fn with_row(
    shared: &Shared,
    filter: &Filter,
    at: (Mono, Wall),
    kind: Kind,
    object: &Object,
    f: impl FnOnce(&Row<'_>),
) {
    let Some(proxy) = shared.program.proxies.get(object.proxy as usize).filter(|p| !p.is_removed()) else {
        return;
    };
    let row = Row::of(kind, (object.proxy, &proxy), (shared, filter), at);
    match kind {
        Kind::Server => {
            let server = proxy.servers.get(object.item as usize).filter(|s| !s.state.is_removed());
            if let Some(server) = server {
                f(&Row { server: Some(&server), ..row });
            }
        }
        Kind::Listener => {
            if let Some(bind) = proxy.binds.get((object.item as usize).wrapping_sub(1)) {
                f(&Row { bind: Some((object.item, bind)), ..row });
            }
        }
        Kind::Frontend | Kind::Backend => f(&row),
    }
}

/// Where the lines of one object in a group go.
struct Line<'l> {
    out: &'l mut String,
    group: &'l Group,
    object: &'l Object,
    headed: &'l mut bool,
    format: Format,
}

impl Line<'_> {
    fn of(&mut self, row: &Row<'_>, series: &Series) {
        let column = series.column;
        let beside = series.beside.map(|beside| (beside.read)(row));
        if beside.as_ref().is_some_and(|beside| !beside.is_some()) {
            return;
        }
        match series.form {
            Form::Number => self.number(&(column.read)(row), &[]),
            Form::Http if row.http() => self.number(&(column.read)(row), &[]),
            Form::Class(class) if row.http() => self.number(&(column.read)(row), &[("code", class)]),
            Form::Seconds => self.seconds(&(column.read)(row)),
            Form::With(_) => self.number(&or_zero((column.read)(row)), &[]),
            Form::SecondsWith(_) => match (column.read)(row) {
                // A check that has not ended has no duration yet.
                _ if matches!(&beside, Some(Value::Str(status)) if settled(status) == "INI") => {}
                Value::None => {}
                time => self.seconds(&time),
            },
            Form::State => {
                let now = state(row.kind, &(column.read)(row));
                self.one_of(states(row.kind), |state| u32::from(state == now));
            }
            Form::Check => {
                let Value::Str(now) = (column.read)(row) else { return };
                self.one_of(&CHECKS, |state| u32::from(state == settled(&now)));
            }
            Form::Servers | Form::Checks if row.proxy.present().next().is_none() => {}
            Form::Servers => self.tally(row, "status", states(Kind::Server)),
            Form::Checks => self.tally(row, "check_status", &CHECKS),
            Form::Http | Form::Class(_) => {}
        }
    }

    /// Writes the line's name and labels, below the group's heading.
    fn begin(&mut self, more: &[(&str, &str)]) {
        let group = self.group;
        if !std::mem::replace(self.headed, true) {
            heading(self.out, self.format, &group.name, group.about, group.counter);
        }
        for part in [&*group.name, "{", &self.object.labels] {
            self.out.push_str(part);
        }
        for (key, value) in group.module.map(|module| ("mod", module)).iter() {
            let _ = write!(self.out, ",{key}=\"{value}\"");
        }
        self.out.push_str(&self.object.behind);
        for (key, value) in more {
            for part in [",", key, "=\"", value, "\""] {
                self.out.push_str(part);
            }
        }
        self.out.push_str("} ");
    }

    fn number(&mut self, value: &Value, more: &[(&str, &str)]) {
        self.begin(more);
        number(value, self.out);
        self.out.push('\n');
    }

    fn seconds(&mut self, ms: &Value) {
        let ms = match ms {
            Value::U32(ms) => u64::from(*ms),
            Value::U64(ms) => *ms,
            _ => return self.number(ms, &[]),
        };
        self.begin(&[]);
        let _ = writeln!(self.out, "{}.{:03}000", ms / 1000, ms % 1000);
    }

    fn one_of(&mut self, states: &[&str], count: impl Fn(&str) -> u32) {
        for state in states {
            self.number(&Value::U32(count(state)), &[("state", state)]);
        }
    }

    /// How many servers of a backend are in which state, by this column of theirs.
    fn tally(&mut self, row: &Row<'_>, column: &str, states: &'static [&'static str]) {
        let Some(read) = self::column(column).map(|c| c.read) else { return };
        let mut counts = [0u32; CHECKS.len()];
        for server in row.proxy.present() {
            let value = read(&Row { kind: Kind::Server, server: Some(&server), ..*row });
            let now = if column == "status" { state(Kind::Server, &value).into() } else { value.to_text() };
            if let Some(count) =
                states.iter().position(|s| *s == settled(&now)).and_then(|at| counts.get_mut(at))
            {
                *count += 1;
            }
        }
        for (state, count) in states.iter().zip(counts) {
            self.number(&Value::U32(count), &[("state", state)]);
        }
    }
}

/// The name of a check's outcome without the mark of one that is at work.
fn settled(shown: &str) -> &str {
    shown.strip_prefix("* ").unwrap_or(shown)
}

fn or_zero(value: Value) -> Value {
    if value.is_some() { value } else { Value::U32(0) }
}

/// The state that the words of a `status` column tell.
fn state(kind: Kind, status: &Value) -> &'static str {
    let Value::Str(words) = status else { return "" };
    let begins = |state: &&&str| words.starts_with(**state);
    match kind {
        Kind::Frontend => {
            if words == "OPEN" {
                "UP"
            } else {
                "DOWN"
            }
        }
        Kind::Backend | Kind::Listener => states(kind).iter().find(begins).copied().unwrap_or(""),
        // `no check` is up, too.
        Kind::Server => states(kind).iter().find(begins).copied().unwrap_or("UP"),
    }
}

/// A number; NaN for none.
fn number(value: &Value, out: &mut String) {
    if value.is_some() { value.text(out) } else { out.push_str("NaN") }
}

/// A label with the comma before it.
fn label(key: &str, value: &str) -> String {
    let mut out = format!(",{key}=\"");
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The two lines above a metric. OpenMetrics names a counter without its `_total`, and a figure that lacks
/// that is of no type it has.
fn heading(out: &mut String, format: Format, name: &str, about: &str, counter: bool) {
    let (name, kind) = match (format, counter, name.strip_suffix("_total")) {
        (Format::OpenMetrics, true, Some(family)) => (family, "counter"),
        (Format::OpenMetrics, true, None) => (name, "unknown"),
        (_, true, _) => (name, "counter"),
        (_, false, _) => (name, "gauge"),
    };
    let _ = write!(out, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
}
