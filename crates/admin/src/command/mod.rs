//! What the commands do, by family.

pub mod basic;
pub mod process;
pub mod servers;
pub mod stat;
pub mod wait;
