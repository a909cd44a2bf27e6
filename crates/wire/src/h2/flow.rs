//! Flow control (RFC 9113 sections 5.2 and 6.9): a window for each direction, of the connection and of each
//! stream.

use super::frame::MAX31;

/// What this side may still send. It goes below zero when the peer lowers the initial window (section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outflow(i64);

impl Outflow {
    pub fn new(window: u32) -> Outflow {
        Outflow(i64::from(window))
    }

    /// Bytes that may be sent.
    pub fn room(self) -> usize {
        self.0.max(0) as usize
    }

    pub fn take(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Changes the window; false if it gets above 2^31-1.
    #[must_use]
    pub fn add(&mut self, change: i64) -> bool {
        self.0 += change;
        self.0 <= i64::from(MAX31)
    }
}

/// What the peer may still send, and what it has sent that is not yet used up. It goes below zero when a
/// stream was begun before the peer knew that this side's initial window is smaller than the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflow {
    window: i64,
    held: u32,
}

impl Inflow {
    pub fn new(window: u32) -> Inflow {
        Inflow { window: i64::from(window), held: 0 }
    }

    /// Notes that `bytes` came; false if that is more than was allowed.
    #[must_use]
    pub fn receive(&mut self, bytes: u32) -> bool {
        if i64::from(bytes) > self.window {
            return false;
        }
        self.window -= i64::from(bytes);
        self.held = self.held.saturating_add(bytes);
        true
    }

    /// Notes that `bytes` of what came are used up.
    pub fn release(&mut self, bytes: u32) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// The peer has learnt of another initial window.
    pub fn adjust(&mut self, change: i64) {
        self.window += change;
    }

    /// Opens the window so that `target` bytes are on their way or here, once that is worth a frame: half of
    /// the target. Returns what to tell the peer, 0 for nothing.
    pub fn refill(&mut self, target: u32) -> u32 {
        let target = i64::from(target.min(MAX31));
        let more = target - self.window - i64::from(self.held);
        if more <= 0 || more < target / 2 {
            return 0;
        }
        let more = more.min(i64::from(MAX31));
        self.window += more;
        more as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_refilled_by_halves() {
        let mut flow = Inflow::new(100);
        assert!(flow.receive(60));
        assert_eq!(flow.refill(100), 0, "nothing is used up");
        flow.release(30);
        assert_eq!(flow.refill(100), 0);
        flow.release(30);
        assert_eq!(flow.refill(100), 60);
        assert_eq!(flow.refill(1000), 900, "a larger target");
        assert!(!flow.receive(1001));
    }

    #[test]
    fn a_window_may_be_negative_but_not_above_the_limit() {
        let mut flow = Outflow::new(10);
        assert!(flow.add(-20));
        assert_eq!(flow.room(), 0);
        assert!(flow.add(15));
        assert_eq!(flow.room(), 5);
        assert!(!flow.add(i64::from(MAX31)));
    }
}
