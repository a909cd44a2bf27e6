//! Which figures are shared, how this process's part of one is read, and how that of others is set.
//!
//! They are columns of the statistics that count for as long as an object lives, each counter once. Rates,
//! maxima, times and what is counted of protocols and on the wire are of one process, as in HAProxy.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::super::kept::{BACK, FRONT, shared};
use super::super::row::{Given, Kind, Row};
use super::super::table::{COLUMNS, Column};
use super::super::value::Value;

/// Both lists, as they stand in the file.
pub fn names() -> String {
    let line = |columns| shared(columns).collect::<Vec<_>>().join(",");
    format!("{}\n{}\n", line(FRONT), line(BACK))
}

/// The columns of both kinds of objects.
pub struct Figures {
    front: Vec<&'static Column>,
    back: Vec<&'static Column>,
}

impl Figures {
    /// All of them.
    pub fn new() -> Figures {
        let find = |names: &[&'static str]| -> Vec<_> {
            shared(names).filter_map(|name| COLUMNS.iter().find(|column| column.name == name)).collect()
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
            assert!(all.of(kind).map(|(_, column)| column.name).eq(shared(names)));
            assert!(shared(names).count() <= super::super::file::FIGURES);
        }
    }
}
