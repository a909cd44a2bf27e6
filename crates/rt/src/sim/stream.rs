//! Simulated stream sockets: what TCP promises, and all the ways it breaks.
//!
//! Bytes arrive in order and once. What was sent counts against the window until the peer has read it.
//! Closing a socket with unread bytes, or sending to one that is closed, resets the connection, as Linux
//! does.

use std::collections::VecDeque;
use std::io;

use base::time::Mono;

use crate::addr::Addr;
use crate::sim::net::{Event, Id, Net, Object, errno, matches};
use crate::sim::options::Faults;
use crate::source::ready;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Connected,
    /// It could not be made, or was reset.
    Broken,
}

pub(super) struct Stream {
    pub(super) token: Option<u64>,
    phase: Phase,
    peer: Option<Id>,
    local: Addr,
    remote: Addr,
    faults: Faults,
    received: VecDeque<u8>,
    /// The peer has closed its direction.
    ended: bool,
    error: Option<i32>,
    shut: bool,
    linger0: bool,
    /// Bytes sent and not yet read by the peer.
    in_flight: usize,
    /// A write found no room.
    starved: bool,
    /// When the last segment sent arrives; none overtakes it.
    last_arrival: Mono,
}

impl Stream {
    fn new(phase: Phase, local: Addr, remote: Addr, faults: Faults) -> Stream {
        Stream {
            token: None,
            phase,
            peer: None,
            local,
            remote,
            faults,
            received: VecDeque::new(),
            ended: false,
            error: None,
            shut: false,
            linger0: false,
            in_flight: 0,
            starved: false,
            last_arrival: Mono::ZERO,
        }
    }

    /// Its readiness, for the report at registration.
    pub(super) fn state(&self) -> u8 {
        match self.phase {
            Phase::Connecting => 0,
            Phase::Broken => ready::ERROR | ready::HANGUP,
            Phase::Connected => {
                let room = self.in_flight < self.faults.window;
                let read = if self.received.is_empty() { 0 } else { ready::READ };
                let end = if self.ended { ready::READ_CLOSED } else { 0 };
                read | end | if room { ready::WRITE } else { 0 }
            }
        }
    }

    pub(super) fn set_linger0(&mut self) {
        self.linger0 = true;
    }

    /// What was sent and is not read: a reset destroys it.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Its peer hears nothing more.
    pub(super) fn vanish(&mut self) {
        self.peer = None;
    }

    pub(super) fn take_error(&mut self) -> Option<i32> {
        self.error.take()
    }

    pub(super) fn local(&self) -> Addr {
        self.local.clone()
    }

    pub(super) fn remote(&self) -> io::Result<Addr> {
        (self.phase == Phase::Connected).then(|| self.remote.clone()).ok_or_else(|| errno(libc::ENOTCONN))
    }
}

impl Net {
    pub(super) fn connect(&mut self, addr: &Addr, source: Option<&Addr>) -> io::Result<Id> {
        let faults = self.faults_of(addr);
        if self.chance(faults.no_descriptors) {
            return Err(errno(libc::EMFILE));
        }
        let local = match (source, addr) {
            (Some(source), _) => self.bindable(source),
            (None, Addr::Inet(to)) => {
                let ip = if to.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
                let any = ip.parse().map(Addr::Inet).map_err(|_| errno(libc::EINVAL))?;
                self.bindable(&any)
            }
            (None, _) => Addr::Unix(Vec::new()),
        };
        let delay = self.delay(&faults);
        let id = self.add(Object::Stream(Stream::new(Phase::Connecting, local, addr.clone(), faults)))?;
        self.schedule_in(delay, Event::Syn { from: id });
        Ok(id)
    }

    /// Two sockets connected to each other.
    pub(super) fn pair(&mut self) -> io::Result<(Id, Id)> {
        let addr = Addr::Unix(Vec::new());
        let faults = self.options.faults.clone();
        let stream = |f: &Faults| Stream::new(Phase::Connected, addr.clone(), addr.clone(), f.clone());
        let a = self.add(Object::Stream(stream(&faults)))?;
        let b = self.add(Object::Stream(stream(&faults)))?;
        self.stream(a)?.peer = Some(b);
        self.stream(b)?.peer = Some(a);
        Ok((a, b))
    }

    pub(super) fn accept(&mut self, id: Id) -> io::Result<(Id, Addr)> {
        let addr = self.listening(id)?.addr.clone();
        let faults = self.faults_of(&addr);
        if self.chance(faults.no_descriptors) || self.counts.open > self.options.max_descriptors {
            return Err(errno(libc::EMFILE));
        }
        let listener = self.listening(id)?;
        listener.changed();
        let stream = listener.queue.pop_front().ok_or_else(|| errno(libc::EAGAIN))?;
        let remote = self.stream(stream)?.remote.clone();
        Ok((stream, remote))
    }

    pub(super) fn recv(&mut self, id: Id, buf: &mut [u8], peek: bool) -> io::Result<usize> {
        let stream = self.stream(id)?;
        if let Some(code) = stream.error.take() {
            return Err(errno(code));
        }
        let (there, short) = (stream.received.len(), stream.faults.short_read);
        if there == 0 {
            let over = stream.ended || stream.phase == Phase::Broken;
            return if over { Ok(0) } else { Err(errno(libc::EAGAIN)) };
        }
        let mut n = there.min(buf.len());
        if n > 1 && !peek && self.chance(short) {
            n = self.up_to(n);
        }
        let stream = self.stream(id)?;
        for (to, from) in buf[..n].iter_mut().zip(&stream.received) {
            *to = *from;
        }
        if peek {
            return Ok(n);
        }
        stream.received.drain(..n);
        if n < buf.len() && n < there {
            // A read that returned less than it could is followed by a report of the rest.
            self.report(id, ready::READ);
        }
        self.credit(id, n);
        Ok(n)
    }

    /// Tells the sender that `n` bytes have been read.
    fn credit(&mut self, id: Id, n: usize) {
        let Ok(stream) = self.stream(id) else { return };
        let (peer, faults) = (stream.peer, stream.faults.clone());
        if let Some(peer) = peer {
            let delay = self.delay(&faults);
            self.schedule_in(delay, Event::Room { at: peer, bytes: n });
        }
    }

    pub(super) fn send(&mut self, id: Id, data: &[u8]) -> io::Result<usize> {
        let stream = self.stream(id)?;
        if let Some(code) = stream.error.take() {
            return Err(errno(code));
        }
        if stream.phase == Phase::Connecting {
            return Err(errno(libc::EAGAIN));
        }
        let Some(peer) = stream.peer.filter(|_| !stream.shut && stream.phase == Phase::Connected) else {
            return Err(errno(libc::EPIPE));
        };
        let room = stream.faults.window.saturating_sub(stream.in_flight);
        let faults = stream.faults.clone();
        if room == 0 {
            stream.starved = true;
            return Err(errno(libc::EAGAIN));
        }
        if self.chance(faults.reset) {
            self.break_connection(id, peer);
            return Err(errno(libc::ECONNRESET));
        }
        let mut n = data.len().min(room);
        if n > 1 && self.chance(faults.short_write) {
            n = self.up_to(n);
        }
        self.deliver(id, peer, &data[..n], &faults)?;
        if n < data.len() {
            if n < room {
                self.schedule_in(
                    faults.delay.start().to_owned(),
                    Event::Ready { at: id, bits: ready::WRITE },
                );
            } else {
                self.stream(id)?.starved = true;
            }
        }
        if self.chance(faults.half_close) {
            self.shutdown_write(id)?;
        }
        Ok(n)
    }

    /// Sends a segment, or two.
    fn deliver(&mut self, id: Id, peer: Id, data: &[u8], faults: &Faults) -> io::Result<()> {
        let cut =
            if data.len() > 1 && self.chance(faults.split) { self.up_to(data.len() - 1) } else { data.len() };
        let (first, second) = data.split_at(cut);
        for part in [first, second] {
            if !part.is_empty() {
                let arrival = self.arrival(id, faults)?;
                self.stream(id)?.in_flight += part.len();
                self.schedule(arrival, Event::Data { at: peer, bytes: part.to_vec() });
            }
        }
        Ok(())
    }

    /// When a segment sent now arrives: not before the one sent last.
    fn arrival(&mut self, id: Id, faults: &Faults) -> io::Result<Mono> {
        let arrival = self.now + self.delay(faults);
        let stream = self.stream(id)?;
        stream.last_arrival = stream.last_arrival.max(arrival);
        Ok(stream.last_arrival)
    }

    pub(super) fn shutdown_write(&mut self, id: Id) -> io::Result<()> {
        let stream = self.stream(id)?;
        if stream.phase != Phase::Connected {
            return Err(errno(libc::ENOTCONN));
        }
        if std::mem::replace(&mut stream.shut, true) {
            return Ok(());
        }
        let (peer, faults, both) = (stream.peer, stream.faults.clone(), stream.ended);
        let at = self.arrival(id, &faults)?;
        if let Some(peer) = peer {
            self.schedule(at, Event::Fin { at: peer });
        }
        if both {
            self.report(id, ready::HANGUP);
        }
        Ok(())
    }

    /// A stream's handle has been closed.
    pub(super) fn closed(&mut self, mut stream: Stream) {
        let Some(peer) = stream.peer else { return };
        let faults = stream.faults.clone();
        let arrival = stream.last_arrival.max(self.now + self.delay(&faults));
        if stream.linger0 || !stream.received.is_empty() {
            // A reset overtakes nothing here, but drops at the peer what was not read.
            self.schedule(arrival, Event::Reset { at: peer });
        } else if !std::mem::replace(&mut stream.shut, true) {
            self.schedule(arrival, Event::Fin { at: peer });
        }
    }

    /// Closes a connection that nobody accepted.
    pub(super) fn abort(&mut self, id: Id) {
        if let Ok(stream) = self.stream(id) {
            stream.linger0 = true;
        }
        self.close(id);
    }

    fn break_connection(&mut self, id: Id, peer: Id) {
        let errors = ready::ERROR | ready::HANGUP;
        if let Ok(stream) = self.stream(id) {
            (stream.phase, stream.peer) = (Phase::Broken, None);
            stream.received.clear();
        }
        self.report(id, errors);
        let at = self.now;
        self.schedule(at, Event::Reset { at: peer });
    }

    pub(super) fn stream_event(&mut self, event: Event) {
        match event {
            Event::Syn { from } => self.connection_asked(from),
            Event::Accepted { at } => self.connection_made(at),
            Event::Failed { at, errno } => self.broken(at, errno),
            Event::Data { at, bytes } => self.data_arrives(at, &bytes),
            Event::Fin { at } => self.end_arrives(at),
            Event::Reset { at } => self.broken(at, libc::ECONNRESET),
            Event::Room { at, bytes } => self.room_made(at, bytes),
            Event::Ready { .. } | Event::Datagram { .. } => {}
        }
    }

    fn connection_asked(&mut self, from: Id) {
        let Ok(stream) = self.stream(from) else { return };
        let (local, remote) = (stream.local.clone(), stream.remote.clone());
        let faults = self.faults_of(&remote);
        if self.chance(faults.black_hole) {
            return;
        }
        let delay = self.delay(&faults);
        let refused = self.chance(faults.refuse);
        let fits = |o: &Object| matches!(o, Object::Listener(l) if matches(&l.addr, &remote));
        let candidates: Vec<Id> = self.objects().filter(|(_, o)| fits(o)).map(|(id, _)| id).collect();
        if refused || candidates.is_empty() {
            return self.schedule_in(delay, Event::Failed { at: from, errno: libc::ECONNREFUSED });
        }
        let listener = candidates[self.up_to(candidates.len()) - 1];
        let Ok(full) = self.listening(listener).map(|l| l.queue.len() >= l.backlog.max(1)) else { return };
        let server = Stream::new(Phase::Connected, remote, local, faults);
        // A full queue drops the request, and the client repeats it after a second.
        let server = if full { None } else { self.add(Object::Stream(server)).ok() };
        let Some(server) = server else {
            let again = std::time::Duration::from_secs(1);
            return self.schedule_in(again, Event::Syn { from });
        };
        self.introduce(listener, from, server);
        self.schedule_in(delay, Event::Accepted { at: from });
    }

    /// Both ends know each other, and the server's waits to be accepted.
    fn introduce(&mut self, listener: Id, client: Id, server: Id) {
        if let Ok(stream) = self.stream(server) {
            stream.peer = Some(client);
        }
        if let Ok(stream) = self.stream(client) {
            stream.peer = Some(server);
        }
        if let Ok(listener) = self.listening(listener) {
            listener.queue.push_back(server);
            listener.changed();
        }
    }

    fn connection_made(&mut self, at: Id) {
        let Ok(stream) = self.stream(at) else { return };
        if stream.phase == Phase::Connecting {
            stream.phase = Phase::Connected;
            let state = stream.state();
            self.report(at, state);
        }
    }

    fn broken(&mut self, at: Id, errno: i32) {
        let Ok(stream) = self.stream(at) else { return };
        if stream.phase != Phase::Broken {
            (stream.phase, stream.peer, stream.error) = (Phase::Broken, None, Some(errno));
            stream.received.clear();
            self.report(at, ready::ERROR | ready::HANGUP);
        }
    }

    fn data_arrives(&mut self, at: Id, bytes: &[u8]) {
        if let Ok(stream) = self.stream(at)
            && stream.phase != Phase::Broken
        {
            stream.received.extend(bytes);
            return self.report(at, ready::READ);
        }
        // Nobody is there any more: whoever sent it learns that.
        let sender = self.objects().find_map(|(id, o)| match o {
            Object::Stream(s) if s.peer == Some(at) => Some(id),
            _ => None,
        });
        if let Some(sender) = sender {
            let now = self.now;
            self.schedule(now, Event::Reset { at: sender });
        }
    }

    fn end_arrives(&mut self, at: Id) {
        let Ok(stream) = self.stream(at) else { return };
        stream.ended = true;
        let hangup = if stream.shut { ready::HANGUP } else { 0 };
        self.report(at, ready::READ | ready::READ_CLOSED | hangup);
    }

    fn room_made(&mut self, at: Id, bytes: usize) {
        let Ok(stream) = self.stream(at) else { return };
        stream.in_flight = stream.in_flight.saturating_sub(bytes);
        if std::mem::replace(&mut stream.starved, false) {
            self.report(at, ready::WRITE);
        }
    }
}
