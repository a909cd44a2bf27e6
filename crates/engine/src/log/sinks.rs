//! Where lines go. A sink takes a line at once or the line is dropped and counted: nothing ever waits for a log server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;

use program::log::{Sampling, Sink, Target};
use program::{Program, Proxy};
use rt::{Addr, Datagram, FdWriter};

use super::frame::Frame;
use crate::Worker;

/// A worker's open sinks.
pub struct Sinks {
    open: RefCell<HashMap<Sink, Open>>,
    line: Cell<Vec<u8>>,
    pid: u32,
}

enum Open {
    Datagram(Datagram, Addr),
    Stream(FdWriter),
    /// It could not be opened; tried again after a while.
    Failed(Addr, rt::Mono),
}

/// How long a sink that failed is left alone.
const REST: std::time::Duration = std::time::Duration::from_secs(1);

impl Sinks {
    /// Opens the sinks of all targets, so that they work inside a chroot.
    pub fn new(program: &Program, _worker: usize) -> Sinks {
        let mut open = HashMap::new();
        let targets = program.proxies.iter().flat_map(|p| p.log.targets.iter());
        for target in targets.chain(program.global.log.iter()) {
            if !open.contains_key(&target.sink)
                && let Some(sink) = open_sink(&target.sink)
            {
                open.insert(target.sink.clone(), sink);
            }
        }
        Sinks { open: RefCell::new(open), line: Cell::default(), pid: std::process::id() }
    }

    /// Sends a line to all targets of a proxy that take its level.
    pub fn send(&self, worker: &Worker, proxy: &Proxy, level: u8, message: &[u8], structured: &[u8]) {
        let global = &worker.shared.program.global;
        let tag = proxy.log.tag.as_deref().unwrap_or(&global.log_tag);
        let mut line = self.line.take();
        for target in proxy.log.targets.iter() {
            if level > target.max_level || !target.sample.as_deref().is_none_or(is_sampled) {
                continue;
            }
            line.clear();
            let frame = Frame {
                format: target.format,
                facility: target.facility,
                level: level.max(target.min_level),
                host: global.log_hostname.as_deref(),
                tag,
                pid: self.pid,
                structured,
                date: rt::wall(),
            };
            frame.append(&mut line);
            line.extend_from_slice(message);
            line.truncate(target.len.saturating_sub(1));
            line.push(b'\n');
            if self.deliver(target, &line).is_err() {
                worker.shared.program.world.process.counters.of(worker.index).dropped_logs.inc();
            }
        }
        self.line.set(line);
    }

    fn deliver(&self, target: &Target, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.borrow_mut();
        let Some(sink) = open.get_mut(&target.sink) else { return Err(io::ErrorKind::NotConnected.into()) };
        match sink {
            Open::Stream(out) => out.try_write(line).map(drop),
            Open::Datagram(socket, addr) => match socket.try_send(line) {
                Ok(_) => Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(e),
                Err(_) => {
                    // A refusal may be that of an earlier line: once more, on a new socket where the old one is dead.
                    if socket.try_send(line).is_ok() {
                        return Ok(());
                    }
                    let addr = addr.clone();
                    reopen(sink, addr, line)
                }
            },
            Open::Failed(addr, since) => {
                if rt::now().since(*since) < REST {
                    return Err(io::ErrorKind::NotConnected.into());
                }
                let addr = addr.clone();
                reopen(sink, addr, line)
            }
        }
    }
}

fn reopen(sink: &mut Open, addr: Addr, line: &[u8]) -> io::Result<()> {
    match Datagram::connect(&addr) {
        Ok(socket) => {
            let sent = socket.try_send(line).map(drop);
            *sink = Open::Datagram(socket, addr);
            sent
        }
        Err(e) => {
            *sink = Open::Failed(addr, rt::now());
            Err(e)
        }
    }
}

fn open_sink(sink: &Sink) -> Option<Open> {
    let addr = match sink {
        Sink::Udp(a) => Addr::Inet(*a),
        Sink::Unix(path) => Addr::Unix(path.to_vec()),
        Sink::Abstract(name) => Addr::Abstract { name: name.to_vec(), padded: true },
        Sink::Fd(fd) => return open_fd(*fd).ok().map(Open::Stream),
        Sink::Ring(_) => return None,
    };
    Some(match Datagram::connect(&addr) {
        Ok(socket) => Open::Datagram(socket, addr),
        Err(_) => Open::Failed(addr, rt::now()),
    })
}

fn open_fd(fd: i32) -> io::Result<FdWriter> {
    let owned = rt::sys::inherited(fd)?;
    let borrowed: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(&owned);
    FdWriter::new(borrowed)
}

/// `sample`: whether this line is one of the share.
fn is_sampled(sampling: &Sampling) -> bool {
    let position = sampling.seen.fetch_add(1, Relaxed) % sampling.size.max(1) + 1;
    sampling.ranges.iter().any(|(low, high)| (*low..=*high).contains(&position))
}
