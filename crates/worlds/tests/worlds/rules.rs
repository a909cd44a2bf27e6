//! What rules ask of the engine, in every rule set that may ask: time, data, bodies, headers before the first
//! byte, interim responses, silence.

use std::time::Duration;

use worlds::{Answer, End, Peer, QUIET, explore, response, within};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

/// A rule, what the client sends piece by piece with a second between them, and what must come of it.
struct Case {
    /// Lines of the proxy.
    lines: &'static str,
    /// What the client sends.
    pieces: &'static [&'static str],
    /// How the first line of what it gets ends, and a field that must be there.
    status: &'static str,
    field: &'static str,
    /// Whole seconds until the answer.
    seconds: u64,
}

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { lines: "http-request pause 2s", pieces: &[GET], status: "200", field: "", seconds: 2 },
    Case { lines: "http-response pause 2s", pieces: &[GET], status: "200", field: "", seconds: 2 },
    Case { lines: "http-request wait-for-handshake", pieces: &[GET], status: "200", field: "", seconds: 0 },
    Case { lines: "http-request early-hint link </a.css>", pieces: &[GET], status: "103", field: "link: </a.css>", seconds: 0 },
    Case { lines: "http-request wait-for-body time 5s", pieces: &["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n12", "34"], status: "200", field: "", seconds: 1 },
    Case { lines: "http-request wait-for-body time 2s", pieces: &["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n12"], status: "408", field: "", seconds: 2 },
    Case { lines: "http-response wait-for-body time 5s", pieces: &["GET /slow HTTP/1.1\r\nhost: a\r\n\r\n"], status: "200", field: "", seconds: 3 },
    Case { lines: "http-response wait-for-body time 2s", pieces: &["GET /slow HTTP/1.1\r\nhost: a\r\n\r\n"], status: "504", field: "", seconds: 2 },
    Case { lines: "tcp-request inspect-delay 5s\n tcp-request content accept if { req.len gt 2 }", pieces: &["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n12", "34"], status: "200", field: "", seconds: 1 },
    Case { lines: "tcp-request inspect-delay 2s\n tcp-request content accept if WAIT_END", pieces: &[GET], status: "200", field: "", seconds: 2 },
    Case { lines: "tcp-response inspect-delay 2s\n tcp-response content accept if WAIT_END", pieces: &[GET], status: "200", field: "", seconds: 2 },
    Case { lines: "tcp-request connection expect-proxy layer4\n http-request return status 200 hdr x-src %[src]", pieces: &["PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", GET], status: "200", field: "x-src: 192.0.2.7", seconds: 1 },
    Case { lines: "tcp-request connection expect-proxy layer4 if { src 192.0.2.0/24 }\n http-request return status 200 hdr x-src %[src]", pieces: &[GET], status: "200", field: "x-src: 127.0.0.1", seconds: 0 },
    Case { lines: "tcp-request connection expect-netscaler-cip layer4", pieces: &[GET], status: "", field: "", seconds: 0 },
    Case { lines: "mode tcp\n tcp-request inspect-delay 5s\n tcp-request content accept if { req.len ge 27 }", pieces: &["GET / HTTP/1.1\r\n", "host: a\r\n\r\n"], status: "200", field: "", seconds: 1 },
    Case { lines: "mode tcp\n tcp-response inspect-delay 5s\n tcp-response content accept if { res.len ge 48 }", pieces: &["GET /slow HTTP/1.1\r\nhost: a\r\n\r\n"], status: "200", field: "", seconds: 3 },
];

/// Half of an answer, and the rest three seconds later.
async fn slow(mut peer: Peer) {
    let request = peer.request().await;
    if request.target() != "/slow" {
        let _ = peer.send(&response(200, b"ok")).await;
        peer.rest().await;
        return;
    }
    // 48 bytes, of which a rule waits for the last.
    let bytes = b"HTTP/1.1 200 Whatever\r\ncontent-length: 4\r\n\r\nabcd";
    let _ = peer.send(&bytes[..bytes.len() - 2]).await;
    rt::sleep(Duration::from_secs(3)).await;
    let _ = peer.send(&bytes[bytes.len() - 2..]).await;
    peer.rest().await;
}

#[test]
fn whatever_a_rule_waits_for_it_gets() {
    for case in CASES {
        let config = format!(
            "  timeout client 20s\nlisten p\n bind 127.0.0.1:80\n {}\n server s 127.0.1.1:80",
            case.lines
        );
        explore(&config, QUIET, move |stage| async move {
            stage.serve(S, |peer, _| slow(peer));
            let mut client = stage.client(FRONT).await;
            for (n, piece) in case.pieces.iter().enumerate() {
                if n > 0 {
                    rt::sleep(Duration::from_secs(1)).await;
                }
                client.send(piece.as_bytes()).await.unwrap();
            }
            while !client.buf.windows(4).any(|w| w == b"\r\n\r\n") && client.more().await.is_ok() {}
            let took = stage.elapsed();
            let text = String::from_utf8_lossy(&client.buf).into_owned();
            let status = text.split(' ').nth(1).unwrap_or_default();
            assert_eq!(status, case.status, "{}: {text}", case.lines);
            assert!(text.contains(case.field), "{}: {text}", case.lines);
            assert_eq!(took.as_secs(), case.seconds, "{}: {took:?}", case.lines);
        });
    }
}

#[test]
fn silent_drop_tells_the_client_nothing_and_reject_closes() {
    let places = [
        "tcp-request connection",
        "tcp-request session",
        "tcp-request content",
        "tcp-response content",
        "http-request",
        "http-response",
    ];
    for (place, mode) in places.iter().flat_map(|p| ["http", "tcp"].map(|mode| (*p, mode))) {
        for action in ["silent-drop", "reject"] {
            let http = place.starts_with("http");
            if http && mode == "tcp" || place == "http-response" && action == "reject" {
                continue;
            }
            let config = format!(
                "listen p\n bind 127.0.0.1:80\n mode {mode}\n {place} {action}\n server s 127.0.1.1:80"
            );
            explore(&config, QUIET, move |stage| async move {
                stage.answer(S, |_, _| Answer::Bytes(response(200, b"nobody sees this")));
                // A connection that is rejected is reset.
                let Some(mut client) = stage.refusable(FRONT).await else {
                    return assert_eq!((place, action), ("tcp-request connection", "reject"));
                };
                // What comes for a connection that is gone is answered by the kernel.
                if mode == "http" && !["tcp-request connection", "tcp-request session"].contains(&place) {
                    client.send(GET.as_bytes()).await.unwrap();
                }
                let heard = within(Duration::from_secs(60), client.rest()).await;
                match action {
                    "reject" => assert!(
                        heard.is_some_and(|(bytes, end)| bytes.is_empty() && end != End::Complete),
                        "{place} in {mode}"
                    ),
                    _ => assert!(heard.is_none(), "{place} in {mode}: {heard:?}"),
                }
            });
        }
    }
}

#[test]
fn timeouts_that_a_frontend_set_for_its_servers_end_with_another_backend() {
    let config = "  timeout server 9s\nlisten p\n bind 127.0.0.1:80\n http-request set-timeout server 2s\n \
                  use_backend other if { path /other }\n server s 127.0.1.1:80\nbackend other\n \
                  server s 127.0.1.1:80";
    for (path, seconds) in [("/", 2), ("/other", 9)] {
        explore(config, QUIET, move |stage| async move {
            stage.answer(S, |_, _| Answer::Stall(Vec::new()));
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.ask(&worlds::get(path)).await.status(), 504);
            assert_eq!(stage.elapsed().as_secs(), seconds, "{path}");
        });
    }
}
