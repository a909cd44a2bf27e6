//! The class `HTTP`: the heads of the request and the response.

use lang::act::{Part, expand, put_part};
use lang::action::Exec;
use lang::env::Side;
use mlua::{Table, Value};
use pattern::{Groups, Regex};
use wire::head::{Head, split_values};

use crate::host;
use crate::txn::away;
use crate::value::Bound;
use crate::value::{Args, Outcome, give, inner, nothing};

/// Functions of the class.
pub const BOUND: &[Bound] = &[
    ("http.req_get_headers", 1, |a| get_headers(a, Side::Request)),
    ("http.res_get_headers", 1, |a| get_headers(a, Side::Response)),
    ("http.req_add_header", 1, |a| add_header(a, Side::Request)),
    ("http.res_add_header", 1, |a| add_header(a, Side::Response)),
    ("http.req_del_header", 1, |a| del_header(a, Side::Request)),
    ("http.res_del_header", 1, |a| del_header(a, Side::Response)),
    ("http.req_set_header", 1, |a| set_header(a, Side::Request)),
    ("http.res_set_header", 1, |a| set_header(a, Side::Response)),
    ("http.req_rep_header", 1, |a| replace(a, Side::Request, false)),
    ("http.res_rep_header", 1, |a| replace(a, Side::Response, false)),
    ("http.req_rep_value", 1, |a| replace(a, Side::Request, true)),
    ("http.res_rep_value", 1, |a| replace(a, Side::Response, true)),
    ("http.req_set_method", 1, set_method),
    ("http.req_set_path", 1, |a| set_part(a, Part::Path)),
    ("http.req_set_query", 1, |a| set_part(a, Part::Query)),
    ("http.req_set_uri", 1, |a| set_part(a, Part::Target)),
    ("http.res_set_status", 1, set_status),
];

/// The fields of a head as scripts see them: lists by name, which begin at 0.
pub fn fields<'f>(
    lua: &mlua::Lua,
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
) -> mlua::Result<Table> {
    let all = lua.create_table()?;
    for (name, value) in fields {
        let name = lua.create_string(name.to_ascii_lowercase())?;
        let list = match all.raw_get::<Option<Table>>(name.clone())? {
            Some(list) => list,
            None => {
                let list = lua.create_table()?;
                all.raw_set(name, list.clone())?;
                list
            }
        };
        let next = if list.contains_key(0)? { list.raw_len() + 1 } else { 0 };
        list.raw_set(next, lua.create_string(value)?)?;
    }
    Ok(all)
}

/// Names and values of a head.
pub fn pairs(head: &Head) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.fields().map(|(_, name, value)| (name, value))
}

fn get_headers(args: &mut Args<'_>, side: Side) -> Outcome {
    if args.len() > 0 {
        let told = told(args, side, ["req_get_headers", "res_get_headers", "get_headers"]);
        return Err(format!("'{told}' needs 1 arguments"));
    }
    let id: u64 = args.own()?;
    let lua = args.lua();
    let table = host::env(id, |env| env.head(side).map(|head| fields(lua, pairs(head))));
    match table.ok_or_else(|| away("get_headers"))? {
        Some(table) => give(lua, inner(table)?),
        None => give(lua, Value::Nil),
    }
}

/// Changes the head of the direction that the rules at hand are about; another can't be changed any more.
fn edit(args: &Args<'_>, side: Side, change: impl FnOnce(&mut Exec<'_>) -> bool) -> Outcome {
    let id: u64 = args.own()?;
    let done = host::exec(id, |exec| {
        if exec.side != side || !(if side == Side::Request { exec.txn.has_req } else { exec.txn.has_res }) {
            return None;
        }
        Some(change(exec))
    });
    done.flatten().ok_or("this function is not allowed in this context")?;
    nothing()
}

/// Whether it may stand in a head.
fn is_value(value: &[u8]) -> bool {
    !value.iter().any(|c| matches!(c, 0 | b'\r' | b'\n'))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|c| c.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(c))
}

fn pair(args: &Args<'_>, name: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    if args.len() != 2 {
        return Err(format!("'{name}' needs 3 arguments"));
    }
    let (name, value) = (args.bytes(1)?, args.bytes(2)?);
    if !is_name(&name) {
        return Err(args.bad(1, "not the name of a field"));
    }
    if !is_value(&value) {
        return Err(args.bad(2, "control characters in a value"));
    }
    Ok((name, value))
}

/// What messages call a function: as a method of `HTTP` in each direction, and of `HTTPMessage`.
fn told(args: &Args<'_>, side: Side, [request, response, of_message]: [&'static str; 3]) -> &'static str {
    let is_message = args.object().is_ok_and(|own| own.contains_key("channel").unwrap_or(false));
    match (is_message, side) {
        (true, _) => of_message,
        (false, Side::Request) => request,
        (false, Side::Response) => response,
    }
}

fn add_header(args: &mut Args<'_>, side: Side) -> Outcome {
    let told = told(args, side, ["req_add_hdr", "res_add_hdr", "add_header"]);
    let (name, value) = pair(args, told)?;
    edit(args, side, |exec| exec.head().append(&*name, &value).is_ok())
}

fn del_header(args: &mut Args<'_>, side: Side) -> Outcome {
    if args.len() != 1 {
        let told = told(args, side, ["req_del_hdr", "res_del_hdr", "del_header"]);
        return Err(format!("'{told}' needs 2 arguments"));
    }
    let name = args.bytes(1)?;
    edit(args, side, |exec| {
        exec.head().remove_all(&*name);
        true
    })
}

fn set_header(args: &mut Args<'_>, side: Side) -> Outcome {
    let told = told(args, side, ["req_set_hdr", "res_set_hdr", "set_header"]);
    let (name, value) = pair(args, told)?;
    edit(args, side, |exec| {
        exec.head().remove_all(&*name);
        exec.head().append(&*name, &value).is_ok()
    })
}

fn replace(args: &mut Args<'_>, side: Side, split: bool) -> Outcome {
    if args.len() != 3 {
        // HAProxy tells apart what is split in responses only.
        let told = match (side, split) {
            (Side::Request, _) => "req_rep_hdr",
            (Side::Response, true) => "res_rep_val",
            (Side::Response, false) => "res_rep_hdr",
        };
        return Err(format!("'{told}' needs 4 arguments"));
    }
    let (name, regex, template) = (args.bytes(1)?, args.bytes(2)?, args.bytes(3)?);
    let regex = Regex::new(&regex, false).map_err(|e| args.bad(2, &e.text))?;
    edit(args, side, |exec| {
        let head = exec.head();
        let all: Vec<usize> = head.all(&*name).map(|(index, _)| index).collect();
        all.into_iter().all(|index| {
            let old = head.field(index).map(|(_, value)| value.to_vec()).unwrap_or_default();
            let mut new = Vec::new();
            let mut changed = false;
            let parts: Vec<&[u8]> = if split { split_values(&old).collect() } else { vec![&old] };
            for (n, part) in parts.into_iter().enumerate() {
                let mut groups = Groups::default();
                if n > 0 {
                    new.extend_from_slice(b", ");
                }
                if regex.captures_at(part, 0, &mut groups) {
                    changed = true;
                    expand(&template, part, &groups, &mut new);
                } else {
                    new.extend_from_slice(part);
                }
            }
            new.retain(|c| !matches!(c, 0 | b'\r' | b'\n'));
            !changed || head.replace_value(index, &new).is_ok()
        })
    })
}

fn set_method(args: &mut Args<'_>) -> Outcome {
    let method = args.bytes(1)?;
    if !is_name(&method) {
        return give(args.lua(), false);
    }
    edit(args, Side::Request, |exec| exec.txn.req.set_method(&method).is_ok())?;
    give(args.lua(), true)
}

fn set_part(args: &mut Args<'_>, part: Part) -> Outcome {
    let new = args.bytes(1)?;
    if new.iter().any(|c| c.is_ascii_control() || *c == b' ') {
        return Err(args.bad(1, "blanks or control characters in a target"));
    }
    edit(args, Side::Request, |exec| put_part(exec, part, &new))?;
    give(args.lua(), true)
}

fn set_status(args: &mut Args<'_>) -> Outcome {
    let status = args.int(1)?;
    let reason = args.text_or_none(2)?;
    let status = u16::try_from(status).ok().filter(|s| (100..=599).contains(s));
    let status = status.ok_or_else(|| args.bad(1, "invalid status code"))?;
    let reason = reason.map(String::into_bytes).filter(|r| is_value(r));
    edit(args, Side::Response, |exec| exec.txn.res.set_status(status, reason.as_deref()).is_ok())
}
