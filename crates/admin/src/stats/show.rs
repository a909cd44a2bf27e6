//! The statistics as CSV, as typed lines and as JSON.

use std::fmt::Write;

use engine::Shared;

use super::protocols::PROTOCOLS;
use super::row::{Filter, Row, each};
use super::table::{COLUMNS, columns};
use super::value::{json_string, json_tag};

/// The first line of the CSV.
pub fn header() -> String {
    let mut out = String::from("# ");
    for c in COLUMNS {
        out.push_str(c.name);
        out.push(',');
    }
    out.push_str("-,");
    for c in PROTOCOLS {
        out.push_str(c.name);
        out.push(',');
    }
    out.push('\n');
    out
}

/// The CSV with its header.
pub fn csv(shared: &Shared, filter: &Filter) -> String {
    let mut out = header();
    each(shared, filter, |row| csv_row(&row, &mut out));
    out
}

fn csv_row(row: &Row<'_>, out: &mut String) {
    for (at, column) in columns() {
        if at == COLUMNS.len() {
            out.push_str("-,");
        }
        (column.read)(row).csv(out);
        out.push(',');
    }
    out.push('\n');
}

/// A line for each figure (management manual, 9.2).
pub fn typed(shared: &Shared, filter: &Filter, desc: bool) -> String {
    let mut out = String::new();
    each(shared, filter, |row| {
        let (kind, proxy, id) = (row.kind, row.proxy.state.id, row.id());
        for (at, column) in columns() {
            let value = (column.read)(&row);
            if !value.is_some() {
                continue;
            }
            let (name, tag, of) = (column.name, column.tag_for(kind), value.type_name());
            let _ = write!(out, "{}.{proxy}.{id}.{at}.{name}.1:{tag}:{of}:", kind.letter());
            value.text(&mut out);
            if desc {
                let _ = write!(out, ":\"{}\"", column.about);
            }
            out.push('\n');
        }
    });
    out
}

/// An array of objects for each object's figures.
pub fn json(shared: &Shared, filter: &Filter) -> String {
    let mut out = String::from("[");
    each(shared, filter, |row| {
        out.push_str(if out.len() > 1 { ",[" } else { "[" });
        let mut first = true;
        for (at, column) in columns() {
            let value = (column.read)(&row);
            if !value.is_some() {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            let (kind, proxy, id) = (row.kind.name(), row.proxy.state.id, row.id());
            let _ = write!(
                out,
                "{{\"objType\":\"{kind}\",\"proxyId\":{proxy},\"id\":{id},\"field\":{{\"pos\":{at},\"name\":"
            );
            json_string(column.name, &mut out);
            out.push_str("},\"processNum\":1,");
            json_tag(column.tag_for(row.kind), &mut out);
            out.push_str(",\"value\":{");
            value.json(&mut out);
            out.push_str("}}");
        }
        out.push(']');
    });
    out.push_str("]\n");
    out
}
