//! `do-resolve`: a name becomes an address, in a variable (manual, section 4.3).

use std::net::IpAddr;

use model::vars::{Owned, VarRef};

use super::{Parsed, Reading, def, step};
use crate::action::{Flow, Fulfilled, Need};
use crate::names::{Missing, Names};
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::variables::write;
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[def(
    "do-resolve*",
    Sets::TCP_REQ.and(Sets::HTTP_REQ),
    parse,
    "Asks name servers for the address of a name.",
    "",
)];

const EXPECTS: &str =
    "Expects 'do-resolve(<varname>,<resolvers>[,<options>]) <expr>'. Available options are 'ipv4' and 'ipv6'";

/// What stands between the parentheses.
struct Asked {
    var: Option<VarRef>,
    resolvers: u32,
    v4: bool,
}

fn parse(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let asked = asked(words, names)?;
    let expression = words.position();
    let tried = Reading { words, at, reg, names }.expr();
    let expr = tried.map_err(|fault| match fault.text.as_str() {
        text if text.starts_with("missing fetch method") || text.starts_with("unknown fetch method") => {
            words.seek(expression);
            let word = words.take().map(|w| String::from_utf8_lossy(w).into_owned()).unwrap_or_default();
            Fault::new(format!("Can't parse '{word}': {text}. {EXPECTS}")).at(expression)
        }
        _ => fault,
    })?;
    step(move |exec| {
        match exec.resumed.take() {
            None => {}
            Some(Fulfilled::Address(ip)) => {
                let value = match ip {
                    IpAddr::V4(ip) => Owned::Ipv4(ip),
                    IpAddr::V6(ip) => Owned::Ipv6(ip),
                };
                if let Some(var) = asked.var {
                    write(&exec.env(), var, Some(value));
                }
                return Flow::Next;
            }
            Some(_) => return Flow::Next,
        }
        let env = exec.env();
        let Ok(value) = expr.eval(&env) else { return Flow::Next };
        let Ok(name) = std::str::from_utf8(value.text(env.arena)) else { return Flow::Next };
        Flow::Yield(Need::Address { resolvers: asked.resolvers, name: name.into(), v4: asked.v4 })
    })
}

/// Reads the word of the action again, with what is in its parentheses.
fn asked(words: &mut Words<'_>, names: &mut dyn Names) -> Result<Asked, Fault> {
    words.seek(words.position().saturating_sub(1));
    let at = words.position();
    let word = words.expect("")?.to_owned();
    let wrong = || Fault::new(format!("Can't parse '{word}'. {EXPECTS}")).at(at);
    let inside = word.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).ok_or_else(wrong)?;
    let mut parts = inside.split(',');
    let (Some(variable), Some(section)) = (parts.next(), parts.next()) else { return Err(wrong()) };
    let v4 = match (parts.next(), parts.next()) {
        (None, _) => false,
        (Some("ipv4"), None) => true,
        (Some("ipv6"), None) => false,
        _ => return Err(wrong()),
    };
    // HAProxy takes any word for a variable, and sets none that has no scope.
    let var = match crate::parse::variable(variable, names) {
        Ok(var) => Some(var),
        Err(fault) => {
            names.warn(format!("'{word}' : {}: the address is not kept", fault.text));
            None
        }
    };
    let resolvers = names.resolvers(section).unwrap_or_else(|fault| {
        names.miss(Missing::Rule(fault.text));
        0
    });
    Ok(Asked { var, resolvers, v4 })
}
