//! `tune.*`: limits and habits that users may change (manual, section 3.2).

use std::time::Duration;

use syntax::{Diagnostic, Style};

use super::draft::{GlobalDraft, entry};
use crate::draft::Shards;
use crate::global::once;
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp, tight};
use crate::units;

const SHARED: &str = "It is about datagram sockets that many peers share, which there are none of yet.";

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry("anonkey", anon_key, "Key that names in anonymised dumps are hashed with.", "anonkey 25"),
    entry(
        "tune.bufsize",
        |s, g| {
            let size = whole(s, "tune.bufsize")?;
            match size {
                0 => return Err(s.fail("'tune.bufsize' expects a positive integer argument.")),
                2_147_483_632.. => {
                    return Err(s.fail("'tune.bufsize' expects a size in bytes from 0 to 2147483631."));
                }
                // What HAProxy says of buffers that its own messages don't fit in is said when all lines are
                // read.
                _ => g.buffers.usual = size.next_multiple_of(16),
            }
            let limits = 1000..=64 << 20;
            if !limits.contains(&size) {
                let text = format!("'tune.bufsize' must be between 1000 and 64m in Harrier, not {size}.");
                s.notes.push(Diagnostic::alert(s.line.span(), text).styled(Style::Bare).settling());
            }
            g.tune.bufsize = to_usize(size.clamp(1024, 64 << 20));
            Ok(())
        },
        "Size of a buffer.",
        "tune.bufsize 32k",
    ).default("16384"),
    entry(
        "tune.bufsize.large",
        |s, g| {
            let size = whole(s, "tune.bufsize.large")?;
            if size == 0 {
                return Err(s.fail("'tune.bufsize.large' expects a positive integer argument."));
            }
            g.buffers.large = Some(size);
            g.tune.large_bufsize = to_usize(size.min(64 << 20)).next_multiple_of(16);
            Ok(())
        },
        "Size of a large buffer, for bodies that are waited for; none if it is not said.",
        "tune.bufsize.large 128k",
    ),
    entry(
        "tune.bufsize.small",
        |s, g| match whole(s, "tune.bufsize.small")? {
            0 => Err(s.fail("'tune.bufsize.small' expects a positive integer argument.")),
            size => {
                g.buffers.small = size;
                Ok(())
            }
        },
        "Buffers have one size, and a larger one for bodies that are waited for.",
        "tune.bufsize.small 2k",
    )
    .idle(),
    entry(
        "tune.cli.max-payload-size",
        |s, g| {
            if s.args.peek().is_none() {
                return Err(s.fail("'tune.cli.max-payload-size' expects a size argument."));
            }
            g.tune.cli_payload = to_usize(whole(s, "tune.cli.max-payload-size")?);
            Ok(())
        },
        "Longest payload of a runtime command.",
        "tune.cli.max-payload-size 256k",
    ).default("128k"),
    entry(
        "tune.defaults.purge",
        purge,
        "What is forgotten that servers and backends of run time might be made from.",
        "tune.defaults.purge all",
    ),
    entry(
        "tune.glitches.kill.cpu-usage",
        |s, g| {
            const RANGE: &str = "'tune.glitches.kill.cpu-usage' expects a numeric value between 0 and 100\n";
            let word = s.next().ok_or_else(|| s.fail(RANGE))?;
            s.end()?;
            match s.lenient(word) {
                n @ 0..=100 => g.tune.glitches.cpu = clamp(n),
                _ => return Err(s.fail(RANGE)),
            }
            Ok(())
        },
        "Below this use of its thread, in percent, no connection ends for its glitches.",
        "tune.glitches.kill.cpu-usage 80",
    ),
    entry(
        "tune.h1.be.glitches-threshold",
        |s, _| glitches(s).map(drop),
        "Glitches of servers of HTTP/1 are counted for each response, not for their connection.",
        "tune.h1.be.glitches-threshold 1000",
    )
    .idle(),
    entry(
        "tune.h1.fe.glitches-threshold",
        |s, g| glitches(s).map(|n| g.tune.glitches.front = n),
        "Glitches at which a client connection of HTTP/1 ends.",
        "tune.h1.fe.glitches-threshold 1000",
    ),
    entry(
        "tune.http.cookielen",
        |s, g| {
            g.cookielen = positive(s)? as usize;
            Ok(())
        },
        "Longest captured cookie.",
        "tune.http.cookielen 100",
    ).default("63"),
    entry(
        "tune.http.logurilen",
        |s, g| {
            g.tune.logurilen = positive(s)? as usize;
            Ok(())
        },
        "Longest request line in logs.",
        "tune.http.logurilen 2048",
    ).default("1024"),
    entry(
        "tune.http.maxhdr",
        |s, g| {
            const RANGE: &str = "'tune.http.maxhdr' expects a numeric value between 1 and 32767";
            g.tune.maxhdr = match s.integer("'tune.http.maxhdr' expects an integer argument.")? {
                // HAProxy's own error messages have up to five fields, and it does not start when they don't
                // fit.
                n @ 1..=4 => {
                    // Where its built-in messages end for it: the status, and the place.
                    let (status, at) = match n {
                        1 => (200, 62),
                        2 => (200, 87),
                        3 => (200, 89),
                        _ => (400, 117),
                    };
                    let text = format!(
                        "Internal error: invalid default message for HTTP return code {status}: unable to parse headers (error offset: {at})."
                    );
                    s.notes.push(Diagnostic::alert(s.line.span(), text).styled(Style::Bare).settling());
                    clamp(n) as usize
                }
                n @ 5..=32767 => clamp(n) as usize,
                _ => return Err(s.fail(RANGE)),
            };
            Ok(())
        },
        "Most header fields of a message.",
        "tune.http.maxhdr 200",
    ).default("101"),
    entry(
        "tune.idle-pool.shared",
        |s, g| {
            g.tune.shared_pool = match s.only()? {
                "on" | "full" => true,
                "off" => false,
                other => {
                    return Err(s.fail(format!(
                        "'tune.idle-pool.shared' expects 'full', 'on' or 'off' but got '{other}'."
                    )));
                }
            };
            Ok(())
        },
        "Threads may take idle server connections from each other.",
        "tune.idle-pool.shared off",
    ).default("on"),
    entry(
        "tune.idletimer",
        |s, g| {
            s.at_most_one()?;
            let word = s.word("'tune.idletimer' expects a timer value between 0 and 65535 ms.")?;
            if units::tolerant(word.text()) == Err(units::TimeFault::Overflow) {
                return Err(s.fail(format!(
                    "timer overflow in argument <{word}> to <tune.idletimer>, maximum value is 65535 ms."
                )));
            }
            let ms = s.millis(word, "tune.idletimer", |c| {
                format!("unexpected character '{c}' in argument to <tune.idletimer>.")
            })?;
            if ms > 65535 {
                return Err(s.fail("'tune.idletimer' expects a timer value between 0 and 65535 ms."));
            }
            g.tune.idletimer = Duration::from_millis(ms);
            s.end()
        },
        "Time after which a stream counts as idle.",
        "tune.idletimer 500ms",
    ).default("1s"),
    entry(
        "tune.listener.default-shards",
        |s, g| match s.only()? {
            "by-process" => {
                g.default_shards = Shards::Count(1);
                Ok(())
            }
            "by-group" => {
                g.default_shards = Shards::ByGroup;
                Ok(())
            }
            "by-thread" => {
                g.default_shards = Shards::ByThread;
                Ok(())
            }
            other => Err(s.fail(format!("'tune.listener.default-shards' expects either 'by-process', 'by-group', or 'by-thread' but got '{other}'."))),
        },
        "How many sockets a `bind` line has that does not say it.",
        "tune.listener.default-shards by-thread",
    ).default("by-group"),
    entry(
        "tune.listener.multi-queue",
        |s, _| {
            let word = s.next().map_or("", |w| w.text());
            s.end()?;
            if !matches!(word, "on" | "fair" | "off") {
                return Err(s.fail(format!(
                    "'tune.listener.multi-queue' expects either 'on', 'fair', or 'off' but got '{word}'."
                )));
            }
            Ok(())
        },
        "Each thread accepts for itself, as the system wakes them.",
        "",
    )
    .idle(),
    entry(
        "tune.max-checks-per-thread",
        |s, g| {
            // Without a number there is no limit.
            let word = s.next();
            g.tune.max_checks = word.map_or(0, |word| clamp(s.lenient(word)));
            s.end()
        },
        "Most health checks of a thread at a time.",
        "tune.max-checks-per-thread 10",
    ).default("0: no limit"),
    entry(
        "tune.max-rules-at-once",
        |s, _| {
            const EXPECTS: &str = "'tune.max-rules-at-once' expects a positive numeric value";
            s.positive(EXPECTS, EXPECTS).map(drop)
        },
        "A set of rules is run to its end, or to where it has to wait.",
        "",
    )
    .idle(),
    entry(
        "tune.maxaccept",
        |s, g| positive(s).map(|n| g.tune.maxaccept = n),
        "Connections accepted in a row.",
        "tune.maxaccept 10",
    ).default("4")
    .once(once::TUNING),
    entry(
        "tune.maxpollevents",
        |s, g| positive(s).map(|n| g.tune.maxpollevents = n),
        "Events taken in a turn.",
        "tune.maxpollevents 100",
    ).default("200")
    .once(once::TUNING),
    entry(
        "tune.maxrewrite",
        |s, g| {
            // HAProxy counts leading digits.
            let word = s.word("'tune.maxrewrite' expects an integer argument.")?;
            let n = crate::units::lenient(word.text());
            s.end()?;
            g.tune.maxrewrite = usize::try_from(n)
                .map_err(|_| s.fail("'tune.maxrewrite' expects a positive integer argument."))?;
            Ok(())
        },
        "Room that rewriting may use.",
        "tune.maxrewrite 2048",
    ).default("1024"),
    entry(
        "tune.pattern.cache-size",
        |s, _| {
            const EXPECTS: &str = "'tune.pattern.cache-size' expects a positive numeric value";
            s.positive(EXPECTS, EXPECTS).map(drop)
        },
        "Patterns are found by indexes, there is no cache in front of them.",
        "",
    )
    .idle(),
    entry(
        "tune.pipesize",
        |s, g| {
            g.tune.pipesize = Some(to_usize(whole(s, "tune.pipesize")?)).filter(|n| *n > 0);
            Ok(())
        },
        "Size of a pipe for splicing.",
        "tune.pipesize 65536",
    ).default("the system's"),
    entry(
        "tune.pool-high-fd-ratio",
        |s, g| percent(s).map(|n| g.tune.pool_high_fd = n),
        "Descriptors, in percent, above which idle server connections are killed.",
        "tune.pool-high-fd-ratio 30",
    ).default("25"),
    entry(
        "tune.pool-low-fd-ratio",
        |s, g| percent(s).map(|n| g.tune.pool_low_fd = n),
        "Descriptors, in percent, above which no idle server connection is kept.",
        "tune.pool-low-fd-ratio 20",
    ).default("20"),
    entry(
        "tune.rcvbuf.client",
        |s, g| kernel(s).map(|n| g.tune.rcvbuf_client = n),
        "Receive buffer of clients.",
        "tune.rcvbuf.client 64k",
    ).default("the system's")
    .once(once::TUNING),
    entry(
        "tune.rcvbuf.server",
        |s, g| kernel(s).map(|n| g.tune.rcvbuf_server = n),
        "Receive buffer of servers.",
        "tune.rcvbuf.server 64k",
    ).default("the system's")
    .once(once::TUNING),
    entry(
        "tune.rcvbuf.frontend",
        |s, g| kernel(s).map(|n| g.tune.rcvbuf_frontend = n),
        "Receive buffer of sockets for datagrams (log-forward).",
        "tune.rcvbuf.frontend 64k",
    ).default("the system's")
        .once(once::DATAGRAMS),
    entry("tune.rcvbuf.backend", |s, _| unsaid(s), SHARED, "tune.rcvbuf.backend 64k")
        .idle()
        .once(once::DATAGRAMS),
    entry(
        "tune.notsent-lowat.client",
        |s, g| unsent(s).map(|n| g.tune.unsent_client = Some(n)),
        "Bytes that may wait unsent in the kernel for a client; 0: any number. Unset: 32k of a message longer than 128k for a peer at less than 1 ms, and any number for others.",
        "tune.notsent-lowat.client 16k",
    ).default("the system's")
    .once(once::TUNING),
    entry(
        "tune.notsent-lowat.server",
        |s, g| unsent(s).map(|n| g.tune.unsent_server = Some(n)),
        "Bytes that may wait unsent in the kernel for a server; 0: any number. Unset: 32k of a message longer than 128k for a peer at less than 1 ms, and any number for others.",
        "tune.notsent-lowat.server 16k",
    ).default("the system's")
    .once(once::TUNING),
    entry(
        "tune.sndbuf.client",
        |s, g| kernel(s).map(|n| g.tune.sndbuf_client = n),
        "Send buffer of clients.",
        "tune.sndbuf.client 64k",
    ).default("the system's")
    .once(once::TUNING),
    entry(
        "tune.sndbuf.server",
        |s, g| kernel(s).map(|n| g.tune.sndbuf_server = n),
        "Send buffer of servers.",
        "tune.sndbuf.server 64k",
    ).default("the system's")
    .once(once::TUNING),
    entry("tune.sndbuf.frontend", |s, _| unsaid(s), SHARED, "tune.sndbuf.frontend 64k")
        .idle()
        .once(once::DATAGRAMS),
    entry("tune.sndbuf.backend", |s, _| unsaid(s), SHARED, "tune.sndbuf.backend 64k")
        .idle()
        .once(once::DATAGRAMS),
    entry(
        "tune.runqueue-depth",
        |s, g| positive(s).map(|n| g.tune.runqueue_depth = n),
        "Tasks run in a turn.",
        "tune.runqueue-depth 100",
    )
    .once(once::TUNING),
    entry(
        "tune.stick-counters",
        |s, g| {
            let text = s.next().map_or("0", |word| word.text());
            let n = units::strict(text)
                .ok_or_else(|| s.fail(format!("tune.stick-counters: '{text}' is an invalid number")))?
                as i32;
            g.tune.stick_counters = u32::try_from(n).ok().filter(|n| *n <= 100).ok_or_else(|| {
                s.fail(format!(
                    "tune.stick-counters: the number of stick-counters must be between 1 and 100 (was {n})"
                ))
            })?;
            Ok(())
        },
        "Counters that a session may track.",
        "tune.stick-counters 5",
    ).default("3"),
    entry(
        "tune.vars.global-max-size",
        |s, g| vars(s, g, 0),
        "Most memory of all variables.",
        "tune.vars.global-max-size 1048576",
    ).default("0: no limit"),
    entry(
        "tune.vars.proc-max-size",
        |s, g| vars(s, g, 1),
        "Most memory of variables of the process.",
        "tune.vars.proc-max-size 1048576",
    ).default("0: no limit"),
    entry(
        "tune.vars.sess-max-size",
        |s, g| vars(s, g, 2),
        "Most memory of variables of a session.",
        "tune.vars.sess-max-size 1048576",
    ).default("0: no limit"),
    entry(
        "tune.vars.txn-max-size",
        |s, g| vars(s, g, 3),
        "Most memory of variables of a transaction.",
        "tune.vars.txn-max-size 1048576",
    ).default("0: no limit"),
    entry(
        "tune.vars.reqres-max-size",
        |s, g| vars(s, g, 4),
        "Most memory of variables of one direction.",
        "tune.vars.reqres-max-size 1048576",
    ).default("0: no limit"),
    entry(
        "tune.vars.check-max-size",
        |s, g| vars(s, g, 5),
        "Most memory of variables of a check.",
        "tune.vars.check-max-size 1048576",
    ).default("0: no limit"),
];

fn to_usize(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// A size and nothing behind it.
fn whole(s: &mut Statement<'_>, name: &str) -> Step<u64> {
    s.at_most_one()?;
    s.size(name)
}

fn positive(s: &mut Statement<'_>) -> Step<u32> {
    let name = s.keyword();
    s.count(format!("'{name}' expects an integer argument."))
}

/// A threshold; a missing one is none.
fn glitches(s: &mut Statement<'_>) -> Step<u32> {
    let word = s.next();
    s.end()?;
    match word.map_or(0, |word| s.lenient(word)) {
        n @ 0.. => Ok(clamp(n)),
        _ => Err(s.fail(format!("'{}' expects a positive numeric value.", s.keyword()))),
    }
}

fn percent(s: &mut Statement<'_>) -> Step<u32> {
    let text = format!("'{}' expects an integer argument between 0 and 100.", s.keyword());
    match s.integer(&*text)? {
        n @ 0..=100 => Ok(clamp(n)),
        _ => Err(s.fail(text)),
    }
}

/// A size for the kernel; zero leaves it to the kernel.
fn kernel(s: &mut Statement<'_>) -> Step<Option<u32>> {
    let name = s.keyword();
    let size = whole(s, name)?;
    Ok(u32::try_from(size).ok().filter(|n| *n > 0))
}

/// What may wait unsent: 0, which is no limit, is something else than nothing said.
fn unsent(s: &mut Statement<'_>) -> Step<u32> {
    kernel(s).map(Option::unwrap_or_default)
}

/// The same of a kind of socket that there is not; HAProxy takes a missing one for an empty one.
fn unsaid(s: &mut Statement<'_>) -> Step {
    if s.args.peek().is_none() {
        return Err(s.fail(format!("unexpected '' after size passed to '{}'", s.keyword())));
    }
    match kernel(s)? {
        None => Err(s.fail(format!("'{}' expects a strictly positive integer argument.", s.keyword()))),
        Some(_) => Ok(()),
    }
}

fn vars(s: &mut Statement<'_>, g: &mut GlobalDraft, which: usize) -> Step {
    let name = s.keyword();
    // No size at all is no limit, and nothing behind it is looked at, as in HAProxy.
    let text = s.next().map_or("0", |word| word.text());
    // A plain number of bytes, unlike other sizes; below zero is no limit, too.
    let size = units::strict(text).ok_or_else(|| s.fail(format!("{name}: '{text}' is an invalid size")))?;
    let size = u64::try_from(size).unwrap_or(0);
    if let Some(limit) = g.vars_max.get_mut(which) {
        *limit = to_usize(size);
    }
    Ok(())
}

/// `anonkey <key>`: what is no number counts as 0.
fn anon_key(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let word = s.word("a key is expected after 'anonkey'.").map_err(tight)?;
    let key = units::whole(word.text());
    let text = || format!("'anonkey' value must be within range 0-4294967295 (was '{word}').");
    g.anon_key = u32::try_from(key).map_err(|_| tight(s.fail(text())))?;
    Ok(())
}

/// `tune.defaults.purge [all|none|<element>,...]`.
fn purge(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let list = s.only()?;
    g.purge = Default::default();
    for element in list.split(',') {
        match element {
            "proxies" => g.purge.proxies = true,
            "servers" => g.purge.servers = true,
            "all" if list == "all" => (g.purge.proxies, g.purge.servers) = (true, true),
            "none" if list == "none" => {}
            "all" | "none" => {
                return Err(s.fail(format!("'tune.defaults.purge' value '{element}' is exclusive.")));
            }
            _ => return Err(s.fail(format!("'tune.defaults.purge' unknown directive '{element}'."))),
        }
    }
    s.end()
}
