//! Listening sockets.
//!
//! A [`Listener`] is bound once, belongs to nobody and may be cloned to every worker; an [`Acceptor`] is one worker's
//! registration of it. Several acceptors of one listener share its queue: the kernel wakes one of them for each
//! connection, and the level-triggered registration brings a connection up again that this one did not take.
//!
//! An acceptor asks for a second connection only if lately there was one: under a trickle each connection costs one
//! `accept`, not two; in a burst one report brings many.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::addr::Addr;
use crate::driver::{self, Handle, Interest};
use crate::listen::{self, ListenOptions};
use crate::socket::Socket;
use crate::source::{Side, ready as bit};
use crate::worker;

/// A bound, listening socket. Clones are the same socket; it is closed with the last of them and of its acceptors.
#[derive(Clone, Debug)]
pub struct Listener {
    handle: Arc<Handle>,
    accept: Accept,
}

/// How a connection is taken: from the kernel's queue, or as a descriptor in a message.
type Accept = fn(&Handle) -> io::Result<(Handle, Option<Addr>)>;

impl Listener {
    /// Binds and listens. A Unix path appears under its final name only once it listens, replacing what was there.
    ///
    /// # Errors
    /// EADDRINUSE, EADDRNOTAVAIL, EACCES, and what else the kernel says to an option.
    pub fn bind(addr: &Addr, options: &ListenOptions) -> io::Result<Listener> {
        driver::listen(addr, options).map(Listener::on)
    }

    /// Takes over a socket, and has it listen if it does not yet.
    ///
    /// # Errors
    /// If the descriptor is no stream socket.
    pub fn from_fd(fd: OwnedFd, backlog: u32) -> io::Result<Listener> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        rustix::net::listen(&fd, backlog.min(i32::MAX as u32) as i32)?;
        Ok(Listener::on(fd.into()))
    }

    /// As [`Listener::from_fd`], and sets what `options` say, but for what only a socket to be bound can take.
    ///
    /// # Errors
    /// As [`Listener::from_fd`], and what the kernel says to an option.
    pub fn adopt(fd: OwnedFd, options: &ListenOptions) -> io::Result<Listener> {
        let addr = crate::sockopt::addr_of(Some(rustix::net::getsockname(&fd)?))?;
        if let Addr::Inet(inet) = addr {
            listen::tune(fd.as_fd(), inet.is_ipv6(), options)?;
        }
        Listener::from_fd(fd, options.backlog)
    }

    /// Takes connections that come as descriptors over a Unix socket (`sockpair@`), as
    /// [`Socket::connect_sockpair`] sends them.
    ///
    /// # Errors
    /// If the descriptor can't be made non-blocking.
    pub fn from_sockpair(fd: OwnedFd) -> io::Result<Listener> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Listener { handle: Arc::new(fd.into()), accept: driver::accept_passed })
    }

    fn on(handle: Handle) -> Listener {
        Listener { handle: Arc::new(handle), accept: driver::accept }
    }

    /// Registers the listener with this worker.
    ///
    /// # Errors
    /// If the kernel refuses to register it.
    pub fn attach(&self) -> io::Result<Acceptor> {
        let source = worker::with(|w| w.sources.borrow_mut().insert(0).0);
        let acceptor = Acceptor {
            listener: self.clone(),
            source,
            paused: Cell::new(true),
            eager: Cell::new(false),
            last_turn: Cell::new(0),
            here: PhantomData,
        };
        acceptor.resume()?;
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

    /// Gives up the port for a while: who connects to it is refused, or reaches another process that listens there.
    /// Connections that wait to be accepted are reset. Does nothing where only a TCP socket can: on a Unix socket, and
    /// in a simulated world.
    ///
    /// # Errors
    /// If it does not listen.
    pub fn suspend(&self) -> io::Result<()> {
        match self.internet() {
            Some(fd) => Ok(rustix::net::shutdown(fd, rustix::net::Shutdown::Read)?),
            None => Ok(()),
        }
    }

    /// Listens again after [`Listener::suspend`].
    ///
    /// # Errors
    /// EADDRINUSE if somebody else has the port now.
    pub fn restore(&self, backlog: u32) -> io::Result<()> {
        match self.internet() {
            Some(fd) => Ok(rustix::net::listen(fd, backlog.min(i32::MAX as u32) as i32)?),
            None => Ok(()),
        }
    }

    fn internet(&self) -> Option<BorrowedFd<'_>> {
        let inet = matches!(self.local_addr(), Ok(Addr::Inet(_)));
        self.handle.kernel().filter(|_| inet)
    }

    /// Stops listening for every holder of this socket, in this process and others.
    ///
    /// # Errors
    /// If it listens no more.
    pub fn shutdown(&self) -> io::Result<()> {
        driver::shutdown_listener(&self.handle)
    }
}

/// A worker's share in a listener.
#[derive(Debug)]
pub struct Acceptor {
    listener: Listener,
    source: u32,
    paused: Cell<bool>,
    /// Whether one report lately stood for several connections.
    eager: Cell<bool>,
    last_turn: Cell<u64>,
    here: PhantomData<*const ()>,
}

impl Acceptor {
    /// Takes a connection; the peer's address is `None` where it has none. A report brings this task back here until
    /// it is pending, so keep polling, or pause.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOBUFS, ENOMEM: [`pause`](Acceptor::pause) and try again later.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, Option<Addr>)>> {
        if worker::with(|w| w.sources.borrow().ready(self.source)) & bit::READ == 0 {
            return self.wait(cx);
        }
        match (self.listener.accept)(&self.listener.handle) {
            Ok((handle, peer)) => {
                self.accepted();
                Poll::Ready(Socket::established(handle).map(|s| (s, peer)))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.eager.set(false);
                self.not_ready();
                self.wait(cx)
            }
            Err(e) => {
                self.not_ready();
                Poll::Ready(Err(e))
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
    }
}
