//! Calls of the process's own: what becomes of them when servers refuse, say nothing, break off, or speak
//! HTTP/2, and what bodies cost that are longer than any buffer.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use engine::inner::Fault;
use engine::inner::http::Exchange;
use engine::inner::line::{Line, Patience, Tls, To};
use rt::ConnectOptions;
use wire::method::Method;
use worlds::{ALL, CALM, QUIET, Stage, addr, content, explore, spawn, within};

const S: &str = "127.0.1.1:80";
const NOBODY: &str = "frontend f\n bind 127.0.0.1:80\n http-request deny";
const GET: &[u8] = b"GET /1/9 HTTP/1.1\r\nhost: s\r\n\r\n";
const PATIENCE: Patience =
    Patience { connect: Duration::from_secs(3), silence: Duration::from_secs(4), whole: None };

/// A status and a body, as they are expected.
type Told = Result<(u16, &'static [u8]), Fault>;

async fn line(stage: &Stage) -> Result<Line, Fault> {
    let to = To { addr: &addr(S), options: ConnectOptions::default(), tls: None };
    Line::open(&stage.worker, &to, PATIENCE).await
}

async fn read(exchange: &mut Exchange) -> Result<(u16, Vec<u8>), Fault> {
    let status = exchange.answer().await?.status();
    let mut body = Vec::new();
    while let Some(piece) = exchange.body().await? {
        body.extend_from_slice(piece);
    }
    Ok((status, body))
}

async fn ask(stage: &Stage) -> Result<(u16, Vec<u8>), Fault> {
    let line = line(stage).await?;
    read(&mut Exchange::begin(&stage.worker, line, Method::Get, GET).await?).await
}

/// What becomes of a call when the server sends `answer` to the request, and then closes or keeps silent.
fn answered(answer: &'static [u8], closes: bool, told: Told) {
    explore(NOBODY, CALM, move |stage| async move {
        stage.serve(S, move |mut peer, _| async move {
            peer.request().await;
            let _ = peer.send(answer).await;
            if !closes {
                peer.rest().await;
            }
        });
        let outcome = ask(&stage).await;
        let told = told.map(|(status, body)| (status, body.to_vec()));
        assert_eq!(outcome, told, "{}", answer.escape_ascii());
    });
}

#[test]
fn whoever_is_not_there_refuses() {
    explore(NOBODY, QUIET, |stage| async move {
        assert_eq!(ask(&stage).await.unwrap_err(), Fault::Refused);
        assert!(stage.elapsed() < Duration::from_millis(10), "at once");
    });
}

#[test]
fn a_network_that_swallows_everything_is_given_up() {
    explore(NOBODY, QUIET, |stage| async move {
        stage.origin(S);
        stage.link(S, |faults| faults.black_hole = 1.0);
        assert_eq!(ask(&stage).await.unwrap_err(), Fault::ConnectTimeout);
        assert_eq!(stage.elapsed().as_secs(), 3);
    });
}

#[test]
fn a_server_that_keeps_silent_is_given_up() {
    explore(NOBODY, QUIET, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            peer.rest().await;
        });
        assert_eq!(ask(&stage).await.unwrap_err(), Fault::Late);
        assert_eq!(stage.elapsed().as_secs(), 4);
    });
}

#[test]
fn an_answer_is_whole_in_every_framing() {
    let whole: Told = Ok((200, b"abcde"));
    answered(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde", false, whole);
    answered(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcdemore", false, whole);
    let chunks =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x\r\nab\r\n3\r\ncde\r\n0\r\nt: x\r\n\r\n";
    answered(chunks, false, whole);
    answered(b"HTTP/1.1 200 OK\r\n\r\nabcde", true, whole);
    answered(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", false, Ok((404, b"")));
    answered(b"HTTP/1.1 204 No Content\r\n\r\n", false, Ok((204, b"")));
}

#[test]
fn interim_answers_are_passed_over() {
    let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n\
                   HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na";
    answered(answer, false, Ok((200, b"a")));
}

#[test]
fn an_answer_that_breaks_off_is_none() {
    answered(b"", true, Err(Fault::Silent));
    answered(b"HTTP/1.1 200 OK\r\ncontent-le", true, Err(Fault::Silent));
    answered(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab", true, Err(Fault::Cut));
    answered(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n", true, Err(Fault::Cut));
    answered(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab", false, Err(Fault::Stalled));
    answered(b"HTTP/1.1 200 OK\r\n\r\nab", false, Err(Fault::Stalled));
}

#[test]
fn what_is_no_answer_is_told_from_one() {
    answered(b"junk\r\n\r\n", false, Err(Fault::Malformed));
    answered(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", false, Err(Fault::Malformed));
    answered(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", false, Err(Fault::Malformed));
}

/// 10 MB for a reader that takes a piece each 10 ms: the server is held up, and no more than what sockets and
/// one buffer hold is ever under way.
#[test]
fn a_slow_reader_holds_the_server_up() {
    const LONG: usize = 10 << 20;
    explore(NOBODY, QUIET, |stage| async move {
        let sent = Rc::new(Cell::new(0));
        let counted = sent.clone();
        stage.serve(S, move |mut peer, _| {
            let counted = counted.clone();
            async move {
                peer.request().await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n");
                let _ = peer.send(head.as_bytes()).await;
                for piece in content(7, LONG).chunks(8192) {
                    let _ = peer.send(piece).await;
                    counted.set(counted.get() + piece.len());
                }
            }
        });
        let line = line(&stage).await.expect("a connection");
        let begun = Exchange::begin(&stage.worker, line, Method::Get, GET).await;
        let mut exchange = begin_of(begun);
        assert_eq!(exchange.answer().await.expect("an answer").status(), 200);
        let (mut taken, whole) = (0, content(7, LONG));
        while let Some(piece) = exchange.body().await.expect("more of it") {
            assert_eq!(piece, &whole[taken..taken + piece.len()]);
            taken += piece.len();
            assert!(sent.get() < taken + (2 << 20), "{} sent, {taken} taken", sent.get());
            rt::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(taken, LONG);
    });
}

fn begin_of(begun: Result<Exchange, Fault>) -> Exchange {
    begun.unwrap_or_else(|fault| panic!("{fault:?}"))
}

/// A body goes out as the server takes it, and no further once it has answered.
#[test]
fn a_body_is_sent_until_the_server_answers() {
    explore(NOBODY, CALM, |stage| async move {
        stage.serve(S, |mut peer, n| async move {
            if n == 0 {
                let request = peer.request().await;
                assert_eq!(request.body, content(3, 300_000));
            } else {
                peer.take(1000).await;
            }
            let _ = peer.send(b"HTTP/1.1 413 Too Long\r\ncontent-length: 0\r\n\r\n").await;
            rt::sleep(Duration::from_secs(1)).await;
        });
        for (length, taken) in [(300_000, true), (100 << 20, false)] {
            let line = line(&stage).await.expect("a connection");
            let head = format!("POST / HTTP/1.1\r\nhost: s\r\ncontent-length: {length}\r\n\r\n");
            let begun = Exchange::begin(&stage.worker, line, Method::Post, head.as_bytes()).await;
            let mut exchange = begin_of(begun);
            let mut all = true;
            for piece in content(3, 300_000).chunks(10_000).cycle().take(length / 10_000) {
                all &= exchange.send(piece).await.expect("in time");
                if !all {
                    break;
                }
            }
            assert_eq!((all, read(&mut exchange).await), (taken, Ok((413, Vec::new()))));
        }
    });
}

/// A call over TLS to the engine itself, which agrees on HTTP/2, by a name.
async fn ask_secured(stage: &Stage, name: &str) -> Result<(u16, Vec<u8>), Fault> {
    let program = &stage.shared.program;
    let connector = program.tls.client(&program.global.client_tls).expect("authorities");
    let tls = Some(Tls { connector: &connector, name: name.as_bytes(), alpn: None });
    let to = To { addr: &addr("127.0.0.1:443"), options: ConnectOptions::default(), tls };
    let line = Line::open(&stage.worker, &to, PATIENCE).await?;
    let mut exchange = Exchange::begin(&stage.worker, line, Method::Get, GET).await?;
    assert!(exchange.speaks_h2());
    read(&mut exchange).await
}

fn secured<F>(climates: &[worlds::Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worlds/fixtures");
    let config = format!(
        "global\n httpclient.ssl.ca-file {DIR}/root.pem\ndefaults\n mode http\n timeout server 3s\n timeout client 9s\n\
         listen p\n bind 127.0.0.1:443 ssl crt {DIR}/named.pem alpn h2\n server s {S}"
    );
    explore(&config, climates, scene);
}

#[test]
fn a_certificate_of_another_name_is_not_believed() {
    secured(QUIET, |stage| async move {
        for name in ["other.test", "127.0.0.1"] {
            let outcome = ask_secured(&stage, name).await;
            assert!(matches!(outcome, Err(Fault::Insecure(_))), "{name}: {outcome:?}");
        }
    });
}

#[test]
fn an_answer_over_http2_is_whole() {
    secured(CALM, |stage| async move {
        stage.origin(S);
        assert_eq!(ask_secured(&stage, "named.test").await, Ok((200, content(1, 9))));
    });
}

/// The stream is reset within the answer, whatever its framing.
#[test]
fn a_stream_that_is_reset_is_no_answer() {
    const HEADS: [&str; 2] =
        ["content-length: 50\r\n\r\nhalf", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"];
    secured(CALM, |stage| async move {
        stage.serve(S, |mut peer, n| async move {
            peer.request().await;
            let _ = peer.send(format!("HTTP/1.1 200 OK\r\n{}", HEADS[n]).as_bytes()).await;
            rt::sleep(Duration::from_millis(200)).await;
        });
        for _ in HEADS {
            assert_eq!(ask_secured(&stage, "named.test").await.unwrap_err(), Fault::Cut);
        }
    });
}

/// A connection that is being wound up (GOAWAY) brings the answer that was under way.
#[test]
fn a_farewell_cuts_no_answer() {
    secured(CALM, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            peer.request().await;
            rt::sleep(Duration::from_secs(1)).await;
            let _ = peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await;
            rt::sleep(Duration::from_secs(1)).await;
            let _ = peer.send(b"ab").await;
        });
        let stopping = stage.clone();
        let stop = spawn(async move {
            rt::sleep(Duration::from_millis(1500)).await;
            stopping.stop();
        });
        assert_eq!(ask_secured(&stage, "named.test").await, Ok((200, b"ab".to_vec())));
        stop.join().await;
    });
}

/// A call that is dropped at any point closes its connection and leaves nothing behind, which the stage looks
/// for.
#[test]
fn a_call_may_be_dropped_at_any_point() {
    explore(NOBODY, ALL, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            peer.request().await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it and so on";
            let _ = peer.send_slowly(answer, 3, Duration::from_millis(2)).await;
            peer.rest().await;
        });
        for ms in 0..40 {
            let _ = within(Duration::from_millis(ms), ask(&stage)).await;
        }
    });
}
