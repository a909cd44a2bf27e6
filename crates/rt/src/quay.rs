//! Where idle sockets of one worker wait in sight of the others.
//!
//! A connection at rest belongs to the worker that used it last, and mostly serves that worker again. When
//! another one needs it, asking would cost two messages and a wait on each side; so the owner *moors* it at a
//! berth of a quay that all can see, and whoever exchanges the berth's state first has the connection: no
//! lock, no message, nobody waits.
//!
//! The state of a berth is one word: what it holds, and a number that changes with each mooring, so that a
//! claim based on what was read before fails when anything has happened since. Only the owner moors and
//! clears berths; others only ever turn MOORED into TAKEN. From then on the descriptor is theirs: they end
//! its registration with the owner's epoll instance and register it with their own. The owner learns of it
//! when it next looks at the berth and forgets the number without closing it. Until then it must not touch
//! the descriptor, which could be anything by now: hence [`Moored`] lets the socket be used only while the
//! berth is held.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU64};

use crate::driver::Handle;
use crate::socket::{Detached, Socket};
use crate::worker;

/// Sockets that can be moored at one quay.
const BERTHS: usize = 8;

/// What a berth holds: the low bits of its state.
mod what {
    pub(super) const MASK: u64 = 3;
    /// Nothing.
    pub(super) const VACANT: u64 = 0;
    /// A socket that anybody may claim.
    pub(super) const MOORED: u64 = 1;
    /// A socket that its owner is looking at.
    pub(super) const HELD: u64 = 2;
    /// Another worker has claimed the socket; the owner has not noticed yet.
    pub(super) const TAKEN: u64 = 3;
    /// Added at each mooring.
    pub(super) const STEP: u64 = 4;
}

/// What others must know of a socket before they claim it. The meaning is the user's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// What has to be equal.
    pub identity: u64,
    /// What may be judged.
    pub note: u64,
}

#[derive(Default)]
struct Berth {
    state: AtomicU64,
    number: AtomicI32,
    identity: AtomicU64,
    note: AtomicU64,
}

/// See the module.
pub struct Quay {
    /// The owner's epoll instance.
    poll: Arc<OwnedFd>,
    berths: [Berth; BERTHS],
}

/// What came of looking for a socket to claim.
pub enum Claimed {
    /// This socket, and its note.
    Socket(Socket, u64),
    /// There is none.
    Nothing,
    /// None that fits, but no berth was free either: the owner may have more that it could not show.
    Full,
}

impl Quay {
    /// A quay of this worker; `None` in a simulated world.
    pub fn here() -> Option<Arc<Quay>> {
        let poll = worker::with(|w| w.driver.epoll())?;
        Some(Arc::new(Quay { poll, berths: Default::default() }))
    }

    /// Lets a socket of this worker, which must be the quay's, wait in sight of the others.
    ///
    /// # Errors
    /// The socket, if no berth is free or it is no descriptor of the kernel.
    pub fn moor(self: &Arc<Quay>, socket: Socket, label: Label) -> Result<Moored, Socket> {
        let vacant = |b: &Berth| b.state.load(Acquire) & what::MASK == what::VACANT;
        let Some(at) = self.berths.iter().position(vacant) else { return Err(socket) };
        if socket.handle().kernel().is_none() {
            return Err(socket);
        }
        let berth = &self.berths[at];
        berth.number.store(socket.number(), Relaxed);
        berth.identity.store(label.identity, Relaxed);
        berth.note.store(label.note, Relaxed);
        // Vacant berths are changed by their owner alone.
        let state = (berth.state.load(Relaxed) & !what::MASK).wrapping_add(what::STEP) | what::MOORED;
        berth.state.store(state, Release);
        Ok(Moored { socket: Some(socket), quay: self.clone(), at, state })
    }

    /// Whether no berth is free.
    pub fn is_full(&self) -> bool {
        self.berths.iter().all(|b| b.state.load(Relaxed) & what::MASK != what::VACANT)
    }

    /// Takes a socket with this identity whose note is accepted, and makes it one of the calling worker's.
    /// Sockets whose peer has closed or said something are closed on the way, and their notes told to
    /// `closed`: their owner finds them gone like the one that was found.
    pub fn claim(&self, identity: u64, accept: impl Fn(u64) -> bool, mut closed: impl FnMut(u64)) -> Claimed {
        let mut full = true;
        for berth in &self.berths {
            let state = berth.state.load(Acquire);
            full &= state & what::MASK != what::VACANT;
            if state & what::MASK != what::MOORED || berth.identity.load(Relaxed) != identity {
                continue;
            }
            let (note, number) = (berth.note.load(Relaxed), berth.number.load(Relaxed));
            let taken = state & !what::MASK | what::TAKEN;
            if !accept(note) || berth.state.compare_exchange(state, taken, AcqRel, Relaxed).is_err() {
                continue;
            }
            match self.bring_in(number) {
                Some(socket) => return Claimed::Socket(socket, note),
                None => closed(note),
            }
        }
        if full { Claimed::Full } else { Claimed::Nothing }
    }

    /// The descriptor of a berth that this thread has just turned to TAKEN becomes a socket of this worker;
    /// `None` if it is not worth it, and then closed.
    fn bring_in(&self, number: RawFd) -> Option<Socket> {
        // SAFETY: the exchange of the berth's state made this thread the only one that may use the
        // descriptor: the owner gives it up when it finds the berth TAKEN (`Moored::leave`), and does not
        // touch it before.
        let handle = unsafe { Handle::from_number(number) };
        rustix::event::epoll::delete(&*self.poll, handle.kernel()?).ok()?;
        let socket = Detached::of(handle);
        if socket.is_disturbed() { None } else { socket.attach().ok() }
    }
}

/// A socket at a berth, as its owner has it. Dropping it closes the connection, if it is still there.
pub struct Moored {
    /// `None` only while it leaves.
    socket: Option<Socket>,
    quay: Arc<Quay>,
    at: usize,
    state: u64,
}

impl Moored {
    fn berth(&self) -> &Berth {
        &self.quay.berths[self.at]
    }

    fn word(&self, what: u64) -> u64 {
        self.state & !what::MASK | what
    }

    /// Turns the berth from MOORED to another state; false if the socket is gone.
    fn turn(&self, to: u64) -> bool {
        self.berth().state.compare_exchange(self.state, self.word(to), AcqRel, Acquire).is_ok()
    }

    /// Whether another worker has claimed it.
    pub fn is_gone(&self) -> bool {
        self.berth().state.load(Relaxed) != self.state
    }

    /// Whether the peer has closed its side or the connection broke, as of the last report. Means nothing
    /// once the socket is gone.
    pub fn is_hung_up(&self) -> bool {
        self.socket.as_ref().is_none_or(Socket::is_hung_up)
    }

    /// Looks at the socket while nobody can claim it; `None` if it is gone.
    pub fn look<R>(&self, f: impl FnOnce(&Socket) -> R) -> Option<R> {
        let socket = self.socket.as_ref()?;
        if !self.turn(what::HELD) {
            return None;
        }
        let r = f(socket);
        self.berth().state.store(self.state, Release);
        Some(r)
    }

    /// Takes the socket back; `None` if it is gone.
    pub fn unmoor(mut self) -> Option<Socket> {
        self.leave()
    }

    fn leave(&mut self) -> Option<Socket> {
        let socket = self.socket.take()?;
        if self.turn(what::VACANT) {
            return Some(socket);
        }
        self.berth().state.store(self.word(what::VACANT), Release);
        socket.forget();
        None
    }
}

impl Drop for Moored {
    fn drop(&mut self) {
        drop(self.leave());
    }
}
