//! Where lines of traces go: rings, and the standard streams.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use model::trace::{self, Settings, Sink};
use program::log::Format;
use rt::FdWriter;

use super::frame::Frame;
use super::ring::Ring;
use crate::Shared;

/// The standard streams, which keep nothing that could be shown.
pub const STREAMS: [(&str, &str); 2] =
    [("stdout", "standard output (fd#1)"), ("stderr", "standard output (fd#2)")];

/// All places that lines may go to, and what they are.
pub fn names(shared: &Shared) -> Vec<(&str, &str)> {
    let rings = shared.program.rings.iter().map(|r| (&*r.name, &*r.description));
    STREAMS.into_iter().chain(rings).collect()
}

/// Puts settings in force.
pub fn apply(shared: &Shared, all: &[Settings]) {
    trace::apply(all, &|name| find(shared, name));
}

fn find(shared: &Shared, name: &str) -> Option<Arc<dyn Sink>> {
    let dropped = AtomicU64::new(0);
    let stream = |fd: std::os::fd::BorrowedFd<'_>| FdWriter::new(fd).ok();
    let writer = match name {
        "stdout" => stream(std::io::stdout().as_fd()),
        "stderr" => stream(std::io::stderr().as_fd()),
        name => {
            let at = shared.program.rings.iter().position(|r| *r.name == *name)?;
            let (settings, ring) = (&shared.program.rings[at], shared.rings.get(at)?.clone());
            return Some(Arc::new(IntoRing { ring, format: settings.format, maxlen: settings.maxlen }));
        }
    };
    Some(Arc::new(IntoStream { writer: writer?, dropped }))
}

struct IntoRing {
    ring: Arc<Ring>,
    format: Format,
    maxlen: usize,
}

impl Sink for IntoRing {
    fn line(&self, line: &[u8]) {
        let mut out = Vec::with_capacity(line.len() + 64);
        let frame = Frame {
            format: self.format,
            facility: 0,
            level: 0,
            host: None,
            tag: None,
            pid: std::process::id(),
            structured: b"",
            date: rt::wall(),
        };
        frame.append(&mut out);
        out.extend_from_slice(line);
        out.truncate(self.maxlen);
        self.ring.append(&out);
    }

    fn dropped(&self) -> u64 {
        self.ring.dropped()
    }
}

struct IntoStream {
    writer: FdWriter,
    dropped: AtomicU64,
}

impl Sink for IntoStream {
    fn line(&self, line: &[u8]) {
        let whole = [line, b"\n"].concat();
        if self.writer.try_write(&whole).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}
