//! How much room a buffer has for a body. It shares it with its head, and `tune.maxrewrite` stays free for
//! what rules add: whoever sends on what they see of a message (to agents of SPOE, whose frames are as long
//! as a buffer) counts on head and body being no longer than that together.

use rt::Buf;
use wire::head::Head;

/// What a buffer does not have for the body behind this head, as it came. What a head takes there was
/// measured on HAProxy.
pub fn taken(head: &Head, maxrewrite: usize) -> usize {
    const MESSAGE: usize = 80;
    const FIELD: usize = 4;
    maxrewrite + head.wire_len() + FIELD * head.len() + MESSAGE
}

/// How much of a body rules see, and wait for.
pub fn of(buf: &Buf, taken: usize) -> usize {
    buf.capacity().saturating_sub(taken)
}
