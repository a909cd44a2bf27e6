//! Actions that HAProxy has and that are not built yet: their names are known, so that a configuration which
//! uses them is told so, and not that they were misspelt.

use super::{Parsed, def};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

const fn refused(name: &'static str, sets: Sets) -> ActionDef {
    def(name, sets, parse, "Not supported yet.", "")
}

pub(super) const ACTIONS: &[ActionDef] = &[refused("attach-srv", Sets::TCP_SESS)];

fn parse(words: &mut Words<'_>, at: &ActionPlace, _: &Registry, _: &mut dyn Names) -> Parsed {
    let position = words.position().saturating_sub(1);
    words.seek(position);
    let word = words.expect("")?;
    Err(Fault::new(format!("'{} {word}' is not supported yet", at.set.words())).at(position))
}
