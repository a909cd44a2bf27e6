//! Health checks of a backend: `option httpchk` and its kin, `http-check`, `tcp-check` (manual, section 4.2).

use std::sync::Arc;

use syntax::Word;

use crate::check::Canned;
use crate::draft::{CheckKind, Draft, LineRef};
use crate::keyword::{Keyword, Places, entry, placed};
use crate::statement::{Statement, Step};

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry("http-check", Places::ALL, http_check, "A step of an HTTP check.", "http-check expect status 200"),
    entry("tcp-check", Places::ALL, tcp_check, "A step of a TCP check.", "tcp-check connect"),
    entry(
        "external-check",
        Places::ALL,
        external_check,
        "A program that checks servers.",
        "external-check path /usr/bin:/bin",
    ),
];

/// The options that choose a check.
pub(crate) const OPTIONS: &[&str] = &[
    "httpchk",
    "tcp-check",
    "external-check",
    "ldap-check",
    "mysql-check",
    "pgsql-check",
    "redis-check",
    "smtpchk",
    "spop-check",
    "ssl-hello-chk",
];

/// `option <check>`, the name already eaten.
pub(crate) fn option(s: &mut Statement<'_>, p: &mut Draft, name: &str) -> Step {
    let kind = match name {
        "httpchk" => httpchk(s)?,
        "tcp-check" => {
            nothing(s, name)?;
            CheckKind::Tcp
        }
        "redis-check" => {
            nothing(s, name)?;
            canned(crate::check::redis())
        }
        "ldap-check" => {
            nothing(s, name)?;
            canned(crate::check::ldap())
        }
        "ssl-hello-chk" => {
            nothing(s, name)?;
            canned(crate::check::ssl_hello())
        }
        "smtpchk" => {
            let hello = s.next().map_or("HELO", Word::text);
            let domain = s.next().map_or("localhost", Word::text);
            nothing(s, name)?;
            let known = matches!(hello, "HELO" | "EHLO");
            let (hello, domain) = if known { (hello, domain) } else { ("HELO", "localhost") };
            canned(crate::check::smtp(hello, domain))
        }
        "pgsql-check" => {
            const EXPECTS: &str = "'option pgsql-check' expects 'user <username>' as argument.";
            if s.next().map_or("", Word::text) != "user" {
                let given = s.line.args().len() > 2;
                let only = "'option pgsql-check' only supports optional values: 'user'.";
                return Err(s.fail(if given { only } else { EXPECTS }));
            }
            let user = s.word(EXPECTS)?;
            nothing(s, name)?;
            canned(crate::check::pgsql(user.bytes()))
        }
        "mysql-check" => mysql(s)?,
        "spop-check" => {
            nothing(s, name)?;
            canned(crate::check::spop())
        }
        "external-check" => {
            nothing(s, name)?;
            CheckKind::External
        }
        _ => return Err(s.fail(format!("'option {name}' is not supported yet by Harrier (planned)"))),
    };
    p.choose_check(kind);
    Ok(())
}

/// Adds a rule. The first one of a section takes the place of all that were inherited.
fn add(rules: &mut Vec<LineRef>, at: LineRef) {
    rules.retain(|known| known.section == at.section);
    rules.push(at);
}

fn canned(steps: Vec<Canned>) -> CheckKind {
    CheckKind::Canned(Arc::from(steps))
}

fn nothing(s: &mut Statement<'_>, name: &str) -> Step {
    match s.next() {
        None => Ok(()),
        Some(extra) => Err(s.fail(format!("'option {name}' cannot handle unexpected argument '{extra}'."))),
    }
}

/// `external-check command <program>`, `external-check path <directories>`.
fn external_check(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let what = s.next().map_or("", Word::text);
    if what.is_empty() {
        return Err(s.fail("missing argument after 'external-check'."));
    }
    let field = match what {
        "command" => &mut p.external_command,
        "path" => &mut p.external_path,
        other => {
            let text = format!("'external-check' only supports 'command' and 'path'. but got '{other}'.");
            return Err(s.fail(text));
        }
    };
    let word = s.word(format!("missing argument after '{what}'."))?;
    *field = Some(word.text().into());
    s.end()
}

/// `option httpchk [[method] uri [version [host]]]`; the host is a format. Header fields used to be smuggled
/// in behind the version.
fn httpchk(s: &mut Statement<'_>) -> Step<CheckKind> {
    let first = s.next();
    let second = s.next();
    let (method, uri) = match (first, second) {
        (None, _) => (&b"OPTIONS"[..], None),
        (Some(uri), None) => (&b"OPTIONS"[..], Some(uri.bytes())),
        (Some(method), Some(uri)) => (method.bytes(), Some(uri.bytes())),
    };
    let version = s.next().map_or(&b""[..], Word::bytes);
    let host = s.next().map(|w| w.bytes().into());
    if let Some(extra) = s.next() {
        return Err(s.fail(format!("'option httpchk' cannot handle unexpected argument '{extra}'.")));
    }
    if version.iter().any(|b| matches!(b, b'\r' | b'\n')) {
        let text = "'option httpchk' : hiding headers or body at the end of the version string is unsupported.Use 'http-check send' directive instead..";
        return Err(s.fail(text).help(
            "write 'http-check send meth ... uri ... ver HTTP/1.1 hdr <name> <value>' on a line of its own",
        ));
    }
    Ok(CheckKind::Http { method: method.into(), uri: uri.map(Into::into), version: version.into(), host })
}

fn mysql(s: &mut Statement<'_>) -> Step<CheckKind> {
    match s.next().map_or("", Word::text) {
        "" => Ok(canned(crate::check::mysql(None, true))),
        "user" => {
            let user = s.word("'option mysql-check user' expects <username> as argument.")?;
            let modern = match s.next().map_or("", Word::text) {
                "" | "post-41" | "post-80" => true,
                "pre-41" => false,
                other => {
                    let text = format!(
                        "keyword 'user' only supports 'post-41', 'pre-41' and 'post-80' (got '{other}')."
                    );
                    return Err(s.fail(text));
                }
            };
            nothing(s, "mysql-check")?;
            Ok(canned(crate::check::mysql(Some(user.bytes()), modern)))
        }
        other => {
            Err(s
                .fail(format!("'option mysql-check' only supports optional values: 'user' (got '{other}').")))
        }
    }
}

fn http_check(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    placed(s, p, "http-check", Places::BACK)?;
    let what = s.peek();
    let name = what.split('(').next().unwrap_or_default();
    const KNOWN: &[&str] = &[
        "disable-on-404",
        "send-state",
        "comment",
        "connect",
        "send",
        "expect",
        "set-var-fmt",
        "set-var",
        "unset-var",
    ];
    if !KNOWN.contains(&name) {
        let text = format!(
            "'http-check' only supports 'disable-on-404', 'send-state', 'comment', 'connect', 'send', 'expect', 'set-var-fmt(*)', 'set-var(*)', 'unset-var(*)'. but got '{what}'"
        );
        return Err(s.fail_at(s.args.here(), text).meant(syntax::nearest(what, KNOWN.iter().copied())));
    }
    if matches!(name, "disable-on-404" | "send-state") {
        s.next();
        s.end()?;
    }
    match name {
        "disable-on-404" => p.disable_on_404.push(s.at.section),
        "send-state" => p.send_state.push(s.at.section),
        _ => add(&mut p.http_checks, s.at),
    }
    Ok(())
}

fn tcp_check(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    placed(s, p, "tcp-check", Places::BACK)?;
    let what = s.peek();
    let name = what.split('(').next().unwrap_or_default();
    const KNOWN: &[&str] = &[
        "comment",
        "connect",
        "send",
        "send-lf",
        "send-binary",
        "send-binary-lf",
        "expect",
        "set-var-fmt",
        "set-var",
        "unset-var",
    ];
    if !KNOWN.contains(&name) {
        let text = format!(
            "'tcp-check' only supports 'comment', 'connect', 'send', 'send-binary', 'expect', 'set-var-fmt(*)', 'set-var(*)', 'unset-var(*)'. but got '{what}'"
        );
        return Err(s.fail_at(s.args.here(), text).meant(syntax::nearest(what, KNOWN.iter().copied())));
    }
    add(&mut p.tcp_checks, s.at);
    Ok(())
}
