//! A connection with a peer after the handshake: one task, which hears and tells until either side leaves.
//!
//! What came is dealt with first, then what is to be said is put together, as much as one send takes; the
//! rest waits until that is out. So a peer that does not listen costs a buffer, whatever happens to tables.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use engine::applets::{AppletDoor, AppletEnd, AppletKind, Entry};
use engine::worker::enter_applet;
use link::transport::Transport;
use model::trace::{self, Point, Whom, level};
use rt::{Mono, Notify, Timer};
use wire::peers::{Definition, Fault, Frame, Reader, class, control, error, frame, table, write};

use crate::dict::{Seen, Sent};
use crate::hub::{Hub, Slot};
use crate::learn::{Known, Lesson};
use crate::teach::{FULL, Group, Teaching, Told};

/// Whoever has said nothing for so long says that it is alive.
const BEAT: Duration = Duration::from_secs(3);
/// Whoever was not heard of for so long is gone.
const SILENCE: Duration = Duration::from_secs(5);
/// A lesson in which nothing was told for so long has come to a halt.
const STALL: Duration = Duration::from_secs(5);
/// So long an acknowledgement waits for others: nobody waits for it, it only says where to go on when the
/// connection is lost.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes that are received at a time.
const CHUNK: usize = 64 * 1024;
/// Tables that a peer may define.
const MOST_TABLES: usize = 4096;
/// With so many bytes waiting to be sent nothing more is received: what came has to be answered, so somebody
/// who talks and does not listen would have them grow for ever.
const GLUT: usize = 2 * FULL;

/// What happened first.
enum Event {
    Sent(usize),
    Received,
    Woken,
    Late,
    Closed,
}

struct Session<'h> {
    hub: &'h Rc<Hub>,
    slot: &'h Slot,
    generation: u64,
    wake: Rc<Notify>,
    socket: Transport,
    /// What came, and how much of it there is.
    input: Vec<u8>,
    filled: usize,
    /// The peer has said why it leaves.
    left: bool,
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    gone: usize,
    heard: Mono,
    spoke: Mono,
    /// When the lesson began, or the peer last told of an entry.
    taught: Mono,
    /// It was asked a second time, for it fell silent in the first lesson.
    asked_again: bool,
    /// When updates that came are to be acknowledged, if any are.
    owes: Option<Mono>,
    /// Tables as the peer defined them.
    known: Vec<Known>,
    /// The one that updates are about.
    current: Option<usize>,
    /// The one that was named to the peer last.
    named: Option<usize>,
    sent: Sent,
    seen: Seen,
    teaching: Teaching,
}

/// Why a session ends.
enum End {
    /// The peer has left, or another session has taken its place.
    Over,
    /// The peer has said something wrong, and is told so.
    Wrong(Fault),
}

/// Speaks with a peer until either side leaves. `input` is what came with the handshake.
pub(crate) async fn run(hub: &Rc<Hub>, at: usize, socket: Transport, mut input: Vec<u8>) {
    let filled = input.len();
    input.resize(filled + rt::bufsize() + CHUNK, 0);
    let slot = &hub.slots[at];
    slot.dismiss();
    // What was asked over the connection before is answered by nobody any more.
    hub.lost(slot);
    let generation = slot.generation.get();
    let wake = Rc::new(Notify::new());
    *slot.wake.borrow_mut() = Some(wake.clone());
    slot.established.set(true);
    slot.progress.borrow_mut().iter_mut().for_each(|p| p.rewind());
    let view = &slot.view;
    view.connections.fetch_add(1, Relaxed);
    view.connected.store(true, Relaxed);
    view.last_handshake.store(rt::now().as_millis(), Relaxed);
    *view.last_status.lock() = "ESTA";
    let mut session = Session {
        hub,
        slot,
        generation,
        wake,
        socket,
        input,
        filled,
        left: false,
        out: Vec::new(),
        gone: 0,
        heard: rt::now(),
        spoke: rt::now(),
        taught: rt::now(),
        asked_again: false,
        owes: None,
        known: Vec::new(),
        current: None,
        named: None,
        sent: Sent::default(),
        seen: Seen::default(),
        teaching: Teaching::No,
    };
    let _entry = enter(hub, at, session.socket.raw());
    if hub.leaving.get() {
        // The process that takes this one's place is told everything unasked.
        session.teaching = Teaching::begin(&hub.section().tables);
    } else if slot.is_local() {
        slot.learning.set(hub.awaits_local());
    } else {
        hub.ask_somebody();
    }
    traced(slot, (trace::peers::NEW, level::USER), "session begins");
    if let End::Wrong(fault) = session.converse().await {
        traced(
            slot,
            (trace::peers::ERR | trace::peers::PROTOCOL, level::ERROR),
            "the peer breaks the protocol",
        );
        view.errors.fetch_add(1, Relaxed);
        session.complain(fault);
    }
    drop(session);
    traced(slot, (trace::peers::END, level::USER), "session is over");
    if slot.generation.get() == generation {
        slot.established.set(false);
        view.connected.store(false, Relaxed);
        view.teaching.store(false, Relaxed);
        slot.wake.borrow_mut().take();
        hub.lost(slot);
        slot.free.notify();
    }
}

/// Enters the connection where `show sess` looks.
fn enter(hub: &Rc<Hub>, at: usize, socket: &rt::Socket) -> Option<Entry> {
    let section = hub.section();
    let ends = hub.clone();
    let door = AppletDoor {
        kind: AppletKind::Peer,
        section: (&*section.name).into(),
        id: 0,
        mode: "peers",
        listener: Some(section.bind.state.clone()),
        end: AppletEnd::Ask(Rc::new(move || ends.part(at))),
    };
    let peer = |addr: std::io::Result<rt::Addr>| link::address::peer(addr.ok().as_ref());
    enter_applet(door, peer(socket.peer_addr()), peer(socket.local_addr()))
}

/// Tells of a session, if anybody looks.
#[track_caller]
fn traced(slot: &Slot, (events, level): (u32, u8), text: &str) {
    if trace::PEERS.on() {
        let own = Some(std::ptr::from_ref(&*slot.view).addr() as u64);
        let point = Point { events, level, text, whom: Whom { own, ..Whom::default() } };
        trace::PEERS.tell(point, &mut |_, out| out.push_str(&format!(" peer={}", slot.view.name)));
    }
}

impl Session<'_> {
    async fn converse(&mut self) -> End {
        let mut timer = Timer::new();
        loop {
            if let Err(fault) = self.hear() {
                return End::Wrong(fault);
            }
            if self.is_over() {
                return End::Over;
            }
            self.beat();
            self.say();
            self.acknowledge();
            self.show_texts();
            let next = if self.out.is_empty() { self.spoke + BEAT } else { self.heard + SILENCE };
            let next = self.owes.map_or(next, |due| next.min(due));
            timer.set(Some(next.min(self.heard + SILENCE)));
            match poll_fn(|cx| self.poll(cx, &mut timer)).await {
                Event::Sent(bytes) => {
                    self.gone += bytes;
                    self.spoke = rt::now();
                    if self.gone >= self.out.len() {
                        self.out.clear();
                        self.gone = 0;
                    }
                    rt::yield_now().await;
                }
                Event::Received => {
                    self.heard = rt::now();
                    rt::yield_now().await;
                }
                Event::Woken => {}
                Event::Late if rt::now() >= self.heard + SILENCE => {
                    self.slot.view.silences.fetch_add(1, Relaxed);
                    return End::Over;
                }
                Event::Late => {}
                Event::Closed => return End::Over,
            }
        }
    }

    /// Says that this process is alive, if it has said nothing for long: in a long lesson, too, where there
    /// is always something to hear. Who hears nothing from its pupil gives it up.
    fn beat(&mut self) {
        let now = rt::now();
        if self.out.is_empty() && now >= self.spoke + BEAT {
            write::short(&mut self.out, class::CONTROL, control::HEARTBEAT);
            self.slot.view.beats_sent.fetch_add(1, Relaxed);
        }
        if self.slot.learning.get() && now >= self.taught + STALL {
            self.go_on(now);
        }
    }

    /// The peer was asked and tells nothing, though the connection lives: it is asked once more, then others
    /// are.
    fn go_on(&mut self, now: Mono) {
        self.taught = now;
        if self.asked_again || self.slot.is_local() {
            return self.hub.has_told(self.slot, false);
        }
        self.asked_again = true;
        self.slot.ask.set(true);
    }

    /// Another session has taken its place, the process has left its peers, or all is taught.
    fn is_over(&self) -> bool {
        let taught = self.hub.leaving.get() && matches!(self.teaching, Teaching::No);
        self.slot.generation.get() != self.generation || self.left || taught
    }

    fn poll(&mut self, cx: &mut Context<'_>, timer: &mut Timer) -> Poll<Event> {
        if let Some(rest) = self.out.get(self.gone..).filter(|rest| !rest.is_empty())
            && let Poll::Ready(sent) = self.socket.poll_send(cx, rest, false)
        {
            traced(self.slot, (trace::peers::TX, level::PROTO), "messages go out");
            return Poll::Ready(sent.map_or(Event::Closed, Event::Sent));
        }
        if self.out.len() < GLUT {
            let room = self.input.get_mut(self.filled..).unwrap_or_default();
            match self.socket.poll_recv(cx, room) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Event::Closed),
                Poll::Ready(Ok(bytes)) => {
                    self.filled += bytes;
                    return Poll::Ready(Event::Received);
                }
                Poll::Pending => {}
            }
        }
        if self.wake.poll_notified(cx).is_ready() {
            return Poll::Ready(Event::Woken);
        }
        timer.poll_expired(cx).map(|()| Event::Late)
    }

    /// Deals with what came.
    fn hear(&mut self) -> Result<(), Fault> {
        if self.filled > 0 {
            traced(self.slot, (trace::peers::RX, level::PROTO), "messages have come");
        }
        let input = std::mem::take(&mut self.input);
        let mut rest = input.get(..self.filled).unwrap_or_default();
        while let Some((message, bytes)) = frame(rest, rt::bufsize())? {
            self.message(message)?;
            rest = rest.get(bytes..).unwrap_or_default();
        }
        // A message that is not whole yet goes to the front: there is room for the longest, and more.
        let left = rest.len();
        let used = self.filled.saturating_sub(left)..self.filled;
        self.input = input;
        self.input.copy_within(used, 0);
        self.filled = left;
        Ok(())
    }

    fn message(&mut self, message: Frame<'_>) -> Result<(), Fault> {
        match message.class {
            class::CONTROL => self.control(message.kind),
            class::ERROR => self.left = true,
            class::TABLE => return self.table(message.kind, message.body),
            // Classes of versions to come.
            _ => {}
        }
        Ok(())
    }

    fn control(&mut self, kind: u8) {
        match kind {
            control::RESYNC => {
                self.teaching = Teaching::begin(&self.hub.section().tables);
                self.slot.view.teaching.store(true, Relaxed);
            }
            control::FINISHED | control::PARTIAL => {
                self.hub.has_told(self.slot, kind == control::FINISHED);
                write::short(&mut self.out, class::CONTROL, control::CONFIRMED);
            }
            control::CONFIRMED => {
                if let Teaching::Told { since } = std::mem::take(&mut self.teaching) {
                    let mut all = self.slot.progress.borrow_mut();
                    all.iter_mut().zip(since).for_each(|(progress, since)| progress.told(since));
                }
                self.slot.view.teaching.store(false, Relaxed);
            }
            control::HEARTBEAT => {
                self.slot.view.beats_seen.fetch_add(1, Relaxed);
            }
            _ => {}
        }
    }

    fn table(&mut self, kind: u8, body: &[u8]) -> Result<(), Fault> {
        match kind {
            table::DEFINITION => {
                let defined = Definition::parse(body).ok_or(Fault::Protocol)?;
                self.define(defined);
            }
            table::SWITCH => {
                let id = Reader::new(body).number().ok_or(Fault::Protocol)?;
                self.current = self.known.iter().position(|k| k.id == id);
            }
            table::ACK => {
                let mut r = Reader::new(body);
                let (id, update) = (r.number(), r.long());
                let (Some(id), Some(update)) = (id, update) else { return Err(Fault::Protocol) };
                let at = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
                let mut all = self.slot.progress.borrow_mut();
                if let Some(progress) = at.and_then(|at| all.get_mut(at)) {
                    progress.landed(update);
                }
            }
            table::UPDATE | table::NEXT | table::TIMED | table::TIMED_NEXT => {
                // What is said of a table that was not defined is nobody's.
                let known = self.current.and_then(|at| self.known.get_mut(at));
                let Some(known) = known else { return Ok(()) };
                let tables = &self.hub.section().tables;
                self.taught = rt::now();
                let now = self.taught.as_millis();
                let mut fresh = self.hub.fresh.borrow_mut();
                let fresh = (!self.hub.is_up_to_date()).then_some(&mut *fresh);
                Lesson { tables, seen: &mut self.seen, fresh, now }.entry(known, kind, body)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn define(&mut self, defined: Definition<'_>) {
        let found = self.known.iter().position(|k| k.id == defined.id);
        let mut known = Known::new(defined, &self.hub.section().tables);
        if let Some(view) = known.at.and_then(|at| self.slot.view.tables.get(at)) {
            view.remote_id.store(known.id, Relaxed);
            view.remote_data.store(known.types, Relaxed);
        }
        match found {
            Some(at) => {
                if let Some(old) = self.known.get_mut(at) {
                    // It is told of again before each batch of updates.
                    (known.last, known.owed) = (old.last, old.owed);
                    *old = known;
                }
                self.current = Some(at);
            }
            None if self.known.len() < MOST_TABLES => {
                self.known.push(known);
                self.current = Some(self.known.len() - 1);
            }
            None => self.current = None,
        }
    }

    /// Tells how far updates have come, but not while everything is told: with what goes out anyway, or soon.
    fn acknowledge(&mut self) {
        if self.slot.learning.get() || !self.known.iter().any(|k| k.owed) {
            self.owes = None;
            return;
        }
        let due = *self.owes.get_or_insert_with(|| rt::now() + PAUSE);
        if self.out.is_empty() && rt::now() < due {
            return;
        }
        self.owes = None;
        for known in self.known.iter_mut().filter(|k| k.owed) {
            // The rest goes together with what comes until there is room.
            if self.out.len() >= FULL {
                return;
            }
            known.owed = false;
            if let Some(at) = known.at {
                write::ack(&mut self.out, known.id, known.last);
                if let Some(view) = self.slot.view.tables.get(at) {
                    view.seen.store(known.last, Relaxed);
                    view.acked.store(known.last, Relaxed);
                }
            }
        }
    }

    /// Puts together what is to be said, if there is room.
    fn say(&mut self) {
        if self.out.len() >= FULL {
            return;
        }
        if self.slot.ask.take() {
            self.taught = rt::now();
            write::short(&mut self.out, class::CONTROL, control::RESYNC);
        }
        let mut progress = self.slot.progress.borrow_mut();
        let mut told = Told {
            tables: &self.hub.section().tables,
            progress: &mut progress,
            sent: &mut self.sent,
            named: &mut self.named,
            out: &mut self.out,
            group: Group(self.hub.group(self.slot.at), self.hub.section().groups),
            now: rt::now().as_millis(),
        };
        match &mut self.teaching {
            Teaching::No => told.news(),
            teaching @ Teaching::On { .. } => {
                told.everything(teaching, self.hub.is_up_to_date());
            }
            // What changes meanwhile is told when the peer has confirmed.
            Teaching::Told { .. } => {}
        }
        for (view, progress) in self.slot.view.tables.iter().zip(progress.iter()) {
            view.pushed.store(progress.update, Relaxed);
        }
    }

    /// Shows the texts that were exchanged to whoever asks.
    fn show_texts(&mut self) {
        let view = &self.slot.view;
        if let Some(texts) = self.sent.fresh() {
            *view.sent_texts.lock() = texts.to_vec();
        }
        if let Some(texts) = self.seen.fresh() {
            *view.seen_texts.lock() = texts.to_vec();
        }
    }

    /// Says what was wrong with what the peer said; whether it hears that is its own affair.
    fn complain(&mut self, fault: Fault) {
        let kind = match fault {
            Fault::Protocol => error::PROTOCOL,
            Fault::TooLong => error::SIZE,
        };
        let _ = self.socket.raw().try_send(&[class::ERROR, kind], false);
    }
}
