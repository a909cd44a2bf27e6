//! Lines that hold conditions, actions or expressions: kept as positions until all names are known.

use syntax::Word;

use super::{entry, placed};
use crate::draft::{Draft, Kind};
use crate::keyword::{Keyword, Places};
use crate::statement::{Statement, Step};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry(
        "acl",
        Places::RULES,
        |s, p| {
            let name = s.word("character '' is not permitted in acl name ''.")?;
            if let Some(odd) = name
                .text()
                .chars()
                .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')))
            {
                return Err(s.fail(format!("character '{odd}' is not permitted in acl name '{name}'.")));
            }
            p.acls.push(s.at);
            Ok(())
        },
        "A named condition.",
        "acl local src 127.0.0.1",
    ),
    entry("http-request", Places::RULES, rule, "What is done with requests.", "http-request deny if TRUE"),
    entry(
        "http-response",
        Places::RULES,
        rule,
        "What is done with responses.",
        "http-response deny if FALSE",
    ),
    entry(
        "http-after-response",
        Places::RULES,
        rule,
        "What is done with all responses, ours too.",
        "http-after-response set-header X y",
    ),
    entry(
        "monitor",
        Places::FRONT_ONLY,
        |s, p| {
            if s.next().map_or("", Word::text) != "fail" {
                return Err(s.fail("'monitor' only supports 'fail'."));
            }
            if !matches!(s.peek(), "if" | "unless") {
                return Err(
                    s.fail("'monitor fail' requires either 'if' or 'unless' followed by a condition.")
                );
            }
            stage(s, p, "monitor fail");
            p.monitor_fail.push(s.at);
            Ok(())
        },
        "When 'monitor-uri' answers 503.",
        "monitor fail if FALSE",
    ),
    entry(
        "monitor-uri",
        Places::FRONT,
        |s, p| {
            p.monitor_uri = Some(s.word("'monitor-uri' expects an URI.")?.bytes().into());
            s.end()
        },
        "Address that says we are alive.",
        "monitor-uri /alive",
    ),
    entry(
        "redirect",
        Places::PROXIES,
        |s, p| {
            stage(s, p, "redirect");
            p.rules.push(s.at);
            Ok(())
        },
        "Send clients elsewhere.",
        "redirect scheme https if FALSE",
    ),
    entry(
        "tcp-request",
        Places::ALL,
        |s, p| tcp(s, p, true),
        "What is done with connections and their bytes.",
        "tcp-request inspect-delay 5s",
    ),
    entry(
        "tcp-response",
        Places::ALL,
        |s, p| tcp(s, p, false),
        "What is done with the server's bytes.",
        "tcp-response inspect-delay 5s",
    ),
    entry(
        "use_backend",
        Places::FRONT_ONLY,
        |s, p| {
            s.word("'use_backend' expects a backend name.")?;
            match s.peek() {
                "" | "if" | "unless" => {}
                other => {
                    let text = format!(
                        "unexpected keyword '{other}' after switching rule, only 'if' and 'unless' are allowed."
                    );
                    return Err(s.fail_at(s.args.here(), text));
                }
            }
            stage(s, p, "use_backend");
            p.switching.push(s.at);
            Ok(())
        },
        "The backend for some requests.",
        "",
    ),
];

/// Kinds of rules in the order in which they are processed, with their articles.
const STAGES: &[(&str, &str)] = &[
    ("tcp-request connection", "a"),
    ("tcp-request session", "a"),
    ("tcp-request content", "a"),
    ("monitor fail", "a"),
    ("http-request", "an"),
    ("redirect", "a"),
    ("use_backend", "a"),
    ("use-server", "a"),
];

/// Notes a rule of a kind, and warns if one that is processed later stands above it.
pub(crate) fn stage(s: &mut Statement<'_>, p: &mut Draft, name: &str) {
    let Some(at) = STAGES.iter().position(|(n, _)| *n == name) else { return };
    let later = STAGES.iter().enumerate().skip(at + 1).find(|(i, _)| p.stages & (1 << i) != 0);
    if let Some((_, (other, article))) = later {
        let text =
            format!("a '{name}' rule placed after {article} '{other}' rule will still be processed before.");
        s.notes.warning(s.line.span(), text);
    }
    p.stages |= 1 << at;
}

fn rule(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    stage(s, p, s.keyword());
    super::capture::of_rule(s, p);
    p.rules.push(s.at);
    Ok(())
}

fn tcp(s: &mut Statement<'_>, p: &mut Draft, request: bool) -> Step {
    let keyword = s.keyword();
    let what = s.peek();
    if what.is_empty() {
        return Err(s.fail(format!("missing argument for '{keyword}' in {}", p.label())));
    }
    match (what, request) {
        ("inspect-delay", _) => delay(s, p, request),
        ("connection" | "session", true) => {
            if !p.kind.is_front() && p.kind != (Kind::Defaults { named: true }) {
                return Err(match p.kind {
                    Kind::Defaults { .. } => not_in_anonymous(s),
                    _ => s.fail(format!(
                        "{keyword} {what} is not allowed because backend {} is not a frontend",
                        p.name
                    )),
                });
            }
            stage(s, p, if what == "session" { "tcp-request session" } else { "tcp-request connection" });
            p.rules.push(s.at);
            Ok(())
        }
        ("content", true) => {
            if placed(s, p, keyword, Places::RULES)? {
                stage(s, p, "tcp-request content");
                p.switches |= s.line.args().get(1).is_some_and(|w| w.text() == "switch-mode");
                super::capture::of_rule(s, p);
                p.rules.push(s.at);
            }
            Ok(())
        }
        ("content", false) => {
            if !p.kind.is_back() && p.kind != (Kind::Defaults { named: true }) {
                return Err(s.fail("tcp-response content is only allowed in 'backend' sections or 'defaults' section with a name"));
            }
            p.rules.push(s.at);
            Ok(())
        }
        _ => {
            let choices = if request {
                "'inspect-delay', 'connection', or 'content'"
            } else {
                "'inspect-delay' or 'content'"
            };
            let text = format!("'{keyword}' expects {choices} in {} (got '{what}')", p.label());
            Err(s.fail_at(s.args.here(), text))
        }
    }
}

fn not_in_anonymous(s: &Statement<'_>) -> syntax::Diagnostic {
    let keyword = s.keyword();
    s.fail_at(s.line.keyword().span(), format!("'{keyword}' not allowed in anonymous 'defaults' section."))
}

fn delay(s: &mut Statement<'_>, p: &mut Draft, request: bool) -> Step {
    s.next();
    let keyword = s.keyword();
    let expects =
        format!("'{keyword} inspect-delay' expects a positive delay in milliseconds, in {}", p.label());
    let word = s.word(&*expects)?;
    let ms = units::millis(word.text()).map_err(|fault| match fault {
        units::TimeFault::Unexpected(c) => s.fail(format!("{expects} (unexpected character '{c}')")),
        _ => s.fail(expects.clone()),
    })?;
    let field = if request { &mut p.timeouts.inspect_request } else { &mut p.timeouts.inspect_response };
    *field = units::limit(ms);
    Ok(())
}
