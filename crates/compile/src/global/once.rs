//! Global keywords that count once: the first value stays, and a second line is told so. Which keywords do
//! stands in their entries; here is what they have in common.

use syntax::Diagnostic;

use super::draft::GlobalDraft;
use crate::keyword::{Keyword, Once, Said};
use crate::statement::{Statement, Step, tight};
use crate::units;

const AGAIN: &str = "'$' already specified. Continuing.";
const AGAIN_BARE: &str = "$ already specified. Continuing.";
const IGNORING: &str = "ignoring '$' which was already specified";
const FIRST: Once = Once { setting: None, zero_unsets: false, ends: true, said: Said::Alert(AGAIN) };

pub(super) const WORD: &Once = &FIRST;
/// A path, behind which further words are not looked at.
pub(super) const PATH: &Once = &Once { ends: false, ..FIRST };
pub(super) const PIDFILE: &Once = &Once { said: Said::Warning(AGAIN), ..FIRST };
pub(super) const CHROOT: &Once =
    &Once { said: Said::Warning("'$' is already specified. Continuing."), ..FIRST };
pub(super) const NUMBER: &Once = &Once { zero_unsets: true, ..FIRST };
pub(super) const TUNING: &Once = &Once { zero_unsets: true, said: Said::Warning(AGAIN), ..FIRST };
/// Buffers of datagram sockets.
pub(super) const DATAGRAMS: &Once = &Once { zero_unsets: true, said: Said::Warning(IGNORING), ..FIRST };
pub(super) const SPREAD: &Once = &Once { zero_unsets: true, said: Said::Tight(AGAIN_BARE), ..FIRST };
pub(super) const UID: &Once = &Once {
    setting: Some("uid"),
    zero_unsets: true,
    said: Said::Alert("user/uid already specified. Continuing."),
    ..FIRST
};
pub(super) const USER: &Once = &Once { zero_unsets: false, ..*UID };
pub(super) const GID: &Once = &Once {
    setting: Some("gid"),
    zero_unsets: true,
    said: Said::Alert("group/gid already specified. Continuing."),
    ..FIRST
};
/// A group by its name has words of its own.
pub(super) const GROUP: &Once = &Once {
    setting: Some("gid"),
    said: Said::Alert("gid/group was already specified. Continuing."),
    ..FIRST
};

/// Reads a line of a keyword, unless what it sets had its value before.
pub(super) fn line(s: &mut Statement<'_>, g: &mut GlobalDraft, keyword: &Keyword<GlobalDraft>) -> Step {
    let Some(once) = keyword.once else {
        return (keyword.set)(s, g);
    };
    let setting = once.setting.unwrap_or(keyword.name);
    if !g.once.contains(&setting) {
        let unset = once.zero_unsets && units::lenient(s.peek()) == 0;
        (keyword.set)(s, g)?;
        if !unset {
            g.once.push(setting);
        }
        return Ok(());
    }
    s.next();
    if once.ends {
        s.end()?;
    }
    let fill = |text: &str| text.replace('$', keyword.name);
    let diagnostic = match once.said {
        Said::Alert(text) => s.fail(fill(text)).tolerated(),
        Said::Tight(text) => tight(s.fail(fill(text)).tolerated()),
        Said::Warning(text) => Diagnostic::warning(s.line.span(), fill(text)),
    };
    s.notes.push(diagnostic);
    Ok(())
}
