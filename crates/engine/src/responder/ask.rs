//! The way to a responder and back. Names are resolved on a thread made for it: nothing here waits for the system.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use program::global::Ocsp;
use rt::{Addr, ConnectOptions, Timer};

use super::answer::{Answer, Reading, read};
use super::line::Story;
use super::place::Place;
use crate::aside;
use crate::check::link::{Link, Trouble};

/// How long a responder may take to answer, once the connection stands.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a name may take to be resolved.
const RESOLVING: Duration = Duration::from_secs(10);
/// How long to wait before a connection is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// What came of a question.
pub(super) struct Asked {
    /// The answer, if there is a whole one.
    pub answer: Option<Answer>,
    /// How it went.
    pub story: Story,
}

/// Why there is no answer: the letters of the termination state, and the status that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NoName,
    Refused,
    ConnectTimeout,
    /// Closed before anything came.
    Silent,
    AnswerTimeout,
    Broken,
    /// Closed or late within the answer, whose status is known.
    Cut(u16, bool),
}

impl Fault {
    fn told(self) -> (&'static str, u16) {
        match self {
            Fault::NoName => ("LR", 503),
            Fault::Refused => ("SC", 503),
            Fault::ConnectTimeout => ("sC", 503),
            Fault::Silent => ("SH", 502),
            Fault::AnswerTimeout => ("sH", 504),
            Fault::Broken => ("PH", 502),
            Fault::Cut(status, late) => (if late { "sD" } else { "SD" }, status),
        }
    }
}

/// Asks, with as many tries as are allowed (`httpclient.retries`): again after a second when there is no connection, at once
/// when one was closed without a word.
pub(super) async fn ask(place: &Place<'_>, id: &[u8], settings: &Ocsp) -> Asked {
    let (request, line) = place.request(&tls::ocsp::request(id), settings.proxy.is_some());
    let mut story = Story::begin(line);
    let Some(to) = target(place, settings).await else {
        story.end(Fault::NoName.told());
        return Asked { answer: None, story };
    };
    loop {
        let outcome = exchange(&to, &request, settings.connect, &mut story).await;
        let again = story.retries < settings.retries;
        match outcome {
            Err(Fault::Refused | Fault::ConnectTimeout) if again => rt::sleep(PAUSE).await,
            Err(Fault::Silent) if again => {}
            Err(fault) => {
                story.end(fault.told());
                return Asked { answer: None, story };
            }
            Ok(answer) => {
                story.end(("--", answer.status));
                return Asked { answer: Some(answer), story };
            }
        }
        story.retries += 1;
    }
}

/// Where to connect to.
async fn target(place: &Place<'_>, settings: &Ocsp) -> Option<Addr> {
    if let Some(proxy) = settings.proxy {
        return Some(Addr::Inet(proxy));
    }
    let bare = place.host.trim_start_matches('[').trim_end_matches(']');
    let ip = match bare.parse() {
        Ok(ip) => ip,
        Err(_) => {
            let host = bare.to_owned();
            let found = aside::run("resolver", RESOLVING, move || rt::sys::resolve(&host)).await?.ok()?;
            preferred(&found, settings.prefer_v4)?
        }
    };
    Some(Addr::Inet(SocketAddr::new(ip, place.port)))
}

/// The first address of the wanted family, or else the first.
fn preferred(found: &[IpAddr], v4: Option<bool>) -> Option<IpAddr> {
    let wanted = found.iter().find(|ip| v4.is_none_or(|v4| ip.is_ipv4() == v4));
    wanted.or(found.first()).copied()
}

/// One try.
async fn exchange(to: &Addr, request: &[u8], connect: Duration, story: &mut Story) -> Result<Answer, Fault> {
    let mut timer = Timer::new();
    timer.set_after(Some(connect));
    let mut link =
        Link::open(to, &ConnectOptions::default(), true, &mut timer).await.map_err(|why| match why {
            Trouble::TimedOut => Fault::ConnectTimeout,
            Trouble::Io(_) => Fault::Refused,
        })?;
    story.connected();
    timer.set_after(Some(PATIENCE));
    link.out().extend_from_slice(request);
    link.flush(&mut timer).await.map_err(|why| match why {
        Trouble::TimedOut => Fault::AnswerTimeout,
        Trouble::Io(_) => Fault::Silent,
    })?;
    loop {
        let so_far = read(link.data(), link.has_ended());
        if !matches!(so_far, Reading::Partial(None)) {
            story.answered();
        }
        story.bytes = link.data().len();
        match so_far {
            Reading::Whole(answer) => return Ok(answer),
            Reading::Broken => return Err(Fault::Broken),
            Reading::Partial(Some(status)) if link.is_over() => return Err(Fault::Cut(status, false)),
            Reading::Partial(None) if link.is_over() => return Err(Fault::Silent),
            Reading::Partial(status) => {
                let late = status.map_or(Fault::AnswerTimeout, |status| Fault::Cut(status, true));
                link.more(&mut timer).await.map_err(|_| late)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_preferred_family_comes_first() {
        let found = ["::1", "127.0.0.1"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(preferred(&found, None), Some(found[0]));
        assert_eq!(preferred(&found, Some(true)), Some(found[1]));
        assert_eq!(preferred(&found[1..], Some(false)), Some(found[1]));
        assert_eq!(preferred(&[], None), None);
    }
}
