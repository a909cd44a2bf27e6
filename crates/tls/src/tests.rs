//! Two ends in memory: the bytes of one are the other's, in pieces as small as wanted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rcgen::{CertificateParams, Issuer, KeyPair};

use crate::client::{self, Connector};
use crate::files::{self, Identity, Sources};
use crate::locked::Phrases;
use crate::server::{self, Acceptor};
use crate::sessions::{Limits, Sessions};
use crate::suites::{Policy, Version};
use crate::verify::{Trust, code};
use crate::{Facts, Failure, Handshake, Step, Stream, Wire};

mod early;

/// One direction: what was sent and not yet received.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) bytes: VecDeque<u8>,
    closed: bool,
}

/// One end: reads and writes at most `step` bytes at a time, and holds at most `most`.
pub(crate) struct End<'p> {
    pub(crate) from: &'p RefCell<Pipe>,
    pub(crate) to: &'p RefCell<Pipe>,
    pub(crate) step: usize,
    pub(crate) most: usize,
}

impl Wire for End<'_> {
    fn recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let mut pipe = self.from.borrow_mut();
        if pipe.bytes.is_empty() {
            return pipe.closed.then_some(Ok(0));
        }
        let n = buf.len().min(self.step).min(pipe.bytes.len());
        for (to, from) in buf.iter_mut().zip(pipe.bytes.drain(..n)) {
            *to = from;
        }
        Some(Ok(n))
    }

    fn send(&self, data: &[u8], _: bool) -> Option<io::Result<usize>> {
        let mut pipe = self.to.borrow_mut();
        let n = data.len().min(self.step).min(self.most.saturating_sub(pipe.bytes.len()));
        if n == 0 {
            return None;
        }
        pipe.bytes.extend(&data[..n]);
        Some(Ok(n))
    }
}

/// A wire of a test.
pub(crate) trait Testable: Wire {
    /// Sends nothing more.
    fn hang_up(&self);
}

impl Testable for End<'_> {
    fn hang_up(&self) {
        self.to.borrow_mut().closed = true;
    }
}

/// A folder that goes away with the test.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        // Tests run beside each other, and several use the same name.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Relaxed);
        let path = std::env::temp_dir().join(format!("harrier-tls-{}-{nth}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate for names, signed by itself.
pub(crate) fn own(names: &[&str]) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let cert = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    (cert.pem(), key.serialize_pem())
}

pub(crate) fn load(folder: &Folder, name: &str, text: &str) -> Arc<Identity> {
    let path = folder.write(name, text);
    let (parts, _) =
        files::load(&Sources::plain(&path), &files::Extra::default(), &Phrases::default()).unwrap();
    Arc::new(Identity::new(&path, &parts).unwrap())
}

pub(crate) fn acceptor(identities: &[Arc<Identity>], rules: &server::Rules, strict: bool) -> Arc<Acceptor> {
    let acceptor = Acceptor::new(strict, 0);
    let limits = Limits { cache: 100, lifetime: std::time::Duration::from_secs(300) };
    let (mut table, sessions) = (server::Table::default(), Sessions::new(limits, None));
    for identity in identities {
        table.add(server::entry(identity.clone(), rules, &sessions).unwrap().0.into(), &[], false);
    }
    acceptor.publish(table);
    Arc::new(acceptor)
}

fn name(text: &str) -> Option<&[u8]> {
    Some(text.as_bytes())
}

pub(crate) type Finished = Result<(Box<Stream>, Box<Facts>), Failure>;

/// Runs both sides until each is done or has failed.
pub(crate) fn meet(
    mut c: Handshake,
    mut s: Handshake,
    client: &impl Testable,
    server: &impl Testable,
) -> (Finished, Finished) {
    let (mut left, mut right) = (None, None);
    for _ in 0..100_000 {
        turn(&mut c, client, &mut left);
        turn(&mut s, server, &mut right);
        if left.is_some() && right.is_some() {
            break;
        }
    }
    (left.expect("client hangs"), right.expect("server hangs"))
}

fn turn(side: &mut Handshake, wire: &impl Testable, done: &mut Option<Finished>) {
    if done.is_some() {
        return;
    }
    match side.step(wire) {
        Step::Done(stream, facts) => *done = Some(Ok((stream, facts))),
        Step::Failed(why) => {
            wire.hang_up();
            *done = Some(Err(why));
        }
        Step::Read | Step::Write => {}
    }
}

/// A client and a bind line meet: what the client learns, or why it gave up.
pub(crate) fn encounter(
    connector: &Connector,
    acceptor: &Arc<Acceptor>,
    host: &str,
) -> Result<Facts, Failure> {
    let (up, down) = (RefCell::default(), RefCell::default());
    let here = End { from: &down, to: &up, step: 100_000, most: 100_000 };
    let there = End { from: &up, to: &down, step: 100_000, most: 100_000 };
    let connect = Handshake::connect(connector, name(host), None).unwrap();
    let (left, _) = meet(connect, Handshake::accept(acceptor.clone(), &[]), &here, &there);
    left.map(|(_, facts)| *facts)
}

/// Sends all of `data` from one stream to the other.
pub(crate) fn carry(from: (&mut Stream, &impl Wire), to: (&mut Stream, &impl Wire), data: &[u8]) -> Vec<u8> {
    let mut sent = 0;
    let mut out = Vec::new();
    let mut buf = [0; 3000];
    for _ in 0..1_000_000 {
        if sent < data.len() {
            // A head and a body, as messages are sent.
            let (head, body) = data[sent..].split_at((data.len() - sent).min(100));
            if let Some(n) = from.0.try_send(from.1, head, body, false) {
                sent += n.unwrap();
            }
        }
        while let Some(n) = to.0.try_recv(to.1, &mut buf) {
            match n.unwrap() {
                0 => return out,
                n => out.extend_from_slice(&buf[..n]),
            }
        }
        if sent == data.len() && out.len() == data.len() {
            break;
        }
    }
    out
}

#[test]
fn data_arrive_whole_in_both_versions_through_wires_of_any_width() {
    let folder = Folder::new("data");
    let (cert, key) = own(&["localhost"]);
    let identity = load(&folder, "a.pem", &format!("{key}{cert}"));
    let data: Vec<u8> = (0..200_000u32).map(|n| (n * 7 % 251) as u8).collect();
    for (version, suite) in [
        (Version::Tls12, "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (Version::Tls12, "ECDHE-ECDSA-CHACHA20-POLY1305"),
        (Version::Tls13, "TLS_AES_256_GCM_SHA384"),
        (Version::Tls13, "TLS_CHACHA20_POLY1305_SHA256"),
    ] {
        for step in [1, 700, 100_000] {
            let mut policy = Policy { min: Some(version), max: Some(version), ..Policy::default() };
            match version {
                Version::Tls13 => policy.ciphersuites = Some(suite.into()),
                _ => policy.ciphers = Some(suite.into()),
            }
            let rules =
                server::Rules { policy, alpn: vec![b"http/1.1".to_vec()], ..server::Rules::default() };
            let accept = acceptor(std::slice::from_ref(&identity), &rules, false);
            let rules = client::Rules {
                alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
                ..client::Rules::default()
            };
            let connect = Connector::new(&rules).unwrap().0;
            let (up, down) = (RefCell::default(), RefCell::default());
            let here = End { from: &down, to: &up, step, most: 30_000 };
            let there = End { from: &up, to: &down, step, most: 30_000 };
            let begun = Handshake::connect(&connect, name("localhost"), None).unwrap();
            let (c, s) = meet(begun, Handshake::accept(accept, b""), &here, &there);
            let (mut c, facts) = c.unwrap();
            let (mut s, seen) = s.unwrap();
            assert_eq!((facts.cipher.0, seen.cipher.0), (suite, suite));
            assert_eq!(seen.alpn.as_deref(), Some(&b"http/1.1"[..]));
            assert_eq!(seen.sni.as_deref(), Some("localhost"));
            assert!(!seen.resumed);
            let amount = if step == 1 { 20_000 } else { data.len() };
            assert_eq!(carry((&mut c, &here), (&mut s, &there), &data[..amount]), &data[..amount]);
            assert_eq!(carry((&mut s, &there), (&mut c, &here), &data[..amount]), &data[..amount]);
            s.close(&there);
            assert_eq!(c.try_recv(&here, &mut [0; 10]).unwrap().unwrap(), 0, "close_notify is the end");
        }
    }
}

#[test]
fn a_changed_byte_ends_the_connection_with_an_alert() {
    let folder = Folder::new("changed");
    let (cert, key) = own(&["localhost"]);
    let accept =
        acceptor(&[load(&folder, "a.pem", &format!("{cert}{key}"))], &server::Rules::default(), false);
    let connect = Connector::new(&client::Rules::default()).unwrap().0;
    let (up, down) = (RefCell::default(), RefCell::default());
    let here = End { from: &down, to: &up, step: 100_000, most: 100_000 };
    let there = End { from: &up, to: &down, step: 100_000, most: 100_000 };
    let begun = Handshake::connect(&connect, None, None).unwrap();
    let (c, s) = meet(begun, Handshake::accept(accept, b""), &here, &there);
    let (mut c, mut s) = (c.unwrap().0, s.unwrap().0);
    assert!(c.try_recv(&here, &mut [0; 10]).is_none(), "tickets are no data");
    assert_eq!(c.try_send(&here, b"hello", b"", false).unwrap().unwrap(), 5);
    *up.borrow_mut().bytes.back_mut().unwrap() ^= 1;
    assert!(s.try_recv(&there, &mut [0; 10]).unwrap().is_err());
    assert!(s.try_send(&there, b"x", b"", false).unwrap().is_err());
    assert!(c.try_recv(&here, &mut [0; 10]).unwrap().is_err());
}

#[test]
fn sessions_are_resumed() {
    let folder = Folder::new("resumed");
    let (cert, key) = own(&["localhost"]);
    let identity = load(&folder, "a.pem", &format!("{cert}{key}"));
    for (max, no_tickets) in
        [(Version::Tls12, true), (Version::Tls12, false), (Version::Tls13, true), (Version::Tls13, false)]
    {
        let policy = Policy { max: Some(max), ..Policy::default() };
        let rules = server::Rules { policy, no_tickets, ..server::Rules::default() };
        let accept = acceptor(std::slice::from_ref(&identity), &rules, false);
        let connect = Connector::new(&client::Rules::default()).unwrap().0;
        for round in 0..3 {
            let (up, down) = (RefCell::default(), RefCell::default());
            let here = End { from: &down, to: &up, step: 100_000, most: 100_000 };
            let there = End { from: &up, to: &down, step: 100_000, most: 100_000 };
            let begun = Handshake::connect(&connect, name("localhost"), None).unwrap();
            let (c, s) = meet(begun, Handshake::accept(accept.clone(), b""), &here, &there);
            let (mut c, mut s) = (c.unwrap().0, s.unwrap());
            assert_eq!(s.1.resumed, round > 0, "{max:?} {no_tickets} {round}");
            // The answer brings the tickets along.
            assert_eq!(carry((&mut s.0, &there), (&mut c, &here), b"hi"), b"hi");
        }
    }
}

#[test]
fn names_choose_certificates() {
    let folder = Folder::new("names");
    let identities: Vec<_> = [&["first.example"][..], &["a.example", "*.wild.example"], &["b.wild.example"]]
        .iter()
        .enumerate()
        .map(|(i, names)| {
            let (cert, key) = own(names);
            load(&folder, &format!("{i}.pem"), &format!("{cert}{key}"))
        })
        .collect();
    let connect = Connector::new(&client::Rules::default()).unwrap().0;
    let shown = |accept: Arc<Acceptor>, host: &str| {
        let (up, down) = (RefCell::default(), RefCell::default());
        let here = End { from: &down, to: &up, step: 100_000, most: 100_000 };
        let there = End { from: &up, to: &down, step: 100_000, most: 100_000 };
        let begun = Handshake::connect(&connect, name(host), None).unwrap();
        let (c, s) = meet(begun, Handshake::accept(accept, b""), &here, &there);
        let leaf = c.ok().map(|(_, f)| f.peer[0].clone())?;
        assert!(s.is_ok());
        identities.iter().position(|i| *i.leaf == *leaf)
    };
    let rules = server::Rules::default();
    for (host, wanted) in [
        ("a.example", Some(1)),
        ("A.EXAMPLE", Some(1)),
        ("x.wild.example", Some(1)),
        ("b.wild.example", Some(2)),
        ("x.y.wild.example", Some(0)),
        ("other.example", Some(0)),
    ] {
        assert_eq!(shown(acceptor(&identities, &rules, false), host), wanted, "{host}");
    }
    assert_eq!(shown(acceptor(&identities, &rules, true), "a.example"), Some(1));
    assert_eq!(shown(acceptor(&identities, &rules, true), "other.example"), None);
}

#[test]
fn filters_take_the_place_of_names_and_exclude() {
    let folder = Folder::new("filters");
    let (cert, key) = own(&["ignored.example"]);
    let one = load(&folder, "1.pem", &format!("{cert}{key}"));
    let (cert, key) = own(&["x"]);
    let two = load(&folder, "2.pem", &format!("{cert}{key}"));
    let (accept, mut table) = (Acceptor::new(true, 0), server::Table::default());
    let (rules, sessions) = (
        server::Rules::default(),
        Sessions::new(Limits { cache: 0, lifetime: std::time::Duration::from_secs(300) }, None),
    );
    let filters: Vec<Box<str>> = vec!["*.wild.example".into(), "!not.wild.example".into()];
    table.add(server::entry(one, &rules, &sessions).unwrap().0.into(), &filters, false);
    let other = server::entry(two.clone(), &rules, &sessions).unwrap().0;
    table.add(other.into(), &["not.wild.example".into()], false);
    accept.publish(table);
    let hello = |name: &str| {
        let mut sni = vec![0, 0];
        let list = name.len() as u8;
        sni.extend([0, list + 5, 0, list + 3, 0, 0, list]);
        sni.extend(name.as_bytes());
        sni
    };
    let found = |name: &str| {
        let extensions = hello(name);
        let hello = crate::hello::Hello { extensions: &extensions, ..Default::default() };
        accept.choose(&hello, true).map(|e| e.identity.name.clone())
    };
    assert!(found("a.wild.example").is_some_and(|n| n.ends_with("1.pem")));
    assert!(found("not.wild.example").is_some_and(|n| n.ends_with("2.pem")));
    assert_eq!(found("ignored.example"), None);
}

#[test]
fn client_certificates_are_believed_as_the_ca_file_says() {
    let folder = Folder::new("clients");
    let (cert, key) = own(&["localhost"]);
    let identity = load(&folder, "a.pem", &format!("{cert}{key}"));
    let ca_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    // A leaf of the same name would be its own issuer to OpenSSL.
    params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
    let ca = params.self_signed(&ca_key).unwrap();
    let issuer = Issuer::from_params(&params, &ca_key);
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["me".to_owned()]).unwrap().signed_by(&leaf_key, &issuer).unwrap();
    let signed = load(&folder, "s.pem", &format!("{}{}", leaf.pem(), leaf_key.serialize_pem()));
    let (cert, key) = own(&["stranger"]);
    let stranger = load(&folder, "t.pem", &format!("{cert}{key}"));
    let believed = |text: &str| {
        Arc::new(Trust::new(&files::pem(text.as_bytes()).unwrap().certificates, &[], &[]).unwrap())
    };
    let ask = |trust: Arc<Trust>, required, shown: Option<&Arc<Identity>>| {
        let rules = server::Rules { clients: Some(trust), required, ..server::Rules::default() };
        let accept = acceptor(std::slice::from_ref(&identity), &rules, false);
        let rules = client::Rules { identity: shown.cloned(), ..client::Rules::default() };
        let connect = Connector::new(&rules).unwrap().0;
        let (up, down) = (RefCell::default(), RefCell::default());
        let here = End { from: &down, to: &up, step: 100_000, most: 100_000 };
        let there = End { from: &up, to: &down, step: 100_000, most: 100_000 };
        let begun = Handshake::connect(&connect, None, None).unwrap();
        meet(begun, Handshake::accept(accept, b""), &here, &there).1
    };
    let facts = ask(believed(&ca.pem()), true, Some(&signed)).unwrap().1;
    assert_eq!(&*facts.peer[0], &*signed.leaf);
    assert!(ask(believed(&ca.pem()), true, None).is_err());
    assert!(ask(believed(&ca.pem()), false, None).is_ok());
    let refused = ask(believed(&ca.pem()), false, Some(&stranger)).unwrap_err();
    assert!(matches!(refused, Failure::Untrusted(f) if f.leaf == code::SELF_SIGNED), "{refused:?}");
    // A leaf is its own authority.
    assert!(ask(believed(&cert), true, Some(&stranger)).is_ok());
}

#[test]
fn servers_are_believed_by_authority_and_name() {
    let folder = Folder::new("servers");
    let (cert, key) = own(&["right.example"]);
    let accept =
        acceptor(&[load(&folder, "a.pem", &format!("{cert}{key}"))], &server::Rules::default(), false);
    let ask = |trusted: Option<&str>, host: Option<&str>, sni: Option<&str>| {
        let trust = trusted.map(|t| {
            Arc::new(Trust::new(&files::pem(t.as_bytes()).unwrap().certificates, &[], &[]).unwrap())
        });
        let rules = client::Rules { servers: trust, host: host.map(Into::into), ..client::Rules::default() };
        let connect = Connector::new(&rules).unwrap().0;
        let (up, down) = (RefCell::default(), RefCell::default());
        let here = End { from: &down, to: &up, step: 100_000, most: 100_000 };
        let there = End { from: &up, to: &down, step: 100_000, most: 100_000 };
        let begun = Handshake::connect(&connect, sni.and_then(name), None).unwrap();
        match meet(begun, Handshake::accept(accept.clone(), b""), &here, &there).0 {
            Ok(_) => Ok(()),
            Err(Failure::Untrusted(found)) => Err(found.leaf),
            Err(other) => panic!("{other:?}"),
        }
    };
    let (other, _) = own(&["right.example"]);
    assert_eq!(ask(None, None, None), Ok(()), "verify none");
    assert_eq!(ask(Some(&cert), None, None), Ok(()), "no name is asked for");
    assert_eq!(ask(Some(&cert), None, Some("right.example")), Ok(()));
    assert_eq!(ask(Some(&cert), None, Some("wrong.example")), Err(code::HOSTNAME));
    assert_eq!(ask(Some(&cert), Some("right.example"), Some("wrong.example")), Err(code::HOSTNAME));
    assert_eq!(ask(Some(&cert), Some("wrong.example"), Some("right.example")), Ok(()));
    assert_eq!(ask(Some(&cert), Some("right.example"), Some("")), Ok(()), "no name");
    assert_eq!(ask(Some(&cert), Some("wrong.example"), None), Err(code::HOSTNAME));
    for unsent in ["192.0.2.1", "2001:db8::1", "[", "right..example", "right.example:443", "right.example\0"]
    {
        assert_eq!(ask(Some(&cert), None, Some(unsent)), Err(code::HOSTNAME), "{unsent}");
    }
    assert!(ask(Some(&other), None, None).is_err());
}

#[test]
fn files_are_shown_in_their_order_and_may_be_apart() {
    let folder = Folder::new("files");
    let (cert, key) = own(&["a.example"]);
    let (other, wrong) = own(&["b.example"]);
    // Whatever stands behind the first certificate goes out with it, in this order.
    let (third, _) = own(&["c.example"]);
    let mixed = load(&folder, "mixed.pem", &format!("{cert}{other}{key}{third}"));
    assert_eq!(mixed.names()[0], "a.example");
    let sent: Vec<_> = mixed.key.cert.iter().map(|c| c.to_vec()).collect();
    let pem = files::pem(format!("{cert}{other}{third}").as_bytes()).unwrap();
    assert_eq!(sent, pem.certificates.iter().map(|c| c.to_vec()).collect::<Vec<_>>());
    folder.write("apart.pem.key", &key);
    assert_eq!(load(&folder, "apart.pem", &cert).names()[0], "a.example");
    let of = |name: &str, text: String| {
        let path = folder.write(name, &text);
        let loaded = files::load(&Sources::plain(&path), &files::Extra::default(), &Phrases::default());
        loaded.and_then(|(parts, _)| Identity::new(&path, &parts)).unwrap_err()
    };
    assert!(of("alone.pem", cert.clone()).starts_with("No Private Key found in "));
    assert!(of("behind.pem", format!("{other}{key}{cert}")).starts_with("inconsistencies between private"));
    assert!(of("wrong.pem", format!("{cert}{wrong}")).starts_with("inconsistencies between private key"));
    assert!(of("none.pem", String::new()).starts_with("unable to load certificate from file "));
}

#[test]
fn cipher_strings_mean_what_they_mean_to_openssl() {
    let suites = |text: &str| {
        let policy = Policy { max: Some(Version::Tls12), ciphers: Some(text.into()), ..Policy::default() };
        policy.resolve().map(|a| {
            let list =
                a.provider.cipher_suites.iter().map(|s| crate::suites::describe(*s).0).collect::<Vec<_>>();
            (list, a.ignored)
        })
    };
    let (list, ignored) =
        suites("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA:ECDHE-ECDSA-AES256-GCM-SHA384").unwrap();
    assert_eq!(list, ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]);
    assert_eq!(ignored, ["AES128-SHA"]);
    assert_eq!(suites("ECDHE+AESGCM:!aECDSA").unwrap().0.len(), 2);
    assert_eq!(suites("HIGH:!aNULL:!MD5").unwrap().0.len(), 6);
    assert_eq!(suites("HIGH:!kRSA:!RSA").unwrap().0.len(), 6, "that is no word for certificates");
    assert!(suites("AES128-SHA").is_err());
}

#[test]
fn hellos_that_are_none_do_no_harm() {
    use crate::hello::{Hello, collect};
    assert!(collect(b"GET / HTTP/1.1").is_err());
    assert!(matches!(collect(&[22, 3, 1, 0]), Ok(None)));
    assert!(collect(&[22, 3, 1, 0, 4, 2, 0, 0, 0]).is_err(), "a ServerHello");
    for n in 0..200 {
        let junk: Vec<u8> = (0..n).map(|i| (i * 37) as u8).collect();
        let hello = Hello::parse(&junk);
        let _ = hello.map(|h| {
            (h.server_name().map(<[u8]>::len), h.verifies_ecdsa(), h.verifies_rsa(), h.offers_tls13())
        });
    }
}

#[test]
fn a_chain_longer_than_a_buffer_comes_through_and_an_endless_one_does_not() {
    let folder = Folder::new("long");
    let (cert, key) = own(&["one.example"]);
    let short = load(&folder, "one.pem", &format!("{cert}{key}"));
    for (copies, fits) in [(150, true), (400, false)] {
        let mut long = (*short).clone();
        let mut chain = long.key.cert.clone();
        chain.extend(std::iter::repeat_n(chain[0].clone(), copies));
        long.key = Arc::new(rustls::sign::CertifiedKey::new(chain, long.key.key.clone()));
        let bytes: usize = long.key.cert.iter().map(|c| c.len()).sum();
        assert_eq!(bytes > 40_000 && bytes < 100_000, fits, "{bytes}");
        for version in [Version::Tls12, Version::Tls13] {
            let policy = Policy { max: Some(version), ..Policy::default() };
            let rules = server::Rules { policy, ..server::Rules::default() };
            let acceptor = acceptor(&[Arc::new(long.clone())], &rules, false);
            let connector = Connector::new(&client::Rules::default()).unwrap().0;
            let (up, down) = Default::default();
            let client = End { from: &down, to: &up, step: 5000, most: 1_000_000 };
            let server = End { from: &up, to: &down, step: 5000, most: 1_000_000 };
            let c = Handshake::connect(&connector, name("one.example"), None).unwrap();
            let (left, _) = meet(c, Handshake::accept(acceptor, &[]), &client, &server);
            assert_eq!(left.is_ok(), fits);
            if let Ok((_, facts)) = left {
                assert_eq!(facts.peer.len(), copies + 1);
            }
        }
    }
}

#[test]
fn records_are_as_small_as_they_are_told_to_be() {
    let folder = Folder::new("records");
    let (cert, key) = own(&["one.example"]);
    let one = load(&folder, "one.pem", &format!("{cert}{key}"));
    let acceptor = acceptor(&[one], &server::Rules::default(), false);
    let connector = Connector::new(&client::Rules::default()).unwrap().0;
    let (up, down) = Default::default();
    let client = End { from: &down, to: &up, step: 100_000, most: 1_000_000 };
    let server = End { from: &up, to: &down, step: 100_000, most: 1_000_000 };
    let c = Handshake::connect(&connector, name("one.example"), None).unwrap();
    let (_, right) = meet(c, Handshake::accept(acceptor, &[]), &client, &server);
    let (mut stream, _) = right.ok().unwrap();
    for (first, hard, longest) in [(1000, 0, 1000), (0, 700, 700), (1000, 300, 300), (0, 0, 9000)] {
        down.borrow_mut().bytes.clear();
        stream.set_sizes(crate::stream::Sizes { first, hard, ..Default::default() });
        assert_eq!(stream.try_send(&server, &[7; 9000], &[], false).unwrap().unwrap(), 9000);
        let sent: Vec<u8> = down.borrow().bytes.iter().copied().collect();
        let len = usize::from(sent[3]) << 8 | usize::from(sent[4]);
        // The type of the content and the tag of the cipher.
        assert_eq!(len, longest + 17, "{first} {hard}");
    }
}
