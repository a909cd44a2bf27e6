//! The way to a responder and back.

use std::time::Duration;

use rt::{Addr, ConnectOptions};
use tls::Connector;
use wire::head::Known;

use super::line::Story;
use super::request::Request;
use crate::Worker;
use crate::inner::http::Exchange;
use crate::inner::line::{Line, Patience, Tls, To};
use crate::inner::place::{Place, Scheme};
use crate::inner::{Fault, address};

/// How long a responder may take to answer, once the connection stands.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of a response. Those that are given have a few hundred, those with certificates some thousands.
const LONGEST: usize = 64 << 10;

/// A whole answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Its status.
    pub status: u16,
    /// It says that it is a response of OCSP.
    pub is_response: bool,
    /// Its body, without the framing.
    pub body: Vec<u8>,
}

/// What came of a question.
pub(super) struct Asked {
    /// The answer, if there is a whole one.
    pub answer: Option<Answer>,
    /// How it went.
    pub story: Story,
}

/// Asks, with as many tries as are allowed (`httpclient.retries`).
pub(super) async fn ask(worker: &Worker, place: &Place<'_>, id: &[u8]) -> Asked {
    let settings = &worker.shared.program.global.ocsp;
    let request = place.request(&tls::ocsp::request(id), settings.proxy.is_some());
    let mut story = Story::begin(request.line.clone());
    let found = match settings.proxy {
        Some(proxy) => Some(Addr::Inet(proxy)),
        None => address::find(worker, place.host, place.port).await,
    };
    let connector = connector(worker, place.scheme);
    let (Some(addr), Some(connector)) = (found, connector) else {
        story.end(("LR", 503));
        return Asked { answer: None, story };
    };
    let name = address::bare(place.host).as_bytes();
    let tls = || Some(Tls { connector: connector.as_deref()?, name, alpn: None });
    loop {
        let to = To { addr: &addr, options: ConnectOptions::default(), tls: tls() };
        let mut answer = Answer::default();
        let fault = match exchange(worker, &to, &request, &mut story, &mut answer).await {
            Ok(()) => {
                story.end(("--", answer.status));
                return Asked { answer: Some(answer), story };
            }
            Err(fault) => fault,
        };
        match fault.pause(settings.connect).filter(|_| story.retries < settings.retries) {
            Some(pause) => rt::sleep(pause).await,
            None => {
                story.end(told(fault, answer.status));
                return Asked { answer: None, story };
            }
        }
        story.retries += 1;
    }
}

/// What speaks TLS to the responder, where that is to be spoken. `None`: that can't be. A proxy is no way to
/// a responder over TLS (manual, `ocsp-update.httpproxy`).
fn connector(worker: &Worker, scheme: Scheme) -> Option<Option<std::sync::Arc<Connector>>> {
    let program = &worker.shared.program;
    match scheme {
        Scheme::Http => Some(None),
        Scheme::Https if program.global.ocsp.proxy.is_some() => None,
        Scheme::Https => program.tls.client(&program.global.client_tls).map(Some),
    }
}

/// The letters of the termination state, and the status that tells it; `status` is that of the answer, if its
/// head is known.
fn told(fault: Fault, status: u16) -> (&'static str, u16) {
    match fault {
        Fault::Refused | Fault::Insecure(_) => ("SC", 503),
        Fault::ConnectTimeout => ("sC", 503),
        Fault::Silent => ("SH", 502),
        Fault::Late => ("sH", 504),
        Fault::Malformed => ("PH", 502),
        Fault::Cut => ("SD", status),
        Fault::Stalled => ("sD", status),
    }
}

/// One try. What is known of the answer when it breaks off is in `answer`.
async fn exchange(
    worker: &Worker,
    to: &To<'_>,
    request: &Request,
    story: &mut Story,
    answer: &mut Answer,
) -> Result<(), Fault> {
    let connect = worker.shared.program.global.ocsp.connect;
    let line = Line::open(worker, to, Patience { connect, silence: PATIENCE, whole: Some(PATIENCE) }).await?;
    story.connected();
    let mut exchange = Exchange::begin(worker, line, request.method, &request.bytes).await?;
    let head = exchange.answer().await?;
    (answer.status, answer.is_response) = (head.status(), is_response(head.first(Known::ContentType)));
    story.answered();
    let outcome = read(&mut exchange, &mut answer.body).await;
    story.bytes = exchange.received();
    outcome
}

/// Takes the body of an answer, unless it is too long for a response.
async fn read(exchange: &mut Exchange, body: &mut Vec<u8>) -> Result<(), Fault> {
    while let Some(piece) = exchange.body().await? {
        if body.len() + piece.len() > LONGEST {
            return Err(Fault::Cut);
        }
        body.extend_from_slice(piece);
    }
    Ok(())
}

fn is_response(kind: Option<&[u8]>) -> bool {
    const KIND: &[u8] = b"application/ocsp-response";
    let kind = kind.and_then(|v| v.split(|c| *c == b';').next());
    kind.is_some_and(|k| k.trim_ascii().eq_ignore_ascii_case(KIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_says_what_it_is() {
        assert!(is_response(Some(b"Application/OCSP-Response ; x=y")));
        assert!(!is_response(Some(b"text/html")) && !is_response(None));
    }
}
