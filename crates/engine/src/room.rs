//! How much room a buffer has for a body. It shares it with its head, and `tune.maxrewrite` stays free for
//! what rules add: whoever sends on what they see of a message (to agents of SPOE, whose frames are as long
//! as a buffer) counts on head and body being no longer than that together.

use rt::Buf;
use wire::head::{Head, Known};

/// What a buffer does not have for the body behind this head, as it came: what a head takes there was
/// measured on HAProxy. `framed`: it has been given the framing of HTTP/1, which its peer did not send.
pub fn taken(head: &Head, framed: bool, maxrewrite: usize) -> usize {
    const MESSAGE: usize = 64;
    const FIELD: usize = 8;
    const FRAMING: usize = b"transfer-encoding".len() + b"chunked".len() + FIELD;
    let whole = maxrewrite + head.counted_len() + FIELD * head.len() + MESSAGE;
    match framed {
        true => whole.saturating_sub(FRAMING),
        // Trailers may follow.
        false if head.has(Known::TransferEncoding) => whole + FIELD,
        false => whole,
    }
}

/// How much of a body rules see, and wait for.
pub fn of(buf: &Buf, taken: usize) -> usize {
    buf.capacity().saturating_sub(taken)
}
