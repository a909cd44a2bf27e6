//! The entries for fuzzers: any bytes go in, and what must hold of every parse is checked.
//!
//! No panic is the least of it. A parser has to say the same however its input is cut into pieces, what it
//! accepts must be read alike when it is written again, and whatever passes must have one meaning only: no
//! second end of the head, no second length, no byte that a laxer reader takes for a line end. Inputs carry
//! no control bytes, so a seed is simply a message; where the cuts fall is a function of the input itself.

mod caching;
mod chunk;
mod dns;
mod fcgi;
mod h2;
mod http1;
mod messages;
mod peers;
mod proxy;
mod smtp;
mod spop;
mod translate;

pub use caching::caching;
pub use chunk::chunk;
pub use dns::dns;
pub use fcgi::fcgi;
pub use h2::{h1_to_h2, h2_frames, hpack};
pub use http1::{http1_request, http1_response};
pub use messages::syslog;
pub use peers::peers;
pub use proxy::proxy;
pub use smtp::smtp;
pub use spop::spop;
pub use translate::{h2_to_h1, response_to_h2};

/// Lengths of growing beginnings of `data`, the whole last: all of a short input, a few of a long one.
fn cuts(data: &[u8]) -> Vec<usize> {
    if data.len() <= 64 {
        return (0..=data.len()).collect();
    }
    let mut seed =
        data.iter().fold(0u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mut cuts: Vec<usize> = (0..6)
        .map(|_| {
            seed ^= seed >> 29;
            seed = seed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (seed >> 16) as usize % data.len()
        })
        .collect();
    cuts.push(data.len());
    cuts.sort_unstable();
    cuts
}

#[cfg(test)]
mod tests;
