//! Messages as HAProxy keeps them inside: blocks of an HTX message (section 7.3.7), and heads in binary
//! (7.3.6).
//!
//! A message has a block for the start line, one for each field, one for the end of the head and one for the
//! body that is there. Sizes are those that HAProxy reports: a start line counts 20 bytes more than its text,
//! the end of the head one, each block 8 bytes of its table.

use std::sync::Arc;

use crate::arg::{Arg, arg};
use crate::codec::put_length;
use crate::entry::{FetchDef, FetchFn};
use crate::env::{Env, Side};
use crate::names::Names;
use crate::places::{EITHER_HEAD, INTERNAL, REQUEST, RESPONSE};
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

use super::int;

const LINE_OVERHEAD: usize = 20;
const TABLE_ENTRY: usize = 8;
const MESSAGE_OVERHEAD: usize = 40;

const fn whole(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, EITHER_HEAD, eval, doc).volatile()
}

const fn block(
    name: &'static str,
    out: Type,
    eval: FetchFn,
    doc: &'static str,
    example: &'static str,
) -> FetchDef {
    FetchDef::new(name, out, EITHER_HEAD, eval, doc).args("string", example).check(check).volatile()
}

pub(super) const FETCHES: &[FetchDef] = &[
    whole(
        "internal.htx.data",
        Type::Int,
        |e, _| int(size_of_data(e)? as u64),
        "Bytes of data in the message.",
    ),
    whole("internal.htx.free", Type::Int, |e, _| int(free(e)? as u64), "Bytes still free in the message."),
    whole(
        "internal.htx.free_data",
        Type::Int,
        |e, _| int(free(e)?.saturating_sub(TABLE_ENTRY) as u64),
        "Bytes of data that still fit the message.",
    ),
    whole(
        "internal.htx.has_eom",
        Type::Bool,
        |e, _| head(e).map(|_| Value::Bool(e.live.payload(e.side).complete)),
        "Whether the message is there to its end.",
    ),
    whole("internal.htx.nbblks", Type::Int, |e, _| int(blocks(e)?.len() as u64), "Blocks of the message."),
    whole(
        "internal.htx.size",
        Type::Int,
        |e, _| head(e).and_then(|_| int(size(e) as u64)),
        "Size of the message.",
    ),
    whole(
        "internal.htx.used",
        Type::Int,
        |e, _| int(used(e)? as u64),
        "Bytes used in the message, table included.",
    ),
    block(
        "internal.htx_blk.data",
        Type::Bin,
        |e, a| Ok(Value::Bin(if let Some(Block::Data(d)) = wanted(e, a)? { d } else { b"" })),
        "Content of a data block.",
        "internal.htx_blk.data(tail)",
    ),
    block(
        "internal.htx_blk.hdrname",
        Type::Str,
        |e, a| Ok(Value::Str(if let Some(Block::Field(n, _)) = wanted(e, a)? { n } else { b"" })),
        "Name of a header block.",
        "internal.htx_blk.hdrname(1)",
    ),
    block(
        "internal.htx_blk.hdrval",
        Type::Str,
        |e, a| Ok(Value::Str(if let Some(Block::Field(_, v)) = wanted(e, a)? { v } else { b"" })),
        "Value of a header block.",
        "internal.htx_blk.hdrval(1)",
    ),
    block(
        "internal.htx_blk.size",
        Type::Int,
        |e, a| int(wanted(e, a)?.map_or(0, |b| b.size()) as u64),
        "Size of a block.",
        "internal.htx_blk.size(head)",
    ),
    block(
        "internal.htx_blk.start_line",
        Type::Str,
        |e, a| Ok(Value::Str(if let Some(Block::Line(_, text, _)) = wanted(e, a)? { text } else { b"" })),
        "Text of a start line block.",
        "internal.htx_blk.start_line(first)",
    ),
    block(
        "internal.htx_blk.type",
        Type::Str,
        |e, a| Ok(Value::Str(wanted(e, a)?.map_or(b"HTX_BLK_UNUSED", |b| b.name()))),
        "Type of a block.",
        "internal.htx_blk.type(tail)",
    ),
    FetchDef::new(
        "internal.strm.is_htx",
        Type::Bool,
        INTERNAL,
        |e, _| Ok(Value::Bool(e.txn.has_req)),
        "Whether the stream carries HTTP messages.",
    )
    .volatile(),
    FetchDef::new(
        "req.hdrs_bin",
        Type::Bin,
        REQUEST,
        |e, _| binary(e, Side::Request),
        "All request headers, each name and value behind its length.",
    ),
    FetchDef::new(
        "res.hdrs_bin",
        Type::Bin,
        RESPONSE,
        |e, _| binary(e, Side::Response),
        "All response headers, each name and value behind its length.",
    ),
];

/// One block.
#[derive(Clone, Copy)]
enum Block<'a> {
    /// The side, the text, and how long its parts are together.
    Line(Side, &'a [u8], usize),
    Field(&'a [u8], &'a [u8]),
    EndOfHead,
    Data(&'a [u8]),
}

impl<'a> Block<'a> {
    fn size(self) -> usize {
        match self {
            Block::Line(_, _, parts) => LINE_OVERHEAD + parts,
            Block::Field(name, value) => name.len() + value.len(),
            Block::EndOfHead => 1,
            Block::Data(data) => data.len(),
        }
    }

    fn name(self) -> &'a [u8] {
        match self {
            Block::Line(Side::Request, ..) => b"HTX_BLK_REQ_SL",
            Block::Line(Side::Response, ..) => b"HTX_BLK_RES_SL",
            Block::Field(..) => b"HTX_BLK_HDR",
            Block::EndOfHead => b"HTX_BLK_EOH",
            Block::Data(_) => b"HTX_BLK_DATA",
        }
    }
}

fn head<'a>(env: &Env<'a>) -> Result<&'a wire::head::Head, Miss> {
    env.head(env.side).ok_or(Miss::None)
}

fn line<'a>(env: &Env<'a>, head: &'a wire::head::Head) -> Block<'a> {
    let version = head.version().as_str().as_bytes();
    let status = env.arena.alloc_str(&head.status().to_string()).as_bytes();
    let parts: [&[u8]; 3] = match env.side {
        Side::Request => [head.method(), head.target(), version],
        Side::Response => [version, status, head.reason()],
    };
    let text = super::joined(env, &[parts[0], b" ", parts[1], b" ", parts[2]]);
    Block::Line(env.side, text, text.len() - 2)
}

fn blocks<'a>(env: &Env<'a>) -> Result<Vec<Block<'a>>, Miss> {
    let head = head(env)?;
    let mut all = vec![line(env, head)];
    all.extend(head.fields().map(|(_, name, value)| Block::Field(name, value)));
    all.push(Block::EndOfHead);
    let body = env.live.payload(env.side).data;
    if !body.is_empty() {
        all.push(Block::Data(body));
    }
    Ok(all)
}

pub(super) fn size_of_data(env: &Env<'_>) -> Result<usize, Miss> {
    Ok(blocks(env)?.iter().map(|b| b.size()).sum())
}

fn used(env: &Env<'_>) -> Result<usize, Miss> {
    Ok(blocks(env)?.iter().map(|b| b.size() + TABLE_ENTRY).sum())
}

fn size(env: &Env<'_>) -> usize {
    env.live.buffer_size().saturating_sub(MESSAGE_OVERHEAD)
}

fn free(env: &Env<'_>) -> Result<usize, Miss> {
    Ok(size(env).saturating_sub(used(env)?))
}

/// Which block an argument means.
enum Position {
    Head,
    Tail,
    At(usize),
}

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let position = match arg(args, 0).bytes().unwrap_or_default() {
        b"head" | b"first" => Position::Head,
        b"tail" => Position::Tail,
        b"" => {
            let expects = "a block position is expected (> 0) or a special block name (head, tail, first)";
            return Err(Fault::new(expects));
        }
        text if text.iter().all(u8::is_ascii_digit) => {
            // It wraps around at 32 bits.
            let number = crate::sample::parse_int(text).unwrap_or(-1) as i32;
            let at = usize::try_from(number).map_err(|_| Fault::new("block position must not be negative"));
            Position::At(at?)
        }
        _ => return Err(Fault::new("invalid block position")),
    };
    args[0] = Arg::Other(Arc::new(position));
    Ok(())
}

fn wanted<'a>(env: &Env<'a>, args: &[Arg]) -> Result<Option<Block<'a>>, Miss> {
    let Arg::Other(any) = arg(args, 0) else { return Err(Miss::None) };
    let all = blocks(env)?;
    Ok(match any.downcast_ref::<Position>() {
        Some(Position::Head) => all.first().copied(),
        Some(Position::Tail) => all.last().copied(),
        Some(Position::At(n)) => all.get(*n).copied(),
        None => None,
    })
}

fn binary<'a>(env: &Env<'a>, side: Side) -> Found<'a> {
    let head = env.head(side).ok_or(Miss::None)?;
    let mut out = bumpalo::collections::Vec::new_in(env.arena);
    for (_, name, value) in head.fields() {
        put_length(name.len(), &mut |b| out.push(b));
        out.extend(name.iter().map(u8::to_ascii_lowercase));
        put_length(value.len(), &mut |b| out.push(b));
        out.extend_from_slice(value);
    }
    out.extend([0, 0]);
    Ok(Value::Bin(out.into_bump_slice()))
}
