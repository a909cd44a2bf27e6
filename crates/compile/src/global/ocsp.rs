//! How OCSP responses are kept fresh, and the HTTP client that asks for them (manual, sections 3.1, 3.2 and
//! 3.12).

use std::time::Duration;

use super::draft::{GlobalDraft, entry};
use crate::global::tls::verify;
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};
use crate::tls::list::on_off;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry(
        "ocsp-update.mode",
        |s, g| {
            flag(s, &mut g.tls.ocsp_update);
            Ok(())
        },
        "Whether OCSP responses are updated unless a certificate says otherwise.",
        "ocsp-update.mode off",
    )
    .default("off"),
    entry("ocsp-update.maxdelay", most, "Longest time between two updates.", "ocsp-update.maxdelay 3600")
        .default("3600"),
    entry("ocsp-update.mindelay", least, "Shortest time between two updates.", "ocsp-update.mindelay 300")
        .default("300"),
    entry("tune.ssl.ocsp-update.maxdelay", most, "The former name of ocsp-update.maxdelay.", ""),
    entry("tune.ssl.ocsp-update.mindelay", least, "The former name of ocsp-update.mindelay.", ""),
    entry(
        "ocsp-update.disable",
        |s, g| {
            flag(s, &mut g.tls.ocsp.disabled);
            Ok(())
        },
        "OCSP responses are never asked for.",
        "ocsp-update.disable on",
    )
    .default("off"),
    entry(
        "ocsp-update.httpproxy",
        |s, g| {
            let word = s.word(format!("'{}' expects an argument.", s.keyword()))?.text();
            s.end()?;
            let with_port = || Some(std::net::SocketAddr::new(word.parse().ok()?, 80));
            let proxy = word.parse().ok().or_else(with_port);
            let wrong = || s.fail(format!("'{}' : invalid address '{word}'.", s.keyword()));
            g.tls.ocsp.proxy = Some(proxy.ok_or_else(wrong)?);
            Ok(())
        },
        "HTTP proxy through which OCSP responses are asked for.",
        "ocsp-update.httpproxy 127.0.0.1:3128",
    ),
    entry(
        "httpclient.retries",
        |s, g| {
            g.tls.ocsp.retries = s.count("'httpclient.retries' expects an integer argument.")?;
            Ok(())
        },
        "How often a responder is asked again that does not answer.",
        "httpclient.retries 3",
    )
    .default("3"),
    entry(
        "httpclient.timeout.connect",
        |s, g| {
            s.at_most_one()?;
            let name = s.keyword();
            let word = s.word(format!("'{name}' expects an integer argument."))?;
            let ms = s.millis(word, name, |c| format!("unexpected character '{c}' in '{name}'"))?;
            g.tls.ocsp.connect = Duration::from_millis(ms);
            s.end()
        },
        "How long connecting to a responder may take.",
        "httpclient.timeout.connect 5s",
    )
    .default("5s"),
    entry(
        "httpclient.ssl.ca-file",
        |s, g| {
            let path = s.next().map_or("", |w| w.text());
            g.tls.client_authorities = Some(path.into());
            s.end()
        },
        "Authorities of responders that are asked over TLS.",
        "httpclient.ssl.ca-file @system-ca",
    ),
    entry(
        "httpclient.ssl.verify",
        |s, g| verify(s, &mut g.tls.client_verify),
        "Whether certificates of responders that are asked over TLS are verified.",
        "httpclient.ssl.verify required",
    ),
    entry(
        "httpclient.resolvers.prefer",
        |s, g| {
            s.at_most_one()?;
            let expects = format!("'{}' expects 'ipv4' or 'ipv6' as argument.", s.keyword());
            g.tls.ocsp.prefer_v4 = match s.word(expects.clone())?.text() {
                "ipv4" => true,
                "ipv6" => false,
                _ => return Err(s.fail(expects)),
            };
            s.end()
        },
        "Which addresses calls of the process's own take first.",
        "httpclient.resolvers.prefer ipv4",
    )
    .default("ipv6"),
    entry(
        "httpclient.resolvers.id",
        |s, g| {
            let name = s.next().map_or("", |w| w.text());
            s.end()?;
            g.tls.client_resolvers = Some(name.into());
            Ok(())
        },
        "The section by which calls of the process's own look names up.",
        "httpclient.resolvers.id default",
    )
    .default("default"),
    entry(
        "httpclient.resolvers.disabled",
        |s, g| {
            g.tls.client_unresolved = match s.next().map_or("", |w| w.text()) {
                "on" => true,
                "off" => false,
                other => {
                    let text = format!("'{}' expects either 'on' or 'off' but got '{other}'.", s.keyword());
                    return Err(s.fail(text));
                }
            };
            Ok(())
        },
        "Calls of the process's own look no names up.",
        "httpclient.resolvers.disabled on",
    )
    .default("off"),
];

/// `on` or `off`; HAProxy passes over anything else, with a warning.
fn flag(s: &mut Statement<'_>, place: &mut bool) {
    let word = s.next().map_or("", |w| w.text());
    match on_off(s.keyword(), word) {
        Ok(on) => *place = on,
        Err(_) => s.warn(format!("'{}' : expecting <on|off>", s.keyword())),
    }
    s.args.eat_rest();
}

fn delay(s: &mut Statement<'_>) -> Step<i64> {
    let keyword = s.keyword();
    Ok(s.integer(format!("'{keyword}' expects an integer argument."))?.clamp(1, 1 << 31))
}

fn most(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    g.tls.ocsp.pace.most = delay(s)?;
    in_order(s, g, "can not be lower than tune.ssl.ocsp-update.mindelay.")
}

fn least(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    g.tls.ocsp.pace.least = delay(s)?;
    in_order(s, g, "can not be higher than tune.ssl.ocsp-update.maxdelay.")
}

fn in_order(s: &Statement<'_>, g: &GlobalDraft, wrong: &str) -> Step {
    let pace = g.tls.ocsp.pace;
    if pace.least > pace.most {
        return Err(s.fail(format!("'{}' {wrong}", s.keyword())));
    }
    Ok(())
}
