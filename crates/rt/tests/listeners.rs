//! Listening sockets that several workers or processes accept from: real sockets, real threads.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use rt::{Acceptor, Addr, ListenOptions, Listener, Runtime, WorkerSpec};

fn at(addr: &str) -> Listener {
    Listener::bind(&Addr::Inet(addr.parse().unwrap()), &ListenOptions::default()).unwrap()
}

/// A listener on a port by name: the kernel takes one that it chose itself back when it is given up. Its
/// address is this process's: no connection of another begins there meanwhile.
fn on_free_port() -> Listener {
    let [_, _, a, b] = std::process::id().to_be_bytes();
    let free = address(&at(&format!("127.9.{a}.{b}:0")));
    at(&free.to_string())
}

fn address(listener: &Listener) -> SocketAddr {
    listener.local_addr().unwrap().as_inet().unwrap()
}

/// Whether somebody accepts and keeps the connection: one that is shut down on the way ends at once.
fn is_served(to: SocketAddr) -> bool {
    let Ok(mut client) = TcpStream::connect(to) else { return false };
    client.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    client.read(&mut [0]).is_err()
}

/// Two workers that accept from one listener and go on in step with the test: the address, and what waits for
/// the others.
fn on_two(work: fn(usize, Acceptor, &Barrier)) -> (SocketAddr, Arc<Barrier>, Runtime) {
    let listener = on_free_port();
    let to = address(&listener);
    let step = Arc::new(Barrier::new(3));
    let steps = step.clone();
    let start = move |index| {
        let acceptor = listener.attach().unwrap();
        steps.wait();
        work(index, acceptor, &steps);
        rt::stop_worker();
    };
    let runtime = rt::start(vec![WorkerSpec::default(); 2], start).unwrap();
    // Both accept.
    step.wait();
    (to, step, runtime)
}

/// Two workers suspend and restore the same socket in any order, many times: in between nobody can connect,
/// and afterwards connections are whole.
#[test]
fn a_listener_that_two_workers_suspend_works_when_both_are_back() {
    let (to, step, runtime) = on_two(|index, acceptor, step| {
        for round in 0..20 {
            step.wait();
            if round % 2 == index {
                std::thread::yield_now();
            }
            acceptor.suspend().unwrap();
            acceptor.suspend().unwrap();
            step.wait();
            step.wait();
            acceptor.restore(16).unwrap();
            step.wait();
            step.wait();
        }
    });
    for _ in 0..20 {
        step.wait();
        step.wait();
        assert!(TcpStream::connect(to).is_err(), "the port is given up");
        step.wait();
        step.wait();
        assert!(is_served(to), "nothing is left of the pause");
        step.wait();
    }
    runtime.join();
}

/// One worker alone can't give the port up: the other one accepts from it.
#[test]
fn a_listener_that_one_of_two_workers_suspends_goes_on() {
    let (to, step, runtime) = on_two(|index, acceptor, step| {
        if index == 0 {
            acceptor.suspend().unwrap();
        }
        step.wait();
        step.wait();
        // The last one that accepted goes away.
        let acceptor = Some(acceptor).filter(|_| index == 0);
        step.wait();
        step.wait();
        if let Some(acceptor) = &acceptor {
            acceptor.restore(16).unwrap();
        }
        step.wait();
        step.wait();
    });
    step.wait();
    assert!(is_served(to));
    step.wait();
    step.wait();
    assert!(TcpStream::connect(to).is_err(), "nobody accepts any more");
    step.wait();
    step.wait();
    assert!(is_served(to));
    step.wait();
    runtime.join();
}

/// A worker that starts when another has suspended the listener already finds it so, and the port comes back
/// with it.
#[test]
fn a_worker_that_comes_late_to_a_suspended_listener_can_restore_it() {
    let listener = on_free_port();
    let to = address(&listener);
    let runtime = rt::start(vec![WorkerSpec::default()], move |_| {
        let first = listener.attach().unwrap();
        first.suspend().unwrap();
        let second = listener.attach().unwrap();
        assert!(second.is_suspended());
        assert!(TcpStream::connect(to).is_err());
        second.restore(16).unwrap();
        assert!(is_served(to));
        rt::stop_worker();
    })
    .unwrap();
    runtime.join();
}

/// Who stops leaves new connections to the one that began to listen last, before it closes.
#[test]
fn a_listener_that_yields_gets_no_new_connection() {
    for ip in ["127.0.0.1", "[::1]", "0.0.0.0", "[::]"] {
        let alone = at(&format!("{ip}:0"));
        assert!(!alone.yield_to_others(), "nobody else listens");
        let old = at(&format!("{ip}:0"));
        let others: Vec<Listener> = (0..2).map(|_| at(&address(&old).to_string())).collect();
        assert!(old.yield_to_others());
        let last: TcpListener = others[1].fd().unwrap().try_clone_to_owned().unwrap().into();
        let mut to = address(&old);
        if to.ip().is_unspecified() {
            to.set_ip(if to.is_ipv6() { "::1" } else { "127.0.0.1" }.parse().unwrap());
        }
        for _ in 0..50 {
            let client = TcpStream::connect(to).unwrap();
            let (_, peer) = last.accept().unwrap();
            assert_eq!(peer.port(), client.local_addr().unwrap().port());
        }
        // A socket that comes later begins with a clean slate: connections are shared again.
        let late = at(&address(&old).to_string());
        let late: TcpListener = late.fd().unwrap().try_clone_to_owned().unwrap().into();
        late.set_nonblocking(true).unwrap();
        let clients: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(to).unwrap()).collect();
        let taken = std::iter::from_fn(|| late.accept().ok()).count();
        assert!((1..clients.len()).contains(&taken), "{taken} of {} came to the newest", clients.len());
    }
}
