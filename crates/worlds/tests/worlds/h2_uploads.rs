//! Uploads to servers of HTTP/2 that announce that they want them, or take a part of them and then refuse the
//! request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base::slab::Key;
use wire::h2::{Code, Connection, Event, Limits, Role};
use wire::head::Head;
use worlds::{CALM, Peer, Stage, content, explore, post};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const BACK: &str = "  timeout server 4s\n  timeout client 6s\nlisten p\n bind 127.0.0.1:80\n http-reuse always\n \
                    retry-on conn-failure empty-response\n server s 127.0.1.1:80 proto h2";

/// How a request is refused of which a part has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Its stream is reset: the server did not look at it.
    Reset,
    /// A farewell says that no stream of the connection was looked at.
    Farewell,
    /// The connection is closed.
    Leaves,
}

/// What the connections of a server have in common.
struct Desk {
    /// So many requests are still to be refused.
    refusals: Cell<u32>,
    how: Refusal,
    /// Whether uploads are asked for.
    continues: bool,
    /// Requests that came whole: their number and their body.
    taken: RefCell<Vec<(u64, Vec<u8>)>>,
}

/// A request on its way in.
struct Part {
    stream: Key,
    id: u64,
    length: usize,
    body: Vec<u8>,
    /// It is refused when so much of its body has come.
    refused_at: Option<usize>,
    whole: bool,
}

impl Part {
    fn of(request: &Head, stream: Key, desk: &Desk, whole: bool) -> Part {
        let target = String::from_utf8_lossy(request.target()).into_owned();
        let mut numbers = target.split('/').filter_map(|n| n.parse::<u64>().ok());
        let (id, length) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0) as usize);
        let upload = request.first(&b"content-length"[..]).map(String::from_utf8_lossy);
        let upload = upload.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        let refused = desk.refusals.get() > 0;
        desk.refusals.set(desk.refusals.get().saturating_sub(1));
        let refused_at = refused.then(|| (rt::random() % (upload + 1)) as usize);
        Part { stream, id, length, body: Vec::new(), refused_at, whole }
    }

    fn is_refused(&self) -> bool {
        self.refused_at.is_some_and(|n| self.body.len() >= n)
    }
}

async fn serve(mut peer: Peer, desk: Rc<Desk>) {
    let mut out = Vec::new();
    let limits = Limits { window: 16_384, rxbuf: 16_384, streams: 20, ..Limits::default() };
    let mut connection = Connection::new(Role::Server, limits, &mut out);
    let (mut head, mut parts): (Head, Vec<Part>) = (Head::request(), Vec::new());
    loop {
        if peer.send(&std::mem::take(&mut out)).await.is_err() || peer.more().await.is_err() {
            return;
        }
        peer.events(&mut connection, &mut head, &mut out, |connection, head, out, event| match event {
            Event::Head { stream, end, .. } => {
                if desk.continues {
                    connection.respond(stream, &Head::response(), 100, false, out);
                }
                parts.push(Part::of(head, stream, &desk, end));
            }
            Event::Data { stream, bytes, end, .. } => {
                for part in parts.iter_mut().filter(|p| p.stream == stream) {
                    part.body.extend_from_slice(bytes);
                    part.whole |= end;
                }
                connection.release(stream, bytes.len(), out);
            }
            Event::Reset { stream, .. } => parts.retain(|p| p.stream != stream),
            _ => {}
        });
        for part in parts.extract_if(.., |p| p.is_refused() || p.whole) {
            match (part.is_refused(), desk.how) {
                (true, Refusal::Reset) => connection.reset(part.stream, Code::REFUSED_STREAM, &mut out),
                (true, Refusal::Leaves) => return,
                (true, Refusal::Farewell) => {
                    out.extend_from_slice(&[&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], &[0; 8]].concat());
                    let _ = peer.send(&out).await;
                    peer.finish();
                    peer.rest().await;
                    return;
                }
                (false, _) => {
                    connection.respond(part.stream, &Head::response(), 200, false, &mut out);
                    connection.send(part.stream, &content(part.id, part.length), true, &mut out);
                    desk.taken.borrow_mut().push((part.id, part.body));
                }
            }
        }
    }
}

fn desk(stage: &Rc<Stage>, how: Refusal, continues: bool) -> Rc<Desk> {
    let desk = Rc::new(Desk { refusals: Cell::new(0), how, continues, taken: RefCell::default() });
    let shared = desk.clone();
    stage.serve(S, move |peer, _| serve(peer, shared.clone()));
    desk
}

/// What fits into a buffer goes to the server once more, from its first byte; of what is longer the client is
/// told.
fn refused_in_the_midst(how: Refusal) {
    explore(BACK, CALM, move |stage| async move {
        let desk = desk(&stage, how, false);
        for (id, size) in (0..).zip([0, 1, 300, 5_000, 40_000, 300]) {
            desk.refusals.set(1);
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&post(&format!("/{id}/20"), &content(id, size))).await;
            let fits = size < 10_000;
            assert!(answer.status() == 200 || !fits, "{how:?} {size}: {:?}", stage.lines().last());
            if answer.status() == 200 {
                assert_eq!(answer.body, content(id, 20));
                assert_eq!(desk.taken.borrow().last(), Some(&(id, content(id, size))), "{how:?} {size}");
            }
            drop(client);
            stage.quiet().await;
        }
    });
}

#[test]
fn an_upload_whose_stream_is_refused_in_its_midst_is_sent_once_more() {
    refused_in_the_midst(Refusal::Reset);
}

#[test]
fn an_upload_that_a_farewell_refuses_in_its_midst_is_sent_once_more() {
    refused_in_the_midst(Refusal::Farewell);
}

#[test]
fn an_upload_whose_connection_is_closed_in_its_midst_is_sent_once_more_where_retry_on_says_so() {
    refused_in_the_midst(Refusal::Leaves);
}

#[test]
fn a_server_of_http2_asks_for_the_body_before_its_client_sends_it() {
    explore(BACK, CALM, |stage| async move {
        let desk = desk(&stage, Refusal::Reset, true);
        for (id, size) in (0..).zip([1, 500, 40_000]) {
            let mut client = stage.client(FRONT).await;
            let head = format!(
                "POST /{id}/20 HTTP/1.1\r\nhost: w\r\nexpect: 100-continue\r\ncontent-length: {size}\r\n\r\n"
            );
            client.send(head.as_bytes()).await.expect("the head is taken");
            assert_eq!(client.any_response().await.status(), 100);
            assert!(desk.taken.borrow().iter().all(|(taken, _)| *taken != id), "its body was not sent yet");
            client.send(&content(id, size)).await.expect("the body is taken");
            let answer = client.response().await;
            assert_eq!((answer.status(), answer.body), (200, content(id, 20)));
            assert_eq!(desk.taken.borrow().last(), Some(&(id, content(id, size))));
            drop(client);
            stage.quiet().await;
        }
    });
}
