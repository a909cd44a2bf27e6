//! Datagrams by the row: several received or sent by one call of the system.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::buf::Buf;

/// As many datagrams go by one call.
pub const ROW: usize = 32;
/// Room that a row begins with, since few bursts are long: a call that fills less also says that no more
/// wait.
const FIRST: usize = 4;

/// Room for datagrams that are received together. It follows the bursts: twice as much after each call that
/// filled it.
#[derive(Debug, Default)]
pub struct DatagramRow {
    bufs: Vec<Buf>,
    senders: [Option<SocketAddr>; ROW],
    /// Datagrams of the last call.
    filled: usize,
}

impl DatagramRow {
    /// Those that the last call received, and who sent them if that has an IP address.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&SocketAddr>)> {
        let both = self.bufs.iter().zip(&self.senders).take(self.filled);
        both.map(|(buf, sender)| (buf.filled(), sender.as_ref()))
    }

    /// Gives the buffers back until the next call.
    pub(crate) fn rest(&mut self) {
        self.bufs.clear();
        self.filled = 0;
    }

    /// Whether the last call may have left datagrams behind.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.bufs.len()
    }

    /// Makes room: for the first call, or for more than the last one filled.
    fn prepare(&mut self) {
        let wish = if self.is_full() { (2 * self.bufs.len()).clamp(FIRST, ROW) } else { self.bufs.len() };
        self.bufs.resize_with(wish, Buf::new);
        self.bufs.iter_mut().for_each(Buf::clear);
        self.filled = 0;
    }
}

/// The name of a sender as the kernel writes it; longer ones are those of Unix sockets.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct RawName([u8; 28]);

impl RawName {
    fn inet(&self) -> Option<SocketAddr> {
        let bytes = |from: usize, to: usize| self.0.get(from..to);
        let two = |from| bytes(from, from + 2)?.try_into().ok();
        let four = |from| <[u8; 4]>::try_from(bytes(from, from + 4)?).ok();
        let port = u16::from_be_bytes(two(2)?);
        match i32::from(u16::from_ne_bytes(two(0)?)) {
            libc::AF_INET => Some((Ipv4Addr::from(four(4)?), port).into()),
            libc::AF_INET6 => {
                let ip: [u8; 16] = bytes(8, 24)?.try_into().ok()?;
                let scope = u32::from_ne_bytes(four(24)?);
                Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into())
            }
            _ => None,
        }
    }
}

/// Receives what waits, as much as there is room for; an error if that is nothing.
pub(crate) fn receive(fd: BorrowedFd<'_>, row: &mut DatagramRow) -> io::Result<()> {
    row.prepare();
    // SAFETY: `mmsghdr` and `iovec` are plain numbers and pointers, of which 0 is one.
    let mut headers: [libc::mmsghdr; ROW] = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut pieces: [libc::iovec; ROW] = unsafe { std::mem::zeroed() };
    let mut names = [RawName([0; 28]); ROW];
    let all = headers.iter_mut().zip(&mut pieces).zip(&mut names).zip(&mut row.bufs);
    let mut room = 0;
    for (((header, piece), name), buf) in all {
        let spare = buf.spare_mut();
        *piece = libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: spare.len() };
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_name = (&raw mut *name).cast();
        header.msg_hdr.msg_namelen = size_of::<RawName>() as libc::socklen_t;
        room += 1;
    }
    // SAFETY: the first `room` headers point to a piece and a name each, which live until the call returns,
    // and the piece to the room of a buffer of the row, which is borrowed as long and nobody else's.
    let n = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            headers.as_mut_ptr(),
            room,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    row.filled = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    let all = row.bufs.iter_mut().zip(&mut row.senders).zip(headers.iter().zip(&names));
    for ((buf, sender), (header, name)) in all.take(row.filled) {
        buf.advance((header.msg_len as usize).min(buf.spare()));
        *sender = if header.msg_hdr.msg_namelen == 0 { None } else { name.inet() };
    }
    Ok(())
}

/// The same, one by one.
pub(crate) fn receive_each(
    row: &mut DatagramRow,
    mut receive: impl FnMut(&mut [u8]) -> io::Result<(usize, Option<SocketAddr>)>,
) -> io::Result<()> {
    row.prepare();
    for (buf, sender) in row.bufs.iter_mut().zip(&mut row.senders) {
        match receive(buf.spare_mut()) {
            Ok((bytes, from)) => {
                buf.advance(bytes);
                *sender = from;
                row.filled += 1;
            }
            Err(e) if row.filled == 0 => return Err(e),
            Err(_) => break,
        }
    }
    Ok(())
}

/// Sends the first [`ROW`] pieces, a datagram each; how many the system took, an error if that is none.
pub(crate) fn send<'d>(fd: BorrowedFd<'_>, data: impl Iterator<Item = &'d [u8]>) -> io::Result<usize> {
    // SAFETY: `mmsghdr` and `iovec` are plain numbers and pointers, of which 0 is one.
    let mut headers: [libc::mmsghdr; ROW] = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut pieces: [libc::iovec; ROW] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    for ((header, piece), bytes) in headers.iter_mut().zip(&mut pieces).zip(data) {
        *piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers point to a piece each, which lives until the call returns, and the
    // piece to bytes that are borrowed as long and that the kernel only reads.
    let n = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count, libc::MSG_NOSIGNAL as _) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_families_are_read() {
        let mut name = RawName([0; 28]);
        name.0[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        name.0[2..8].copy_from_slice(&[1, 2, 127, 0, 0, 1]);
        assert_eq!(name.inet(), Some("127.0.0.1:258".parse().unwrap()));
        name.0[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        name.0[4..24].copy_from_slice(&[0; 20]);
        name.0[23] = 1;
        assert_eq!(name.inet(), Some("[::1]:258".parse().unwrap()));
        name.0[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
        assert_eq!(name.inet(), None);
    }

    #[test]
    fn a_row_goes_and_comes_as_a_whole() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        use std::os::fd::AsFd;
        let texts: Vec<String> = (0..40).map(|n| format!("message {n}")).chain([String::new()]).collect();
        let mut left = &texts[..];
        while !left.is_empty() {
            let sent = send(sender.as_fd(), left.iter().map(|t| t.as_bytes())).unwrap();
            assert!(sent <= ROW);
            left = &left[sent..];
        }
        let from = sender.local_addr().unwrap();
        let (mut row, mut seen) = (DatagramRow::default(), Vec::new());
        while receive(receiver.as_fd(), &mut row).is_ok() {
            seen.extend(row.iter().map(|(bytes, sender)| {
                assert_eq!(sender, Some(&from));
                String::from_utf8_lossy(bytes).into_owned()
            }));
        }
        assert_eq!(seen, texts);
        row.rest();
        assert_eq!(row.iter().count(), 0);
    }
}
