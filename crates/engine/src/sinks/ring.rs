//! Rings: lines kept in memory, for `show events` and for syslog servers over streams (manual, section 12.5).
//!
//! A line is appended under a short lock; the oldest ones make room for it, whoever has not read them yet. So
//! a reader that stands still costs its own lines and nobody's time. A position is the number of a line since
//! the ring was made, so a reader that fell behind knows how many it missed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rt::RemoteNotify;

use super::ring_file::RingFile;

/// What HAProxy keeps of a ring's size for itself; kept back here, too, so that as many lines fit.
const OVERHEAD: usize = 192;
/// What a line takes besides its bytes.
const PER_LINE: usize = 4;

/// A bounded list of lines.
#[derive(Debug)]
pub struct Ring {
    size: usize,
    dropped: AtomicU64,
    lines: Mutex<Lines>,
    /// How far the servers are that lines go to, by their names.
    progress: Mutex<Vec<(Box<str>, Arc<AtomicU64>)>>,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<Vec<u8>>,
    /// Bytes of `kept`.
    used: usize,
    /// Number of the first of `kept`.
    first: u64,
    waiting: Vec<Arc<RemoteNotify>>,
    file: Option<RingFile>,
    /// Why there is no file.
    fileless: Option<String>,
}

impl Ring {
    /// An empty ring of so many bytes.
    pub fn new(size: usize) -> Ring {
        Ring {
            size: size.saturating_sub(OVERHEAD).max(1),
            dropped: AtomicU64::new(0),
            lines: Mutex::default(),
            progress: Mutex::default(),
        }
    }

    /// How far the server is that is called so: at first it wants all lines there are.
    pub(super) fn progress_of(&self, server: &str) -> Arc<AtomicU64> {
        let mut all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, position)) = all.iter().find(|(name, _)| **name == *server) {
            return position.clone();
        }
        let position = Arc::default();
        all.push((server.into(), Arc::clone(&position)));
        position
    }

    /// Another configuration has this ring, with these servers. Those that it had before go on where they
    /// are, others begin with what comes now.
    pub(super) fn succeed<'s>(&self, servers: impl Iterator<Item = &'s str>) {
        let mut all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let known = std::mem::take(&mut *all);
        all.extend(servers.map(|server| {
            let position = known.iter().find(|(name, _)| **name == *server).map(|(_, position)| position);
            (server.into(), position.cloned().unwrap_or_else(|| Arc::new(AtomicU64::new(self.end()))))
        }));
    }

    /// The same, with a file that keeps the lines, too.
    pub(super) fn with_file(size: usize, file: RingFile) -> Ring {
        let ring = Ring::new(size);
        ring.lines().file = Some(file);
        ring
    }

    /// The same without the file that it should have.
    pub(super) fn without_file(size: usize, why: String) -> Ring {
        let ring = Ring::new(size);
        ring.lines().fileless = Some(why);
        ring
    }

    /// What happened to the file since it was asked for last.
    pub fn trouble(&self) -> Option<String> {
        let mut lines = self.lines();
        lines.fileless.take().or_else(|| lines.file.as_mut()?.trouble())
    }

    /// Adds a line; `false` if it can never fit, which is counted.
    pub fn append(&self, line: &[u8]) -> bool {
        let need = line.len() + PER_LINE;
        if need > self.size {
            self.dropped.fetch_add(1, Relaxed);
            return false;
        }
        let mut lines = self.lines();
        let mut spare = Vec::new();
        while lines.used + need > self.size
            && let Some(oldest) = lines.kept.pop_front()
        {
            lines.used -= oldest.len() + PER_LINE;
            lines.first += 1;
            spare = oldest;
        }
        let number = lines.first + lines.kept.len() as u64;
        if let Some(file) = &mut lines.file {
            file.write(number, line);
        }
        spare.clear();
        spare.extend_from_slice(line);
        lines.used += need;
        lines.kept.push_back(spare);
        for reader in &lines.waiting {
            reader.notify();
        }
        true
    }

    /// Shows the lines from a position on, until `each` says enough with `false` (that line counts as read).
    /// Returns how many were gone before they could be read.
    pub fn read(&self, position: &mut u64, mut each: impl FnMut(&[u8]) -> bool) -> u64 {
        let lines = self.lines();
        let missed = lines.first.saturating_sub(*position);
        *position += missed;
        let from = usize::try_from(*position - lines.first).unwrap_or(usize::MAX);
        for line in lines.kept.iter().skip(from) {
            *position += 1;
            if !each(line) {
                break;
            }
        }
        missed
    }

    /// The position behind the last line.
    pub fn end(&self) -> u64 {
        let lines = self.lines();
        lines.first + lines.kept.len() as u64
    }

    /// Lines that could not be kept at all.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// A bell that rings with each new line until it is dropped.
    pub fn bell(self: &Arc<Ring>) -> Bell {
        let notify = Arc::new(RemoteNotify::new());
        self.lines().waiting.push(notify.clone());
        Bell { ring: self.clone(), notify }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells one reader of new lines.
pub struct Bell {
    ring: Arc<Ring>,
    /// Called after each new line.
    pub notify: Arc<RemoteNotify>,
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ring.lines().waiting.retain(|n| !Arc::ptr_eq(n, &self.notify));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ring: &Ring, position: &mut u64) -> (Vec<String>, u64) {
        let mut out = Vec::new();
        let missed = ring.read(position, |l| {
            out.push(String::from_utf8_lossy(l).into_owned());
            true
        });
        (out, missed)
    }

    #[test]
    fn old_lines_make_room_and_a_slow_reader_knows_what_it_missed() {
        let ring = Ring::new(OVERHEAD + 3 * (2 + PER_LINE));
        let mut position = 0;
        ring.append(b"a1");
        assert_eq!(all(&ring, &mut position), (vec!["a1".to_owned()], 0));
        for line in [b"a2", b"a3", b"a4", b"a5", b"a6"] {
            assert!(ring.append(line));
        }
        assert_eq!(all(&ring, &mut position), (["a4", "a5", "a6"].map(str::to_owned).to_vec(), 2));
        assert_eq!(all(&ring, &mut position), (vec![], 0));
        assert_eq!(position, ring.end());
    }

    #[test]
    fn a_line_that_never_fits_is_counted_and_nothing_else_is_lost() {
        let ring = Ring::new(OVERHEAD + 20);
        assert!(ring.append(b"short"));
        assert!(!ring.append(&[b'x'; 30]));
        assert_eq!((ring.dropped(), all(&ring, &mut 0).0), (1, vec!["short".to_owned()]));
    }
}
