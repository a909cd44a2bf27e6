//! Which figures are shared, how this process's part of one is read, and how that of others is set.
//!
//! They are columns of the statistics that count for as long as an object lives, each counter once. Rates,
//! maxima, times and what is counted of protocols and on the wire are of one process, as in HAProxy.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::super::row::{Given, Kind, Row};
use super::super::table::{COLUMNS, Column};
use super::super::value::Value;

/// Of frontends and listeners.
const FRONT: &[&str] = &[
    "stot",
    "bin",
    "bout",
    "dreq",
    "dresp",
    "ereq",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    "hrsp_other",
    "req_tot",
    "comp_in",
    "comp_out",
    "comp_byp",
    "comp_rsp",
    "conn_tot",
    "intercepted",
    "dcon",
    "dses",
    "wrew",
    "cache_lookups",
    "cache_hits",
    "eint",
    "h1sess",
    "h2sess",
    "req_other",
    "h2req",
    "h3req",
    "reqbout",
    "resbout",
    "cache_hint_hits",
];

/// Of backends and servers.
const BACK: &[&str] = &[
    "stot",
    "bin",
    "bout",
    "dreq",
    "dresp",
    "econ",
    "eresp",
    "wretr",
    "wredis",
    "chkfail",
    "chkdown",
    "lbtot",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    "hrsp_other",
    "hanafail",
    "req_tot",
    "cli_abrt",
    "srv_abrt",
    "comp_in",
    "comp_out",
    "comp_byp",
    "comp_rsp",
    "wrew",
    "connect",
    "reuse",
    "cache_lookups",
    "cache_hits",
    "eint",
    "reqbout",
    "resbout",
    "cache_hint_hits",
];

/// Both lists, as they stand in the file.
pub fn names() -> String {
    format!("{}\n{}\n", FRONT.join(","), BACK.join(","))
}

/// The columns of both kinds of objects.
pub struct Figures {
    front: Vec<&'static Column>,
    back: Vec<&'static Column>,
}

impl Figures {
    /// All of them.
    pub fn new() -> Figures {
        let find = |names: &[&str]| -> Vec<_> {
            names.iter().filter_map(|name| COLUMNS.iter().find(|column| column.name == *name)).collect()
        };
        Figures { front: find(FRONT), back: find(BACK) }
    }

    /// Those of an object, each with its number.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (usize, &'static Column)> {
        let columns = match kind {
            Kind::Frontend | Kind::Listener => &self.front,
            Kind::Backend | Kind::Server => &self.back,
        };
        columns.iter().copied().enumerate()
    }
}

/// What a column shows, with what others have counted; `None` where it means nothing.
pub fn shown(row: &Row<'_>, column: &Column) -> Option<u64> {
    match (column.read)(row) {
        Value::U32(n) => Some(n.into()),
        Value::U64(n) => Some(n),
        _ => None,
    }
}

/// Others have counted `n`, where they had counted `before`.
pub fn set_others(row: &mut Row<'_>, column: &Column, n: u64, before: u64) {
    let change = |figure: &AtomicU64| {
        figure.fetch_add(n.wrapping_sub(before), Relaxed);
    };
    let (front, back) = (&row.proxy.state.front, &row.proxy.state.back);
    match (column.name, row.server) {
        ("h1sess", _) if row.is_front() && row.http() => front.counters.others().h1.earlier.set(n),
        ("h2sess", _) if row.is_front() => front.counters.others().h2.earlier.set(n),
        ("chkfail", Some(server)) => change(&server.state.failed_checks),
        ("chkdown", Some(server)) => change(&server.state.went_down),
        ("chkdown", None) => change(&back.went_down),
        ("hanafail", Some(server)) => server.state.counters.others().observe_failures.set(n),
        _ => {
            row.given = Some(Given::Others(n));
            let _ = (column.read)(row);
            row.given = None;
        }
    }
}

/// When an object was last used, if that is remembered.
pub fn last_session<'r>(row: &Row<'r>) -> Option<&'r AtomicU64> {
    match (row.kind, row.server) {
        (Kind::Backend, _) => Some(&row.proxy.state.back.last_session),
        (_, Some(server)) => Some(&server.state.last_session),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_a_column_and_a_place_in_a_record() {
        let all = Figures::new();
        for (kind, names) in [(Kind::Listener, FRONT), (Kind::Server, BACK)] {
            assert!(all.of(kind).map(|(_, column)| column.name).eq(names.iter().copied()));
            assert!(names.len() <= super::super::file::FIGURES);
        }
    }
}
