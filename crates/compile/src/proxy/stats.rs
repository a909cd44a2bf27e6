//! `stats` of a proxy (manual, section 4.2, all `stats ...` keywords).

use std::time::Duration;

use syntax::Word;

use crate::draft::{Draft, PageDraft};
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step, tight};
use crate::units;

/// The keyword of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] =
    &[entry("stats", Places::ALL, stats, "The statistics page.", "stats uri /stats")];

fn stats(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let Some(word) = s.next() else {
        return Err(tight(
            s.fail(EXPECTS.replace("unknown stats parameter '{}'", "missing keyword in 'stats'")),
        ));
    };
    let name = word.text();
    if matches!(name, "admin" | "http-request") && p.kind.is_defaults() {
        return Err(tight(s.fail(format!("'stats {name}' not allowed in 'defaults' section."))));
    }
    // A page is inherited as a whole or not at all: the first word about one of its own makes a proxy begin
    // anew.
    let inherited = |page: &PageDraft| page.in_defaults && !p.kind.is_defaults();
    let known = p.stats.clone().filter(|page| !inherited(page));
    let silent =
        known.is_none() && (name == "hide-version" || name == "show-desc" && s.args.rest().is_empty());
    let mut page = known.unwrap_or_default();
    page.in_defaults = p.kind.is_defaults();
    setting(s, &mut page, name)?;
    if silent {
        // These make no page where there is none, and take away the one of the defaults.
        p.stats = None;
        return Ok(());
    }
    p.stats = Some(page);
    Ok(())
}

const EXPECTS: &str = "unknown stats parameter '{}', expects 'admin', 'uri', 'realm', 'auth', 'scope', 'enable', 'hide-version', 'show-node', 'show-desc' , 'show-legends' or 'show-version'.";

fn setting(s: &mut Statement<'_>, page: &mut PageDraft, name: &str) -> Step {
    match name {
        "enable" => {}
        "uri" => page.uri = Some(s.word("'uri' needs an URI prefix.")?.text().into()),
        "realm" => page.realm = Some(s.word("'realm' needs an realm name.")?.text().into()),
        "auth" => {
            let word = s.word("'auth' needs a user:password account.")?;
            let (user, password) = word.text().split_once(':').unwrap_or((word.text(), ""));
            if page.users.iter().any(|(name, _)| **name == *user) {
                let text = format!("uri auth: ignoring duplicated user '{user}'");
                s.notes.push(syntax::Diagnostic::warning(word.span(), text).styled(syntax::Style::Plain));
            } else {
                page.users.push((user.into(), password.into()));
            }
        }
        "scope" => page.scope.push(s.word("'scope' needs a proxy name.")?.text().into()),
        "refresh" => page.refresh = refresh(s)?,
        "hide-version" => page.show_version = false,
        "show-version" => page.show_version = true,
        "show-legends" => page.legends = true,
        "show-modules" => page.modules = true,
        "show-node" => page.node = Some(node(s)?),
        "show-desc" => {
            if s.peek().is_empty() && !s.around.described {
                let text = "'show-desc' requires a parameter or 'desc' to be set in the global section.";
                s.notes.push(tight(syntax::Diagnostic::warning(s.line.span(), text)));
            }
            let words = s.args.eat_rest();
            let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
            page.description = Some(Some(text).filter(|t| !t.is_empty()).map(Into::into));
        }
        "admin" => {
            if !matches!(s.peek(), "if" | "unless") {
                return Err(s.fail("'stats admin' requires either 'if' or 'unless' followed by a condition."));
            }
            page.admin.push(s.at);
        }
        "http-request" => page.rules.push(s.at),
        other => {
            let near = syntax::nearest(other, PARAMETERS.iter().copied());
            return Err(tight(s.fail(EXPECTS.replace("{}", other))).meant(near));
        }
    }
    Ok(())
}

/// The words that a slip may have meant.
const PARAMETERS: &[&str] = &[
    "admin",
    "uri",
    "realm",
    "auth",
    "scope",
    "enable",
    "refresh",
    "hide-version",
    "show-node",
    "show-desc",
    "show-legends",
    "show-version",
    "http-request",
];

/// `stats refresh <interval>`; none at all for zero.
fn refresh(s: &mut Statement<'_>) -> Step<Option<Duration>> {
    let word = s.word("'refresh' needs a positive interval.")?;
    let (seconds, odd) = units::tolerant_seconds(word.text()).map_err(|fault| match fault {
        units::TimeFault::Unexpected(c) => tight(
            s.fail(format!("unexpected character '{c}' in argument to stats refresh interval.")),
        ),
        units::TimeFault::Overflow => tight(s.fail(format!(
            "timer overflow in argument <{word}> to stats refresh interval, maximum value is 2147483647 s (~68 years)."
        ))),
    })?;
    if let Some(found) = odd {
        s.trailing(word, found);
    }
    Ok(Some(Duration::from_secs(seconds)).filter(|d| !d.is_zero()))
}

/// `stats show-node [<name>]`.
fn node(s: &mut Statement<'_>) -> Step<Option<Box<str>>> {
    let odd = |c: &u8| !(c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_'));
    let word = s.next();
    if word.is_some_and(|w| w.bytes().iter().any(odd)) {
        let text = "'stats show-node' invalid node name - should be a stringwith digits(0-9), letters(A-Z, a-z), hyphen(-) or underscode(_).";
        return Err(tight(s.fail(text)));
    }
    Ok(word.map(|w| w.text().into()))
}
