//! Financial Information eXchange (section 7.3.1, `fix_*`): tags and values between separators of 0x01.

use super::{bytes, some};
use crate::arg::{Arg, arg};
use crate::entry::ConvDef;
use crate::names::Names;
use crate::sample::{Miss, Type, Value};
use crate::words::Fault;

const SEPARATOR: u8 = 1;
const BEGIN_STRING: u64 = 8;
const BODY_LENGTH: u64 = 9;
const CHECK_SUM: u64 = 10;
const MSG_TYPE: u64 = 35;
/// The tags that have a name here.
const NAMES: &[(&str, u64)] = &[
    ("BeginString", BEGIN_STRING),
    ("BodyLength", BODY_LENGTH),
    ("CheckSum", CHECK_SUM),
    ("MsgType", MSG_TYPE),
    ("SenderCompID", 49),
    ("TargetCompID", 56),
];
const VERSIONS: &[&[u8]] = &[b"FIX.4.0", b"FIX.4.1", b"FIX.4.2", b"FIX.4.3", b"FIX.4.4", b"FIXT.1.1"];
/// `10=` and three digits and a separator.
const CHECK_SUM_LENGTH: usize = 7;

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "fix_is_valid",
        Type::Bin,
        Type::Bool,
        |_, v, _| validate(bytes(v)).map(Value::Bool),
        "Whether the bytes are a valid FIX message.",
        "req.payload(0,0),fix_is_valid",
    ),
    ConvDef::new(
        "fix_tag_value",
        Type::Bin,
        Type::Bin,
        |_, v, a| some(value(bytes(v), arg(a, 0).int_or(0) as u64).map(Value::Bin)),
        "The value of a tag of a FIX message, by number or name.",
        "req.payload(0,0),fix_tag_value(MsgType)",
    )
    .args("string")
    .check(check),
];

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let text = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    let named = NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(&text)).map(|(_, tag)| *tag);
    let tag = named.or_else(|| number(text.as_bytes()));
    let tag = tag.ok_or_else(|| Fault::new(format!("Unknown FIX tag name '{text}'")))?;
    args[0] = Arg::Int(i64::try_from(tag).unwrap_or(i64::MAX));
    Ok(())
}

/// A tag number: digits, not zero.
fn number(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|n| *n != 0)
}

/// One field: its tag, its value, and how long it is with its separator.
fn field(rest: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let end = rest.iter().position(|c| *c == SEPARATOR)?;
    let (whole, _) = rest.split_at_checked(end)?;
    let equals = whole.iter().position(|c| *c == b'=')?;
    Some((whole.get(..equals)?, whole.get(equals + 1..)?, end + 1))
}

fn value(message: &[u8], wanted: u64) -> Option<&[u8]> {
    let mut rest = message;
    while let Some((tag, value, length)) = field(rest) {
        if number(tag) == Some(wanted) {
            return Some(value);
        }
        rest = rest.get(length..)?;
    }
    None
}

/// Whether it is a message; no answer when it is not all there.
fn validate(message: &[u8]) -> Result<bool, Miss> {
    let mut rest = message;
    let mut body_end = usize::MAX;
    for place in 0.. {
        let Some((tag, value, length)) = field(rest) else { return cut(rest) };
        let at = message.len() - rest.len();
        let tag = number(tag).filter(|_| !value.is_empty());
        let fits = match (place, tag) {
            (_, None) => false,
            (0, Some(tag)) => tag == BEGIN_STRING && VERSIONS.contains(&value),
            (1, Some(tag)) => {
                let said = number(value).and_then(|n| usize::try_from(n).ok());
                body_end = said.and_then(|n| n.checked_add(at + length)).unwrap_or(0);
                tag == BODY_LENGTH && body_end > at
            }
            (2, Some(tag)) => tag == MSG_TYPE,
            (_, Some(CHECK_SUM)) => return Ok(checked(message, at, value, length, body_end)),
            _ => true,
        };
        if !fits {
            return Ok(false);
        }
        // The check sum stands right behind the body that was announced.
        if at + length > body_end {
            return Ok(false);
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(false)
}

/// What an unfinished field says: nothing yet, unless it can't become one.
fn cut(_: &[u8]) -> Result<bool, Miss> {
    Err(Miss::None)
}

fn checked(message: &[u8], at: usize, value: &[u8], length: usize, body_end: usize) -> bool {
    let sum = message.iter().take(at).fold(0u8, |sum, c| sum.wrapping_add(*c));
    let said = std::str::from_utf8(value).ok().and_then(|t| t.parse::<u8>().ok());
    at == body_end && length == CHECK_SUM_LENGTH && said == Some(sum)
}
