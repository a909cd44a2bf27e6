//! Floor 0: units of time and size, ids, hashes, random numbers, slab.
#![forbid(unsafe_code)]

pub mod base64;
pub mod cpus;
pub mod date;
pub mod fleet;
pub mod foreign;
pub mod grow;
pub mod hash;
pub mod name;
pub mod netns;
pub mod outside;
pub mod product;
pub mod rand;
pub mod rate;
pub mod slab;
pub mod text;
pub mod threads;
pub mod time;
pub mod units;
pub mod worker;
