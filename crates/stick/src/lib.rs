//! Floor 1: stick tables (manual, chapter 11).
//!
//! A table associates a key (an address, a number, a text) with a row of counters. It is shared by all workers, so
//! it is cut into shards by the hash of the key: a look-up holds the lock of one shard for as long as it takes to
//! find an entry, never while something is computed. An entry, once found, is held by a reference ([`Tracked`]) and
//! its row has a lock of its own; whoever tracks a key looks it up once.
//!
//! Time is passed in, in milliseconds of any monotonic clock: nothing here reads one, so that expiry and rates are
//! tested in virtual time.
//!
//! Where things are: `data` (the types of data), `layout` (which of them a table stores, and where), `freq` (rates),
//! `key`, `entry` (one row), `shard`, `table`, `track` (what connections and streams hold).
#![forbid(unsafe_code)]

pub mod data;
mod entry;
mod freq;
pub mod key;
pub mod layout;
mod shard;
pub mod table;
pub mod track;

#[cfg(test)]
mod tests;

pub use data::Data;
pub use entry::{Entry, Row};
pub use key::KeyKind;
pub use layout::{Column, Layout};
pub use table::{Settings, SrvKey, Table, Walk};
pub use track::{Tracked, Trackers};
