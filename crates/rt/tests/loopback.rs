//! The runtime on the kernel: real sockets on loopback, real threads.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use rt::{Addr, ConnectOptions, ListenOptions, Listener, Socket, WorkerSpec};

/// Runs `main` on one worker, and fails if that takes more than 20 seconds.
fn on_worker<F: Future<Output = ()> + 'static>(main: impl Fn() -> F + Send + Sync + 'static) {
    on_workers(1, move |_| {
        let main = main();
        rt::spawn(async move {
            main.await;
            rt::stop_worker();
        });
    });
}

/// Runs `init` on several workers, and fails if they don't end in 20 seconds.
fn on_workers(count: usize, init: impl Fn(usize) + Send + Sync + 'static) {
    let (done, end) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = rt::start(vec![WorkerSpec::default(); count], init).unwrap();
        runtime.join();
        done.send(()).unwrap();
    });
    if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(Duration::from_secs(20)) {
        panic!("the workers hang");
    }
    thread.join().unwrap();
}

fn listen() -> Listener {
    Listener::bind(&Addr::Inet("127.0.0.1:0".parse().unwrap()), &ListenOptions::default()).unwrap()
}

async fn echo(socket: Socket) -> io::Result<()> {
    let mut buf = vec![0; 4096];
    loop {
        match socket.recv(&mut buf).await? {
            0 => return Ok(()),
            n => socket.send_all(&buf[..n]).await?,
        }
    }
}

fn spawn_echo_server(listener: &Listener) {
    let acceptor = listener.attach().unwrap();
    rt::spawn(async move {
        loop {
            let (socket, _) = acceptor.accept().await.unwrap();
            rt::spawn(async move { drop(echo(socket).await) });
        }
    });
}

async fn recv_exactly(socket: &Socket, n: usize) -> Vec<u8> {
    let mut all = vec![0; n];
    let mut at = 0;
    while at < n {
        match socket.recv(&mut all[at..]).await.unwrap() {
            0 => panic!("the stream ended after {at} of {n} bytes"),
            got => at += got,
        }
    }
    all
}

#[test]
fn a_megabyte_comes_back_unchanged() {
    on_worker(|| async {
        let listener = listen();
        spawn_echo_server(&listener);
        let socket = Socket::connect(&listener.local_addr().unwrap(), &ConnectOptions::default()).unwrap();
        let socket = Rc::new(socket);
        let data: Rc<Vec<u8>> = Rc::new((0..1 << 20).map(|i| (i * 7 + i / 251) as u8).collect());
        let (writer, sent) = (socket.clone(), data.clone());
        rt::spawn(async move { writer.send_all(&sent).await.unwrap() });
        assert!(recv_exactly(&socket, data.len()).await == *data);
        socket.shutdown_write().unwrap();
        assert_eq!(socket.recv(&mut [0; 10]).await.unwrap(), 0);
    });
}

#[test]
fn a_refused_connection_says_so() {
    on_worker(|| async {
        let address = {
            let listener = listen();
            listener.local_addr().unwrap()
        };
        let socket = Socket::connect(&address, &ConnectOptions::default()).unwrap();
        assert_eq!(socket.connected().await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let socket = Socket::connect(&address, &ConnectOptions::default()).unwrap();
        let error = socket.send_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "sending straight away tells as well");
    });
}

#[test]
fn a_peer_that_leaves_an_idle_connection_is_noticed_without_reading() {
    on_worker(|| async {
        let (a, b) = Socket::pair().unwrap();
        b.send_all(b"last words").await.unwrap();
        rt::spawn(async move {
            rt::sleep(Duration::from_millis(5)).await;
            drop(b);
        });
        std::future::poll_fn(|cx| a.poll_hangup(cx)).await;
        assert_eq!(recv_exactly(&a, 10).await, b"last words");
        assert_eq!(a.recv(&mut [0; 4]).await.unwrap(), 0);
    });
}

#[test]
fn sleeps_last_as_long_as_asked_and_end_in_order() {
    on_worker(|| async {
        let ended = Rc::new(RefCell::new(Vec::new()));
        for ms in [30u64, 5, 20, 10] {
            let ended = ended.clone();
            rt::spawn(async move {
                let start = rt::now();
                rt::sleep(Duration::from_millis(ms)).await;
                assert!(rt::now().since(start) >= Duration::from_millis(ms));
                ended.borrow_mut().push(ms);
            });
        }
        rt::sleep(Duration::from_millis(40)).await;
        assert_eq!(*ended.borrow(), [5, 10, 20, 30]);
    });
}

#[test]
fn a_connection_moves_between_workers_with_its_unread_bytes() {
    on_workers(2, |index| {
        if index != 0 {
            return;
        }
        rt::spawn(async {
            let (a, b) = Socket::pair().unwrap();
            b.send_all(b"before").await.unwrap();
            let detached = a.detach().unwrap();
            rt::send_to(
                1,
                Box::new(move || {
                    rt::spawn(async move {
                        assert_eq!(rt::worker_index(), Some(1));
                        let a = detached.attach().unwrap();
                        assert_eq!(recv_exactly(&a, 6).await, b"before");
                        assert_eq!(recv_exactly(&a, 5).await, b"after");
                        a.send_all(b"thanks").await.unwrap();
                        rt::stop_worker();
                    });
                }),
            );
            b.send_all(b"after").await.unwrap();
            assert_eq!(recv_exactly(&b, 6).await, b"thanks");
            assert_eq!(b.recv(&mut [0; 1]).await.unwrap(), 0, "dropped with its task");
            rt::stop_worker();
        });
    });
}

#[test]
fn two_workers_share_a_listener() {
    let listener = Arc::new(listen());
    let seen = Arc::new(AtomicUsize::new(0));
    let total = seen.clone();
    on_workers(2, move |index| {
        let acceptor = listener.attach().unwrap();
        let seen = seen.clone();
        rt::spawn(async move {
            loop {
                let (socket, peer) = acceptor.accept().await.unwrap();
                assert!(peer.is_some());
                if seen.fetch_add(1, Ordering::SeqCst) + 1 == 100 {
                    rt::peers().stop_all();
                }
                rt::spawn(async move { drop(echo(socket).await) });
            }
        });
        if index == 0 {
            let address = listener.local_addr().unwrap();
            for _ in 0..100 {
                let address = address.clone();
                rt::spawn(async move {
                    let socket = Socket::connect(&address, &ConnectOptions::default()).unwrap();
                    socket.send_all(b"hi").await.unwrap();
                    recv_exactly(&socket, 2).await;
                });
            }
        }
    });
    assert_eq!(total.load(Ordering::SeqCst), 100);
}

#[test]
fn no_wake_up_between_workers_is_lost() {
    const ROUNDS: usize = 20_000;
    let bells: Arc<[rt::RemoteNotify; 2]> = Arc::default();
    let counts = Arc::new(Mutex::new([0usize; 2]));
    let result = counts.clone();
    on_workers(2, move |index| {
        let (bells, counts) = (bells.clone(), counts.clone());
        rt::spawn(async move {
            for round in 0..ROUNDS {
                if index == 0 {
                    bells[1].notify();
                }
                bells[index].notified().await;
                if index == 1 {
                    bells[0].notify();
                }
                counts.lock().unwrap()[index] = round + 1;
            }
            rt::stop_worker();
        });
    });
    assert_eq!(*result.lock().unwrap(), [ROUNDS; 2]);
}

#[test]
fn datagrams_arrive_and_a_closed_port_is_told_not_waited_for() {
    on_worker(|| async {
        let any = Addr::Inet("127.0.0.1:0".parse().unwrap());
        let receiver = rt::Datagram::bind(&any).unwrap();
        let address = receiver.local_addr().unwrap();
        let sender = rt::Datagram::connect(&address).unwrap();
        sender.try_send(b"one").unwrap();
        rt::Datagram::unbound(&address).unwrap().try_send_to(b"two", &address).unwrap();
        let mut buf = [0; 100];
        let (n, from) = receiver.recv(&mut buf).await.unwrap();
        assert_eq!((&buf[..n], from), (&b"one"[..], sender.local_addr().ok()));
        assert_eq!(receiver.recv(&mut buf).await.unwrap().0, 3);
        drop(receiver);
        sender.try_send(b"three").unwrap();
        assert_eq!(sender.try_send(b"four").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_full_log_pipe_is_an_error_and_not_a_wait() {
    let (reader, writer) = io::pipe().unwrap();
    let log = rt::FdWriter::new(std::os::fd::AsFd::as_fd(&writer)).unwrap();
    let line = [b'x'; 1000];
    let mut taken = 0;
    let error = loop {
        match log.try_write(&line) {
            Ok(n) => taken += n,
            Err(e) => break e,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert!(taken > 10_000);
    drop(reader);
}

#[test]
fn splice_moves_a_stream_whole() {
    on_worker(|| async {
        let (source, from) = Socket::pair().unwrap();
        let (to, sink) = Socket::pair().unwrap();
        let data: Rc<Vec<u8>> = Rc::new((0..500_000).map(|i| (i / 3) as u8).collect());
        let sent = data.clone();
        rt::spawn(async move { source.send_all(&sent).await.unwrap() });
        rt::spawn(async move {
            let mut pipe = rt::Pipe::new().unwrap();
            while std::future::poll_fn(|cx| pipe.poll_splice_in(cx, &from, 1 << 20)).await.unwrap() > 0 {
                while !pipe.is_empty() {
                    std::future::poll_fn(|cx| pipe.poll_splice_out(cx, &to, false)).await.unwrap();
                }
            }
        });
        assert!(recv_exactly(&sink, data.len()).await == *data);
        assert_eq!(sink.recv(&mut [0; 1]).await.unwrap(), 0);
    });
}

#[test]
fn unix_paths_and_abstract_names_are_listened_on_and_tell_who_connects() {
    on_worker(|| async {
        let folder = std::env::temp_dir().join(format!("rt-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let name = format!("rt-test-{}", std::process::id()).into_bytes();
        let addrs = [
            Addr::Unix(path.to_str().unwrap().as_bytes().to_vec()),
            Addr::Abstract { name: name.clone(), padded: true },
            Addr::Abstract { name, padded: false },
        ];
        for addr in addrs {
            let options = ListenOptions { mode: Some(0o600), ..ListenOptions::default() };
            let listener = Listener::bind(&addr, &options).unwrap();
            spawn_echo_server(&listener);
            let socket = Socket::connect(&addr, &ConnectOptions::default()).unwrap();
            socket.send_all(b"hi").await.unwrap();
            assert_eq!(recv_exactly(&socket, 2).await, b"hi");
            assert_eq!(socket.peer_credentials().unwrap().pid, std::process::id() as i32);
        }
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary name is left");
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
fn a_unix_socket_whose_other_end_closes_at_once_was_connected() {
    on_worker(|| async {
        let path = std::env::temp_dir().join(format!("rt-closes-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let addr = Addr::Unix(path.to_str().unwrap().as_bytes().to_vec());
        let socket = Socket::connect(&addr, &ConnectOptions::default()).unwrap();
        drop(listener.accept().unwrap());
        poll_fn(|cx| socket.poll_connected(cx)).await.unwrap();
        assert_eq!(socket.recv(&mut [0]).await.unwrap(), 0);
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn connections_passed_through_a_socket_pair_are_accepted() {
    on_worker(|| async {
        let (ours, theirs) = rt::sys::socket_pair().unwrap();
        spawn_echo_server(&Listener::from_sockpair(ours).unwrap());
        for _ in 0..3 {
            let socket = Socket::connect_sockpair(std::os::fd::AsFd::as_fd(&theirs)).unwrap();
            socket.send_all(b"hi").await.unwrap();
            assert_eq!(recv_exactly(&socket, 2).await, b"hi");
        }
    });
}

#[test]
fn a_tcp_connection_has_figures_and_takes_its_options() {
    on_worker(|| async {
        let listener = listen();
        spawn_echo_server(&listener);
        let options = ConnectOptions {
            source: Some(Addr::Inet("127.0.0.2:0".parse().unwrap())),
            keepalive: Some(rt::Keepalive { count: Some(3), ..Default::default() }),
            user_timeout: Some(Duration::from_secs(5)),
            mss: Some(1000),
            tos: Some(0x10),
            ..ConnectOptions::default()
        };
        let socket = Socket::connect(&listener.local_addr().unwrap(), &options).unwrap();
        socket.send_all(b"hi").await.unwrap();
        recv_exactly(&socket, 2).await;
        let info = socket.tcp_info().unwrap();
        assert!(info.rtt > Duration::ZERO && info.rtt < Duration::from_secs(1), "{info:?}");
        assert!(info.snd_mss <= 1000);
        let local = socket.local_addr().unwrap().as_inet().unwrap();
        assert_eq!(local.ip().to_string(), "127.0.0.2");
        assert_eq!(socket.peer_addr().unwrap(), listener.local_addr().unwrap());
        socket.set_linger0().unwrap();
    });
}

#[test]
fn little_waits_in_the_kernel_where_little_may() {
    on_worker(|| async {
        let listener = listen();
        let acceptor = listener.attach().unwrap();
        let mut taken = Vec::new();
        // The limit that was set, and whether the socket is to stay close to its peer, which is near.
        for (unsent, close) in [(None, false), (Some(4096), false), (None, true), (Some(0), true)] {
            let options = ConnectOptions { unsent, ..ConnectOptions::default() };
            let ours = Socket::connect(&listener.local_addr().unwrap(), &options).unwrap();
            // Nobody reads what is sent.
            let _theirs = acceptor.accept().await.unwrap();
            ours.connected().await.unwrap();
            if close {
                ours.hold_back_if_near();
            }
            let mut sent = 0;
            while let Some(Ok(n)) = ours.try_send(&[0; 16384], false) {
                sent += n;
            }
            taken.push(sent);
        }
        assert!(taken[1] < taken[0], "a limit: {taken:?}");
        assert!(taken[2] < taken[0], "close by: {taken:?}");
        assert_eq!(taken[3], taken[0], "no limit was asked for: {taken:?}");
    });
}

#[test]
fn a_connection_that_is_to_reset_does_so_only_while_nobody_has_closed() {
    on_worker(|| async {
        let listener = listen();
        let acceptor = listener.attach().unwrap();
        let pair = async || {
            let ours = Socket::connect(&listener.local_addr().unwrap(), &ConnectOptions::default()).unwrap();
            let (theirs, _) = acceptor.accept().await.unwrap();
            ours.connected().await.unwrap();
            ours.reset_on_close();
            (ours, theirs)
        };
        let (ours, theirs) = pair().await;
        drop(ours);
        let error = theirs.recv(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

        let (ours, theirs) = pair().await;
        ours.shutdown_write().unwrap();
        drop(ours);
        assert_eq!(theirs.recv(&mut [0; 8]).await.unwrap(), 0);
        theirs.send_all(b"late").await.unwrap_or_default();

        // More than the peer's kernel takes: the rest is not destroyed by the close.
        let (ours, theirs) = pair().await;
        let (mut sent, block) = (0, vec![7; 64 << 10]);
        ours.connected().await.unwrap();
        let mut full = std::pin::pin!(rt::sleep(Duration::from_millis(50)));
        poll_fn(|cx| {
            while let Poll::Ready(n) = ours.poll_send(cx, &block, false) {
                sent += n.unwrap();
            }
            full.as_mut().poll(cx)
        })
        .await;
        drop(ours);
        let (mut came, mut buf) = (0, vec![0; 64 << 10]);
        loop {
            match theirs.recv(&mut buf).await.unwrap() {
                0 => break,
                n => came += n,
            }
        }
        assert_eq!(came, sent);

        let (ours, theirs) = pair().await;
        theirs.shutdown_write().unwrap();
        assert_eq!(ours.recv(&mut [0; 8]).await.unwrap(), 0);
        drop(ours);
        assert_eq!(theirs.recv(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn a_paused_acceptor_takes_nothing_until_it_resumes() {
    on_worker(|| async {
        let listener = listen();
        let acceptor = Rc::new(listener.attach().unwrap());
        acceptor.pause().unwrap();
        let taken = Rc::new(std::cell::Cell::new(0));
        let (accepting, count) = (acceptor.clone(), taken.clone());
        rt::spawn(async move {
            loop {
                drop(accepting.accept().await.unwrap());
                count.set(count.get() + 1);
            }
        });
        let mut sockets = Vec::new();
        for _ in 0..20 {
            sockets
                .push(Socket::connect(&listener.local_addr().unwrap(), &ConnectOptions::default()).unwrap());
        }
        for socket in &sockets {
            socket.connected().await.unwrap();
        }
        assert_eq!(taken.get(), 0);
        acceptor.resume().unwrap();
        for socket in &sockets {
            assert_eq!(socket.recv(&mut [0; 1]).await.unwrap(), 0, "accepted and closed");
        }
        assert_eq!(taken.get(), 20);
    });
}

#[test]
fn connections_are_signed_with_the_same_key_or_not_made() {
    on_worker(|| async {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let plain =
                Listener::bind(&Addr::Inet(address.parse().unwrap()), &ListenOptions::default()).unwrap();
            let options =
                ListenOptions { md5sig: Some(b"key".to_vec()), save_syn: Some(1), ..Default::default() };
            let descriptor = plain.fd().unwrap().try_clone_to_owned().unwrap();
            let acceptor = Listener::adopt(descriptor, &options).unwrap().attach().unwrap();
            let mut to = plain.local_addr().unwrap().as_inet().unwrap();
            if to.ip().is_unspecified() {
                to.set_ip("127.0.0.1".parse().unwrap());
            }
            let connect = |key: Option<&[u8]>| {
                let options = ConnectOptions { md5sig: key.map(<[u8]>::to_vec), ..Default::default() };
                Socket::connect(&Addr::Inet(to), &options).unwrap()
            };
            let (wrong, none) = (connect(Some(b"other")), connect(None));
            let right = connect(Some(b"key"));
            right.connected().await.unwrap();
            let (accepted, peer) = acceptor.accept().await.unwrap();
            let port = |addr: &Addr| addr.as_inet().map(|a| a.port());
            assert_eq!(peer.as_ref().and_then(port), right.local_addr().ok().as_ref().and_then(port));
            assert!(accepted.saved_syn().unwrap().len() > 40);
            assert!(!wrong.is_hung_up() && wrong.take_error().unwrap().is_none(), "its packets are dropped");
            drop(none);
        }
    });
}

/// Whoever has a lot to do gives way: what comes meanwhile for others is noticed after each of its shares.
#[test]
fn long_work_in_shares_keeps_no_newcomer_waiting() {
    on_worker(|| async {
        let (near, far) = Socket::pair().unwrap();
        let shares = Rc::new(AtomicUsize::new(0));
        let done = shares.clone();
        rt::spawn(async move {
            while done.fetch_add(1, Ordering::Relaxed) < 10_000 {
                rt::yield_now().await;
            }
        });
        let mut buf = [0; 8];
        near.send_all(b"new").await.unwrap();
        assert_eq!(far.recv(&mut buf).await.unwrap(), 3);
        assert!(shares.load(Ordering::Relaxed) <= 3, "{shares:?} shares before the newcomer had its turn");
    });
}
