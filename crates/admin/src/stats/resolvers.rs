//! The statistics of name servers (`show stat domain resolvers`): CSV, typed lines and JSON.

use std::fmt::Write;

use model::names::EVENTS;
use program::names::{NameServer, Resolvers};

use super::value::json_string;

/// The descriptions of the columns, in their order.
const ABOUT: [&str; EVENTS.len() + 2] = [
    "ID",
    "Parent ID",
    "Sent",
    "Send error",
    "Valid",
    "Update",
    "CNAME",
    "CNAME error",
    "Any errors",
    "NX",
    "Timeout",
    "Refused",
    "Other",
    "Invalid",
    "Too big",
    "Truncated",
    "Outdated",
];

/// What each event is called for people, in their order.
pub(crate) fn about() -> impl Iterator<Item = &'static str> {
    ABOUT.into_iter().skip(2)
}

/// What HAProxy calls the origin, nature and scope of a name, and of a figure.
const TAGS: [&str; 2] = ["CGP", "MGP"];

/// A figure or a name.
enum Field<'f> {
    Text(&'f str),
    Figure(u64),
}

/// All fields of a name server with their names.
fn fields<'f>(section: &'f Resolvers, server: &'f NameServer) -> Vec<(&'static str, Field<'f>)> {
    let mut all = vec![("id", Field::Text(&server.name)), ("pid", Field::Text(&section.name))];
    all.extend(EVENTS.iter().map(|(event, _, name)| (*name, Field::Figure(server.state.get(*event)))));
    all
}

fn each(all: &[Resolvers]) -> impl Iterator<Item = Vec<(&'static str, Field<'_>)>> {
    all.iter().flat_map(|section| section.servers.iter().map(move |server| fields(section, server)))
}

/// The CSV with its header.
pub fn csv(all: &[Resolvers]) -> String {
    let names = ["id", "pid"].into_iter().chain(EVENTS.iter().map(|(_, _, name)| *name));
    let mut out = names.fold(String::from("# "), |out, name| out + name + ",") + "\n";
    for row in each(all) {
        for (_, field) in row {
            let _ = match field {
                Field::Text(text) => write!(out, "{text},"),
                Field::Figure(n) => write!(out, "{n},"),
            };
        }
        out.push('\n');
    }
    out
}

/// A line for each figure.
pub fn typed(all: &[Resolvers], desc: bool) -> String {
    let mut out = String::new();
    for row in each(all) {
        for (at, ((name, field), about)) in row.into_iter().zip(ABOUT).enumerate() {
            let _ = match field {
                Field::Text(text) => write!(out, "N.{at}.{name}:{}V:str:{text}", TAGS[0]),
                Field::Figure(n) => write!(out, "N.{at}.{name}:{}V:u64:{n}", TAGS[1]),
            };
            if desc {
                let _ = write!(out, ":\"{about}\"");
            }
            out.push('\n');
        }
    }
    out
}

/// An array of fields for each name server.
pub fn json(all: &[Resolvers]) -> String {
    let mut out = String::from("[");
    for row in each(all) {
        out.push('[');
        for (at, (name, field)) in row.into_iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(out, "{comma}{{\"field\":{{\"pos\":{at},\"name\":");
            json_string(name, &mut out);
            let figure = matches!(field, Field::Figure(_));
            let origin = if figure { "Metric" } else { "Config" };
            let _ = write!(
                out,
                "}},\"tags\":{{\"origin\":\"{origin}\",\"nature\":\"Gauge\",\"scope\":\"Process\"}},\"value\":{{\"type\":"
            );
            match field {
                Field::Text(text) => {
                    out.push_str("\"str\",\"value\":");
                    json_string(text, &mut out);
                }
                Field::Figure(n) => drop(write!(out, "\"u64\",\"value\":{n}")),
            }
            out.push_str("}}");
        }
        out.push(']');
    }
    out.push_str("]\n");
    out
}
