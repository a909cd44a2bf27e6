//! Simulated datagram sockets: what is sent arrives once, late or not at all, in any order.

use std::collections::VecDeque;
use std::io;

use crate::addr::Addr;
use crate::sim::net::{Event, Id, Net, Object, errno, matches};
use crate::source::ready;

/// Datagrams that wait to be read; more are lost.
const QUEUE: usize = 256;

pub(super) struct DatagramSocket {
    pub(super) token: Option<u64>,
    pub(super) addr: Addr,
    pub(super) peer: Option<Addr>,
    pub(super) queue: VecDeque<(Vec<u8>, Addr)>,
}

impl Net {
    pub(super) fn datagram_socket(&mut self, addr: &Addr) -> io::Result<Id> {
        let faults = self.faults_of(addr);
        if self.chance(faults.no_descriptors) {
            return Err(errno(libc::EMFILE));
        }
        let addr = self.bindable(addr);
        let (token, peer, queue) = (None, None, VecDeque::new());
        self.add(Object::Datagram(DatagramSocket { token, addr, peer, queue }))
    }

    pub(super) fn send_datagram(&mut self, id: Id, data: &[u8], to: Option<&Addr>) -> io::Result<usize> {
        let socket = self.datagram(id)?;
        let from = socket.addr.clone();
        let to = to.cloned().or_else(|| socket.peer.clone()).ok_or_else(|| errno(libc::EDESTADDRREQ))?;
        let faults = self.faults_of(&to);
        let fits = |o: &Object| matches!(o, Object::Datagram(d) if matches(&d.addr, &to));
        let target = self.objects().find(|(_, o)| fits(o)).map(|(id, _)| id);
        match target {
            Some(at) if !self.chance(faults.loss) => {
                let delay = self.delay(&faults);
                self.schedule_in(delay, Event::Datagram { at, bytes: data.to_vec(), from });
            }
            None if to.is_unix() => return Err(errno(libc::ECONNREFUSED)),
            _ => {}
        }
        Ok(data.len())
    }

    pub(super) fn recv_datagram(&mut self, id: Id, buf: &mut [u8]) -> io::Result<(usize, Addr)> {
        let socket = self.datagram(id)?;
        let (bytes, from) = socket.queue.pop_front().ok_or_else(|| errno(libc::EAGAIN))?;
        let n = bytes.len().min(buf.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        Ok((n, from))
    }

    pub(super) fn datagram_arrives(&mut self, at: Id, bytes: Vec<u8>, from: Addr) {
        if let Ok(socket) = self.datagram(at)
            && socket.queue.len() < QUEUE
        {
            socket.queue.push_back((bytes, from));
            self.report(at, ready::READ);
        }
    }
}
