//! TLS in the kernel (kTLS): a TCP connection whose records the kernel seals and opens, so that data goes
//! through the socket as plain text and may be spliced.
//!
//! A connection gets the upper layer protocol `tls` first, then each direction its key, once what was sealed
//! in user space is sent and what came before is opened. Data is then sent and received as on any socket.
//! Whatever is no data (alerts, handshake messages) goes with its content type in a control message.
//!
//! Kernels differ. Some have no TLS at all; most know it, but keep a key for the life of the connection;
//! those since 6.14 take another one when TLS 1.3 changes keys. Which one this is, [`support`] finds out once
//! in the life of the process: where there is nothing, no connection asks again.

use std::io::{self, IoSlice};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;

use crate::socket::Socket;
use crate::sockopt::set_raw;
use crate::source::ready as bit;

const TCP_ULP: i32 = 31;
const SOL_TLS: i32 = 282;
const SET_RECORD_TYPE: i32 = 1;
const GET_RECORD_TYPE: i32 = 2;
const DATA: u8 = 23;

/// What the kernel has of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Support {
    /// Nothing.
    None,
    /// A key for each direction, for good.
    Once,
    /// Keys that may be replaced (TLS 1.3).
    Renewable,
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What is sent.
    Send,
    /// What is received.
    Receive,
}

/// Ciphers that the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    Chacha20Poly1305,
}

/// The key of a direction.
pub struct RecordKey<'a> {
    /// TLS 1.3, otherwise 1.2.
    pub tls13: bool,
    /// What the key is for.
    pub cipher: Cipher,
    /// The key itself: 16 or 32 bytes.
    pub key: &'a [u8],
    /// The fixed part of nonces; with AES-GCM in TLS 1.2 four fixed bytes and the first explicit part.
    pub iv: &'a [u8; 12],
    /// Number of the next record.
    pub seq: u64,
}

const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
const ONCE: u8 = 2;
const RENEWABLE: u8 = 3;

static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);
static ALLOWED: AtomicBool = AtomicBool::new(true);

/// Whether the kernel's TLS may be used at all (`noktls`).
pub fn allow_kernel_tls(allowed: bool) {
    ALLOWED.store(allowed, Relaxed);
}

/// What the kernel has of TLS, for connections of this process. The first call finds out, with a connection
/// to itself; it may have the kernel load its module, for which it needs CAP_NET_ADMIN.
pub fn support() -> Support {
    if !ALLOWED.load(Relaxed) {
        return Support::None;
    }
    match FOUND.load(Relaxed) {
        NONE => Support::None,
        ONCE => Support::Once,
        RENEWABLE => Support::Renewable,
        _ => {
            // Without a connection to ask, the next one asks again.
            let Ok((_peer, stream)) = to_itself() else { return Support::None };
            let found = probe(stream.as_fd()).unwrap_or(Support::None);
            FOUND.store(NONE + found as u8, Relaxed);
            found
        }
    }
}

fn to_itself() -> io::Result<(TcpListener, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    Ok((listener, stream))
}

fn probe(fd: BorrowedFd<'_>) -> io::Result<Support> {
    attach(fd)?;
    let key = RecordKey { tls13: true, cipher: Cipher::Aes128Gcm, key: &[0; 16], iv: &[0; 12], seq: 0 };
    set_key(fd, Direction::Send, &key)?;
    Ok(if set_key(fd, Direction::Send, &key).is_ok() { Support::Renewable } else { Support::Once })
}

fn attach(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_raw(fd, libc::IPPROTO_TCP, TCP_ULP, b"tls")
}

fn set_key(fd: BorrowedFd<'_>, direction: Direction, key: &RecordKey<'_>) -> io::Result<()> {
    let mut info = Info::of(key).ok_or(io::ErrorKind::InvalidInput)?;
    let name = if direction == Direction::Send { 1 } else { 2 };
    let result = set_raw(fd, SOL_TLS, name, info.filled());
    info.forget();
    result
}

/// A key as the kernel takes it (`struct tls12_crypto_info_*`).
struct Info {
    bytes: [u8; 56],
    len: usize,
}

impl Info {
    /// `None` if lengths don't fit the cipher.
    fn of(key: &RecordKey<'_>) -> Option<Info> {
        let (number, length): (u16, _) = match key.cipher {
            Cipher::Aes128Gcm => (51, 16),
            Cipher::Aes256Gcm => (52, 32),
            Cipher::Chacha20Poly1305 => (54, 32),
        };
        let version: u16 = if key.tls13 { 0x0304 } else { 0x0303 };
        let (salt, iv) = match key.cipher {
            Cipher::Chacha20Poly1305 => (&[][..], &key.iv[..]),
            _ => key.iv.split_at(4),
        };
        let mut info = Info { bytes: [0; 56], len: 0 };
        let secret = key.key.get(..length).filter(|_| key.key.len() == length)?;
        let seq = key.seq.to_be_bytes();
        for part in [&version.to_ne_bytes()[..], &number.to_ne_bytes(), iv, secret, salt, &seq] {
            info.bytes.get_mut(info.len..info.len + part.len())?.copy_from_slice(part);
            info.len += part.len();
        }
        Some(info)
    }

    fn filled(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Leaves nothing of the key behind.
    fn forget(&mut self) {
        self.bytes.fill(0);
        std::hint::black_box(&self.bytes);
    }
}

/// Room for one control message with one byte, aligned as the kernel wants it.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    kind: [u8; 8],
}

impl Control {
    fn new(kind: u8) -> Control {
        // SAFETY: `cmsghdr` is plain numbers, of which 0 is one.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_level = SOL_TLS;
        header.cmsg_type = SET_RECORD_TYPE;
        header.cmsg_len = (size_of::<libc::cmsghdr>() + 1) as _;
        Control { header, kind: [kind, 0, 0, 0, 0, 0, 0, 0] }
    }

    /// The content type that the kernel has written here.
    fn received(&self, length: usize) -> Option<u8> {
        let whole = length > size_of::<libc::cmsghdr>();
        let told = self.header.cmsg_level == SOL_TLS && self.header.cmsg_type == GET_RECORD_TYPE;
        (whole && told).then_some(self.kind[0])
    }
}

fn recv_record(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<(u8, usize)> {
    let mut control = Control::new(0);
    let mut piece = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: `msghdr` is plain numbers and pointers, of which 0 is one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message points to a writable buffer and a writable control message of the lengths given,
    // which live until the call returns.
    let n = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0) };
    if n < 0 {
        return Err(io::Error::last_os_error());
    }
    let kind = control.received(message.msg_controllen as usize);
    Ok((kind.unwrap_or(if n == 0 { 0 } else { DATA }), n as usize))
}

fn send_record(fd: BorrowedFd<'_>, kind: u8, data: &[u8]) -> io::Result<usize> {
    let mut control = Control::new(kind);
    let mut piece = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: `msghdr` is plain numbers and pointers, of which 0 is one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message points to readable bytes and a control message of the lengths given, which the
    // kernel only reads and which live until the call returns.
    let n = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n as usize) }
}

impl Socket {
    /// Gives the connection to the kernel's TLS. Nothing changes until a direction has a
    /// [key](Socket::offload).
    ///
    /// # Errors
    /// What the kernel says: it has no TLS, or this is no established TCP connection. `Unsupported` in a
    /// simulated world.
    pub fn attach_tls(&self) -> io::Result<()> {
        attach(self.fd()?)
    }

    /// Has the kernel seal or open the records of a direction from now on. In the direction of sending
    /// nothing else may wait to be sent; in that of receiving the next byte to be read must be the first of a
    /// record. With [`Support::Renewable`] also replaces the key of a direction.
    ///
    /// # Errors
    /// What the kernel says of the key, or that the connection is not [given to it](Socket::attach_tls). The
    /// direction then goes on as before.
    pub fn offload(&self, direction: Direction, key: &RecordKey<'_>) -> io::Result<()> {
        set_key(self.fd()?, direction, key)?;
        if direction == Direction::Receive {
            self.assume_readable();
        }
        Ok(())
    }

    /// Reads what the kernel has opened, of one content type only; `None` if that has to be awaited. At the
    /// end of the stream the type and the length are 0.
    pub fn try_recv_record(&self, buf: &mut [u8]) -> Option<io::Result<(u8, usize)>> {
        if !self.is_readable() {
            return None;
        }
        // A read may end short of what is there, where another content type begins: only the kernel knows
        // that there is nothing more.
        match self.fd().and_then(|fd| recv_record(fd, buf)) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.clear(bit::READ);
                None
            }
            result => Some(result),
        }
    }

    /// Sends a record of a content type other than data; `None` if that has to be awaited.
    pub fn try_send_record(&self, kind: u8, data: &[u8]) -> Option<io::Result<usize>> {
        if !self.is_writable() {
            return None;
        }
        self.sent(self.fd().and_then(|fd| send_record(fd, kind, data)), data.len())
    }

    /// Sends data that the kernel seals, of two pieces; `None` if that has to be awaited. Each call ends its
    /// last record: nobody would send what stays in one that waits for more.
    pub fn try_send_data(&self, first: &[u8], second: &[u8]) -> Option<io::Result<usize>> {
        match (first.is_empty(), second.is_empty()) {
            (true, _) => self.try_send(second, false),
            (_, true) => self.try_send(first, false),
            _ => self.try_send_vectored(&[IoSlice::new(first), IoSlice::new(second)], false),
        }
    }

    /// Ready when the kernel has room for a good part of what it may hold: then what is sent next, and all
    /// that it took before, becomes segments at once. Records that it has sealed while there was no room are
    /// lost when the connection is shut down or closed, so this comes first.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        while self.is_writable() {
            if self.has_room() {
                return Poll::Ready(());
            }
            self.clear(bit::WRITE);
        }
        self.poll_writable(cx)
    }

    /// Whether [`Socket::poll_room`] would be ready, by asking the kernel.
    pub fn has_room(&self) -> bool {
        let Ok(fd) = self.fd() else { return true };
        let mut asked = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
        let soon = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(rustix::event::poll(&mut asked, Some(&soon)), Ok(0))
    }

    /// Another descriptor of the same connection, which ends with the last of them. This one does
    /// [not reset it](Socket::reset_on_close) any more.
    ///
    /// # Errors
    /// EMFILE; `Unsupported` in a simulated world.
    pub fn duplicate(&self) -> io::Result<Socket> {
        self.clear(bit::RESET_ON_CLOSE);
        Socket::from_fd(rustix::io::fcntl_dupfd_cloexec(self.fd()?, 3)?)
    }
}

#[cfg(test)]
mod tests;
