//! The operations of the driver's contract, on the simulated network of this thread.

use std::io;
use std::time::Duration;

use crate::addr::Addr;
use crate::clock;
use crate::driver::{Interest, Report};
use crate::sim::net::{Object, errno, id_of, number_of, try_with, with};

pub(crate) fn register(number: i32, token: u64, interest: Interest) -> io::Result<()> {
    with(|net| net.register(id_of(number), token, interest))
}

pub(crate) fn deregister(number: i32, token: Option<u64>) {
    try_with(|net| net.deregister(id_of(number), token));
}

pub(crate) fn poll(wait: Option<Duration>, reports: &mut Vec<Report>) {
    let time = try_with(|net| {
        net.poll(wait, reports);
        (net.now, net.options.epoch_micros)
    });
    if let Some((now, epoch)) = time {
        clock::set_virtual(now, epoch);
    }
}

pub(crate) fn close(number: i32) {
    try_with(|net| net.close(id_of(number)));
}

pub(crate) fn connect(addr: &Addr, source: Option<&Addr>) -> io::Result<i32> {
    with(|net| net.connect(addr, source)).map(number_of)
}

pub(crate) fn pair() -> io::Result<(i32, i32)> {
    with(|net| net.pair()).map(|(a, b)| (number_of(a), number_of(b)))
}

pub(crate) fn listen(addr: &Addr, backlog: u32, reuseport: bool) -> io::Result<i32> {
    with(|net| net.listen(addr, backlog as usize, reuseport)).map(number_of)
}

pub(crate) fn accept(number: i32) -> io::Result<(i32, Addr)> {
    with(|net| net.accept(id_of(number))).map(|(id, addr)| (number_of(id), addr))
}

pub(crate) fn recv(number: i32, buf: &mut [u8], peek: bool) -> io::Result<usize> {
    with(|net| net.recv(id_of(number), buf, peek))
}

pub(crate) fn send(number: i32, data: &[u8]) -> io::Result<usize> {
    with(|net| net.send(id_of(number), data))
}

pub(crate) fn shutdown_write(number: i32) -> io::Result<()> {
    with(|net| net.shutdown_write(id_of(number)))
}

pub(crate) fn set_linger0(number: i32) -> io::Result<()> {
    with(|net| net.stream(id_of(number)).map(|s| s.set_linger0()))
}

pub(crate) fn unacknowledged(number: i32) -> io::Result<usize> {
    with(|net| net.stream(id_of(number)).map(|s| s.in_flight()))
}

pub(crate) fn vanish(number: i32) -> io::Result<()> {
    with(|net| net.stream(id_of(number)).map(|s| s.vanish()))
}

pub(crate) fn take_error(number: i32) -> io::Result<Option<io::Error>> {
    with(|net| net.stream(id_of(number)).map(|s| s.take_error().map(errno)))
}

pub(crate) fn local_addr(number: i32) -> io::Result<Addr> {
    with(|net| match net.object(id_of(number)) {
        Some(Object::Stream(stream)) => Ok(stream.local()),
        Some(Object::Listener(listener)) => Ok(listener.addr.clone()),
        Some(Object::Datagram(socket)) => Ok(socket.addr.clone()),
        None => Err(errno(libc::EBADF)),
    })
}

pub(crate) fn peer_addr(number: i32) -> io::Result<Addr> {
    with(|net| net.stream(id_of(number))?.remote())
}

pub(crate) fn datagram_socket(addr: &Addr) -> io::Result<i32> {
    with(|net| net.datagram_socket(addr)).map(number_of)
}

pub(crate) fn connect_datagram(number: i32, peer: &Addr) -> io::Result<()> {
    with(|net| net.datagram(id_of(number)).map(|s| s.peer = Some(peer.clone())))
}

pub(crate) fn send_datagram(number: i32, data: &[u8], to: Option<&Addr>) -> io::Result<usize> {
    with(|net| net.send_datagram(id_of(number), data, to))
}

pub(crate) fn recv_datagram(number: i32, buf: &mut [u8]) -> io::Result<(usize, Addr)> {
    with(|net| net.recv_datagram(id_of(number), buf))
}
