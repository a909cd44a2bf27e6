//! Variables: `set-var`, `set-var-fmt`, `unset-var` (sections 2.8 and 4.3).

use model::vars::VarRef;

use super::{Parsed, Reading, def, step, with_bytes};
use crate::action::Flow;
use crate::logfmt::{LogFormat, Use};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::sample::Value;
use crate::variables::{When, read, write};
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "set-var-fmt*",
        Sets::ALL,
        set_format,
        "Keeps a text for later.",
        "set-var-fmt(txn.from) %[src]:%[src_port]",
    ),
    def("set-var*", Sets::ALL, set, "Keeps a sample for later.", "set-var(txn.from,ifnotexists) src"),
    def("unset-var*", Sets::ALL, unset, "Forgets a variable.", "unset-var(txn.from)"),
];

const EXPECTS: &str = "Expects 'set-var(<var-name>)', 'set-var-fmt(<var-name>)' or 'unset-var(<var-name>)'";

const ONLY_THE_NAME: &str = "unset-var does not expect parameters after the variable name. Only \"set-var\" and \"set-var-fmt\" manage conditions";

/// The variable and the conditions between the parentheses of the word just taken.
fn target(words: &mut Words<'_>, prefix: &str, names: &mut dyn Names) -> Result<(VarRef, Vec<When>), Fault> {
    words.seek(words.position() - 1);
    let at = words.position();
    let word = words.expect("")?;
    let Some(inside) = word.strip_prefix(prefix).and_then(|w| w.strip_prefix('(')) else {
        return Err(Fault::new(format!("invalid or incomplete action '{word}'. {EXPECTS}")).at(at));
    };
    let Some(inside) = inside.strip_suffix(')') else {
        return Err(Fault::new(format!("incomplete argument after action '{word}'. {EXPECTS}")).at(at));
    };
    // Conditions are told before the name. An empty one is none.
    let mut parts = inside.split(',');
    let name = parts.next().unwrap_or_default();
    let conditions = parts.filter(|condition| !condition.is_empty());
    let when = conditions.map(|condition| match prefix {
        "unset-var" => Err(Fault::new(ONLY_THE_NAME).at(at)),
        _ => When::from_name(condition)
            .ok_or_else(|| Fault::new(format!("unknown condition \"{condition}\"")).at(at)),
    });
    let when = when.collect::<Result<_, _>>()?;
    Ok((crate::parse::variable(name, names).map_err(|f| f.at(at))?, when))
}

fn set(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let (var, when) = target(words, "set-var", names)?;
    let expr = Reading { words, at, reg, names }.expr()?;
    step(move |exec| {
        let env = exec.env();
        if let Ok(value) = expr.eval(&env)
            && when.iter().all(|w| w.holds(read(&env, var), value))
        {
            write(&env, var, Some(value.to_owned_value()));
        }
        Flow::Next
    })
}

fn set_format(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let (var, when) = target(words, "set-var-fmt", names)?;
    // Without a format the text is empty. A word that begins a condition elsewhere is one here.
    let place = at.place;
    let text = words.take().unwrap_or_default();
    let format = LogFormat::parse(text, place, reg, names)?;
    step(move |exec| {
        let env = exec.env();
        with_bytes(|bytes| {
            format.append(&env, Use::Value, bytes);
            let value = Value::Str(bytes);
            if when.iter().all(|w| w.holds(read(&env, var), value)) {
                write(&env, var, Some(value.to_owned_value()));
            }
        });
        Flow::Next
    })
}

fn unset(words: &mut Words<'_>, _: &ActionPlace, _: &Registry, names: &mut dyn Names) -> Parsed {
    let (var, _) = target(words, "unset-var", names)?;
    step(move |exec| {
        write(&exec.env(), var, None);
        Flow::Next
    })
}
