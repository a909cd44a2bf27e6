//! Idle sockets that change workers: real sockets, real threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use rt::{Claimed, Label, Moored, Quay, Socket, WorkerSpec};

/// Runs `init` on two workers, and fails if they don't end in 20 seconds.
fn on_two(init: impl Fn(usize) + Send + Sync + 'static) {
    let (done, end) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        rt::start(vec![WorkerSpec::default(); 2], init).unwrap().join();
        done.send(()).unwrap();
    });
    if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(Duration::from_secs(20)) {
        panic!("the workers hang");
    }
    thread.join().unwrap();
}

const LABEL: Label = Label { identity: 7, note: 3 };

/// Moors one end of a pair at the quay of this worker, which it tells to the other.
fn moored_at(at: &OnceLock<Arc<Quay>>) -> (Moored, Socket) {
    let (near, far) = Socket::pair().unwrap();
    let quay = Quay::here().unwrap();
    let moored = quay.moor(near, LABEL).ok().unwrap();
    at.set(quay).ok().unwrap();
    (moored, far)
}

/// One worker moors a socket, the other claims it and talks over it; the owner finds it gone and closes
/// nothing.
#[test]
fn a_moored_socket_is_claimed_once_and_works() {
    static AT: OnceLock<Arc<Quay>> = OnceLock::new();
    let (ready, taken) = (Barrier::new(2), Barrier::new(2));
    on_two(move |index| {
        if index == 0 {
            let (moored, far) = moored_at(&AT);
            ready.wait();
            taken.wait();
            assert!(moored.is_gone());
            assert!(moored.look(|_| ()).is_none());
            assert!(moored.unmoor().is_none(), "another worker has it");
            assert_eq!(rt::worker_stats().sources, 1, "only the far end is left here");
            rt::spawn(async move {
                far.send_all(b"ping").await.unwrap();
                let mut buf = [0; 8];
                assert_eq!(far.recv(&mut buf).await.unwrap(), 4);
                assert_eq!(&buf[..4], b"pong");
                rt::stop_worker();
            });
        } else {
            ready.wait();
            let quay = AT.get().unwrap();
            assert!(matches!(quay.claim(8, |_| true, drop), Claimed::Nothing), "another identity");
            assert!(
                matches!(quay.claim(7, |note| note != 3, drop), Claimed::Nothing),
                "a note that does not please"
            );
            let Claimed::Socket(socket, note) = quay.claim(7, |_| true, drop) else {
                panic!("nothing to claim")
            };
            assert_eq!(note, 3);
            assert!(matches!(quay.claim(7, |_| true, drop), Claimed::Nothing), "claimed twice");
            taken.wait();
            rt::spawn(async move {
                let mut buf = [0; 8];
                assert_eq!(socket.recv(&mut buf).await.unwrap(), 4);
                socket.send_all(b"pong").await.unwrap();
                assert_eq!(socket.recv(&mut buf).await.unwrap(), 0);
                rt::stop_worker();
            });
        }
    });
}

/// A peer that has closed makes its socket worthless: it is let go, and its peer sees no sign of life.
#[test]
fn a_socket_whose_peer_left_is_not_handed_on() {
    static AT: OnceLock<Arc<Quay>> = OnceLock::new();
    let (ready, taken) = (Barrier::new(2), Barrier::new(2));
    on_two(move |index| {
        if index == 0 {
            let (moored, far) = moored_at(&AT);
            drop(far);
            ready.wait();
            taken.wait();
            drop(moored);
        } else {
            ready.wait();
            let mut closed = 0;
            let mut claim =
                || matches!(AT.get().unwrap().claim(7, |_| true, |_| closed += 1), Claimed::Nothing);
            assert!(claim() && claim());
            assert_eq!(closed, 1, "whoever counts what rests has to learn of it, once");
            taken.wait();
        }
        rt::stop_worker();
    });
}

/// Owner and claimer race for the same sockets many times: each has exactly one holder, none is lost, none is
/// closed twice.
#[test]
fn in_a_race_each_socket_has_one_holder() {
    const ROUNDS: usize = 300;
    static AT: OnceLock<Arc<Quay>> = OnceLock::new();
    static CLAIMED: AtomicUsize = AtomicUsize::new(0);
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    static MOORED: AtomicUsize = AtomicUsize::new(0);
    static OVER: AtomicUsize = AtomicUsize::new(0);
    let (ready, over) = (Barrier::new(2), Barrier::new(2));
    on_two(move |index| {
        if index == 0 {
            let quay = Quay::here().unwrap();
            AT.set(quay.clone()).ok().unwrap();
            ready.wait();
            let (mut moored, mut far_ends) = (Vec::new(), Vec::new());
            let mut rounds = 0..ROUNDS;
            // On a busy machine the other worker may come late, and take all when it has come.
            let none = || [&CLAIMED, &KEPT].iter().any(|count| count.load(Ordering::Relaxed) == 0);
            while let Some(round) = rounds.next().or_else(|| none().then_some(0)) {
                let (near, far) = Socket::pair().unwrap();
                let at = quay.moor(near, LABEL).ok().unwrap();
                MOORED.fetch_add(1, Ordering::Relaxed);
                moored.push((at, far));
                if round % 3 == 0 || quay.is_full() {
                    // On a busy machine the other worker runs only when this one lets it.
                    if round % 30 == 0 {
                        std::thread::yield_now();
                    }
                    for (at, far) in moored.drain(..) {
                        let Some(socket) = at.unmoor() else {
                            // The other worker may still look whether its peer is there.
                            far_ends.push(far);
                            continue;
                        };
                        KEPT.fetch_add(1, Ordering::Relaxed);
                        assert!(is_open(&socket), "closed by the other worker");
                    }
                }
            }
            for (at, far) in moored {
                KEPT.fetch_add(usize::from(at.unmoor().is_some()), Ordering::Relaxed);
                far_ends.push(far);
            }
            OVER.store(1, Ordering::Release);
            over.wait();
            rt::stop_worker();
        } else {
            ready.wait();
            let quay = AT.get().unwrap();
            while OVER.load(Ordering::Acquire) == 0 {
                if let Claimed::Socket(socket, note) = quay.claim(7, |_| true, drop) {
                    assert_eq!(note, 3);
                    assert!(socket.number() > 2);
                    CLAIMED.fetch_add(1, Ordering::Relaxed);
                }
            }
            over.wait();
            rt::stop_worker();
        }
    });
    let (claimed, kept) = (CLAIMED.load(Ordering::Relaxed), KEPT.load(Ordering::Relaxed));
    assert_eq!(claimed + kept, MOORED.load(Ordering::Relaxed), "{claimed} claimed, {kept} kept");
    assert!(kept > 0 && claimed > 0, "no race: {claimed} claimed, {kept} kept");
}

fn is_open(socket: &Socket) -> bool {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    matches!(socket.poll_send(&mut cx, b"x", false), std::task::Poll::Ready(Ok(1)))
}
