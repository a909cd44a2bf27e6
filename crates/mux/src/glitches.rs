//! What becomes of connections whose peers do much that is odd or wrong: from three quarters of their
//! threshold on they end with the message at hand, at the threshold at once, if processors are busy.

use program::global::Glitches;

/// Whether a connection with so many glitches had better end with the message at hand.
pub fn part(count: u32, threshold: u32) -> bool {
    threshold > 0 && count >= wire::h2::parting(threshold)
}

/// Whether it ends at once.
pub fn kill(count: u32, threshold: u32, tune: &Glitches) -> bool {
    threshold > 0 && count >= threshold && !spares(tune.cpu)
}

/// Whether the thread uses less of its processor, in percent, than it takes to be cut off for glitches.
pub fn spares(below: u32) -> bool {
    below > 0 && rt::sys::cpu_usage() < below
}
