//! Descriptors that come from outside: inherited, or sent over a Unix socket (SCM_RIGHTS).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

/// Descriptors in one message.
pub const MAX_FDS: usize = 252;
const ROOM: usize = rustix::cmsg_space!(ScmRights(MAX_FDS));

/// Takes over a descriptor that this process inherited under a number (`fd@N`), for its own: a copy, closed on exec.
///
/// # Errors
/// EBADF if it isn't open.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the kernel checks the number; if it names no open descriptor, the copy fails with EBADF. The copy is
    // then used instead of it.
    let foreign = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(foreign, 3)?)
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
