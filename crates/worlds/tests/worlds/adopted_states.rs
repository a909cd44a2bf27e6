//! Configurations take each other's place while sessions are in every state: each client is in one of them
//! when that happens, and is served to its end.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use wire::h2::Limits;
use worlds::{
    ALL, Answer, CALM, Climate, Message, Peer, Stage, addr, all, content, explore, get, post, post_chunked,
    response, spawn,
};

use crate::h2::Client;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worlds/fixtures");
const S: &str = "127.0.1.1:80";
const FAR: &str = "127.0.1.4:80";
const ECHO: &str = "127.0.1.2:80";
const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
const UPGRADE: &[u8] = b"GET /chat HTTP/1.1\r\nhost: w\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/// The configuration of this number: from one to the next all proxies stand at other places, rules say other
/// things, and there are servers and listeners more or less.
fn config(number: u64) -> String {
    let status = 200 + number;
    let more = format!("frontend more{number}\n bind 127.0.0.1:{}\n default_backend b\n", 1000 + number);
    let front = format!(
        "frontend p
 bind 127.0.0.1:80
 timeout tarpit 600ms
 http-request return status {status} if {{ path /which }}
 http-request tarpit deny_status 429 if {{ path /tarpit }}
 http-request pause 700ms if {{ path_beg /pause }}
 http-request wait-for-body time 10s if {{ path_beg /body }}
 use_backend narrow if {{ path_beg /narrow }}
 use_backend far if {{ path_beg /far }}
 use_backend chat if {{ path_beg /chat }}
 default_backend b
frontend h
 bind 127.0.0.1:81 proto h2
 default_backend b
"
    );
    let back = format!(
        "listen raw
 mode tcp
 bind 127.0.0.1:82
 server s {ECHO}
listen over
 bind 127.0.0.1:83
 server q 127.0.0.1:443 ssl verify none sni str(named.test)
listen sealed
 bind 127.0.0.1:443 ssl crt {FIXTURES}/named.pem
 server s {S}
backend b
 http-reuse always
 server gone{number} 127.0.1.9:80 disabled
 server s {S}
backend narrow
 server s {S} maxconn 1
backend far
 server s {FAR}
backend chat
 server s {ECHO}
"
    );
    let times = "  timeout queue 60s\n  timeout tunnel 60s\n  timeout http-request 20s\n";
    match number % 3 {
        0 => format!("{times}{front}{back}"),
        1 => format!("{times}{more}{back}{front}"),
        _ => format!("{times}{back}{more}{front}"),
    }
}

/// `/<id>/<length>` is answered after a while.
fn answer(request: &Message) -> Answer {
    let mut numbers = request.target().split('/').filter_map(|n| n.parse::<u64>().ok());
    let (id, length) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(10));
    assert_eq!(request.body, content(id, request.body.len()), "the body of another request");
    Answer::Late(some(300), response(200, &content(id, length as usize)))
}

/// Switches protocols if it is asked to, and sends back what it gets.
fn echo(stage: &Stage) {
    stage.serve(ECHO, |mut peer, _| async move {
        while peer.buf.len() < 4 {
            if peer.more().await.is_err() {
                return;
            }
        }
        if peer.buf.starts_with(b"GET ")
            && (!peer.request().await.is_whole() || peer.send(SWITCH).await.is_err())
        {
            return;
        }
        loop {
            let bytes = std::mem::take(&mut peer.buf);
            if peer.send(&bytes).await.is_err() || peer.more().await.is_err() {
                return;
            }
        }
    });
}

/// So many milliseconds at most.
fn some(most: u64) -> Duration {
    Duration::from_millis(rt::random() % most)
}

/// What a client found wrong.
type Came = Result<(), String>;

fn whole(answer: &Message, status: u16, body: &[u8]) -> Came {
    match answer.is_whole() && answer.status() == status && answer.body == body {
        true => Ok(()),
        false => Err(format!("{} with {} bytes, {:?}", answer.status(), answer.body.len(), answer.end)),
    }
}

async fn connect(port: u16) -> Result<Peer, String> {
    Peer::connect(&addr(&format!("127.0.0.1:{port}"))).await.map_err(|e| format!("not connected: {e}"))
}

/// A request in two parts, with a while between them.
async fn halved(port: u16, request: &[u8], id: u64, length: usize) -> Came {
    let mut client = connect(port).await?;
    let at = 1 + rt::random() as usize % (request.len() - 1);
    let _ = client.send(&request[..at]).await;
    rt::sleep(some(1500)).await;
    let _ = client.send(&request[at..]).await;
    whole(&client.response().await, 200, &content(id, length))
}

/// The states that a session may be in; the number of one is all that a client needs.
const STATES: u64 = 14;

async fn client(state: u64, id: u64, climate: Climate, last: Rc<Cell<u64>>) -> Came {
    let long = if climate.is_quiet() { 600_000 } else { 20_000 };
    let target = format!("/{id}/60");
    let body = content(id, 60);
    match state {
        // It rests, and follows.
        0 => {
            let mut client = connect(80).await?;
            for _ in 0..4 {
                whole(&client.ask(&get(&target)).await, 200, &body)?;
                rt::sleep(some(700)).await;
                let before = last.get();
                let status = u64::from(client.ask(&get("/which")).await.status());
                if !(200 + before..=200 + last.get()).contains(&status) {
                    return Err(format!("{status} by the rules of another configuration, not {before}"));
                }
            }
            Ok(())
        }
        // A head comes in pieces.
        1 => halved(80, &get(&target), id, 60).await,
        // A rule waits for the body.
        2 => halved(80, &post(&format!("/body/{id}/60"), &content(id, 4000)), id, 60).await,
        // A body is passed on while it comes.
        3 => halved(80, &post_chunked(&target, &content(id, 9000), 700), id, 60).await,
        // In a queue, connecting, waiting for the answer.
        4..=6 => {
            let way = ["/narrow", "/far", ""][(state - 4) as usize];
            let mut client = connect(80).await?;
            whole(&client.ask(&get(&format!("{way}{target}"))).await, 200, &body)
        }
        // It takes its answer slowly.
        7 => {
            let mut client = connect(80).await?;
            let _ = client.send(&get(&format!("/{id}/{long}"))).await;
            rt::sleep(some(1500)).await;
            whole(&client.response().await, 200, &content(id, long))
        }
        // A tunnel; TCP all along.
        8 | 9 => {
            let mut client = connect(if state == 8 { 80 } else { 82 }).await?;
            if state == 8 {
                let _ = client.send(UPGRADE).await;
                let status = client.any_response().await.status();
                if status != 101 {
                    return Err(format!("{status}, no tunnel"));
                }
            }
            for n in 0..3 {
                let _ = client.send(&content(n, 2000)).await;
                if client.take(2000).await != content(n, 2000) {
                    return Err(format!("echo {n} is another one"));
                }
                rt::sleep(some(700)).await;
            }
            Ok(())
        }
        // Streams of one connection, some of them begun before.
        10 => streams(id).await,
        // A handshake, on both sides.
        11 => {
            let mut client = connect(83).await?;
            whole(&client.ask(&get(&target)).await, 200, &body)
        }
        // Held back by rules.
        12 => {
            let mut client = connect(80).await?;
            let status = client.ask(&get("/tarpit")).await.status();
            if status == 429 { Ok(()) } else { Err(format!("{status} out of the tarpit")) }
        }
        _ => {
            let mut client = connect(80).await?;
            whole(&client.ask(&get(&format!("/pause{target}"))).await, 200, &body)
        }
    }
}

async fn streams(id: u64) -> Came {
    let mut client = Client::new(connect(81).await?, Limits::default());
    for round in 0..3 {
        let asked: Vec<_> = (0..3)
            .map(|n| {
                let n = id + n;
                let target = format!("/{n}/3000");
                match n % 2 {
                    0 => client.ask(&get(&target), b""),
                    _ => {
                        let head = format!("POST {target} HTTP/1.1\r\nhost: w\r\n\r\n");
                        client.ask(head.as_bytes(), &content(n, 500))
                    }
                }
            })
            .collect();
        for (n, answer) in (0..).zip(client.answers(&asked).await) {
            if !answer.whole || answer.status != 200 || answer.body != content(id + n, 3000) {
                return Err(format!("round {round}, stream {n}: {} {}", answer.status, answer.body.len()));
            }
        }
        rt::sleep(some(700)).await;
    }
    Ok(())
}

/// Twelve clients in states that the seed draws, while configurations take each other's place.
async fn scene(stage: Rc<Stage>) {
    stage.answer(S, |request, _| answer(request));
    stage.answer(FAR, |request, _| answer(request));
    stage.link(FAR, |faults| faults.delay = Duration::from_millis(200)..=Duration::from_millis(300));
    echo(&stage);
    let last = Rc::new(Cell::new(0));
    let clients: Vec<_> = (0..12)
        .map(|n| {
            let (state, begin, last, climate) =
                (rt::random() % STATES, some(800), last.clone(), stage.climate);
            spawn(async move {
                rt::sleep(begin).await;
                let came = client(state, 10 * n, climate, last).await;
                assert!(came.is_ok() || climate.is_hostile(), "client {n}, state {state}: {came:?}");
            })
        })
        .collect();
    let mut before: Vec<Weak<program::Program>> = Vec::new();
    for number in 1..=1 + rt::random() % 5 {
        rt::sleep(some(900)).await;
        before.push(Arc::downgrade(&stage.current().0.program));
        last.set(number);
        stage.adopt(&config(number)).unwrap();
    }
    all(clients).await;
    stage.quiet().await;
    // The harness holds the first one. What broke off may take a timeout to end.
    let left = || before.iter().skip(1).filter(|program| program.upgrade().is_some()).count();
    for _ in 0..if stage.climate.is_hostile() { 100 } else { 0 } {
        rt::sleep(Duration::from_secs(if left() > 0 { 1 } else { 0 })).await;
    }
    assert_eq!(left(), 0, "configurations are held by nobody's session");
}

#[test]
fn sessions_in_every_state_are_served_to_their_end() {
    explore(&config(0), CALM, scene);
}

#[test]
fn sessions_in_every_state_that_break_off_leave_nothing_behind() {
    explore(&config(0), &[ALL[2]], scene);
}
