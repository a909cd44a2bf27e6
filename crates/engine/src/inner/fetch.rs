//! A whole call by URL: `httpclient` of the runtime API, with the settings of `httpclient.*`.

use std::time::Duration;

use rt::{Addr, ConnectOptions};
use wire::method::Method;

use super::http::Exchange;
use super::line::{Line, Patience, Tls, To};
use super::place::{Place, Scheme};
use super::{Fault, address};
use crate::Worker;

/// How long the server may be silent.
const SILENCE: Duration = Duration::from_secs(10);
/// Most bytes of a body that are kept.
const LONGEST: usize = 16 << 20;

/// An answer.
#[derive(Debug, Default)]
pub struct Got {
    /// Its status.
    pub status: u16,
    /// Its reason.
    pub reason: String,
    /// Its fields, each line with its end.
    pub fields: Vec<u8>,
    /// Its body, without the framing.
    pub body: Vec<u8>,
    /// The body did not come whole.
    pub cut: bool,
}

/// Sends a request without a body to where it leads, with as many tries as are allowed.
///
/// # Errors
/// Why there is no answer.
pub async fn fetch(worker: &Worker, method: Method, name: &str, place: &Place<'_>) -> Result<Got, Fault> {
    let program = &worker.shared.program;
    let settings = &program.global.ocsp;
    let connector = match place.scheme {
        Scheme::Http => None,
        Scheme::Https => Some(program.tls.client(&program.global.client_tls).ok_or(Fault::Refused)?),
    };
    let found = address::find(worker, place.host, place.port).await;
    let addr: Addr = found.ok_or(Fault::Refused)?;
    let host = address::bare(place.host).as_bytes();
    let path = if place.path.starts_with('/') { place.path.to_owned() } else { format!("/{}", place.path) };
    let request = format!(
        "{name} {path} HTTP/1.1\r\nhost: {}\r\naccept: */*\r\nuser-agent: Harrier\r\n\r\n",
        place.authority
    );
    let mut tries = 0;
    loop {
        let tls = connector.as_deref().map(|connector| Tls { connector, name: host, alpn: None });
        let to = To { addr: &addr, options: ConnectOptions::default(), tls };
        let fault = match once(worker, &to, method, request.as_bytes(), settings.connect).await {
            Ok(got) => return Ok(got),
            Err(fault) => fault,
        };
        match fault.pause(settings.connect).filter(|_| tries < settings.retries) {
            Some(pause) => rt::sleep(pause).await,
            None => return Err(fault),
        }
        tries += 1;
    }
}

async fn once(
    worker: &Worker,
    to: &To<'_>,
    method: Method,
    request: &[u8],
    connect: Duration,
) -> Result<Got, Fault> {
    let line = Line::open(worker, to, Patience { connect, silence: SILENCE, whole: None }).await?;
    let mut exchange = Exchange::begin(worker, line, method, request).await?;
    let head = exchange.answer().await?;
    let mut got = Got {
        status: head.status(),
        reason: String::from_utf8_lossy(head.reason()).into_owned(),
        ..Got::default()
    };
    for (_, name, value) in head.fields() {
        got.fields.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
    }
    loop {
        match exchange.body().await {
            Ok(Some(piece)) if got.body.len() + piece.len() <= LONGEST => got.body.extend_from_slice(piece),
            Ok(None) => return Ok(got),
            Ok(Some(_)) | Err(_) => {
                got.cut = true;
                return Ok(got);
            }
        }
    }
}
