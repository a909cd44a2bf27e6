//! Floor 3: the rule language.
//!
//! A *sample* is a typed value. A *fetch* takes one from the traffic, *converters* change it, an
//! *expression* ([`Expr`]) is a fetch with its converters, an *ACL* compares an expression with
//! patterns, a *condition* joins ACLs, an *action* does something, a *rule* is an action with a
//! condition. All of it is parsed and type-checked when the configuration is read, so that running a
//! rule follows function pointers and indices and never looks up a name.
//!
//! The crate knows no sockets and no clocks: what an expression may ask of the outside comes through
//! [`env::Live`], which the engine implements; what an action needs done comes back as
//! [`action::Need`]. So every rule can be tested without a network.
//!
//! Where things are, from the lowest floor up: `sample` (values and casts), `env` (what evaluation may look
//! at), `arg` (arguments and their signatures), `words` and `names` (parsing and name resolution), `entry`
//! (rows of the tables), `expr`, `cond`, `logfmt`, `action`, `registry` (entries by name), `rules`, `parse`
//! (the grammar); then the entries by family in `stick/`, `tag/`, `fetch/`, `conv/`, `act/`; `standard` puts
//! their tables together. Rows, expressions, conditions and names hold each other: that circle of five files
//! is the only one.
#![forbid(unsafe_code)]
// Checks of arguments share one signature; those that don't grow the list have it too.
#![allow(clippy::ptr_arg)]

pub mod act;
pub mod action;
mod aes;
pub mod arg;
pub mod arith;
pub mod bandwidth;
pub mod caching;
mod calendar;
pub mod codec;
pub mod compression;
pub mod cond;
pub mod conv;
mod crypt;
mod cursor;
pub mod dispatch;
pub mod dump;
pub mod entry;
pub mod env;
pub mod expr;
pub mod fcgi;
pub mod fetch;
pub mod filter;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod logfmt;
pub mod names;
pub mod parse;
mod pem;
pub mod places;
pub mod registry;
pub mod rules;
pub mod sample;
mod standard;
pub mod stick;
pub mod tag;
#[cfg(any(test, fuzzing))]
mod testing;
#[cfg(test)]
mod tests;
mod timers;
pub mod variables;
mod waits;
pub mod words;

pub use action::{Action, Flow, Need, Reply};
pub use arg::Arg;
pub use calendar::http_date_of;
pub use cond::{Acl, Condition};
pub use conv::certificate_error;
pub use env::{Env, Live};
pub use expr::Expr;
pub use logfmt::LogFormat;
pub use names::{Missing, Names};
pub use registry::Registry;
pub use rules::{Rule, RuleSet};
pub use sample::{Found, Miss, Type, Value};
pub use variables::write as set_variable;
pub use words::{Fault, Words};
