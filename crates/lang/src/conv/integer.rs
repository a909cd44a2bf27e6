//! Arithmetic and bits (section 7.3.1); the operations themselves are in [`crate::arith`].

use super::{number, number_or_variable};
use crate::arg::{Arg, arg};
use crate::arith::Arith;
use crate::entry::{ConvDef, ConvFn};
use crate::env::Env;
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

const fn binary(name: &'static str, op: Arith, doc: &'static str, example: &'static str) -> ConvDef {
    ConvDef::arith(name, op, doc, example).args("string").check(|args, names| {
        number_or_variable(args, 0, names)?;
        match arg(args, 0) {
            Arg::Int(_) | Arg::Var(_) => Ok(()),
            Arg::Str(text) if text.is_empty() => {
                args[0] = Arg::Int(0);
                Ok(())
            }
            _ => Err(crate::Fault::new("expects an integer or a variable name")),
        }
    })
}

pub(super) const CONVERTERS: &[ConvDef] = &[
    binary("add", Arith::Add, "Adds.", "int(1),add(2)"),
    binary("and", Arith::And, "Bitwise and.", "int(6),and(3)"),
    unary(
        "bool",
        Type::Bool,
        |_, v, _| Ok(Value::Bool(number(v) != 0)),
        "Whether it is not zero.",
        "int(6),bool",
    ),
    ConvDef::arith("cpl", Arith::Complement, "Bitwise complement.", "int(6),cpl"),
    binary("div", Arith::Divide, "Divides; by zero gives the greatest integer.", "int(6),div(2)"),
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
    binary("mod", Arith::Modulo, "Remainder; by zero gives zero.", "int(6),mod(4)"),
    binary("mul", Arith::Multiply, "Multiplies.", "int(6),mul(2)"),
    ConvDef::arith("neg", Arith::Negate, "Changes the sign.", "int(6),neg"),
    unary("not", Type::Bool, |_, v, _| Ok(Value::Bool(number(v) == 0)), "Whether it is zero.", "int(6),not"),
    unary(
        "odd",
        Type::Bool,
        |_, v, _| Ok(Value::Bool(number(v) & 1 == 1)),
        "Whether it is odd.",
        "int(6),odd",
    ),
    binary("or", Arith::Or, "Bitwise or.", "int(6),or(1)"),
    binary("sub", Arith::Subtract, "Subtracts.", "int(6),sub(1)"),
    binary("xor", Arith::Xor, "Bitwise exclusive or.", "int(6),xor(3)"),
];

fn htonl<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    Ok(Value::Bin(env.arena.alloc_slice_copy(&(number(value) as u32).to_be_bytes())))
}
