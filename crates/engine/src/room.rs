//! How much room a buffer has for a body. It shares it with its head, and `tune.maxrewrite` stays free for
//! what rules add: whoever sends on what they see of a message (to agents of SPOE, whose frames are as long
//! as a buffer) counts on head and body being no longer than that together.

use rt::Buf;
use wire::head::Head;
use wire::http1::Body;

/// What a buffer does not have for the body behind this head, as it came: in frames of HTTP/2 if
/// `multiplexed`. What a head takes there, and the mark of the end of chunks, was measured on HAProxy.
pub fn taken(head: &Head, body: Body, multiplexed: bool, maxrewrite: usize) -> usize {
    const MESSAGE: usize = 79;
    const FIELD: usize = 4;
    const END: usize = 8;
    const CHUNKED: usize = b"transfer-encoding: chunked\r\n".len() + FIELD;
    // The target is there with scheme and host.
    let target = if head.is_normalized() {
        head.target().len().saturating_sub(head.written_target().len())
    } else {
        0
    };
    let whole = maxrewrite + head.wire_len() + target + FIELD * head.len() + MESSAGE;
    match (body == Body::Chunked, multiplexed) {
        (false, _) => whole,
        (true, false) => whole + END,
        // Frames come without that field.
        (true, true) => whole.saturating_sub(CHUNKED),
    }
}

/// How much of a body rules see, and wait for.
pub fn of(buf: &Buf, taken: usize) -> usize {
    buf.capacity().saturating_sub(taken)
}
