//! Functions of `core` about addresses and the parts of a text.

use std::net::{IpAddr, Ipv4Addr};

use mlua::Value;

use crate::value::{Args, Bound, Outcome, give, inner};

/// The functions.
pub const BOUND: &[Bound] =
    &[("core.parse_addr", 0, parse_addr), ("core.match_addr", 0, match_addr), ("core.tokenize", 0, tokenize)];

/// An address with its prefix, as scripts hold it.
#[derive(Clone, Copy)]
struct Network(IpAddr, u8);

impl mlua::UserData for Network {}

/// An address of version 4 with fewer than four numbers: the last one fills what is left.
fn short(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let (last, first) = parts.split_last().filter(|(_, first)| first.len() < 4)?;
    let left = 8 * u32::try_from(4 - first.len()).ok()?;
    let mut all: u32 = 0;
    for part in first {
        all = all << 8 | u32::from(u8::try_from(*part).ok()?);
    }
    let fits = left == 32 || *last < 1 << left;
    fits.then(|| Ipv4Addr::from(all.checked_shl(left).unwrap_or(0) | last))
}

fn network(text: &str) -> Option<Network> {
    let (addr, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let addr = match addr.parse::<IpAddr>() {
        Ok(addr) => addr,
        Err(_) if addr == "localhost" => Ipv4Addr::LOCALHOST.into(),
        Err(_) => short(addr)?.into(),
    };
    let most = if addr.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => most,
        Some(bits) => match bits.parse::<Ipv4Addr>() {
            Ok(mask) if addr.is_ipv4() => u8::try_from(u32::from(mask).leading_ones()).ok()?,
            _ => bits.parse::<u8>().ok().filter(|b| *b <= most)?,
        },
    };
    Some(Network(addr, bits))
}

fn parse_addr(args: &mut Args<'_>) -> Outcome {
    let text = args.text(1)?;
    match network(&text) {
        Some(found) => give(args.lua(), inner(args.lua().create_userdata(found))?),
        None => give(args.lua(), Value::Nil),
    }
}

/// Each address is cut by the mask of the other. What is no address matches nothing.
fn match_addr(args: &mut Args<'_>) -> Outcome {
    let held = |n: usize| args.get(n).as_userdata()?.borrow::<Network>().map(|n| *n).ok();
    let same = match (held(1), held(2)) {
        (Some(Network(IpAddr::V4(a), x)), Some(Network(IpAddr::V4(b), y))) => {
            let mask = |bits: u8| u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            u32::from(a) & mask(y) == u32::from(b) & mask(x)
        }
        (Some(Network(IpAddr::V6(a), x)), Some(Network(IpAddr::V6(b), y))) => {
            let mask = |bits: u8| u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            u128::from(a) & mask(y) == u128::from(b) & mask(x)
        }
        _ => false,
    };
    give(args.lua(), same)
}

fn tokenize(args: &mut Args<'_>) -> Outcome {
    let (text, separators) = (args.bytes(1)?, args.bytes(2)?);
    let blanks = match args.get(3) {
        _ if args.len() != 3 => true,
        Value::Boolean(drop) => !drop,
        _ => return Err(args.bad(3, "boolean expected")),
    };
    let parts = text.split(|c| separators.contains(c)).filter(|part| blanks || !part.is_empty());
    let parts = parts.map(|part| args.lua().create_string(part)).collect::<mlua::Result<Vec<_>>>();
    let table = inner(args.lua().create_sequence_from(inner(parts)?))?;
    give(args.lua(), table)
}
