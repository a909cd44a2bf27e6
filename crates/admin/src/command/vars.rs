//! Variables of the process: `get var`, `set var`.
//!
//! Rules know variables by number. A name that no rule mentions is kept aside ([`model::vars::ProcVars`]):
//! only the runtime API can read it.

use model::vars::{Owned, Scope};
use program::Program;

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["get", "var"], "<name>", "value of a variable of the process", Level::Operator, get),
    Command::now(
        &["set", "var"],
        "<name> [fmt|expr] {<format>|<expression>}",
        "set a variable of the process",
        Level::Operator,
        set,
    )
    .experimental(),
];

fn proc_name(call: &Call<'_>) -> Result<String, Refusal> {
    match call.arg(0) {
        "" => Err("Missing process-wide variable identifier.".into()),
        name => Ok(name.to_owned()),
    }
}

/// The value of a variable, by its whole name.
fn value(program: &Program, name: &str) -> Option<std::sync::Arc<Owned>> {
    let short = name.strip_prefix("proc.")?;
    match program.vars.find(Scope::Proc, short) {
        Some(var) => program.world.vars.get(var.slot),
        None => program.world.vars.aside(short),
    }
}

/// `get var <name>`.
pub fn get(call: &mut Call<'_>) -> Outcome {
    let name = proc_name(call)?;
    let value = value(&call.shared().program, &name).ok_or("Variable not found.")?;
    // What can't be printed is a dot, as in HAProxy.
    let text = |b: &[u8]| -> String {
        b.iter().map(|b| if matches!(b, b' '..=b'~') { char::from(*b) } else { '.' }).collect()
    };
    let (kind, shown) = match &*value {
        Owned::Bool(b) => ("bool", u8::from(*b).to_string()),
        Owned::Int(n) => ("sint", n.to_string()),
        Owned::Ipv4(ip) => ("ipv4", ip.to_string()),
        Owned::Ipv6(ip) => ("ipv6", ip.to_string()),
        Owned::Str(b) => ("str", text(b)),
        Owned::Bin(b) => ("bin", b.iter().map(|b| format!("{b:02X}")).collect()),
        Owned::Method(b) => ("meth", text(b)),
    };
    Ok(Reply::info(format!("{name}: type={kind} value=<{shown}>")))
}

/// `set var <name> <expression>`, `set var <name> expr <expression>`, `set var <name> fmt <format>`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    let name = proc_name(call)?;
    let rest = call.args().get(1..).unwrap_or(&[]);
    let (format, words) = match rest {
        [] => return Err("Missing either 'expr', 'fmt' or expression.".into()),
        [kind, words @ ..] if kind == "fmt" && !words.is_empty() => (true, words),
        [kind, words @ ..] if kind == "expr" && !words.is_empty() => (false, words),
        [_] => (false, rest),
        [other, ..] => {
            let text = format!("'set var': arg type must be either 'expr' or 'fmt' but got '{other}'.");
            return Err(text.into());
        }
    };
    let Some(short) = name.strip_prefix("proc.").filter(|n| !n.is_empty()) else {
        let text = format!("'set var': cannot set variable '{name}', only scope 'proc' is permitted here.");
        return Err(text.into());
    };
    let program = call.shared().program.clone();
    let apart = compile::dynamic::variable(&name, format, words, program.world.workers)?;
    // What the expression reads stands in the running process.
    for known in apart.vars.of(Scope::Proc) {
        if let (Some(var), Some(now)) =
            (apart.vars.find(Scope::Proc, known), value(&program, &format!("proc.{known}")))
        {
            apart.world.vars.set(var.slot, Some((*now).clone()));
        }
    }
    engine::process_vars::set(&apart);
    let result = apart.vars.find(Scope::Proc, short).and_then(|var| apart.world.vars.get(var.slot));
    let result = result.map(|v| (*v).clone());
    match program.vars.find(Scope::Proc, short) {
        Some(var) => program.world.vars.set(var.slot, result),
        None if program.world.vars.set_aside(short, result) => {}
        None => return Err("Too many variables.".into()),
    }
    Ok(Reply::Done)
}
