//! `httpclient`: a request of the process's own, and what came of it (management guide, 9.3).

use std::pin::Pin;

use base::foreign;
use engine::inner::Fault;
use engine::inner::fetch::{self, Got};
use engine::inner::place::Place;
use program::listener::Level;
use wire::method::Method;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] =
    &[Command::later(&["httpclient"], "[--htx] <method> <URI>", "send a request", Level::Admin, run)
        .expert()];

/// What HAProxy's client knows; it sends none of them with a body.
const METHODS: &[&str] = &["OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"];

/// `httpclient <method> <URI>`.
fn run<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        if call.arg(0) == "--htx" {
            return Err("Messages have no such form here: ask without '--htx'.".into());
        }
        let (method, uri) = (call.arg(0), call.arg(1));
        if method.is_empty() || uri.is_empty() {
            return Err("Can't start the HTTP client: not enough parameters.".into());
        }
        let place = Place::parse(uri).filter(|_| METHODS.contains(&method));
        let place = place.ok_or("Can't start the HTTP client.")?;
        let worker = call.worker.clone();
        let got = fetch::fetch(&worker, Method::from_bytes(method.as_bytes()), method, &place).await;
        Ok(Reply::Dump(match got {
            Ok(got) => whole(&got),
            // A status of 0 says that the answer is none of the server's.
            Err(fault) => format!("HTTP/1.1 0 {}\ncontent-length: 0\r\n\r\n", reason(fault)),
        }))
    })
}

fn reason(fault: Fault) -> &'static str {
    match fault {
        Fault::Refused | Fault::ConnectTimeout | Fault::Insecure(_) => "Service Unavailable",
        Fault::Late | Fault::Stalled => "Gateway Time-out",
        Fault::Silent | Fault::Malformed | Fault::Cut => "Bad Gateway",
    }
}

fn whole(got: &Got) -> String {
    let [fields, body] = [&got.fields, &got.body].map(|bytes| foreign::text(bytes));
    format!("HTTP/1.1 {} {}\n{fields}\r\n{body}", got.status, got.reason)
}
