//! `unix-bind`: what all sockets in the file system have in common (section 3.1).

use syntax::Word;

use super::draft::GlobalDraft;
use crate::statement::{Statement, Step, clamp};
use crate::{resolve, units};

/// Reads its options up to the end of the line.
pub(super) fn unix_bind(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    while let Some(word) = s.next() {
        const ONLY: &str =
            "'unix-bind' only supports the 'prefix', 'mode', 'uid', 'gid', 'user' and 'group' options.";
        let name = word.text();
        if !["prefix", "mode", "uid", "gid", "user", "group"].contains(&name) {
            return Err(s.fail(ONLY));
        }
        let value = s.next();
        if value.is_none() && name == "prefix" {
            return Err(s.fail("unix_bind 'prefix' expects a path as an argument."));
        }
        let text = value.map_or("", Word::text);
        let unknown = |kind: &str| s.fail(format!("'unix-bind' : '{text}' unknown {kind}."));
        match name {
            "prefix" => g.unix_prefix = value.map_or(&b""[..], Word::bytes).into(),
            "mode" => {
                // Leading digits count.
                let digits = text.bytes().take_while(|b| (b'0'..=b'7').contains(b)).count();
                g.unix_bind.mode =
                    Some(u32::from_str_radix(text.get(..digits).unwrap_or_default(), 8).unwrap_or(0));
            }
            "uid" => g.unix_bind.uid = Some(clamp(units::lenient(text))),
            "gid" => g.unix_bind.gid = Some(clamp(units::lenient(text))),
            "user" => g.unix_bind.uid = Some(resolve::user(text).ok_or_else(|| unknown("user"))?),
            "group" => g.unix_bind.gid = Some(resolve::group(text).ok_or_else(|| unknown("group"))?),
            _ => {}
        }
    }
    Ok(())
}
