//! HTTP authentication: what the client sent, and user lists (section 7.3.6 and `userlist`).

use std::sync::Arc;

use wire::head::Known;

use crate::arg::{Arg, arg};
use crate::codec::same;
pub use crate::crypt::Hashed;
use crate::entry::FetchDef;
use crate::env::{Env, Side};
use crate::places::REQUEST;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

use super::text;

pub(super) const FETCHES: &[FetchDef] = &[
    FetchDef::new(
        "http_auth",
        Type::Bool,
        REQUEST,
        http_auth,
        "Whether user and password are in the user list.",
    )
    .args("user list", "http_auth(users)"),
    FetchDef::new("http_auth_bearer", Type::Str, REQUEST, bearer, "The token of a Bearer authorization.")
        .args("[string]", "http_auth_bearer(x-token)"),
    FetchDef::new(
        "http_auth_group",
        Type::Str,
        REQUEST,
        group,
        "The user, if its password is right; ACLs compare its groups.",
    )
    .args("user list", "http_auth_group(users)")
    .patterns(known_groups)
    .each(each_group),
    FetchDef::new(
        "http_auth_pass",
        Type::Str,
        REQUEST,
        |e, _| text(Some(basic(e)?.1)),
        "The password of a Basic authorization.",
    ),
    FetchDef::new("http_auth_type", Type::Str, REQUEST, |e, _| kind(e), "The scheme of the authorization."),
    FetchDef::new(
        "http_auth_user",
        Type::Str,
        REQUEST,
        |e, _| text(Some(basic(e)?.0)),
        "The user of a Basic authorization.",
    ),
];

/// A password as the configuration states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// `insecure-password`.
    Plain(Box<[u8]>),
    /// `password`: hashed as crypt(3) does.
    Crypt(Hashed),
}

/// A user of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: Box<[u8]>,
    /// How it proves itself; without one nobody is this user.
    pub password: Option<Password>,
    /// Names of the groups it belongs to.
    pub groups: Box<[Box<[u8]>]>,
}

/// A `userlist` section. The resolver of names hands it out as an object of kind
/// [`crate::arg::Kind::Userlist`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Userlist {
    /// Name of the section.
    pub name: Box<str>,
    /// Its users.
    pub users: Box<[User]>,
    /// Names of its groups, those without users too.
    pub groups: Box<[Box<[u8]>]>,
}

impl Password {
    /// Whether this is the password. May take as long as the hash was made to take.
    pub fn matches(&self, given: &[u8]) -> bool {
        match self {
            Password::Plain(p) => same(p, given),
            Password::Crypt(hash) => hash.matches(given),
        }
    }
}

impl Userlist {
    /// The user of this name and password.
    pub fn find(&self, name: &[u8], password: &[u8]) -> Option<&User> {
        let user = self.users.iter().find(|u| *u.name == *name)?;
        user.password.as_ref()?.matches(password).then_some(user)
    }

    /// The list behind an argument.
    pub(crate) fn of(arg: &Arg) -> Option<&Userlist> {
        match arg {
            Arg::Other(any) => {
                any.downcast_ref::<Userlist>().or_else(|| any.downcast_ref::<Arc<Userlist>>().map(|a| &**a))
            }
            _ => None,
        }
    }
}

/// Scheme and the rest of a field's value.
fn scheme(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = value.iter().position(|c| *c == b' ')?;
    let (scheme, rest) = value.split_at(end);
    let blanks = rest.iter().take_while(|c| **c == b' ').count();
    Some((scheme, &rest[blanks..]))
}

/// The credentials, in the field of servers or of proxies (RFC 9110 section 11.7).
fn authorization<'a>(env: &Env<'a>) -> Result<(&'a [u8], &'a [u8]), Miss> {
    let head = env.head(Side::Request).ok_or(Miss::None)?;
    let name = if env.txn.for_proxy { Known::ProxyAuthorization } else { Known::Authorization };
    head.first(name).and_then(scheme).ok_or(Miss::None)
}

/// The scheme of credentials that can be read.
fn kind<'a>(env: &Env<'a>) -> Found<'a> {
    if authorization(env)?.0.eq_ignore_ascii_case(b"Bearer") {
        return Ok(Value::Str(b"Bearer"));
    }
    basic(env).map(|_| Value::Str(b"Basic"))
}

/// User and password.
fn basic<'a>(env: &Env<'a>) -> Result<(&'a [u8], &'a [u8]), Miss> {
    let (scheme, code) = authorization(env)?;
    if !scheme.eq_ignore_ascii_case(b"Basic") {
        return Err(Miss::None);
    }
    let mut plain = bumpalo::collections::Vec::new_in(env.arena);
    base::base64::decode_to(code, false, &mut |c| plain.push(c)).ok_or(Miss::None)?;
    let plain = plain.into_bump_slice();
    let colon = plain.iter().position(|c| *c == b':').ok_or(Miss::None)?;
    Ok((&plain[..colon], &plain[colon + 1..]))
}

fn user<'a>(env: &Env<'a>, args: &'a [Arg]) -> Result<&'a User, Miss> {
    let (name, password) = basic(env)?;
    Userlist::of(arg(args, 0)).and_then(|list| list.find(name, password)).ok_or(Miss::None)
}

/// Nothing where there is no name and password to be right or wrong.
fn http_auth<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    basic(env)?;
    Ok(Value::Bool(user(env, args).is_ok()))
}

fn group<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    Ok(Value::Str(&user(env, args)?.name))
}

/// A group that the list does not have is a mistake: nobody would ever be found in it.
fn known_groups(args: &[Arg], patterns: &[Box<[u8]>]) -> Result<(), Fault> {
    let Some(list) = args.first().and_then(Userlist::of) else { return Ok(()) };
    if patterns.is_empty() {
        return Err(Fault::new("http_auth_group(): no groups specified"));
    }
    match patterns.iter().find(|pattern| !list.groups.contains(pattern)) {
        Some(unknown) => {
            let name = String::from_utf8_lossy(unknown);
            Err(Fault::new(format!("http_auth_group(): invalid group '{name}'")))
        }
        None => Ok(()),
    }
}

fn each_group<'a>(env: &Env<'a>, args: &'a [Arg], seen: &mut dyn FnMut(Value<'a>) -> bool) -> Found<'a> {
    user(env, args)?.groups.iter().any(|group| seen(Value::Str(group)));
    Err(Miss::None)
}

fn bearer<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let value = match arg(args, 0).bytes().filter(|n| !n.is_empty()) {
        Some(name) => {
            env.head(Side::Request).and_then(|h| h.first(name)).and_then(scheme).ok_or(Miss::None)?
        }
        None => authorization(env)?,
    };
    if !value.0.eq_ignore_ascii_case(b"Bearer") {
        return Err(Miss::None);
    }
    Ok(Value::Str(value.1))
}
