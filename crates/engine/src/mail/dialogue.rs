//! The dialogue with a mailer about one mail (RFC 5321), on a connection of its own.

use std::net::SocketAddr;
use std::time::Duration;

use base::date::Date;
use link::timed;
use link::transport::Transport;
use model::mail::Letter;
use rt::{Addr, ConnectOptions, Timer};
use wire::smtp;

/// How long a mailer that has taken a mail may take to say good-bye.
const FAREWELL: Duration = Duration::from_secs(1);
/// Most bytes of what a mailer said that are told.
const TOLD: usize = 200;

/// Why a mail was not sent.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no connection.
    Refused(SocketAddr),
    /// `timeout mail` is over.
    Late,
    /// The mailer closed.
    Closed,
    /// What it said is no SMTP.
    Nonsense,
    /// It said no, for now or for good.
    No(String, bool),
    /// It has the mail and did not say whether it takes it.
    Unknown,
}

impl Trouble {
    /// Another try would not help, or might bring a mail twice.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Trouble::No(_, true) | Trouble::Unknown)
    }

    /// For the log.
    pub(super) fn words(&self, timeout: Duration) -> String {
        match self {
            Trouble::Refused(address) => format!("can't connect to {address}"),
            Trouble::Late => format!("not done after {}ms", timeout.as_millis()),
            Trouble::Closed => "connection unexpectedly closed".to_owned(),
            Trouble::Nonsense => "what it says is no SMTP".to_owned(),
            Trouble::No(said, _) => format!("it says \"{said}\""),
            Trouble::Unknown => "it does not say whether it takes the mail".to_owned(),
        }
    }
}

impl From<timed::Trouble> for Trouble {
    fn from(trouble: timed::Trouble) -> Trouble {
        match trouble {
            timed::Trouble::TimedOut => Trouble::Late,
            timed::Trouble::Io(_) => Trouble::Closed,
        }
    }
}

/// A connection to a mailer.
struct Dialogue {
    socket: Transport,
    timer: Timer,
    input: Vec<u8>,
}

/// Sends a letter. All of it may take `timeout mail`.
pub(super) async fn send(mailer: SocketAddr, letter: &Letter) -> Result<(), Trouble> {
    let mail = &letter.mail;
    let mut timer = Timer::new();
    timer.set_after(Some(mail.timeout));
    let connected = timed::connect(&Addr::Inet(mailer), &ConnectOptions::default(), &mut timer).await;
    let socket = connected.map_err(|why| match why {
        timed::Trouble::TimedOut => Trouble::Late,
        timed::Trouble::Io(_) => Trouble::Refused(mailer),
    })?;
    let mut with = Dialogue { socket, timer, input: Vec::new() };
    with.expect(2).await?;
    let hostname = smtp::plain(&mail.hostname);
    match with.say(&format!("EHLO {hostname}"), 2).await {
        // An old one.
        Err(Trouble::No(_, true)) => with.say(&format!("HELO {hostname}"), 2).await?,
        answer => answer?,
    }
    with.say(&format!("MAIL FROM:<{}>", smtp::plain(&mail.from)), 2).await?;
    with.say(&format!("RCPT TO:<{}>", smtp::plain(&mail.to)), 2).await?;
    with.say("DATA", 3).await?;
    timed::send(&with.socket, &text(letter), &mut with.timer).await?;
    with.expect(2).await.map_err(|trouble| match trouble {
        no @ Trouble::No(..) => no,
        _ => Trouble::Unknown,
    })?;
    // It is sent, whatever comes now.
    with.timer.set_after(Some(mail.timeout.min(FAREWELL)));
    let _ = with.say("QUIT", 2).await;
    Ok(())
}

impl Dialogue {
    /// Says a line, and expects an answer of this class.
    async fn say(&mut self, line: &str, class: u16) -> Result<(), Trouble> {
        timed::send(&self.socket, format!("{line}\r\n").as_bytes(), &mut self.timer).await?;
        self.expect(class).await
    }

    /// Waits for an answer, which should be of this class.
    async fn expect(&mut self, class: u16) -> Result<(), Trouble> {
        loop {
            if let Some(reply) = smtp::reply(&self.input).map_err(|smtp::Malformed| Trouble::Nonsense)? {
                let (code, length) = (reply.code, reply.length);
                let said = printable(reply.line);
                self.input.drain(..length);
                return if code / 100 == class { Ok(()) } else { Err(Trouble::No(said, code / 100 == 5)) };
            }
            timed::more(&self.socket, &mut self.input, &mut self.timer).await?;
        }
    }
}

/// The mail.
fn text(letter: &Letter) -> Vec<u8> {
    let mail = &letter.mail;
    let subject = format!("[HAProxy Alert] {}", letter.text);
    let headers =
        [("From", &*mail.from), ("To", &*mail.to), ("Date", &date(letter.when)), ("Subject", &subject)];
    smtp::mail(&headers, &letter.text)
}

/// `Fri, 27 Nov 2026 16:39:10 +0100`.
fn date(when: u64) -> String {
    let secs = i64::try_from(when).unwrap_or(0);
    let offset = rt::sys::local_offset(secs);
    let d = Date::of(secs + i64::from(offset));
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    format!(
        "{}, {:02} {} {} {:02}:{:02}:{:02} {sign}{:02}{:02}",
        d.weekday_name(),
        d.day,
        d.month_name(),
        d.year,
        d.hour,
        d.minute,
        d.second,
        minutes / 60,
        minutes % 60
    )
}

/// What a mailer said, as a line of the log may hold it.
fn printable(line: &[u8]) -> String {
    let line = line.get(..TOLD).unwrap_or(line);
    line.iter().map(|c| if matches!(c, b' '..=b'~') { char::from(*c) } else { '?' }).collect()
}
