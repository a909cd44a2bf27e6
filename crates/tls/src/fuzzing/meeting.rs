//! Two ends of TLS that meet over a wire on which somebody changes bytes, or one end and a peer that says
//! anything. Nobody may panic or wait for ever once the wire is cut, and what arrives is what was sent.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::client::{self, Connector};
use crate::dummy::Recipe;
use crate::files::Identity;
use crate::server::{self, Acceptor};
use crate::sessions::{Limits, Sessions};
use crate::suites::{Policy, Version};
use crate::{Handshake, Step, Stream, Wire};

/// What each end says, again and again.
const WORDS: &[u8] = b"what is sent arrives as it is or not at all; ";
/// Bytes that each end has to say: a few records.
const AMOUNT: usize = 40_000;

/// What happens to a byte on its way.
#[derive(Clone, Copy)]
enum Edit {
    Change(u8),
    Drop,
    Insert(u8),
}

/// One direction of the wire.
#[derive(Default)]
struct Line {
    bytes: VecDeque<u8>,
    passed: usize,
    edits: Vec<(usize, Edit)>,
    cut: bool,
}

impl Line {
    fn push(&mut self, byte: u8) {
        let edit = self.edits.iter().find(|(at, _)| *at == self.passed);
        self.passed += 1;
        match edit {
            None => self.bytes.push_back(byte),
            Some((_, Edit::Change(by))) => self.bytes.push_back(byte ^ by),
            Some((_, Edit::Drop)) => {}
            Some((_, Edit::Insert(new))) => self.bytes.extend([*new, byte]),
        }
    }
}

struct End<'l> {
    from: &'l RefCell<Line>,
    to: &'l RefCell<Line>,
    /// Bytes that pass at once.
    step: usize,
}

/// Bytes that wait on a line.
const MOST: usize = 20_000;

impl Wire for End<'_> {
    fn recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let mut line = self.from.borrow_mut();
        if line.bytes.is_empty() {
            return line.cut.then_some(Ok(0));
        }
        let n = buf.len().min(self.step).min(line.bytes.len());
        buf.iter_mut().zip(line.bytes.drain(..n)).for_each(|(to, from)| *to = from);
        Some(Ok(n))
    }

    fn send(&self, data: &[u8], _: bool) -> Option<io::Result<usize>> {
        let mut line = self.to.borrow_mut();
        if line.cut {
            return Some(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let n = data.len().min(self.step).min(MOST.saturating_sub(line.bytes.len()));
        data.iter().take(n).for_each(|byte| line.push(*byte));
        (n > 0).then_some(Ok(n))
    }
}

/// A server and a client of it.
struct Site {
    acceptor: Arc<Acceptor>,
    connector: Connector,
}

impl Site {
    fn new(early: bool, old: bool) -> Site {
        let recipe = Recipe { on: true, kind: Some("ECDSA".into()), ..Recipe::default() };
        let parts = recipe.make().ok().flatten().expect("a key");
        let identity = Arc::new(Identity::new("fuzz", &parts).expect("an identity"));
        let sessions = Sessions::new(Limits { cache: 100, lifetime: Duration::from_secs(300) }, None);
        let alpn = vec![b"http/1.1".to_vec()];
        let policy =
            Policy { max: Some(if old { Version::Tls12 } else { Version::Tls13 }), ..Policy::default() };
        let early_data = if early { 16_384 } else { 0 };
        let rules = server::Rules { early_data, alpn: alpn.clone(), policy, ..server::Rules::default() };
        let entry = server::entry(identity, &rules, &sessions).expect("an entry").0;
        let (acceptor, mut table) = (Acceptor::new(false, 0), server::Table::default());
        table.add(entry.into(), &[], false);
        acceptor.publish(table);
        let rules = client::Rules { early_data: early, alpn, ..client::Rules::default() };
        Site { acceptor: acceptor.into(), connector: Connector::new(&rules).expect("a connector").0 }
    }

    fn accept(&self) -> Party {
        Party::new(Handshake::accept(self.acceptor.clone(), &[]))
    }

    fn connect(&self) -> Party {
        let name = Some(&b"fuzz.example"[..]);
        Party::new(Handshake::connect_early(&self.connector, name, None, true).expect("a client"))
    }
}

/// One who takes part.
struct Party {
    handshake: Option<Handshake>,
    stream: Option<Box<Stream>>,
    sent: usize,
    got: usize,
    over: bool,
}

impl Party {
    fn new(handshake: Handshake) -> Party {
        Party { handshake: Some(handshake), stream: None, sent: 0, got: 0, over: false }
    }

    fn turn(&mut self, wire: &End<'_>) {
        if self.over {
            return;
        }
        if let Some(handshake) = &mut self.handshake {
            match handshake.step(wire) {
                Step::Read | Step::Write => return,
                Step::Failed(_) => return self.end(wire),
                Step::Done(stream, _) => (self.stream, self.handshake) = (Some(stream), None),
            }
        }
        if !self.talk(wire) {
            self.end(wire);
        }
    }

    fn end(&mut self, wire: &End<'_>) {
        self.over = true;
        wire.to.borrow_mut().cut = true;
    }

    /// Sends and receives; whether that can go on.
    fn talk(&mut self, wire: &End<'_>) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        if self.sent < AMOUNT {
            let piece = &WORDS[self.sent % WORDS.len()..];
            match stream.try_send(wire, piece, WORDS, false) {
                Some(Ok(n)) => self.sent += n,
                Some(Err(_)) => return false,
                None => {}
            }
        } else {
            stream.close(wire);
        }
        let mut buf = [0; 1000];
        while let Some(read) = stream.try_recv(wire, &mut buf) {
            let Ok(n @ 1..) = read else { return false };
            let told = buf[..n].iter().zip(WORDS.iter().cycle().skip(self.got % WORDS.len()));
            assert!(told.into_iter().all(|(is, was)| is == was), "something else arrived");
            self.got += n;
        }
        true
    }
}

/// Lets both talk until they are done or nothing moves any more, then cuts the wire.
fn meet(client: &mut Party, server: &mut Party, up: &RefCell<Line>, down: &RefCell<Line>, step: usize) {
    let (here, there) = (End { from: down, to: up, step }, End { from: up, to: down, step });
    let state = |line: &RefCell<Line>| (line.borrow().passed, line.borrow().bytes.len());
    let mut before = None;
    while !(client.over && server.over) {
        client.turn(&here);
        server.turn(&there);
        let after = Some((state(up), state(down)));
        if before == after {
            break;
        }
        before = after;
    }
    up.borrow_mut().cut = true;
    down.borrow_mut().cut = true;
    for _ in 0..MOST {
        if client.over && server.over {
            return;
        }
        client.turn(&here);
        server.turn(&there);
    }
    assert!(client.over && server.over, "somebody waits on a wire that is cut");
}

/// The first byte says who meets and how, the others what the peer says, or four by four what happens on the
/// wire.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn handshake(data: &[u8]) {
    thread_local! {
        static SITES: [OnceCell<Site>; 4] = const { [const { OnceCell::new() }; 4] };
    }
    let Some((&mode, rest)) = data.split_first() else { return };
    let (early, old, alone) = (mode & 1 != 0, mode & 2 != 0, mode & 4 != 0);
    let step = [usize::MAX, 1000, 100, 7][usize::from(mode >> 3 & 3)];
    SITES.with(|sites| {
        let site = sites[usize::from(mode & 3)].get_or_init(|| Site::new(early, old));
        match alone {
            true => one(site, mode & 32 != 0, rest, step),
            false => both(site, early, rest, step),
        }
    });
}

/// One end, and a peer that says this.
fn one(site: &Site, client: bool, said: &[u8], step: usize) {
    let (from, to) = (RefCell::new(Line::default()), RefCell::new(Line::default()));
    from.borrow_mut().bytes.extend(said);
    from.borrow_mut().cut = true;
    let mut party = if client { site.connect() } else { site.accept() };
    let wire = End { from: &from, to: &to, step };
    for _ in 0..said.len() + 100 {
        party.turn(&wire);
    }
    assert!(party.over, "it waits on a wire that is cut");
    assert_eq!(party.got, 0, "nobody has the keys");
}

/// Two ends, and somebody between them.
fn both(site: &Site, early: bool, edits: &[u8], step: usize) {
    let lines = || (RefCell::new(Line::default()), RefCell::new(Line::default()));
    if early {
        // A session to resume.
        let (up, down) = lines();
        meet(&mut site.connect(), &mut site.accept(), &up, &down, usize::MAX);
    }
    let (up, down) = lines();
    for edit in edits.chunks_exact(4).take(8) {
        let at = usize::from(edit[1]) | usize::from(edit[2]) << 8;
        let what = match edit[0] >> 1 & 3 {
            0 => Edit::Drop,
            1 => Edit::Insert(edit[3]),
            _ => Edit::Change(edit[3]),
        };
        let line = if edit[0] & 1 == 0 { &up } else { &down };
        line.borrow_mut().edits.push((at, what));
    }
    let untouched = edits.len() < 4;
    let (mut client, mut server) = (site.connect(), site.accept());
    meet(&mut client, &mut server, &up, &down, step);
    let all = client.got >= AMOUNT && server.got >= AMOUNT;
    assert!(all || !untouched, "data were lost: {} and {}", client.got, server.got);
}

#[cfg(test)]
mod tests {
    use super::handshake;

    #[test]
    fn ends_that_nobody_disturbs_tell_each_other_all() {
        for mode in 0..4 {
            for step in 0..4 {
                handshake(&[mode | step << 3]);
            }
        }
    }

    #[test]
    fn whatever_is_changed_on_the_way_nothing_false_arrives() {
        for mode in 0..4 {
            for at in (0..1500u16).step_by(97) {
                let [low, high] = at.to_le_bytes();
                for what in 0..6 {
                    handshake(&[mode, what, low, high, 0x55]);
                }
            }
        }
    }

    #[test]
    fn a_peer_that_says_anything_is_told_off() {
        let hello = include_bytes!("../../../../fuzz/seeds/tls/hello");
        for mode in [4, 5, 6, 7, 36, 37, 38, 39] {
            for len in (0..hello.len()).step_by(13) {
                handshake(&[&[mode], &hello[..len]].concat());
            }
        }
    }
}
