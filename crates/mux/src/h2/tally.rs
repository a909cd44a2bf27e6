//! What HTTP/2 counts for the statistics.

use model::proxy::H2Counters;
use wire::h2::Connection;

/// Adds what a connection counted since the last call.
pub fn count(connection: &mut Connection, counters: &H2Counters) {
    let tally = connection.take_tally();
    for (counter, more) in [
        (&counters.headers, tally.headers),
        (&counters.data, tally.data),
        (&counters.settings, tally.settings),
        (&counters.resets, tally.resets),
        (&counters.goaways, tally.goaways),
        (&counters.connection_errors, tally.connection_errors),
        (&counters.stream_errors, tally.stream_errors),
        (&counters.resets_sent, tally.resets_sent),
        (&counters.goaways_sent, tally.goaways_sent),
    ] {
        if more > 0 {
            counter.add(more.into());
        }
    }
}
