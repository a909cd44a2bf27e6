//! Maps (section 7.3.1, `map_<match>_<output>`).
//!
//! The match is part of the name, and so is what the value becomes. The variants are made of one entry
//! each; only the numbers of the two families differ.

use pattern::{Face, Groups, Hit, Kind, Output};

use super::{bytes, some};
use crate::arg::{Arg, arg};
use crate::entry::{CheckFn, ConvDef, ConvFn};
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value, parse_int};
use crate::words::Fault;

const DOC: &str = "Looks the sample up in a map, with a default for what is not there.";

/// The four entries of one way to match.
const fn family(
    names: [&'static str; 4],
    examples: [&'static str; 4],
    from: Type,
    [check_text, check_int, check_ip]: [CheckFn; 3],
) -> [ConvDef; 4] {
    const fn entry(
        name: &'static str,
        from: Type,
        out: Type,
        eval: ConvFn,
        example: &'static str,
        args: &'static str,
    ) -> ConvDef {
        ConvDef::new(name, from, out, eval, DOC, example).args(args).volatile()
    }
    let [text, int, ip, key] = names;
    let [a, b, c, d] = examples;
    [
        entry(text, from, Type::Str, as_text, a, "string[,string]").check(check_text),
        entry(int, from, Type::Int, as_int, b, "string[,integer]").check(check_int),
        entry(ip, from, Type::Addr, as_ip, c, "string[,string]").check(check_ip),
        entry(key, from, Type::Str, as_key, d, "string").check(check_text),
    ]
}

const STR: [ConvDef; 4] = family(
    ["map_str", "map_str_int", "map_str_ip", "map_str_key"],
    [
        "path,map_str(map.txt)",
        "path,map_str_int(map.txt)",
        "path,map_str_ip(map.txt)",
        "path,map_str_key(map.txt)",
    ],
    Type::Str,
    [
        |a, n| load(a, n, Kind::Str, Output::Text),
        |a, n| load(a, n, Kind::Str, Output::Int),
        |a, n| load(a, n, Kind::Str, Output::Ip),
    ],
);
const BEG: [ConvDef; 4] = family(
    ["map_beg", "map_beg_int", "map_beg_ip", "map_beg_key"],
    [
        "path,map_beg(map.txt)",
        "path,map_beg_int(map.txt)",
        "path,map_beg_ip(map.txt)",
        "path,map_beg_key(map.txt)",
    ],
    Type::Str,
    [
        |a, n| load(a, n, Kind::Beg, Output::Text),
        |a, n| load(a, n, Kind::Beg, Output::Int),
        |a, n| load(a, n, Kind::Beg, Output::Ip),
    ],
);
const END: [ConvDef; 4] = family(
    ["map_end", "map_end_int", "map_end_ip", "map_end_key"],
    [
        "path,map_end(map.txt)",
        "path,map_end_int(map.txt)",
        "path,map_end_ip(map.txt)",
        "path,map_end_key(map.txt)",
    ],
    Type::Str,
    [
        |a, n| load(a, n, Kind::End, Output::Text),
        |a, n| load(a, n, Kind::End, Output::Int),
        |a, n| load(a, n, Kind::End, Output::Ip),
    ],
);
const SUB: [ConvDef; 4] = family(
    ["map_sub", "map_sub_int", "map_sub_ip", "map_sub_key"],
    [
        "path,map_sub(map.txt)",
        "path,map_sub_int(map.txt)",
        "path,map_sub_ip(map.txt)",
        "path,map_sub_key(map.txt)",
    ],
    Type::Str,
    [
        |a, n| load(a, n, Kind::Sub, Output::Text),
        |a, n| load(a, n, Kind::Sub, Output::Int),
        |a, n| load(a, n, Kind::Sub, Output::Ip),
    ],
);
const DIR: [ConvDef; 4] = family(
    ["map_dir", "map_dir_int", "map_dir_ip", "map_dir_key"],
    [
        "path,map_dir(map.txt)",
        "path,map_dir_int(map.txt)",
        "path,map_dir_ip(map.txt)",
        "path,map_dir_key(map.txt)",
    ],
    Type::Str,
    [
        |a, n| load(a, n, Kind::Dir, Output::Text),
        |a, n| load(a, n, Kind::Dir, Output::Int),
        |a, n| load(a, n, Kind::Dir, Output::Ip),
    ],
);
const DOM: [ConvDef; 4] = family(
    ["map_dom", "map_dom_int", "map_dom_ip", "map_dom_key"],
    [
        "path,map_dom(map.txt)",
        "path,map_dom_int(map.txt)",
        "path,map_dom_ip(map.txt)",
        "path,map_dom_key(map.txt)",
    ],
    Type::Str,
    [
        |a, n| load(a, n, Kind::Dom, Output::Text),
        |a, n| load(a, n, Kind::Dom, Output::Int),
        |a, n| load(a, n, Kind::Dom, Output::Ip),
    ],
);
const REG: [ConvDef; 4] = family(
    ["map_reg", "map_reg_int", "map_reg_ip", "map_reg_key"],
    [
        "path,map_reg(map.txt)",
        "path,map_reg_int(map.txt)",
        "path,map_reg_ip(map.txt)",
        "path,map_reg_key(map.txt)",
    ],
    Type::Str,
    [
        |a, n| load(a, n, Kind::Reg, Output::Text),
        |a, n| load(a, n, Kind::Reg, Output::Int),
        |a, n| load(a, n, Kind::Reg, Output::Ip),
    ],
);
const INT: [ConvDef; 4] = family(
    ["map_int", "map_int_int", "map_int_ip", "map_int_key"],
    [
        "int(1),map_int(numbers.txt)",
        "int(1),map_int_int(numbers.txt)",
        "int(1),map_int_ip(numbers.txt)",
        "int(1),map_int_key(numbers.txt)",
    ],
    Type::Int,
    [
        |a, n| load(a, n, Kind::Int, Output::Text),
        |a, n| load(a, n, Kind::Int, Output::Int),
        |a, n| load(a, n, Kind::Int, Output::Ip),
    ],
);
const IP: [ConvDef; 4] = family(
    ["map_ip", "map_ip_int", "map_ip_ip", "map_ip_key"],
    [
        "src,map_ip(nets.txt)",
        "src,map_ip_int(nets.txt)",
        "src,map_ip_ip(nets.txt)",
        "src,map_ip_key(nets.txt)",
    ],
    Type::Addr,
    [
        |a, n| load(a, n, Kind::Ip, Output::Text),
        |a, n| load(a, n, Kind::Ip, Output::Int),
        |a, n| load(a, n, Kind::Ip, Output::Ip),
    ],
);

const PLAIN: [ConvDef; 2] = [
    ConvDef::new("map", Type::Str, Type::Str, as_text, DOC, "path,map(map.txt,none)")
        .args("string[,string]")
        .check(|a, n| load(a, n, Kind::Str, Output::Text))
        .volatile(),
    ConvDef::new(
        "map_regm",
        Type::Str,
        Type::Str,
        regm,
        "Looks up by regular expression; the value may name groups.",
        "path,map_regm(map.txt)",
    )
    .args("string[,string]")
    .check(|a, n| take(a, n, Face { groups: true, ..Face::of_map(Kind::Reg, Output::Text) }))
    .volatile(),
];

const COUNT: usize = 9 * 4 + 2;

pub(super) const CONVERTERS: &[ConvDef] = &{
    const FAMILIES: [&[ConvDef; 4]; 9] = [&BEG, &DIR, &DOM, &END, &INT, &IP, &REG, &STR, &SUB];
    let mut all = [const { PLAIN[0].copy() }; COUNT];
    let mut i = 0;
    while i < COUNT {
        all[i] = if i < 36 { FAMILIES[i / 4][i % 4].copy() } else { PLAIN[i - 36].copy() };
        i += 1;
    }
    all
};

fn load(args: &mut Vec<Arg>, names: &mut dyn Names, kind: Kind, output: Output) -> Result<(), Fault> {
    take(args, names, Face::of_map(kind, output))
}

fn take(args: &mut Vec<Arg>, names: &mut dyn Names, face: Face) -> Result<(), Fault> {
    let file = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    args[0] = Arg::Map(names.patterns(&file, face, true)?);
    Ok(())
}

fn hit(value: Value<'_>, args: &[Arg]) -> Option<Hit> {
    match arg(args, 0) {
        Arg::Map(view) => view.find(value.for_pattern()),
        _ => None,
    }
}

fn as_text<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    match hit(value, args) {
        Some(hit) => Ok(Value::Str(env.arena.alloc_slice_copy(hit.value().unwrap_or_default()))),
        None => some(arg(args, 1).bytes().map(Value::Str)),
    }
}

fn as_int<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    match hit(value, args) {
        Some(hit) => some(hit.value().and_then(parse_int).map(Value::Int)),
        None if arg(args, 1).is_none() => Err(Miss::None),
        None => Ok(Value::Int(arg(args, 1).int_or(0))),
    }
}

fn as_ip<'a>(_: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let read = |text: &[u8]| Value::Str(text).addr();
    let ip = match hit(value, args) {
        Some(hit) => hit.value().and_then(read),
        None => arg(args, 1).bytes().and_then(read),
    };
    some(ip.map(Value::from))
}

fn as_key<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    some(hit(value, args).map(|hit| Value::Str(env.arena.alloc_slice_copy(&hit.pattern()))))
}

fn regm<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let Some(hit) = hit(value, args) else { return some(arg(args, 1).bytes().map(Value::Str)) };
    let (mut groups, mut out) = (Groups::default(), Vec::new());
    if !hit.regex().is_some_and(|r| r.captures_at(bytes(value), 0, &mut groups)) {
        return Err(Miss::None);
    }
    crate::act::expand(hit.value().unwrap_or_default(), bytes(value), &groups, &mut out);
    Ok(Value::Str(env.arena.alloc_slice_copy(&out)))
}
