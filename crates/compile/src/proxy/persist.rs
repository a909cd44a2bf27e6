//! Persistence and retries: `cookie`, `persist`, `force-persist`, `retries`, `retry-on` (manual, section
//! 4.2).

use std::time::Duration;

use program::persist::{Cookie, CookieMode};
use program::proxy::RetryOn;
use syntax::Word;

use crate::draft::{Draft, LineRef};
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step, tight};
use crate::units::{self, TimeFault};

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry("cookie", Places::BACK, cookie, "Persistence by cookie.", "cookie SRV insert indirect nocache"),
    entry(
        "dynamic-cookie-key",
        Places::BACK,
        |s, p| {
            p.dynamic_key =
                Some(s.word("'dynamic-cookie-key' expects <secret_key> as argument.")?.bytes().into());
            Ok(())
        },
        "Key of computed cookie values.",
        "dynamic-cookie-key secret",
    )
    .default("none"),
    entry(
        "force-be-switch",
        Places::FRONT_ONLY,
        |s, p| conditional(s, &mut p.force_switch),
        "Rules may choose backends that are disabled or unpublished.",
        "force-be-switch if TRUE",
    ),
    entry(
        "force-persist",
        Places::BACK_ONLY,
        |s, p| conditional(s, &mut p.force_persist),
        "Persistence even to servers that are down.",
        "force-persist if TRUE",
    ),
    entry(
        "ignore-persist",
        Places::BACK_ONLY,
        |s, p| conditional(s, &mut p.ignore_persist),
        "No persistence.",
        "ignore-persist if TRUE",
    ),
    entry(
        "persist",
        Places::ALL,
        |s, p| {
            let word = s.word("missing persist method.")?;
            let name = match word.text().strip_prefix("rdp-cookie") {
                None => return Err(s.fail("unknown persist method.")),
                Some("") => "msts",
                Some(rest) => match rest.strip_prefix('(').map(|r| r.trim_end_matches(')')) {
                    None | Some("") => {
                        return Err(s.fail("persist rdp-cookie(name)' requires an rdp cookie name."));
                    }
                    Some(name) => name,
                },
            };
            p.rdp_cookie = Some(name.as_bytes().into());
            Ok(())
        },
        "Persistence by the cookie of RDP.",
        "persist rdp-cookie",
    ),
    entry(
        "retries",
        Places::BACK,
        |s, p| {
            p.retries = s.count("'retries' expects an integer argument (dispatch counts for one).")?;
            Ok(())
        },
        "Attempts beyond the first.",
        "retries 2",
    )
    .default("3"),
    entry(
        "retry-on",
        Places::ALL,
        retry_on,
        "What is tried again.",
        "retry-on conn-failure empty-response 503",
    )
    .default("conn-failure"),
    entry(
        "use-server",
        Places::BACK_ONLY,
        |s, p| {
            s.word("'use-server' expects a server name.")?;
            if !matches!(s.peek(), "if" | "unless") {
                return Err(s.fail("'use-server' requires either 'if' or 'unless' followed by a condition."));
            }
            super::rules::stage(s, p, "use-server");
            p.use_server.push(s.at);
            Ok(())
        },
        "The server for some requests.",
        "",
    ),
];

fn conditional(s: &mut Statement<'_>, list: &mut Vec<LineRef>) -> Step {
    if !matches!(s.peek(), "if" | "unless") {
        let name = s.keyword();
        return Err(s.fail(format!("'{name}' requires either 'if' or 'unless' followed by a condition.")));
    }
    list.push(s.at);
    Ok(())
}

fn cookie(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let name = s.word("'cookie' expects <cookie_name> as argument.")?;
    let mut c = Cookie::named(name.bytes(), CookieMode::Insert);
    // Attributes are the one part of a `defaults` section's cookie that another `cookie` line keeps.
    c.attrs = p.cookie.take().map(|inherited| inherited.attrs).unwrap_or_default();
    let mut modes = Vec::new();
    let mut dynamic = false;
    while let Some(word) = s.next() {
        match word.text() {
            "rewrite" => modes.push(CookieMode::Rewrite),
            "insert" => modes.push(CookieMode::Insert),
            "prefix" => modes.push(CookieMode::Prefix),
            "indirect" => c.indirect = true,
            "nocache" => c.nocache = true,
            "postonly" => c.postonly = true,
            "preserve" => c.preserve = true,
            "httponly" => c.httponly = true,
            "secure" => c.secure = true,
            "dynamic" => dynamic = true,
            "domain" => c.domains.push(domain(s)?),
            "attr" => c.attrs.push(attribute(s)?),
            "maxidle" => c.maxidle = age(s, "maxidle")?,
            "maxlife" => c.maxlife = age(s, "maxlife")?,
            _ => return Err(s.fail("'cookie' supports 'rewrite', 'insert', 'prefix', 'indirect', 'nocache', 'postonly', 'domain', 'maxidle', 'dynamic', 'maxlife' and 'attr' options.")),
        }
    }
    modes.dedup();
    if modes.len() > 1 {
        return Err(s.fail("cookie 'rewrite', 'insert' and 'prefix' modes are incompatible."));
    }
    c.mode = modes.first().copied().unwrap_or(CookieMode::Passive);
    if c.mode == CookieMode::Rewrite && c.indirect {
        return Err(s.fail("cookie 'rewrite' and 'indirect' modes are incompatible."));
    }
    if c.preserve && !(c.indirect || c.mode == CookieMode::Insert) {
        return Err(s.fail("cookie 'preserve' requires at least 'insert' or 'indirect'."));
    }
    // The key comes from `dynamic-cookie-key`, which may follow.
    c.dynamic_key = dynamic.then(Box::default);
    p.cookie = Some(c);
    Ok(())
}

fn domain(s: &mut Statement<'_>) -> Step<Box<str>> {
    let word = s.word("'domain' expects <domain> as argument.")?;
    if let Some(odd) =
        word.text().chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')))
    {
        return Err(s.fail(format!("character '{odd}' is not permitted in attribute value.")));
    }
    if !word.text().contains('.') {
        let text = format!(
            "domain '{word}' contains no embedded dot, this configuration may not work properly (see RFC6265#5.2.3)."
        );
        s.notes.push(tight(syntax::Diagnostic::warning(word.span(), text)));
    }
    Ok(word.text().into())
}

fn attribute(s: &mut Statement<'_>) -> Step<Box<str>> {
    let word = s.word("'attr' expects <value> as argument.")?;
    match word.text().chars().find(|c| c.is_control() || *c == ';') {
        Some(odd) => Err(s.fail(format!("character '{odd}' is not permitted in attribute value."))),
        None => Ok(word.text().into()),
    }
}

/// A time in seconds; what stands behind its unit is passed over.
/// An age of zero is none.
fn age(s: &mut Statement<'_>, name: &str) -> Step<Option<Duration>> {
    let text = match s.word(format!("'{name}' expects <idletime> in seconds as argument.")) {
        Ok(word) => match units::tolerant_seconds(word.text()) {
            Ok((seconds, _)) => return Ok((seconds > 0).then(|| Duration::from_secs(seconds))),
            Err(TimeFault::Unexpected(c)) => format!("unexpected character '{c}' in argument to <{name}>."),
            Err(TimeFault::Overflow) => format!(
                "timer overflow in argument <{word}> to <{name}>, maximum value is 2147483647 s (~68 years)."
            ),
        },
        Err(missing) => return Err(tight(missing)),
    };
    Err(tight(s.fail(text)))
}

fn retry_on(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if !p.kind.is_back() && !p.kind.is_defaults() {
        return Err(s.fail("'retry-on' only available in backend or listen section"));
    }
    if s.args.peek().is_none() {
        return Err(s.fail("'retry-on' needs at least one keyword to specify when to retry"));
    }
    let alone = s.args.rest().len() == 1;
    let mut on = RetryOn { conn_failure: false, ..RetryOn::default() };
    while let Some(word) = s.next() {
        match word.text() {
            "none" if alone => {}
            "none" => return Err(s.fail("'retry-on' 'none' keyword only usable alone")),
            "conn-failure" => on.conn_failure = true,
            "empty-response" => on.empty_response = true,
            "response-timeout" => on.response_timeout = true,
            "junk-response" => on.junk_response = true,
            "0rtt-rejected" => on.early_rejected = true,
            "all-retryable-errors" => {
                let more = [500, 502, 503, 504];
                (on.conn_failure, on.empty_response, on.junk_response) = (true, true, true);
                (on.response_timeout, on.early_rejected) = (true, true);
                on.statuses.extend(more);
            }
            code => match code.parse() {
                Ok(status @ (401 | 403 | 404 | 408 | 421 | 425 | 429 | 500 | 501 | 502 | 503 | 504)) => {
                    on.statuses.push(status)
                }
                _ => return Err(s.fail(format!("'retry-on': unknown keyword '{}'", Word::text(word)))),
            },
        }
    }
    p.retry_on = on;
    Ok(())
}
