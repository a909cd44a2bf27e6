//! Descriptors that come from outside: inherited, or sent over a Unix socket (SCM_RIGHTS).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

/// Descriptors in one message.
pub const MAX_FDS: usize = 252;
const ROOM: usize = rustix::cmsg_space!(ScmRights(MAX_FDS));

/// Takes over a descriptor that this process inherited under a number (`fd@N`), for its own: a copy, closed
/// on exec.
///
/// # Errors
/// EBADF if it isn't open.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the kernel checks the number; if it names no open descriptor, the copy fails with EBADF. The
    // copy is then used instead of it.
    let foreign = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(foreign, 3)?)
}

/// Takes over a descriptor that this program left itself when it replaced itself ([`crate::sys::exec_with`]):
/// it is closed with its owner and at the next exec.
///
/// # Errors
/// EBADF if it isn't open.
pub fn claim(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the kernel checks the number, and nothing is done to what is behind it but to set its flag.
    let foreign = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(foreign, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and who calls this says that nobody else in this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// What a socket that another process opened is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its address.
    pub addr: crate::Addr,
    /// A stream socket; otherwise one for datagrams.
    pub stream: bool,
    /// It speaks MPTCP.
    pub mptcp: bool,
    /// An IPv6 socket that takes no IPv4.
    pub v6only: bool,
}

/// Looks at a socket that another process opened.
///
/// # Errors
/// If it is no socket of a kind that a proxy listens on.
pub fn bound(fd: BorrowedFd<'_>) -> io::Result<Bound> {
    let addr = crate::sockopt::addr_of(Some(rustix::net::getsockname(fd)?))?;
    let socket = socket2::SockRef::from(&fd);
    let v6 = addr.as_inet().is_some_and(|a| a.is_ipv6());
    let stream = socket.r#type()? == socket2::Type::STREAM;
    let mptcp = socket.protocol()? == Some(socket2::Protocol::MPTCP);
    Ok(Bound { addr, stream, mptcp, v6only: v6 && socket.only_v6()? })
}

/// What the kernel says of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFacts {
    /// It accepts connections.
    pub listens: bool,
    /// It is one for datagrams.
    pub datagrams: bool,
    /// This end.
    pub local: Option<crate::Addr>,
    /// The other end, if it is connected.
    pub peer: Option<crate::Addr>,
}

/// What the kernel says of the descriptor of this number; `None`: it is no socket, or not open (any more).
pub fn socket_facts(number: RawFd) -> Option<SocketFacts> {
    if !(0..crate::driver::SIM_BASE).contains(&number) {
        return None;
    }
    // SAFETY: the number is only asked about, and not kept. If somebody closes it meanwhile the kernel says
    // so, or tells of whoever has the number then; nothing is read from it, written to it or closed.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let local = rustix::net::getsockname(fd).ok()?;
    let socket = socket2::SockRef::from(&fd);
    Some(SocketFacts {
        listens: socket.is_listener().unwrap_or(false),
        datagrams: socket.r#type().is_ok_and(|t| t == socket2::Type::DGRAM),
        local: crate::sockopt::addr_of(Some(local)).ok(),
        peer: rustix::net::getpeername(fd).ok().flatten().and_then(|a| crate::sockopt::addr_of(Some(a)).ok()),
    })
}

/// The address of an inherited socket.
pub fn inherited_addr(number: RawFd) -> Option<crate::Addr> {
    let fd = inherited(number).ok()?;
    crate::sockopt::addr_of(Some(rustix::net::getsockname(&fd).ok()?)).ok()
}

/// The number of descriptors that the service manager passed, from number 3 up (LISTEN_FDS, LISTEN_PID).
pub fn listen_fds() -> usize {
    let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<usize>().ok());
    if number("LISTEN_PID") != Some(std::process::id() as usize) {
        return 0;
    }
    number("LISTEN_FDS").unwrap_or(0)
}

/// Opens the descriptor of this number for a moment: the kernel's table grows to hold it, and not while
/// traffic runs.
///
/// # Errors
/// EINVAL beyond the limit.
pub fn fill_table(number: RawFd) -> io::Result<()> {
    rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), number).map(drop)?;
    Ok(())
}

/// Sends bytes (at least one) and with them descriptors, at most [`MAX_FDS`]. Returns how many bytes went.
///
/// # Errors
/// Those of the socket; `InvalidInput` for too many descriptors.
pub fn send_fds(socket: BorrowedFd<'_>, data: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = SendAncillaryBuffer::new(&mut room);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(data)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives bytes, and appends the descriptors that came with them to `fds`. Returns how many bytes came.
///
/// # Errors
/// Those of the socket.
pub fn recv_fds(socket: BorrowedFd<'_>, data: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut data = [IoSliceMut::new(data)];
    let received = rustix::net::recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(received.bytes)
}

/// A connected pair of stream sockets that block: a line between a master and a worker process.
///
/// # Errors
/// EMFILE.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (a, b) = std::os::unix::net::UnixStream::pair()?;
    Ok((a.into(), b.into()))
}

/// Lets a descriptor live on in programs started from this process, or not.
///
/// # Errors
/// None in practice.
pub fn set_inheritable(fd: &impl AsFd, inheritable: bool) -> io::Result<()> {
    use rustix::io::FdFlags;
    let flags = if inheritable { FdFlags::empty() } else { FdFlags::CLOEXEC };
    Ok(rustix::io::fcntl_setfd(fd, flags)?)
}
