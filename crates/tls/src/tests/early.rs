//! Early data between a client and a server in memory, and what goes wrong with them.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{End, Folder, load, meet, name, own};
use crate::client::{self, Connector};
use crate::files::Identity;
use crate::server::{self, Acceptor};
use crate::sessions::{Limits, Sessions};
use crate::suites::Policy;
use crate::{Facts, Handshake, Step, Stream};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// A server and a client of it that may use early data.
struct Site {
    identity: Arc<Identity>,
    sessions: Sessions,
    connector: Connector,
}

fn http() -> Vec<Vec<u8>> {
    vec![b"http/1.1".to_vec()]
}

impl Site {
    fn new(alpn: bool) -> Site {
        static SITES: AtomicU32 = AtomicU32::new(0);
        let folder = Folder::new(&format!("early{}", SITES.fetch_add(1, Relaxed)));
        let (cert, key) = own(&["localhost"]);
        let identity = load(&folder, "a.pem", &format!("{key}{cert}"));
        let limits = Limits { cache: 100, lifetime: std::time::Duration::from_secs(300) };
        let alpn = if alpn { http() } else { Vec::new() };
        let rules = client::Rules { early_data: true, alpn, ..client::Rules::default() };
        let connector = Connector::new(&rules).unwrap().0;
        Site { identity, sessions: Sessions::new(limits, None), connector }
    }

    /// A bind line that takes so much early data.
    fn acceptor(&self, most: u32, policy: Policy) -> Arc<Acceptor> {
        let rules = server::Rules { early_data: most, alpn: http(), policy, ..server::Rules::default() };
        let entry = server::entry(self.identity.clone(), &rules, &self.sessions).unwrap().0;
        let (acceptor, mut table) = (Acceptor::new(false, 0), server::Table::default());
        table.add(entry.into(), &[], false);
        acceptor.publish(table);
        Arc::new(acceptor)
    }

    fn connect(&self) -> Handshake {
        Handshake::connect_early(&self.connector, name("localhost"), None, false).unwrap()
    }

    /// Gives the client sessions to resume.
    fn prepare(&self, acceptor: &Arc<Acceptor>) {
        let (up, down) = (RefCell::default(), RefCell::default());
        let (here, there) = ends(&up, &down, 100_000);
        let connect = Handshake::connect(&self.connector, name("localhost"), None).unwrap();
        let (c, s) = meet(connect, Handshake::accept(acceptor.clone(), &[]), &here, &there);
        let ((mut c, _), (mut s, facts)) = (c.unwrap(), s.unwrap());
        assert!(!c.is_early() && !s.is_early() && !facts.early);
        assert_eq!(super::carry((&mut s, &there), (&mut c, &here), b"welcome"), b"welcome");
    }
}

fn ends<'p>(up: &'p RefCell<super::Pipe>, down: &'p RefCell<super::Pipe>, step: usize) -> (End<'p>, End<'p>) {
    (End { from: down, to: up, step, most: 1 << 20 }, End { from: up, to: down, step, most: 1 << 20 })
}

/// A client that sends early: its stream, with the request in the wire.
fn sent(site: &Site, wire: &End<'_>, data: &[u8]) -> (Box<Stream>, usize) {
    begun(site.connect(), wire, data)
}

fn begun(mut handshake: Handshake, wire: &End<'_>, data: &[u8]) -> (Box<Stream>, usize) {
    let Step::Done(mut stream, _) = handshake.step(wire) else { panic!("no early data") };
    assert!(stream.is_early());
    let mut taken = 0;
    while taken < data.len() {
        match stream.try_send(wire, &data[taken..], &[], false) {
            Some(n) => taken += n.unwrap(),
            None if stream.is_pending() => {}
            None => break,
        }
    }
    (stream, taken)
}

/// Runs a server until it can go on, or waits for more.
fn served(acceptor: &Arc<Acceptor>, wire: &End<'_>) -> Option<(Box<Stream>, Box<Facts>)> {
    let mut handshake = Handshake::accept(acceptor.clone(), &[]);
    for _ in 0..100_000 {
        match handshake.step(wire) {
            Step::Done(stream, facts) => return Some((stream, facts)),
            Step::Failed(why) => panic!("{why:?}"),
            Step::Read if wire.from.borrow().bytes.is_empty() => return None,
            Step::Read | Step::Write => {}
        }
    }
    panic!("server hangs")
}

fn receive(stream: &mut Stream, wire: &End<'_>, most: usize) -> Vec<u8> {
    let (mut out, mut buf) = (Vec::new(), [0; 1000]);
    for _ in 0..100_000 {
        match stream.try_recv(wire, &mut buf) {
            Some(Ok(n)) => out.extend_from_slice(&buf[..n]),
            Some(Err(_)) => break,
            None if wire.from.borrow().bytes.is_empty() && !stream.is_pending() => break,
            None => {}
        }
        if out.len() >= most {
            break;
        }
    }
    out
}

#[test]
fn a_request_and_its_answer_pass_before_the_client_has_finished() {
    let site = Site::new(true);
    let acceptor = site.acceptor(15360, Policy::default());
    for step in [1, 700, 100_000] {
        site.prepare(&acceptor);
        let (up, down) = (RefCell::default(), RefCell::default());
        let (here, there) = ends(&up, &down, step);
        let (mut client, taken) = sent(&site, &here, REQUEST);
        assert_eq!(taken, REQUEST.len());
        let (mut server, facts) = served(&acceptor, &there).unwrap();
        assert!(
            server.is_early() && facts.early && facts.resumed && facts.sni.as_deref() == Some("localhost")
        );
        assert_eq!(facts.alpn.as_deref(), Some(&b"http/1.1"[..]));
        assert_eq!(receive(&mut server, &there, REQUEST.len()), REQUEST);
        // Nothing but the hello and the request was needed for an answer.
        assert!(server.is_early() && !server.is_ready());
        while server.try_send(&there, b"answer", &[], false).is_none() {}
        assert_eq!(receive(&mut client, &here, 6), b"answer");
        assert!(!client.is_early() && !client.was_refused());
        assert!(client.take_facts().is_some_and(|facts| facts.resumed));
        // Afterwards the two are as all others.
        assert_eq!(super::carry((&mut client, &here), (&mut server, &there), b"more"), b"more");
        assert!(!server.is_early());
        let long = vec![7; 100_000];
        assert_eq!(super::carry((&mut server, &there), (&mut client, &here), &long), long);
    }
}

#[test]
fn whoever_waits_for_the_handshake_finds_the_request_afterwards() {
    let site = Site::new(true);
    let acceptor = site.acceptor(15360, Policy::default());
    site.prepare(&acceptor);
    let (up, down) = (RefCell::default(), RefCell::default());
    let (here, there) = ends(&up, &down, 100);
    let (mut client, _) = sent(&site, &here, REQUEST);
    let (mut server, _) = served(&acceptor, &there).unwrap();
    while !there.from.borrow().bytes.is_empty() {
        assert!(server.shake(&there).is_none());
    }
    while client.shake(&here).is_none() {}
    while server.shake(&there).is_none() {}
    assert!(!server.is_early() && server.is_ready());
    assert_eq!(receive(&mut server, &there, REQUEST.len()), REQUEST);
}

#[test]
fn without_a_protocol_early_data_wait_for_the_handshake() {
    let site = Site::new(false);
    let acceptor = site.acceptor(15360, Policy::default());
    site.prepare(&acceptor);
    let (up, down) = (RefCell::default(), RefCell::default());
    let (here, there) = ends(&up, &down, 100_000);
    let (mut client, _) = sent(&site, &here, REQUEST);
    let mut handshake = Handshake::accept(acceptor, &[]);
    assert!(matches!(handshake.step(&there), Step::Read));
    assert!(client.shake(&here).is_some_and(|r| r.is_ok()) && !client.was_refused());
    let Step::Done(mut server, facts) = handshake.step(&there) else { panic!("not done") };
    assert!(facts.early && !server.is_early());
    assert_eq!(receive(&mut server, &there, REQUEST.len()), REQUEST);
}

#[test]
fn a_client_sends_early_what_the_session_allows_and_the_rest_later() {
    let site = Site::new(true);
    let acceptor = site.acceptor(15360, Policy::default());
    site.prepare(&acceptor);
    let (up, down) = (RefCell::default(), RefCell::default());
    let (here, there) = ends(&up, &down, 100_000);
    let data: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
    let (mut client, taken) = sent(&site, &here, &data);
    assert_eq!(taken, 15360);
    let (mut server, _) = served(&acceptor, &there).unwrap();
    assert_eq!(receive(&mut server, &there, taken), data[..taken]);
    assert_eq!(super::carry((&mut client, &here), (&mut server, &there), &data[taken..]), data[taken..]);
    assert!(!client.was_refused());
}

/// The server does not take early data: it skips them, and the client knows that they are lost.
fn refused(site: &Site, acceptor: &Arc<Acceptor>, resumed: bool) {
    for step in [1, 100_000] {
        let (up, down) = (RefCell::default(), RefCell::default());
        let (here, there) = ends(&up, &down, step);
        let (mut client, _) = sent(site, &here, &[7; 12_000]);
        let mut handshake = Handshake::accept(acceptor.clone(), &[]);
        let mut outcome = None;
        for _ in 0..100_000 {
            match handshake.step(&there) {
                Step::Done(stream, facts) => {
                    outcome = Some((stream, facts));
                    break;
                }
                Step::Failed(why) => panic!("{why:?}"),
                Step::Read | Step::Write => drop(client.shake(&here)),
            }
        }
        let (mut server, facts) = outcome.expect("server hangs");
        assert!(!facts.early && facts.resumed == resumed && !server.is_early());
        assert!(receive(&mut server, &there, 1).is_empty());
        assert!(client.was_refused() && client.has_failed());
        assert!(client.try_send(&here, b"more", &[], false).is_some_and(|r| r.is_err()));
        if step == 1 {
            // Once more from the beginning.
            site.prepare(&site.acceptor(15360, Policy::default()));
        }
    }
}

#[test]
fn refused_early_data_are_skipped() {
    let site = Site::new(true);
    site.prepare(&site.acceptor(15360, Policy::default()));
    // The server takes no early data any more: sessions are in tickets there, so this one is not found.
    refused(&site, &site.acceptor(0, Policy::default()), false);
    // It takes some, but knows no sessions.
    refused(&site, &Site::new(true).acceptor(15360, Policy::default()), false);
}

#[test]
fn early_data_are_skipped_before_another_hello() {
    let site = Site::new(true);
    site.prepare(&site.acceptor(15360, Policy::default()));
    // The client has guessed another group.
    let policy = Policy { curves: Some("secp384r1".into()), ..Policy::default() };
    refused(&site, &site.acceptor(15360, policy), true);
}

#[test]
fn refused_early_data_are_sent_again_where_that_is_wanted() {
    let site = Site::new(true);
    let acceptor = site.acceptor(0, Policy::default());
    for step in [1, 100_000] {
        site.prepare(&site.acceptor(15360, Policy::default()));
        let (up, down) = (RefCell::default(), RefCell::default());
        let (here, there) = ends(&up, &down, step);
        let data: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
        let connect = Handshake::connect_early(&site.connector, name("localhost"), None, true).unwrap();
        let (mut client, taken) = begun(connect, &here, &data);
        assert!(taken > 8000 && taken < 20_000);
        let mut handshake = Handshake::accept(acceptor.clone(), &[]);
        let mut server = loop {
            match handshake.step(&there) {
                Step::Done(stream, _) => break stream,
                Step::Failed(why) => panic!("{why:?}"),
                Step::Read | Step::Write => drop(client.shake(&here)),
            }
        };
        while client.shake(&here).is_none() {}
        assert!(!client.was_refused() && !client.is_early());
        assert_eq!(receive(&mut server, &there, taken), data[..taken]);
        assert_eq!(super::carry((&mut client, &here), (&mut server, &there), &data[taken..]), data[taken..]);
    }
}

#[test]
fn what_does_not_go_with_early_data_is_told() {
    let site = Site::new(true);
    let rules = server::Rules { early_data: 15360, ..server::Rules::default() };
    let ignored = |cache, keys| {
        let limits = Limits { cache, lifetime: std::time::Duration::from_secs(300) };
        server::entry(site.identity.clone(), &rules, &Sessions::new(limits, keys)).unwrap().1
    };
    assert!(ignored(100, None).is_empty());
    assert!(ignored(0, None)[0].starts_with("allow-0rtt"));
    let keys = crate::tickets::Keys::random().map(Arc::new);
    assert!(ignored(100, keys)[0].starts_with("tls-ticket-keys"));
}

#[test]
fn early_data_that_come_again_find_no_session() {
    let site = Site::new(true);
    let acceptor = site.acceptor(15360, Policy::default());
    site.prepare(&acceptor);
    let (up, down) = (RefCell::default(), RefCell::default());
    let (here, there) = ends(&up, &down, 100_000);
    sent(&site, &here, REQUEST);
    let recorded = up.borrow().bytes.clone();
    assert!(served(&acceptor, &there).is_some());
    for _ in 0..2 {
        up.borrow_mut().bytes = recorded.clone();
        assert!(served(&acceptor, &there).is_none());
    }
}

#[test]
fn more_early_data_than_allowed_end_the_connection() {
    let site = Site::new(true);
    site.prepare(&site.acceptor(15360, Policy::default()));
    let (up, down) = (RefCell::default(), RefCell::default());
    let (here, there) = ends(&up, &down, 100_000);
    sent(&site, &here, &[7; 5000]);
    let mut handshake = Handshake::accept(site.acceptor(1000, Policy::default()), &[]);
    let failed = matches!(handshake.step(&there), Step::Failed(_));
    assert!(failed && receive_alert(&down));
}

/// The last record is an alert of TLS 1.3: seen from outside, one that is as short as one.
fn receive_alert(down: &RefCell<super::Pipe>) -> bool {
    let bytes: Vec<u8> = down.borrow().bytes.iter().copied().collect();
    bytes.ends_with(&[]) && bytes.len() > 24 && bytes[bytes.len() - 24..][..5] == [23, 3, 3, 0, 19]
}

#[test]
fn a_broken_end_of_early_data_ends_the_stream() {
    let site = Site::new(true);
    let acceptor = site.acceptor(15360, Policy::default());
    site.prepare(&acceptor);
    let (up, down) = (RefCell::default(), RefCell::default());
    let (here, there) = ends(&up, &down, 100_000);
    let (mut client, _) = sent(&site, &here, REQUEST);
    let (mut server, _) = served(&acceptor, &there).unwrap();
    assert_eq!(receive(&mut server, &there, REQUEST.len()), REQUEST);
    assert!(client.shake(&here).is_some());
    if let Some(last) = up.borrow_mut().bytes.back_mut() {
        *last ^= 1;
    }
    let mut buf = [0; 10];
    assert!(server.try_recv(&there, &mut buf).is_some_and(|r| r.is_err()));
    assert!(server.has_failed() && server.try_send(&there, b"x", &[], false).is_some_and(|r| r.is_err()));
}

#[test]
fn damaged_early_data_reach_nobody() {
    let site = Site::new(true);
    let acceptor = site.acceptor(15360, Policy::default());
    for place in 0..90 {
        site.prepare(&acceptor);
        let (up, down) = (RefCell::default(), RefCell::default());
        let (here, there) = ends(&up, &down, 100_000);
        sent(&site, &here, REQUEST);
        {
            // From its end on: the request's record, what says nothing, the hello.
            let mut wire = up.borrow_mut();
            let at = wire.bytes.len() - 1 - if place < 40 { place } else { place * 5 - 160 };
            wire.bytes[at] ^= 1 << (place % 8);
        }
        let mut handshake = Handshake::accept(acceptor.clone(), &[]);
        let Step::Done(mut server, facts) = handshake.step(&there) else { continue };
        // Only what nobody reads may be damaged unnoticed: the version of a record, and a record that says
        // nothing.
        assert!(matches!(place, 37 | 40 | 41) && facts.early, "{place}");
        assert_eq!(receive(&mut server, &there, REQUEST.len()), REQUEST);
    }
}
