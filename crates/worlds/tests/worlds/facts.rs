//! What becomes of messages on their way: rules, fields, cookies, logs. One row each, over a server that
//! tells what it got.
//!
//! Each row is a fault that was there once (`tests/faults`): quick to find here, and with the same answer in
//! each world.

use std::rc::Rc;
use std::time::Duration;

use worlds::{Answer, CALM, Message, QUIET, Stage, content, explore, get, response};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";

/// A request, and what is to be seen of it.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Lines of the proxy, or whole sections.
    config: &'static str,
    request: &'static [u8],
    /// The server's answer, instead of the head of the request as a body.
    answer: &'static str,
    /// What the client's answer has in it, its first line, fields and body with LF between.
    has: &'static [&'static str],
    /// What it has not.
    lacks: &'static [&'static str],
    /// What the log line has in it.
    log: &'static str,
}

/// What a message says.
fn text(message: &Message) -> String {
    let fields = message.fields.iter().map(|(name, value)| format!("{name}: {value}\n"));
    format!("{}\n{}\n{}", message.line, fields.collect::<String>(), String::from_utf8_lossy(&message.body))
}

fn whole(config: &str) -> String {
    match config.starts_with("listen") || config.starts_with("frontend") || config.starts_with(' ') {
        true => config.to_owned(),
        false => format!("listen p\n bind 127.0.0.1:80\n {config}\n server s 127.0.1.1:80"),
    }
}

fn play(row: Row) {
    // A PROXY header has to come in one piece.
    let climates = if row.config.contains("accept-proxy") { QUIET } else { CALM };
    explore(&whole(row.config), climates, move |stage| scene(stage, row));
}

async fn scene(stage: Rc<Stage>, row: Row) {
    stage.answer(S, move |request, _| {
        if !row.answer.is_empty() {
            return Answer::Bytes(row.answer.as_bytes().to_vec());
        }
        Answer::Bytes(response(200, text(request).as_bytes()))
    });
    let mut client = stage.client(FRONT).await;
    let _ = client.send(row.request).await;
    let head = row.request.starts_with(b"HEAD") || row.request.starts_with(b"CONNECT");
    let got = text(&client.message(|_| head).await);
    drop(client);
    for piece in row.has {
        assert!(got.contains(piece), "no {piece:?} with {}: {got}", row.config);
    }
    for piece in row.lacks {
        assert!(!got.contains(piece), "{piece:?} with {}: {got}", row.config);
    }
    if !row.log.is_empty() {
        stage.quiet().await;
        let lines = stage.lines();
        assert!(
            lines.iter().any(|line| line.text.contains(row.log)),
            "no {:?} with {}: {lines:#?}",
            row.log,
            row.config
        );
    }
}

macro_rules! rows {
    ($($name:ident: $row:expr;)*) => { $(
        #[test]
        fn $name() {
            $row.iter().for_each(|row| play(*row));
        }
    )* };
}

const fn row(
    config: &'static str,
    request: &'static [u8],
    has: &'static [&'static str],
    lacks: &'static [&'static str],
) -> Row {
    Row { config, request, answer: "", has, lacks, log: "" }
}

const fn answered(
    config: &'static str,
    request: &'static [u8],
    answer: &'static str,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
) -> Row {
    Row { config, request, answer, has, lacks, log: "" }
}

const fn logged(config: &'static str, request: &'static [u8], log: &'static str) -> Row {
    Row { config, request, answer: "", has: &[], lacks: &[], log }
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: w\r\n\r\n";
const PLAIN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Two servers that only their cookies tell apart.
macro_rules! two {
    ($cookie:literal) => {
        concat!(
            "listen p\n bind 127.0.0.1:80\n cookie ",
            $cookie,
            "\n http-response set-header x-server %s\n server s 127.0.1.1:80 cookie a\n server t 127.0.1.1:80 cookie b"
        )
    };
}

macro_rules! proxied {
    ($lines:literal) => {
        concat!("listen p\n bind 127.0.0.1:80 accept-proxy\n ", $lines, "\n server s 127.0.1.1:80")
    };
}

rows! {
    odd_names_of_fields_go_or_the_request_does: [
        row("option http-restrict-req-hdr-names delete", b"GET / HTTP/1.1\r\nhost: w\r\nx_odd: 1\r\nx-good: 1\r\n\r\n", &["x-good: 1"], &["x_odd"]),
        row("option http-restrict-req-hdr-names reject", b"GET / HTTP/1.1\r\nhost: w\r\nx_odd: 1\r\n\r\n", &["HTTP/1.1 403"], &[]),
    ];
    the_peer_of_a_connection_is_the_real_one_whatever_a_header_says: [
        row(proxied!("http-request set-header x-src %[src]:%[src_port]\n http-request set-header x-real %[fc_src]\n http-request set-header x-port %[fc_src_port]"),
            b"PROXY TCP4 10.1.1.1 10.2.2.2 1000 80\r\nGET / HTTP/1.1\r\nhost: w\r\n\r\n",
            &["x-src: 10.1.1.1:1000", "x-real: "], &["x-real: 10.1.1.1", "x-port: 1000"]),
    ];
    a_monitor_uri_is_a_path_in_every_form: [
        row("monitor-uri /up", b"GET http://w/up HTTP/1.1\r\nhost: w\r\n\r\n", &["HTTP/1.1 200"], &["host: w"]),
        row("monitor-uri /up", b"GET /up?not HTTP/1.1\r\nhost: w\r\n\r\n", &["host: w"], &[]),
    ];
    json_has_types: [
        row("http-request set-header x-j %[req.hdr(j),json_query('$.a')]", b"GET / HTTP/1.1\r\nhost: w\r\nj: {\"a\":true}\r\n\r\n", &["x-j: 1"], &[]),
    ];
    the_servers_own_cookie_goes: [
        answered(two!("SRV insert"), GET, "HTTP/1.1 200 OK\r\nset-cookie: SRV=own\r\ncontent-length: 0\r\n\r\n", &["set-cookie: SRV=a; path=/"], &["SRV=own"]),
    ];
    the_cookie_that_is_of_use_counts: [
        answered(two!("SRV insert"), b"GET / HTTP/1.1\r\nhost: w\r\ncookie: SRV=x; SRV=b\r\n\r\n", PLAIN, &["x-server: t"], &[]),
        answered(two!("SRV insert"), b"GET / HTTP/1.1\r\nhost: w\r\ncookie: A=1,SRV=b\r\n\r\n", PLAIN, &["x-server: t"], &[]),
        answered(two!("SRV prefix"), b"GET / HTTP/1.1\r\nhost: w\r\ncookie: SRV=b\r\n\r\n", PLAIN, &["x-server: t"], &[]),
    ];
    a_cookie_with_dates_nobody_asked_for_is_made_anew: [
        answered(two!("SRV insert"), b"GET / HTTP/1.1\r\nhost: w\r\ncookie: SRV=b|ZAAAA\r\n\r\n", PLAIN, &["x-server: t", "set-cookie: SRV=b; path=/"], &[]),
    ];
    host_and_authority_never_differ: [
        row("http-request set-header host new.test", b"GET http://old.test/p HTTP/1.1\r\nhost: old.test\r\n\r\n", &["GET http://new.test/p", "host: new.test"], &["old.test"]),
        row("http-request set-uri http://other.test/q", GET, &["host: other.test"], &[]),
    ];
    a_path_without_a_slash_keeps_the_query: [
        row("http-request set-path one\n http-request set-path two", b"GET /a?q=1 HTTP/1.1\r\nhost: w\r\n\r\n", &["GET two?q=1"], &[]),
    ];
    no_format_ends_a_field: [
        row("http-request return status 200 content-type text/plain string ok hdr x-r %[url_param(a),url_dec]",
            b"GET /?a=b%0d%0ax-evil:%201 HTTP/1.1\r\nhost: w\r\n\r\n", &["x-r: b%0D%0Ax-evil: 1"], &["\nx-evil"]),
    ];
    a_nul_is_a_byte_like_others: [
        row("http-request set-header x-u %[url_param(a),url_dec,hex]", b"GET /?a=x%00y HTTP/1.1\r\nhost: w\r\n\r\n", &["x-u: 780079"], &[]),
    ];
    cookies_of_redirects_have_a_path: [
        row("http-request redirect location /x set-cookie-fmt a=%[str(b)]", GET, &["set-cookie: a=b; path=/"], &[]),
    ];
    a_status_without_a_message_is_denied_all_the_same: [
        row("http-request deny status 599", GET, &["HTTP/1.1 599", "content-length: 0"], &[]),
    ];
    a_backend_that_closes_closes_its_own_side: [
        row("listen p\n bind 127.0.0.1:80\n default_backend b\nbackend b\n option httpclose\n server s 127.0.1.1:80", GET, &["connection: close"], &[]),
        answered("listen p\n bind 127.0.0.1:80\n default_backend b\nbackend b\n option httpclose\n server s 127.0.1.1:80", GET, PLAIN, &["HTTP/1.1 200"], &["connection: close"]),
    ];
    a_chunk_is_no_longer_than_a_number: [
        row("option http-buffer-request", b"POST / HTTP/1.1\r\nhost: w\r\ntransfer-encoding: chunked\r\n\r\n7fffffffffffffff\r\nx", &["HTTP/1.1 400"], &[]),
    ];
    a_tunnel_has_no_length: [
        answered("option http-server-close", b"CONNECT w:80 HTTP/1.1\r\nhost: w:80\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", &["HTTP/1.1 200"], &["content-length"]),
    ];
    rules_see_no_field_of_the_connection: [
        row("http-request set-header x-h %[req.fhdr_cnt(connection)]", b"GET / HTTP/1.1\r\nhost: w\r\nconnection: keep-alive\r\n\r\n", &["x-h: 0"], &[]),
        row("http-request set-header x-h %[req.fhdr_cnt(upgrade)]", b"GET / HTTP/1.1\r\nhost: w\r\nupgrade: websocket\r\n\r\n", &["x-h: 0"], &[]),
        answered("http-response set-header x-h %[res.fhdr_cnt(connection)]", GET, "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n", &["x-h: 0"], &[]),
    ];
    forwarded_goes_on_what_others_began: [
        row("option forwarded", b"GET / HTTP/1.1\r\nhost: w\r\nforwarded: for=1.2.3.4\r\n\r\n", &["for=1.2.3.4,proto=http"], &[]),
    ];
    headers_of_the_proxy_protocol_are_read_as_written: [
        row(proxied!(""), b"PROXY UNKNOWN some text\r\nGET / HTTP/1.1\r\nhost: w\r\n\r\n", &[], &["HTTP/1.1 200"]),
        row(proxied!(""), b"PROXY TCP4 10.1.1.1 10.2.2.2 01000 0080\r\nGET / HTTP/1.1\r\nhost: w\r\n\r\n", &["HTTP/1.1 200"], &[]),
        row(proxied!(""), b"\r\n\r\n\0\r\nQUIT\n\x20\x11\0\x0c\x0a\x01\x01\x01\x0a\x02\x02\x02\x03\xe8\0\x50GET / HTTP/1.1\r\nhost: w\r\n\r\n", &[], &["HTTP/1.1 200"]),
        row(proxied!(""), b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\x04abcdGET / HTTP/1.1\r\nhost: w\r\n\r\n", &[], &["HTTP/1.1 200"]),
    ];
    a_line_tells_what_was_meant_to_happen: [
        logged("log-format %hs|end\n capture response header x len 5\n http-request return status 200", GET, "{}|end"),
        logged("listen p\n bind 127.0.0.1:80\n retries 0\n log-format to=%si:%sp\n server s 127.0.9.9:99", GET, "to=127.0.9.9:99"),
        logged("unique-id-format u%[method]\n log-format id=%ID", GET, "id=uGET"),
        logged("option logasap\n log-format ta=%Ta|\n http-request return status 200", GET, "ta=+"),
        logged("log-format path=%HPO|end", b"OPTIONS * HTTP/1.1\r\nhost: w\r\n\r\n", "path=|end"),
    ];
    retries_of_a_frontend_end_with_it: [
        logged("listen p\n bind 127.0.0.1:80\n http-request set-retries 1\n log-format rc=%rc|\n use_backend b\nbackend b\n retries 3\n server s 127.0.9.9:99", GET, "rc=3|"),
    ];
}

/// A record of a PROXY header is no longer than its kind may be.
#[test]
fn a_record_that_is_too_long_ends_the_connection() {
    explore(&whole(proxied!("")), QUIET, |stage| async move {
        stage.origin(S);
        for (length, served) in [(255u16, true), (256, false)] {
            let mut bytes = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
            bytes.extend((12 + 3 + length).to_be_bytes());
            bytes.extend(b"\x0a\x01\x01\x01\x0a\x02\x02\x02\x03\xe8\0\x50\x02");
            bytes.extend(length.to_be_bytes());
            bytes.extend(vec![b'a'; length.into()]);
            bytes.extend(get("/1/5"));
            let mut client = stage.client(FRONT).await;
            let _ = client.send(&bytes).await;
            let got = client.message(|_| false).await;
            assert_eq!(got.status() == 200, served, "{length} bytes: {got:?} {:?}", stage.lines());
        }
    });
}

/// A server that was told of one client is not asked for another one, and one that was told the same may be.
#[test]
fn a_connection_serves_only_whom_its_header_tells_of() {
    const SENT: &str = "listen p\n bind 127.0.0.1:80 accept-proxy\n http-reuse always\n http-request set-header x-src %[src]\n \
                        server s 127.0.1.1:80 send-proxy pool-low-conn 4";
    explore(SENT, QUIET, |stage| async move {
        stage.serve(S, |mut peer, _| async move {
            let mut header = Vec::new();
            while !header.ends_with(b"\r\n") {
                while peer.buf.is_empty() {
                    if peer.more().await.is_err() {
                        return;
                    }
                }
                header.push(peer.buf.remove(0));
            }
            let header = String::from_utf8_lossy(&header).into_owned();
            let told = header.split(' ').nth(2).unwrap_or_default().to_owned();
            loop {
                let request = peer.request().await;
                if !request.is_whole() {
                    return;
                }
                assert_eq!(request.field("x-src"), Some(&*told), "another client's connection");
                if peer.send(&response(200, b"x")).await.is_err() {
                    return;
                }
            }
        });
        for n in 0..8 {
            let mut client = stage.client(FRONT).await;
            let request = format!("PROXY TCP4 10.0.0.{} 10.2.2.2 {} 80\r\n", n % 2, 1000 + n / 4);
            let _ = client.send(request.as_bytes()).await;
            for _ in 0..2 {
                let got = client.ask(&get("/")).await;
                assert_eq!(got.status(), 200, "{n}: {got:?} {:?}", stage.lines());
            }
        }
        let server = stage.server("p/s");
        let figures = (server.counters.sum(|c| &c.connects), server.counters.sum(|c| &c.reuses));
        assert_eq!(figures, (4, 12), "two addresses with two ports each");
    });
}

/// Below `pool-low-conn` no connection goes though few are needed.
#[test]
fn a_few_connections_are_kept_for_bad_times() {
    const LOW: &str = "listen p\n bind 127.0.0.1:80\n http-reuse always\n \
                       server s 127.0.1.1:80 pool-low-conn 5 pool-purge-delay 1h";
    explore(LOW, QUIET, |stage| async move {
        stage.answer(S, |_, _| Answer::Late(Duration::from_secs(1), response(200, b"x")));
        let ask = |stage: Rc<Stage>| async move {
            let mut client = stage.client(FRONT).await;
            assert_eq!(client.ask(&get("/")).await.status(), 200);
        };
        let jobs: Vec<_> = (0..5).map(|_| worlds::spawn(ask(stage.clone()))).collect();
        worlds::all(jobs).await;
        rt::sleep(Duration::from_secs(300)).await;
        for _ in 0..6 {
            ask(stage.clone()).await;
        }
        assert_eq!(stage.worker.farm.pools.len(), 5);
    });
}

/// A long period passes bit by bit.
#[test]
fn a_limit_of_bandwidth_holds_within_its_period() {
    const SLOW: &str = "listen p\n bind 127.0.0.1:80\n filter bwlim-out x default-limit 100000 default-period 10s\n \
                        http-response set-bandwidth-limit x\n server s 127.0.1.1:80";
    explore(SLOW, QUIET, |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/7/60000")).await.body, content(7, 60_000));
        assert!(stage.elapsed() > Duration::from_secs(3), "{:?}", stage.elapsed());
    });
}

/// `option dontlognull` says nothing of a client that said nothing, whoever was missing.
#[test]
fn silence_is_not_logged_where_no_server_is_up() {
    const NULL: &str =
        "listen p\n mode tcp\n option dontlognull\n bind 127.0.0.1:80\n server s 127.0.1.1:80 disabled";
    explore(NULL, QUIET, |stage| async move {
        drop(stage.client(FRONT).await);
        stage.ended(0).await;
    });
}

/// Steps of a section's own check begin from nothing, and with no steps the whole check is inherited.
#[test]
fn a_check_of_ones_own_has_nothing_of_the_inherited_one() {
    const CHECKS: &str = "  option httpchk GET /inherited\nlisten p\n bind 127.0.0.1:80\n http-check expect status 200\n \
                          server s 127.0.1.1:80 check\nlisten q\n bind 127.0.0.1:81\n server t 127.0.1.1:81 check";
    explore(CHECKS, QUIET, |stage| async move {
        let asked: Rc<std::cell::RefCell<Vec<String>>> = Rc::default();
        for at in [S, "127.0.1.1:81"] {
            let asked = asked.clone();
            stage.answer(at, move |request, _| {
                asked.borrow_mut().push(format!("{at} {}", request.target()));
                Answer::Bytes(response(200, b""))
            });
        }
        rt::sleep(Duration::from_secs(5)).await;
        let asked = asked.borrow();
        assert!(asked.iter().any(|a| a == "127.0.1.1:81 /inherited"), "{asked:?}");
        assert!(!asked.iter().any(|a| a == "127.0.1.1:80 /inherited"), "{asked:?}");
    });
}
