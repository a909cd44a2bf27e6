use super::*;
use crate::{Addr, ConnectOptions, ListenOptions, Listener, WorkerSpec};
use std::future::poll_fn;

const ALERT: u8 = 21;

fn key(cipher: Cipher, secret: &[u8], tls13: bool) -> RecordKey<'_> {
    RecordKey { tls13, cipher, key: secret, iv: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], seq: 0x0102 }
}

#[test]
fn keys_are_laid_out_as_the_kernel_reads_them() {
    let info = Info::of(&key(Cipher::Aes128Gcm, &[0xAA; 16], true)).unwrap();
    assert_eq!(info.len, 40);
    assert_eq!(info.filled()[..2], 0x0304u16.to_ne_bytes());
    assert_eq!(info.filled()[2..4], 51u16.to_ne_bytes());
    assert_eq!(info.filled()[4..12], [5, 6, 7, 8, 9, 10, 11, 12], "what counts comes first");
    assert_eq!(info.filled()[12..28], [0xAA; 16]);
    assert_eq!(info.filled()[28..32], [1, 2, 3, 4], "the salt stands behind the key");
    assert_eq!(info.filled()[32..], [0, 0, 0, 0, 0, 0, 1, 2]);

    let info = Info::of(&key(Cipher::Aes256Gcm, &[0xBB; 32], false)).unwrap();
    assert_eq!((info.len, &info.filled()[..2]), (56, &0x0303u16.to_ne_bytes()[..]));

    let info = Info::of(&key(Cipher::Chacha20Poly1305, &[0xCC; 32], true)).unwrap();
    assert_eq!(info.len, 56);
    assert_eq!(info.filled()[4..16], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "it has no salt");
    assert_eq!(info.filled()[48..], [0, 0, 0, 0, 0, 0, 1, 2]);

    assert!(Info::of(&key(Cipher::Aes128Gcm, &[0; 32], true)).is_none(), "a key of another cipher");
}

#[test]
fn what_is_no_key_is_forgotten() {
    let mut info = Info::of(&key(Cipher::Aes128Gcm, &[0xAA; 16], true)).unwrap();
    info.forget();
    assert_eq!(info.bytes, [0; 56]);
}

/// Two ends of a TCP connection, on a worker.
fn on_connection<F: Future<Output = ()> + 'static>(
    test: impl Fn(Socket, Socket) -> F + Send + Sync + 'static,
) {
    let test = std::sync::Arc::new(test);
    let runtime = crate::start(vec![WorkerSpec::default()], move |_| {
        let test = test.clone();
        crate::spawn(async move {
            let listener =
                Listener::bind(&Addr::Inet("127.0.0.1:0".parse().unwrap()), &ListenOptions::default())
                    .unwrap();
            let acceptor = listener.attach().unwrap();
            let a = Socket::connect(&listener.local_addr().unwrap(), &ConnectOptions::default()).unwrap();
            let (b, _) = acceptor.accept().await.unwrap();
            a.connected().await.unwrap();
            test(a, b).await;
            crate::stop_worker();
        });
    })
    .unwrap();
    runtime.join();
}

#[test]
fn a_kernel_without_tls_says_so_and_leaves_the_connection_alone() {
    on_connection(|a, b| async move {
        if support() == Support::None {
            assert!(a.attach_tls().is_err());
            assert!(a.offload(Direction::Send, &key(Cipher::Aes128Gcm, &[0; 16], true)).is_err());
        }
        a.send_all(b"plain").await.unwrap();
        let mut buf = [0; 10];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 5);
    });
}

#[test]
fn the_kernel_carries_data_and_alerts() {
    if support() == Support::None {
        println!("skipped: this kernel has no TLS (CONFIG_TLS, module tls)");
        return;
    }
    on_connection(|a, b| async move {
        for (cipher, secret) in [(Cipher::Aes128Gcm, &[7; 16][..])] {
            for socket in [&a, &b] {
                socket.attach_tls().unwrap();
                for direction in [Direction::Send, Direction::Receive] {
                    socket.offload(direction, &key(cipher, secret, true)).unwrap();
                }
            }
        }
        assert_eq!(a.try_send_data(b"hel", b"lo").unwrap().unwrap(), 5);
        assert_eq!(a.try_send_record(ALERT, &[1, 0]).unwrap().unwrap(), 2);
        let mut buf = [0; 10];
        let mut read = async || {
            poll_fn(|cx| {
                loop {
                    match b.try_recv_record(&mut buf) {
                        Some(read) => return Poll::Ready(read.map(|(kind, n)| (kind, buf[..n].to_vec()))),
                        None if b.poll_readable(cx).is_pending() => return Poll::Pending,
                        None => {}
                    }
                }
            })
            .await
            .unwrap()
        };
        assert_eq!(read().await, (DATA, b"hello".to_vec()));
        assert_eq!(read().await, (ALERT, vec![1, 0]));
        a.shutdown_write().unwrap();
        assert_eq!(read().await, (0, vec![]), "the end of the stream");
    });
}

#[test]
fn room_comes_back_when_the_peer_reads_and_a_duplicate_ends_the_connection() {
    on_connection(|a, b| async move {
        assert!(a.has_room());
        let piece = vec![0; 65536];
        let mut sent = 0;
        while let Some(n) = a.try_send(&piece, false) {
            sent += n.unwrap();
        }
        assert!(!a.has_room());
        a.reset_on_close();
        let other = a.duplicate().unwrap();
        drop(a);
        let end = crate::Notify::new();
        let (done, told) = (std::rc::Rc::new(end), std::rc::Rc::new(std::cell::Cell::new(0)));
        let (seen, count) = (done.clone(), told.clone());
        crate::spawn(async move {
            let mut buf = vec![0; 65536];
            loop {
                match b.recv(&mut buf).await.unwrap() {
                    0 => break,
                    n => count.set(count.get() + n),
                }
            }
            seen.notify();
        });
        poll_fn(|cx| other.poll_room(cx)).await;
        drop(other);
        done.notified().await;
        assert_eq!(told.get(), sent, "nothing is lost, and no reset came");
    });
}
