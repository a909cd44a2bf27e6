//! Parts of lists: fields, words, parameters, languages (section 7.3.1).

use super::{bytes, made, some, variable_at};
use crate::arg::{Arg, arg};
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

const fn def(
    name: &'static str,
    args: &'static str,
    eval: ConvFn,
    doc: &'static str,
    example: &'static str,
) -> ConvDef {
    ConvDef::new(name, Type::Str, Type::Str, eval, doc, example).args(args)
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    def(
        "add_item",
        "string,string[,string]",
        add_item,
        "Appends a delimiter if there is something, then a variable and a suffix.",
        "path,add_item(;,txn.x,end)",
    )
    .check(check_item),
    def(
        "concat",
        "string[,string,string]",
        concat,
        "Appends a text, a variable and a text.",
        "path,concat(<,txn.x,>)",
    )
    .check(|a, n| variable_at(a, 1, n)),
    def(
        "field",
        "integer,string[,integer]",
        field,
        "Fields by position; delimiters part them, empty ones count.",
        "path,field(2,/)",
    )
    .check(check),
    def(
        "language",
        "string[,string]",
        language,
        "The best of some languages for an Accept-Language value.",
        "hdr(accept-language),language(en;fr,en)",
    ),
    def("param", "string[,string]", param, "A parameter of a query string.", "query,param(id)")
        .check(check_param),
    def(
        "word",
        "integer,string[,integer]",
        word,
        "Words by position; delimiters part them, empty ones don't count.",
        "path,word(2,/)",
    )
    .check(check),
];

fn check(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    if arg(args, 0).int_or(0) == 0 {
        return Err(Fault::new("Unexpected value 0 for index"));
    }
    if delimiters(args).is_empty() {
        return Err(Fault::new("Empty separators list"));
    }
    Ok(())
}

fn check_item(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let given = |i| arg(args, i).bytes().is_some_and(|t| !t.is_empty());
    if !given(1) && !given(2) {
        return Err(Fault::new("one of the optional arguments has to be nonempty"));
    }
    variable_at(args, 1, names)
}

/// From where to where the parts asked for reach: `parts` gives starts and ends in order.
fn select<'a>(
    text: &'a [u8],
    args: &[Arg],
    parts: &mut dyn Iterator<Item = (usize, usize)>,
    arena: &bumpalo::Bump,
) -> Option<&'a [u8]> {
    let all = bumpalo::collections::Vec::from_iter_in(parts, arena);
    let index = arg(args, 0).int_or(0);
    let count = usize::try_from(arg(args, 2).int_or(1)).unwrap_or(0);
    let nth = usize::try_from(index.unsigned_abs()).ok()?.checked_sub(1)?;
    if nth >= all.len() {
        return None;
    }
    let more = if count == 0 { usize::MAX } else { count - 1 };
    // With fewer parts than asked for, whatever is left of the text belongs to them.
    if index > 0 {
        let end = all.get(nth.saturating_add(more)).map_or(text.len(), |part| part.1);
        return text.get(all.get(nth)?.0..end);
    }
    let last = all.len() - 1 - nth;
    let start = last.checked_sub(more).and_then(|first| all.get(first)).map_or(0, |part| part.0);
    text.get(start..all.get(last)?.1)
}

/// Starts and ends of what delimiters part.
fn pieces<'t>(text: &'t [u8], delimiters: &'t [u8]) -> impl Iterator<Item = (usize, usize)> + 't {
    let mut at = 0;
    text.split(move |c| delimiters.contains(c)).map(move |piece| {
        let start = at;
        at += piece.len() + 1;
        (start, start + piece.len())
    })
}

fn delimiters(args: &[Arg]) -> &[u8] {
    arg(args, 1).bytes().unwrap_or_default()
}

fn field<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let text = bytes(value);
    some(select(text, args, &mut pieces(text, delimiters(args)), env.arena).map(Value::Str))
}

fn word<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let text = bytes(value);
    let mut words = pieces(text, delimiters(args)).filter(|(start, end)| start < end);
    some(select(text, args, &mut words, env.arena).map(Value::Str))
}

fn add_item<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let mut out = made(env.arena);
    out.extend_from_slice(bytes(value));
    let item = match arg(args, 1) {
        Arg::Var(var) => crate::variables::read(env, *var).map(|v| as_text(env, v)).filter(|t| !t.is_empty()),
        _ => None,
    };
    let suffix = arg(args, 2).bytes().unwrap_or_default();
    if item.is_none() && suffix.is_empty() {
        return Ok(Value::Str(out.into_bump_slice()));
    }
    if !out.is_empty() {
        out.extend_from_slice(arg(args, 0).bytes().unwrap_or_default());
    }
    out.extend_from_slice(item.unwrap_or_default());
    out.extend_from_slice(suffix);
    Ok(Value::Str(out.into_bump_slice()))
}

/// A value as text; bytes end before their first NUL.
fn as_text<'a>(env: &Env<'a>, value: Value<'a>) -> &'a [u8] {
    value.cast(Type::Str, env.arena).map(bytes).unwrap_or_default()
}

fn concat<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let mut out = made(env.arena);
    out.extend_from_slice(bytes(value));
    out.extend_from_slice(arg(args, 0).bytes().unwrap_or_default());
    if let Arg::Var(var) = arg(args, 1)
        && let Some(v) = crate::variables::read(env, *var)
    {
        out.extend_from_slice(as_text(env, v));
    }
    out.extend_from_slice(arg(args, 2).bytes().unwrap_or_default());
    Ok(Value::Str(out.into_bump_slice()))
}

fn check_param(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    let Some(text) = arg(args, 1).bytes() else { return Ok(()) };
    let hex = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"));
    if let Some([a, b]) = hex
        && let (Some(a), Some(b)) = (crate::codec::hex_digit(*a), crate::codec::hex_digit(*b))
    {
        args[1] = Arg::Str(Box::new([a << 4 | b]));
        return Ok(());
    }
    if text.len() > 1 {
        return Err(Fault::new("Delimiter must be either exactly 1 character, or 0xHH for an ASCII code."));
    }
    Ok(())
}

fn param<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let name = arg(args, 0).bytes().unwrap_or_default();
    let delimiter = arg(args, 1).bytes().and_then(|d| d.first()).copied().unwrap_or(b'&');
    for pair in bytes(value).split(|c| *c == delimiter) {
        let equals = pair.iter().position(|c| *c == b'=');
        if &pair[..equals.unwrap_or(pair.len())] == name {
            return Ok(Value::Str(equals.map_or(&[][..], |at| &pair[at + 1..])));
        }
    }
    Err(Miss::None)
}

/// Quality of one entry, in thousandths.
fn quality(parameters: &[u8]) -> u32 {
    for parameter in parameters.split(|c| *c == b';') {
        let Some(q) = parameter.trim_ascii().strip_prefix(b"q=") else { continue };
        let text = std::str::from_utf8(q).unwrap_or_default();
        return text.parse::<f32>().map_or(1000, |q| (q.clamp(0.0, 1.0) * 1000.0) as u32);
    }
    1000
}

/// Whether a language is the tag asked for, or the first part of it (`fr` of `fr-CA`).
fn is_range_of(known: &[u8], tag: &[u8]) -> bool {
    let rest = tag.get(known.len()..);
    rest.is_some_and(|r| matches!(r.first(), None | Some(b'-'))) && tag[..known.len()] == *known
}

/// The language of the list with the highest quality, the first of equals.
fn language<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let known = arg(args, 0).bytes().unwrap_or_default();
    let mut best: Option<(u32, &[u8])> = None;
    for entry in bytes(value).split(|c| *c == b',') {
        let end = entry.iter().position(|c| *c == b';').unwrap_or(entry.len());
        let tag = entry[..end].trim_ascii();
        let quality = quality(entry.get(end + 1..).unwrap_or_default());
        let hit = known.split(|c| *c == b';').find(|k| is_range_of(k, tag));
        if let Some(hit) = hit
            && best.is_none_or(|(q, _)| quality > q)
        {
            best = Some((quality, hit));
        }
    }
    match best.filter(|(quality, _)| *quality > 0) {
        Some((_, tag)) => Ok(Value::Str(tag)),
        None => some(arg(args, 1).bytes().map(Value::Str)),
    }
}
