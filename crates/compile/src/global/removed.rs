//! Keywords of the global section that are gone, that have no effect here, or that wait for what they belong
//! to.
//!
//! What only tunes TLS, HTTP/2, QUIC, Lua or the inner workings of HAProxy is accepted with a
//! notice that says why it changes nothing, so that a configuration runs unchanged; what would change traffic
//! or promises a function is an error.

use super::draft::{GlobalDraft, entry};
use super::process::flag;
use crate::global::limits::LAST_CPU;
use crate::global::{idle, once, places};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};
use crate::units;
use syntax::Word;

/// A keyword without effect, and why it has none.
const fn vain(name: &'static str, why: &'static str) -> Keyword<GlobalDraft> {
    entry(name, idle::arguments, why, "").idle()
}

const QUIC: &str = "It is about QUIC, which is not built yet.";
const OPENSSL: &str = "It is about a part of OpenSSL that the TLS library here does not have.";
const DH: &str = "Only key exchanges over elliptic curves are spoken here, so there are no such parameters.";
const EPOLL: &str = "epoll is the only poller.";
pub(super) const COPIES: &str =
    "Data take the same way through memory whatever it says; `nosplice` is obeyed.";
const BUFFERS: &str = "Buffers are taken and given back one by one, there is no pool of them.";
const MEMORY: &str = "It is about the allocator of HAProxy.";
const EVENTS: &str = "Events of the system are taken in another way here.";

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
        "Removed: checks take as much of a response as `tune.bufsize` says.",
        "",
    ),
    // TLS
    vain("ssl-dh-param-file", DH),
    vain("ssl-engine", OPENSSL),
    vain("ssl-mode-async", OPENSSL),
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
            idle::arguments(s, g)
        },
        OPENSSL,
        "",
    )
    .idle(),
    vain("ssl-provider", OPENSSL),
    vain("ssl-provider-path", OPENSSL),
    vain("ssl-security-level", OPENSSL),
    vain("tune.ssl.certificate-compression", "Certificates are sent as they are."),
    vain("tune.ssl.default-dh-param", DH),
    vain("tune.ssl.force-private-cache", "Sessions are never shared between processes."),
    vain("acme.scheduler", "ACME is not built yet."),
    // QUIC, Lua, compression, HTTP client, peers
    vain("limited-quic", QUIC),
    vain("harden.reject-privileged-ports.quic", QUIC),
    vain("tune.quic.be.cc.cubic-min-losses", QUIC),
    vain("tune.quic.be.cc.hystart", QUIC),
    vain("tune.quic.be.cc.max-frame-loss", QUIC),
    vain("tune.quic.be.cc.max-win-size", QUIC),
    vain("tune.quic.be.cc.reorder-ratio", QUIC),
    vain("tune.quic.be.max-idle-timeout", QUIC),
    vain("tune.quic.be.sec.glitches-threshold", QUIC),
    vain("tune.quic.be.stream.data-ratio", QUIC),
    vain("tune.quic.be.stream.max-concurrent", QUIC),
    vain("tune.quic.be.stream.rxbuf", QUIC),
    vain("tune.quic.be.tx.pacing", QUIC),
    vain("tune.quic.be.tx.udp-gso", QUIC),
    vain("tune.quic.fe.cc.cubic-min-losses", QUIC),
    vain("tune.quic.fe.cc.hystart", QUIC),
    vain("tune.quic.fe.cc.max-frame-loss", QUIC),
    vain("tune.quic.fe.cc.max-win-size", QUIC),
    vain("tune.quic.fe.cc.reorder-ratio", QUIC),
    vain("tune.quic.fe.max-idle-timeout", QUIC),
    vain("tune.quic.fe.sec.glitches-threshold", QUIC),
    vain("tune.quic.fe.sec.retry-threshold", QUIC),
    vain("tune.quic.fe.sock-per-conn", QUIC),
    vain("tune.quic.fe.stream.data-ratio", QUIC),
    vain("tune.quic.fe.stream.max-concurrent", QUIC),
    vain("tune.quic.fe.stream.max-total", QUIC),
    vain("tune.quic.fe.stream.rxbuf", QUIC),
    vain("tune.quic.fe.tx.pacing", QUIC),
    vain("tune.quic.fe.tx.udp-gso", QUIC),
    vain("tune.quic.listen", QUIC),
    vain("tune.quic.mem.tx-max", QUIC),
    vain("tune.quic.zero-copy-fwd-send", QUIC),
    vain("tune.peers.max-updates-at-once", "Updates for peers are sent as many at once as a buffer takes."),
    entry(
        "tune.takeover-other-tg-connections",
        |s, g| {
            let text = "'tune.takeover-other-tg-connections' is deprecated and will be removed in version 3.7. Please use 'tune.idle-pool.shared";
            s.notes.push(crate::statement::tight(syntax::Diagnostic::warning(s.line.span(), text)));
            idle::arguments(s, g)
        },
        "Connections are shared as `tune.idle-pool.shared` says.",
        "",
    )
    .idle(),
    vain("cluster-secret", "Nothing here derives a secret from it: it is about QUIC, which is not built yet.").once(once::WORD),
    entry(
        "dns-accept-family",
        |s, g| {
            use program::names::Families;
            let list = s.args.peek().map_or("", syntax::Word::text).to_owned();
            idle::arguments(s, g)?;
            let has = |word: &str| list.split(',').any(|w| w.trim() == word);
            g.tune.families = match (has("auto"), has("ipv4"), has("ipv6")) {
                (true, ..) | (_, false, false) => Families::Auto,
                (_, true, true) => Families::Both,
                (_, true, _) => Families::V4,
                _ => Families::V6,
            };
            Ok(())
        },
        "Which addresses resolvers ask for.",
        "dns-accept-family ipv4,ipv6",
    ),
    entry(
        "pp2-never-send-local",
        |s, g| flag(s, |on| g.never_local = on),
        "Health checks tell of a connection in their PROXY header of version 2, as old versions did.",
        "pp2-never-send-local",
    ),
    // Inner workings of HAProxy
    unbuilt("debug.counters"),
    unbuilt("profiling.memory"),
    entry(
        "cpu-affinity",
        idle::arguments,
        "How threads are bound to the processors that are chosen.",
        "cpu-affinity per-core",
    )
    .default("auto"),
    entry(
        "cpu-policy",
        |s, g| {
            g.groups.policy = Some(s.peek().into());
            idle::arguments(s, g)?;
            each_core(s)
        },
        "Which processors are chosen, and how many threads there are then.",
        "cpu-policy none",
    )
    .default("performance"),
    entry("cpu-set", cpu_set, "The processors that threads may run on.", "cpu-set drop-cpu 0"),
    vain("expose-deprecated-directives", "Nothing here asks for it."),
    entry(
        "insecure-setuid-wanted",
        |s, g| flag(s, |on| g.setuid_wanted = on),
        "Programs of health checks may gain rights when they are run.",
        "insecure-setuid-wanted",
    ),
    entry(
        "max-threads-per-group",
        |s, g| {
            g.groups.largest = s.peek().parse().ok().or(Some(0));
            idle::arguments(s, g)
        },
        "Most threads of a group, where nobody says how many groups there are.",
        "max-threads-per-group 4",
    )
    .default("16"),
    vain("force-cfg-parser-pause", "It helps to test how long a start may take."),
    vain("noevports", EPOLL),
    vain("nokqueue", EPOLL),
    vain("nopoll", EPOLL),
    entry(
        "numa-cpu-mapping",
        |s, _| {
            s.args.eat_rest();
            Ok(())
        },
        "The policy `first-usable-node` looks at nodes of memory.",
        "numa-cpu-mapping",
    )
    .default("on"),
    entry(
        "prealloc-fd",
        |s, g| flag(s, |on| g.prealloc_fd = on),
        "The system's table of descriptors has its full size from the start.",
        "prealloc-fd",
    ),
    vain("quick-exit", "The process always ends without giving back its memory piece by piece."),
    entry(
        "quiet",
        |s, g| {
            g.quiet = true;
            idle::arguments(s, g)
        },
        "Nothing is said while the process starts.",
        "quiet",
    ),
    entry(
        "setcap",
        |s, g| {
            let words = s.peek();
            idle::arguments(s, g)?;
            g.capabilities = words.split(',').map(Into::into).collect();
            Ok(())
        },
        "Rights that are kept when the user changes.",
        "setcap cap_net_raw",
    ),
    vain("stress-level", "It is about a debugging aid of HAProxy."),
    vain("tune.applet.zero-copy-forwarding", COPIES),
    vain("tune.buffers.limit", BUFFERS),
    vain("tune.buffers.reserve", BUFFERS),
    entry(
        "tune.disable-fast-forward",
        |s, g| flag(s, |on| g.disabled.splice |= on),
        "Data never go through pipes.",
        "tune.disable-fast-forward",
    ),
    entry(
        "tune.disable-zero-copy-forwarding",
        |s, g| flag(s, |on| g.disabled.splice |= on),
        "Data never go through pipes.",
        "tune.disable-zero-copy-forwarding",
    ),
    vain("tune.epoll.mask-events", EVENTS),
    vain("tune.events.max-events-at-once", EVENTS),
    vain("tune.fail-alloc", MEMORY),
    vain("tune.fd.edge-triggered", EVENTS),
    vain("tune.fd.tables", EVENTS),
    vain("tune.h1.zero-copy-fwd-recv", COPIES),
    vain("tune.h1.zero-copy-fwd-send", COPIES),
    vain("tune.memory.hot-size", MEMORY),
    vain("tune.pt.zero-copy-forwarding", COPIES),
    vain("tune.recv_enough", EVENTS),
    entry(
        "tune.renice.runtime",
        |s, g| {
            let text = s.peek();
            idle::arguments(s, g)?;
            g.nice = units::strict(text).and_then(|n| i8::try_from(n).ok());
            Ok(())
        },
        "Priority of the process for the system once it runs, -20 to 19.",
        "tune.renice.runtime 5",
    ),
    vain("tune.renice.startup", "Configurations are read before it could be obeyed; `tune.renice.runtime` is."),
    vain("tune.ring.queues", "Each ring has one queue."),
    vain("tune.sched.low-latency", "Tasks always run in the order in which they were woken."),
    unbuilt("51degrees-allow-unmatched"),
    unbuilt("51degrees-cache-size"),
    unbuilt("51degrees-data-file"),
    unbuilt("51degrees-difference"),
    unbuilt("51degrees-drift"),
    unbuilt("51degrees-property-name-list"),
    unbuilt("51degrees-property-separator"),
    unbuilt("51degrees-use-performance-graph"),
    unbuilt("51degrees-use-predictive-graph"),
    unbuilt("deviceatlas-json-file"),
    unbuilt("deviceatlas-log-level"),
    unbuilt("deviceatlas-properties-cookie"),
    unbuilt("deviceatlas-separator"),
    unbuilt("wurfl-cache-size"),
    unbuilt("wurfl-data-file"),
    unbuilt("wurfl-information-list"),
    unbuilt("wurfl-information-list-separator"),
    unbuilt("wurfl-patch-file"),
];

/// What may stand behind the policy of `cpu-policy`.
fn each_core(s: &Statement<'_>) -> Step {
    let words: Vec<&Word> = s.line.args().iter().skip(1).collect();
    let text = |at: usize| words.get(at).map_or("", |word| word.text());
    let why = match (text(0), text(1), words.get(2)) {
        ("", ..) | ("threads-per-core", "1" | "auto", None) => return Ok(()),
        ("threads-per-core", "1" | "auto", Some(extra)) => {
            format!("'cpu-policy' cannot handle unexpected argument '{extra}'.")
        }
        ("threads-per-core", value, _) => format!(
            "'cpu-policy' passed an unknown value '{value}' to keyword 'threads-per-core', known values are 1 or auto"
        ),
        (other, ..) => format!(
            "'cpu-policy' passed an unknown keyword '{other}', the only known values are threads-per-core"
        ),
    };
    Err(s.fail(why))
}

/// `cpu-set <directive>...`; what it chooses is seen in [`crate::places`].
fn cpu_set(s: &mut Statement<'_>, _: &mut GlobalDraft) -> Step {
    const KNOWN: &str = "(only 'reset', 'only-cpu', 'drop-cpu', 'only-node', 'drop-node', 'only-cluster', 'drop-cluster', 'only-core', 'drop-core', 'only-thread', 'drop-thread' supported).";
    if s.peek().is_empty() {
        return Err(s.fail(format!("'cpu-set' requires a directive and an optional value {KNOWN}")));
    }
    while let Some(word) = s.next() {
        let directive = word.text();
        if directive == "reset" {
            continue;
        }
        let name = directive.strip_prefix("only-").or_else(|| directive.strip_prefix("drop-"));
        let known = places::SETS.iter().find(|(known, ..)| Some(*known) == name);
        let Some((_, what, _)) = known else {
            return Err(s.fail(format!("'cpu-set' passed an unknown directive '{directive}' {KNOWN}")));
        };
        let set = s.word(format!("'cpu-set {directive}': missing {what} set\n"))?;
        match places::set(set.text()) {
            None => return Err(s.fail(format!("'cpu-set {directive}': '{set}' is not a CPU range.\n"))),
            Some(ranges) if ranges.iter().any(|range| *range.end() > LAST_CPU as usize) => {
                let text = format!("'cpu-set {directive}': supports CPU numbers from 0 to {LAST_CPU}.");
                return Err(s.fail(text));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
