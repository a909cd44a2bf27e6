//! Parameters of the query and of url-encoded bodies (section 7.3.6).

use crate::arg::{Arg, arg};
use crate::entry::FetchDef;
use crate::env::{Env, Side};
use crate::places::REQUEST;
use crate::sample::{Found, Miss, Type, Value, parse_int};
use crate::words::Fault;

const URLP: FetchDef = FetchDef::new(
    "urlp",
    Type::Str,
    REQUEST,
    |e, a| first(&query(e, a)?, a, 2).map(Value::Str),
    "A parameter of the query.",
)
.args("[string,string,string]", "urlp(id,;,i)")
.check(|a, _| check(a, 2))
.each(|e, a, v| each(&query(e, a)?, a, 2, &mut |value| v(Value::Str(value))));

pub(super) const FETCHES: &[FetchDef] = &[
    URLP,
    URLP.alias("url_param", REQUEST, "url_param(id)"),
    FetchDef::new(
        "urlp_val",
        Type::Int,
        REQUEST,
        |e, a| first(&query(e, a)?, a, 2).map(number),
        "A parameter of the query as an integer.",
    )
    .args("[string,string,string]", "urlp_val(id)")
    .check(|a, _| check(a, 2))
    .each(|e, a, v| each(&query(e, a)?, a, 2, &mut |value| v(number(value)))),
    FetchDef::new(
        "req.body_param",
        Type::Bin,
        REQUEST,
        |e, a| first(&body(e), a, 1).map(Value::Bin),
        "A parameter of a url-encoded body.",
    )
    .args("[string,string]", "req.body_param(id,i)")
    .check(|a, _| check(a, 1))
    .each(|e, a, v| each(&body(e), a, 1, &mut |value| v(Value::Bin(value)))),
];

/// Where parameters lie, and what parts them.
struct Parameters<'a> {
    text: &'a [u8],
    delimiter: Option<u8>,
    semicolons: bool,
}

fn check(args: &mut Vec<Arg>, flag: usize) -> Result<(), Fault> {
    match arg(args, flag).bytes() {
        None | Some(b"" | b"i") => {}
        Some(_) => return Err(Fault::new("Unknown option. Only 'i' is supported")),
    }
    if flag == 2 && arg(args, 1).bytes().is_some_and(|d| d.len() > 1) {
        return Err(Fault::new("Delimiter of parameters must be a single character"));
    }
    Ok(())
}

/// The parameters behind `?` or the delimiter given.
fn query<'a>(env: &Env<'a>, args: &[Arg]) -> Result<Parameters<'a>, Miss> {
    let target = env.head(Side::Request).ok_or(Miss::None)?.target();
    let delimiter = arg(args, 1).bytes().and_then(|d| d.first()).copied();
    let mark = delimiter.unwrap_or(b'?');
    let start = target.iter().position(|c| *c == mark).ok_or(Miss::None)?;
    Ok(Parameters { text: target.get(start + 1..).unwrap_or_default(), delimiter, semicolons: true })
}

fn body<'a>(env: &Env<'a>) -> Parameters<'a> {
    Parameters { text: env.live.payload(Side::Request).data, delimiter: None, semicolons: false }
}

fn number(value: &[u8]) -> Value<'_> {
    Value::Int(parse_int(value).unwrap_or(0))
}

impl<'a> Parameters<'a> {
    /// Visits the values of a name (or all) until told to stop.
    fn visit(&self, name: Option<&[u8]>, no_case: bool, seen: &mut dyn FnMut(&'a [u8]) -> bool) {
        let parts = |c: &u8| *c == b'&' || (self.semicolons && *c == b';') || Some(*c) == self.delimiter;
        for pair in self.text.split(parts) {
            let Some(equals) = pair.iter().position(|c| *c == b'=') else { continue };
            let (key, value) = (&pair[..equals], &pair[equals + 1..]);
            let same = |n: &[u8]| if no_case { n.eq_ignore_ascii_case(key) } else { n == key };
            if name.is_none_or(same) && seen(value) {
                return;
            }
        }
    }
}

fn wanted(args: &[Arg], flag: usize) -> (Option<&[u8]>, bool) {
    (arg(args, 0).bytes().filter(|n| !n.is_empty()), arg(args, flag).bytes() == Some(b"i"))
}

fn first<'a>(all: &Parameters<'a>, args: &[Arg], flag: usize) -> Result<&'a [u8], Miss> {
    let (name, no_case) = wanted(args, flag);
    let mut found = None;
    all.visit(name, no_case, &mut |value| {
        found = Some(value);
        true
    });
    found.ok_or(Miss::None)
}

fn each<'a>(
    all: &Parameters<'a>,
    args: &[Arg],
    flag: usize,
    seen: &mut dyn FnMut(&'a [u8]) -> bool,
) -> Found<'a> {
    let (name, no_case) = wanted(args, flag);
    all.visit(name, no_case, seen);
    Err(Miss::None)
}
