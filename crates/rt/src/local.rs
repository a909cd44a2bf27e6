//! Streams inside a worker: two ends, and memory between them. No descriptor, no system call.
//!
//! They are handles like all others (numbers from [`BASE`] up, which neither driver uses), so whoever speaks to a
//! [`crate::Socket`] speaks to one of these as well: a multiplexed connection gives each of its streams such an end.
//! Reports go straight to the table of sources. An end that is closed leaves what it sent to be read, then the end of
//! the stream; writing to it fails.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use crate::source::ready as bit;
use crate::waker::TaskId;
use crate::worker;

/// Handles from here up are ends of local streams.
pub(crate) const BASE: i32 = 0x7800_0000;
/// Bytes that an end holds for its reader.
const ROOM: usize = 32 * 1024;
/// Buffers kept for the next stream, and how large they may be.
const SPARE: usize = 64;

#[derive(Default)]
struct End {
    token: Option<u64>,
    peer: Option<usize>,
    /// What the peer sent.
    waiting: VecDeque<u8>,
    /// The peer sends no more.
    over: bool,
    /// The peer found no room.
    starved: bool,
}

#[derive(Default)]
struct Ends {
    ends: Vec<Option<End>>,
    vacant: Vec<usize>,
    spare: Vec<VecDeque<u8>>,
}

thread_local! {
    static ENDS: RefCell<Ends> = RefCell::default();
}

fn index(number: i32) -> usize {
    (number - BASE) as usize
}

impl Ends {
    fn insert(&mut self) -> usize {
        let end = End { waiting: self.spare.pop().unwrap_or_default(), ..End::default() };
        match self.vacant.pop() {
            Some(at) => {
                self.ends[at] = Some(end);
                at
            }
            None => {
                self.ends.push(Some(end));
                self.ends.len() - 1
            }
        }
    }

    fn get(&mut self, at: usize) -> io::Result<&mut End> {
        self.ends.get_mut(at).and_then(Option::as_mut).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn peer(&mut self, at: usize) -> Option<&mut End> {
        let peer = self.get(at).ok()?.peer?;
        self.get(peer).ok()
    }
}

/// Two ends of a new stream.
pub(crate) fn pair() -> (i32, i32) {
    ENDS.with_borrow_mut(|ends| {
        let (a, b) = (ends.insert(), ends.insert());
        for (one, other) in [(a, b), (b, a)] {
            if let Ok(end) = ends.get(one) {
                end.peer = Some(other);
            }
        }
        (BASE + a as i32, BASE + b as i32)
    })
}

pub(crate) fn register(number: i32, token: u64) -> io::Result<()> {
    ENDS.with_borrow_mut(|ends| {
        ends.get(index(number))?.token = Some(token);
        Ok(())
    })
}

/// Tells whoever waits at an end. The table of ends is not borrowed then.
fn report(token: Option<u64>, bits: u8) {
    let Some(token) = token else { return };
    worker::try_with(|w| {
        let (reader, writer) = w.sources.borrow_mut().report(token, bits);
        if reader != TaskId::NONE {
            w.executor.wake(reader);
        }
        if writer != TaskId::NONE && writer != reader {
            w.executor.wake(writer);
        }
    });
}

pub(crate) fn recv(number: i32, buf: &mut [u8], peek: bool) -> io::Result<usize> {
    let (n, peer) = ENDS.with_borrow_mut(|ends| {
        let end = ends.get(index(number))?;
        if end.waiting.is_empty() {
            return if end.over { Ok((0, None)) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let n = end.waiting.len().min(buf.len());
        let (first, second) = end.waiting.as_slices();
        let split = first.len().min(n);
        buf[..split].copy_from_slice(&first[..split]);
        buf[split..n].copy_from_slice(&second[..n - split]);
        if peek {
            return Ok((n, None));
        }
        end.waiting.drain(..n);
        let starved = std::mem::take(&mut end.starved);
        let peer = if starved { ends.peer(index(number)).and_then(|peer| peer.token) } else { None };
        io::Result::Ok((n, peer))
    })?;
    report(peer, bit::WRITE);
    Ok(n)
}

pub(crate) fn send(number: i32, data: &[u8]) -> io::Result<usize> {
    let (n, token) = ENDS.with_borrow_mut(|ends| {
        let Some(peer) = ends.peer(index(number)) else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let n = data.len().min(ROOM - peer.waiting.len().min(ROOM));
        peer.starved = n < data.len();
        if n == 0 && !data.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        peer.waiting.extend(&data[..n]);
        io::Result::Ok((n, peer.token))
    })?;
    report(token, bit::READ);
    Ok(n)
}

pub(crate) fn shutdown_write(number: i32) -> io::Result<()> {
    let token = ENDS.with_borrow_mut(|ends| {
        let peer = ends.peer(index(number)).ok_or(io::ErrorKind::NotConnected)?;
        peer.over = true;
        io::Result::Ok(peer.token)
    })?;
    report(token, bit::READ_CLOSED);
    Ok(())
}

pub(crate) fn close(number: i32) {
    let at = index(number);
    let token = ENDS.try_with(|ends| {
        let Ok(mut ends) = ends.try_borrow_mut() else { return None };
        let mut end = ends.ends.get_mut(at)?.take()?;
        ends.vacant.push(at);
        end.waiting.clear();
        if end.waiting.capacity() <= 2 * ROOM && ends.spare.len() < SPARE {
            ends.spare.push(end.waiting);
        }
        let peer = ends.get(end.peer?).ok()?;
        (peer.peer, peer.over) = (None, true);
        peer.token
    });
    report(token.ok().flatten(), bit::READ_CLOSED | bit::HANGUP);
}

#[cfg(test)]
mod tests {
    use crate::{Runtime, Socket, WorkerSpec};
    use std::sync::mpsc;

    fn on_a_worker<F: Future<Output = ()> + 'static>(test: impl Fn() -> F + Send + Sync + 'static) {
        let (done, over) = mpsc::channel();
        let runtime: Runtime =
            crate::start(vec![WorkerSpec { name: "local".into(), affinity: None }], move |_| {
                let (test, done) = (test(), done.clone());
                crate::spawn(async move {
                    test.await;
                    let _ = done.send(());
                });
            })
            .expect("a runtime");
        let outcome = over.recv_timeout(std::time::Duration::from_secs(5));
        runtime.peers().stop_all();
        runtime.join();
        outcome.expect("the test comes to its end");
    }

    #[test]
    fn more_than_there_is_room_for_arrives_and_then_the_end() {
        on_a_worker(|| async {
            let (a, b) = Socket::local().expect("a pair");
            crate::spawn(async move {
                a.send_all(&vec![7; 200_000]).await.expect("the reader lives");
            });
            let (mut total, mut buf) = (0, [0u8; 3000]);
            loop {
                match b.recv(&mut buf).await.expect("bytes") {
                    0 => break,
                    n => total += n,
                }
            }
            assert_eq!(total, 200_000);
            assert!(b.is_broken(), "the other end is gone");
            assert!(b.send_all(b"x").await.is_err());
        });
    }

    #[test]
    fn one_direction_may_end_before_the_other() {
        on_a_worker(|| async {
            let (a, b) = Socket::local().expect("a pair");
            a.send_all(b"bye").await.expect("room");
            a.shutdown_write().expect("connected");
            let mut buf = [0u8; 10];
            assert_eq!(b.recv(&mut buf).await.expect("bytes"), 3);
            assert_eq!(b.recv(&mut buf).await.expect("the end"), 0);
            assert!(b.is_hung_up() && !b.is_broken());
            b.send_all(b"well").await.expect("room");
            assert_eq!(a.recv(&mut buf).await.expect("bytes"), 4);
        });
    }
}
