//! Log lines: when one is written, to whom, and the sinks that never make traffic wait.

use model::term::Cause;
use program::Program;

use crate::Worker;
use crate::session::Client;
use crate::stream::Stream;

/// A worker's sinks.
#[derive(Default)]
pub struct Sinks {}

impl Sinks {
    /// The sinks of all targets of a program.
    pub fn new(program: &Program, worker: usize) -> Sinks {
        let _ = (program, worker);
        Sinks {}
    }
}

/// Whether a stream deserves a line.
pub fn wanted(stream: &Stream<'_>) -> bool {
    let proxy = stream.frontend();
    let (txn, options) = (&stream.txn, &proxy.options);
    if txn.silent || proxy.log.targets.is_empty() || proxy.log.format.is_none() {
        return false;
    }
    if options.dontlognull && txn.null {
        return false;
    }
    !(options.dontlog_normal && txn.term.cause == Cause::Normal && txn.retries == 0 && txn.status < 500)
}

/// Writes the line of a stream.
pub fn write(stream: &mut Stream<'_>) {
    let _ = stream;
}

/// A line about the process or a proxy as a whole.
pub fn process_alert(worker: &Worker, proxy: u32, text: &str) {
    let _ = (worker, proxy, text);
}

/// A line about a connection that ended before it had a stream.
pub fn connection_error(client: &Client, text: &str) {
    let _ = (client, text);
}

/// Makes the unique id of a stream, unless it stands.
pub fn ensure_unique_id(stream: &mut Stream<'_>) {
    let Some(format) = stream.frontend().unique_id_format.clone() else { return };
    if stream.txn.unique_id.borrow().is_some() {
        return;
    }
    let id = stream.evaluate(lang::env::Side::Request, |env| {
        let mut out = Vec::new();
        format.append(env, lang::logfmt::Use::Value, &mut out);
        out
    });
    *stream.txn.unique_id.borrow_mut() = Some(id.into());
}
