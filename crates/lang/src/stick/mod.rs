//! Stick tables in rules: keys made of samples, what is tracked, and the entries that look at tables.
//!
//! Some 150 fetches and 40 converters ask for one of two dozen figures in one of a few ways. They are not
//! written out: `fetches` and `converters` expand a list of figures, and what runs is one generic function
//! for each figure and way, so that nothing is decided by name while a request waits.

mod converters;
mod fetches;
pub(crate) mod figure;
pub mod key;

use std::sync::Arc;

use ::stick::{Table, Tracked};

use crate::arg::Arg;
use crate::env::Env;

pub(crate) use converters::converters;
pub(crate) use fetches::fetches;

/// The table that an argument names.
fn of(arg: &Arg) -> Option<&Arc<Table>> {
    match arg {
        Arg::Table(table) => Some(table),
        _ => None,
    }
}

/// Milliseconds of the clock that tables use.
pub(crate) fn now(env: &Env<'_>) -> u64 {
    env.live.now().as_millis()
}

/// Lets `look` see what is tracked under a number: by the stream, else by its connection.
pub(crate) fn tracked<R>(env: &Env<'_>, at: usize, look: impl FnOnce(&Tracked) -> R) -> Option<R> {
    let stream = env.txn.stick.borrow();
    if let Some(found) = stream.get(at) {
        return Some(look(found));
    }
    let connection = env.conn.stick.borrow();
    connection.get(at).map(look)
}
