//! Streams inside a worker: two ends, and memory between them. No descriptor, no system call.
//!
//! They are handles like all others (numbers from [`BASE`] up, which neither driver uses), so whoever speaks
//! to a [`crate::Socket`] speaks to one of these as well: a multiplexed connection gives each of its streams
//! such an end. Reports go straight to the table of sources. An end that is closed leaves what it sent to be
//! read, then the end of the stream; writing to it fails.
//!
//! What waits between the ends waits in buffers of the pool, so that a writer can hand over the one it has
//! and a reader take it as it is: bodies pass without being copied.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use crate::buf::Buf;
use crate::source::ready as bit;
use crate::waker::TaskId;
use crate::worker;

/// Handles from here up are ends of local streams.
pub(crate) const BASE: i32 = 0x7800_0000;
/// Bytes that an end holds for its reader; one buffer always fits.
const ROOM: usize = 32 * 1024;
/// Buffers that an end holds for its reader.
const BUFFERS: usize = 4;

#[derive(Default)]
struct End {
    token: Option<u64>,
    peer: Option<usize>,
    /// What the peer sent; none of the buffers is empty.
    waiting: VecDeque<Buf>,
    /// Bytes in them.
    length: usize,
    /// The peer sends no more.
    over: bool,
    /// The peer found no room.
    starved: bool,
}

#[derive(Default)]
struct Ends {
    ends: Vec<Option<End>>,
    vacant: Vec<usize>,
}

impl End {
    fn is_full(&self) -> bool {
        self.length >= ROOM || self.waiting.len() >= BUFFERS
    }

    /// Copies from `data` what there is room for.
    fn append(&mut self, data: &[u8]) -> usize {
        let before = self.length;
        let mut rest = &data[..data.len().min(ROOM.saturating_sub(before))];
        while !rest.is_empty() {
            if self.waiting.back().is_none_or(|last| last.spare() == 0) {
                if self.waiting.len() >= BUFFERS {
                    break;
                }
                self.waiting.push_back(Buf::new());
            }
            let Some(last) = self.waiting.back_mut() else { break };
            let n = last.spare().min(rest.len());
            last.spare_mut()[..n].copy_from_slice(&rest[..n]);
            last.advance(n);
            self.length += n;
            rest = &rest[n..];
        }
        self.length - before
    }

    /// Copies into `buf`; what is copied is gone, unless `peek`.
    fn copy(&mut self, buf: &mut [u8], peek: bool) -> usize {
        let mut n = 0;
        for waiting in &mut self.waiting {
            let part = waiting.len().min(buf.len() - n);
            buf[n..n + part].copy_from_slice(&waiting.filled()[..part]);
            n += part;
            if !peek {
                waiting.consume(part);
            }
        }
        if !peek {
            while self.waiting.front().is_some_and(Buf::is_empty) {
                self.waiting.pop_front();
            }
            self.length -= n;
        }
        n
    }
}

thread_local! {
    static ENDS: RefCell<Ends> = RefCell::default();
}

fn index(number: i32) -> usize {
    (number - BASE) as usize
}

impl Ends {
    fn insert(&mut self) -> usize {
        let end = Some(End::default());
        match self.vacant.pop() {
            Some(at) => {
                self.ends[at] = end;
                at
            }
            None => {
                self.ends.push(end);
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

/// Takes with `f` from what waits at an end: `f` is not called when nothing does. Tells a writer that waits
/// for room.
fn consume<R>(number: i32, f: impl FnOnce(&mut End) -> R) -> io::Result<Option<R>> {
    let (result, writer) = ENDS.with_borrow_mut(|ends| {
        let end = ends.get(index(number))?;
        if end.waiting.is_empty() {
            return if end.over { Ok((None, None)) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let result = f(end);
        let freed = end.starved && !end.is_full();
        end.starved &= !freed;
        let writer = if freed { ends.peer(index(number)).and_then(|peer| peer.token) } else { None };
        io::Result::Ok((Some(result), writer))
    })?;
    report(writer, bit::WRITE);
    Ok(result)
}

pub(crate) fn recv(number: i32, buf: &mut [u8], peek: bool) -> io::Result<usize> {
    Ok(consume(number, |end| end.copy(buf, peek))?.unwrap_or(0))
}

/// Takes the first buffer that waits, as it is; `None` at the end of the stream.
pub(crate) fn take(number: i32) -> io::Result<Option<Buf>> {
    let taken = consume(number, |end| {
        let buf = end.waiting.pop_front();
        end.length -= buf.as_ref().map_or(0, Buf::len);
        buf
    });
    Ok(taken?.flatten())
}

/// Gives something to the other end with `f`, which says how many bytes it took of `offered`.
fn supply(number: i32, offered: usize, f: impl FnOnce(&mut End) -> usize) -> io::Result<usize> {
    let (n, token) = ENDS.with_borrow_mut(|ends| {
        let Some(peer) = ends.peer(index(number)) else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let n = if peer.is_full() { 0 } else { f(peer) };
        peer.starved = n < offered;
        if n == 0 && offered > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        io::Result::Ok((n, peer.token))
    })?;
    report(token, bit::READ);
    Ok(n)
}

pub(crate) fn send(number: i32, data: &[u8]) -> io::Result<usize> {
    supply(number, data.len(), |peer| peer.append(data))
}

/// Hands over a buffer that is not empty; leaves it where it is if that fails.
pub(crate) fn give(number: i32, buf: &mut Option<Buf>) -> io::Result<usize> {
    let offered = buf.as_ref().map_or(0, Buf::len);
    supply(number, offered, |peer| {
        // Little is better added to what waits than kept in a buffer of its own.
        if let (Some(last), Some(small)) = (peer.waiting.back_mut(), buf.as_ref())
            && last.spare() >= offered
        {
            last.spare_mut()[..offered].copy_from_slice(small.filled());
            last.advance(offered);
            *buf = None;
        } else {
            peer.waiting.extend(buf.take());
        }
        peer.length += offered;
        offered
    })
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
        let end = ends.ends.get_mut(at)?.take()?;
        ends.vacant.push(at);
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

    /// Whole buffers pass as they are, in order with what was copied, and no more of them than there is room
    /// for.
    #[test]
    fn buffers_change_hands() {
        use crate::Buf;
        use std::task::Poll;
        on_a_worker(|| async {
            let (a, b) = Socket::local().expect("a pair");
            a.send_all(b"first ").await.expect("room");
            crate::spawn(async move {
                for byte in 0..20u8 {
                    let mut buf = Some(Buf::new());
                    let filled = buf.as_mut().expect("just made");
                    let n = filled.spare();
                    filled.spare_mut().fill(byte);
                    filled.advance(n);
                    let given = std::future::poll_fn(|cx| a.poll_give(cx, &mut buf)).await;
                    assert_eq!(given.expect("the reader lives"), n);
                    assert!(buf.is_none());
                }
            });
            let mut start = [0u8; 6];
            assert_eq!(b.recv(&mut start).await.expect("bytes"), 6);
            assert_eq!(&start, b"first ");
            let mut got = Vec::new();
            loop {
                let taken = std::future::poll_fn(|cx| match b.try_take() {
                    Some(taken) => Poll::Ready(taken),
                    None => b.poll_readable(cx).map(|()| Ok(None)),
                });
                match taken.await.expect("bytes") {
                    Some(buf) => got.extend_from_slice(buf.filled()),
                    None if b.is_hung_up() && got.len() >= 20 * crate::bufsize() => break,
                    None => {}
                }
            }
            let expected: Vec<u8> = (0..20u8).flat_map(|byte| vec![byte; crate::bufsize()]).collect();
            assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
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
