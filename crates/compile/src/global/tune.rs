//! `tune.*`: limits and habits that users may change (manual, section 3.2).

use std::time::Duration;

use super::{GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp, tight};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry("anonkey", anon_key, "Key that names in anonymised dumps are hashed with.", "anonkey 25"),
    entry(
        "tune.bufsize",
        |s, g| {
            let size = whole(s, "tune.bufsize")?;
            if !(1024..=64 << 20).contains(&size) {
                return Err(s.fail(format!("'tune.bufsize' must be between 1024 and 64m, not {size}.")));
            }
            g.tune.bufsize = to_usize(size);
            Ok(())
        },
        "Size of a buffer.",
        "tune.bufsize 32k",
    ),
    entry(
        "tune.bufsize.large",
        |s, g| {
            let size = whole(s, "tune.bufsize.large")?;
            if !(1..=64 << 20).contains(&size) {
                return Err(s.fail("'tune.bufsize.large' expects a positive integer argument."));
            }
            g.tune.large_bufsize = to_usize(size).next_multiple_of(16);
            Ok(())
        },
        "Size of a large buffer, for bodies that are waited for; none if it is not said.",
        "tune.bufsize.large 128k",
    ),
    entry(
        "tune.defaults.purge",
        purge,
        "What is forgotten that servers and backends of run time might be made from.",
        "tune.defaults.purge all",
    ),
    entry(
        "tune.http.cookielen",
        |s, g| {
            g.tune.cookielen = positive(s)?.saturating_sub(1) as usize;
            Ok(())
        },
        "Longest captured cookie.",
        "tune.http.cookielen 100",
    ),
    entry(
        "tune.http.logurilen",
        |s, g| {
            g.tune.logurilen = positive(s)? as usize;
            Ok(())
        },
        "Longest request line in logs.",
        "tune.http.logurilen 2048",
    ),
    entry(
        "tune.http.maxhdr",
        |s, g| {
            const RANGE: &str = "'tune.http.maxhdr' expects a numeric value between 1 and 32767";
            g.tune.maxhdr = match s.integer(RANGE)? {
                n @ 1..=32767 => clamp(n) as usize,
                _ => return Err(s.fail(RANGE)),
            };
            Ok(())
        },
        "Most header fields of a message.",
        "tune.http.maxhdr 200",
    ),
    entry(
        "tune.idle-pool.shared",
        |s, g| {
            let word = s.next().map_or("", |w| w.text());
            g.tune.shared_pool = match word {
                "on" | "full" => true,
                "off" => false,
                other => {
                    return Err(s.fail(format!(
                        "'tune.idle-pool.shared' expects 'full', 'on' or 'off' but got '{other}'."
                    )));
                }
            };
            s.end()
        },
        "Threads may take idle server connections from each other.",
        "tune.idle-pool.shared off",
    ),
    entry(
        "tune.idletimer",
        |s, g| {
            let word = s.word("'tune.idletimer' expects a timer value between 0 and 65535 ms.")?;
            let ms = s.millis(word, "tune.idletimer", |c| {
                format!("unexpected character '{c}' in 'tune.idletimer'")
            })?;
            if ms > 65535 {
                return Err(s.fail("'tune.idletimer' expects a timer value between 0 and 65535 ms."));
            }
            g.tune.idletimer = Duration::from_millis(ms);
            s.end()
        },
        "Time after which a stream counts as idle.",
        "tune.idletimer 500ms",
    ),
    entry(
        "tune.listener.default-shards",
        |s, g| {
            g.default_shards = Some(match s.next().map_or("", |w| w.text()) {
            "by-process" | "by-group" => 1,
            "by-thread" => 0,
            other => return Err(s.fail(format!("'tune.listener.default-shards' expects either 'by-process', 'by-group', or 'by-thread' but got '{other}'."))),
        });
            s.end()
        },
        "Sockets for each listening address.",
        "tune.listener.default-shards by-thread",
    ),
    entry(
        "tune.listener.multi-queue",
        |s, g| {
            g.tune.multi_queue =
                match s.next().map_or("", |w| w.text()) {
                    "on" | "fair" => true,
                    "off" => false,
                    other => return Err(s.fail(format!(
                        "'tune.listener.multi-queue' expects either 'on', 'off' or 'fair' but got '{other}'."
                    ))),
                };
            s.end()
        },
        "Hand accepted connections to the least loaded thread.",
        "tune.listener.multi-queue on",
    ),
    entry(
        "tune.max-checks-per-thread",
        |s, g| positive(s).map(|n| g.tune.max_checks = n),
        "Most health checks of a thread at a time.",
        "tune.max-checks-per-thread 10",
    ),
    entry(
        "tune.max-rules-at-once",
        |s, g| positive(s).map(|n| g.tune.max_rules = n),
        "Rules before others get their turn.",
        "tune.max-rules-at-once 100",
    ),
    entry(
        "tune.maxaccept",
        |s, g| positive(s).map(|n| g.tune.maxaccept = n),
        "Connections accepted in a row.",
        "tune.maxaccept 10",
    ),
    entry(
        "tune.maxpollevents",
        |s, g| positive(s).map(|n| g.tune.maxpollevents = n),
        "Events taken in a turn.",
        "tune.maxpollevents 100",
    ),
    entry(
        "tune.maxrewrite",
        |s, g| {
            g.tune.maxrewrite = to_usize(whole(s, "tune.maxrewrite")?);
            Ok(())
        },
        "Room that rewriting may use.",
        "tune.maxrewrite 2048",
    ),
    entry(
        "tune.pattern.cache-size",
        |s, g| {
            s.count("'tune.pattern.cache-size' expects a positive numeric value")
                .map(|n| g.tune.pattern_cache = n)
        },
        "Size of the cache of look-ups (no effect).",
        "tune.pattern.cache-size 1000",
    ),
    entry(
        "tune.pipesize",
        |s, g| {
            g.tune.pipesize = Some(to_usize(whole(s, "tune.pipesize")?)).filter(|n| *n > 0);
            Ok(())
        },
        "Size of a pipe for splicing.",
        "tune.pipesize 65536",
    ),
    entry(
        "tune.pool-high-fd-ratio",
        |s, g| percent(s).map(|n| g.tune.pool_high_fd = n),
        "Descriptors, in percent, above which idle server connections are killed.",
        "tune.pool-high-fd-ratio 30",
    ),
    entry(
        "tune.pool-low-fd-ratio",
        |s, g| percent(s).map(|n| g.tune.pool_low_fd = n),
        "Descriptors, in percent, above which no idle server connection is kept.",
        "tune.pool-low-fd-ratio 20",
    ),
    entry(
        "tune.rcvbuf.client",
        |s, g| kernel(s).map(|n| g.tune.rcvbuf_client = n),
        "Receive buffer of clients.",
        "tune.rcvbuf.client 64k",
    ),
    entry(
        "tune.rcvbuf.server",
        |s, g| kernel(s).map(|n| g.tune.rcvbuf_server = n),
        "Receive buffer of servers.",
        "tune.rcvbuf.server 64k",
    ),
    entry(
        "tune.rcvbuf.frontend",
        |s, _| kernel(s).map(|_| ()),
        "Receive buffer of sockets that many peers share; there are none yet.",
        "tune.rcvbuf.frontend 64k",
    ),
    entry(
        "tune.rcvbuf.backend",
        |s, _| kernel(s).map(|_| ()),
        "Receive buffer of sockets to many peers; there are none yet.",
        "tune.rcvbuf.backend 64k",
    ),
    entry(
        "tune.sndbuf.client",
        |s, g| kernel(s).map(|n| g.tune.sndbuf_client = n),
        "Send buffer of clients.",
        "tune.sndbuf.client 64k",
    ),
    entry(
        "tune.sndbuf.server",
        |s, g| kernel(s).map(|n| g.tune.sndbuf_server = n),
        "Send buffer of servers.",
        "tune.sndbuf.server 64k",
    ),
    entry(
        "tune.sndbuf.frontend",
        |s, _| kernel(s).map(|_| ()),
        "Send buffer of sockets that many peers share; there are none yet.",
        "tune.sndbuf.frontend 64k",
    ),
    entry(
        "tune.sndbuf.backend",
        |s, _| kernel(s).map(|_| ()),
        "Send buffer of sockets to many peers; there are none yet.",
        "tune.sndbuf.backend 64k",
    ),
    entry(
        "tune.runqueue-depth",
        |s, g| positive(s).map(|n| g.tune.runqueue_depth = n),
        "Tasks run in a turn.",
        "tune.runqueue-depth 100",
    ),
    entry(
        "tune.stick-counters",
        |s, g| {
            let n = s.count("'tune.stick-counters' expects a positive value")?;
            g.tune.stick_counters = n.min(u32::from(u16::MAX));
            Ok(())
        },
        "Counters that a session may track.",
        "tune.stick-counters 5",
    ),
    entry(
        "tune.vars.global-max-size",
        |s, g| vars(s, g, 0),
        "Most memory of all variables.",
        "tune.vars.global-max-size 1m",
    ),
    entry(
        "tune.vars.proc-max-size",
        |s, g| vars(s, g, 1),
        "Most memory of variables of the process.",
        "tune.vars.proc-max-size 1m",
    ),
    entry(
        "tune.vars.sess-max-size",
        |s, g| vars(s, g, 2),
        "Most memory of variables of a session.",
        "tune.vars.sess-max-size 1m",
    ),
    entry(
        "tune.vars.txn-max-size",
        |s, g| vars(s, g, 3),
        "Most memory of variables of a transaction.",
        "tune.vars.txn-max-size 1m",
    ),
    entry(
        "tune.vars.reqres-max-size",
        |s, g| vars(s, g, 4),
        "Most memory of variables of one direction.",
        "tune.vars.reqres-max-size 1m",
    ),
    entry(
        "tune.vars.check-max-size",
        |s, g| vars(s, g, 5),
        "Most memory of variables of a check.",
        "tune.vars.check-max-size 1m",
    ),
];

fn to_usize(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// A size and nothing behind it.
fn whole(s: &mut Statement<'_>, name: &str) -> Step<u64> {
    let size = s.size(name)?;
    s.end()?;
    Ok(size)
}

fn positive(s: &mut Statement<'_>) -> Step<u32> {
    let name = s.keyword();
    s.count(format!("'{name}' expects an integer argument."))
}

fn percent(s: &mut Statement<'_>) -> Step<u32> {
    let name = s.keyword();
    match positive(s)? {
        n @ 0..=100 => Ok(n),
        _ => Err(s.fail(format!("'{name}' expects an integer argument between 0 and 100."))),
    }
}

/// A size for the kernel; zero leaves it to the kernel.
fn kernel(s: &mut Statement<'_>) -> Step<Option<u32>> {
    let name = s.keyword();
    let size = whole(s, name)?;
    Ok(u32::try_from(size).ok().filter(|n| *n > 0))
}

fn vars(s: &mut Statement<'_>, g: &mut GlobalDraft, which: usize) -> Step {
    let name = s.keyword();
    let word = s.word(format!("{name}: expects a size"))?;
    let size =
        units::size(word.text()).map_err(|rest| s.fail(format!("{name}: '{rest}' is an invalid size")))?;
    if let Some(limit) = g.tune.vars_max.get_mut(which) {
        *limit = to_usize(size);
    }
    s.end()
}

/// `anonkey <key>`: what is no number counts as 0.
fn anon_key(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let word = s.word("a key is expected after 'anonkey'.").map_err(tight)?;
    let key = units::lenient(word.text());
    let text = || format!("'anonkey' value must be within range 0-4294967295 (was '{word}').");
    g.anon_key = u32::try_from(key).map_err(|_| tight(s.fail(text())))?;
    Ok(())
}

/// `tune.defaults.purge [all|none|<element>,...]`.
fn purge(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let list = s.next().map_or("proxies", syntax::Word::text);
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
            "" => {}
            _ => return Err(s.fail(format!("'tune.defaults.purge' unknown directive '{element}'."))),
        }
    }
    s.end()
}
