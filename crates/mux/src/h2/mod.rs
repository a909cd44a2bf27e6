//! HTTP/2: one task owns a connection, each of its streams is served as a connection of its own.
//!
//! Towards clients the connection's task reads frames and yields each request as an [`Arrival`] to its
//! [`Host`], which serves it exactly as one of HTTP/1 is served. Towards servers
//! whoever wants to send a request gets a stream of a connection ([`Call`](crate::Call)) where it would have
//! got a connection. In both cases what goes between the two tasks goes through a stream inside the worker
//! ([`rt::Socket::local`]): the head of a request is handed over as it is, bodies and responses in the form
//! of HTTP/1. So whatever can happen to a connection (it stalls, it breaks, it is reset) happens to a stream
//! in the same way, and no code above knows of two kinds.
//!
//! The task of a connection turns whenever its socket or one of the streams has something: first it takes in
//! what the peer sent, then it moves what the streams have, then all that came of it leaves in one write. It
//! stops reading, from the peer and from the streams, while more than [`HIGH`](crate::outbox::HIGH) bytes
//! wait to be sent.
//! Streams are looked at in a circle that each turn enters where the last one ran out of room, so that none
//! waits for ever.
//!
//! | file | holds |
//! |---|---|
//! | `client`, `line` | a connection of a client, one of its streams |
//! | `serving`, `route` | a connection to a server as its task has it, one of its streams |
//! | `roster` | what belongs to the streams, for as long as somebody has something to take |
//! | `frames` | a stream as what moves its bytes sees it |
//! | `limits`, `tally` | what `tune.h2` says; what is counted |
//! | `pulse` | whether the peer of an idle connection is there |

mod client;
mod frames;
mod limits;
mod line;
mod pulse;
mod roster;
mod route;
mod serving;
mod tally;
mod traced;

pub use client::{Preface, preface, serve};
pub use limits::{back as server_limits, front as client_limits};
pub use serving::start;

use crate::{Arrival, Host, Receipt, Settings};
