//! Converters by family.
//!
//! What a converter makes stands in the arena of the evaluation; [`Made`] builds it there.

mod checksum;
mod cipher;
mod encoding;
mod fix;
mod flow;
pub mod forwarded;
mod frames;
mod integer;
mod json;
pub mod jwe;
mod jwt;
mod list;
mod lookup;
mod mqtt;
mod protobuf;
mod proxies;
mod secret;
mod text;
mod time;
mod variable;
mod x509;

pub use x509::number as certificate_error;

pub use time::seconds_of;

use bumpalo::Bump;

use crate::arg::Arg;
use crate::entry::ConvDef;
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Value, parse_int};
use crate::words::Fault;

/// All tables of converters.
pub const TABLES: &[&[ConvDef]] = &[
    checksum::CONVERTERS,
    cipher::CONVERTERS,
    encoding::CONVERTERS,
    fix::CONVERTERS,
    flow::CONVERTERS,
    forwarded::CONVERTERS,
    frames::CONVERTERS,
    integer::CONVERTERS,
    json::CONVERTERS,
    jwe::CONVERTERS,
    jwt::CONVERTERS,
    list::CONVERTERS,
    lookup::CONVERTERS,
    mqtt::CONVERTERS,
    protobuf::CONVERTERS,
    proxies::CONVERTERS,
    text::CONVERTERS,
    time::CONVERTERS,
    variable::CONVERTERS,
    x509::CONVERTERS,
];

/// Bytes under construction in the arena.
type Made<'a> = bumpalo::collections::Vec<'a, u8>;

fn made(arena: &Bump) -> Made<'_> {
    Made::new_in(arena)
}

/// The bytes of a value that was cast to text or binary.
fn bytes(value: Value<'_>) -> &[u8] {
    match value {
        Value::Str(b) | Value::Bin(b) | Value::Method(b) => b,
        _ => &[],
    }
}

/// The integer of a value that was cast to one.
fn number(value: Value<'_>) -> i64 {
    value.int().unwrap_or(0)
}

fn some<'a>(value: Option<Value<'a>>) -> Found<'a> {
    value.ok_or(Miss::None)
}

/// Turns the string at `i` into an integer or a variable, one of which the manual asks for.
fn number_or_variable(args: &mut [Arg], i: usize, names: &mut dyn Names) -> Result<(), Fault> {
    let Some(text) = args.get(i).and_then(Arg::bytes).filter(|t| !t.is_empty()) else { return Ok(()) };
    // A sign alone is zero.
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let arg = if digits.iter().all(u8::is_ascii_digit) {
        Arg::Int(parse_int(text).unwrap_or(0))
    } else {
        let name = String::from_utf8_lossy(text);
        let var = crate::parse::variable(&name, names);
        Arg::Var(var.map_err(|_| Fault::new("expects an integer or a variable name"))?)
    };
    args[i] = arg;
    Ok(())
}

/// The value of what [`number_or_variable`] left.
fn operand(env: &Env<'_>, arg: &Arg) -> Option<i64> {
    match arg {
        Arg::Var(var) => crate::variables::read(env, *var)?.int(),
        Arg::Int(n) => Some(*n),
        _ => None,
    }
}

/// Turns the string at `i` into a variable.
fn variable_at(args: &mut [Arg], i: usize, names: &mut dyn Names) -> Result<(), Fault> {
    let Some(text) = args.get(i).and_then(Arg::bytes) else { return Ok(()) };
    if text.is_empty() {
        args[i] = Arg::None;
        return Ok(());
    }
    let name = String::from_utf8_lossy(text).into_owned();
    let var = crate::parse::variable(&name, names);
    args[i] = Arg::Var(var.map_err(|_| Fault::new(format!("failed to register variable name '{name}'")))?);
    Ok(())
}
