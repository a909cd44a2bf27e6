//! Sessions between peers: one that is there and tells, one that leaves at any moment, one that does not
//! listen. Whatever happens on the way, both sides know the same in the end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rt::sim::{self, Faults};
use stick::{Data, Table};
use wire::peers::read::{Column, Key, Value, values};
use wire::peers::{Definition, Reader, class, control, frame, hello, shape, table, write};
use worlds::{ALL, CALM, Peer, QUIET, Setup, Stage, addr, explore, explore_with, spawn, within};

const PEERS: &str = "global
 localpeer A
peers ps
 bind 127.0.0.1:1024
 server A
 server B 127.0.1.1:1024
backend t
 stick-table type integer size 10k expire 1h peers ps store gpc0";
const A: &str = "127.0.0.1:1024";
const B: &str = "127.0.1.1:1024";
const GPC0: u8 = 2;
const KEY: (Key, u64) = (Key::Integer, 4);

fn now() -> u64 {
    rt::now().as_millis()
}

fn exchanged(stage: &Stage) -> Arc<Table> {
    stage.shared.program.tables[0].clone()
}

/// Sets an entry of A as a rule would.
fn set(table: &Arc<Table>, key: u32, value: u64) {
    let held = table.enter(&key.to_be_bytes(), now()).expect("there is room");
    held.touched_row(now()).set(Data::Gpc0, 0, value);
}

fn get(table: &Arc<Table>, key: u32) -> Option<u64> {
    table.find(&key.to_be_bytes(), now())?.row(now()).get(Data::Gpc0, 0)
}

fn is_up_to_date(stage: &Stage) -> bool {
    stage.shared.program.peers[0].state.up_to_date.load(Relaxed)
}

/// A message: class, kind, body.
type Said = (u8, u8, Vec<u8>);

/// The next message; `None` when the connection is over.
async fn heard(peer: &mut Peer) -> Option<Said> {
    loop {
        if let Some((f, bytes)) = frame(&peer.buf, 1 << 16).expect("A speaks the protocol") {
            let said = (f.class, f.kind, f.body.to_vec());
            peer.buf.drain(..bytes);
            return Some(said);
        }
        peer.more().await.ok()?;
    }
}

/// The next message of the class of control that is no heartbeat.
async fn controlled(peer: &mut Peer) -> Option<u8> {
    loop {
        match heard(peer).await? {
            (class::CONTROL, control::HEARTBEAT, _) => {}
            (class::CONTROL, kind, _) => return Some(kind),
            _ => {}
        }
    }
}

/// Answers the hello of A.
async fn welcome(peer: &mut Peer) -> Option<()> {
    loop {
        if let Some((hello, bytes)) = hello::parse(&peer.buf).expect("A says hello") {
            assert_eq!((hello.local, hello.remote), (&b"A"[..], &b"B"[..]));
            peer.buf.drain(..bytes);
            return peer.send(b"200\n").await.ok();
        }
        peer.more().await.ok()?;
    }
}

/// Connects to A under this name.
async fn visit(name: &str) -> Option<Peer> {
    let mut peer = Peer::connect(&addr(A)).await.ok()?;
    peer.send(&hello::compose("A", name, 1)).await.ok()?;
    (peer.take(4).await == b"200\n").then_some(peer)
}

fn definition(out: &mut Vec<u8>) {
    let (shape, _) = shape(GPC0).unwrap();
    write::definition(out, 7, "t", KEY, 0, &[Column { number: GPC0, shape, count: 1, period: 0 }]);
}

fn update(out: &mut Vec<u8>, number: u32, key: u32, value: u64) {
    write::message(out, table::UPDATE, |out| {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&key.to_be_bytes());
        write::number(out, value);
    });
}

#[test]
fn who_was_asked_and_comes_anew_is_asked_again() {
    explore(PEERS, CALM, |stage| async move {
        let asked = Rc::new(Cell::new(false));
        let seen = asked.clone();
        stage.serve(B, move |mut peer, _| {
            let seen = seen.clone();
            async move {
                let _ = welcome(&mut peer).await;
                seen.set(controlled(&mut peer).await == Some(control::RESYNC));
                peer.rest().await;
            }
        });
        while !asked.get() {
            rt::sleep(Duration::from_millis(1)).await;
        }
        // The last connection counts: that A waits for an answer over the one before must not be for ever.
        let mut peer = visit("B").await.unwrap();
        let asked = within(Duration::from_secs(4), controlled(&mut peer)).await;
        assert_eq!(asked, Some(Some(control::RESYNC)));
        let mut out = Vec::new();
        definition(&mut out);
        update(&mut out, 1, 5, 55);
        write::short(&mut out, class::CONTROL, control::FINISHED);
        peer.send(&out).await.unwrap();
        assert_eq!(controlled(&mut peer).await, Some(control::CONFIRMED));
        assert_eq!(get(&exchanged(&stage), 5), Some(55));
        assert!(is_up_to_date(&stage));
    });
}

#[test]
fn a_lesson_that_comes_to_a_halt_is_asked_for_again_and_then_given_up() {
    explore(PEERS, CALM, |stage| async move {
        let asked = Rc::new(Cell::new(0));
        let seen = asked.clone();
        stage.serve(B, move |mut peer, _| {
            let seen = seen.clone();
            async move {
                let _ = welcome(&mut peer).await;
                let mut out = Vec::new();
                definition(&mut out);
                taught(&mut out, 1, 5, 50);
                loop {
                    if peer.send(&out).await.is_err() {
                        return;
                    }
                    out.clear();
                    if within(Duration::from_secs(2), controlled(&mut peer)).await
                        == Some(Some(control::RESYNC))
                    {
                        seen.set(seen.get() + 1);
                    }
                    write::short(&mut out, class::CONTROL, control::HEARTBEAT);
                }
            }
        });
        assert!(
            within(Duration::from_secs(30), async {
                while !is_up_to_date(&stage) {
                    rt::sleep(Duration::from_millis(10)).await;
                }
            })
            .await
            .is_some()
        );
        assert_eq!((asked.get(), get(&exchanged(&stage), 5)), (2, Some(50)));
    });
}

/// An entry of a lesson: whoever teaches tells the time left.
fn taught(out: &mut Vec<u8>, number: u32, key: u32, value: u64) {
    write::message(out, table::TIMED, |out| {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&60_000_u32.to_be_bytes());
        out.extend_from_slice(&key.to_be_bytes());
        write::number(out, value);
    });
}

#[test]
fn a_lesson_that_comes_late_undoes_no_news() {
    explore(PEERS, CALM, |stage| async move {
        let (learnt, told) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let (over, go) = (learnt.clone(), told.clone());
        stage.serve(B, move |mut peer, _| {
            let (over, go) = (over.clone(), go.clone());
            async move {
                let _ = welcome(&mut peer).await;
                assert_eq!(controlled(&mut peer).await, Some(control::RESYNC));
                let mut out = Vec::new();
                definition(&mut out);
                update(&mut out, 1, 5, 55);
                taught(&mut out, 2, 5, 50);
                taught(&mut out, 3, 6, 60);
                write::short(&mut out, class::CONTROL, control::FINISHED);
                peer.send(&out).await.unwrap();
                assert_eq!(controlled(&mut peer).await, Some(control::CONFIRMED));
                over.set(true);
                while !go.get() {
                    rt::sleep(Duration::from_millis(1)).await;
                }
                // What comes behind the lesson counts, however it is told.
                out.clear();
                taught(&mut out, 4, 5, 56);
                peer.send(&out).await.unwrap();
                peer.rest().await;
            }
        });
        let table = exchanged(&stage);
        while !learnt.get() {
            rt::sleep(Duration::from_millis(1)).await;
        }
        assert!(is_up_to_date(&stage));
        assert_eq!((get(&table, 5), get(&table, 6)), (Some(55), Some(60)));
        told.set(true);
        while get(&table, 5) != Some(56) {
            rt::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn who_asks_and_does_not_listen_costs_a_buffer() {
    explore(PEERS, CALM, |_| async move {
        let peer = visit("B").await.unwrap();
        // Each is confirmed with as many bytes.
        let flood = [class::CONTROL, control::FINISHED].repeat(2 << 20);
        let sent = within(Duration::from_secs(60), peer.send(&flood)).await;
        assert!(matches!(sent, Some(Err(_))), "A took it all: {sent:?}");
    });
}

#[test]
fn nothing_is_waited_for_when_the_old_process_knew_a_part() {
    explore_with(
        || Setup::new(PEERS).taking_over(),
        QUIET,
        |stage| async move {
            let asked = Rc::new(Cell::new(None));
            let seen = asked.clone();
            stage.serve(B, move |mut peer, _| {
                let seen = seen.clone();
                async move {
                    let _ = welcome(&mut peer).await;
                    let kind = controlled(&mut peer).await;
                    seen.set(kind.map(|kind| (kind, rt::now())));
                    peer.rest().await;
                }
            });
            let mut old = visit("A").await.unwrap();
            rt::sleep(Duration::from_millis(100)).await;
            assert_eq!(asked.get(), None, "others are asked when the old process has taught");
            let mut out = Vec::new();
            definition(&mut out);
            update(&mut out, 1, 5, 55);
            write::short(&mut out, class::CONTROL, control::PARTIAL);
            old.send(&out).await.unwrap();
            assert_eq!(controlled(&mut old).await, Some(control::CONFIRMED));
            rt::sleep(Duration::from_millis(10)).await;
            assert!(matches!(asked.get(), Some((control::RESYNC, _))), "{:?}", asked.get());
            assert_eq!(get(&exchanged(&stage), 5), Some(55));
        },
    );
}

/// What B knows, and how wildly it behaves.
#[derive(Default)]
struct Model {
    wild: Cell<bool>,
    /// What A has told.
    told: RefCell<BTreeMap<u32, u64>>,
    /// What B has.
    own: RefCell<BTreeMap<u32, u64>>,
    updates: Cell<u32>,
    sessions: Cell<u32>,
}

impl Model {
    fn chance(&self, one_in: u64) -> bool {
        self.wild.get() && rt::random().is_multiple_of(one_in)
    }

    /// All of what B has.
    fn all(&self, out: &mut Vec<u8>) {
        definition(out);
        for (key, value) in &*self.own.borrow() {
            self.updates.set(self.updates.get() + 1);
            update(out, self.updates.get(), *key, *value);
        }
    }

    /// Speaks with A until either leaves.
    async fn session(&self, mut peer: Peer) -> Option<()> {
        self.sessions.set(self.sessions.get() + 1);
        let mine = self.sessions.get();
        let mut out = Vec::new();
        if self.chance(2) {
            write::short(&mut out, class::CONTROL, control::RESYNC);
        }
        self.all(&mut out);
        let (mut current, mut last): (Option<(u64, Vec<Column>)>, u32) = (None, 0);
        loop {
            peer.send(&out).await.ok()?;
            out.clear();
            let Some(next) = within(Duration::from_secs(2), heard(&mut peer)).await else {
                write::short(&mut out, class::CONTROL, control::HEARTBEAT);
                continue;
            };
            let (class, kind, body) = next?;
            if self.chance(200) || self.sessions.get() != mine {
                return None;
            }
            match (class, kind) {
                (class::CONTROL, control::RESYNC) => {
                    self.all(&mut out);
                    write::short(&mut out, class::CONTROL, control::FINISHED);
                }
                (class::CONTROL, control::FINISHED | control::PARTIAL) => {
                    write::short(&mut out, class::CONTROL, control::CONFIRMED);
                }
                (class::TABLE, table::DEFINITION) => {
                    let d = Definition::parse(&body).expect("a definition");
                    assert_eq!((d.name, d.key), (&b"t"[..], Some(Key::Integer)));
                    current = Some((d.id, d.columns));
                }
                (class::TABLE, table::UPDATE | table::NEXT | table::TIMED | table::TIMED_NEXT) => {
                    let mut r = Reader::new(&body);
                    last = match kind {
                        table::UPDATE | table::TIMED => r.long().unwrap(),
                        _ => last.wrapping_add(1),
                    };
                    if matches!(kind, table::TIMED | table::TIMED_NEXT) {
                        assert!(r.long().unwrap() <= 3_600_000);
                    }
                    let key = u32::from_be_bytes(r.bytes(4).unwrap().try_into().unwrap());
                    let (id, columns) = current.as_ref().expect("a table is named first");
                    let mut value = None;
                    values(columns, &mut r, |_, _, v| value = Some(v)).unwrap();
                    let Some(Value::Number(value)) = value else { panic!("{value:?}") };
                    self.told.borrow_mut().insert(key, value);
                    if !self.wild.get() || self.chance(8) {
                        write::ack(&mut out, *id, last);
                    }
                }
                _ => {}
            }
            if self.chance(10) {
                let (key, value) = (1000 + (rt::random() % 50) as u32, rt::random() >> 40);
                self.own.borrow_mut().insert(key, value);
                definition(&mut out);
                self.updates.set(self.updates.get() + 1);
                update(&mut out, self.updates.get(), key, value);
            }
        }
    }
}

#[test]
fn both_know_the_same_in_the_end() {
    explore(PEERS, ALL, |stage| async move {
        let model = Rc::new(Model::default());
        model.wild.set(true);
        let b = model.clone();
        stage.serve(B, move |mut peer, _| {
            let b = b.clone();
            async move {
                if welcome(&mut peer).await.is_some() {
                    b.session(peer).await;
                }
            }
        });
        let b = model.clone();
        let visits = spawn(async move {
            while b.wild.get() {
                rt::sleep(Duration::from_millis(rt::random() % 10_000)).await;
                if let Some(Some(peer)) = within(Duration::from_secs(3), visit("B")).await {
                    let b = b.clone();
                    spawn(async move { b.session(peer).await });
                }
            }
        });
        let table = exchanged(&stage);
        let mut set_here = BTreeMap::new();
        for n in 0..600 {
            let (key, value) = ((rt::random() % 50) as u32, n);
            set(&table, key, value);
            set_here.insert(key, value);
            rt::sleep(Duration::from_millis(rt::random() % 200)).await;
        }
        model.wild.set(false);
        sim::set_faults(None, Faults::default());
        visits.join().await;
        rt::sleep(Duration::from_secs(60)).await;
        let told: BTreeMap<u32, u64> =
            model.told.borrow().iter().filter(|(key, _)| **key < 1000).map(|(k, v)| (*k, *v)).collect();
        assert_eq!(told, set_here, "what B was told");
        let own = model.own.borrow().clone();
        let learned: BTreeMap<u32, u64> =
            own.keys().filter_map(|key| Some((*key, get(&table, *key)?))).collect();
        assert_eq!(learned, own, "what A has learned");
        assert!(is_up_to_date(&stage));
    });
}
