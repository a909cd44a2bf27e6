//! Mailers that stall, lie, close, come back: mails about servers go where they should, in their order, and
//! nothing else waits for them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use farm::state::{self, Forced};
use worlds::{CALM, Climate, Peer, QUIET, Stage, explore, get};

use crate::checks::{FIRST, FRONT, S, after, until};

const ONE: &str = "127.0.2.1:25";
const TWO: &str = "127.0.2.2:25";

/// A proxy with a server, and what it says of mail.
fn config(mailers: &str, level: &str) -> String {
    format!(
        "mailers m\n timeout mail 5s\n {mailers}\nlisten p\n bind {FRONT}\n email-alert mailers m\n \
         email-alert from a@x.test\n email-alert to b@x.test\n email-alert myhostname lb\n \
         email-alert level {level}\n server s {S}"
    )
}

fn one() -> String {
    config(&format!("mailer one {ONE}"), "notice")
}

fn scene<F>(config: &str, climates: &[Climate], scene: impl Fn(Rc<Stage>) -> F + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    explore(config, climates, scene);
}

/// A line of the client; `None`: it closed.
async fn said(peer: &mut Peer, from: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = from.windows(2).position(|w| w == b"\r\n") {
            let line = from.drain(..end + 2).collect::<Vec<u8>>();
            return Some(String::from_utf8(line).expect("a text").trim_end().to_owned());
        }
        peer.more().await.ok()?;
        from.extend(std::mem::take(&mut peer.buf));
    }
}

/// Takes a mail as a mailer should, but answers the line that begins with `odd` with `answer`. The lines that
/// came.
async fn take(peer: &mut Peer, odd: &str, answer: &str) -> Vec<String> {
    let (mut lines, mut input, mut in_text) = (Vec::new(), Vec::new(), false);
    let greeting = if odd == "greeting" { answer } else { "220-mx\r\n220 mx ready\r\n" };
    let _ = peer.send(greeting.as_bytes()).await;
    while let Some(line) = said(peer, &mut input).await {
        lines.push(line.clone());
        let reply = match &*line {
            "." => {
                in_text = false;
                "250 taken\r\n"
            }
            _ if in_text => continue,
            "DATA" => {
                in_text = true;
                "354 go on\r\n"
            }
            "QUIT" => "221 bye\r\n",
            _ => "250 fine\r\n",
        };
        let reply = if !odd.is_empty() && line.starts_with(odd) { answer } else { reply };
        let _ = peer.send(reply.as_bytes()).await;
    }
    lines
}

/// What came to mailers: the lines of each connection.
type Came = Rc<RefCell<Vec<Vec<String>>>>;

/// A mailer that answers a line oddly.
fn odd_mailer(stage: &Stage, at: &str, odd: &'static str, answer: &'static str) -> Came {
    let came = Came::default();
    let all = came.clone();
    stage.serve(at, move |mut peer, _| {
        let all = all.clone();
        async move {
            let lines = take(&mut peer, odd, answer).await;
            all.borrow_mut().push(lines);
        }
    });
    came
}

fn mailer(stage: &Stage, at: &str) -> Came {
    odd_mailer(stage, at, "", "")
}

fn change(stage: &Stage, forced: Forced) {
    state::force_health(&stage.current().1.farm, FIRST, forced);
}

/// The subjects that came.
fn subjects(came: &Came) -> Vec<String> {
    let all = came.borrow();
    let found = all.iter().flatten().filter_map(|line| line.strip_prefix("Subject: [HAProxy Alert] "));
    found.map(|s| s.split(". ").next().unwrap_or_default().to_owned()).collect()
}

/// What the log says of mails.
fn warnings(stage: &Stage) -> Vec<String> {
    stage.lines().into_iter().map(|l| l.text).filter(|t| t.starts_with("Can't send")).collect()
}

const DOWN: &str = "Server p/s is DOWN, changed from CLI";
const UP: &str = "Server p/s is UP, changed from CLI";

#[test]
fn each_mailer_gets_each_mail_in_order() {
    let both = config(&format!("mailer one {ONE}\n mailer two {TWO}"), "notice");
    scene(&both, CALM, |stage| async move {
        let (one, two) = (mailer(&stage, ONE), mailer(&stage, TWO));
        for forced in [Forced::Down, Forced::Up, Forced::Down] {
            change(&stage, forced);
        }
        until(|| subjects(&one).len() == 3 && subjects(&two).len() == 3).await;
        assert_eq!(
            (subjects(&one), subjects(&two)),
            (vec![DOWN.into(), UP.into(), DOWN.into()], subjects(&one))
        );
        let first = one.borrow()[0].clone();
        assert_eq!(first[..4], ["EHLO lb", "MAIL FROM:<a@x.test>", "RCPT TO:<b@x.test>", "DATA"]);
        assert_eq!(first[4..6], ["From: a@x.test", "To: b@x.test"]);
        assert!(first[6].starts_with("Date: "));
        let text = format!(
            "{DOWN}. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue"
        );
        assert_eq!(
            first[7..],
            [format!("Subject: [HAProxy Alert] {text}"), String::new(), text, ".".into(), "QUIT".into()]
        );
    });
}

#[test]
fn the_level_decides() {
    for (level, mails) in [("emerg", 0), ("alert", 1), ("notice", 2), ("debug", 2)] {
        let config = config(&format!("mailer one {ONE}"), level);
        scene(&config, QUIET, move |stage| async move {
            let came = mailer(&stage, ONE);
            change(&stage, Forced::Down);
            change(&stage, Forced::Up);
            after(3000).await;
            assert_eq!(subjects(&came).len(), mails);
        });
    }
}

/// The other mailer and traffic go on; `timeout mail` ends each try, and the log tells.
#[test]
fn a_mailer_that_stalls_holds_up_nothing_else() {
    let both = config(&format!("mailer one {ONE}\n mailer two {TWO}"), "notice");
    scene(&both, QUIET, |stage| async move {
        stage.serve(ONE, |mut peer, _| async move {
            let _ = peer.send(b"220 wait\r\n").await;
            peer.rest().await;
        });
        let two = mailer(&stage, TWO);
        stage.origin(S);
        change(&stage, Forced::Down);
        change(&stage, Forced::Up);
        after(100).await;
        assert_eq!(subjects(&two), [DOWN, UP]);
        let mut client = stage.client(FRONT).await;
        assert_eq!(client.ask(&get("/1/10")).await.status(), 200);
        // Three tries of 5 s with pauses of 1 s and 10 s, then one try for the second mail.
        after(25_500).await;
        assert_eq!(warnings(&stage), Vec::<String>::new());
        after(1000).await;
        assert_eq!(warnings(&stage), ["Can't send email alert to one: not done after 5000ms."]);
        after(5000).await;
        assert_eq!(warnings(&stage).len(), 2);
    });
}

#[test]
fn a_mailer_that_comes_back_gets_the_mail() {
    scene(&one(), QUIET, |stage| async move {
        change(&stage, Forced::Down);
        after(500).await;
        let came = mailer(&stage, ONE);
        after(1500).await;
        assert_eq!((subjects(&came), warnings(&stage)), (vec![DOWN.to_owned()], Vec::new()));
    });
}

#[test]
fn what_a_mailer_says_decides_whether_it_is_asked_again() {
    // What is answered how, how often the mail is tried, and what the log says.
    let cases: &[(&'static str, &'static str, usize, Option<&str>)] = &[
        ("EHLO", "502 what?\r\n", 1, None),
        ("RCPT", "550 no such\r\n", 1, Some("it says \"550 no such\"")),
        ("RCPT", "450-later\r\n450 perhaps\x01\r\n", 3, Some("it says \"450 perhaps?\"")),
        ("MAIL", "hello\r\n", 3, Some("what it says is no SMTP")),
        ("DATA", "250 fine\r\n", 3, Some("it says \"250 fine\"")),
        (".", "", 1, Some("it does not say whether it takes the mail")),
        (".", "554 spam\r\n", 1, Some("it says \"554 spam\"")),
        ("greeting", "421 busy\r\n", 3, Some("it says \"421 busy\"")),
        ("QUIT", "", 1, None),
    ];
    for &(odd, answer, tries, log) in cases {
        scene(&one(), QUIET, move |stage| async move {
            let came = odd_mailer(&stage, ONE, odd, answer);
            change(&stage, Forced::Down);
            after(40_000).await;
            assert_eq!(came.borrow().len(), tries, "{odd} {answer}");
            let expected: Vec<String> =
                log.iter().map(|why| format!("Can't send email alert to one: {why}.")).collect();
            assert_eq!(warnings(&stage), expected, "{odd} {answer}");
        });
    }
}

/// A mailer that talks without end gives no mail a longer life, and its words take no memory.
#[test]
fn a_mailer_that_never_ends_is_left() {
    scene(&one(), QUIET, |stage| async move {
        stage.serve(ONE, |peer, _| async move {
            while peer.send(b"220-more\r\n").await.is_ok() {
                after(1).await;
            }
        });
        change(&stage, Forced::Down);
        after(40_000).await;
        assert_eq!(warnings(&stage).len(), 1);
    });
}

/// More mails than a mailer that stalls has room for: some are dropped, and the log says how many.
#[test]
fn a_queue_has_an_end() {
    scene(&one(), QUIET, |stage| async move {
        let stalls = stage.serve(ONE, |mut peer, _| async move {
            peer.rest().await;
        });
        for _ in 0..600 {
            change(&stage, Forced::Down);
            change(&stage, Forced::Up);
        }
        after(27_000).await;
        rt::cancel(stalls);
        let came = mailer(&stage, ONE);
        after(100_000).await;
        // Of 1000 it was offered two while it stalled.
        assert_eq!(subjects(&came).len(), 998);
        let told = warnings(&stage);
        let dropped = "were dropped because it takes them too slowly.";
        assert_eq!(told.iter().filter(|t| t.ends_with(dropped)).count(), 1, "{told:?}");
        assert!(told.iter().any(|t| t.contains(": 200 were")), "{told:?}");
    });
}

/// A mail that waits is sent as the configuration before said; the next one as the new one does.
#[test]
fn a_reload_in_place_adopts_what_is_said_of_mail() {
    scene(&one(), QUIET, |stage| async move {
        let two = mailer(&stage, TWO);
        change(&stage, Forced::Down);
        after(100).await;
        let now = one().replace("b@x.test", "c@x.test").replace("mailer one", "mailer two").replace(ONE, TWO);
        stage.adopt(&now).expect("it is right");
        change(&stage, Forced::Up);
        let one = mailer(&stage, ONE);
        after(2000).await;
        assert_eq!((subjects(&one), subjects(&two)), (vec![DOWN.to_owned()], vec![UP.to_owned()]));
        assert!(two.borrow()[0].contains(&"RCPT TO:<c@x.test>".to_owned()));
    });
}

#[test]
fn a_maintenance_is_not_mailed_but_draining_is() {
    scene(&one(), QUIET, |stage| async move {
        let came = mailer(&stage, ONE);
        for wanted in [state::Wanted::Maint, state::Wanted::Ready, state::Wanted::Drain] {
            state::set_admin(&stage.worker.farm, FIRST, wanted);
        }
        after(Duration::from_secs(2).as_millis() as u64).await;
        assert_eq!(subjects(&came), ["Server p/s enters drain state"]);
    });
}
