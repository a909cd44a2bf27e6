//! The dumps of `-dK`: keywords by class, as HAProxy's own lists have them, made of the tables.
//!
//! HAProxy lists the keywords that register themselves and leaves out its oldest ones, which are built into
//! its parsers. So that the two dumps can be compared line by line, ours leaves out the same ones
//! ([`BUILT_IN`]).

use std::fmt::Write;

use lang::Registry;
use lang::registry::Sets;

use crate::{bind, global, proxy, server};

/// Keywords that HAProxy does not list.
pub(crate) const BUILT_IN: &[&str] = &[
    "51degrees-allow-unmatched",
    "51degrees-cache-size",
    "51degrees-data-file",
    "51degrees-difference",
    "51degrees-drift",
    "51degrees-property-name-list",
    "51degrees-property-separator",
    "51degrees-use-performance-graph",
    "51degrees-use-predictive-graph",
    "anonkey",
    "busy-polling",
    "cluster-secret",
    "cpu-map",
    "debug.counters",
    "description",
    "deviceatlas-json-file",
    "deviceatlas-log-level",
    "deviceatlas-properties-cookie",
    "deviceatlas-separator",
    "external-check",
    "fd-hard-limit",
    "gid",
    "group",
    "h2-workaround-bogus-websocket-clients",
    "insecure-fork-wanted",
    "insecure-setuid-wanted",
    "limited-quic",
    "log",
    "log-send-hostname",
    "log-tag",
    "max-spread-checks",
    "maxcompcpuusage",
    "maxcomprate",
    "maxconn",
    "maxconnrate",
    "maxpipes",
    "maxsessrate",
    "maxsslrate",
    "maxzlibmem",
    "node",
    "nogetaddrinfo",
    "noreuseport",
    "nosplice",
    "numa-cpu-mapping",
    "profiling.memory",
    "quick-exit",
    "server-state-base",
    "server-state-file",
    "set-dumpable",
    "spread-checks",
    "ssl-server-verify",
    "stats-file",
    "strict-limits",
    "tune.zlib.memlevel",
    "tune.zlib.windowsize",
    "uid",
    "ulimit-n",
    "unix-bind",
    "user",
    "wurfl-cache-size",
    "wurfl-data-file",
    "wurfl-information-list",
    "wurfl-information-list-separator",
    "wurfl-patch-file",
];

/// Proxy keywords that HAProxy lists.
pub(crate) const LISTED: &[&str] = &[
    "be-unpublished",
    "clitcpka-cnt",
    "clitcpka-idle",
    "clitcpka-intvl",
    "clitimeout",
    "compression",
    "contimeout",
    "declare",
    "errorfile",
    "errorfiles",
    "errorloc",
    "errorloc302",
    "errorloc303",
    "external-check",
    "filter",
    "filter-sequence",
    "force-be-switch",
    "guid",
    "hash-preserve-affinity",
    "http-check",
    "http-error",
    "log-steps",
    "max-keep-alive-queue",
    "quic-initial",
    "rate-limit",
    "retry-on",
    "srvtcpka-cnt",
    "srvtcpka-idle",
    "srvtcpka-intvl",
    "srvtimeout",
    "ssl-f-use",
    "tcp-check",
    "tcp-request",
    "tcp-response",
    "timeout",
    "use-fcgi-app",
];

/// The rule sets, in HAProxy's order, with the actions that it builds in instead of listing them.
const RULE_SETS: &[(&str, Sets, &[&str])] = &[
    ("tcp-request connection", Sets::TCP_CONN, TCP_BUILT_IN),
    ("tcp-request session", Sets::TCP_SESS, TCP_BUILT_IN),
    ("tcp-request content", Sets::TCP_REQ, TCP_BUILT_IN),
    ("tcp-response content", Sets::TCP_RES, TCP_BUILT_IN),
    ("http-request", Sets::HTTP_REQ, &[]),
    ("http-response", Sets::HTTP_RES, &[]),
    ("http-after-response", Sets::HTTP_AFTER, &[]),
];

const TCP_BUILT_IN: &[&str] =
    &["accept", "reject", "close", "capture", "expect-proxy", "expect-netscaler-cip", "track-sc*"];

/// Sections that are no proxies. All but `userlist` wait for what they belong to and are refused with a word
/// about it.
const OTHER_SECTIONS: &[(&str, &[&str])] = &[
    ("userlist", &["group", "user"]),
    ("peers", &[]),
    (
        "crt-list",
        &[
            "allow-0rtt",
            "alpn +1",
            "ca-file +1",
            "ca-verify-file +1",
            "ciphers +1",
            "ciphersuites +1",
            "client-sigalgs +1",
            "crl-file +1",
            "curves +1",
            "ecdhe +1",
            "ktls +1",
            "no-alpn",
            "no-ca-names",
            "npn +1",
            "sigalgs +1",
            "ssl-max-ver +1",
            "ssl-min-ver +1",
            "verify +1",
        ],
    ),
    ("crt-store", &["crt-base", "key-base", "load"]),
    ("traces", &["trace"]),
    (
        "acme",
        &[
            "account-key",
            "acme-vars",
            "bits",
            "challenge",
            "challenge-ready",
            "contact",
            "curves",
            "directory",
            "dns-delay",
            "dns-timeout",
            "eab-key-id",
            "eab-mac-alg",
            "eab-mac-key",
            "keytype",
            "map",
            "profile",
            "provider-name",
            "reuse-key",
        ],
    ),
];

/// The list of a class as `-dK` names it: `acl`, `cfg`, `cnv`, `smp`; `None` for a class that is not known
/// here.
pub fn keywords(class: &str, registry: &Registry) -> Option<String> {
    Some(match class {
        "acl" => acls(registry),
        "cfg" => configuration(registry),
        "cnv" => converters(registry),
        "flt" => filters(registry),
        "smp" => fetches(registry),
        _ => return None,
    })
}

/// The filters that are built, each with the tag of its family, in the order in which they are listed.
pub fn filter_names(registry: &Registry) -> Vec<(&str, &str)> {
    proxy::filter::known(registry)
}

fn filters(registry: &Registry) -> String {
    let mut out = String::from("# List of registered filter names:\n");
    for (name, tag) in filter_names(registry) {
        let _ = writeln!(out, "{name} [{tag}]");
    }
    out
}

fn acls(registry: &Registry) -> String {
    let mut out = String::from("# List of registered ACL keywords:\n");
    for acl in registry.all_acls() {
        let _ = writeln!(out, "{} = {} -m {}", acl.name, acl.fetch, acl.kind.name());
    }
    out
}

fn converters(registry: &Registry) -> String {
    let mut out = String::from("# List of registered sample converter functions:\n");
    for c in registry.all_converters() {
        // The dump names the type made before the type taken.
        let _ = writeln!(out, "{}{}: {} => {}", c.name, arguments(c.args), c.out.word(), c.from.word());
    }
    out
}

/// The columns of the list of fetches, leftmost first; each gets a line that ends above its column.
const COLUMNS: &[&str] = &[
    "frontend tcp-request connection rule",
    "frontend tcp-request session rule",
    "frontend tcp-request content rule",
    "frontend http-request header rule",
    "frontend http-request body rule",
    "frontend use-backend rule",
    "backend tcp-request content rule",
    "backend http-request header rule",
    "backend http-request body rule",
    "backend use-server, balance or stick-match rule",
    "server source selection",
    "backend tcp-response content rule",
    "backend http-response header rule",
    "backend http-response body rule",
    "backend stick-store rule",
    "frontend tcp-response content rule",
    "frontend http-response header rule",
    "frontend http-response body rule",
    "logs",
    "backend tcp-check rule",
    "configuration parser",
    "CLI parser",
];

fn fetches(registry: &Registry) -> String {
    let mut out = String::from("# List of registered sample fetch functions:\n");
    let all = COLUMNS.len();
    for (i, column) in COLUMNS.iter().enumerate() {
        let blanks = " ".repeat(all + 1 - i);
        let lines = "/ ".repeat(i);
        let dashes = "-".repeat(all - i);
        let _ = writeln!(out, "#{blanks}{lines}_.{dashes} {column}");
    }
    let _ = writeln!(out, "# {} ", "/ ".repeat(all));
    let _ = writeln!(out, "# {}", "| ".repeat(all));
    for f in registry.all_fetches() {
        let _ = writeln!(out, "{} {}{}: {}", f.places.dump(), f.name, arguments(f.args), f.out.word());
    }
    out
}

fn arguments(signature: &str) -> String {
    if signature.is_empty() { String::new() } else { format!("({signature})") }
}

/// The configuration keywords, section by section.
fn configuration(registry: &Registry) -> String {
    let mut out = String::from("# List of registered configuration keywords:\n");
    let all = global::TABLES.iter().flat_map(|t| t.iter()).map(|k| k.name);
    section(&mut out, "global", all.filter(|n| !BUILT_IN.contains(n)));
    let all = proxy::TABLES.iter().flat_map(|t| t.iter()).map(|k| k.name);
    section(&mut out, "listen", all.filter(|n| LISTED.contains(n)));
    binds(&mut out);
    let mut words: Vec<_> = server::keywords::all().collect();
    words.sort_unstable_by_key(|k| k.name);
    for k in words {
        let _ = writeln!(out, "\tserver <name> <addr> {}{}", k.name, count(k.args));
    }
    for option in proxy::option::SWITCHES.iter().filter(|o| !o.dump.is_empty()) {
        let _ = writeln!(out, "\toption {} [ {} ]", option.name, option.dump);
    }
    out.push_str("\toption transparent [ ]\n");
    for (name, set, built_in) in RULE_SETS {
        let actions = registry.all_actions().iter().filter(|a| a.sets.has(*set)).map(|a| a.name);
        let actions = actions.filter(|n| !n.starts_with("lua."));
        let mut names: Vec<String> = actions.filter(|n| !built_in.contains(n)).map(starred).collect();
        names.sort();
        names.dedup();
        for action in names {
            let _ = writeln!(out, "\t{name} {action}");
        }
    }
    for (word, names) in OTHER_SECTIONS {
        section(&mut out, word, names.iter().copied());
    }
    out
}

fn section(out: &mut String, word: &str, names: impl Iterator<Item = &'static str>) {
    let _ = writeln!(out, "{word}");
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    for name in names {
        let _ = writeln!(out, "\t{name}");
    }
}

/// First the words of all listeners, then those of TLS, each by name.
fn binds(out: &mut String) {
    // `ssl` itself is not listed.
    let mut words: Vec<_> = bind::all().filter(|k| k.name != "ssl").collect();
    words.sort_by_key(|k| (k.tls, k.name));
    for k in words {
        let tls = if k.tls { "ssl " } else { "" };
        let _ = writeln!(out, "\tbind <addr> {tls}{}{}", k.name, count(i8::try_from(k.args).unwrap_or(0)));
    }
}

fn count(args: i8) -> String {
    if args == 0 { String::new() } else { format!(" +{args}") }
}

/// `set-var(*`: HAProxy shows prefixes by a star alone.
fn starred(name: &str) -> String {
    match name.strip_suffix('*') {
        Some(prefix) => format!("{}*", prefix.trim_end_matches('(')),
        None => name.to_owned(),
    }
}
