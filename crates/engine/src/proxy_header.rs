//! The PROXY header sent to servers (`send-proxy` and its family).

use program::server::SendProxy;

use crate::stream::Stream;

/// Stages the header before everything else that goes to the server.
pub fn stage(stream: &mut Stream<'_>, send: &SendProxy) {
    let _ = (stream, send);
}
