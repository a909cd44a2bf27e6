//! Ten thousand objects in a small cache that two threads share, asked for by clients of both versions of
//! HTTP that leave at any moment: nobody ever gets the body of another one.

use std::rc::Rc;
use std::time::Duration;

use wire::h2::{Code, Limits};
use worlds::{ALL, Answer, Message, Peer, Stage, addr, all, explore_pairs, spawn};

use super::caches::{ask, at_rest, body_of, keepable, seconds};
use super::h2;

const FRONT: &str = "127.0.0.1:80";
const FRONT_H2: &str = "127.0.0.1:81";
const S: &str = "127.0.1.1:80";
/// The cache has room for a tenth of the objects.
const CONFIG: &str = "  timeout client 3s\n  timeout server 3s\n\
                      cache c\n total-max-size 1\n max-object-size 40000\n process-vary on\n max-age 3\n\
                      listen p\n bind 127.0.0.1:80\n bind 127.0.0.1:81 proto h2\n http-reuse never\n \
                      http-request cache-use c\n http-response cache-store c\n \
                      http-response set-header x-hit %[res.cache_hit]\n server s 127.0.1.1:80\n\
                      global\n nbthread 2";
const OBJECTS: u64 = 10_000;
const CLIENTS: u64 = 50;

/// What somebody wants: half of all objects have a variant for each of four origins.
#[derive(Clone, Copy)]
struct Wish {
    object: u64,
    origin: u64,
}

impl Wish {
    fn new(object: u64) -> Wish {
        Wish { object, origin: rt::random() % 4 }
    }

    /// The hot ones, those of a short while ago, any.
    fn any() -> Wish {
        Wish::new(match rt::random() % 4 {
            0 | 1 => 1 + rt::random() % 12,
            2 => 1 + rt::random() % 300,
            _ => 1 + rt::random() % OBJECTS,
        })
    }

    fn request(self) -> Vec<u8> {
        ask(&format!("/{}", self.object), &format!("origin: {}\r\n", self.origin))
    }

    fn of(request: &Message) -> Wish {
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        Wish { object: number(request.target().get(1..)), origin: number(request.field("origin")) }
    }

    /// The body, and its name.
    fn body(self) -> (Vec<u8>, String) {
        let variant = if self.object.is_multiple_of(2) { self.origin } else { 0 };
        let length = if self.object.is_multiple_of(97) { 20_000 } else { self.object * 37 % 1500 };
        (body_of(self.object, variant, length), format!("{}-{variant}", self.object))
    }

    /// The answer to it: good for up to three seconds, and often not sent to the end.
    fn answer(self) -> Answer {
        let (body, name) = self.body();
        let vary = if self.object.is_multiple_of(2) { "vary: origin\r\n" } else { "" };
        let fields = format!("{vary}x-name: {name}\r\nx-made: {}\r\n", seconds());
        let whole = keepable(&body, rt::random() % 4, &fields, rt::random().is_multiple_of(2));
        let Answer::Bytes(bytes) = &whole else { return whole };
        let cut = (rt::random() % bytes.len() as u64) as usize;
        match rt::random() % 40 {
            0 | 1 => Answer::Close(bytes[..cut].to_vec()),
            2 => Answer::Reset(bytes[..cut].to_vec()),
            3 => Answer::Late(Duration::from_millis(rt::random() % 1500), bytes.clone()),
            _ => whole,
        }
    }

    /// Looks at what came.
    fn judge(self, fields: &[(String, String)], body: &[u8], is_whole: bool) {
        let field = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, value)| &**value);
        let (right, name) = self.body();
        assert_eq!(field("x-name"), Some(&*name), "the response of another");
        assert!(right.starts_with(body), "the body of another behind {fields:?}");
        assert!(!is_whole || body.len() == right.len(), "a part as a whole: {fields:?}");
        let made: u64 = field("x-made").and_then(|made| made.parse().ok()).unwrap_or(0);
        let hit = field("x-hit") == Some("1");
        assert!(!hit || seconds() <= made + 9, "an old response: {fields:?}");
        assert_eq!(hit, field("age").is_some(), "{fields:?}");
    }
}

/// What a client asks for: its share of the objects of this seed, each followed by one that others want, too.
/// A seed has a twentieth of all objects.
fn wishes(number: u64) -> impl Iterator<Item = Wish> {
    let parts = 20;
    let own = (1 + number + CLIENTS * (rt::random() % parts)..=OBJECTS).step_by((CLIENTS * parts) as usize);
    own.flat_map(|object| [Wish::new(object), Wish::any()])
}

async fn pause() {
    if rt::random().is_multiple_of(8) {
        rt::sleep(Duration::from_millis(rt::random() % 200)).await;
    }
}

async fn client(number: u64) {
    let mut open: Option<Peer> = None;
    for wish in wishes(number) {
        let mut peer = match open.take() {
            Some(peer) => peer,
            None => match Peer::connect(&addr(FRONT)).await {
                Ok(peer) => peer,
                Err(_) => continue,
            },
        };
        let request = wish.request();
        if rt::random().is_multiple_of(30) {
            let _ = peer.send(&request).await;
            peer.take((rt::random() % 3000) as usize).await;
            if rt::random().is_multiple_of(2) {
                peer.reset();
            }
            continue;
        }
        let answer = peer.ask(&request).await;
        if answer.status() == 200 {
            wish.judge(&answer.fields, &answer.body, answer.is_whole());
        }
        if answer.is_whole() && !answer.closes() {
            open = Some(peer);
        }
        pause().await;
    }
}

/// The same over HTTP/2: up to four streams at once, of which some are taken back.
async fn client_h2(number: u64) {
    let mut open: Option<h2::Client> = None;
    let mut wishes = wishes(number).peekable();
    while wishes.peek().is_some() {
        let mut client = match open.take() {
            Some(client) => client,
            None => match Peer::connect(&addr(FRONT_H2)).await {
                Ok(peer) => h2::Client::new(peer, Limits::default()),
                Err(_) => {
                    wishes.next();
                    continue;
                }
            },
        };
        let some: Vec<Wish> = wishes.by_ref().take(1 + (rt::random() % 4) as usize).collect();
        let streams: Vec<_> = some.iter().map(|wish| client.ask(&wish.request(), b"")).collect();
        if rt::random().is_multiple_of(20) {
            // Nothing of the others comes any more, either.
            let _ = client.flush().await;
            client.connection.reset(streams[0], Code::CANCEL, &mut client.out);
            let _ = client.flush().await;
            continue;
        }
        let answers = client.answers(&streams).await;
        let whole = answers.iter().all(|answer| answer.whole);
        for (wish, answer) in some.iter().zip(answers) {
            if answer.status == 200 {
                wish.judge(&answer.fields, &answer.body, answer.whole);
            }
        }
        open = whole.then_some(client);
        pause().await;
    }
}

async fn scene(stage: Rc<Stage>) {
    stage.answer(S, |request, _| Wish::of(request).answer());
    let jobs = (0..CLIENTS).map(|n| match n % 3 {
        0 => spawn(client_h2(n)),
        _ => spawn(client(n)),
    });
    all(jobs).await;
    // Those whose clients left have noticed by then.
    rt::sleep(Duration::from_secs(10)).await;
}

/// The cache was of use, and what broke off has given its room back.
fn rest(stage: &Stage) {
    at_rest(stage);
    let counters = &stage.proxy("p").front.counters;
    let (hits, asked) = (counters.sum(|c| &c.cache.hits), counters.sum(|c| &c.cache.lookups));
    assert!(hits * 20 > asked && hits < asked, "{hits} hits of {asked}");
}

#[test]
fn ten_thousand_objects_of_two_threads_are_given_to_whom_they_belong() {
    explore_pairs(CONFIG, ALL, scene, rest);
}
