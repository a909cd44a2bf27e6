//! The servers of a ring: syslog over a stream (RFC 6587), with the length before each line or a line feed
//! behind it.
//!
//! One task for each server. It reads the ring at its own pace; lines that had to make room meanwhile are
//! counted as dropped. A line that was cut by the end of a connection is sent again on the next one, so a
//! server may see the beginning of a line twice, but loses none that the ring still holds.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use program::Program;
use program::log::{Ring as Settings, RingServer};
use rt::{Addr, ConnectOptions, Socket, Timer};

use super::ring::{Bell, Ring};

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
            if let (Some(addr), Some(kept)) = (link::address::target(&server.target), rings.get(index)) {
                let at = Place { worker, index, number };
                tasks.push(rt::spawn(run(program.clone(), kept.clone(), at, addr)));
            }
        }
    }
    tasks
}

/// A server and how far it has got.
struct Feed<'f> {
    program: &'f Program,
    worker: usize,
    ring: &'f Arc<Ring>,
    server: &'f RingServer,
    settings: &'f Settings,
    position: u64,
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

async fn run(program: Arc<Program>, ring: Arc<Ring>, at: Place, addr: Addr) {
    let settings = &program.rings[at.index];
    let ring = &ring;
    let bell = ring.bell();
    let mut feed = Feed {
        program: &program,
        worker: at.worker,
        ring,
        server: &settings.servers[at.number],
        settings,
        position: 0,
        bytes: Vec::new(),
        ends: Vec::new(),
    };
    loop {
        if let Ok(socket) = connect(&addr, settings.connect_timeout).await {
            let _ = feed.serve(&socket, &bell).await;
        }
        rt::sleep(PAUSE).await;
    }
}

async fn connect(addr: &Addr, limit: Option<Duration>) -> io::Result<Socket> {
    let socket = Socket::connect(addr, &ConnectOptions::default())?;
    let mut timer = Timer::new();
    timer.set_after(limit);
    poll_fn(|cx| {
        if let Poll::Ready(r) = socket.poll_connected(cx) {
            return Poll::Ready(r);
        }
        timer.poll_expired(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    })
    .await?;
    Ok(socket)
}

impl Feed<'_> {
    /// Sends lines as they come until the connection ends.
    async fn serve(&mut self, socket: &Socket, bell: &Bell) -> io::Result<()> {
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
            let (sent, outcome) = self.send(socket).await;
            // What did not leave whole is sent again.
            self.position = first + self.ends.iter().filter(|end| **end <= sent).count() as u64;
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

    /// Sends what was gathered; how much of it left.
    async fn send(&self, socket: &Socket) -> (usize, io::Result<()>) {
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
    async fn wait(&self, socket: &Socket, bell: &Bell) -> io::Result<bool> {
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
