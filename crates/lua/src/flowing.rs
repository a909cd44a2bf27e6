//! What flows through a filter of a script, and the classes `Channel` and `HTTPMessage` that show it.
//!
//! Positions count from the beginning of what came in and has not gone on; negative ones from its end.

use lang::env::Side;
use mlua::Value;

use crate::host;
use crate::shown::{Flowing, Length};
use crate::value::{Args, BARE, Bound, Outcome, give, inner};

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
    ("channel.dup", 1, |a| bytes(a).and_then(|()| dup(a))),
    ("channel.line", 1, |a| bytes(a).and_then(|()| line(a))),
    ("channel.getline", 1, |a| bytes(a).and_then(|()| getline(a))),
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
        Some(true) => Err(format!("{BARE}Cannot manipulate HAProxy channels in HTTP mode.")),
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
            waits: false,
            changed: false,
        }
    });
    let (Some(mut waits), Some(look)) = (waits, look) else { return Err(crate::txn::away("channel")) };
    Ok(look(&mut waits))
}

/// Changes the data that flow through a filter.
fn change<R>(args: &Args<'_>, change: impl FnOnce(&mut Flowing) -> R) -> Result<R, String> {
    let (id, side) = (args.own::<u64>()?, side(args)?);
    let done = host::flowing(id, |flowing| {
        let mine = flowing.side == side;
        flowing.changed |= mine;
        mine.then(|| change(flowing))
    });
    done.flatten().ok_or_else(|| "the data of this direction can't be changed here".to_owned())
}

fn number(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// What is said of a place or a length that is wrong stands without one in the script.
fn out_of_range(what: &str) -> String {
    format!("{BARE}{what} out of range.")
}

/// A place in so many bytes; `None`: it is behind them.
fn place(args: &Args<'_>, n: usize, length: usize) -> Result<Option<usize>, String> {
    let offset = args.int_or(n, 0)?;
    let from = if offset < 0 { number(length).saturating_add(offset).max(0) } else { offset };
    Ok(usize::try_from(from).ok().filter(|at| *at <= length))
}

/// A place and how much behind it, of data that are to be changed.
fn part(args: &Args<'_>, n: usize, length: usize) -> Result<(usize, usize), String> {
    let at = place(args, n, length)?.ok_or_else(|| out_of_range("offset"))?;
    let rest = length.saturating_sub(at);
    match args.int_or(n + 1, -1)? {
        -1 => Ok((at, rest)),
        wanted => match usize::try_from(wanted) {
            Ok(wanted) if wanted <= rest => Ok((at, wanted)),
            _ => Err(out_of_range("length")),
        },
    }
}

/// What a script looks at.
enum Seen<'f> {
    /// More has to come first.
    Waits,
    /// Nothing, and nothing more will come.
    Over,
    /// This.
    Data(&'f [u8]),
}

/// The part of the data that the arguments name: a place and a length, which `waits` for as much if it is
/// given.
fn seen<'f>(args: &Args<'_>, flowing: &'f Flowing) -> Result<Seen<'f>, String> {
    let length = args.int_or(2, -1)?;
    let wanted = usize::try_from(length).ok();
    if wanted.is_none() && length != -1 {
        return Err(out_of_range("length"));
    }
    let Some(at) = place(args, 1, flowing.held.len())? else { return Ok(Seen::Data(&[])) };
    let enough = wanted.map_or(usize::MAX, |wanted| at.saturating_add(wanted));
    if args.len() > 1 && flowing.lacks(enough) {
        return Ok(Seen::Waits);
    }
    if flowing.held.is_empty() && flowing.over {
        return Ok(Seen::Over);
    }
    let end = enough.min(flowing.held.len());
    Ok(Seen::Data(flowing.held.get(at..end).unwrap_or_default()))
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

/// What a look at data gives: they, or nil; and true where more has to come first.
fn told(args: &Args<'_>, found: Result<Option<Vec<u8>>, ()>) -> Outcome {
    match found {
        Ok(Some(data)) => give(args.lua(), inner(args.lua().create_string(data))?),
        Ok(None) => give(args.lua(), Value::Nil),
        Err(()) => give(args.lua(), (Value::Nil, true)),
    }
}

fn data(args: &mut Args<'_>) -> Outcome {
    let found = look(args, |flowing| {
        Ok::<_, String>(match seen(args, flowing)? {
            Seen::Waits => Err(()),
            Seen::Over => Ok(None),
            Seen::Data(data) => Ok(Some(data.to_vec())),
        })
    })?;
    told(args, found?)
}

/// All that waits.
fn dup(args: &mut Args<'_>) -> Outcome {
    let found =
        look(args, |flowing| (!flowing.held.is_empty() || !flowing.over).then(|| flowing.held.clone()))?;
    told(args, Ok(found))
}

fn line(args: &mut Args<'_>) -> Outcome {
    let found = look(args, |flowing| {
        // A line that is there needs no more.
        let at = place(args, 1, flowing.held.len())?.unwrap_or(flowing.held.len());
        let ends = flowing.held.get(at..).unwrap_or_default().contains(&b'\n');
        Ok::<_, String>(match seen(args, flowing)? {
            Seen::Waits if !ends => Err(()),
            Seen::Waits => Ok(Some(first_line(flowing.held.get(at..).unwrap_or_default()))),
            Seen::Over => Ok(None),
            Seen::Data(data) => Ok(Some(first_line(data))),
        })
    })?;
    told(args, found?)
}

/// The first line with its end, or all.
fn first_line(data: &[u8]) -> Vec<u8> {
    let end = data.iter().position(|c| *c == b'\n').map_or(data.len(), |end| end + 1);
    data.get(..end).unwrap_or_default().to_vec()
}

fn getline(args: &mut Args<'_>) -> Outcome {
    let found = change(args, |flowing| {
        let line = first_line(&flowing.held);
        if !line.ends_with(b"\n") && flowing.lacks(usize::MAX) {
            return Err(());
        }
        flowing.held.drain(..line.len());
        Ok((!line.is_empty() || !flowing.over).then_some(line))
    })?;
    told(args, found)
}

fn get(args: &mut Args<'_>) -> Outcome {
    let found = change(args, |flowing| {
        let data = std::mem::take(&mut flowing.held);
        (!data.is_empty() || !flowing.over).then_some(data)
    })?;
    told(args, Ok(found))
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
    splice(args, args.bytes(1)?, |flowing| Ok((flowing.held.len(), 0)))
}

fn prepend(args: &mut Args<'_>) -> Outcome {
    splice(args, args.bytes(1)?, |_| Ok((0, 0)))
}

fn insert(args: &mut Args<'_>) -> Outcome {
    splice(args, args.bytes(1)?, |flowing| {
        Ok((place(args, 2, flowing.held.len())?.ok_or_else(|| out_of_range("offset"))?, 0))
    })
}

fn set(args: &mut Args<'_>) -> Outcome {
    splice(args, args.bytes(1)?, |flowing| part(args, 2, flowing.held.len()))
}

fn remove(args: &mut Args<'_>) -> Outcome {
    let gone = change(args, |flowing| {
        let (at, n) = part(args, 1, flowing.held.len())?;
        flowing.held.drain(at..at + n);
        Ok::<_, String>(number(n))
    })?;
    give(args.lua(), gone?)
}

fn send(args: &mut Args<'_>) -> Outcome {
    let bytes = args.bytes(1)?;
    let sent = change(args, |flowing| {
        // An action lets go of what fits.
        let room = flowing.most.saturating_sub(flowing.held.len() + flowing.out.len());
        let fits = if flowing.waits { bytes.len().min(room) } else { bytes.len() };
        if !flowing.has_room(fits) {
            return -1;
        }
        flowing.out.extend_from_slice(bytes.get(..fits).unwrap_or_default());
        number(fits)
    })?;
    give(args.lua(), sent)
}

fn forward(args: &mut Args<'_>) -> Outcome {
    let wanted = usize::try_from(args.int(1)?).unwrap_or(0);
    let n =
        change(args, |flowing| if flowing.lacks(wanted) { Err(()) } else { Ok(flowing.forward(wanted)) })?;
    match n {
        Ok(n) => give(args.lua(), number(n)),
        Err(()) => give(args.lua(), (Value::Nil, true)),
    }
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
