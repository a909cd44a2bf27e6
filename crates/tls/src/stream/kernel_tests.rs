//! Wires that make records themselves, as a kernel does, of the kinds that there are.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;

use rt::{Cipher, Direction, RecordKey, Support};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion};

use super::{Ahead, FATAL, KEY_UPDATE, Kept, Stream, Wire};
use crate::Handshake;
use crate::client::{self, Connector};
use crate::record::{self, Key, content};
use crate::room::Room;
use crate::server;
use crate::suites::{Policy, Version};
use crate::tests::{End, Folder, Pipe, Testable, acceptor, carry, load, meet, own};

const EBADMSG: i32 = 74;
const EKEYEXPIRED: i32 = 127;

/// An end whose records the "kernel" makes once it has the keys.
struct Kernel<'p> {
    end: End<'p>,
    support: Support,
    tx: RefCell<Option<Key>>,
    rx: RefCell<Option<Key>>,
    input: RefCell<Room>,
    /// Opened and not yet read.
    opened: RefCell<VecDeque<(u8, Vec<u8>)>>,
    /// The peer said that its next record has another key.
    expired: Cell<bool>,
    /// A record could not be opened: nothing can be sent any more.
    aborted: Cell<bool>,
    /// Sealed and not yet sent records can't be pushed out.
    full: Cell<bool>,
}

impl<'p> Kernel<'p> {
    fn new(end: End<'p>, support: Support) -> Kernel<'p> {
        Kernel {
            end,
            support,
            tx: RefCell::default(),
            rx: RefCell::default(),
            input: RefCell::default(),
            opened: RefCell::default(),
            expired: Cell::new(false),
            aborted: Cell::new(false),
            full: Cell::new(false),
        }
    }

    fn seal(&self, kind: u8, first: &[u8], second: &[u8]) -> Option<io::Result<usize>> {
        if self.aborted.get() {
            return Some(Err(io::Error::from_raw_os_error(EBADMSG)));
        }
        let mut room = Room::default();
        let mut key = self.tx.borrow_mut();
        assert!(key.as_mut().expect("no key").seal(kind, first, second, &mut room));
        self.end.to.borrow_mut().bytes.extend(room.filled());
        Some(Ok(first.len() + second.len()))
    }

    /// Opens the next record, as soon as it is there whole; 0 at the end.
    fn open(&self) -> Option<io::Result<(u8, Vec<u8>)>> {
        let mut room = self.input.borrow_mut();
        loop {
            if let Some(len) = record::whole(room.filled()).unwrap() {
                if self.expired.get() {
                    return Some(Err(io::Error::from_raw_os_error(EKEYEXPIRED)));
                }
                let bytes = &mut room.filled_mut()[..len];
                let opened = self.rx.borrow_mut().as_mut().expect("no key").open(bytes);
                let Ok((kind, range)) = opened else {
                    self.aborted.set(true);
                    return Some(Err(io::Error::from_raw_os_error(EBADMSG)));
                };
                let plain = bytes[range].to_vec();
                room.consume(len);
                self.expired.set(kind == content::HANDSHAKE && plain.first() == Some(&KEY_UPDATE));
                return Some(Ok((kind, plain)));
            }
            room.compact();
            match self.end.recv(room.spare_mut())?.unwrap() {
                0 => return Some(Ok((0, Vec::new()))),
                n => room.advance(n),
            }
        }
    }
}

impl Wire for Kernel<'_> {
    fn recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        assert!(self.rx.borrow().is_none(), "read past the kernel");
        self.end.recv(buf)
    }

    fn send(&self, data: &[u8], more: bool) -> Option<io::Result<usize>> {
        assert!(self.tx.borrow().is_none(), "sealed records would be sealed again");
        self.end.send(data, more)
    }

    fn attach(&self) -> Support {
        self.support
    }

    fn offload(&self, direction: Direction, key: &RecordKey<'_>) -> io::Result<()> {
        let place = if direction == Direction::Send { &self.tx } else { &self.rx };
        if place.borrow().is_some() && self.support != Support::Renewable {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let version = if key.tls13 { ProtocolVersion::TLSv1_3 } else { ProtocolVersion::TLSv1_2 };
        let mut secret = [0; 32];
        secret[..key.key.len()].copy_from_slice(key.key);
        let (secret, iv) = (AeadKey::from(secret), Iv::new(*key.iv));
        let secrets = match key.cipher {
            Cipher::Aes128Gcm => ConnectionTrafficSecrets::Aes128Gcm { key: secret, iv },
            Cipher::Aes256Gcm => ConnectionTrafficSecrets::Aes256Gcm { key: secret, iv },
            Cipher::Chacha20Poly1305 => ConnectionTrafficSecrets::Chacha20Poly1305 { key: secret, iv },
        };
        *place.borrow_mut() = Key::new(version, key.seq, &secrets);
        if direction == Direction::Receive {
            self.expired.set(false);
        }
        Ok(())
    }

    fn recv_record(&self, buf: &mut [u8]) -> Option<io::Result<(u8, usize)>> {
        let mut opened = self.opened.borrow_mut();
        if opened.is_empty() {
            match self.open()? {
                Ok((0, _)) => return Some(Ok((0, 0))),
                Ok(record) => opened.push_back(record),
                Err(e) => return Some(Err(e)),
            }
        }
        let (kind, plain) = opened.front_mut().unwrap();
        let n = plain.len().min(buf.len());
        buf[..n].copy_from_slice(&plain[..n]);
        plain.drain(..n);
        let kind = *kind;
        opened.retain(|(_, plain)| !plain.is_empty());
        Some(Ok((kind, n)))
    }

    fn send_record(&self, kind: u8, data: &[u8]) -> Option<io::Result<usize>> {
        self.seal(kind, data, &[])
    }

    fn send_data(&self, first: &[u8], second: &[u8]) -> Option<io::Result<usize>> {
        // What is not taken at once, the second piece, is offered again.
        match first {
            [] => self.seal(content::DATA, &second[..second.len().min(9000)], &[]),
            first => self.seal(content::DATA, first, &[]),
        }
    }

    fn forget_error(&self) {
        self.aborted.set(false);
    }

    fn has_room(&self) -> bool {
        !self.full.get()
    }
}

impl Testable for Kernel<'_> {
    fn hang_up(&self) {
        self.end.hang_up();
    }
}

const SUITES: [(Version, &str); 6] = [
    (Version::Tls12, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (Version::Tls12, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (Version::Tls12, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    (Version::Tls13, "TLS_AES_128_GCM_SHA256"),
    (Version::Tls13, "TLS_AES_256_GCM_SHA384"),
    (Version::Tls13, "TLS_CHACHA20_POLY1305_SHA256"),
];

fn policy((version, suite): (Version, &str)) -> Policy {
    let mut policy = Policy { min: Some(version), max: Some(version), ..Policy::default() };
    match version {
        Version::Tls13 => policy.ciphersuites = Some(suite.into()),
        _ => policy.ciphers = Some(suite.into()),
    }
    policy
}

/// A client without and a server with `ktls`, through a wire of pieces of `step` bytes.
fn established(
    suite: (Version, &str),
    step: usize,
    support: Support,
    test: impl FnOnce((&mut Stream, &End<'_>), (&mut Stream, &Kernel<'_>)),
) {
    let folder = Folder::new(&format!("ktls-{}-{step}-{support:?}", suite.1));
    let (cert, key) = own(&["localhost"]);
    let identity = load(&folder, "a.pem", &format!("{key}{cert}"));
    let rules = server::Rules { policy: policy(suite), ktls: true, ..server::Rules::default() };
    let accept = acceptor(&[identity], &rules, false);
    let connect = Connector::new(&client::Rules::default()).unwrap().0;
    let (up, down) = (RefCell::<Pipe>::default(), RefCell::default());
    let here = End { from: &down, to: &up, step, most: 100_000 };
    let there = Kernel::new(End { from: &up, to: &down, step, most: 100_000 }, support);
    let begun = Handshake::connect(&connect, None, None).unwrap();
    let (c, s) = meet(begun, Handshake::accept(accept, b""), &here, &there);
    let (mut c, mut s) = (c.unwrap().0, s.unwrap().0);
    test((&mut c, &here), (&mut s, &there));
}

/// Tells the peer of another key, and takes it; `ask`: the peer shall have another one, too.
fn update(stream: &mut Stream, ask: bool) {
    stream.queue(content::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, u8::from(ask)]);
    let Kept::Client(conn) = &mut stream.kept else { panic!("no client") };
    let fresh = conn.update_tx_secret().unwrap();
    assert!(stream.renew_tx(fresh));
}

#[test]
fn data_arrive_whole_whoever_makes_the_records() {
    let data: Vec<u8> = (0..100_000u32).map(|n| (n * 7 % 251) as u8).collect();
    for suite in SUITES {
        for step in [1, 700, 100_000] {
            for support in [Support::None, Support::Once, Support::Renewable] {
                established(suite, step, support, |(c, here), (s, there)| {
                    let most = if step == 1 { 20_000 } else { data.len() };
                    for _ in 0..2 {
                        assert_eq!(carry((c, here), (s, there), &data[..most]), &data[..most]);
                        assert_eq!(carry((s, there), (c, here), &data[..most]), &data[..most]);
                    }
                    assert_eq!(
                        there.tx.borrow().is_some(),
                        support != Support::None,
                        "{suite:?} {support:?}"
                    );
                    // A key that can't be replaced might have to be, in TLS 1.3.
                    let opens = support == Support::Renewable
                        || support == Support::Once && suite.0 == Version::Tls12;
                    assert_eq!(there.rx.borrow().is_some(), opens, "{suite:?} {support:?}");
                    assert_eq!((s.gives_plain(), s.takes_plain()), (opens, support != Support::None));
                    c.close(here);
                    assert_eq!(s.try_recv(there, &mut [0; 10]).unwrap().unwrap(), 0, "close_notify");
                    assert!(!s.gives_plain(), "nothing comes any more");
                    s.close(there);
                    assert!(!s.takes_plain());
                    assert_eq!(c.try_recv(here, &mut [0; 10]).unwrap().unwrap(), 0, "close_notify");
                });
            }
        }
    }
}

#[test]
fn what_was_read_with_the_handshake_is_opened_here() {
    for suite in [SUITES[0], SUITES[5]] {
        established(suite, 100_000, Support::Renewable, |(c, here), (s, there)| {
            assert!(c.try_recv(here, &mut [0; 10]).is_none());
            // Two records and a half are there before the kernel is: it begins with the fourth.
            for _ in 0..3 {
                assert_eq!(c.try_send(here, b"0123456789", b"", false).unwrap().unwrap(), 10);
            }
            let half = there.end.from.borrow_mut().bytes.split_off(70);
            let mut room = Room::default();
            room.push(there.end.from.borrow_mut().bytes.make_contiguous());
            there.end.from.borrow_mut().bytes = half;
            s.input = Some(room);
            let mut got = Vec::new();
            let mut buf = [0; 7];
            while got.len() < 30 {
                let n = s.try_recv(there, &mut buf).unwrap().unwrap();
                got.extend_from_slice(&buf[..n]);
            }
            assert_eq!(got, b"012345678901234567890123456789");
            assert!(s.try_recv(there, &mut buf).is_none());
            assert!(there.rx.borrow().is_some() && s.gives_plain());
        });
    }
}

#[test]
fn keys_are_replaced_on_both_sides() {
    for suite in &SUITES[3..] {
        for support in [Support::Once, Support::Renewable] {
            established(*suite, 100_000, support, |(c, here), (s, there)| {
                assert_eq!(carry((s, there), (c, here), b"tickets"), b"tickets");
                for _ in 0..3 {
                    assert_eq!(carry((c, here), (s, there), b"before"), b"before");
                    update(c, false);
                    assert_eq!(carry((c, here), (s, there), b"after"), b"after");
                    assert_eq!(carry((s, there), (c, here), b"answer"), b"answer");
                }
                update(c, true);
                assert_eq!(carry((c, here), (s, there), b"after"), b"after");
                assert!(!s.takes_plain(), "another key comes first");
                if support == Support::Renewable {
                    assert_eq!(carry((s, there), (c, here), b"answer"), b"answer");
                    assert!(s.takes_plain());
                    assert_eq!(carry((s, there), (c, here), b"more"), b"more");
                } else {
                    // No other key is to be had: no data may follow, and the client learns that.
                    assert!(s.try_send(there, b"answer", b"", false).unwrap().is_err());
                    assert!(c.try_recv(here, &mut [0; 10]).unwrap().is_err());
                }
            });
        }
    }
}

#[test]
fn a_changed_byte_ends_the_connection_with_an_alert_from_the_kernel() {
    for suite in [SUITES[0], SUITES[3]] {
        established(suite, 100_000, Support::Renewable, |(c, here), (s, there)| {
            assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
            assert_eq!(carry((c, here), (s, there), b"hi"), b"hi");
            assert_eq!(c.try_send(here, b"hello", b"", false).unwrap().unwrap(), 5);
            *there.end.from.borrow_mut().bytes.back_mut().unwrap() ^= 1;
            assert!(s.try_recv(there, &mut [0; 10]).unwrap().is_err());
            assert!(s.try_send(there, b"x", b"", false).unwrap().is_err());
            assert!(!s.takes_plain() && !s.gives_plain());
            assert!(c.try_recv(here, &mut [0; 10]).unwrap().is_err());
        });
    }
}

#[test]
fn alerts_come_in_pieces_and_renegotiation_is_refused() {
    established(SUITES[0], 100_000, Support::Once, |(c, here), (s, there)| {
        assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
        assert_eq!(carry((c, here), (s, there), b"hi"), b"hi");
        c.close(here);
        assert_eq!(s.try_recv(there, &mut [0; 1]).unwrap().unwrap(), 0, "room for a byte is enough");
    });
    established(SUITES[0], 100_000, Support::Once, |(c, here), (s, there)| {
        assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
        assert_eq!(carry((c, here), (s, there), b"hi"), b"hi");
        // The beginning of another ClientHello.
        c.queue(content::HANDSHAKE, &[1, 0, 0, 4, 3, 3, 0, 0]);
        assert!(c.flush(here, false).unwrap().is_ok());
        assert!(s.try_recv(there, &mut [0; 10]).unwrap().is_err());
        assert!(c.try_recv(here, &mut [0; 10]).unwrap().is_err());
    });
}

#[test]
fn what_the_kernel_opens_is_hidden_also_in_the_midst_of_a_message() {
    for suite in [SUITES[0], SUITES[5]] {
        established(suite, 100_000, Support::Renewable, |(c, here), (s, there)| {
            assert_eq!(carry((c, here), (s, there), b"data"), b"data");
            assert_eq!((s.look(there), s.gives_plain()), (Some(Ahead::Hidden), true));
            c.queue(content::HANDSHAKE, &[KEY_UPDATE]);
            c.flush(here, false).unwrap().unwrap();
            assert!(s.try_recv(there, &mut [0; 10]).is_none());
            assert_eq!((s.look(there), s.gives_plain()), (Some(Ahead::Hidden), false));
            c.close(here);
            assert_eq!(s.look(there), Some(Ahead::Hidden));
        });
    }
}

#[test]
fn records_without_data_are_counted() {
    established(SUITES[3], 100_000, Support::Renewable, |(c, here), (s, there)| {
        assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
        assert_eq!(carry((c, here), (s, there), b"hi"), b"hi");
        for _ in 0..40 {
            c.queue(content::ALERT, &[1, super::USER_CANCELED]);
        }
        assert!(c.flush(here, false).unwrap().is_ok());
        assert!(s.try_recv(there, &mut [0; 10]).unwrap().is_err());
    });
}

#[test]
fn a_kernel_that_holds_records_back_is_left_time() {
    established(SUITES[3], 100_000, Support::Renewable, |(c, here), (s, there)| {
        assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
        assert!(!s.must_drain(there));
        there.full.set(true);
        assert!(s.must_drain(there));
        s.leave_close();
        assert!(!s.must_drain(there));
        s.close(there);
        assert!(c.try_recv(here, &mut [0; 10]).is_none(), "whoever was left with it has not closed yet");
        super::say_closed(there);
        assert_eq!(c.try_recv(here, &mut [0; 10]).unwrap().unwrap(), 0);
    });
    established(SUITES[3], 100_000, Support::None, |_, (s, there)| {
        there.full.set(true);
        assert!(!s.must_drain(there), "what is sealed here was sent");
    });
}

#[test]
fn records_keep_to_the_configured_size_and_no_data_goes_past() {
    established(SUITES[3], 100_000, Support::Renewable, |(c, here), (s, there)| {
        s.set_sizes(super::Sizes { hard: 500, ..super::Sizes::default() });
        let data = [9; 3000];
        assert_eq!(carry((s, there), (c, here), &data), data);
        assert_eq!(s.try_send(there, &data, b"", false).unwrap().unwrap(), 500);
        assert!(!s.takes_plain());
    });
}

#[test]
fn a_worn_key_is_replaced_or_ends_the_connection() {
    established(SUITES[3], 100_000, Support::Renewable, |(c, here), (s, there)| {
        assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
        s.passed((1 << 24) * 16384 / 2);
        assert!(!s.takes_plain(), "the key is due");
        assert!(s.try_refresh(there).unwrap().is_ok());
        assert!(s.takes_plain());
        assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
    });
    established(SUITES[0], 100_000, Support::Once, |(c, here), (s, there)| {
        assert_eq!(carry((s, there), (c, here), b"hi"), b"hi");
        s.passed((1 << 24) * 16384);
        assert!(s.try_send(there, b"more", b"", false).unwrap().is_err());
        assert!(s.try_refresh(there).unwrap().is_err());
        s.say(there, content::ALERT, &[FATAL, 80]);
        assert!(c.try_recv(here, &mut [0; 10]).unwrap().is_err(), "alerts still go");
    });
}

#[test]
fn early_data_are_over_before_the_kernel_begins() {
    let folder = Folder::new("ktls-early");
    let (cert, key) = own(&["localhost"]);
    let identity = load(&folder, "a.pem", &format!("{key}{cert}"));
    let alpn = vec![b"http/1.1".to_vec()];
    let lets = |early_data| {
        let rules = server::Rules { early_data, ktls: true, alpn: alpn.clone(), ..server::Rules::default() };
        acceptor(std::slice::from_ref(&identity), &rules, false)
    };
    let (takes, refuses) = (lets(15360), lets(0));
    let rules =
        client::Rules { early_data: true, ktls: true, alpn: alpn.clone(), ..client::Rules::default() };
    let connect = Connector::new(&rules).unwrap().0;
    for (accept, early) in [(&takes, false), (&takes, true), (&takes, true), (&refuses, true)] {
        let (up, down) = (RefCell::<Pipe>::default(), RefCell::default());
        let (step, most) = (700, 100_000);
        let here = Kernel::new(End { from: &down, to: &up, step, most }, Support::Renewable);
        let there = Kernel::new(End { from: &up, to: &down, step, most }, Support::Renewable);
        let begun = Handshake::connect_early(&connect, None, None, true).unwrap();
        let accept = Handshake::accept(accept.clone(), b"");
        let (mut c, mut s, taken) = if early {
            let (mut begun, mut accept) = (begun, accept);
            let crate::Step::Done(mut c, _) = begun.step(&here) else { panic!("no early data") };
            let taken = loop {
                if let Some(n) = c.try_send(&here, b"early", b"", false) {
                    break n.unwrap();
                }
            };
            let s = loop {
                match accept.step(&there) {
                    crate::Step::Done(s, _) => break s,
                    crate::Step::Failed(why) => panic!("{why:?}"),
                    _ => drop(c.shake(&here)),
                }
            };
            (c, s, taken)
        } else {
            let (c, s) = meet(begun, accept, &here, &there);
            (c.unwrap().0, s.unwrap().0, 0)
        };
        let data: Vec<u8> = (0..50_000u32).map(|n| (n * 7 % 251) as u8).collect();
        let (mut got, mut buf) = (Vec::new(), [0; 100]);
        while got.len() < taken {
            match s.try_recv(&there, &mut buf) {
                Some(n) => got.extend_from_slice(&buf[..n.unwrap()]),
                None => drop(c.shake(&here)),
            }
        }
        assert_eq!(got, b"early"[..taken]);
        for _ in 0..2 {
            assert_eq!(carry((&mut s, &there), (&mut c, &here), &data), data);
            assert_eq!(carry((&mut c, &here), (&mut s, &there), &data), data);
        }
        assert!(!c.is_early() && !s.is_early() && c.takes_plain() && s.takes_plain());
        assert!(c.gives_plain() && s.gives_plain());
    }
}
