//! Desynchronisation: no message, however it is made, may be read as two different ones by the proxy and by
//! an origin.
//!
//! Hostile messages go through the whole engine, on all four pairs of versions. The origins record every
//! byte, and what they got is read in several ways (`read`): by the letter of the RFCs, and as old or
//! careless software reads. All of them have to find the same sequence of method, target, authority and body;
//! it has to be what the table of the case lets pass; and every request in it bears the mark of a request
//! that the proxy logged as forwarded, with the same method, target and host. Streams of HTTP/2 are read by
//! the letter and as they come out of a server that turns them into HTTP/1 without a look. A request behind
//! each case, on a connection of its own, has to get its own answer, so a connection to a server that is out
//! of step is found even if what poisoned it looked well.
//!
//! Responses are tested the other way round: the origin is hostile, the client reads in several ways.
//!
//! `an_engine_that_passes_everything_is_found_out` shows that the readers differ where software does.
#![forbid(unsafe_code)]

mod frames;
mod origin;
mod read;
mod replies;
mod requests;
mod streams;

use std::rc::Rc;
use std::time::Duration;

use frames::{Ear, PREFACE, Talk};
use origin::{Origin, Version, agreed, field, shown};
use read::{Reading, WAYS, Way, responses};
use worlds::{CALM, Climate, Peer, Stage, get, play, seeds, within};

const FRONT: &str = "127.0.0.1:80";
const ORIGIN: &str = "127.0.1.1:80";
/// A silence that means that nothing more comes, whatever the network.
const SILENCE: Duration = Duration::from_secs(3);

fn config(back: Version) -> String {
    let proto = if back == Version::Two { " proto h2" } else { "" };
    format!(
        "listen p\n bind {FRONT}\n http-reuse always\n timeout client 30s\n timeout server 30s\n \
         http-request set-var-fmt(txn.m) %rt\n http-request set-header x-mark %[var(txn.m)]\n \
         http-request set-var(txn.u) pathq\n http-request set-var(txn.h) req.hdr(host)\n \
         log-format \"%ST|%s|%HM|%[var(txn.u)]|%[var(txn.h)]|%[var(txn.m)]\"\n server s {ORIGIN}{proto}"
    )
}

/// A log line.
#[derive(Debug)]
struct Logged {
    status: u16,
    method: String,
    target: String,
    host: String,
    mark: String,
}

impl Logged {
    fn of(text: &str) -> Logged {
        let words: Vec<&str> = text.split('|').collect();
        let word = |n: usize| words.get(n).filter(|w| **w != "-").map_or(String::new(), |w| (*w).to_owned());
        let host = word(words.len() - 2).to_ascii_lowercase();
        let mark = word(words.len() - 1);
        Logged { status: word(0).parse().unwrap_or(0), method: word(2), target: word(3), host, mark }
    }
}

/// What a client got on a connection.
struct Heard {
    bytes: Vec<u8>,
    ended: bool,
}

/// Sends bytes and listens until nothing more comes.
async fn tell(stage: &Stage, bytes: &[u8]) -> Heard {
    let mut client = stage.client(FRONT).await;
    let _ = client.send(bytes).await;
    let ended = loop {
        match within(SILENCE, client.more()).await {
            Some(Ok(())) => {}
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    Heard { bytes: std::mem::take(&mut client.buf), ended }
}

/// As [`tell`], on a connection of HTTP/2.
async fn tell_frames(stage: &Stage, bytes: &[u8]) -> Ear {
    let heard = tell(stage, &[PREFACE, &frames::greeting(), bytes].concat()).await;
    let mut ear = Ear::new();
    ear.hear(&heard.bytes);
    ear
}

/// The log lines of what is over since the last call.
async fn lines(stage: &Stage, seen: &mut usize) -> Vec<Logged> {
    stage.quiet().await;
    rt::sleep(SILENCE).await;
    let all = stage.lines();
    let fresh = all[*seen..].iter().map(|line| Logged::of(&line.text)).collect();
    *seen = all.len();
    fresh
}

/// A request of somebody else.
async fn probe(stage: &Stage, number: usize) -> Result<(), String> {
    let mut client: Peer = stage.client(FRONT).await;
    let answer = client.ask(&get(&format!("/probe/{number}"))).await;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    let own = body.ends_with(&format!(" GET /probe/{number}"));
    if answer.status() == 200 && own || answer.status() >= 500 && !stage.climate.is_quiet() {
        return Ok(());
    }
    Err(format!("the next client got {} {body}", answer.line))
}

/// What came to the origin is what was logged as forwarded.
fn compare(readings: &[Reading], lines: &[Logged]) -> Result<(), String> {
    for reading in readings.iter().filter(|r| r.whole) {
        let [mark] = &reading.marks[..] else { return Err(format!("not one mark: {reading:?}")) };
        let Some(line) = lines.iter().find(|line| line.mark == *mark) else {
            return Err(format!("never forwarded: {reading:?}"));
        };
        let host = line.host == reading.authority || line.host.is_empty();
        let path = line.target == reading.target || format!("/{}", line.target) == reading.target;
        let same = line.method == reading.what && host && path;
        if !same && reading.what != "CONNECT" {
            return Err(format!("{line:?} was forwarded, {reading:?} came"));
        }
        if readings.iter().filter(|r| r.marks == reading.marks).count() > 1 {
            return Err(format!("twice: {reading:?}"));
        }
    }
    match lines.iter().find(|l| l.status == 200 && !readings.iter().any(|r| r.whole && r.marks[0] == l.mark))
    {
        Some(line) => Err(format!("answered and never asked: {line:?}")),
        None => Ok(()),
    }
}

/// What the client of a hostile request may see: answers to what was forwarded, in one reading.
fn answers(heard: &Heard, lines: &[Logged]) -> Result<(), String> {
    let methods: Vec<&str> = lines.iter().map(|l| if l.method == "HEAD" { "HEAD" } else { "GET" }).collect();
    let list = one_reading(heard, &methods)?;
    let good = list.iter().filter(|r| r.whole && r.what == "200").count();
    let expected = lines.iter().filter(|l| l.status == 200).count();
    if good != expected {
        return Err(format!("{expected} good answers, {good} came: {}", heard.bytes.escape_ascii()));
    }
    Ok(())
}

fn one_reading(heard: &Heard, methods: &[&str]) -> Result<Vec<Reading>, String> {
    let strict = responses(Way::Strict, &heard.bytes, methods, heard.ended);
    for way in WAYS {
        let other = responses(way, &heard.bytes, methods, heard.ended);
        if other != strict || strict.refused.is_some() {
            return Err(format!("{way:?} of {}: {other:?} but {strict:?}", heard.bytes.escape_ascii()));
        }
    }
    Ok(strict.list)
}

/// As the tables write it.
fn written(readings: &[Reading]) -> String {
    let body = |r: &Reading| r.body.iter().map(|b| char::from(*b)).collect::<String>();
    let mut all: Vec<String> = readings
        .iter()
        .filter(|r| r.whole)
        .map(|r| format!("{} {} {} {}", r.what, r.target, r.authority, body(r)))
        .collect();
    all.sort();
    all.join(" | ")
}

/// All hostile requests of one version to an origin of another that reads them in one way.
async fn hostile_requests(stage: Rc<Stage>, front: Version, back: Version, way: Way) {
    let origin = Origin::start(&stage, ORIGIN, back, way);
    let cases = if front == Version::One { requests::all() } else { streams::all() };
    let (mut seen, mut wrong) = (0, Vec::new());
    for (number, (bytes, want)) in cases.iter().enumerate() {
        let (heard, seems) = match front {
            Version::One => (Some(tell(&stage, bytes).await), Ok(())),
            Version::Two => (None, well_formed(&tell_frames(&stage, bytes).await)),
        };
        let lines = lines(&stage, &mut seen).await;
        let outcome = origin.news().and_then(|readings| {
            compare(&readings, &lines)?;
            seems?;
            heard.as_ref().map_or(Ok(()), |heard| answers(heard, &lines))?;
            match written(&readings) {
                came if want.split(" :: ").any(|want| want == came) => Ok(()),
                came => Err(format!("WANT {want:?} CAME {came:?}")),
            }
        });
        let next = probe(&stage, number).await;
        let clean = origin.news().map(drop);
        self::lines(&stage, &mut seen).await;
        if let Err(why) = outcome.and(next).and(clean) {
            wrong.push(format!("{}\n    {why}", bytes.escape_ascii()));
        }
    }
    let (count, from) = (wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{front:?} to {back:?}, {way:?}: {count} of {from}:\n{}", wrong.join("\n"));
    assert!(from >= 150, "{from} cases");
}

/// Each stream's answer can be read in one way.
fn well_formed(ear: &Ear) -> Result<(), String> {
    ear.talks.iter().filter(|talk| !talk.lists.is_empty()).try_for_each(|talk| status(talk, "GET").map(drop))
}

/// The status of a response that is whole, else 0.
fn status(talk: &Talk, method: &str) -> Result<u16, String> {
    let told = |why: &str| format!("{why}: {}", shown(talk));
    let no = |why: &str| Err(told(why));
    let finals: Vec<_> = talk
        .lists
        .iter()
        .filter(|(list, _)| list.first().is_some_and(|(n, v)| n == b":status" && v[0] != b'1'))
        .collect();
    for (list, _) in &talk.lists {
        for (name, value) in list.iter().skip_while(|(n, _)| n == b":status") {
            field(name, value).map_err(told)?;
        }
    }
    let [(head, 0)] = finals[..] else { return if finals.is_empty() { Ok(0) } else { no("two heads") } };
    let lengths: Vec<_> = head.iter().filter(|(n, _)| n == b"content-length").map(|(_, v)| v).collect();
    let status = std::str::from_utf8(&head[0].1).ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    if !talk.ended || talk.reset {
        return Ok(0);
    }
    if method == "HEAD" || matches!(status, 204 | 304) {
        return if talk.body.is_empty() { Ok(status) } else { no("a body") };
    }
    match lengths[..] {
        [] => Ok(status),
        [length] if *length == talk.body.len().to_string().into_bytes() => Ok(status),
        _ => no("a wrong length"),
    }
}

/// All hostile responses of one version to clients of another.
async fn hostile_responses(stage: Rc<Stage>, front: Version, back: Version) {
    let origin = Origin::start(&stage, ORIGIN, back, Way::Strict);
    let count = if back == Version::One { replies::REPLIES.len() } else { replies::STREAMS.len() };
    let (mut seen, mut wrong) = (0, Vec::new());
    for number in 0..count {
        let (method, want) = match back {
            Version::One => (replies::REPLIES[number].method, replies::REPLIES[number].want),
            Version::Two => (replies::STREAMS[number].method, replies::STREAMS[number].want),
        };
        let outcome = match front {
            Version::One => asked(&stage, method, number).await,
            Version::Two => asked_streams(&stage, method, number).await,
        };
        let outcome = outcome.and_then(|status| match want.contains(&status) {
            true => Ok(()),
            false => Err(format!("WANT {want:?} CAME {status}")),
        });
        let next = probe(&stage, number).await;
        let came = origin.news().map(drop);
        lines(&stage, &mut seen).await;
        if let Err(why) = outcome.and(next).and(came) {
            let what = match back {
                Version::One => replies::REPLIES[number].bytes.escape_ascii().to_string(),
                Version::Two => (replies::STREAMS[number].frames)(1).escape_ascii().to_string(),
            };
            wrong.push(format!("{number} {what}\n    {why}"));
        }
    }
    assert!(wrong.is_empty(), "{front:?} to {back:?}: {} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Asks for a hostile response and for another behind it; the status of the first.
async fn asked(stage: &Stage, method: &str, number: usize) -> Result<u16, String> {
    let both = format!(
        "{method} /hostile/{number} HTTP/1.1\r\nhost: w\r\n\r\nGET /next/{number} HTTP/1.1\r\nhost: w\r\n\r\n"
    );
    let heard = tell(stage, both.as_bytes()).await;
    let list = one_reading(&heard, &[method, "GET"])?;
    let finals: Vec<&Reading> = list.iter().filter(|r| !r.what.starts_with('1')).collect();
    match finals.get(1) {
        Some(next) if !is_own(&next.what, &next.body, number) => {
            return Err(format!("the next answer was {next:?}"));
        }
        _ => {}
    }
    Ok(finals.first().filter(|r| r.whole).and_then(|r| r.what.parse().ok()).unwrap_or(0))
}

fn is_own(status: &str, body: &[u8], number: usize) -> bool {
    status.starts_with('5') || body.ends_with(format!(" GET /next/{number}").as_bytes())
}

/// The same on two streams.
async fn asked_streams(stage: &Stage, method: &str, number: usize) -> Result<u16, String> {
    let request = |stream: u32, method: &str, what: &str| {
        let path = format!("/{what}/{number}");
        frames::headers(
            stream,
            &[
                (b":method", method.as_bytes()),
                (b":scheme", b"http"),
                (b":authority", b"w"),
                (b":path", path.as_bytes()),
            ],
            true,
        )
    };
    let both = [request(1, method, "hostile"), request(3, "GET", "next")].concat();
    let mut ear = tell_frames(stage, &both).await;
    let (first, next) = (ear.talk(1).clone(), ear.talk(3).clone());
    let status_of_next = status(&next, "GET")?.to_string();
    if status_of_next != "0" && !is_own(&status_of_next, &next.body, number) {
        return Err(format!("the next answer was {}", shown(&next)));
    }
    status(&first, method)
}

/// A quiet world and a choppy one, and as many more as `WORLDS_SEEDS` says; `WORLDS_SEED` is the only one.
fn each_world(scene: impl Fn(u64, Climate)) {
    let all = std::env::var_os("WORLDS_SEEDS").is_some();
    for seed in seeds().into_iter().take(if all { usize::MAX } else { 2 }) {
        scene(seed, CALM[(seed % 2) as usize]);
    }
}

fn requests_between(front: Version, back: Version) {
    each_world(|seed, climate| {
        // Origins of both kinds meet both climates.
        let way = if matches!(seed % 4, 0 | 3) { Way::Strict } else { Way::Loose };
        play(seed, climate, &config(back), move |stage| hostile_requests(stage, front, back, way));
    });
}

fn responses_between(front: Version, back: Version) {
    each_world(|seed, climate| {
        play(seed, climate, &config(back), move |stage| hostile_responses(stage, front, back));
    });
}

#[test]
fn requests_from_http1_to_http1_have_one_reading() {
    requests_between(Version::One, Version::One);
}

#[test]
fn requests_from_http1_to_http2_have_one_reading() {
    requests_between(Version::One, Version::Two);
}

#[test]
fn requests_from_http2_to_http1_have_one_reading() {
    requests_between(Version::Two, Version::One);
}

#[test]
fn requests_from_http2_to_http2_have_one_reading() {
    requests_between(Version::Two, Version::Two);
}

#[test]
fn responses_from_http1_to_http1_have_one_reading() {
    responses_between(Version::One, Version::One);
}

#[test]
fn responses_from_http2_to_http1_have_one_reading() {
    responses_between(Version::One, Version::Two);
}

#[test]
fn responses_from_http1_to_http2_have_one_reading() {
    responses_between(Version::Two, Version::One);
}

#[test]
fn responses_from_http2_to_http2_have_one_reading() {
    responses_between(Version::Two, Version::Two);
}

#[test]
fn an_engine_that_passes_everything_is_found_out() {
    // Straight to the origin, the messages are read in two ways, or by the letter not at all.
    let cases = requests::all();
    let refused = cases.iter().filter(|(bytes, _)| agreed(bytes).is_err()).count();
    let careless =
        |bytes: &[u8]| [Way::Loose, Way::Lengths, Way::Returns].map(|way| read::requests(way, bytes).list);
    let disputed =
        cases.iter().filter(|(bytes, _)| careless(bytes).iter().any(|list| *list != careless(bytes)[0]));
    let (refused, disputed, all) = (refused, disputed.count(), cases.len());
    assert!(refused > 200 && disputed > 12, "of {all}: {refused} not by the letter, {disputed} disputed");
}
