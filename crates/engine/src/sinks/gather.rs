//! Lines of a burst that go to the same place by datagrams: they wait until the burst is over and leave
//! together.
//!
//! Whoever gathers lines sends them before it waits for anything, so they never wait for others.

use std::io;

use rt::{Datagram, ROW};

/// Memory that is not kept for the next burst.
const LARGE: usize = 256 << 10;

/// The lines for one sink.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

/// The lines for all sinks of a worker, by the sinks' numbers.
#[derive(Default)]
pub(super) struct Gathered {
    lines: Vec<Lines>,
    /// The sinks that have some.
    waiting: Vec<usize>,
}

impl Gathered {
    /// Adds the line that `write` appends; whether the sink has as many now as leave at once.
    pub fn add(&mut self, sink: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.lines.len() <= sink {
            self.lines.resize_with(sink + 1, Lines::default);
        }
        let Some(lines) = self.lines.get_mut(sink) else { return false };
        if lines.ends.is_empty() {
            self.waiting.push(sink);
        }
        write(&mut lines.bytes);
        lines.ends.push(lines.bytes.len());
        lines.ends.len() >= ROW
    }

    /// The next sink that has lines.
    pub fn next(&self) -> Option<usize> {
        self.waiting.last().copied()
    }

    /// Shows all lines of a sink to `send`, and drops them.
    pub fn take(&mut self, sink: usize, send: impl FnOnce(Pieces<'_>)) {
        self.waiting.retain(|other| *other != sink);
        let Some(lines) = self.lines.get_mut(sink) else { return };
        send(Pieces { bytes: &lines.bytes, ends: &lines.ends, start: 0 });
        lines.ends.clear();
        lines.bytes.clear();
        if lines.bytes.capacity() > LARGE {
            lines.bytes = Vec::new();
        }
    }
}

/// Lines, one behind the other.
#[derive(Clone)]
pub(super) struct Pieces<'p> {
    bytes: &'p [u8],
    ends: &'p [usize],
    start: usize,
}

impl<'p> Iterator for Pieces<'p> {
    type Item = &'p [u8];

    fn next(&mut self) -> Option<&'p [u8]> {
        let (end, ends) = self.ends.split_first()?;
        let line = self.bytes.get(self.start..*end)?;
        (self.start, self.ends) = (*end, ends);
        Some(line)
    }
}

impl Pieces<'_> {
    /// Sends as many as the socket takes; those that it did not are left.
    pub fn leave_by(&mut self, socket: &Datagram) -> io::Result<()> {
        while !self.ends.is_empty() {
            let sent = socket.try_send_row(self.clone())?;
            self.by_ref().take(sent).for_each(drop);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_order_and_their_sinks() {
        let mut gathered = Gathered::default();
        for (sink, text) in [(3, "a"), (0, "b"), (3, ""), (3, "c")] {
            assert!(!gathered.add(sink, |out| out.extend_from_slice(text.as_bytes())));
        }
        let mut seen = Vec::new();
        while let Some(sink) = gathered.next() {
            gathered.take(sink, |pieces| seen.extend(pieces.map(|line| (sink, line.to_vec()))));
        }
        assert_eq!(seen, [(0, b"b".to_vec()), (3, b"a".to_vec()), (3, vec![]), (3, b"c".to_vec())]);
        let full = (0..ROW).filter(|_| gathered.add(1, |out| out.push(b'x'))).count();
        assert_eq!(full, 1, "only the last makes it a row");
    }
}
