//! Arithmetic and bits (section 7.3.1). Sums and products saturate.

use super::{number, number_or_variable, operand, some};
use crate::arg::{Arg, arg};
use crate::env::Env;
use crate::registry::{ConvDef, ConvFn};
use crate::sample::{Found, Type, Value};

const fn unary(
    name: &'static str,
    out: Type,
    eval: ConvFn,
    doc: &'static str,
    example: &'static str,
) -> ConvDef {
    ConvDef::new(name, Type::Int, out, eval, doc, example)
}

const fn binary(name: &'static str, eval: ConvFn, doc: &'static str, example: &'static str) -> ConvDef {
    unary(name, Type::Int, eval, doc, example).args("string").check(|args, names| {
        number_or_variable(args, 0, names)?;
        match arg(args, 0) {
            Arg::Int(_) | Arg::Var(_) => Ok(()),
            _ => Err(crate::Fault::new("expects an integer or a variable name")),
        }
    })
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    binary("add", |e, v, a| both(e, v, a, i64::saturating_add), "Adds.", "int(1),add(2)"),
    binary("and", |e, v, a| both(e, v, a, |x, y| x & y), "Bitwise and.", "int(6),and(3)"),
    unary(
        "bool",
        Type::Bool,
        |_, v, _| Ok(Value::Bool(number(v) != 0)),
        "Whether it is not zero.",
        "int(6),bool",
    ),
    unary("cpl", Type::Int, |_, v, _| Ok(Value::Int(!number(v))), "Bitwise complement.", "int(6),cpl"),
    binary(
        "div",
        |e, v, a| both(e, v, a, divide),
        "Divides; by zero gives the greatest integer.",
        "int(6),div(2)",
    ),
    unary(
        "even",
        Type::Bool,
        |_, v, _| Ok(Value::Bool(number(v) & 1 == 0)),
        "Whether it is even.",
        "int(6),even",
    ),
    ConvDef::new(
        "htonl",
        Type::Int,
        Type::Bin,
        htonl,
        "The low 32 bits as four bytes, most significant first.",
        "int(6),htonl",
    ),
    binary(
        "mod",
        |e, v, a| both(e, v, a, |x, y| x.checked_rem(y).unwrap_or(0)),
        "Remainder; by zero gives zero.",
        "int(6),mod(4)",
    ),
    binary("mul", |e, v, a| both(e, v, a, i64::saturating_mul), "Multiplies.", "int(6),mul(2)"),
    unary(
        "neg",
        Type::Int,
        |_, v, _| Ok(Value::Int(number(v).saturating_neg())),
        "Changes the sign.",
        "int(6),neg",
    ),
    unary("not", Type::Bool, |_, v, _| Ok(Value::Bool(number(v) == 0)), "Whether it is zero.", "int(6),not"),
    unary(
        "odd",
        Type::Bool,
        |_, v, _| Ok(Value::Bool(number(v) & 1 == 1)),
        "Whether it is odd.",
        "int(6),odd",
    ),
    binary("or", |e, v, a| both(e, v, a, |x, y| x | y), "Bitwise or.", "int(6),or(1)"),
    binary("sub", |e, v, a| both(e, v, a, i64::saturating_sub), "Subtracts.", "int(6),sub(1)"),
    binary("xor", |e, v, a| both(e, v, a, |x, y| x ^ y), "Bitwise exclusive or.", "int(6),xor(3)"),
];

fn both<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg], work: fn(i64, i64) -> i64) -> Found<'a> {
    some(operand(env, arg(args, 0)).map(|y| Value::Int(work(number(value), y))))
}

fn divide(x: i64, y: i64) -> i64 {
    match y {
        0 => i64::MAX,
        -1 => x.saturating_neg(),
        _ => x / y,
    }
}

fn htonl<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    Ok(Value::Bin(env.arena.alloc_slice_copy(&(number(value) as u32).to_be_bytes())))
}
