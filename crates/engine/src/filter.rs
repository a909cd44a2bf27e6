//! The filters of a stream ([`link::chain`]): bandwidth limits (section 9.7) and `trace` (9.1). What rewrites
//! data (compression) will need a step of its own between buffer and socket.

mod limit;
mod trace;

use lang::env::Side;
use link::chain::{Chain, Filter};

use crate::stream::Stream;

pub use trace::{headers, started, stopped};

/// The chain of one direction as rules and proxies want it; none, if they want none.
pub fn chain(stream: &mut Stream<'_>, side: Side) -> Option<Box<Chain>> {
    let traced = trace::is_traced(stream);
    if stream.txn.bandwidth.is_empty() && !traced {
        return None;
    }
    let mut filters: Vec<(u32, Box<dyn Filter>)> = trace::filters(stream, side);
    let upload = side == Side::Request;
    let mut rest = Vec::new();
    for limit in std::mem::take(&mut stream.txn.bandwidth) {
        match limit.upload == upload {
            true => filters.push((limit.order, Box::new(limit::Limit::new(limit)))),
            false => rest.push(limit),
        }
    }
    stream.txn.bandwidth = rest;
    filters.sort_by_key(|(order, _)| *order);
    let filters: Vec<_> = filters.into_iter().map(|(_, f)| f).collect();
    (!filters.is_empty()).then(|| Box::new(Chain::new(filters)))
}
