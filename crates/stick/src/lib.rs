//! Floor 1: stick tables (manual, chapter 11).
//!
//! A table associates a key (an address, a number, a text) with a row of counters. It is shared by all
//! workers, so it is cut into shards by the hash of the key: a look-up holds the lock of one shard for as
//! long as it takes to find an entry or to count in its row ([`Row`]), never while something is computed and
//! never two at a time. Whoever tracks a key looks it up once and holds its place ([`Tracked`]).
//!
//! Time is passed in, in milliseconds of any monotonic clock: nothing here reads one, so that expiry and
//! rates are tested in virtual time.
//!
//! Where things are: `data` (the types of data), `layout` (which of them a table stores, and where), `freq`
//! (rates), `key`, `slab` (the memory of entries), `shard`, `settings`, `table`, `row` (one entry, locked),
//! `updates` (what peers are to be told), `track` (what connections and streams hold).
#![forbid(unsafe_code)]

pub mod data;
mod freq;
pub mod key;
pub mod layout;
mod row;
pub mod settings;
mod shard;
mod slab;
pub mod table;
pub mod track;
pub mod updates;

#[cfg(test)]
mod tests;

pub use data::Data;
pub use freq::RawRate;
pub use key::KeyKind;
pub use layout::{Column, Layout};
pub use row::Row;
pub use settings::{Settings, SrvKey};
pub use table::{Table, Walk};
pub use track::{Tracked, Trackers};
pub use updates::Cursor;
