//! Variables and captures as side effects of an expression (section 7.3.1).

use model::vars::VarRef;

use super::bytes;
use crate::arg::{Arg, arg};
use crate::entry::ConvDef;
use crate::env::Env;
use crate::names::Names;
use crate::sample::{Found, Miss, Type, Value};
use crate::variables::{When, read, write};
use crate::words::Fault;

pub(super) const CONVERTERS: &[ConvDef] = &[
    ConvDef::new(
        "set-var",
        Type::Any,
        Type::Any,
        set,
        "Keeps the sample in a variable and passes it on.",
        "path,set-var(txn.path)",
    )
    .args("string[,string,string,string,string]")
    .check(check_set)
    .volatile(),
    ConvDef::new(
        "unset-var",
        Type::Any,
        Type::Any,
        unset,
        "Forgets a variable and passes the sample on.",
        "path,unset-var(txn.path)",
    )
    .args("string")
    .check(check)
    .volatile(),
];

fn check(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    let name = String::from_utf8_lossy(arg(args, 0).bytes().unwrap_or_default()).into_owned();
    args[0] = Arg::Var(crate::parse::variable(&name, names)?);
    Ok(())
}

fn check_set(args: &mut Vec<Arg>, names: &mut dyn Names) -> Result<(), Fault> {
    check(args, names)?;
    for name in args.iter().skip(1).filter_map(Arg::bytes) {
        condition(name)
            .ok_or_else(|| Fault::new(format!("unknown condition \"{}\"", String::from_utf8_lossy(name))))?;
    }
    Ok(())
}

fn condition(name: &[u8]) -> Option<When> {
    When::from_name(std::str::from_utf8(name).ok()?)
}

fn target(args: &[Arg]) -> Result<VarRef, Miss> {
    match arg(args, 0) {
        Arg::Var(var) => Ok(*var),
        _ => Err(Miss::None),
    }
}

fn set<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    let var = target(args)?;
    let mut conditions = args.iter().skip(1).filter_map(Arg::bytes).filter_map(condition);
    if !conditions.all(|w| w.holds(read(env, var), value)) {
        return Err(Miss::None);
    }
    let kept = match value {
        Value::Method(m) => Value::Str(bytes(Value::Method(m))),
        other => other,
    };
    write(env, var, Some(kept.to_owned_value()));
    Ok(value)
}

fn unset<'a>(env: &Env<'a>, value: Value<'a>, args: &'a [Arg]) -> Found<'a> {
    write(env, target(args)?, None);
    Ok(value)
}
