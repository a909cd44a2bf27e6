//! Proxy keywords that are gone, and those of parts that are not built yet.

use crate::draft::Draft;
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step, tight};

const fn later(name: &'static str) -> Keyword<Draft> {
    entry(name, Places::ALL, not_yet, "Not built yet.", "")
}

const fn gone(name: &'static str) -> Keyword<Draft> {
    entry(name, Places::ALL, removed, "Removed.", "")
}

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    later("crt"),
    entry(
        "ssl-f-use",
        Places::ALL,
        crate::tls::stores::frontend_uses,
        "A certificate for all TLS listeners of the frontend.",
        "",
    ),
    later("quic-initial"),
    gone("clitimeout"),
    gone("contimeout"),
    gone("srvtimeout"),
    gone("bind-process"),
    gone("block"),
    gone("reqadd"),
    gone("reqallow"),
    gone("reqdel"),
    gone("reqdeny"),
    gone("reqiallow"),
    gone("reqidel"),
    gone("reqideny"),
    gone("reqipass"),
    gone("reqirep"),
    gone("reqitarpit"),
    gone("reqpass"),
    gone("reqrep"),
    gone("reqtarpit"),
    gone("rspadd"),
    gone("rspdel"),
    gone("rspdeny"),
    gone("rspidel"),
    gone("rspideny"),
    gone("rspirep"),
    gone("rsprep"),
    gone("appsession"),
    gone("dispatch"),
    gone("transparent"),
    gone("monitor-net"),
    gone("redisp"),
    gone("redispatch"),
    gone("grace"),
];

fn not_yet(s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let keyword = s.line.keyword();
    Err(s.fail_at(keyword.span(), format!("'{keyword}' is not supported yet by Harrier (planned)")))
}

/// What stands in place of the old request and response rules.
fn successor(name: &str) -> Option<&'static str> {
    Some(match name {
        "block" => "'http-request deny' which uses the exact same syntax",
        "reqadd" => "'http-request add-header' instead",
        "reqallow" | "reqiallow" | "reqpass" | "reqipass" => "'http-request allow' instead",
        "reqdel" | "reqidel" => "'http-request del-header' instead",
        "reqdeny" | "reqideny" => "'http-request deny' instead",
        "reqtarpit" | "reqitarpit" => "'http-request tarpit' instead",
        "reqirep" => "'http-request replace-header' instead",
        "reqrep" => {
            "'http-request replace-path', 'http-request replace-uri' or 'http-request replace-header' instead"
        }
        "rspadd" => "'http-response add-header' instead",
        "rspdel" | "rspidel" => "'http-response del-header' instead",
        "rspdeny" | "rspideny" => "'http-response deny' instead",
        "rsprep" | "rspirep" => "'http-response replace-header' instead",
        _ => return None,
    })
}

fn removed(s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let name = s.keyword();
    let fail = |text: String| Err(s.fail_at(s.line.keyword().span(), text));
    if let Some(new) = successor(name) {
        return fail(format!(
            "The '{name}' directive is not supported anymore since HAProxy 2.1. Use {new}."
        ));
    }
    match name {
        "clitimeout" | "contimeout" | "srvtimeout" => fail(timeout(name).unwrap_or_default()),
        "appsession" => fail("'appsession' is not supported anymore since HAProxy 1.6.".into()),
        "monitor-net" => fail("'monitor-net' is not supported anymore. Use 'http-request return status 200 if { src <network> }' instead.".into()),
        "redisp" | "redispatch" => fail(format!("keyword '{name}' is not supported anymore. Use 'option redispatch' instead.")),
        "grace" => {
            let text = "the 'grace' keyword is not supported any more since HAProxy version 2.5.";
            Err(tight(s.fail_at(s.line.keyword().span(), text)))
        }
        "dispatch" => {
            let target = s.args.rest().first().map_or("", |w| w.text());
            let text = format!("support for 'dispatch' was removed in version 3.5. The modern way to do the same is to create a server with the same address, and possibly to assign any extra server a weight of zero if any:\n    server dispatch {target}");
            Err(tight(s.fail_at(s.line.keyword().span(), text)))
        }
        "transparent" => Err(tight(s.fail("support for option 'transparent' was removed in version 3.5."))),
        _ => Err(tight(s.fail_at(s.line.keyword().span(), format!("'{name}' is not supported anymore.")))),
    }
}

/// What is said of the old names of timeouts, also behind `timeout`.
pub(super) fn timeout(name: &str) -> Option<String> {
    let kind = match name {
        "clitimeout" => "client",
        "contimeout" => "connect",
        "srvtimeout" => "server",
        _ => return None,
    };
    Some(format!("the '{name}' directive is not supported anymore since HAProxy 2.1. Use 'timeout {kind}'."))
}
