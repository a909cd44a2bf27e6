//! Converters that look at the traffic around their sample: captures, conditions, traces (section 7.3.1).

use std::sync::Arc;

use super::bytes;
use crate::arg::{Arg, arg};
use crate::cond::{Acl, Outcome};
use crate::entry::ConvDef;
use crate::env::{Env, Side};
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "capture-req",
        Type::Str,
        Type::Str,
        |e, v, a| capture(e, v, a, Side::Request),
        "Keeps the sample in a declared request capture and passes it on.",
        "path,capture-req(0)",
    )
    .args("integer")
    .volatile(),
    ConvDef::new(
        "capture-res",
        Type::Str,
        Type::Str,
        |e, v, a| capture(e, v, a, Side::Response),
        "Keeps the sample in a declared response capture and passes it on.",
        "path,capture-res(0)",
    )
    .args("integer")
    .volatile(),
    ConvDef::new(
        "debug",
        Type::Any,
        Type::Same,
        debug,
        "Shows the sample on stdout, stderr or in a ring, and passes it on.",
        "src,debug(client,stderr)",
    )
    .args("[string,string]")
    .volatile(),
    ConvDef::new(
        "fe_exists",
        Type::Str,
        Type::Bool,
        |e, v, _| Ok(Value::Bool(frontend_exists(e, bytes(v)))),
        "Whether there is a frontend of this name.",
        "str(fe),fe_exists",
    )
    .volatile(),
    ConvDef::new(
        "when",
        Type::Any,
        Type::Any,
        when,
        "Passes the sample on under a condition: error, normal, forwarded, processed, toapplet, stopping, acl.",
        "src,when(!stopping)",
    )
    .args("string[,string,string]")
    .check(check_when)
    .volatile(),
];

fn capture<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg], side: Side) -> Found<'a> {
    let slot = usize::try_from(arg(args, 0).int_or(-1)).map_err(|_| Miss::None)?;
    let length = env.live.capture_length(side, slot).ok_or(Miss::None)?;
    let text = bytes(value);
    let list = match side {
        Side::Request => &env.txn.req_captures,
        Side::Response => &env.txn.res_captures,
    };
    let mut list = list.borrow_mut();
    if list.len() <= slot {
        list.resize(slot + 1, None);
    }
    if let Some(place) = list.get_mut(slot) {
        *place = text.get(..text.len().min(length)).map(Box::from);
    }
    Ok(value)
}

fn debug<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let mut line = b"[debug] ".to_vec();
    line.extend_from_slice(arg(args, 0).bytes().unwrap_or_default());
    line.extend_from_slice(b": type=");
    line.extend_from_slice(value.kind().word().as_bytes());
    line.extend_from_slice(b" <");
    value.append_text(&mut line);
    line.extend_from_slice(b">\n");
    let sink = std::str::from_utf8(arg(args, 1).bytes().unwrap_or_default()).unwrap_or_default();
    env.live.trace(if sink.is_empty() { "buf0" } else { sink }, &line);
    Ok(value)
}

fn frontend_exists(env: &Env<'_>, name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|n| env.live.has_frontend(n))
}

/// What `when` asks.
enum Question {
    Error,
    Forwarded,
    Processed,
    Stopping,
    ToApplet,
    Acl(Arc<Acl>),
}

fn check_when(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let text = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    let (mut negated, word) = match text.strip_prefix('!') {
        Some(word) => (true, word),
        None => (false, text.as_str()),
    };
    let question = match word {
        "error" => Question::Error,
        "normal" => {
            negated = !negated;
            Question::Error
        }
        "forwarded" => Question::Forwarded,
        "processed" => Question::Processed,
        "stopping" => Question::Stopping,
        "toapplet" => Question::ToApplet,
        "acl" => Question::Acl(named_acl(arg(args, 1), names)?),
        other => {
            return Err(Fault::new(format!(
                "expects a supported keyword among {{stopping,normal,error,forwarded,toapplet,processed,acl}} but got '{other}'"
            )));
        }
    };
    *args = vec![Arg::Other(Arc::new(question)), Arg::Int(i64::from(negated))];
    Ok(())
}

fn named_acl(word: &Arg, names: &mut dyn Names) -> Result<Arc<Acl>, Fault> {
    let name = word.bytes().filter(|n| !n.is_empty());
    let name =
        name.ok_or_else(|| Fault::new("'acl' selector requires an extra argument with the ACL name"))?;
    let name = String::from_utf8_lossy(name).into_owned();
    names.acl(&name).map_err(|_| Fault::new(format!("ACL '{name}' not found")))
}

fn when<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let Arg::Other(any) = arg(args, 0) else { return Err(Miss::None) };
    let question = any.downcast_ref::<Question>().ok_or(Miss::None)?;
    let forwarded = || env.txn.times.connected.is_some();
    let holds = match question {
        Question::Error => env.txn.is_error(),
        Question::Forwarded => forwarded(),
        Question::Processed => forwarded() || env.txn.by_service.is_some(),
        Question::Stopping => env.live.world().process.is_to_stop(),
        Question::ToApplet => env.txn.by_service.is_some(),
        Question::Acl(acl) => acl.holds(env) == Outcome::Yes,
    };
    if holds != (arg(args, 1).int_or(0) != 0) { Ok(value) } else { Err(Miss::None) }
}
