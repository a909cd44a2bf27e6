//! Listening sockets.
//!
//! A [`Listener`] is bound once, belongs to nobody and may be cloned to every worker; an [`Acceptor`] is one
//! worker's registration of it. Several acceptors of one listener share its queue: the kernel wakes one of
//! them for each connection, and the level-triggered registration brings a connection up again that this one
//! did not take.
//!
//! A TCP socket can give up its port for a while ([`Acceptor::suspend`]). The kernel does that to the socket,
//! so it happens to all workers at once: the last acceptor that lets go gives the port up, and the first one
//! that comes back listens again.
//!
//! An acceptor asks for a second connection only if lately there was one: under a trickle each connection
//! costs one `accept`, not two; in a burst one report brings many.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use base::netns::Namespace;

use crate::addr::Addr;
use crate::driver::{self, Handle, Interest};
use crate::listen::{self, ListenOptions};
use crate::socket::Socket;
use crate::source::{Side, ready as bit};
use crate::worker;

/// A bound, listening socket. Clones are the same socket; it is closed with the last of them and of its
/// acceptors.
#[derive(Clone, Debug)]
pub struct Listener {
    handle: Arc<Handle>,
    accept: Accept,
    /// It was opened by another process, which may go on using it.
    inherited: bool,
    share: Arc<Mutex<Share>>,
}

/// What the acceptors of a listener have agreed on.
#[derive(Debug, Default)]
struct Share {
    /// Acceptors there are.
    attached: usize,
    /// Those of them that are suspended.
    away: usize,
    /// The port is given up.
    given_up: bool,
    /// The port was given up once: other sockets may have begun to listen before this one did again.
    returned: bool,
    /// New connections were sent to the other sockets of the port, see [`Listener::yield_to_others`].
    yielded: Option<bool>,
    /// Another process was given this socket and may accept from it, see [`WeakListener::hand_over`].
    handed: bool,
}

/// A socket that has its address and does not listen yet.
#[derive(Debug)]
pub struct Unheard {
    listener: Listener,
    rest: listen::Rest,
}

impl Unheard {
    /// It listens from now on; a Unix path replaces what was there.
    ///
    /// # Errors
    /// Somebody else listens there by now, or the path can't be replaced.
    pub fn begin(self) -> io::Result<()> {
        self.rest.begin(self.listener.handle.os()?)
    }
}

/// A listener that may be gone: it keeps no socket open. For whoever hands sockets to another process.
#[derive(Clone, Debug)]
pub struct WeakListener {
    handle: Weak<Handle>,
    share: Weak<Mutex<Share>>,
}

impl WeakListener {
    /// A copy of the descriptor for another process, if the socket is still open. From now on this process
    /// does nothing to the socket itself: no port is given up, no connection refused, since the other
    /// process may serve them.
    pub fn hand_over(&self) -> Option<OwnedFd> {
        let (handle, share) = (self.handle.upgrade()?, self.share.upgrade()?);
        let copy = handle.os().ok()?.try_clone_to_owned().ok()?;
        share.lock().unwrap_or_else(PoisonError::into_inner).handed = true;
        Some(copy)
    }
}

impl Share {
    /// Gives the port up if nobody accepts from it any more.
    fn settle(&mut self, listener: &Listener) -> io::Result<()> {
        if self.given_up || self.attached == 0 || self.away < self.attached {
            return Ok(());
        }
        if let Some(fd) = listener.internet().filter(|_| !self.handed) {
            listen::give_up(fd)?;
            self.given_up = true;
        }
        Ok(())
    }
}

/// How a connection is taken: from the kernel's queue, or as a descriptor in a message.
type Accept = fn(&Handle) -> io::Result<(Handle, Option<Addr>)>;

impl Listener {
    /// Binds and listens. A Unix path appears under its final name only once it listens, replacing what was
    /// there.
    ///
    /// # Errors
    /// EADDRINUSE, EADDRNOTAVAIL, EACCES, and what else the kernel says to an option.
    pub fn bind(addr: &Addr, options: &ListenOptions) -> io::Result<Listener> {
        Ok(Listener::on(driver::listen(addr, options)?).in_namespace(options.namespace))
    }

    /// Binds only: nobody can connect before [`Unheard::begin`], and if that never comes nothing has changed
    /// for those who listen on the same address. Not in a simulated world.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    pub fn bound(addr: &Addr, options: &ListenOptions) -> io::Result<(Listener, Unheard)> {
        let (fd, rest) = listen::bound(addr, options)?;
        let listener = Listener::on(fd.into()).in_namespace(options.namespace);
        Ok((listener.clone(), Unheard { listener, rest }))
    }

    /// Takes over a socket, and has it listen if it does not yet.
    ///
    /// # Errors
    /// If the descriptor is no stream socket.
    pub fn from_fd(fd: OwnedFd, backlog: u32) -> io::Result<Listener> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        rustix::net::listen(&fd, backlog.min(i32::MAX as u32) as i32)?;
        Ok(Listener { inherited: true, ..Listener::on(fd.into()) })
    }

    /// Takes over a listening socket that was opened for this process by one that does nothing else with it.
    ///
    /// # Errors
    /// If the descriptor can't be made non-blocking.
    pub fn received(fd: OwnedFd) -> io::Result<Listener> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        Ok(Listener::on(fd.into()))
    }

    /// As [`Listener::from_fd`], and sets what `options` say, but for what only a socket to be bound can
    /// take.
    ///
    /// # Errors
    /// As [`Listener::from_fd`], and what the kernel says to an option.
    pub fn adopt(fd: OwnedFd, options: &ListenOptions) -> io::Result<Listener> {
        let addr = crate::sockopt::addr_of(Some(rustix::net::getsockname(&fd)?))?;
        if let Addr::Inet(inet) = addr {
            listen::tune(fd.as_fd(), inet.is_ipv6(), options)?;
        }
        Ok(Listener::from_fd(fd, options.backlog)?.in_namespace(options.namespace))
    }

    /// Takes connections that come as descriptors over a Unix socket (`sockpair@`), as
    /// [`Socket::connect_sockpair`] sends them.
    ///
    /// # Errors
    /// If the descriptor can't be made non-blocking.
    pub fn from_sockpair(fd: OwnedFd) -> io::Result<Listener> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Listener { accept: driver::accept_passed, inherited: true, ..Listener::on(fd.into()) })
    }

    /// The same, which listens in this namespace. Which sockets share a port with one elsewhere is not known
    /// here, so it never yields to them.
    pub fn in_namespace(self, namespace: Option<Namespace>) -> Listener {
        if namespace.is_some() {
            self.share().yielded = Some(false);
        }
        self
    }

    /// Names the congestion control algorithm of the connections that it accepts.
    ///
    /// # Errors
    /// If the system has none of that name, or keeps it for others.
    pub fn set_congestion(&self, algorithm: &str) -> io::Result<()> {
        let fd = self.handle.os()?;
        socket2::SockRef::from(&fd).set_tcp_congestion(algorithm.as_bytes())
    }

    fn on(handle: Handle) -> Listener {
        Listener { handle: Arc::new(handle), accept: driver::accept, inherited: false, share: Arc::default() }
    }

    fn share(&self) -> MutexGuard<'_, Share> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same listener without keeping it open.
    pub fn downgrade(&self) -> WeakListener {
        WeakListener { handle: Arc::downgrade(&self.handle), share: Arc::downgrade(&self.share) }
    }

    /// Registers the listener with this worker. If all its acceptors are suspended the new one is, too.
    ///
    /// # Errors
    /// If the kernel refuses to register it.
    pub fn attach(&self) -> io::Result<Acceptor> {
        let source = worker::with(|w| w.sources.borrow_mut().insert(self.handle.number(), 0).0);
        let acceptor = Acceptor {
            listener: self.clone(),
            source,
            paused: Cell::new(true),
            suspended: Cell::new(false),
            eager: Cell::new(false),
            last_turn: Cell::new(0),
            here: PhantomData,
        };
        let mut share = self.share();
        share.attached += 1;
        if share.given_up {
            // It comes late: the others suspended the listener already.
            share.away += 1;
            acceptor.suspended.set(true);
            drop(share);
        } else {
            drop(share);
            acceptor.resume()?;
        }
        Ok(acceptor)
    }

    /// The address it is bound to (with the port that the kernel chose).
    ///
    /// # Errors
    /// If the kernel can't say.
    pub fn local_addr(&self) -> io::Result<Addr> {
        driver::local_addr(&self.handle)
    }

    /// The descriptor, to hand it to another process.
    ///
    /// # Errors
    /// In a simulated world, `Unsupported`.
    pub fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        self.handle.os()
    }

    /// Has the kernel hand new connections of this port to other sockets that listen on it (SO_REUSEPORT), in
    /// other processes: to the one that began to listen last. What waits here already still has to be
    /// accepted. Closing the socket without that loses connections between the look into its queue and the
    /// close. Whether there is such a socket; if not, nothing has changed. All workers get the same answer,
    /// and the kernel is asked once.
    pub fn yield_to_others(&self) -> bool {
        let mut share = self.share();
        if let Some(known) = share.yielded {
            return known;
        }
        let possible = !share.given_up && !share.returned && !share.handed;
        let yielded = match self.local_addr() {
            Ok(Addr::Inet(addr)) if possible => {
                self.internet().is_some_and(|fd| listen::yield_to_newest(fd, addr))
            }
            _ => false,
        };
        share.yielded = Some(yielded);
        yielded
    }

    /// No connection begins here any more: who asks asks again, and then another socket of the port. For the
    /// last moments before a close, in which [`Listener::yield_to_others`] may have sent some here after all:
    /// sockets of a port change places when one of them closes.
    ///
    /// # Errors
    /// The kernel refuses; connections may begin as before.
    pub fn refuse_new(&self) -> io::Result<()> {
        self.internet().map_or(Ok(()), crate::sockopt::drop_syns)
    }

    /// The descriptor of a TCP socket that this process may do with as it likes.
    fn internet(&self) -> Option<BorrowedFd<'_>> {
        let mine = !self.inherited && matches!(self.local_addr(), Ok(Addr::Inet(_)));
        self.handle.kernel().filter(|_| mine)
    }
}

/// A worker's share in a listener.
#[derive(Debug)]
pub struct Acceptor {
    listener: Listener,
    source: u32,
    paused: Cell<bool>,
    suspended: Cell<bool>,
    /// Whether one report lately stood for several connections.
    eager: Cell<bool>,
    last_turn: Cell<u64>,
    here: PhantomData<*const ()>,
}

impl Acceptor {
    /// Ready when there may be a connection. A report brings this task back here until
    /// [`Acceptor::try_accept`] found none, so keep polling, or pause.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        if worker::with(|w| w.sources.borrow().ready(self.source)) & bit::READ == 0 {
            return self.wait(cx);
        }
        Poll::Ready(())
    }

    /// Takes a connection, if there is one; the peer's address is `None` where it has none.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOBUFS, ENOMEM: [`pause`](Acceptor::pause) and try again later.
    pub fn try_accept(&self) -> io::Result<Option<(Socket, Option<Addr>)>> {
        match (self.listener.accept)(&self.listener.handle) {
            Ok((handle, peer)) => {
                self.accepted();
                Socket::established(handle).map(|s| Some((s, peer)))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.eager.set(false);
                self.not_ready();
                Ok(None)
            }
            Err(e) => {
                self.not_ready();
                Err(e)
            }
        }
    }

    /// Takes a connection, see [`Acceptor::poll_ready`] and [`Acceptor::try_accept`].
    ///
    /// # Errors
    /// As [`Acceptor::try_accept`].
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, Option<Addr>)>> {
        loop {
            ready!(self.poll_ready(cx));
            if let Some(taken) = self.try_accept().transpose() {
                return Poll::Ready(taken);
            }
        }
    }

    /// Decides whether to ask at once for another connection.
    fn accepted(&self) {
        let turn = worker::with(|w| w.turns());
        if turn <= self.last_turn.get() + 1 {
            self.eager.set(true);
        }
        self.last_turn.set(turn);
        if !self.eager.get() {
            self.not_ready();
        }
    }

    fn not_ready(&self) {
        worker::with(|w| w.sources.borrow_mut().clear(self.source, bit::READ));
    }

    fn wait<T>(&self, cx: &Context<'_>) -> Poll<T> {
        let task = worker::task_of(cx);
        worker::with(|w| w.sources.borrow_mut().wait(self.source, Side::Reader, task));
        Poll::Pending
    }

    /// Takes a connection. See [`Acceptor::poll_accept`].
    ///
    /// # Errors
    /// As [`Acceptor::poll_accept`].
    pub async fn accept(&self) -> io::Result<(Socket, Option<Addr>)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// Leaves connections in the kernel's queue, for others that share the listener or for later.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn pause(&self) -> io::Result<()> {
        if !self.paused.replace(true) {
            worker::with(|w| {
                let token = w.sources.borrow().token(self.source);
                w.driver.deregister(&self.listener.handle, token)
            })?;
            self.not_ready();
        }
        Ok(())
    }

    /// Takes connections again.
    ///
    /// # Errors
    /// If the kernel refuses to register the listener.
    pub fn resume(&self) -> io::Result<()> {
        if self.paused.get() {
            worker::with(|w| {
                let token = w.sources.borrow().token(self.source);
                w.driver.register(&self.listener.handle, token, Interest::Listener)
            })?;
            self.paused.set(false);
        }
        Ok(())
    }

    /// Gives up the port for a while, once all acceptors have done so: who connects to it is refused, or
    /// reaches another process that listens there. Connections that wait to be accepted then are reset. Where
    /// only the acceptor can rest, on a Unix socket, an inherited one and in a simulated world, connections
    /// wait.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn suspend(&self) -> io::Result<()> {
        self.pause()?;
        if self.suspended.replace(true) {
            return Ok(());
        }
        let mut share = self.listener.share();
        share.away += 1;
        share.settle(&self.listener)
    }

    /// Accepts again after [`Acceptor::suspend`]: the first acceptor that comes back listens.
    ///
    /// # Errors
    /// EADDRINUSE if somebody else has the port now; the acceptor stays suspended.
    pub fn restore(&self, backlog: u32) -> io::Result<()> {
        if self.suspended.get() {
            let mut share = self.listener.share();
            if share.given_up
                && let Some(fd) = self.listener.internet()
            {
                rustix::net::listen(fd, backlog.min(i32::MAX as u32) as i32)?;
                (share.given_up, share.returned) = (false, true);
            }
            share.away -= 1;
            self.suspended.set(false);
        }
        self.resume()
    }

    /// Whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        self.suspended.get()
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.paused.get()
    }

    /// The listener behind it.
    pub fn listener(&self) -> Listener {
        self.listener.clone()
    }

    /// The number of the descriptor.
    pub fn number(&self) -> RawFd {
        self.listener.handle.number()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // Other workers may hold the descriptor open, so closing it would not end the registration.
        let _ = worker::try_with(|w| {
            let token = w.sources.borrow().token(self.source);
            w.sources.borrow_mut().remove(self.source);
            (!self.paused.get()).then(|| w.driver.deregister(&self.listener.handle, token))
        });
        let mut share = self.listener.share();
        share.attached -= 1;
        share.away -= usize::from(self.suspended.get());
        // Perhaps it was the one that the others waited for. The kernel's no can't be told to anybody here.
        let _ = share.settle(&self.listener);
    }
}
