//! Arguments that are either base64 text or a variable that holds such text.

use super::{bytes, made};
use crate::arg::{Arg, arg};
use crate::env::Env;
use crate::names::Names;
use crate::words::Fault;

/// Decodes the argument at `i`, or resolves it as a variable. An argument left out stays so.
pub(super) fn prepare(args: &mut [Arg], i: usize, what: &str, names: &mut dyn Names) -> Result<(), Fault> {
    let Some(text) = arg(args, i).bytes() else { return Ok(()) };
    let mut decoded = Vec::new();
    if base::base64::decode_to(text, false, &mut |c| decoded.push(c)).is_some() {
        args[i] = Arg::Str(decoded.into());
        return Ok(());
    }
    super::variable_at(args, i, names).map_err(|_| {
        Fault::new(format!(
            "failed to parse {what} : argument needs to be base64 encoded, and can either be a string or a variable"
        ))
    })
}

/// The bytes of an argument that [`prepare`] left; `None` when its variable has none.
pub(super) fn read<'a>(env: &Env<'a>, args: &'a [Arg], i: usize) -> Option<&'a [u8]> {
    match arg(args, i) {
        Arg::Var(var) => {
            let text = crate::variables::read(env, *var)?;
            let mut out = made(env.arena);
            base::base64::decode_to(text.text(env.arena), false, &mut |c| out.push(c))?;
            Some(out.into_bump_slice())
        }
        Arg::Str(b) => Some(b),
        _ => None,
    }
}

/// The text of an argument that is a string or a variable.
pub(super) fn text<'a>(env: &Env<'a>, arg: &'a Arg) -> Option<&'a [u8]> {
    match arg {
        Arg::Var(var) => Some(bytes(crate::variables::read(env, *var)?)),
        other => other.bytes(),
    }
}
