//! No byte of a body is lost where one side speaks HTTP/2: takers are slow, answers come before their
//! requests are through, peers leave as soon as they have sent everything, and the next stream follows at
//! once.
//!
//! Every body belongs to its request alone (`content`) and its length stands in the request's path, so what
//! is missing, doubled or somebody else's is noticed whatever the framing says.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use base::slab::Key;
use wire::h2::{Code, Connection, Event, Limits, Outline, Role};
use wire::head::Head;
use wire::http1::parse_request;
use worlds::{ALL, CALM, Peer, Stage, addr, all, content, explore, get, response, spawn, within};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

fn dice(sides: u64) -> u64 {
    rt::random() % sides
}

/// What came on a connection of HTTP/2.
enum Told {
    Head { stream: Key, head: Head, end: bool },
    Data { stream: Key, bytes: Vec<u8>, end: bool },
    Reset { stream: Key },
}

/// One end of a connection of HTTP/2 with bodies on their way in both directions.
struct Side {
    peer: Peer,
    connection: Connection,
    out: Vec<u8>,
    /// Bodies that are being sent, and how much of each went out.
    sending: Vec<(Key, Vec<u8>, usize)>,
}

impl Side {
    fn new(peer: Peer, role: Role) -> Side {
        let mut out = Vec::new();
        let connection = Connection::new(role, Limits::default(), &mut out);
        Side { peer, connection, out, sending: Vec::new() }
    }

    /// Puts into frames what the windows allow.
    fn fill(&mut self) {
        let Side { connection, out, sending, .. } = self;
        sending.retain_mut(|(stream, body, sent)| {
            *sent += connection.send(*stream, &body[*sent..], true, out);
            *sent < body.len() && connection.id(*stream).is_some()
        });
    }

    /// Sends what the windows allow, and reads once. Nothing: the connection is over.
    async fn turn(&mut self) -> Option<Vec<Told>> {
        self.fill();
        let mut room = [0u8; 4096];
        let (socket, out) = (&self.peer.socket, &mut self.out);
        let n = poll_fn(|cx| {
            while !out.is_empty() {
                match socket.poll_send(cx, out, false) {
                    Poll::Ready(Ok(n)) => drop(out.drain(..n)),
                    Poll::Ready(Err(_)) => return Poll::Ready(0),
                    Poll::Pending => break,
                }
            }
            socket.poll_recv(cx, &mut room).map(|read| read.unwrap_or(0))
        })
        .await;
        self.peer.buf.extend_from_slice(&room[..n]);
        (n > 0).then(|| self.understand())
    }

    /// Goes on with what is to be sent, for a while.
    async fn linger(&mut self, time: Duration) {
        within(time, async { while self.turn().await.is_some() {} }).await;
    }

    fn understand(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        let take =
            |connection: &mut Connection, head: &mut Head, out: &mut Vec<u8>, event: Event<'_>| match event {
                Event::Head { stream, end, .. } => told.push(Told::Head { stream, head: head.clone(), end }),
                Event::Data { stream, bytes, end, .. } => {
                    told.push(Told::Data { stream, bytes: bytes.to_vec(), end });
                    connection.release(stream, bytes.len(), out);
                }
                Event::Trailers { stream } => told.push(Told::Data { stream, bytes: Vec::new(), end: true }),
                Event::Reset { stream, .. } => told.push(Told::Reset { stream }),
                _ => {}
            };
        self.peer.events(&mut self.connection, &mut Head::request(), &mut self.out, take);
        told
    }
}

/// A request of a client: `/<id>/<length of the response>/<length of the request>`.
#[derive(Clone, Debug)]
struct Wish {
    id: u64,
    down: usize,
    up: usize,
    /// The client gives it up after so many bytes of the response.
    until: Option<usize>,
}

impl Wish {
    fn of(target: &[u8]) -> Wish {
        let text = String::from_utf8_lossy(target).into_owned();
        let mut numbers = text.split('/').filter_map(|n| n.parse::<u64>().ok());
        let mut next = || numbers.next().unwrap_or(0);
        Wish { id: next(), down: next() as usize, up: next() as usize, until: None }
    }

    fn target(&self) -> String {
        format!("/{}/{}/{}", self.id, self.down, self.up)
    }
}

/// What a client got for a wish.
#[derive(Debug)]
struct Got {
    wish: Wish,
    status: u16,
    body: Vec<u8>,
    whole: bool,
}

/// Asks for all, so many at a time, the next one as soon as there is room; `pace`: between two reads of 4 KB.
async fn call(side: &mut Side, wishes: Vec<Wish>, at_once: usize, pace: Duration) -> Vec<Got> {
    let (mut wishes, mut open) = (wishes.into_iter(), HashMap::new());
    let mut done = Vec::new();
    loop {
        while open.len() < at_once && side.connection.can_open() {
            let Some(wish) = wishes.next() else { break };
            open.insert(ask(side, &wish), Got { wish, status: 0, body: Vec::new(), whole: false });
        }
        if open.is_empty() {
            return done;
        }
        let Some(told) = side.turn().await else { break };
        for told in told {
            let (stream, over) = match told {
                Told::Head { stream, head, end } => {
                    open.entry(stream).and_modify(|got| got.status = head.status());
                    (stream, end)
                }
                Told::Data { stream, bytes, end } => {
                    if let Some(got) = open.get_mut(&stream) {
                        got.body.extend_from_slice(&bytes);
                        if got.wish.until.is_some_and(|most| got.body.len() > most) {
                            side.connection.reset(stream, Code::CANCEL, &mut side.out);
                            done.extend(open.remove(&stream));
                        }
                    }
                    (stream, end)
                }
                Told::Reset { stream } => {
                    done.extend(open.remove(&stream));
                    (stream, false)
                }
            };
            if over && let Some(mut got) = open.remove(&stream) {
                got.whole = true;
                done.push(got);
            }
        }
        rt::sleep(pace).await;
    }
    done.extend(open.into_values());
    done
}

fn ask(side: &mut Side, wish: &Wish) -> Key {
    let method = if wish.up > 0 { "POST" } else { "GET" };
    let mut text = format!("{method} {} HTTP/1.1\r\nhost: w\r\n", wish.target());
    if wish.up > 0 && wish.id.is_multiple_of(2) {
        text += &format!("content-length: {}\r\n", wish.up);
    }
    let mut head = Head::request();
    parse_request((text + "\r\n").as_bytes(), &mut head, &Default::default(), false).expect("a request");
    let outline = Outline { scheme: b"http", protocol: None };
    let stream = side.connection.open(&head, outline, wish.up == 0, &mut side.out).expect("room");
    if wish.up > 0 {
        side.sending.push((stream, content(wish.id, wish.up), 0));
    }
    stream
}

/// What servers saw of requests: those that came whole.
type Ledger = Rc<RefCell<Vec<u64>>>;

/// How a server of HTTP/2 goes about it.
#[derive(Clone, Copy, Default)]
struct Manner {
    /// Between two reads.
    pace: Duration,
    /// It closes the connection as soon as so many answers are sent.
    leaves: Option<usize>,
    /// It resets some streams in the midst of their answers.
    resets: bool,
}

/// Answers each request at once, and reads what comes of it later.
async fn serve(peer: Peer, manner: Manner, ledger: Ledger) {
    let mut side = Side::new(peer, Role::Server);
    let mut uploads: HashMap<Key, (Wish, Vec<u8>)> = HashMap::new();
    let mut served = 0;
    while let Some(told) = side.turn().await {
        for told in told {
            match told {
                Told::Head { stream, head, end } => {
                    let wish = Wish::of(head.target());
                    answer(&mut side, stream, &wish, manner);
                    served += 1;
                    if end {
                        ledger.borrow_mut().push(wish.id);
                    } else {
                        uploads.insert(stream, (wish, Vec::new()));
                    }
                }
                Told::Data { stream, bytes, end } => {
                    let Some((wish, body)) = uploads.get_mut(&stream) else { continue };
                    body.extend_from_slice(&bytes);
                    assert!(content(wish.id, wish.up).starts_with(body), "the body of another request");
                    if end {
                        assert_eq!(body.len(), wish.up, "an upload is called whole");
                        ledger.borrow_mut().push(wish.id);
                        uploads.remove(&stream);
                    }
                }
                Told::Reset { stream } => drop(uploads.remove(&stream)),
            }
        }
        if manner.leaves.is_some_and(|most| served >= most) {
            // All that is owed, and the connection is closed in the same breath.
            loop {
                side.fill();
                if side.sending.is_empty() {
                    break;
                }
                if side.turn().await.is_none() {
                    return;
                }
            }
            let _ = side.peer.send(&side.out).await;
            side.peer.finish();
            side.peer.rest().await;
            return;
        }
        rt::sleep(manner.pace).await;
    }
}

fn answer(side: &mut Side, stream: Key, wish: &Wish, manner: Manner) {
    let mut head = Head::response();
    if !wish.id.is_multiple_of(3) {
        head.append(b"content-length", wish.down.to_string().as_bytes()).expect("room");
    }
    side.connection.respond(stream, &head, 200, wish.down == 0, &mut side.out);
    let body = content(wish.id, wish.down);
    if manner.resets && dice(4) == 0 {
        let part = dice(wish.down as u64 + 1) as usize;
        side.connection.send(stream, &body[..part], false, &mut side.out);
        side.connection.reset(stream, Code::INTERNAL_ERROR, &mut side.out);
    } else if wish.down > 0 {
        side.sending.push((stream, body, 0));
    }
}

/// A server of HTTP/1 that answers as soon as it knows what is asked for, and reads the request's body
/// slowly.
async fn early(mut peer: Peer, pace: Duration, ledger: Ledger) {
    loop {
        let head = loop {
            if let Some(end) = peer.buf.windows(4).position(|w| w == b"\r\n\r\n") {
                break peer.buf.drain(..end + 4).collect::<Vec<u8>>();
            }
            if peer.more().await.is_err() {
                return;
            }
        };
        let text = String::from_utf8_lossy(&head).into_owned();
        let wish = Wish::of(text.split(' ').nth(1).unwrap_or_default().as_bytes());
        if peer.send(&response(200, &content(wish.id, wish.down))).await.is_err() {
            return;
        }
        let body = match text.contains("chunked") {
            true => chunks(&mut peer, pace).await,
            false => slowly(&mut peer, wish.up, pace).await,
        };
        assert!(content(wish.id, wish.up).starts_with(&body), "the body of another request");
        if body.len() < wish.up {
            return;
        }
        ledger.borrow_mut().push(wish.id);
    }
}

async fn slowly(peer: &mut Peer, n: usize, pace: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < n {
        let part = peer.take((n - body.len()).min(1000)).await;
        if part.is_empty() {
            break;
        }
        body.extend(part);
        rt::sleep(pace).await;
    }
    body
}

async fn chunks(peer: &mut Peer, pace: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            match peer.take(1).await.pop() {
                Some(byte) => line.push(byte),
                None => return body,
            }
        }
        let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).expect("a chunk");
        body.extend(slowly(peer, size, pace).await);
        peer.take(2).await;
        if size == 0 {
            return body;
        }
    }
}

const BACK_TWO: &str = "  timeout client 300s\n  timeout server 300s\nlisten p\n bind 127.0.0.1:80\n http-reuse always\n server s 127.0.1.1:80 proto h2";
const FRONT_TWO: &str = "  timeout client 300s\n  timeout server 300s\nlisten p\n bind 127.0.0.1:80 proto h2\n server s 127.0.1.1:80";
const BOTH_TWO: &str = "  timeout client 300s\n  timeout server 300s\nlisten p\n bind 127.0.0.1:80 proto h2\n http-reuse always\n server s 127.0.1.1:80 proto h2";

/// Clients of HTTP/1 that read slowly, each with some requests one after the other.
async fn slow_clients(stage: &Rc<Stage>, clients: u64, requests: u64, most: u64) {
    stage.link(FRONT, |faults| faults.window = 4096);
    let jobs = (0..clients).map(|job| {
        let stage = stage.clone();
        spawn(async move {
            let mut client = stage.client(FRONT).await;
            for step in 0..requests {
                let (id, size) = (job * 100 + step, dice(most) as usize);
                // Nobody wants to meet a server that is just leaving.
                rt::sleep(Duration::from_millis(200)).await;
                client.send(&get(&format!("/{id}/{size}"))).await.expect("nothing breaks here");
                let pace = Duration::from_micros(dice(3000));
                while !client.buf.ends_with(b"\r\n\r\n") && client.buf.len() < size {
                    client.more().await.expect("the connection is kept");
                    rt::sleep(pace).await;
                }
                let answer = client.response().await;
                assert!(answer.is_whole(), "/{id}/{size}: {} bytes, {:?}", answer.body.len(), answer.end);
                assert!(answer.body == content(id, size), "/{id}/{size}: {} bytes", answer.body.len());
            }
        })
    });
    all(jobs.collect::<Vec<_>>()).await;
}

/// A server of HTTP/2 with this manner, whose slow clients get all they asked for: so many clients, requests,
/// bytes.
fn whole_for_slow_clients(manner: Manner, (clients, requests, most): (u64, u64, u64)) {
    explore(BACK_TWO, CALM, move |stage| async move {
        let ledger = Ledger::default();
        stage.serve(S, move |peer, _| serve(peer, manner, ledger.clone()));
        slow_clients(&stage, clients, requests, most).await;
        stage.ended((clients * requests) as usize).await;
    });
}

#[test]
fn slow_clients_get_all_that_a_server_of_http2_sent_though_other_streams_follow() {
    whole_for_slow_clients(Manner::default(), (5, 3, 100_000));
}

#[test]
fn slow_clients_get_all_though_the_server_closed_when_it_had_sent_it() {
    whole_for_slow_clients(Manner { leaves: Some(1), ..Manner::default() }, (1, 4, 200_000));
}

#[test]
fn uploads_of_http2_clients_reach_a_server_that_answers_first_and_reads_later() {
    explore(FRONT_TWO, CALM, |stage| async move {
        let ledger = Ledger::default();
        let seen = ledger.clone();
        stage.link(S, |faults| faults.window = 4096);
        stage.serve(S, move |peer, n| {
            let pace = Duration::from_millis(1 + n as u64 % 3);
            early(peer, pace, ledger.clone())
        });
        let mut side = Side::new(stage.client(FRONT).await, Role::Client);
        let wish = |id| Wish { id, down: 10, up: 1 + dice(60_000) as usize, until: None };
        let wishes: Vec<Wish> = (0..12).map(wish).collect();
        for got in call(&mut side, wishes, 3, Duration::ZERO).await {
            assert!(got.whole && got.body == content(got.wish.id, 10), "{:?}", got.wish);
        }
        // The client is content with what it was told, and leaves.
        side.linger(Duration::from_secs(250)).await;
        drop(side);
        let lines = stage.ended(12).await;
        assert!(lines.iter().all(|line| line.state() == "--"), "{lines:#?}");
        let mut whole = seen.take();
        whole.sort_unstable();
        assert_eq!(whole, (0..12).collect::<Vec<_>>(), "uploads that came whole");
    });
}

/// Many streams on few connections, both directions, slow on all sides; `climates` says whether all has to
/// come.
fn mixture(climates: &[worlds::Climate], resets: bool) {
    explore(BOTH_TWO, climates, move |stage| async move {
        let ledger = Ledger::default();
        let seen = ledger.clone();
        for at in [FRONT, S] {
            stage.link(at, |faults| faults.window = 4096 << dice(5));
        }
        stage.serve(S, move |peer, n| {
            let manner =
                Manner { pace: Duration::from_micros(dice(2000) * (n as u64 % 2)), resets, leaves: None };
            serve(peer, manner, seen.clone())
        });
        let jobs = (0..3u64).map(|job| {
            spawn(async move {
                let Ok(peer) = Peer::connect(&addr(FRONT)).await else { return 0 };
                let mut side = Side::new(peer, Role::Client);
                let wish = |step| Wish {
                    id: job * 100 + step,
                    down: dice(60_000) as usize,
                    up: (dice(2) * dice(60_000)) as usize,
                    until: (resets && dice(4) == 0).then(|| dice(60_000) as usize),
                };
                let wishes: Vec<Wish> = (0..8).map(wish).collect();
                let got = call(&mut side, wishes, 5, Duration::from_micros(dice(1500))).await;
                // A client that leaves leaves its uploads as well.
                side.linger(Duration::from_secs(250)).await;
                for Got { wish, body, whole, .. } in got.iter().filter(|got| got.status == 200) {
                    let expected = content(wish.id, wish.down);
                    assert!(expected.starts_with(body), "{wish:?}");
                    assert!(!whole || body.len() == wish.down, "{wish:?} is called whole: {}", body.len());
                }
                got.iter().filter(|got| got.whole).count()
            })
        });
        let whole: usize = all(jobs.collect::<Vec<_>>()).await.into_iter().sum();
        if !resets && !stage.climate.is_hostile() {
            assert_eq!(whole, 24, "answers that came whole");
        }
        stage.quiet().await;
        if !resets && !stage.climate.is_hostile() {
            assert_eq!(ledger.borrow().len(), 24, "uploads that came whole");
        }
    });
}

#[test]
fn many_streams_with_bodies_in_both_directions_lose_nothing() {
    mixture(CALM, false);
}

#[test]
fn streams_that_are_reset_on_either_side_spoil_no_other() {
    mixture(ALL, true);
}

/// A client asks for five bodies, begins an upload, and closes its sending side before it has an answer. What
/// it gets, and how many streams were reset.
async fn half_closing(stage: &Rc<Stage>) -> (Vec<Got>, usize) {
    stage.serve(S, |mut peer, _| async move {
        let wish = Wish::of(peer.request().await.target().as_bytes());
        rt::sleep(Duration::from_secs(1)).await;
        let _ = peer.send(&response(200, &content(wish.id, wish.down))).await;
        peer.rest().await;
    });
    let mut side = Side::new(stage.client(FRONT).await, Role::Client);
    // Nobody can open a window any more: all has to fit into those that are open.
    let wishes = (0..5).map(|id| Wish { id, down: 1 + dice(12_000) as usize, up: 0, until: None });
    let mut open: HashMap<Key, Got> = wishes
        .map(|wish| (ask(&mut side, &wish), Got { wish, status: 0, body: Vec::new(), whole: false }))
        .collect();
    ask(&mut side, &Wish { id: 5, down: 10, up: 100, until: None });
    side.sending.clear();
    side.linger(Duration::from_millis(300)).await;
    side.peer.finish();
    let (mut reset, mut done) = (0, Vec::new());
    loop {
        side.out.clear();
        let Some(told) = side.turn().await else { break };
        for told in told {
            let (stream, over) = match told {
                Told::Head { stream, head, end } => {
                    open.entry(stream).and_modify(|got| got.status = head.status());
                    (stream, end)
                }
                Told::Data { stream, bytes, end } => {
                    open.entry(stream).and_modify(|got| got.body.extend_from_slice(&bytes));
                    (stream, end)
                }
                Told::Reset { .. } => {
                    reset += 1;
                    continue;
                }
            };
            done.extend(over.then(|| open.remove(&stream)).flatten().map(|got| Got { whole: true, ..got }));
        }
    }
    done.extend(open.into_values());
    (done, reset)
}

#[test]
fn a_client_that_closes_its_sending_side_gets_the_answers_to_its_whole_requests() {
    let patient = FRONT_TWO.replace("listen p\n", "listen p\n no option abortonclose\n");
    explore(&patient, CALM, |stage| async move {
        let (got, reset) = half_closing(&stage).await;
        for Got { wish, body, whole, .. } in &got {
            assert!(*whole && *body == content(wish.id, wish.down), "{wish:?}: {} bytes", body.len());
        }
        assert_eq!((got.len(), reset), (5, 1), "the upload can't become whole");
        let lines = stage.ended(6).await;
        let served = lines.iter().filter(|line| line.status == "200" && line.state() == "--").count();
        assert_eq!(served, 5, "{lines:#?}");
    });
}

#[test]
fn a_client_that_closes_its_sending_side_counts_as_gone_with_abortonclose() {
    let impatient = FRONT_TWO.replace("listen p\n", "listen p\n option abortonclose\n");
    explore(&impatient, CALM, |stage| async move {
        let (got, reset) = half_closing(&stage).await;
        assert!(got.iter().all(|got| got.status == 400 && got.whole), "{got:?}");
        assert_eq!((got.len(), reset), (5, 1));
        let lines = stage.ended(6).await;
        let gone = lines.iter().filter(|line| line.status == "400" && line.state() == "CH").count();
        assert!(gone >= 5 && lines.iter().all(|line| line.state().starts_with('C')), "{lines:#?}");
    });
}
