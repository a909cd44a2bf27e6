//! Keywords of the global section that are gone, that have no effect here, or that wait for what they belong to.
//!
//! What only tunes TLS, HTTP/2, QUIC, Lua, compression or the inner workings of HAProxy is accepted with a warning, so
//! that a configuration runs unchanged; what would change traffic or promises a function is an error.

use super::{GlobalDraft, entry, idle, once};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};

const fn tls(name: &'static str) -> Keyword<GlobalDraft> {
    entry(name, no_effect, "Tunes a part of TLS that Harrier does not have: no effect.", "")
}

const fn other(name: &'static str) -> Keyword<GlobalDraft> {
    entry(name, no_effect, "Tunes a part that Harrier does not have: no effect.", "")
}

const fn later(name: &'static str) -> Keyword<GlobalDraft> {
    entry(name, not_yet, "Not built yet.", "")
}

/// Accepted without a word: nothing is lost by ignoring it.
const fn quiet(name: &'static str) -> Keyword<GlobalDraft> {
    entry(name, idle::arguments, "Accepted; nothing changes.", "")
}

/// A keyword that the usual builds of HAProxy do not know either.
const fn unbuilt(name: &'static str) -> Keyword<GlobalDraft> {
    fn unknown(s: &mut Statement<'_>, _: &mut GlobalDraft) -> Step {
        let keyword = s.line.keyword();
        Err(s.fail_at(keyword.span(), format!("unknown keyword '{keyword}' in 'global' section")))
    }
    entry(name, unknown, "Only in special builds of HAProxy.", "")
}

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry(
        "nbproc",
        |s, _| {
            Err(s.fail("nbproc is not supported any more since HAProxy 2.5. Threads will automatically be used on multi-processor machines if available."))
        },
        "Removed: threads are used instead.",
        "",
    ),
    entry(
        "tune.chksize",
        |s, _| {
            s.warn("'tune.chksize' is deprecated and has no effect.");
            Ok(())
        },
        "Deprecated: no effect.",
        "",
    ),
    // TLS
    tls("ssl-dh-param-file"),
    tls("ssl-engine"),
    tls("ssl-mode-async"),
    entry(
        "ssl-propquery",
        |s, g| {
            if s.peek().is_empty() {
                return Err(
                    s.fail("global statement 'ssl-propquery' expects a property string as an argument.")
                );
            }
            // Names of properties begin with a letter.
            if !s.peek().starts_with(|c: char| c.is_ascii_alphabetic() || "?-".contains(c)) {
                return Err(s.fail("global statement 'ssl-propquery': this is no property query."));
            }
            g.tls.property_query = Some(s.peek().into());
            no_effect(s, g)
        },
        "Tunes a part of TLS that Harrier does not have: no effect.",
        "",
    ),
    tls("ssl-provider"),
    tls("ssl-provider-path"),
    tls("ssl-security-level"),
    tls("tune.ssl.certificate-compression"),
    tls("tune.ssl.default-dh-param"),
    tls("tune.ssl.force-private-cache"),
    tls("acme.scheduler"),
    // QUIC, Lua, compression, HTTP client, peers
    other("limited-quic"),
    other("harden.reject-privileged-ports.quic"),
    other("tune.quic.be.cc.cubic-min-losses"),
    other("tune.quic.be.cc.hystart"),
    other("tune.quic.be.cc.max-frame-loss"),
    other("tune.quic.be.cc.max-win-size"),
    other("tune.quic.be.cc.reorder-ratio"),
    other("tune.quic.be.max-idle-timeout"),
    other("tune.quic.be.sec.glitches-threshold"),
    other("tune.quic.be.stream.data-ratio"),
    other("tune.quic.be.stream.max-concurrent"),
    other("tune.quic.be.stream.rxbuf"),
    other("tune.quic.be.tx.pacing"),
    other("tune.quic.be.tx.udp-gso"),
    other("tune.quic.fe.cc.cubic-min-losses"),
    other("tune.quic.fe.cc.hystart"),
    other("tune.quic.fe.cc.max-frame-loss"),
    other("tune.quic.fe.cc.max-win-size"),
    other("tune.quic.fe.cc.reorder-ratio"),
    other("tune.quic.fe.max-idle-timeout"),
    other("tune.quic.fe.sec.glitches-threshold"),
    other("tune.quic.fe.sec.retry-threshold"),
    other("tune.quic.fe.sock-per-conn"),
    other("tune.quic.fe.stream.data-ratio"),
    other("tune.quic.fe.stream.max-concurrent"),
    other("tune.quic.fe.stream.max-total"),
    other("tune.quic.fe.stream.rxbuf"),
    other("tune.quic.fe.tx.pacing"),
    other("tune.quic.fe.tx.udp-gso"),
    other("tune.quic.listen"),
    other("tune.quic.mem.tx-max"),
    other("tune.quic.zero-copy-fwd-send"),
    other("lua-prepend-path"),
    other("tune.lua.bool-sample-conversion"),
    other("tune.lua.burst-timeout"),
    other("tune.lua.forced-yield"),
    other("tune.lua.log.loggers"),
    other("tune.lua.log.stderr"),
    other("tune.lua.maxmem"),
    other("tune.lua.openlibs"),
    other("tune.lua.service-timeout"),
    other("tune.lua.session-timeout"),
    other("tune.lua.task-timeout"),
    later("lua-load"),
    later("lua-load-per-thread"),
    other("maxcompcpuusage"),
    other("maxcomprate"),
    other("maxzlibmem"),
    other("tune.comp.maxlevel"),
    other("tune.zlib.memlevel"),
    other("tune.zlib.windowsize"),
    other("httpclient.resolvers.disabled"),
    entry(
        "httpclient.resolvers.id",
        |s, g| {
            let name = s.next().map_or("", syntax::Word::text);
            s.end()?;
            g.tls.client_resolvers = Some(name.into());
            no_effect(s, g)
        },
        "Tunes a part that Harrier does not have: no effect.",
        "",
    ),
    other("tune.peers.max-updates-at-once"),
    entry(
        "tune.takeover-other-tg-connections",
        |s, g| {
            let text = "'tune.takeover-other-tg-connections' is deprecated and will be removed in version 3.7. Please use 'tune.idle-pool.shared";
            s.notes.push(crate::statement::tight(syntax::Diagnostic::warning(s.line.span(), text)));
            idle::arguments(s, g)
        },
        "The former name of 'tune.idle-pool.shared', of groups of threads.",
        "",
    ),
    other("cluster-secret").once(once::WORD),
    other("dns-accept-family"),
    other("pp2-never-send-local"),
    // Inner workings of HAProxy
    unbuilt("debug.counters"),
    unbuilt("profiling.memory"),
    quiet("cpu-affinity"),
    entry(
        "cpu-policy",
        |s, g| {
            g.groups.policy = Some(s.peek().into());
            idle::arguments(s, g)
        },
        "How HAProxy places its threads: no effect.",
        "cpu-policy none",
    ),
    quiet("cpu-set"),
    quiet("expose-deprecated-directives"),
    quiet("force-cfg-parser-pause"),
    quiet("insecure-setuid-wanted"),
    entry(
        "max-threads-per-group",
        |s, g| {
            g.groups.largest = true;
            idle::arguments(s, g)
        },
        "Threads of a group that HAProxy makes: no effect.",
        "max-threads-per-group 4",
    ),
    quiet("no-memory-trimming"),
    quiet("noevports"),
    quiet("nokqueue"),
    quiet("nopoll"),
    quiet("numa-cpu-mapping"),
    quiet("prealloc-fd"),
    quiet("quick-exit"),
    entry(
        "quiet",
        |s, g| {
            g.quiet = true;
            idle::arguments(s, g)
        },
        "Nothing is said while the process starts.",
        "quiet",
    ),
    quiet("setcap"),
    quiet("stress-level"),
    quiet("tune.applet.zero-copy-forwarding"),
    quiet("tune.buffers.limit"),
    quiet("tune.buffers.reserve"),
    quiet("tune.disable-fast-forward"),
    quiet("tune.disable-zero-copy-forwarding"),
    quiet("tune.epoll.mask-events"),
    quiet("tune.events.max-events-at-once"),
    quiet("tune.fail-alloc"),
    quiet("tune.fd.edge-triggered"),
    quiet("tune.fd.tables"),
    quiet("tune.glitches.kill.cpu-usage"),
    quiet("tune.h1.be.glitches-threshold"),
    quiet("tune.h1.fe.glitches-threshold"),
    quiet("tune.h1.zero-copy-fwd-recv"),
    quiet("tune.h1.zero-copy-fwd-send"),
    quiet("tune.memory.hot-size"),
    quiet("tune.pt.zero-copy-forwarding"),
    quiet("tune.recv_enough"),
    quiet("tune.renice.runtime"),
    quiet("tune.renice.startup"),
    quiet("tune.ring.queues"),
    quiet("tune.sched.low-latency"),
    quiet("tune.streams-elasticity"),
    entry(
        "default-path",
        |s, _| match s.next().map_or("", |w| w.text()) {
            "current" => Ok(()),
            "config" | "parent" | "origin" => {
                Err(s.fail("'default-path' other than 'current' is not supported yet by Harrier (planned)"))
            }
            other => {
                let what = if other.is_empty() { "missing" } else { "unsupported" };
                Err(s.fail(format!("{what} default-path mode '{other}' for 'default-path', supported modes include 'current', 'config', 'parent', and 'origin'.")))
            }
        },
        "Where relative paths start: only the current directory is built.",
        "default-path current",
    ),
    // Promises of a function
    later("shm-stats-file"),
    later("shm-stats-file-max-objects"),
    later("stats-file"),
    other("51degrees-allow-unmatched"),
    other("51degrees-cache-size"),
    other("51degrees-data-file"),
    other("51degrees-difference"),
    other("51degrees-drift"),
    other("51degrees-property-name-list"),
    other("51degrees-property-separator"),
    other("51degrees-use-performance-graph"),
    other("51degrees-use-predictive-graph"),
    other("deviceatlas-json-file"),
    other("deviceatlas-log-level"),
    other("deviceatlas-properties-cookie"),
    other("deviceatlas-separator"),
    other("wurfl-cache-size"),
    other("wurfl-data-file"),
    other("wurfl-information-list"),
    other("wurfl-information-list-separator"),
    other("wurfl-patch-file"),
];

fn no_effect(s: &mut Statement<'_>, global: &mut GlobalDraft) -> Step {
    let keyword = s.line.keyword();
    let text = format!("'{keyword}' has no effect: what it tunes is not built into Harrier yet.");
    s.notes.warning(keyword.span(), text);
    idle::arguments(s, global)
}

/// Says that a keyword tunes what Harrier does in another way.
pub(super) fn pointless(s: &mut Statement<'_>) {
    let keyword = s.line.keyword();
    s.notes.warning(keyword.span(), format!("'{keyword}' has no effect: Harrier has nothing of the kind."));
}

fn not_yet(s: &mut Statement<'_>, _: &mut GlobalDraft) -> Step {
    let keyword = s.line.keyword();
    Err(s.fail_at(keyword.span(), format!("'{keyword}' is not supported yet by Harrier (planned)")))
}
