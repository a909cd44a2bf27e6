//! What flows through a filter of a script, and the classes `Channel` and `HTTPMessage` that show it.
//!
//! Positions count from the beginning of what came in and has not gone on; negative ones from its end.

use lang::env::Side;
use mlua::Value;

use crate::host;
use crate::shown::{Flowing, Length};
use crate::value::{Args, Bound, Outcome, give, inner};

/// Functions of both classes, and of `filter`.
pub const BOUND: &[Bound] = &[
    ("msg.input", 1, input),
    ("msg.output", 1, output),
    ("msg.may_recv", 1, may_recv),
    ("msg.is_full", 1, is_full),
    ("msg.is_resp", 1, is_resp),
    ("msg.eom", 1, eom),
    ("msg.set_eom", 1, |a| put_eom(a, true)),
    ("msg.unset_eom", 1, |a| put_eom(a, false)),
    ("msg.body", 1, data),
    ("msg.append", 1, append),
    ("msg.prepend", 1, prepend),
    ("msg.insert", 1, insert),
    ("msg.set", 1, set),
    ("msg.remove", 1, remove),
    ("msg.send", 1, send),
    ("msg.forward", 1, forward),
    ("msg.get_stline", 1, stline),
    ("msg.set_body_len", 1, set_body_len),
    ("channel.input", 1, input),
    ("channel.output", 1, output),
    ("channel.get_in_len", 1, input),
    ("channel.get_out_len", 1, output),
    ("channel.may_recv", 1, may_recv),
    ("channel.is_full", 1, is_full),
    ("channel.is_resp", 1, is_resp),
    ("channel.data", 1, |a| bytes(a).and_then(|()| data(a))),
    ("channel.dup", 1, |a| bytes(a).and_then(|()| data(a))),
    ("channel.line", 1, |a| bytes(a).and_then(|()| line(a, false))),
    ("channel.getline", 1, |a| bytes(a).and_then(|()| line(a, true))),
    ("channel.get", 1, |a| bytes(a).and_then(|()| get(a))),
    ("channel.append", 1, |a| bytes(a).and_then(|()| append(a))),
    ("channel.prepend", 1, |a| bytes(a).and_then(|()| prepend(a))),
    ("channel.insert", 1, |a| bytes(a).and_then(|()| insert(a))),
    ("channel.set", 1, |a| bytes(a).and_then(|()| set(a))),
    ("channel.remove", 1, |a| bytes(a).and_then(|()| remove(a))),
    ("channel.send", 1, |a| bytes(a).and_then(|()| send(a))),
    ("channel.forward", 1, |a| bytes(a).and_then(|()| forward(a))),
    ("filter.register_data_filter", 0, |a| listen(a, true)),
    ("filter.unregister_data_filter", 0, |a| listen(a, false)),
];

/// The direction of the object that a method was called on.
fn side(args: &Args<'_>) -> Result<Side, String> {
    let own = args.object()?;
    let response: bool = own.raw_get("res").unwrap_or(false);
    Ok(if response { Side::Response } else { Side::Request })
}

/// Bytes of a channel are not shown where they are a message of HTTP.
fn bytes(args: &Args<'_>) -> Result<(), String> {
    let id: u64 = args.own()?;
    let http = host::env(id, |env| env.txn.has_req || env.txn.has_res);
    match http {
        Some(true) => Err("Cannot manipulate HAProxy channels in HTTP mode.".into()),
        _ => Ok(()),
    }
}

/// Looks at the data at hand: those that flow through a filter, else a copy of what waits.
fn look<R>(args: &Args<'_>, look: impl FnOnce(&mut Flowing) -> R) -> Result<R, String> {
    let (id, side) = (args.own::<u64>()?, side(args)?);
    let mut look = Some(look);
    let shown =
        host::flowing(
            id,
            |flowing| {
                if flowing.side == side { look.take().map(|look| look(flowing)) } else { None }
            },
        );
    if let Some(found) = shown.flatten() {
        return Ok(found);
    }
    let waits = host::env(id, |env| {
        let payload = env.live.payload(side);
        let held = if host::wishes(id, |_| ()).is_some() { Vec::new() } else { payload.data.to_vec() };
        Flowing {
            side,
            held,
            out: Vec::new(),
            most: rt::bufsize(),
            over: payload.complete,
            eom: payload.complete,
            http: env.txn.has_req,
        }
    });
    let (Some(mut waits), Some(look)) = (waits, look) else { return Err(crate::txn::away("channel")) };
    Ok(look(&mut waits))
}

/// Changes the data that flow through a filter.
fn change<R>(args: &Args<'_>, change: impl FnOnce(&mut Flowing) -> R) -> Result<R, String> {
    let (id, side) = (args.own::<u64>()?, side(args)?);
    let done = host::flowing(id, |flowing| (flowing.side == side).then(|| change(flowing)));
    done.flatten().ok_or_else(|| "data can be changed by filters only, while they are shown them".to_owned())
}

fn number(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A place in so many bytes.
fn place(args: &Args<'_>, n: usize, length: usize) -> Result<usize, String> {
    let offset = args.int_or(n, 0)?;
    let from = if offset < 0 { number(length).saturating_add(offset) } else { offset };
    usize::try_from(from).ok().filter(|at| *at <= length).ok_or_else(|| "offset out of range.".to_owned())
}

/// A place and how much behind it; `all` where more is asked for than there is, or an error.
fn part(args: &Args<'_>, n: usize, length: usize, strict: bool) -> Result<(usize, usize), String> {
    let at = place(args, n, length)?;
    let rest = length.saturating_sub(at);
    if args.get(n + 1).is_nil() {
        return Ok((at, rest));
    }
    let wanted = args.int(n + 1)?;
    match usize::try_from(wanted) {
        Ok(wanted) if wanted <= rest || !strict => Ok((at, wanted.min(rest))),
        Err(_) if wanted == -1 && !strict => Ok((at, rest)),
        _ => Err("length out of range.".into()),
    }
}

fn input(args: &mut Args<'_>) -> Outcome {
    let n = look(args, |flowing| flowing.held.len())?;
    give(args.lua(), number(n))
}

fn output(args: &mut Args<'_>) -> Outcome {
    let n = look(args, |flowing| flowing.out.len())?;
    give(args.lua(), number(n))
}

fn may_recv(args: &mut Args<'_>) -> Outcome {
    let may = look(args, |flowing| flowing.http || !flowing.over)?;
    give(args.lua(), may)
}

fn is_full(args: &mut Args<'_>) -> Outcome {
    let full = look(args, |flowing| !flowing.has_room(1))?;
    give(args.lua(), full)
}

fn is_resp(args: &mut Args<'_>) -> Outcome {
    let response = side(args)? == Side::Response;
    give(args.lua(), response)
}

fn eom(args: &mut Args<'_>) -> Outcome {
    let eom = look(args, |flowing| flowing.eom)?;
    give(args.lua(), eom)
}

fn put_eom(args: &mut Args<'_>, eom: bool) -> Outcome {
    change(args, |flowing| flowing.eom = eom)?;
    give(args.lua(), ())
}

/// A part of what is held; nil where there is nothing and nothing more will come.
fn data(args: &mut Args<'_>) -> Outcome {
    let found = look(args, |flowing| {
        let (at, n) = part(args, 1, flowing.held.len(), false)?;
        let data = flowing.held.get(at..at + n).unwrap_or_default();
        Ok::<_, String>((!data.is_empty() || !flowing.over).then(|| data.to_vec()))
    })?;
    text(args, found?)
}

fn text(args: &Args<'_>, found: Option<Vec<u8>>) -> Outcome {
    match found {
        Some(data) => give(args.lua(), inner(args.lua().create_string(data))?),
        None => give(args.lua(), Value::Nil),
    }
}

fn line(args: &mut Args<'_>, take: bool) -> Outcome {
    let read = |flowing: &mut Flowing| {
        let (at, n) = part(args, 1, flowing.held.len(), false)?;
        let data = flowing.held.get(at..at + n).unwrap_or_default();
        let end = data.iter().position(|c| *c == b'\n').map_or(data.len(), |end| end + 1);
        let line = data.get(..end).unwrap_or_default().to_vec();
        if take {
            flowing.held.drain(at..at + end);
        }
        Ok::<_, String>((!line.is_empty() || !flowing.over).then_some(line))
    };
    let found = if take { change(args, read)? } else { look(args, read)? };
    text(args, found?)
}

fn get(args: &mut Args<'_>) -> Outcome {
    let found = change(args, |flowing| {
        let data = std::mem::take(&mut flowing.held);
        (!data.is_empty() || !flowing.over).then_some(data)
    })?;
    text(args, found)
}

/// Puts bytes in place of others; how many, or -1 where there is no room.
fn splice(
    args: &Args<'_>,
    bytes: Vec<u8>,
    at: impl FnOnce(&Flowing) -> Result<(usize, usize), String>,
) -> Outcome {
    let put = change(args, |flowing| {
        let (at, n) = at(flowing)?;
        if !flowing.has_room(bytes.len().saturating_sub(n)) {
            return Ok(-1);
        }
        let length = number(bytes.len());
        flowing.held.splice(at..at + n, bytes);
        Ok::<_, String>(length)
    })?;
    give(args.lua(), put?)
}

fn append(args: &mut Args<'_>) -> Outcome {
    args.want(1, 1)?;
    splice(args, args.bytes(1)?, |flowing| Ok((flowing.held.len(), 0)))
}

fn prepend(args: &mut Args<'_>) -> Outcome {
    args.want(1, 1)?;
    splice(args, args.bytes(1)?, |_| Ok((0, 0)))
}

fn insert(args: &mut Args<'_>) -> Outcome {
    args.want(1, 2)?;
    splice(args, args.bytes(1)?, |flowing| Ok((place(args, 2, flowing.held.len())?, 0)))
}

fn set(args: &mut Args<'_>) -> Outcome {
    args.want(1, 3)?;
    splice(args, args.bytes(1)?, |flowing| part(args, 2, flowing.held.len(), true))
}

fn remove(args: &mut Args<'_>) -> Outcome {
    args.want(0, 2)?;
    let gone = change(args, |flowing| {
        let (at, n) = part(args, 1, flowing.held.len(), true)?;
        flowing.held.drain(at..at + n);
        Ok::<_, String>(number(n))
    })?;
    give(args.lua(), gone?)
}

fn send(args: &mut Args<'_>) -> Outcome {
    args.want(1, 1)?;
    let bytes = args.bytes(1)?;
    let sent = change(args, |flowing| {
        if !flowing.has_room(bytes.len()) {
            return -1;
        }
        flowing.out.extend_from_slice(&bytes);
        number(bytes.len())
    })?;
    give(args.lua(), sent)
}

fn forward(args: &mut Args<'_>) -> Outcome {
    args.want(1, 1)?;
    let wanted = usize::try_from(args.int(1)?).unwrap_or(0);
    let n = change(args, |flowing| flowing.forward(wanted))?;
    give(args.lua(), number(n))
}

/// The first line of a head as a table.
fn stline(args: &mut Args<'_>) -> Outcome {
    let (id, side, lua) = (args.own::<u64>()?, side(args)?, args.lua());
    let made = host::env(id, |env| {
        let Some(head) = env.head(side) else { return Ok(None) };
        let table = lua.create_table()?;
        let put = |name: &str, value: &[u8]| table.raw_set(name, lua.create_string(value)?);
        match side {
            Side::Request => {
                put("method", head.method())?;
                put("uri", head.target())?;
                put("version", head.version_read())?;
            }
            Side::Response => {
                put("version", head.version_read())?;
                put("code", head.status().to_string().as_bytes())?;
                put("reason", head.reason())?;
            }
        }
        Ok(Some(table))
    });
    match inner(made.unwrap_or(Ok(None)))? {
        Some(table) => give(lua, table),
        None => give(lua, Value::Nil),
    }
}

fn set_body_len(args: &mut Args<'_>) -> Outcome {
    if args.len() != 1 {
        return Err("'set_body_len' needs 2 arguments".into());
    }
    let length = match args.get(1) {
        Value::String(s) if *s.as_bytes() == *b"chunked" => Some(Length::Open),
        Value::Integer(n) => u64::try_from(*n).ok().map(Length::Known),
        _ => None,
    };
    let length = length.ok_or(
        "The 'set_body_len' function expects a positive integer or the string 'chunked' as argument.",
    )?;
    let (id, side) = (args.own::<u64>()?, side(args)?);
    let framed = host::exec(id, |exec| {
        if exec.side != side {
            return false;
        }
        let head = exec.head();
        head.remove_all(b"content-length");
        head.remove_all(b"transfer-encoding");
        match length {
            Length::Known(n) => head.append(b"content-length", n.to_string().as_bytes()).is_ok(),
            _ => head.append(b"transfer-encoding", b"chunked").is_ok(),
        }
    });
    let framed = framed.unwrap_or(false) && host::wishes(id, |wishes| wishes.frame(side, length)).is_some();
    give(args.lua(), framed)
}

/// Whether the data of a channel are shown to the filter: the channel is the last argument.
fn listen(args: &mut Args<'_>, on: bool) -> Outcome {
    let channel = args.table(args.len().max(1))?;
    let id: u64 = channel.raw_get(0).map_err(|_| args.bad(args.len().max(1), "no channel"))?;
    let response: bool = channel.raw_get("res").unwrap_or(false);
    let side = if response { Side::Response } else { Side::Request };
    host::wishes(id, |wishes| wishes.listen(side, on)).ok_or("this function is for filters only")?;
    give(args.lua(), ())
}
