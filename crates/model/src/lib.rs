//! Floor 2: state that lives longer than the code that looks at it.
//!
//! Two kinds stand here side by side because both are plain data that every higher floor reads:
//!
//! * what changes at run time and must survive a new configuration: proxies ([`Proxy`]), servers
//!   ([`Server`]), counters, variables of the process. It is reached through [`World`] by its
//!   identity (a name), never by an index of one `Program`;
//! * the facts of one client connection ([`Conn`]) and of one transaction ([`Txn`]): what was
//!   received, when, from whom, where it went and how it ended. The engine fills them, the rule
//!   language reads and edits them, the log line is made of them.
//!
//! Nothing here does I/O, and nothing here knows what configuration text looks like.
#![forbid(unsafe_code)]

pub mod account;
pub mod adoption;
pub mod bandwidth;
pub mod cached;
pub mod check;
pub mod compression;
pub mod configured;
pub mod conn;
pub mod counter;
pub mod events;
pub mod figures;
pub mod mail;
pub mod mirror;
pub mod names;
pub mod offers;
pub mod origin;
pub mod peer;
pub mod peers;
pub mod proxy;
pub mod secured;
pub mod server;
pub mod server_conns;
pub mod term;
pub mod trace;
pub mod txn;
pub mod vars;
pub mod world;

pub use adoption::Adoption;
pub use conn::Conn;
pub use counter::{Counter, Sharded};
pub use origin::Origin;
pub use peer::Peer;
pub use proxy::Proxy;
pub use server::Server;
pub use term::Term;
pub use txn::Txn;
pub use world::World;
