//! Datagram sockets that several workers receive from, each over a descriptor of its own.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use crate::addr::Addr;
use crate::datagram::Datagram;
use crate::datagram_row::DatagramRow;
use crate::listen::{self, ListenOptions};

/// A socket that datagrams come to, of all workers.
#[derive(Clone, Debug)]
pub struct SharedDatagram(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    share: Mutex<Share>,
}

/// What the workers do with it.
#[derive(Debug, Default)]
struct Share {
    /// Workers that receive from it.
    attached: usize,
    /// Of these, those that do not for now.
    away: usize,
    /// Another process has it, too.
    handed: bool,
    /// Nobody reaches it.
    given_up: bool,
}

impl Shared {
    fn share(&self) -> MutexGuard<'_, Share> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the port up if no worker receives any more. What waits in the queue stays there.
    fn settle(&self, share: &mut Share) -> io::Result<()> {
        let is_left = share.attached > 0 && share.away == share.attached;
        if share.given_up || share.handed || !is_left {
            return Ok(());
        }
        let own = crate::sockopt::addr_of(Some(rustix::net::getsockname(&self.fd)?))?;
        if let Addr::Inet(_) = own {
            // A socket that is connected to itself hears nobody else, and keeps its port.
            rustix::net::connect(&self.fd, &own.to_os()?)?;
            share.given_up = true;
        }
        Ok(())
    }
}

/// The socket as long as somebody receives from it.
#[derive(Clone, Debug)]
pub struct WeakDatagram(Weak<Shared>);

impl WeakDatagram {
    /// A copy of the descriptor for another process, if the socket is still open. From now on this process
    /// gives no port up, since the other one may serve it.
    pub fn hand_over(&self) -> Option<OwnedFd> {
        let shared = self.0.upgrade()?;
        let copy = shared.fd.try_clone().ok()?;
        shared.share().handed = true;
        Some(copy)
    }
}

impl SharedDatagram {
    /// A socket bound to `addr`.
    ///
    /// # Errors
    /// EADDRINUSE, EMFILE, ...
    pub fn bind(addr: &Addr, options: &ListenOptions) -> io::Result<SharedDatagram> {
        listen::receive(addr, options).map(SharedDatagram::of)
    }

    /// Takes a bound socket over, and sets the size of its buffer if one is wanted.
    ///
    /// # Errors
    /// If the descriptor can't be made non-blocking, or has no such buffer.
    pub fn adopt(fd: OwnedFd, recv_buffer: Option<usize>) -> io::Result<SharedDatagram> {
        if let Some(bytes) = recv_buffer {
            socket2::SockRef::from(&fd).set_recv_buffer_size(bytes)?;
        }
        rustix::io::ioctl_fionbio(&fd, true)?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        Ok(SharedDatagram::of(fd))
    }

    fn of(fd: OwnedFd) -> SharedDatagram {
        SharedDatagram(Arc::new(Shared { fd, share: Mutex::default() }))
    }

    /// A copy of the descriptor, for a process that takes the socket over.
    ///
    /// # Errors
    /// EMFILE.
    pub fn copy(&self) -> io::Result<OwnedFd> {
        self.0.fd.try_clone()
    }

    /// The same, which this does not keep open.
    pub fn downgrade(&self) -> WeakDatagram {
        WeakDatagram(Arc::downgrade(&self.0))
    }

    /// A worker's share in it.
    ///
    /// # Errors
    /// EMFILE.
    pub fn attach(self) -> io::Result<Inlet> {
        let socket = Datagram::shared(self.0.fd.as_fd().try_clone_to_owned()?);
        self.0.share().attached += 1;
        Ok(Inlet { socket, receiver: self, suspended: Cell::new(false) })
    }
}

/// A worker's share in a socket that datagrams come to.
#[derive(Debug)]
pub struct Inlet {
    socket: Datagram,
    receiver: SharedDatagram,
    suspended: Cell<bool>,
}

impl Inlet {
    /// See [`Datagram::poll_recv_row`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_recv_row(&self, cx: &mut Context<'_>, row: &mut DatagramRow) -> Poll<io::Result<()>> {
        self.socket.poll_recv_row(cx, row)
    }

    /// Gives up the port for a while, once all workers have done so: who sends to it is refused. On a Unix
    /// socket, and where another process has it, too, messages wait.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn suspend(&self) -> io::Result<()> {
        self.socket.rest();
        if self.suspended.replace(true) {
            return Ok(());
        }
        let shared = &self.receiver.0;
        let mut share = shared.share();
        share.away += 1;
        shared.settle(&mut share)
    }

    /// Whether it is given up for a while.
    pub fn is_suspended(&self) -> bool {
        self.suspended.get()
    }

    /// Receives again.
    ///
    /// # Errors
    /// If the kernel refuses; it stays suspended.
    pub fn restore(&self) -> io::Result<()> {
        if self.suspended.get() {
            let shared = &self.receiver.0;
            let mut share = shared.share();
            if share.given_up {
                rustix::net::connect_unspec(&shared.fd)?;
                share.given_up = false;
            }
            share.away -= 1;
            self.suspended.set(false);
        }
        Ok(())
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        let shared = &self.receiver.0;
        let mut share = shared.share();
        share.attached -= 1;
        share.away -= usize::from(self.suspended.get());
        // Perhaps it was the one that the others waited for. The kernel's no can't be told to anybody here.
        let _ = shared.settle(&mut share);
    }
}
