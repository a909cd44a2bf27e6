//! OCSP responders: asking for responses in time, and when somebody says so (manual, `ocsp-update`; management manual,
//! `update ssl ocsp-response`).
//!
//! One worker looks once a second at what is due. A responder is asked over HTTP/1.0, so that its answer has one form only
//! and ends with the connection. Names are resolved on a thread made for it: nothing here waits for the system.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use rt::{Addr, ConnectOptions, Timer};
use tls::store::{Came, Pace, Question};

use crate::Worker;
use crate::check::link::Link;

/// How often the calendar is looked at.
const TICK: Duration = Duration::from_secs(1);
/// How long a responder may take in all.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait between looks at a name that is being resolved.
const NAP: Duration = Duration::from_millis(20);
const KIND: &[u8] = b"application/ocsp-response";

/// Keeps responses fresh, on the first worker of a configuration that wants it.
pub fn start(worker: &Rc<Worker>) {
    let global = &worker.shared.program.global;
    if worker.index == 0 && !global.ocsp.disabled && worker.shared.program.tls.has_updates() {
        rt::spawn(run(worker.clone()));
    }
}

fn now() -> i64 {
    i64::try_from(rt::wall().as_secs()).unwrap_or(0)
}

async fn run(worker: Rc<Worker>) {
    let program = worker.shared.program.clone();
    while !worker.stop.is_raised() {
        for (name, question) in program.tls.due(program.global.ocsp.pace, now()) {
            update(&worker, &name, &question).await;
        }
        rt::sleep(TICK).await;
    }
}

/// Asks for the response of a certificate and takes it; what came of it.
pub async fn update(worker: &Rc<Worker>, name: &str, question: &Question) -> Came {
    let program = &worker.shared.program;
    let came = match ask(question, program.global.ocsp.proxy).await {
        Ok(response) => program.tls.set_response(&response, now(), true).into(),
        Err(came) => came,
    };
    let pace = Pace { ..program.global.ocsp.pace };
    let update = program.tls.asked(name, &question.id, came, pace, now());
    let (number, words) = came.words();
    let (failures, successes) = (update.failures, update.successes);
    let line = format!("<OCSP-UPDATE> {name} {number} \"{words}\" {failures} {successes}");
    crate::log::global_line(worker, crate::log::NOTICE, &line);
    came
}

/// Host, port and path of an address.
fn parts(uri: &str) -> Option<(&str, u16, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let at = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let (host, port) = match host.rsplit_once(':').filter(|(_, p)| p.bytes().all(|c| c.is_ascii_digit())) {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (host, 80),
    };
    let clean = |text: &str| text.bytes().all(|c| c.is_ascii_graphic());
    let path = if path.is_empty() { "/" } else { path };
    (!host.is_empty() && clean(host) && clean(path)).then_some((host, port, path))
}

async fn resolve(host: &str, port: u16) -> Option<SocketAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse() {
        return Some(SocketAddr::new(ip, port));
    }
    let (sender, receiver) = mpsc::channel();
    let host = host.to_owned();
    let thread = std::thread::Builder::new().name("resolver".into());
    thread.spawn(move || sender.send(rt::sys::resolve(&host))).ok()?;
    for _ in 0..PATIENCE.as_millis() / NAP.as_millis() {
        match receiver.try_recv() {
            Ok(found) => return Some(SocketAddr::new(*found.ok()?.first()?, port)),
            Err(mpsc::TryRecvError::Empty) => rt::sleep(NAP).await,
            Err(mpsc::TryRecvError::Disconnected) => return None,
        }
    }
    None
}

/// The answer of a responder.
async fn ask(question: &Question, proxy: Option<SocketAddr>) -> Result<Vec<u8>, Came> {
    let (host, port, path) = parts(&question.uri).ok_or(Came::HttpError)?;
    let to = match proxy {
        Some(proxy) => Some(proxy),
        None => resolve(host, port).await,
    };
    let to = Addr::Inet(to.ok_or(Came::HttpError)?);
    let target = if proxy.is_some() { &*question.uri } else { path };
    let body = tls::ocsp::request(&question.id);
    let mut timer = Timer::new();
    timer.set_after(Some(PATIENCE));
    let failed = |_| Came::HttpError;
    let link = Link::open(&to, &ConnectOptions::default(), true, &mut timer).await;
    let mut link = link.map_err(failed)?;
    let head = format!(
        "POST {target} HTTP/1.0\r\nhost: {host}:{port}\r\ncontent-type: application/ocsp-request\r\naccept: \
         application/ocsp-response\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    link.out().extend_from_slice(head.as_bytes());
    link.out().extend_from_slice(&body);
    link.flush(&mut timer).await.map_err(failed)?;
    while !link.is_over() {
        link.more(&mut timer).await.map_err(failed)?;
    }
    read(link.data())
}

/// The body of an answer that is one.
fn read(data: &[u8]) -> Result<Vec<u8>, Came> {
    let end = data.windows(4).position(|w| w == b"\r\n\r\n").ok_or(Came::HttpError)?;
    let (head, body) = data.split_at(end);
    let mut lines = head.split(|c| *c == b'\n').map(<[u8]>::trim_ascii);
    let status = lines.next().filter(|l| l.starts_with(b"HTTP/1."));
    if status.and_then(|l| l.split(|c| *c == b' ').nth(1)) != Some(b"200") {
        return Err(Came::HttpError);
    }
    let (mut kind, mut length) = (None, None);
    for line in lines {
        let Some(colon) = line.iter().position(|c| *c == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-type") {
            kind = value.split(|c| *c == b';').next().map(<[u8]>::trim_ascii);
        } else if name.eq_ignore_ascii_case(b"content-length") {
            length = std::str::from_utf8(value).ok().and_then(|v| v.parse::<usize>().ok());
        }
    }
    if !kind.is_some_and(|k| k.eq_ignore_ascii_case(KIND)) {
        return Err(Came::NoResponse);
    }
    let body = body.get(4..).unwrap_or_default();
    match length {
        Some(length) => body.get(..length).map(<[u8]>::to_vec).ok_or(Came::HttpError),
        None => Ok(body.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(parts("http://ocsp.example"), Some(("ocsp.example", 80, "/")));
        assert_eq!(parts("http://127.0.0.1:12345/a/b"), Some(("127.0.0.1", 12345, "/a/b")));
        assert_eq!(parts("http://[::1]:80/"), Some(("[::1]", 80, "/")));
        for bad in ["https://x/", "http:///", "ldap://x", "http://x/a b", "http://x:99999/"] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_whole_answers_of_the_right_kind_count() {
        let ok =
            b"HTTP/1.0 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: 2\r\n\r\nabc";
        assert_eq!(read(ok), Ok(b"ab".to_vec()));
        let open = b"HTTP/1.1 200 OK\r\ncontent-type: application/ocsp-response\r\n\r\nabc";
        assert_eq!(read(open), Ok(b"abc".to_vec()));
        for (bad, why) in [
            (&b"HTTP/1.0 404 no\r\n\r\n"[..], Came::HttpError),
            (b"HTTP/1.0 200 OK\r\ncontent-type: text/html\r\n\r\n", Came::NoResponse),
            (
                b"HTTP/1.0 200 OK\r\ncontent-type: application/ocsp-response\r\ncontent-length: 9\r\n\r\nabc",
                Came::HttpError,
            ),
            (b"", Came::HttpError),
            (b"junk\r\n\r\n", Came::HttpError),
        ] {
            assert_eq!(read(bad), Err(why));
        }
    }
}
