//! Floor 9: SPOE filters, which ask agents about streams (SPOE.txt; manual, section 9.3).
//!
//! `config` reads the file of a filter into an [`agent::Agent`]. `filter` is the filter at work on a stream
//! and `group` the rule that sends a group: both have `process` write messages (`encode`), wait for what
//! `ask` brings, and set variables as the answer says (`ack`). `ask` chooses a server of the agent's backend
//! and a connection to it; `line` is such a connection, a task of its own that carries the frames of many
//! streams, `line::pool` the connections of a worker. What came of it is counted and logged by `told`.
#![forbid(unsafe_code)]

mod ack;
mod agent;
mod ask;
mod config;
mod encode;
mod event;
mod filter;
mod group;
mod line;
mod process;
mod reason;
mod scoped;
mod spare;
mod told;

use lang::registry::{ActionDef, FilterDef, Sets};

/// The filter of this crate.
pub const FILTERS: &[FilterDef] = &[FilterDef {
    name: "spoe",
    tag: "SPOE",
    parse: filter::parse,
    doc: "Asks agents about streams; their answers set variables.",
    example: "",
}];

/// The actions of this crate.
pub const ACTIONS: &[ActionDef] = &[ActionDef {
    name: "send-spoe-group",
    sets: Sets::TCP_REQ.and(Sets::TCP_RES).and(Sets::HTTP_REQ).and(Sets::HTTP_RES),
    parse: group::parse,
    doc: "Sends a group of messages to the agent of an SPOE filter.",
    example: "",
}];
