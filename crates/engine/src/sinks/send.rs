//! Where lines go. A sink takes a line at once or the line is dropped and counted: nothing ever waits for a
//! log server.
//!
//! Which sink a target means is a number fixed when the configuration was read. The text of a line is made
//! once for all targets that take it as the proxy says; only a log profile that says otherwise costs another
//! evaluation.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use farm::Farm;
use lang::logfmt::Use;
use lang::{Env, LogFormat};
use model::Origin;
use program::log::{Format, Sampling, Sink, Step, Target};
use program::{Program, Proxy};
use rt::{Addr, Datagram, FdWriter};

use super::frame::Frame;
use super::gather::{Gathered, Pieces};
use super::outlets::{self, Outlet, Outlets};
use super::ring::Ring;
use super::spread::{Spread, Towards};

/// A worker's open sinks.
pub struct Sinks {
    open: RefCell<Vec<Open>>,
    buffers: Cell<Buffers>,
    /// Messages of others that leave at the end of their burst.
    gathered: RefCell<Gathered>,
    /// Standard output and error, once the `debug` converter wrote there.
    standard: RefCell<[Option<FdWriter>; 2]>,
    pid: u32,
    program: Arc<Program>,
    rings: Vec<Arc<Ring>>,
    spread: Spread,
    /// The worker, by number.
    worker: usize,
}

enum Open {
    Datagram(Datagram, Addr),
    Writer(Arc<FdWriter>),
    Ring(Arc<Ring>),
    /// It could not be opened; tried again after a while.
    Failed(Addr, rt::Mono),
    /// A server of a backend of logs.
    Server((u32, u32), Towards),
    /// Nothing can be opened, or a backend chooses.
    Closed,
}

/// How long a sink that failed is left alone.
const REST: std::time::Duration = std::time::Duration::from_secs(1);

/// A moment that is logged.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Which moment.
    pub origin: Origin,
    /// Syslog level.
    pub level: u8,
    /// A log profile in place of the targets' own (`do-log profile`), by index of the program.
    pub profile: Option<u32>,
}

/// What a line says.
#[derive(Clone, Copy)]
pub enum Body<'b> {
    /// These words.
    Text(&'b [u8]),
    /// Nothing: there is no line, but samples count it.
    Nothing,
    /// What formats make of a transaction; profiles may put others in their place.
    Made {
        /// The proxy's format for the moment.
        format: Option<&'b LogFormat>,
        /// Structured data.
        structured: Option<&'b LogFormat>,
        /// What formats look at.
        env: &'b Env<'b>,
    },
}

/// Memory for lines, kept from one to the next.
#[derive(Default)]
struct Buffers {
    line: Vec<u8>,
    /// `message` and `structured` have been made for the line at hand.
    made: bool,
    /// Message and structured data as the proxy says.
    message: Vec<u8>,
    structured: Vec<u8>,
    /// The same as a profile says.
    own_message: Vec<u8>,
    own_structured: Vec<u8>,
}

impl Sinks {
    /// The sinks of a worker.
    pub fn new(worker: usize, farm: &Arc<Farm>, outlets: &Outlets, rings: &[Arc<Ring>]) -> Sinks {
        let program = &farm.program;
        let sinks = program.sinks.iter().enumerate();
        let open = sinks.map(|(i, sink)| open(sink, outlets.get(i), rings)).collect();
        Sinks {
            open: RefCell::new(open),
            buffers: Cell::default(),
            gathered: RefCell::default(),
            standard: RefCell::default(),
            pid: std::process::id(),
            program: program.clone(),
            rings: rings.to_vec(),
            spread: Spread::new(farm.clone()),
            worker,
        }
    }

    /// Sends a line to all targets of a proxy that take its level.
    pub fn send(&self, proxy: &Proxy, event: Event, body: Body<'_>) {
        self.send_to(&proxy.log.targets, proxy.log.tag.as_deref(), event, body);
    }

    /// Sends a line to all of these targets that take its level. It is tagged so unless a profile says
    /// otherwise.
    pub fn send_to(&self, targets: &[Target], tag: Option<&str>, event: Event, body: Body<'_>) {
        let program = &self.program;
        let mut buffers = self.buffers.take();
        buffers.made = false;
        for target in targets.iter().filter(|t| event.level <= t.max_level) {
            let profile = event.profile.or(target.profile);
            let profile = profile.and_then(|i| program.log_profiles.get(i as usize));
            let step = profile.and_then(|p| p.step(event.origin));
            // Lines that a profile drops count in samples, too.
            if !target.sample.as_deref().is_none_or(is_sampled) || step.is_some_and(|s| s.drop) {
                continue;
            }
            let Some(own) = buffers.make(body, step) else { continue };
            let tag = profile.and_then(|p| p.tag.as_deref()).or(tag);
            buffers.frame(program, target, event.level, own, tag, self.pid);
            let message = if own { &buffers.own_message } else { &buffers.message };
            self.deliver_counted(target.sink, &buffers.line, message);
        }
        self.buffers.set(buffers);
    }

    /// Shows a line of the `debug` converter on a standard stream, or keeps it in a ring.
    pub fn trace(&self, name: &str, line: &[u8]) {
        let (index, fd) = match name {
            "stdout" => (0, 1),
            "stderr" => (1, 2),
            _ => return self.keep(name, line),
        };
        let mut standard = self.standard.borrow_mut();
        let Some(place) = standard.get_mut(index) else { return };
        if place.is_none() {
            *place = outlets::writer(fd);
        }
        if let Some(out) = place {
            // A terminal that takes no more loses the line.
            let _ = out.try_write(line);
        }
    }

    /// Appends a line to the ring of that name.
    fn keep(&self, name: &str, line: &[u8]) {
        let rings = &self.program.rings;
        let Some(at) = rings.iter().position(|r| *r.name == *name) else { return };
        let (Some(settings), Some(ring)) = (rings.get(at), self.rings.get(at)) else { return };
        let host = self.program.global.log_hostname.as_deref();
        let frame = Frame {
            format: settings.format,
            facility: 0,
            level: 0,
            host: if settings.format == Format::Rfc3164 { host.or(Some("localhost")) } else { host },
            tag: None,
            pid: 0,
            structured: &[],
            date: rt::wall(),
        };
        let mut out = Vec::new();
        frame.append(&mut out);
        out.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        out.truncate(settings.maxlen);
        ring.append(&out);
    }

    /// The configuration.
    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// Memory for a line.
    pub(super) fn take_line(&self) -> Vec<u8> {
        let mut buffers = self.buffers.take();
        let line = std::mem::take(&mut buffers.line);
        self.buffers.set(buffers);
        line
    }

    /// Gives it back.
    pub(super) fn give_line(&self, line: Vec<u8>) {
        let mut buffers = self.buffers.take();
        buffers.line = line;
        self.buffers.set(buffers);
    }

    /// Sends a line with this message in it to a sink, or counts it as dropped.
    pub(super) fn deliver_counted(&self, sink: usize, line: &[u8], message: &[u8]) {
        let chosen = self.choose(sink, message);
        if chosen.is_none_or(|sink| self.deliver(sink, line).is_err()) {
            self.count_dropped();
        }
    }

    /// The sink that takes a line with this message: itself, or that of a server of its backend.
    fn choose(&self, sink: usize, message: &[u8]) -> Option<usize> {
        match self.program.sinks.get(sink) {
            Some(Sink::Backend(proxy)) => self.spread.choose(*proxy, message),
            _ => Some(sink),
        }
    }

    fn count_dropped(&self) {
        self.program.world.process.counters.of(self.worker).dropped_logs.inc();
    }

    /// Sends the line that `write` appends, with this message in it: at once, or with [`Sinks::flush`] where
    /// lines leave as datagrams.
    pub(super) fn gather(&self, sink: usize, message: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let Some(sink) = self.choose(sink, message) else { return self.count_dropped() };
        let by_datagram = matches!(
            self.open.borrow().get(sink),
            Some(Open::Datagram(..) | Open::Server(..) | Open::Failed(..))
        );
        if by_datagram {
            if self.gathered.borrow_mut().add(sink, write) {
                self.flush_sink(sink);
            }
            return;
        }
        let mut line = self.take_line();
        line.clear();
        write(&mut line);
        if self.deliver(sink, &line).is_err() {
            self.count_dropped();
        }
        self.give_line(line);
    }

    /// Sends the lines that were gathered. Whoever gathers does so before it waits for anything.
    pub fn flush(&self) {
        loop {
            let Some(sink) = self.gathered.borrow().next() else { return };
            self.flush_sink(sink);
        }
    }

    fn flush_sink(&self, sink: usize) {
        self.gathered.borrow_mut().take(sink, |mut lines| {
            while self.leave(sink, &mut lines).is_err() {
                // The first of those that are left is the one: it has a chance of its own.
                let Some(line) = lines.next() else { return };
                if self.deliver(sink, line).is_err() {
                    self.count_dropped();
                }
            }
        });
    }

    /// Sends lines by the socket of a sink until it refuses one.
    fn leave(&self, sink: usize, lines: &mut Pieces<'_>) -> io::Result<()> {
        let mut open = self.open.borrow_mut();
        let socket = match open.get_mut(sink) {
            Some(Open::Datagram(socket, _)) => Some(&*socket),
            Some(Open::Server((proxy, server), towards)) => {
                self.spread.address(*proxy, *server).and_then(|addr| towards.socket(addr).ok())
            }
            _ => None,
        };
        match socket {
            Some(socket) => lines.leave_by(socket),
            None => lines.clone().next().map_or(Ok(()), |_| Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn deliver(&self, sink: usize, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.borrow_mut();
        let Some(sink) = open.get_mut(sink) else { return Err(io::ErrorKind::NotConnected.into()) };
        match sink {
            Open::Closed => Err(io::ErrorKind::NotConnected.into()),
            Open::Server((proxy, server), towards) => match self.spread.address(*proxy, *server) {
                Some(addr) => towards.send(addr, line),
                None => Err(io::ErrorKind::NotConnected.into()),
            },
            // What a descriptor takes only in part is as good as lost.
            Open::Writer(out) => match out.try_write(line)? {
                n if n == line.len() => Ok(()),
                _ => Err(io::ErrorKind::WriteZero.into()),
            },
            Open::Ring(ring) => {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                if ring.append(line) { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
            }
            Open::Datagram(socket, addr) => match socket.try_send(line) {
                Ok(_) => Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(e),
                Err(_) => {
                    // A refusal may be that of an earlier line: once more, on a new socket where the old one
                    // is dead.
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

impl Buffers {
    /// Makes message and structured data; whether they are a profile's own, or `None` if there is no line to
    /// make: without a format there is none, which samples have counted all the same, as in HAProxy.
    fn make(&mut self, body: Body<'_>, step: Option<&Step>) -> Option<bool> {
        let (format, structured, env) = match body {
            Body::Text(text) => {
                if !std::mem::replace(&mut self.made, true) {
                    self.message.clear();
                    self.structured.clear();
                    self.message.extend_from_slice(text);
                }
                return Some(false);
            }
            Body::Nothing => return None,
            Body::Made { format, structured, env } => (format, structured, env),
        };
        let special = step.filter(|s| s.format.is_some() || s.structured.is_some());
        let Some(step) = special else {
            let format = format?;
            if !std::mem::replace(&mut self.made, true) {
                fill(&mut self.message, Some(format), env);
                fill(&mut self.structured, structured, env);
            }
            return Some(false);
        };
        fill(&mut self.own_message, Some(step.format.as_ref().or(format)?), env);
        fill(&mut self.own_structured, step.structured.as_ref().or(structured), env);
        Some(true)
    }

    /// Puts a line together as a target wants it.
    fn frame(
        &mut self,
        program: &Program,
        target: &Target,
        level: u8,
        own: bool,
        tag: Option<&str>,
        pid: u32,
    ) {
        let (message, structured) = match own {
            true => (&self.own_message, &self.own_structured),
            false => (&self.message, &self.structured),
        };
        let ring = match program.sinks.get(target.sink) {
            Some(Sink::Ring(index)) => program.rings.get(*index),
            _ => None,
        };
        let global = &program.global;
        let format = ring.map_or(target.format, |r| r.format);
        let frame = Frame {
            format,
            facility: target.facility,
            level: level.max(target.min_level),
            host: match format {
                // A name nobody asked for stands only where the format has no line without it.
                Format::Rfc3164 => Some(global.log_hostname.as_deref().unwrap_or("localhost")),
                _ => global.log_hostname.as_deref(),
            },
            tag: Some(tag.unwrap_or(&global.log_tag)),
            pid,
            structured,
            date: rt::wall(),
        };
        self.line.clear();
        frame.append(&mut self.line);
        self.line.extend_from_slice(message);
        let most = ring.map_or(target.len.saturating_sub(1), |r| r.maxlen);
        self.line.truncate(most);
        self.line.push(b'\n');
    }
}

fn fill(out: &mut Vec<u8>, format: Option<&LogFormat>, env: &Env<'_>) {
    out.clear();
    if let Some(format) = format {
        format.append(env, Use::Log, out);
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

fn open(sink: &Sink, outlet: &Outlet, rings: &[Arc<Ring>]) -> Open {
    let addr = match sink {
        Sink::Udp(a) => Addr::Inet(*a),
        Sink::Unix(path) => Addr::Unix(path.to_vec()),
        Sink::Abstract(name) => Addr::Abstract { name: name.to_vec(), padded: true },
        Sink::Backend(_) => return Open::Closed,
        Sink::Server(proxy, server) => return Open::Server((*proxy, *server), Towards::default()),
        Sink::Ring(index) => return rings.get(*index).map_or(Open::Closed, |r| Open::Ring(r.clone())),
        Sink::Fd(fd) => {
            return match outlet {
                Outlet::Writer(writer) => Open::Writer(writer.clone()),
                _ => outlets::writer(*fd).map_or(Open::Closed, |w| Open::Writer(Arc::new(w))),
            };
        }
    };
    let prepared = match outlet {
        Outlet::Socket(fd) => fd.try_clone().ok().map(Datagram::from_fd),
        _ => None,
    };
    match prepared.map_or_else(|| Datagram::connect(&addr), Ok) {
        Ok(socket) => Open::Datagram(socket, addr),
        Err(_) => Open::Failed(addr, rt::now()),
    }
}

/// `sample`: whether this line is one of the share.
pub(super) fn is_sampled(sampling: &Sampling) -> bool {
    let position = sampling.seen.fetch_add(1, Relaxed) % sampling.size.max(1) + 1;
    sampling.ranges.iter().any(|(low, high)| (*low..=*high).contains(&position))
}
