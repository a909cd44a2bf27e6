//! What breaks off counts, and for whom: at the backend, and at the server that the stream has a place at.

use model::counter::Counter;
use model::proxy::BackCounters;
use model::server::ServerCounters;

use crate::stream::Stream;

/// A client gave up what was being done for it (`cli_abrt`).
pub fn client_abort(stream: &Stream<'_>) {
    enter(stream, |back| &back.client_aborts, |server| &server.client_aborts);
}

/// A server gave up what it was doing (`srv_abrt`).
pub fn server_abort(stream: &Stream<'_>) {
    enter(stream, |back| &back.server_aborts, |server| &server.server_aborts);
}

/// A server connection broke in the midst of a response, or its response was none (`eresp`).
pub fn broken(stream: &Stream<'_>) {
    enter(stream, |back| &back.resp_errors, |server| &server.resp_errors);
}

/// A response is a failure for stick tables.
pub fn failure(stream: &Stream<'_>) {
    crate::tracking::response_failure(stream.client.conn(), &stream.txn);
}

/// A response was none, which stick tables learn as well.
pub fn response_failure(stream: &Stream<'_>) {
    failure(stream);
    broken(stream);
}

fn enter(
    stream: &Stream<'_>,
    of_back: fn(&BackCounters) -> &Counter,
    of_server: fn(&ServerCounters) -> &Counter,
) {
    let worker = stream.worker.index;
    of_back(stream.backend().state.back.counters.of(worker)).inc();
    if let Some(place) = &stream.place {
        of_server(place.config().state.counters.of(worker)).inc();
    }
}
