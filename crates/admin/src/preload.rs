//! `stats-file`: figures that objects begin with, as `dump stats-file` wrote them (management guide, 9.5).
//!
//! A file has one part for frontends and listeners and one for backends and servers, each with a heading that
//! names its columns. Objects are known by their guid. What is not known (a column, a guid, a part) is passed
//! over without a word, so that a file of another version does what it can. Rates are of the last second, and
//! times of the last change are of another process: both begin anew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use engine::Shared;
use model::counter::Counter;
use model::proxy::{BackCounters, FrontCounters, ListenerCounters};
use model::server::ServerCounters;
use program::{Bind, Proxy, Server};

/// The most that is read of a file.
const MOST: u64 = 64 << 20;

/// Reads a file into the figures of a program that does not run yet; what is wrong with it.
pub fn read(shared: &Shared, path: &Path) -> Vec<String> {
    let name = path.display();
    let Some(text) = contents(path) else {
        return vec![format!("Can't load stats-file '{name}': cannot open file.")];
    };
    let objects = Objects::of(shared);
    let (mut notes, mut part) = (Vec::new(), None);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        if line.starts_with('#') {
            part = Part::new(line);
            if part.is_none() && number > 0 {
                notes.push(format!("Ignored stats-file header line '{}' in file '{name}'.", number + 1));
            }
        }
        if part.is_none() && number == 0 {
            return vec![format!("Invalid stats-file format in file '{name}'.")];
        }
        let Some(part) = part.as_ref().filter(|_| !line.starts_with('#')) else { continue };
        if !part.take(&objects, line) {
            notes.push(format!("Ignored stats-file line {} in file '{name}'.", number + 1));
        }
    }
    notes
}

fn contents(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a guid stands for.
enum Object<'p> {
    Proxy(&'p Proxy),
    Listener(&'p Bind),
    Server(&'p Server),
}

struct Objects<'p>(HashMap<Box<str>, Object<'p>>);

impl<'p> Objects<'p> {
    fn of(shared: &'p Shared) -> Objects<'p> {
        let mut all = HashMap::new();
        for proxy in shared.program.proxies.beginning() {
            let guid = |guid: &Option<Box<str>>| guid.clone();
            all.extend(guid(&proxy.state.guid).map(|g| (g, Object::Proxy(proxy))));
            let binds = proxy.binds.iter();
            all.extend(binds.filter_map(|b| Some((guid(&b.state.guid)?, Object::Listener(b)))));
            let servers = proxy.servers.beginning().iter();
            all.extend(servers.filter_map(|s| Some((guid(&s.state.guid)?, Object::Server(s)))));
        }
        Objects(all)
    }
}

/// A part of a file: whether it is about frontends, and its columns behind the guid.
struct Part<'t> {
    front: bool,
    known: bool,
    columns: Vec<&'t str>,
}

impl<'t> Part<'t> {
    /// The part that a heading opens.
    fn new(line: &'t str) -> Option<Part<'t>> {
        let (kind, columns) = line.strip_prefix('#')?.split_once(' ')?;
        let columns = columns.strip_prefix("guid,")?.strip_suffix(',')?;
        let known = matches!(kind, "fe" | "be");
        Some(Part { front: kind == "fe", known, columns: columns.split(',').collect() })
    }

    /// Takes a line in; `false` if it is about an object that does not belong here.
    fn take(&self, objects: &Objects<'_>, line: &str) -> bool {
        let mut values = line.split(',');
        let object = values.next().and_then(|guid| objects.0.get(guid));
        let Some(object) = object.filter(|_| self.known) else { return true };
        let figures = self.columns.iter().zip(values).filter_map(|(c, v)| Some((*c, v.parse::<u64>().ok()?)));
        match (object, self.front) {
            (Object::Proxy(proxy), true) if proxy.is_frontend => front(proxy, figures),
            (Object::Proxy(proxy), false) if proxy.is_backend => back(proxy, figures),
            (Object::Proxy(_), _) => {}
            (Object::Listener(bind), true) => {
                let counters = bind.state.counters.of(0);
                set(figures, |name| listener_column(counters, name));
            }
            (Object::Server(server), false) => of_server(server, figures),
            _ => return false,
        }
        true
    }
}

fn set<'c, 'f>(figures: impl Iterator<Item = (&'f str, u64)>, column: impl Fn(&str) -> Option<&'c Counter>) {
    for (name, value) in figures {
        if let Some(counter) = column(name) {
            counter.set(value);
        }
    }
}

fn front<'f>(proxy: &Proxy, figures: impl Iterator<Item = (&'f str, u64)>) {
    let counters = proxy.state.front.counters.of(0);
    // Requests are told by their versions, in HAProxy's files only so.
    let mut requests = 0u64;
    let figures = figures.inspect(|(name, value)| {
        if matches!(*name, "h1req" | "h2req" | "h3req" | "req_other") {
            requests = requests.saturating_add(*value);
        }
    });
    set(figures, |name| front_column(counters, name));
    if requests > 0 {
        counters.requests.set(requests);
    }
}

fn back<'f>(proxy: &Proxy, figures: impl Iterator<Item = (&'f str, u64)>) {
    let (state, counters) = (&proxy.state.back, proxy.state.back.counters.of(0));
    let figures = figures.inspect(|(name, value)| {
        if *name == "chkdown" {
            state.went_down.store(*value, Relaxed);
        }
    });
    set(figures, |name| back_column(counters, name));
}

fn of_server<'f>(server: &Server, figures: impl Iterator<Item = (&'f str, u64)>) {
    let (state, counters) = (&server.state, server.state.counters.of(0));
    let figures = figures.inspect(|(name, value)| match *name {
        "chkfail" => state.failed_checks.store(*value, Relaxed),
        "chkdown" => state.went_down.store(*value, Relaxed),
        _ => {}
    });
    set(figures, |name| server_column(counters, name));
}

/// The class of a column of responses.
fn class(name: &str) -> Option<usize> {
    const CLASSES: [&str; 6] = ["hrsp_1xx", "hrsp_2xx", "hrsp_3xx", "hrsp_4xx", "hrsp_5xx", "hrsp_other"];
    CLASSES.iter().position(|class| *class == name)
}

/// Bytes of requests and responses: HAProxy tells them twice, by client and by message.
fn bytes<'c>(counters: &'c model::proxy::ByteCounters, name: &str) -> Option<&'c Counter> {
    Some(match name {
        "bin" | "reqbin" => &counters.request_in,
        "reqbout" => &counters.request_out,
        "bout" | "resbin" => &counters.response_in,
        "resbout" => &counters.response_out,
        _ => return None,
    })
}

fn front_column<'c>(c: &'c FrontCounters, name: &str) -> Option<&'c Counter> {
    Some(match name {
        "stot" => &c.sessions,
        "dreq" => &c.denied_req,
        "dresp" => &c.denied_resp,
        "ereq" => &c.req_errors,
        "req_tot" => &c.requests,
        "conn_tot" => &c.connections,
        "intercepted" => &c.intercepted,
        "dcon" => &c.denied_conn,
        "dses" => &c.denied_sess,
        "wrew" => &c.failed_rewrites,
        "eint" => &c.internal_errors,
        "h1sess" => &c.h1.earlier,
        "h2sess" => &c.h2.earlier,
        "h2req" => &c.h2_requests,
        "h3req" => &c.h3_requests,
        "req_other" => &c.other_requests,
        name => return class(name).map(|at| &c.responses[at]).or_else(|| bytes(&c.bytes, name)),
    })
}

fn listener_column<'c>(c: &'c ListenerCounters, name: &str) -> Option<&'c Counter> {
    Some(match name {
        "stot" => &c.sessions,
        "dreq" => &c.denied_req,
        "dresp" => &c.denied_resp,
        "ereq" => &c.req_errors,
        "conn_tot" => &c.connections,
        "dcon" => &c.denied_conn,
        "dses" => &c.denied_sess,
        "wrew" => &c.failed_rewrites,
        "eint" => &c.internal_errors,
        name => return bytes(&c.bytes, name),
    })
}

fn back_column<'c>(c: &'c BackCounters, name: &str) -> Option<&'c Counter> {
    Some(match name {
        "stot" => &c.sessions,
        "dreq" => &c.denied_req,
        "dresp" => &c.denied_resp,
        "econ" => &c.conn_errors,
        "eresp" => &c.resp_errors,
        "wretr" => &c.retries,
        "wredis" => &c.redispatches,
        "lbtot" => &c.chosen,
        "req_tot" => &c.requests,
        "cli_abrt" => &c.client_aborts,
        "srv_abrt" => &c.server_aborts,
        "wrew" => &c.failed_rewrites,
        "connect" => &c.connects,
        "reuse" => &c.reuses,
        "eint" => &c.internal_errors,
        name => return class(name).map(|at| &c.responses[at]).or_else(|| bytes(&c.bytes, name)),
    })
}

fn server_column<'c>(c: &'c ServerCounters, name: &str) -> Option<&'c Counter> {
    Some(match name {
        "stot" => &c.sessions,
        "dresp" => &c.denied_resp,
        "econ" => &c.conn_errors,
        "eresp" => &c.resp_errors,
        "wretr" => &c.retries,
        "wredis" => &c.redispatches,
        "lbtot" => &c.chosen,
        "hanafail" => &c.observe_failures,
        "req_tot" => &c.requests,
        "cli_abrt" => &c.client_aborts,
        "srv_abrt" => &c.server_aborts,
        "wrew" => &c.failed_rewrites,
        "connect" => &c.connects,
        "reuse" => &c.reuses,
        "eint" => &c.internal_errors,
        name => return class(name).map(|at| &c.responses[at]).or_else(|| bytes(&c.bytes, name)),
    })
}
