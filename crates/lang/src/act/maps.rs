//! Changes of maps and ACL files by rules (section 4.3, `set-map` and its kin): what the runtime API does by
//! hand. The set is found when the configuration is read; a change takes its lock, as any change does. A file
//! that no ACL and no converter looks up is not loaded for these actions, and changing it does nothing.

use std::sync::Arc;

use pattern::{LiveSet, Which};

use super::{Parsed, Reading, def, step, with_bytes};
use crate::action::{Exec, Flow};
use crate::logfmt::{LogFormat, Use};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::Words;

const SERVED: Sets = Sets::HTTP_REQ.and(Sets::HTTP_RES);

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "add-acl*",
        SERVED,
        |w, a, r, n| parse(w, a, r, n, Change::AddAcl),
        "Adds an entry to an ACL file.",
        "add-acl(acl.txt) %[src]",
    ),
    def(
        "del-acl*",
        Sets::HTTP,
        |w, a, r, n| parse(w, a, r, n, Change::DelAcl),
        "Deletes an entry of an ACL file.",
        "del-acl(acl.txt) %[src]",
    ),
    def(
        "del-map*",
        Sets::HTTP,
        |w, a, r, n| parse(w, a, r, n, Change::DelMap),
        "Deletes an entry of a map.",
        "del-map(map.txt) %[src]",
    ),
    def(
        "set-map*",
        Sets::HTTP,
        |w, a, r, n| parse(w, a, r, n, Change::SetMap),
        "Sets or adds an entry of a map.",
        "set-map(map.txt) %[src] %[path]",
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    AddAcl,
    DelAcl,
    DelMap,
    SetMap,
}

fn parse(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    change: Change,
) -> Parsed {
    words.seek(words.position() - 1);
    let word = words.expect("")?;
    // What stands behind the parentheses is not looked at, and without a name nothing is changed.
    let file = word.split_once('(').map_or("", |(_, rest)| rest.split(')').next().unwrap_or_default());
    let expects = match change {
        Change::SetMap => "expects exactly 2 arguments",
        _ => "expects exactly 1 arguments",
    };
    let set = names.changed(file);
    let mut reading = Reading { words, at, reg, names };
    let key = reading.format(expects)?;
    let value = if change == Change::SetMap { Some(reading.format(expects)?) } else { None };
    step(move |exec| {
        if let Some(set) = set.get() {
            apply(exec, change, set, &key, value.as_ref());
        }
        Flow::Next
    })
}

/// What can't be changed (a key that the set's kind can't read) stays as it is.
fn apply(exec: &Exec<'_>, change: Change, set: &Arc<LiveSet>, key: &LogFormat, value: Option<&LogFormat>) {
    with_bytes(|bytes| {
        key.append(&exec.env(), Use::Value, bytes);
        let end = bytes.len();
        if let Some(value) = value {
            value.append(&exec.env(), Use::Value, bytes);
        }
        let (key, value) = bytes.split_at(end);
        let _ = match change {
            Change::DelAcl | Change::DelMap => set.del(Which::Key(key)),
            Change::AddAcl => set.put(key, None),
            Change::SetMap => set.put(key, Some(value)),
        };
    });
}
