//! HTTP/2 (RFC 9113) without I/O: both roles of a connection, its streams, and its heads to and from
//! [`Head`].
//!
//! A [`Connection`] is fed what was received and says what it means, one [`Event`] at a time; whatever it has
//! to answer itself (acknowledgements, windows, resets) it appends to the output that the caller hands in,
//! and the caller's own commands append there too, so that all of a turn leaves in one write. It keeps no
//! body: received data is a slice of the input, and data to send stays with the caller until its turn. So a
//! connection without streams owns a table of field lines and little else.
//!
//! What a peer may cost is bounded. Memory: a list of fields by `Limits::list`, streams by `Limits::streams`,
//! bodies by the windows, answers by the input that they answer (the caller stops reading while its output is
//! long). Work: each byte is looked at once, each frame costs a look-up. And what is legal but of no use to
//! anybody (pings, settings, empty frames, streams opened and reset, windows opened by single bytes) is
//! weighed against what is useful: see `guard`. Violations are counted as glitches, as the manual has it.
//!
//! | file | holds |
//! |---|---|
//! | `frame`, `code`, `settings`, `flow` | the parts of the protocol, each alone |
//! | `intake`, `outlet` | header lists to heads and back |
//! | `streams` | the streams that live, and what is remembered of the others |
//! | `conn` | the connection and what can be asked of it |
//! | `receive`, `block` | frames in; header blocks in |
//! | `send` | commands out |
//! | `guard` | glitches and floods |

mod block;
mod code;
mod conn;
mod flow;
mod frame;
mod guard;
mod intake;
mod outlet;
mod receive;
mod send;
mod settings;
mod streams;

pub use code::{Code, Fatal};
pub use conn::{Connection, Event, Received};
pub use frame::{HEADER, PREFACE};
pub use guard::{Tally, parting};
pub use intake::Refusal;
pub use outlet::Outline;
pub use send::Unopened;
pub use settings::{Limits, Role, Settings};

#[cfg(doc)]
use crate::head::Head;

#[cfg(test)]
mod tests;
