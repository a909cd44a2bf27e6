//! Exchanges cut at every byte, by either side, in every way: the status and the termination state are those
//! of a table that was read off real HAProxy 3.5 (manual, section 8.5, says what the letters mean).
//!
//! The world is quiet, and each cut comes a tenth of a second after what was sent, so that there is one right
//! answer.

use std::rc::Rc;
use std::time::Duration;

use worlds::{Message, Peer, QUIET, Stage, chunked, explore, response};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const CONFIG: &str = "  timeout client 4s\n  timeout server 4s\n  retries 0\nlisten p\n bind 127.0.0.1:80\n \
                      http-reuse never\n server s 127.0.1.1:80";
const TENTH: Duration = Duration::from_millis(100);

/// How a side ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fin,
    Reset,
    Stall,
}

const WAYS: [Way; 3] = [Way::Fin, Way::Reset, Way::Stall];

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunks,
    Close,
}

const FRAMINGS: [Framing; 3] = [Framing::Length, Framing::Chunks, Framing::Close];

fn head_of(message: &[u8]) -> usize {
    message.windows(4).position(|w| w == b"\r\n\r\n").map_or(message.len(), |p| p + 4)
}

fn answer(framing: Framing) -> Vec<u8> {
    match framing {
        Framing::Length => response(200, b"ABCDEF"),
        Framing::Chunks => {
            [&b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..], &chunked(b"ABCDEF", 4)].concat()
        }
        Framing::Close => b"HTTP/1.1 200 OK\r\n\r\nABCDEF".to_vec(),
    }
}

/// Sends, waits, and ends the connection.
async fn cut(mut peer: Peer, bytes: &[u8], way: Way) {
    let _ = peer.send(bytes).await;
    rt::sleep(TENTH).await;
    match way {
        Way::Reset => return peer.reset(),
        Way::Fin => peer.finish(),
        Way::Stall => {}
    }
    peer.rest().await;
}

/// The line of the `n`-th exchange, once it is over: server, status, termination state.
async fn line(stage: &Rc<Stage>, n: usize) -> (String, String, String) {
    let line = stage.ended(n).await.pop().expect("a line");
    (line.server.clone(), line.status.clone(), line.state().to_owned())
}

fn row(server: &str, status: &str, state: &str) -> (String, String, String) {
    (server.into(), status.into(), state.into())
}

fn cut_request(at: usize, head: usize, whole: usize, way: Way) -> (String, String, String) {
    match way {
        Way::Stall if at < head => row("p/<NOSRV>", "408", "cR"),
        Way::Stall if at < whole => row("p/s", "400", "cH"),
        Way::Stall => row("p/s", "200", "--"),
        _ if at < head => row("p/<NOSRV>", "400", "CR"),
        Way::Reset if at == whole => row("p/s", "400", "CD"),
        _ => row("p/s", "400", "CH"),
    }
}

#[test]
fn requests_cut_at_every_byte() {
    explore(CONFIG, QUIET, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let request = peer.request().await;
            rt::sleep(TENTH * 3).await;
            if request.is_whole() {
                let _ = peer.send(&answer(Framing::Length)).await;
                peer.rest().await;
            }
        });
        let mut lines = 0;
        for body in [
            &b"content-length: 6\r\n\r\nabcdef"[..],
            b"transfer-encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n",
        ] {
            let request = [&b"POST /x HTTP/1.1\r\nhost: a\r\n"[..], body].concat();
            let head = head_of(&request);
            for (at, way) in (0..=request.len()).flat_map(|at| WAYS.map(|way| (at, way))) {
                cut(stage.client(FRONT).await, &request[..at], way).await;
                lines += 1;
                let want = cut_request(at, head, request.len(), way);
                assert_eq!(line(&stage, lines).await, want, "cut at {at} of {head}+, {way:?}");
            }
        }
    });
}

fn cut_response(
    at: usize,
    head: usize,
    whole: usize,
    framing: Framing,
    way: Way,
) -> (String, String, String) {
    let ends = framing != Framing::Close;
    let (status, state) = match way {
        Way::Stall if at < head => ("504", "sH"),
        _ if at == 0 => ("502", "SH"),
        _ if at < head => ("502", "PH"),
        _ if at == whole && ends => ("200", "--"),
        Way::Stall => ("200", "sD"),
        Way::Fin if !ends => ("200", "--"),
        _ => ("200", "SD"),
    };
    row("p/s", status, state)
}

/// What a request asks of the server: how many bytes, and then what.
fn wish(request: &Message) -> (Framing, usize, Way) {
    let mut words = request.target().split('/').skip(1).map(|w| w.parse::<usize>().unwrap_or(0));
    let mut next = || words.next().unwrap_or(0);
    (FRAMINGS[next() % 3], next(), WAYS[next() % 3])
}

fn asking(framing: Framing, at: usize, way: Way) -> Vec<u8> {
    worlds::get(&format!("/{}/{at}/{}", framing as usize, way as usize))
}

#[test]
fn responses_cut_at_every_byte() {
    explore(CONFIG, QUIET, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let (framing, at, way) = wish(&peer.request().await);
            cut(peer, &answer(framing)[..at], way).await;
        });
        let mut lines = 0;
        for framing in FRAMINGS {
            let whole = answer(framing);
            let head = head_of(&whole);
            for (at, way) in (0..=whole.len()).flat_map(|at| WAYS.map(|way| (at, way))) {
                let mut client = stage.client(FRONT).await;
                let got = client.ask(&asking(framing, at, way)).await;
                drop(client);
                lines += 1;
                let want = cut_response(at, head, whole.len(), framing, way);
                assert_eq!(line(&stage, lines).await, want, "{framing:?} cut at {at} of {head}+, {way:?}");
                assert_eq!(got.status().to_string(), want.1, "{framing:?} cut at {at} of {head}+, {way:?}");
            }
        }
    });
}

fn left_response(
    at: usize,
    head: usize,
    whole: usize,
    framing: Framing,
    way: Way,
) -> (String, String, String) {
    let (status, state) = match way {
        _ if at == whole && framing != Framing::Close => ("200", "--"),
        Way::Reset if at < head => ("400", "CD"),
        _ if at < head => ("400", "CH"),
        // What ends with its connection may be half closed from both sides.
        Way::Fin if framing == Framing::Close => ("200", "--"),
        _ => ("200", "CD"),
    };
    row("p/s", status, state)
}

#[test]
fn clients_that_leave_at_every_byte_of_a_response() {
    explore(CONFIG, QUIET, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let (framing, at, _) = wish(&peer.request().await);
            let bytes = answer(framing);
            let _ = peer.send(&bytes[..at]).await;
            rt::sleep(TENTH * 5).await;
            let _ = peer.send(&bytes[at..]).await;
        });
        let mut lines = 0;
        for framing in FRAMINGS {
            let whole = answer(framing);
            let head = head_of(&whole);
            for (at, way) in (0..=whole.len()).flat_map(|at| [(at, Way::Fin), (at, Way::Reset)]) {
                cut(stage.client(FRONT).await, &asking(framing, at, way), way).await;
                lines += 1;
                let want = left_response(at, head, whole.len(), framing, way);
                assert_eq!(line(&stage, lines).await, want, "{framing:?} left at {at} of {head}+, {way:?}");
            }
        }
    });
}
