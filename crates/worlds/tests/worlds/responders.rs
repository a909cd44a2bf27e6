//! OCSP responders that do not answer, answer late, in pieces, or half.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tls::store::Came;
use worlds::{ALL, CALM, Climate, QUIET, Stage, chunked, explore};

/// Where the certificate says that its responder is.
const AT: &str = "127.0.1.1:80";
const RESPONSE: &[u8] = include_bytes!("fixtures/response.der");

/// Plays a scene with one certificate whose response is asked for right at the start.
fn asked<F>(global: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worlds/fixtures/responded.pem");
    let config = format!(
        "global\n ocsp-update.mode on\n {global}\nfrontend f\n bind 127.0.0.1:443 ssl crt {pem}\n http-request deny"
    );
    explore(&config, climates, scene);
}

/// What the log says, once the outcome is there: the outcome, and the line about HTTP, if there is one.
async fn told(stage: &Stage) -> (String, Option<String>) {
    for _ in 0..2000 {
        rt::sleep(Duration::from_millis(50)).await;
        let lines = stage.lines();
        let find = |start: &str| lines.iter().map(|l| l.text.clone()).find(|t| t.starts_with(start));
        if let Some(outcome) = find("<OCSP-UPDATE> ") {
            rt::sleep(Duration::from_millis(50)).await;
            let http = stage.lines().into_iter().map(|l| l.text).find(|t| t.starts_with("-:- ["));
            let outcome = outcome.split_once("responded.pem ").expect("the file").1.to_owned();
            return (
                outcome,
                http.and_then(|t| Some(t.split_once(" -/- ")?.1.split_once(" {}")?.0.to_owned())),
            );
        }
    }
    panic!("nothing comes of it");
}

const FAILED: &str = "2 \"HTTP error\" 1 0";
const TAKEN: &str = "1 \"Update successful\" 0 1";

#[test]
fn a_responder_that_is_not_there_is_tried_four_times() {
    asked("", QUIET, |stage| async move {
        let (outcome, http) = told(&stage).await;
        assert_eq!(outcome, FAILED);
        let http = http.unwrap();
        assert!(
            http.starts_with("0/0/-1/-1/300") && http.ends_with(" 503 0 - - SC-- 0/0/0/0/3 0/0"),
            "{http}"
        );
    });
}

#[test]
fn the_number_of_tries_can_be_set() {
    asked("httpclient.retries 0", QUIET, |stage| async move {
        let (outcome, http) = told(&stage).await;
        assert_eq!(outcome, FAILED);
        assert_eq!(http.unwrap(), "0/0/-1/-1/0 503 0 - - SC-- 0/0/0/0/0 0/0");
    });
}

#[test]
fn a_responder_that_says_nothing_is_given_up() {
    asked("", QUIET, |stage| async move {
        stage.serve(AT, |mut peer, _| async move {
            peer.rest().await;
        });
        let (outcome, http) = told(&stage).await;
        assert_eq!(outcome, FAILED);
        let http = http.unwrap();
        assert!(http.starts_with("0/0/0/-1/100") && http.contains(" 504 0 - - sH-- 0/0/0/0/0 "), "{http}");
    });
}

#[test]
fn a_connection_that_is_closed_without_a_word_is_tried_again_at_once() {
    asked("", CALM, |stage| async move {
        let count = Rc::new(Cell::new(0));
        let counted = count.clone();
        stage.serve(AT, move |mut peer, _| {
            counted.set(counted.get() + 1);
            async move {
                peer.request().await;
            }
        });
        let (outcome, http) = told(&stage).await;
        assert_eq!((outcome.as_str(), count.get()), (FAILED, 4));
        assert!(http.unwrap().contains(" 502 0 - - SH-- 0/0/0/0/3 "));
    });
}

#[test]
fn half_an_answer_is_none() {
    asked("", CALM, |stage| async move {
        stage.serve(AT, |mut peer, _| async move {
            peer.request().await;
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/ocsp-response\r\ncontent-length: 9\r\n\r\nhalf";
            let _ = peer.send(head.as_bytes()).await;
        });
        let (outcome, http) = told(&stage).await;
        assert_eq!(outcome, FAILED);
        assert!(http.unwrap().contains(" - - SD-- "));
    });
}

#[test]
fn an_answer_in_small_pieces_is_taken_whole() {
    asked("", CALM, |stage| async move {
        stage.serve(AT, |mut peer, _| async move {
            let request = peer.request().await;
            assert!(request.line.starts_with("GET /ask/MEMw"), "{}", request.line);
            let head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\
                         Transfer-Encoding: chunked\r\n\r\n";
            let whole = [&head[..], &chunked(RESPONSE, 7)].concat();
            let _ = peer.send_slowly(&whole, 1, Duration::from_millis(5)).await;
            peer.rest().await;
        });
        assert_eq!(told(&stage).await, (TAKEN.to_owned(), None));
    });
}

#[test]
fn whatever_the_network_does_something_comes_of_it() {
    asked("", ALL, |stage| async move {
        stage.serve(AT, |mut peer, _| async move {
            peer.request().await;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/ocsp-response\r\ncontent-length: {}\r\n\r\n",
                RESPONSE.len()
            );
            let _ = peer.send(&[head.as_bytes(), RESPONSE].concat()).await;
        });
        // Not from the log: lines are lost here, too.
        let program = &stage.shared.program;
        let now = || i64::try_from(rt::wall().as_secs()).unwrap_or(0);
        let outcome =
            || program.tls.updates(program.global.ocsp.pace, now()).first().map(|(_, update)| update.came);
        for _ in 0..2000 {
            rt::sleep(Duration::from_millis(50)).await;
            if let Some(came) = outcome().filter(|came| *came != Came::Nothing) {
                let calm = !stage.climate.is_hostile();
                return assert!(came == Came::Updated || came == Came::HttpError && !calm, "{came:?}");
            }
        }
        panic!("nothing comes of it");
    });
}
