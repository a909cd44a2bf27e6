//! The servers of a ring: syslog over a stream (RFC 6587), with the length before each line or a line feed
//! behind it.
//!
//! One task for each server. It reads the ring at its own pace; lines that had to make room meanwhile are
//! counted as dropped. A line that was cut by the end of a connection is sent again on the next one, so a
//! server may see the beginning of a line twice, but loses none that the ring still holds.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use farm::dial;
use link::transport::Transport;
use program::Program;
use program::log::{Ring as Settings, RingServer};
use rt::Timer;

use super::ring::{Bell, Ring};
use crate::process_vars;

/// Time between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// As many bytes are put together for one send.
const CHUNK: usize = 16384;

/// Starts the tasks of those rings that this worker looks after.
pub fn start(worker: usize, program: &Arc<Program>, rings: &[Arc<Ring>]) -> Vec<rt::TaskId> {
    let mut tasks = Vec::new();
    for (index, ring) in program.rings.iter().enumerate() {
        if index % program.world.workers != worker {
            continue;
        }
        for (number, server) in ring.servers.iter().enumerate() {
            if let (true, Some(kept)) = (server.state.is_some() || has_place(server), rings.get(index)) {
                let at = Place { worker, index, number };
                tasks.push(rt::spawn(run(program.clone(), kept.clone(), at)));
            }
        }
    }
    tasks
}

/// Whether it has an address.
fn has_place(server: &RingServer) -> bool {
    link::address::target(&server.target).is_some()
}

/// A server and how far it has got.
struct Feed<'f> {
    program: &'f Program,
    worker: usize,
    ring: &'f Arc<Ring>,
    server: &'f RingServer,
    settings: &'f Settings,
    position: u64,
    /// The same for a task that goes on where this one ends: another configuration's.
    progress: Arc<AtomicU64>,
    bytes: Vec<u8>,
    /// Where in `bytes` each line ends.
    ends: Vec<usize>,
}

/// A server of a ring, and the worker that looks after it.
struct Place {
    worker: usize,
    index: usize,
    number: usize,
}

async fn run(program: Arc<Program>, ring: Arc<Ring>, at: Place) {
    let settings = &program.rings[at.index];
    let ring = &ring;
    let bell = ring.bell();
    let progress = ring.progress_of(&settings.servers[at.number].name);
    let mut feed = Feed {
        program: &program,
        worker: at.worker,
        ring,
        server: &settings.servers[at.number],
        settings,
        position: progress.load(Relaxed),
        progress,
        bytes: Vec::new(),
        ends: Vec::new(),
    };
    loop {
        if let Some(socket) = connect(&program, settings, feed.server).await {
            let _counted = Counted::begin(feed.server, at.worker);
            let _ = feed.serve(&socket, &bell).await;
        }
        rt::sleep(PAUSE).await;
    }
}

/// Connects to a server, perhaps with TLS; `None`: it can't be had now.
async fn connect(program: &Program, settings: &Settings, server: &RingServer) -> Option<Transport> {
    let target = server.state.as_ref().map_or_else(|| server.target.clone(), |s| (**s.target.load()).clone());
    let addr = link::address::target(&target)?;
    let mut timer = Timer::new();
    timer.set_after(settings.connect_timeout);
    let sni = server.tls.as_ref().and_then(|tls| tls.sni.as_ref());
    let name = sni.and_then(|sni| process_vars::constant(program, sni));
    let line = dial::Line {
        tls: server.tls.as_ref().map(|tls| (tls, name.as_deref())),
        plain: &server.plain,
        source: server.source.as_ref(),
    };
    dial::connect(&addr, line, &program.global.tune, &mut timer).await
}

/// A connection to a server of a backend of logs, as its statistics have it.
struct Counted(Option<Arc<model::Server>>);

impl Counted {
    fn begin(server: &RingServer, worker: usize) -> Counted {
        if let Some(state) = &server.state {
            state.enter();
            state.counters.of(worker).sessions.inc();
        }
        Counted(server.state.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            state.leave();
        }
    }
}

impl Feed<'_> {
    /// Sends lines as they come until the connection ends.
    async fn serve(&mut self, socket: &Transport, bell: &Bell) -> io::Result<()> {
        loop {
            self.gather();
            if self.ends.is_empty() {
                if self.wait(socket, bell).await? {
                    // A server that talks without end shall not have the thread for itself.
                    rt::yield_now().await;
                }
                continue;
            }
            let first = self.position - self.ends.len() as u64;
            let (sent, outcome) = self.send(socket, first).await;
            // What did not leave whole is sent again.
            self.position = self.reached(first, sent);
            outcome?;
        }
    }

    /// Takes lines from the ring, as many as go into one send.
    fn gather(&mut self) {
        let (bytes, ends, octet_count) = (&mut self.bytes, &mut self.ends, self.server.octet_count);
        bytes.clear();
        ends.clear();
        let missed = self.ring.read(&mut self.position, |line| {
            if octet_count {
                bytes.extend_from_slice(format!("{} ", line.len()).as_bytes());
                bytes.extend_from_slice(line);
            } else {
                bytes.extend_from_slice(line);
                bytes.push(b'\n');
            }
            ends.push(bytes.len());
            bytes.len() < CHUNK
        });
        if missed > 0 {
            let process = &self.program.world.process;
            process.counters.of(self.worker).dropped_logs.add(missed);
        }
    }

    /// The line that follows those that have left whole, and notes it.
    fn reached(&self, first: u64, sent: usize) -> u64 {
        let position = first + self.ends.iter().take_while(|end| **end <= sent).count() as u64;
        self.progress.store(position, Relaxed);
        position
    }

    /// Sends what was gathered, which begins with the line `first`; how much of it left.
    async fn send(&self, socket: &Transport, first: u64) -> (usize, io::Result<()>) {
        let mut timer = Timer::new();
        timer.set_after(self.settings.server_timeout);
        let mut sent = 0;
        let outcome = poll_fn(|cx| {
            loop {
                let Some(rest) = self.bytes.get(sent..).filter(|r| !r.is_empty()) else {
                    return Poll::Ready(Ok(()));
                };
                match socket.poll_send(cx, rest, false) {
                    Poll::Ready(Ok(n)) => {
                        sent += n;
                        self.reached(first, sent);
                        timer.set_after(self.settings.server_timeout);
                    }
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Pending => break,
                }
            }
            timer.poll_expired(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
        });
        let outcome = outcome.await;
        (sent, outcome)
    }

    /// Waits for the next line, or the end of the connection. What the server says is of no interest; `true`
    /// if it said something.
    async fn wait(&self, socket: &Transport, bell: &Bell) -> io::Result<bool> {
        poll_fn(|cx| {
            let mut ignored = [0; 1024];
            match socket.poll_recv(cx, &mut ignored) {
                Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Poll::Ready(Ok(_)) => Poll::Ready(Ok(true)),
                Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
                Poll::Pending => bell.notify.poll_notified(cx).map(|()| Ok(false)),
            }
        })
        .await
    }
}
