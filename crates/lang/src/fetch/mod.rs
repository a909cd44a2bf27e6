//! Fetches by family.
//!
//! A file holds the functions of one family and the table that names them. What comes in variants (the
//! `_beg`, `_end`, ... of an ACL keyword; the old names of a fetch) is copied from one entry.

mod acls;
mod blocks;
mod body;
mod certificate;
mod cipher_names;
mod client;
mod constant;
mod cookies;
mod credentials;
mod distcc;
mod dump;
mod figures;
mod headers;
mod limits;
mod message;
mod parameters;
mod payload;
mod process;
mod profile;
mod proxies;
mod secrets;
mod secured;
mod server;
mod streams;
mod times;
mod tls_hello;

use crate::entry::{AclDef, FetchDef};
use crate::env::Env;
use crate::sample::{Found, Miss, Value};

pub use credentials::{Hashed, Password, User, Userlist};
pub(crate) use proxies::usable;

/// All tables of fetches.
pub const TABLES: &[&[FetchDef]] = &[
    blocks::FETCHES,
    body::FETCHES,
    certificate::FETCHES,
    client::FETCHES,
    constant::FETCHES,
    cookies::FETCHES,
    credentials::FETCHES,
    distcc::FETCHES,
    dump::FETCHES,
    figures::FETCHES,
    headers::FETCHES,
    limits::FETCHES,
    message::FETCHES,
    parameters::FETCHES,
    payload::FETCHES,
    process::FETCHES,
    profile::FETCHES,
    proxies::FETCHES,
    secrets::FETCHES,
    secured::FETCHES,
    server::FETCHES,
    streams::FETCHES,
    times::FETCHES,
    tls_hello::FETCHES,
];

/// ACL keywords that imply a match method.
pub const ACLS: &[AclDef] = acls::ACLS;

/// A string sample, if there is one.
fn text<'a>(bytes: Option<&'a [u8]>) -> Found<'a> {
    bytes.map(Value::Str).ok_or(Miss::None)
}

/// An integer sample.
fn int<'a>(n: impl TryInto<i64>) -> Found<'a> {
    Ok(Value::Int(n.try_into().unwrap_or(i64::MAX)))
}

/// Bytes put together in the arena.
fn joined<'a>(env: &Env<'a>, parts: &[&[u8]]) -> &'a [u8] {
    let mut all = bumpalo::collections::Vec::with_capacity_in(parts.iter().map(|p| p.len()).sum(), env.arena);
    parts.iter().for_each(|p| all.extend_from_slice(p));
    all.into_bump_slice()
}

/// The address of one end of a connection.
fn ip<'a>(peer: model::Peer) -> Found<'a> {
    peer.ip().map(Value::from).ok_or(Miss::None)
}

fn port<'a>(peer: model::Peer) -> Found<'a> {
    peer.port().filter(|p| *p != 0).map(|p| Value::Int(i64::from(p))).ok_or(Miss::None)
}
