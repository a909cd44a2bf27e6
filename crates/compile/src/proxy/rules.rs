//! Lines that hold conditions, actions or expressions: kept as positions until all names are known.

use syntax::Word;

use crate::draft::{Draft, Kind};
use crate::keyword::{Keyword, Places, entry, placed};
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
    )
    .default("none"),
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
    ("tcp-response content", "a"),
    ("http-response", "an"),
];

/// How many of them are about requests.
const REQUESTS: usize = 8;

/// Notes a rule of a kind, and warns if one of the same side that is processed later stands above it.
pub(crate) fn stage(s: &mut Statement<'_>, p: &mut Draft, name: &str) {
    let Some(at) = STAGES.iter().position(|(n, _)| *n == name) else { return };
    let end = if at < REQUESTS { REQUESTS } else { STAGES.len() };
    let later = STAGES.iter().enumerate().take(end).skip(at + 1).find(|(i, _)| p.stages & (1 << i) != 0);
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
        let label = if request { section_label(p) } else { p.label() };
        return Err(s.fail(format!("missing argument for '{keyword}' in {label}")));
    }
    match (what, request) {
        ("inspect-delay", _) => delay(s, p, request),
        ("connection" | "session", true) => {
            if !p.kind.is_front() && p.kind != (Kind::Defaults { named: true }) {
                return Err(match p.kind {
                    Kind::Defaults { .. } => not_in_anonymous(s, what),
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
        ("content", true) if p.kind == (Kind::Defaults { named: false }) => Err(not_in_anonymous(s, what)),
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
            stage(s, p, "tcp-response content");
            p.rules.push(s.at);
            Ok(())
        }
        _ => {
            let choices = if request {
                "'inspect-delay', 'connection', or 'content'"
            } else {
                "'inspect-delay' or 'content'"
            };
            let label = if request { section_label(p) } else { p.label() };
            let text = format!("'{keyword}' expects {choices} in {label} (got '{what}')");
            Err(s.fail_at(s.args.here(), text))
        }
    }
}

/// How messages about the first words of these rules name their section.
fn section_label(p: &Draft) -> String {
    if p.kind.is_defaults() { "defaults section".into() } else { p.label() }
}

fn not_in_anonymous(s: &Statement<'_>, what: &str) -> syntax::Diagnostic {
    let keyword = s.keyword();
    let text = format!("{keyword} {what} is not allowed in anonymous 'defaults' sections");
    s.fail_at(s.line.keyword().span(), text)
}

fn delay(s: &mut Statement<'_>, p: &mut Draft, request: bool) -> Step {
    s.next();
    let keyword = s.keyword();
    let expects =
        format!("'{keyword} inspect-delay' expects a positive delay in milliseconds, in {}", p.label());
    let anonymous = p.kind == (Kind::Defaults { named: false });
    if request && anonymous {
        return Err(s.fail("tcp-request inspect-delay is not allowed in anonymous 'defaults' sections"));
    }
    if !request && (anonymous || p.kind == Kind::Frontend) {
        return Err(s.fail("tcp-response inspect-delay is only allowed in 'backend' sections or 'defaults' section with a name"));
    }
    let word = s.word(&*expects)?;
    let (ms, trailing) = units::tolerant(word.text()).map_err(|fault| match fault {
        units::TimeFault::Unexpected(c) => s.fail(format!("{expects} (unexpected character '{c}')")),
        units::TimeFault::Overflow => s.fail(format!(
            "{expects} (timer overflow in '{word}', maximum value is 2147483647 ms or ~24.8 days)"
        )),
    })?;
    if let Some(found) = trailing {
        s.trailing(word, found);
    }
    let label = p.label();
    let field = match request {
        true => &mut p.timeouts.inspect_request,
        false => &mut p.timeouts.inspect_response,
    };
    // One that was inherited stays, too.
    if field.is_some() {
        let text = format!("ignoring {keyword} inspect-delay (was already defined) in {label}");
        s.notes.warning(s.line.span(), text);
        return Ok(());
    }
    *field = units::limit(ms);
    Ok(())
}
