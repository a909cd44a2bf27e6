//! FastCGI towards servers: one task owns a connection, requests are its streams (manual, section 10).
//!
//! It is the same arrangement as HTTP/2's ([`crate::h2`]): whoever wants to send a request has a stream
//! inside the worker, through which bodies and the response go in the form of HTTP/1; the head goes beside
//! it, with the parameters that it makes. Nothing in FastCGI holds a sender back for one request alone, so
//! while a user does not take what came for it the whole connection is not read.
//!
//! | file | holds |
//! |---|---|
//! | `params` | what a request says as parameters |
//! | `answer` | the head of a response in the form of CGI |
//! | `serving`, `route` | a connection as its task has it, one of its streams |
//! | `traced` | the points of traces |

mod answer;
mod params;
mod route;
mod serving;
mod traced;

pub use params::{Facts, params};
pub use serving::{Errors, Setup, start};
