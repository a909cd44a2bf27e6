//! The simulated network: its sockets, and the events that are on their way.
//!
//! It lives in a thread-local while a world runs, so that an operation on a handle finds it without being
//! passed anything, like a system call finds its kernel. Everything that takes time is an event in one queue,
//! ordered by time and then by number, and every draw comes from one generator: that makes a world a function
//! of its seed.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use base::time::Mono;

use crate::addr::Addr;
use crate::clock;
use crate::driver::{Interest, Report, SIM_BASE};
use crate::sim::datagram::DatagramSocket;
use crate::sim::options::{Faults, Options};
use crate::sim::stream::Stream;
use crate::source::ready;

/// The index of an object of the network; its handle is that above [`SIM_BASE`].
pub(super) type Id = usize;

pub(super) enum Object {
    Stream(Stream),
    Listener(Listening),
    Datagram(DatagramSocket),
}

/// A listening socket.
pub(super) struct Listening {
    pub(super) addr: Addr,
    pub(super) backlog: usize,
    pub(super) queue: VecDeque<Id>,
    pub(super) tokens: Vec<u64>,
    /// When it was last reported with this queue, which isn't done twice at one instant.
    reported: Option<Mono>,
}

/// What is on its way.
#[derive(Debug)]
pub(super) enum Event {
    /// A connection is asked for.
    Syn { from: Id },
    /// It is granted.
    Accepted { at: Id },
    /// It can't be made.
    Failed { at: Id, errno: i32 },
    /// Bytes arrive.
    Data { at: Id, bytes: Vec<u8> },
    /// The peer has closed its direction.
    Fin { at: Id },
    /// The connection broke.
    Reset { at: Id },
    /// The peer has read so many bytes.
    Room { at: Id, bytes: usize },
    /// A report that was due a little later.
    Ready { at: Id, bits: u8 },
    /// A datagram arrives.
    Datagram { at: Id, bytes: Vec<u8>, from: Addr },
}

/// What a world holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) open: usize,
    pub(super) events: u64,
}

pub(super) struct Net {
    pub(super) now: Mono,
    pub(super) options: Options,
    rng: u64,
    objects: Vec<Option<Object>>,
    events: BTreeMap<(Mono, u64), Event>,
    sequence: u64,
    next_port: u16,
    reports: Vec<Report>,
    pub(super) trace: u64,
    pub(super) counts: Counts,
    /// Nothing is on its way, nothing is due, and yet somebody waits.
    pub(super) deadlock: bool,
}

thread_local! {
    static NET: RefCell<Option<Net>> = const { RefCell::new(None) };
}

/// Whether this thread runs a simulated world.
pub(crate) fn is_active() -> bool {
    NET.with_borrow(|net| net.is_some())
}

/// Puts a network in place (or takes it away); returns the former one.
pub(super) fn install(net: Option<Net>) -> Option<Net> {
    NET.replace(net)
}

/// Calls `f` with the network of this thread; an error if its world has ended.
pub(super) fn with<R>(f: impl FnOnce(&mut Net) -> io::Result<R>) -> io::Result<R> {
    NET.with_borrow_mut(|net| net.as_mut().map_or_else(|| Err(errno(libc::EBADF)), f))
}

/// Calls `f` with the network of this thread, if there is one.
pub(super) fn try_with<R>(f: impl FnOnce(&mut Net) -> R) -> Option<R> {
    NET.try_with(|net| net.borrow_mut().as_mut().map(f)).ok().flatten()
}

pub(super) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl Net {
    pub(super) fn new(seed: u64, options: Options) -> Net {
        Net {
            // Not zero, which means "no clock" elsewhere.
            now: Mono::from_nanos(1_000_000_000),
            options,
            rng: clock::mix(seed),
            objects: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            next_port: 32768,
            reports: Vec::new(),
            trace: seed,
            counts: Counts::default(),
            deadlock: false,
        }
    }

    // Drawing.

    pub(super) fn draw(&mut self) -> u64 {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        clock::mix(self.rng)
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.draw() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// A number from 1 to `n`.
    pub(super) fn up_to(&mut self, n: usize) -> usize {
        1 + (self.draw() % n.max(1) as u64) as usize
    }

    /// The time a segment takes.
    pub(super) fn delay(&mut self, faults: &Faults) -> Duration {
        let (low, high) = (faults.delay.start().as_nanos() as u64, faults.delay.end().as_nanos() as u64);
        let span = high.saturating_sub(low) + 1;
        let mut delay = Duration::from_nanos(low + self.draw() % span);
        if self.chance(faults.stall) {
            delay += faults.stall_time;
        }
        delay
    }

    pub(super) fn faults_of(&self, addr: &Addr) -> Faults {
        let link = self.options.links.iter().rev().find(|(to, _)| matches(to, addr));
        link.map_or_else(|| self.options.faults.clone(), |(_, faults)| faults.clone())
    }

    // Objects.

    pub(super) fn add(&mut self, object: Object) -> io::Result<Id> {
        if self.counts.open >= self.options.max_descriptors {
            return Err(errno(libc::EMFILE));
        }
        self.counts.open += 1;
        self.objects.push(Some(object));
        Ok(self.objects.len() - 1)
    }

    pub(super) fn object(&mut self, id: Id) -> Option<&mut Object> {
        self.objects.get_mut(id).and_then(Option::as_mut)
    }

    pub(super) fn stream(&mut self, id: Id) -> io::Result<&mut Stream> {
        match self.object(id) {
            Some(Object::Stream(stream)) => Ok(stream),
            Some(_) => Err(errno(libc::ENOTCONN)),
            None => Err(errno(libc::EBADF)),
        }
    }

    pub(super) fn listening(&mut self, id: Id) -> io::Result<&mut Listening> {
        match self.object(id) {
            Some(Object::Listener(listener)) => Ok(listener),
            _ => Err(errno(libc::EINVAL)),
        }
    }

    pub(super) fn datagram(&mut self, id: Id) -> io::Result<&mut DatagramSocket> {
        match self.object(id) {
            Some(Object::Datagram(socket)) => Ok(socket),
            _ => Err(errno(libc::EBADF)),
        }
    }

    /// The objects, with their ids, in the order they were made.
    pub(super) fn objects(&self) -> impl Iterator<Item = (Id, &Object)> {
        self.objects.iter().enumerate().filter_map(|(id, o)| Some((id, o.as_ref()?)))
    }

    pub(super) fn listen(&mut self, addr: &Addr, backlog: usize, reuseport: bool) -> io::Result<Id> {
        let addr = self.bindable(addr);
        let taken = |o: &Object| matches!(o, Object::Listener(l) if l.addr == addr);
        if !reuseport && self.objects().any(|(_, o)| taken(o)) {
            return Err(errno(libc::EADDRINUSE));
        }
        let (queue, tokens) = (VecDeque::new(), Vec::new());
        self.add(Object::Listener(Listening { addr, backlog, queue, tokens, reported: None }))
    }

    /// The address with a port instead of 0.
    pub(super) fn bindable(&mut self, addr: &Addr) -> Addr {
        let mut addr = addr.clone();
        if let Addr::Inet(inet) = &mut addr
            && inet.port() == 0
        {
            inet.set_port(self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(32768);
        }
        addr
    }

    pub(super) fn close(&mut self, id: Id) {
        let Some(object) = self.objects.get_mut(id).and_then(Option::take) else { return };
        self.counts.open -= 1;
        match object {
            Object::Stream(stream) => self.closed(stream),
            Object::Listener(listener) => listener.queue.into_iter().for_each(|id| self.abort(id)),
            Object::Datagram(_) => {}
        }
    }

    pub(super) fn register(&mut self, id: Id, token: u64, interest: Interest) -> io::Result<()> {
        let bits = match self.object(id) {
            Some(Object::Stream(stream)) => {
                stream.token = Some(token);
                stream.state()
            }
            Some(Object::Datagram(socket)) => {
                socket.token = Some(token);
                ready::WRITE | if socket.queue.is_empty() { 0 } else { ready::READ }
            }
            Some(Object::Listener(listener)) => {
                debug_assert_eq!(interest, Interest::Listener);
                listener.tokens.push(token);
                listener.reported = None;
                0
            }
            None => return Err(errno(libc::EBADF)),
        };
        self.report(id, bits);
        Ok(())
    }

    pub(super) fn deregister(&mut self, id: Id, token: Option<u64>) {
        match self.object(id) {
            Some(Object::Stream(stream)) => stream.token = None,
            Some(Object::Datagram(socket)) => socket.token = None,
            Some(Object::Listener(listener)) => match token {
                Some(token) => listener.tokens.retain(|&t| t != token),
                None => listener.tokens.clear(),
            },
            None => {}
        }
    }

    pub(super) fn report(&mut self, id: Id, bits: u8) {
        let token = match self.object(id) {
            Some(Object::Stream(stream)) => stream.token,
            Some(Object::Datagram(socket)) => socket.token,
            _ => None,
        };
        if let (Some(token), true) = (token, bits != 0) {
            self.reports.push(Report { token, ready: bits });
        }
    }

    // Time.

    pub(super) fn schedule(&mut self, at: Mono, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    pub(super) fn schedule_in(&mut self, delay: Duration, event: Event) {
        self.schedule(self.now + delay, event);
    }

    /// Adds a fact to the trace.
    pub(super) fn note(&mut self, fact: u64) {
        self.trace = clock::mix(self.trace ^ fact.wrapping_mul(0xff51_afd7_ed55_8ccd)).rotate_left(7);
    }

    fn happen(&mut self, event: Event) {
        self.counts.events += 1;
        self.note(self.now.as_nanos());
        let fact = event.fact();
        self.note(fact);
        if self.options.verbose {
            eprintln!("{:>12} us {}", self.now.as_nanos() / 1000, event.line());
        }
        match event {
            Event::Ready { at, bits } => self.report(at, bits),
            Event::Datagram { at, bytes, from } => self.datagram_arrives(at, bytes, from),
            other => self.stream_event(other),
        }
    }

    /// The driver's poll: reports, or the passage of time until there are some or `wait` has passed.
    pub(super) fn poll(&mut self, wait: Option<Duration>, out: &mut Vec<Report>) {
        let deadline = wait.map(|w| self.now + w);
        loop {
            while let Some(first) = self.events.first_entry().filter(|e| e.key().0 <= self.now) {
                let event = first.remove();
                self.happen(event);
            }
            self.report_listeners();
            if !self.reports.is_empty() || wait == Some(Duration::ZERO) {
                break;
            }
            let next = self.events.first_key_value().map(|(key, _)| key.0);
            match [next, deadline].into_iter().flatten().min() {
                Some(time) => self.now = time,
                None => self.deadlock = true,
            }
            if self.deadlock || Some(self.now) == deadline {
                break;
            }
        }
        self.shuffle_reports();
        out.append(&mut self.reports);
    }

    /// Listeners are level-triggered: reported as long as somebody waits, but once per instant and queue, so
    /// that a listener that nobody serves does not stop time.
    fn report_listeners(&mut self) {
        let now = self.now;
        for object in self.objects.iter_mut().flatten() {
            if let Object::Listener(l) = object
                && !l.queue.is_empty()
                && l.reported != Some(now)
            {
                l.reported = Some(now);
                self.reports.extend(l.tokens.iter().map(|&token| Report { token, ready: ready::READ }));
            }
        }
    }

    /// What happens at one instant happens in any order.
    fn shuffle_reports(&mut self) {
        for i in (1..self.reports.len()).rev() {
            let j = (self.draw() % (i as u64 + 1)) as usize;
            self.reports.swap(i, j);
        }
    }
}

impl Listening {
    /// The queue has changed.
    pub(super) fn changed(&mut self) {
        self.reported = None;
    }
}

impl Event {
    /// The event in one number.
    fn fact(&self) -> u64 {
        let (kind, at, detail) = match self {
            Event::Syn { from } => (1, from, 0),
            Event::Accepted { at } => (2, at, 0),
            Event::Failed { at, errno } => (3, at, *errno as u64),
            Event::Data { at, bytes } => (4, at, digest(bytes)),
            Event::Fin { at } => (5, at, 0),
            Event::Reset { at } => (6, at, 0),
            Event::Room { at, bytes } => (7, at, *bytes as u64),
            Event::Ready { at, bits } => (8, at, u64::from(*bits)),
            Event::Datagram { at, bytes, .. } => (9, at, digest(bytes)),
        };
        clock::mix(detail ^ kind << 56 ^ (*at as u64) << 24)
    }

    /// The event for a reader.
    fn line(&self) -> String {
        match self {
            Event::Data { at, bytes } => format!("#{at} gets {} bytes: {}", bytes.len(), start_of(bytes)),
            other => format!("{other:?}"),
        }
    }
}

fn start_of(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(60)].escape_ascii().to_string()
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether a connection to `addr` reaches a socket bound to `bound`.
pub(super) fn matches(bound: &Addr, addr: &Addr) -> bool {
    match (bound, addr) {
        (Addr::Inet(b), Addr::Inet(a)) => b == a || (b.ip().is_unspecified() && b.port() == a.port()),
        (Addr::Unix(b), Addr::Unix(a)) => b == a && !b.is_empty(),
        _ => bound == addr,
    }
}

/// The object behind a handle's number.
pub(super) fn id_of(number: i32) -> Id {
    (number - SIM_BASE) as Id
}

/// The number of an object's handle.
pub(super) fn number_of(id: Id) -> i32 {
    SIM_BASE + id as i32
}
