//! Answers out of caches: never the wrong ones, nor old ones, whatever happens while they are kept.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use worlds::{ALL, Answer, CALM, Message, QUIET, all, chunked, content, explore, label, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const CACHED: &str = "cache c\n total-max-size 1\n max-object-size 40000\n process-vary on\n max-age 3\n\
                      listen p\n bind 127.0.0.1:80\n http-request cache-use c\n http-response cache-store c\n \
                      http-response set-header x-hit %[res.cache_hit]\n server s 127.0.1.1:80";

pub(super) fn ask(target: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: w\r\n{fields}\r\n").into_bytes()
}

/// A body that only this target and this origin have.
pub(super) fn body_of(target: u64, origin: u64, length: u64) -> Vec<u8> {
    content(target * 101 + origin, length as usize)
}

/// A response of `body` that is good for so many seconds. One that ends with its connection can't be told
/// from one that is cut short, and is none of these.
pub(super) fn keepable(body: &[u8], seconds: u64, fields: &str, in_chunks: bool) -> Answer {
    let label = label(body);
    let head = format!("HTTP/1.1 200 OK\r\n{label}cache-control: max-age={seconds}\r\n{fields}");
    let framed = |framing: &str, body: &[u8]| [head.as_bytes(), framing.as_bytes(), b"\r\n", body].concat();
    Answer::Bytes(match in_chunks {
        true => framed("transfer-encoding: chunked\r\n", &chunked(body, 1000)),
        false => framed(&format!("content-length: {}\r\n", body.len()), body),
    })
}

pub(super) fn seconds() -> u64 {
    rt::wall().as_secs()
}

/// Answers with a body by target and origin, when it was made, and often not to the end.
fn wild(request: &Message) -> Answer {
    let target: u64 = request.target()[1..].parse().unwrap_or(0);
    let origin: u64 = request.field("origin").and_then(|o| o.parse().ok()).unwrap_or(0);
    let varies = target.is_multiple_of(2);
    let body = body_of(target, if varies { origin } else { 0 }, target * 700);
    let vary = if varies { "vary: origin\r\n" } else { "" };
    let fields = format!("{vary}x-made: {}\r\n", seconds());
    let whole = keepable(&body, rt::random() % 4, &fields, rt::random().is_multiple_of(2));
    let Answer::Bytes(bytes) = &whole else { return whole };
    let cut = (rt::random() % bytes.len() as u64) as usize;
    match rt::random() % 8 {
        0 => Answer::Close(bytes[..cut].to_vec()),
        1 => Answer::Reset(bytes[..cut].to_vec()),
        2 => Answer::Late(Duration::from_millis(rt::random() % 1500), bytes.clone()),
        _ => whole,
    }
}

async fn wild_client() {
    let Ok(mut client) = worlds::Peer::connect(&worlds::addr(FRONT)).await else { return };
    for _ in 0..6 {
        let (target, origin) = (1 + rt::random() % 9, rt::random() % 4);
        let request = ask(&format!("/{target}"), &format!("origin: {origin}\r\n"));
        match rt::random() % 10 {
            0 => {
                let _ = client.send(&request).await;
                client.take((rt::random() % 4000) as usize).await;
                return client.reset();
            }
            1 => {
                let _ = client.send(&request).await;
                client.take((rt::random() % 4000) as usize).await;
                return;
            }
            _ => {}
        }
        let answer = client.ask(&request).await;
        if answer.status() == 200 {
            let varies = target.is_multiple_of(2);
            let body = body_of(target, if varies { origin } else { 0 }, target * 700);
            assert!(body.starts_with(&answer.body), "the body of another response: {answer:?}");
            assert!(!answer.is_whole() || answer.body.len() == body.len(), "a part: {answer:?}");
            let made: u64 = answer.field("x-made").and_then(|made| made.parse().ok()).unwrap_or(0);
            let hit = answer.field("x-hit") == Some("1");
            assert!(!hit || seconds() <= made + 9, "an old response: {answer:?}");
            assert_eq!(hit, answer.field("age").is_some());
        }
        if !answer.is_whole() || answer.closes() {
            return;
        }
        rt::sleep(Duration::from_millis(rt::random() % 900)).await;
    }
}

/// What broke off has given its room back.
pub(super) fn at_rest(stage: &worlds::Stage) {
    let (shared, _) = stage.current();
    for cache in &shared.program.caches {
        let kept: usize =
            (0..).map_while(|part| cache.rows_of(part, |_| ())).flatten().map(|row| row.blocks).sum();
        assert_eq!(kept, cache.used());
        assert_eq!(cache.available(), cache.settings().blocks);
    }
}

#[test]
fn whatever_happens_nobody_gets_the_body_of_another() {
    let config = format!("  timeout client 3s\n  timeout server 3s\n{CACHED}");
    let config: &'static str = config.leak();
    explore(config, ALL, |stage| async move {
        stage.answer(S, |request, _| wild(request));
        all((0..24).map(|_| spawn(wild_client()))).await;
        // Those whose clients left have noticed by then.
        rt::sleep(Duration::from_secs(10)).await;
        at_rest(&stage);
    });
}

/// A version that lasts for three seconds.
fn version() -> u64 {
    seconds() / 3
}

/// Answers with a body by target, what the client says of itself, and version; to whoever has that version
/// with a 304. It breaks off as often as others.
fn versioned(request: &Message) -> Answer {
    let target: u64 = request.target()[1..].parse().unwrap_or(0);
    let kind: u64 = request.field("kind").and_then(|o| o.parse().ok()).unwrap_or(0);
    let (body, made) = (body_of(target, 4 * version() + kind, target * 700), seconds());
    let tag = format!("\"{target}-{kind}-{}\"", version());
    let words =
        ["no-cache", "max-age=1", "max-age=2, stale-if-error=2", "max-age=1, stale-while-revalidate=2"];
    let word = words[(rt::random() % 4) as usize];
    let fields = format!("vary: kind\r\netag: {tag}\r\ncache-control: {word}\r\nx-made: {made}\r\n");
    if request.field("if-none-match") == Some(&tag) {
        return Answer::Bytes(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into());
    }
    let label = label(&body);
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\n{label}{fields}content-length: {length}\r\n\r\n");
    let bytes = [head.as_bytes(), &body].concat();
    let cut = (rt::random() % bytes.len() as u64) as usize;
    match rt::random() % 8 {
        0 => Answer::Close(bytes[..cut].to_vec()),
        1 => Answer::Reset(bytes[..cut].to_vec()),
        2 => Answer::Late(Duration::from_millis(rt::random() % 1500), bytes),
        3 => Answer::Bytes(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_vec()),
        _ => Answer::Bytes(bytes),
    }
}

async fn versioned_client() {
    let Ok(mut client) = worlds::Peer::connect(&worlds::addr(FRONT)).await else { return };
    for _ in 0..8 {
        let (target, kind) = (1 + rt::random() % 5, rt::random() % 4);
        let odd = [
            "",
            "",
            "",
            "cache-control: max-age=1\r\n",
            "cache-control: no-cache\r\n",
            "authorization: x\r\n",
        ];
        let odd = odd[(rt::random() % 6) as usize];
        let answer = client.ask(&ask(&format!("/{target}"), &format!("kind: {kind}\r\n{odd}"))).await;
        assert_ne!(answer.status(), 304, "nobody asked for that: {answer:?}");
        if answer.status() == 200 {
            let tag = answer.field("etag").unwrap_or_default().to_owned();
            let parts: Vec<u64> = tag.trim_matches('"').split('-').filter_map(|n| n.parse().ok()).collect();
            let [of, whose, version] = parts[..] else { panic!("no tag: {answer:?}") };
            assert_eq!((of, whose), (target, kind), "the response of another");
            let body = body_of(target, 4 * version + kind, target * 700);
            assert!(body.starts_with(&answer.body), "a tag with the body of another");
            assert!(!answer.is_whole() || answer.body.len() == body.len(), "a part: {answer:?}");
            let made: u64 = answer.field("x-made").and_then(|made| made.parse().ok()).unwrap_or(0);
            // Good for two seconds, late by two, and two on its way.
            assert!(seconds() <= made + 6, "an old response: {answer:?}");
        }
        if !answer.is_whole() || answer.closes() {
            return;
        }
        rt::sleep(Duration::from_millis(rt::random() % 900)).await;
    }
}

#[test]
fn what_a_server_confirms_is_given_again_and_nothing_else() {
    let cached = CACHED.replace("process-vary on", "rfc9111 on\n wait-for-fetch 500ms");
    let config: &'static str = format!("  timeout client 3s\n  timeout server 3s\n{cached}").leak();
    // A single world may have no luck: its clients are cut off before anything is old.
    static CONFIRMED: AtomicU64 = AtomicU64::new(0);
    explore(config, ALL, |stage| async move {
        stage.answer(S, |request, _| {
            let answer = versioned(request);
            let same = matches!(&answer, Answer::Bytes(bytes) if bytes.starts_with(b"HTTP/1.1 304"));
            CONFIRMED.fetch_add(u64::from(same), Relaxed);
            answer
        });
        all((0..24).map(|_| spawn(versioned_client()))).await;
        rt::sleep(Duration::from_secs(10)).await;
        at_rest(&stage);
    });
    assert!(CONFIRMED.load(Relaxed) > 0, "nobody asked whether what is kept is good");
}

#[test]
fn it_is_good_for_its_time_and_no_longer() {
    explore(CACHED, QUIET, |stage| async move {
        let asked: Rc<Cell<u64>> = Rc::default();
        let count = asked.clone();
        stage.answer(S, move |_, _| {
            count.set(count.get() + 1);
            keepable(b"good", 2, "", false)
        });
        let mut client = stage.client(FRONT).await;
        let mut ages = Vec::new();
        for _ in 0..10 {
            let answer = client.ask(&ask("/", "")).await;
            ages.push(answer.field("age").map(str::to_owned));
            rt::sleep(Duration::from_millis(500)).await;
        }
        // Good for two seconds, by the clock's own.
        assert!((2..=4).contains(&asked.get()), "asked {} times: {ages:?}", asked.get());
        assert!(ages.iter().flatten().all(|age| ["0", "1"].contains(&&**age)), "{ages:?}");
    });
}

#[test]
fn a_client_that_takes_nothing_lets_go() {
    let config = format!("  timeout client 2s\n{CACHED}");
    let config: &'static str = config.leak();
    explore(config, QUIET, |stage| async move {
        stage.answer(S, |_, _| keepable(&content(1, 30_000), 60, "", false));
        let mut first = stage.client(FRONT).await;
        assert!(first.ask(&ask("/", "")).await.is_whole());
        stage.link(FRONT, |f| f.window = 1000);
        let slow = stage.client(FRONT).await;
        slow.send(&ask("/", "")).await.unwrap();
        rt::sleep(Duration::from_secs(10)).await;
        let lines = stage.ended(2).await;
        // Who answered stands in the line, as in HAProxy, whatever became of it then.
        let line = lines.iter().find(|l| l.server == "p/<CACHE>").expect("its line");
        assert_eq!((line.state(), line.text.contains(" 2000 ")), ("LR", true), "{}", line.text);
        let (shared, _) = stage.current();
        assert_eq!(shared.program.caches[0].available(), 1024);
    });
}

#[test]
fn what_is_kept_outlives_its_configuration() {
    explore(CACHED, QUIET, |stage| async move {
        stage.answer(S, |_, _| keepable(b"kept", 60, "", false));
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&ask("/", "")).await.field("x-hit"), Some("0"));
        stage.adopt(&CACHED.replace("x-hit", "x-found")).expect("a good configuration");
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&ask("/", "")).await.field("x-found"), Some("1"));
        // Another size is another cache.
        stage.adopt(&CACHED.replace("total-max-size 1", "total-max-size 2")).expect("a good configuration");
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&ask("/", "")).await.field("x-hit"), Some("0"));
    });
}

/// So many clients at once, and how often the server was asked for what they want.
async fn at_once(stage: &Rc<worlds::Stage>, clients: u64, answer: impl Fn() -> Answer + 'static) -> u64 {
    let asked: Rc<Cell<u64>> = Rc::default();
    let count = asked.clone();
    stage.answer(S, move |_, _| {
        count.set(count.get() + 1);
        answer()
    });
    let jobs = (0..clients).map(|_| {
        let stage = stage.clone();
        spawn(async move {
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&ask("/", "")).await;
            assert!(answer.is_whole() && answer.body == b"shared", "{answer:?}");
        })
    });
    all(jobs).await;
    asked.get()
}

fn waiting() -> &'static str {
    CACHED.replace("max-age 3", "max-age 30\n wait-for-fetch 2s").leak()
}

#[test]
fn many_share_what_one_fetches() {
    explore(waiting(), CALM, |stage| async move {
        let Answer::Bytes(bytes) = keepable(b"shared", 20, "", false) else { return };
        let late = move || Answer::Late(Duration::from_secs(1), bytes.clone());
        let asked = at_once(&stage, 20, late).await;
        // Whoever has waited for two seconds asks for itself.
        assert!(asked == 1 || stage.elapsed() > Duration::from_secs(2), "{asked} fetched it");
    });
}

#[test]
fn nobody_waits_in_vain_for_long() {
    // What may not be kept is known when it comes.
    explore(waiting(), QUIET, |stage| async move {
        let late = || Answer::Late(Duration::from_secs(1), worlds::response(200, b"shared"));
        assert_eq!(at_once(&stage, 5, late).await, 5);
        assert!(stage.elapsed() < Duration::from_millis(2500), "{:?}", stage.elapsed());
    });
    // Somebody is too slow.
    explore(waiting(), QUIET, |stage| async move {
        let Answer::Bytes(bytes) = keepable(b"shared", 20, "", false) else { return };
        let late = move || Answer::Late(Duration::from_secs(10), bytes.clone());
        assert_eq!(at_once(&stage, 5, late).await, 5);
        assert!(stage.elapsed() < Duration::from_secs(13), "{:?}", stage.elapsed());
    });
    // Who fetches goes away.
    let config: &'static str = waiting().replace(" server s", " option abortonclose\n server s").leak();
    explore(config, QUIET, |stage| async move {
        let first = stage.client(FRONT).await;
        let jobs = async {
            first.send(&ask("/", "")).await.unwrap();
            rt::sleep(Duration::from_millis(500)).await;
            first.reset();
        };
        let gone = spawn(jobs);
        let Answer::Bytes(bytes) = keepable(b"shared", 20, "", false) else { return };
        let late = move || Answer::Late(Duration::from_millis(900), bytes.clone());
        let asked = at_once(&stage, 5, late).await;
        all([gone]).await;
        assert!((1..=6).contains(&asked), "{asked}");
        assert!(stage.elapsed() < Duration::from_millis(2500), "{:?}", stage.elapsed());
    });
}

/// While one request fetches what is no longer good the others get what there is, for a time.
#[test]
fn what_is_old_answers_meanwhile() {
    let config = CACHED.replace("max-age 3", "max-age 30\n stale-while-revalidate 10\n stale-if-error 60");
    let config: &'static str = config.leak();
    explore(config, QUIET, |stage| async move {
        let asked: Rc<Cell<u64>> = Rc::default();
        let count = asked.clone();
        stage.answer(S, move |_, _| {
            count.set(count.get() + 1);
            let Answer::Bytes(bytes) = keepable(b"shared", 2, "", false) else { unreachable!() };
            match count.get() {
                1 => Answer::Bytes(bytes),
                2 => Answer::Late(Duration::from_secs(1), bytes),
                // It is broken from then on.
                3 => Answer::Bytes(worlds::response(503, b"broken")),
                _ => Answer::Reset(Vec::new()),
            }
        });
        let mut client = stage.client(FRONT).await;
        client.ask(&ask("/", "")).await;
        rt::sleep(Duration::from_secs(4)).await;
        let start = stage.elapsed();
        let jobs = (0..10).map(|_| {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                let answer = client.ask(&ask("/", "")).await;
                assert!(answer.is_whole() && answer.body == b"shared", "{answer:?}");
                (answer.field("x-hit") == Some("1"), stage.elapsed() - start)
            })
        });
        let answers = all(jobs).await;
        assert_eq!(asked.get(), 2);
        let old: Vec<_> = answers.iter().filter(|(hit, _)| *hit).collect();
        assert!(
            old.len() == 9 && old.iter().all(|(_, time)| *time < Duration::from_millis(500)),
            "{answers:?}"
        );
        // The server fails in two ways, then nobody is there.
        for _ in 0..3 {
            rt::sleep(Duration::from_secs(15)).await;
            let mut client = stage.client(FRONT).await;
            let answer = client.ask(&ask("/", "")).await;
            assert_eq!((answer.status(), &*answer.body), (200, &b"shared"[..]), "{answer:?}");
        }
        rt::sleep(Duration::from_secs(60)).await;
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&ask("/", "")).await.status(), 502);
    });
}
